//! A NorFab client with delayed jobs: adds jobs to a database of its own, sends them to a fabric of a broker and workers
//! at their time, follows them and keeps what came of them.
//!
//! The rooms: [`ClientBuilder`], which finds database, keys and broker; [`Client`], what a program calls; [`JobHandle`]
//! and its [`Outcome`]; [`read_inventory`]; [`SystemClock`], the only place that reads a clock. The words of the model
//! ([`NewJob`], [`Job`], [`JobStatus`], ..) are exported again, so that a program needs this crate only.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod aside;
mod builder;
mod client;
mod clock;
mod database;
mod error;
mod guest;
mod handle;
mod home;
mod inventory;
mod owner;
mod result;
mod schedules;
mod watch;

pub use builder::{ClientBuilder, DEFAULT_NAME, Role, connect_plain};
pub use client::{Client, ClientStats};
pub use clock::SystemClock;
pub use database::{inspect_database, migrate_database};
pub use error::ClientError;
pub use handle::{JobHandle, Outcome, Update};
pub use inventory::{BrokerAddress, InventoryError, Security, read_forbidden_tasks, read_inventory};
pub use owner::{Dispatching, Holder, HolderKind, dispatching};
pub use result::WorkerResult;
pub use schedules::{Created, Preview, preview_new};

pub use norfab_dispatch::{Config, ControlError, Health, LinkState, ManualClock, Ports};
pub use norfab_model::{
    ActiveJob, Broker, Cadence, Calendar, Clock, Coalesce, Cron, InputRequest, Interval, Job, JobCursor, JobDetail,
    JobEvent, JobFilter, JobId, JobPage, JobStats, JobStatus, Json, LastOutcome, Limits, Listed, Managed, Moment,
    Moved, NewJob, NewSchedule, Origin, Overlap, OverlapPolicy, Passes, Patch, Results, RunNow, Schedule,
    ScheduleCounters, ScheduleCursor, ScheduleDetail, ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey,
    SchedulePage, SchedulePatch, ScheduleState, ScheduleStore, ScheduleView, ScheduleWarning, Start, Store, StoreError,
    SwitchedOff, TimeOfDay, Timestamp, TimestampError, Transition, Trigger, TriggerError, UnevenStep, UnreadableJob,
    UnreadableSchedule, Upcoming, Uptime, ValidationError, Weekdays, Workers, Zone, ZoneError,
};
pub use norfab_nfp::{ClientName, Endpoint, Error as NfpError, NfpBroker};
pub use norfab_store::{DatabaseInfo, Durability, MemoryStore, Migrated, MigrationInfo, SqliteStore, StoreOpenError};
