//! Why a schedule could not be added, found or changed.

use super::{Schedule, ScheduleCall, ScheduleKey, ScheduleState, UnreadableSchedule};
use crate::{JobId, ScheduleId, StoreError, Timestamp, ValidationError};

/// What went wrong with a schedule. Values of arguments are never part of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// There is no such schedule.
    #[error("there is no schedule {0}")]
    Unknown(ScheduleKey),
    /// It was deleted: only its history is left.
    #[error("schedule {schedule} was deleted at {deleted_at}; create a new one")]
    Deleted {
        /// Its name and identity.
        schedule: String,
        /// When.
        deleted_at: Timestamp,
    },
    /// Another schedule has the name. It comes along, so that a caller which only wants it to be there can go on.
    #[error("a schedule named {name} exists already: {id} ({state}); update it, or choose another name",
        name = format!("{:?}", .existing.name.as_deref().unwrap_or_default()), id = .existing.uuid, state = .existing.state)]
    NameTaken {
        /// The schedule that has the name.
        existing: Box<Schedule>,
    },
    /// The very same schedule was added before.
    #[error("schedule {0} exists already")]
    Exists(ScheduleId),
    /// Its state does not allow the call.
    #[error("schedule {schedule} is {state} and cannot be {call}; {}", .state.way_out())]
    Refused {
        /// Its name and identity.
        schedule: String,
        /// Where it stands.
        state: ScheduleState,
        /// What was wanted.
        call: ScheduleCall,
    },
    /// It has been updated since the caller read it.
    #[error("schedule {schedule} is at revision {actual}, not {expected}: it was updated meanwhile; read it again")]
    Stale {
        /// Its name and identity.
        schedule: String,
        /// The revision that the caller demanded.
        expected: u64,
        /// The one that it has.
        actual: u64,
    },
    /// It cannot be run by hand beside its unfinished jobs.
    #[error(
        "schedule {schedule} has job {job} unfinished since {since}, and its overlap policy ({policy}) has no room; \
         wait, or force it"
    )]
    Overlap {
        /// Its name and identity.
        schedule: String,
        /// The unfinished job that is longest under way.
        job: JobId,
        /// Since when.
        since: Timestamp,
        /// `FORBID`, or `ALLOW` with the number of instances.
        policy: String,
    },
    /// What is asked for is not valid.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// Its row cannot be read. The other rows are usable, and this one can be disabled and deleted still.
    #[error(
        "schedule {schedule} is {state} and cannot be read: {reason}; put its row right, or delete it",
        schedule = .0.label(), state = .0.state, reason = .0.reason
    )]
    Unreadable(Box<UnreadableSchedule>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
