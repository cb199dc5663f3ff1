//! Jobs and schedules of a NorFab client as plain data, and the rules they live by as pure functions.
//!
//! The rooms, in reading order: [`Timestamp`], [`Uptime`] and the ids; [`JobStatus`] with the table of transitions; [`NewJob`],
//! what a caller asks for, [`Limits`], what it may ask for, and [`Job`], what is kept; [`decide`] and [`expire`],
//! what a reply or a deadline changes, [`RetryPolicy`] and [`place`](fn@place), when and where a job is sent again. Then
//! schedules: [`Trigger`] and [`Zone`]; [`NewSchedule`] and [`Schedule`] with its states, policies and calls;
//! [`jitter`](fn@jitter) and [`plan_due`], what becomes of the occurrences that are due. At last [`Store`],
//! [`ScheduleStore`], [`Broker`] and [`Clock`], the ports through which a dispatcher sees the world.
//!
//! Nothing here waits, logs or reads a clock: `now` is always handed in.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod id;
mod jitter;
mod job;
mod json;
mod payload;
mod place;
mod plan;
mod port;
mod reply;
mod retry;
mod schedule;
mod status;
mod text;
mod timestamp;
mod trigger;
mod uptime;
mod validate;
mod word;
mod workers;
mod zone;

pub use id::{IdError, JobId, ScheduleId, seed_ids};
pub use jitter::jitter;
pub use job::{
    Job, JobCursor, JobDetail, JobEvent, JobFilter, JobPage, JobStats, NewJob, Origin, Results, Start, UnreadableJob,
    ValidJob,
};
pub use json::Json;
pub use payload::{UnsafePayload, check_payload};
pub use place::{LiveWorkers, Placement, place};
pub use plan::{Plan, plan_due};
pub use port::{
    Applied, AppliedReplies, Broker, BrokerError, Claim, Claimed, Clock, Connection, Inbound, InputAnswer,
    InputVerdict, Link, Materialize, Materialized, NextDue, Overdue, Poll, Post, Quarantined, Realigned, Recovered,
    Released, Request, Resend, Rezoned, ScheduleOutcome, ScheduleStore, Scope, SendAgain, SentAgain, Store, StoreError,
    StoredAnswer,
};
pub use reply::{
    Change, Context, FabricEvent, FabricEventKind, FollowUp, Ignored, InputRequest, MOST_WORKERS, Registry, Reply,
    ReplyKind, Retry, RetryTarget, decide, expire, failed_result,
};
pub use retry::RetryPolicy;
pub use schedule::{
    ActiveJob, Begin, Coalesce, Effect, LastOutcome, Listed, Managed, MissedJobs, NewSchedule, Overlap, OverlapPolicy,
    Passes, Patch, PlannedJob, RunNow, SLEEP_CAP_SECONDS, Schedule, ScheduleCall, ScheduleCounters, ScheduleCursor,
    ScheduleDetail, ScheduleError, ScheduleFilter, ScheduleKey, SchedulePage, SchedulePatch, ScheduleState,
    ScheduleView, ScheduleWarning, SwitchedOff, UnreadableSchedule, Upcoming, Updated, ValidSchedule, Verdict,
    run_failed,
};
pub use status::{JobStatus, UnknownStatus};
pub use text::one_line;
pub use timestamp::{Timestamp, TimestampError};
pub use trigger::{
    Cadence, Calendar, Cron, Interval, Moved, Occurrences, TimeOfDay, Trigger, TriggerError, UnevenStep, Weekdays,
};
pub use uptime::{Moment, Uptime};
pub use validate::{Limits, ValidationError};
pub use word::UnknownWord;
pub use workers::{Workers, WorkersError};
pub use zone::{LocalInstants, Transition, Zone, ZoneError, ZoneOffset};
