//! A schedule as a caller asks for it.

use super::{Coalesce, OverlapPolicy, Schedule, ScheduleWarning};
use crate::{Json, Timestamp, Trigger, Workers};

/// What a caller asks for. [`Limits::check_schedule`](crate::Limits::check_schedule) makes a [`ValidSchedule`] of it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    /// The name, unique among schedules that are not deleted. None: the UUID alone names it.
    pub name: Option<String>,
    /// The service whose workers run each job.
    pub service: String,
    /// The task that they run.
    pub task: String,
    /// Which workers of the service.
    pub workers: Workers,
    /// Positional arguments of each job, a JSON array.
    pub args: Json,
    /// Keyword arguments of each job, a JSON object.
    pub kwargs: Json,
    /// Seconds that each job may take.
    pub timeout: u64,
    /// When it runs.
    pub trigger: Trigger,
    /// The name of the zone in which its instants are shown, and by whose clocks a cron or calendar trigger runs.
    pub timezone: String,
    /// The first instant that counts, and the anchor of the grid; rounded up to a whole second.
    pub start_at: Option<Timestamp>,
    /// The last instant that counts.
    pub end_at: Option<Timestamp>,
    /// Which of several occurrences that are due at once become jobs.
    pub coalesce: Coalesce,
    /// Whether a job may be made while earlier ones are unfinished.
    pub overlap_policy: OverlapPolicy,
    /// With ALLOW, how many jobs may be unfinished at a time.
    pub max_instances: u64,
    /// Seconds that an occurrence may start late before it is missed. None: any lateness is accepted.
    pub misfire_grace_seconds: Option<u64>,
    /// The most seconds by which an occurrence is delayed, each by its own constant amount.
    pub jitter_seconds: u64,
    /// How it begins.
    pub begin: Begin,
}

/// How a schedule begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// ACTIVE.
    Active,
    /// PAUSED: it makes nothing until it is resumed.
    Paused,
}

impl NewSchedule {
    /// A schedule for all workers of a service without arguments. The defaults: timeout 600 s, zone UTC, no bounds,
    /// coalesce latest, FORBID, one instance, no grace, no jitter, ACTIVE at once.
    #[must_use]
    pub fn new(service: impl Into<String>, task: impl Into<String>, trigger: impl Into<Trigger>) -> Self {
        Self {
            name: None,
            service: service.into(),
            task: task.into(),
            workers: Workers::All,
            args: Json::empty_array(),
            kwargs: Json::empty_object(),
            timeout: 600,
            trigger: trigger.into(),
            timezone: "UTC".to_owned(),
            start_at: None,
            end_at: None,
            coalesce: Coalesce::Latest,
            overlap_policy: OverlapPolicy::Forbid,
            max_instances: 1,
            misfire_grace_seconds: None,
            jitter_seconds: 0,
            begin: Begin::Active,
        }
    }

    /// What a saved schedule would have been asked for as; without its arguments.
    pub(crate) fn of(schedule: &Schedule) -> Self {
        Self {
            name: schedule.name.clone(),
            workers: schedule.workers.clone(),
            timeout: schedule.timeout.into(),
            timezone: schedule.timezone.name().to_owned(),
            start_at: schedule.start_at,
            end_at: schedule.end_at,
            coalesce: schedule.coalesce,
            overlap_policy: schedule.overlap_policy,
            max_instances: schedule.max_instances.into(),
            misfire_grace_seconds: schedule.misfire_grace_seconds.map(u64::from),
            jitter_seconds: schedule.jitter_seconds.into(),
            ..Self::new(schedule.service.clone(), schedule.task.clone(), schedule.trigger.clone())
        }
    }

    /// The same schedule with a name.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The same schedule for these workers.
    #[must_use]
    pub fn workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// The same schedule with these positional arguments.
    #[must_use]
    pub fn args(self, args: impl Into<Json>) -> Self {
        Self { args: args.into(), ..self }
    }

    /// The same schedule with these keyword arguments.
    #[must_use]
    pub fn kwargs(self, kwargs: impl Into<Json>) -> Self {
        Self { kwargs: kwargs.into(), ..self }
    }

    /// The same schedule with another timeout of its jobs, in seconds.
    #[must_use]
    pub fn timeout(self, timeout: u64) -> Self {
        Self { timeout, ..self }
    }

    /// The same schedule in this zone.
    #[must_use]
    pub fn timezone(self, name: impl Into<String>) -> Self {
        Self { timezone: name.into(), ..self }
    }

    /// The same schedule, its first occurrence at this instant (rounded up to a whole second) or, if that is past, on
    /// the grid that began there.
    #[must_use]
    pub fn start_at(self, at: Timestamp) -> Self {
        Self { start_at: Some(at), ..self }
    }

    /// The same schedule without occurrences after this instant.
    #[must_use]
    pub fn end_at(self, at: Timestamp) -> Self {
        Self { end_at: Some(at), ..self }
    }

    /// The same schedule with another coalesce policy.
    #[must_use]
    pub fn coalesce(self, coalesce: Coalesce) -> Self {
        Self { coalesce, ..self }
    }

    /// The same schedule with another overlap policy.
    #[must_use]
    pub fn overlap_policy(self, overlap_policy: OverlapPolicy) -> Self {
        Self { overlap_policy, ..self }
    }

    /// The same schedule with another number of jobs that may be unfinished at a time.
    #[must_use]
    pub fn max_instances(self, max_instances: u64) -> Self {
        Self { max_instances, ..self }
    }

    /// The same schedule, its occurrences missed when they cannot start within so many seconds after their due time.
    #[must_use]
    pub fn grace(self, seconds: u64) -> Self {
        Self { misfire_grace_seconds: Some(seconds), ..self }
    }

    /// The same schedule, its occurrences delayed by up to so many seconds.
    #[must_use]
    pub fn jitter(self, seconds: u64) -> Self {
        Self { jitter_seconds: seconds, ..self }
    }

    /// The same schedule, PAUSED from the beginning.
    #[must_use]
    pub fn paused(self) -> Self {
        Self { begin: Begin::Paused, ..self }
    }
}

/// A schedule that has passed validation and may be stored. Only
/// [`Limits::check_schedule`](crate::Limits::check_schedule) makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidSchedule {
    pub(crate) schedule: Schedule,
    pub(crate) args: Json,
    pub(crate) kwargs: Json,
}

impl ValidSchedule {
    /// The row that is stored: normalised, with its first occurrence.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The positional arguments of each job, a JSON array.
    #[must_use]
    pub fn args(&self) -> &Json {
        &self.args
    }

    /// The keyword arguments of each job, a JSON object.
    #[must_use]
    pub fn kwargs(&self) -> &Json {
        &self.kwargs
    }

    /// What is allowed and still hardly meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<ScheduleWarning> {
        self.schedule.warnings()
    }
}
