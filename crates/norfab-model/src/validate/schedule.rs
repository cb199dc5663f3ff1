//! The checks of schedules: the same for a new one, an update and a return from DISABLED.

use super::{Limits, ValidationError, seconds};
use crate::schedule::{anchor, checked_name};
use crate::{
    Begin, Coalesce, Json, NewSchedule, Occurrences, OverlapPolicy, Schedule, ScheduleCounters, ScheduleId,
    ScheduleState, Timestamp, Trigger, Upcoming, ValidSchedule, Workers, Zone,
};

/// The values of a schedule, each checked for itself and against the others; whether anything is to come is left open.
pub(crate) struct Rules {
    name: Option<String>,
    service: String,
    task: String,
    workers: Workers,
    pub(crate) args: Json,
    pub(crate) kwargs: Json,
    timeout: u32,
    trigger: Trigger,
    timezone: Zone,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    coalesce: Coalesce,
    overlap_policy: OverlapPolicy,
    max_instances: u32,
    misfire_grace_seconds: Option<u32>,
    jitter_seconds: u32,
}

impl Rules {
    /// Makes these the values of a saved schedule. Its cursor and its anchor are for the caller to move.
    pub(crate) fn put(self, schedule: &mut Schedule) {
        schedule.name = self.name;
        schedule.service = self.service;
        schedule.task = self.task;
        schedule.workers = self.workers;
        schedule.timeout = self.timeout;
        schedule.trigger = self.trigger;
        schedule.timezone = self.timezone;
        schedule.start_at = self.start_at;
        schedule.end_at = self.end_at;
        schedule.coalesce = self.coalesce;
        schedule.overlap_policy = self.overlap_policy;
        schedule.max_instances = self.max_instances;
        schedule.misfire_grace_seconds = self.misfire_grace_seconds;
        schedule.jitter_seconds = self.jitter_seconds;
    }

    /// The row of a new schedule with these values, its cursor not yet set.
    fn row(self, now: Timestamp, state: ScheduleState) -> Schedule {
        Schedule {
            uuid: ScheduleId::generate(now),
            name: self.name,
            service: self.service,
            task: self.task,
            workers: self.workers,
            timeout: self.timeout,
            trigger: self.trigger,
            timezone: self.timezone,
            start_at: self.start_at,
            end_at: self.end_at,
            anchor_at: anchor(self.start_at, now),
            jitter_seconds: self.jitter_seconds,
            next: None,
            decided_until: now,
            decided_at: now,
            last_run_at: None,
            state,
            coalesce: self.coalesce,
            misfire_grace_seconds: self.misfire_grace_seconds,
            overlap_policy: self.overlap_policy,
            max_instances: self.max_instances,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            revision: 1,
            counters: ScheduleCounters::default(),
            last_error: None,
            last_outcome: None,
        }
    }
}

impl Limits {
    /// Checks a schedule and makes it ready to be stored, as created at `now`: normalised, with its first occurrence.
    /// Occurrences at or before `now` never count.
    ///
    /// # Errors
    /// The first [`ValidationError`] found.
    pub fn check_schedule(&self, now: Timestamp, new: NewSchedule) -> Result<ValidSchedule, ValidationError> {
        let state = match new.begin {
            Begin::Active => ScheduleState::Active,
            Begin::Paused => ScheduleState::Paused,
        };
        let rules = self.check_rules(new)?;
        let (args, kwargs) = (rules.args.clone(), rules.kwargs.clone());
        let mut schedule = rules.row(now, state);
        schedule.next = Some(self.check_timing(now, &schedule)?);
        Ok(ValidSchedule { schedule, args, kwargs })
    }

    /// Checks a saved schedule before it makes a job: its row may have been edited by hand, and its task may have
    /// become forbidden.
    ///
    /// # Errors
    /// The first [`ValidationError`] found.
    pub fn check_runnable(&self, schedule: &Schedule) -> Result<(), ValidationError> {
        self.check_target(&schedule.service, &schedule.task, &schedule.workers)
    }

    pub(crate) fn check_rules(&self, new: NewSchedule) -> Result<Rules, ValidationError> {
        self.check_target(&new.service, &new.task, &new.workers)?;
        self.check_payload(&new.args, &new.kwargs)?;
        if let Trigger::Interval(interval) = &new.trigger {
            seconds("interval", interval.seconds().into(), self.interval_seconds)?;
        }
        let start_at = new.start_at.map(Timestamp::ceil_second);
        if let (Some(start_at), Some(end_at)) = (start_at, new.end_at)
            && start_at >= end_at
        {
            return Err(ValidationError::EndNotAfterStart { start_at, end_at });
        }
        let grace = new.misfire_grace_seconds;
        Ok(Rules {
            name: new.name.map(|name| checked_name(&name, self.name_bytes)).transpose()?,
            service: new.service,
            task: new.task,
            workers: new.workers,
            args: new.args,
            kwargs: new.kwargs,
            timeout: seconds("timeout", new.timeout, self.timeout_seconds)?,
            jitter_seconds: self.check_jitter(new.jitter_seconds, &new.trigger)?,
            trigger: new.trigger,
            timezone: Zone::find(&new.timezone)?,
            start_at,
            end_at: new.end_at,
            coalesce: new.coalesce,
            overlap_policy: new.overlap_policy,
            max_instances: self.check_instances(new.max_instances)?,
            misfire_grace_seconds: grace
                .map(|grace| seconds("misfire_grace_seconds", grace, self.misfire_grace_seconds))
                .transpose()?,
        })
    }

    /// Checks the bounds of a schedule against `now`; returns its first occurrence after it.
    pub(crate) fn check_timing(&self, now: Timestamp, schedule: &Schedule) -> Result<Upcoming, ValidationError> {
        for (field, at) in [("start_at", schedule.start_at), ("end_at", schedule.end_at)] {
            at.map_or(Ok(()), |at| self.check_ahead(now, field, at))?;
        }
        schedule.first_after(now).ok_or_else(|| {
            let unbounded =
                Occurrences::new(&schedule.trigger, &schedule.timezone, schedule.anchor_at, schedule.start_at, None);
            ValidationError::NothingToCome {
                next: unbounded.next_after(now).unwrap_or(Timestamp::MAX),
                end_at: schedule.end_at.unwrap_or(Timestamp::MAX),
            }
        })
    }

    /// Below an interval it is known to fit; how near the occurrences of other triggers come to each other is not, and
    /// the jitter is cut there.
    fn check_jitter(&self, given: u64, trigger: &Trigger) -> Result<u32, ValidationError> {
        let jitter = u32::try_from(given).ok().filter(|jitter| *jitter <= self.jitter_seconds);
        match (jitter, trigger) {
            (None, _) => Err(ValidationError::Jitter { given, limit: self.jitter_seconds }),
            (Some(jitter), Trigger::Interval(interval)) if jitter >= interval.seconds() => {
                Err(ValidationError::JitterNotBelowInterval { given, interval: interval.seconds() })
            }
            (Some(jitter), _) => Ok(jitter),
        }
    }

    fn check_instances(&self, given: u64) -> Result<u32, ValidationError> {
        u32::try_from(given)
            .ok()
            .filter(|instances| (1..=self.max_instances).contains(instances))
            .ok_or(ValidationError::Instances { given, limit: self.max_instances })
    }
}

#[cfg(test)]
mod tests;
