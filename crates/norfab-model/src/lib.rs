//! Jobs of a NorFab client as plain data, and the rules they live by as pure functions.
//!
//! The rooms, in reading order: [`Timestamp`] and the ids; [`JobStatus`] with the table of transitions; [`NewJob`], what
//! a caller asks for, [`Limits`], what it may ask for, and [`Job`], what is kept; [`decide`] and [`expire`], what a reply
//! or a deadline changes; [`Store`], [`Broker`] and [`Clock`], the ports through which a dispatcher sees the world.
//!
//! Nothing here waits, logs or reads a clock: `now` is always handed in.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod id;
mod job;
mod json;
mod payload;
mod port;
mod reply;
mod status;
mod timestamp;
mod validate;
mod workers;

pub use id::{IdError, JobId, ScheduleId};
pub use job::{
    Job, JobCursor, JobDetail, JobEvent, JobFilter, JobPage, JobStats, NewJob, Origin, Results, Start, UnreadableJob,
    ValidJob,
};
pub use json::Json;
pub use payload::{UnsafePayload, check_payload};
pub use port::{
    Applied, AppliedReplies, Broker, BrokerError, Claimed, Clock, Connection, Inbound, InputAnswer, InputVerdict, Link,
    NextDue, Poll, Post, Recovered, Released, Request, Scope, Store, StoreError, StoredAnswer,
};
pub use reply::{
    Change, FabricEvent, FabricEventKind, Ignored, InputRequest, Reply, ReplyKind, decide, expire, failed_result,
};
pub use status::{JobStatus, UnknownStatus};
pub use timestamp::{Timestamp, TimestampError};
pub use validate::{Limits, ValidationError};
pub use workers::{Workers, WorkersError};
