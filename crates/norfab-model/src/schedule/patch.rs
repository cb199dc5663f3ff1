//! A change of a saved schedule: each field is kept, cleared or set.

use super::{Coalesce, NewSchedule, OverlapPolicy};
use crate::{Json, Timestamp, Trigger, Workers};

/// What becomes of one field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It gets its default; where that is to be absent, it is removed.
    Clear,
    /// It gets this value.
    Set(T),
}

impl<T> Patch<T> {
    /// Keeps the field when there is no value, else sets it.
    #[must_use]
    pub fn set_some(value: Option<T>) -> Self {
        value.map_or(Self::Keep, Self::Set)
    }

    fn over(self, current: T, default: T) -> T {
        match self {
            Self::Keep => current,
            Self::Clear => default,
            Self::Set(value) => value,
        }
    }

    fn over_optional(self, current: Option<T>) -> Option<T> {
        match self {
            Self::Keep => current,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// What to change of a schedule, for its future occurrences. The default keeps everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SchedulePatch {
    /// The revision that the schedule must have. None: any.
    pub revision: Option<u64>,
    /// The name.
    pub name: Patch<String>,
    /// The service; it has no default.
    pub service: Option<String>,
    /// The task; it has no default.
    pub task: Option<String>,
    /// The workers.
    pub workers: Patch<Workers>,
    /// The positional arguments.
    pub args: Patch<Json>,
    /// The keyword arguments, all of them.
    pub kwargs: Patch<Json>,
    /// The timeout, in seconds.
    pub timeout: Patch<u64>,
    /// The trigger; it has no default.
    pub trigger: Option<Trigger>,
    /// The zone.
    pub timezone: Patch<String>,
    /// The first instant that counts.
    pub start_at: Patch<Timestamp>,
    /// The last instant that counts.
    pub end_at: Patch<Timestamp>,
    /// The coalesce policy.
    pub coalesce: Patch<Coalesce>,
    /// The overlap policy.
    pub overlap_policy: Patch<OverlapPolicy>,
    /// How many jobs may be unfinished at a time.
    pub max_instances: Patch<u64>,
    /// The grace, in seconds.
    pub misfire_grace_seconds: Patch<u64>,
    /// The most jitter, in seconds.
    pub jitter_seconds: Patch<u64>,
}

impl SchedulePatch {
    /// Whether it changes no field at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self { revision: self.revision, ..Self::default() }
    }

    /// A schedule with this change made.
    pub(super) fn onto(self, saved: NewSchedule) -> NewSchedule {
        let trigger = self.trigger.unwrap_or(saved.trigger);
        let default = NewSchedule::new(self.service.unwrap_or(saved.service), self.task.unwrap_or(saved.task), trigger);
        NewSchedule {
            name: self.name.over_optional(saved.name),
            workers: self.workers.over(saved.workers, default.workers),
            args: self.args.over(saved.args, default.args),
            kwargs: self.kwargs.over(saved.kwargs, default.kwargs),
            timeout: self.timeout.over(saved.timeout, default.timeout),
            timezone: self.timezone.over(saved.timezone, default.timezone),
            start_at: self.start_at.over_optional(saved.start_at),
            end_at: self.end_at.over_optional(saved.end_at),
            coalesce: self.coalesce.over(saved.coalesce, default.coalesce),
            overlap_policy: self.overlap_policy.over(saved.overlap_policy, default.overlap_policy),
            max_instances: self.max_instances.over(saved.max_instances, default.max_instances),
            misfire_grace_seconds: self.misfire_grace_seconds.over_optional(saved.misfire_grace_seconds),
            jitter_seconds: self.jitter_seconds.over(saved.jitter_seconds, default.jitter_seconds),
            begin: saved.begin,
            service: default.service,
            task: default.task,
            trigger: default.trigger,
        }
    }
}
