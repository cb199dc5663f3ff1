//! What the calls of a caller make of a schedule: plain functions of the row and `now`, which the stores carry out.

use std::time::Duration;

use serde::Serialize;

use super::{
    NewSchedule, Overlap, OverlapPolicy, Patch, Schedule, ScheduleCall, ScheduleError, SchedulePatch, ScheduleState,
    UnreadableSchedule, Upcoming, Verdict, anchor,
};
use crate::{Job, JobId, Json, Limits, Timestamp, one_line};

/// How long a call may wait between reading the clock and its turn.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What a call made of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Managed {
    /// The schedule as it now is.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Occurrences up to now that the call passed over: they never become jobs, and are counted so.
    #[serde(rename = "passed_over_now")]
    pub passed_over: u64,
    /// Whether anything changed.
    #[serde(skip)]
    pub effect: Effect,
}

/// Whether a call changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It did.
    Changed,
    /// It was so already; the row stays as it is.
    None,
}

/// What a call did that needs nothing of a schedule but its row: switching it off, or deleting it. So a row that cannot
/// be read can be got rid of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SwitchedOff {
    /// The schedule as it now is.
    Schedule(Box<Managed>),
    /// A row that is no schedule, as it now is.
    Unreadable(UnreadableSchedule),
}

impl SwitchedOff {
    /// What became of the schedule. None: its row cannot be read.
    #[must_use]
    pub fn managed(&self) -> Option<&Managed> {
        match self {
            Self::Schedule(managed) => Some(managed),
            Self::Unreadable(_) => None,
        }
    }
}

impl From<Managed> for SwitchedOff {
    fn from(managed: Managed) -> Self {
        Self::Schedule(Box::new(managed))
    }
}

/// What an update made of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated {
    /// The schedule as it now is.
    pub managed: Managed,
    /// The new positional arguments. None: they stay.
    pub args: Option<Json>,
    /// The new keyword arguments. None: they stay.
    pub kwargs: Option<Json>,
}

/// A schedule run by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct RunNow {
    /// The schedule as it now is: the run is counted, the cadence does not move.
    pub schedule: Schedule,
    /// The job: NEW, with the schedule's arguments.
    pub job: Job,
}

/// An unfinished job of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveJob {
    /// The job.
    pub uuid: JobId,
    /// When it became NEW.
    pub since: Timestamp,
}

impl Schedule {
    /// Pauses it: its cursor stays, and what comes due meanwhile is passed over when it is resumed.
    ///
    /// # Errors
    /// [`ScheduleError::Refused`] when it is COMPLETED or DISABLED, [`ScheduleError::Deleted`].
    pub fn pause(&self, now: Timestamp) -> Result<Managed, ScheduleError> {
        match self.permit(ScheduleCall::Pause)? {
            Verdict::NoChange => Ok(self.unchanged()),
            _ => Ok(Self { state: ScheduleState::Paused, ..self.touched(now) }.changed(0)),
        }
    }

    /// Lets it go on with the first occurrence after `now`; without one it is COMPLETED. What would have been due is
    /// passed over. A DISABLED one must pass the same checks as a new one (except for its arguments), and loses its
    /// `last_error`.
    ///
    /// # Errors
    /// [`ScheduleError::Refused`] when it is COMPLETED, [`ScheduleError::Invalid`] when it was DISABLED and is not valid
    /// any more, [`ScheduleError::Deleted`].
    pub fn resume(&self, now: Timestamp, limits: &Limits) -> Result<Managed, ScheduleError> {
        if self.permit(ScheduleCall::Resume)? == Verdict::NoChange {
            return Ok(self.unchanged());
        }
        if self.state == ScheduleState::Disabled {
            limits.check_rules(NewSchedule::of(self))?;
        }
        let after = self.turning_point(now);
        let next = self.first_after(after);
        let state = if next.is_some() { ScheduleState::Active } else { ScheduleState::Completed };
        let resumed = Self { next, state, last_error: None, ..self.touched(now).decided(after) };
        Ok(resumed.changed(self.occurrences_until(after)))
    }

    /// Changes it, for future occurrences; its revision grows. Only when trigger, bounds, zone or jitter become
    /// others does the cursor move, to the first occurrence after `now`, and what was due is passed over. With
    /// something to come again, a COMPLETED schedule is ACTIVE.
    ///
    /// # Errors
    /// [`ScheduleError::Stale`] when another revision is demanded, [`ScheduleError::Invalid`] for values that a new
    /// schedule could not have, or when its timing changes and leaves nothing to come, [`ScheduleError::Deleted`].
    pub fn update(&self, now: Timestamp, patch: SchedulePatch, limits: &Limits) -> Result<Updated, ScheduleError> {
        self.permit(ScheduleCall::Update)?;
        if let Some(expected) = patch.revision.filter(|expected| *expected != self.revision) {
            return Err(ScheduleError::Stale { schedule: self.label(), expected, actual: self.revision });
        }
        let (new_args, new_kwargs) = (patch.args != Patch::Keep, patch.kwargs != Patch::Keep);
        let rules = limits.check_rules(patch.onto(NewSchedule::of(self)))?;
        let (args, kwargs) = (rules.args.clone(), rules.kwargs.clone());
        let mut schedule = self.touched(now);
        schedule.revision = self.revision.saturating_add(1);
        rules.put(&mut schedule);
        let mut passed_over = 0;
        if schedule.timing_differs(self) {
            schedule.anchor_at = anchor(schedule.start_at, schedule.created_at);
            let after = self.turning_point(now);
            schedule.next = Some(limits.check_timing(after, &schedule)?);
            schedule = schedule.decided(after);
            passed_over = self.occurrences_until(after);
            if schedule.state == ScheduleState::Completed {
                schedule.state = ScheduleState::Active;
            }
        }
        Ok(Updated {
            managed: schedule.changed(passed_over),
            args: new_args.then_some(args),
            kwargs: new_kwargs.then_some(kwargs),
        })
    }

    /// Switches it off; its cursor stays.
    ///
    /// # Errors
    /// [`ScheduleError::Deleted`].
    pub fn disable(&self, now: Timestamp) -> Result<Managed, ScheduleError> {
        match self.permit(ScheduleCall::Disable)? {
            Verdict::NoChange => Ok(self.unchanged()),
            _ => Ok(Self { state: ScheduleState::Disabled, ..self.touched(now) }.changed(0)),
        }
    }

    /// Deletes it: DISABLED for good and gone from the lists, its name free. Its jobs keep its identity.
    ///
    /// # Errors
    /// [`ScheduleError::Deleted`] when it was deleted before.
    pub fn delete(&self, now: Timestamp) -> Result<Managed, ScheduleError> {
        self.permit(ScheduleCall::Delete)?;
        Ok(Self { state: ScheduleState::Disabled, deleted_at: Some(now), ..self.touched(now) }.changed(0))
    }

    /// Makes a job at once, beside the cadence. `active` are its unfinished jobs, the one that is longest under way
    /// first; as many as `max_instances` are enough.
    ///
    /// # Errors
    /// [`ScheduleError::Overlap`] when its overlap policy has no room and is to be respected, [`ScheduleError::Refused`] when it is COMPLETED or DISABLED, [`ScheduleError::Invalid`] when its task is
    /// forbidden by now, [`ScheduleError::Deleted`].
    pub fn run_now(
        &self,
        now: Timestamp,
        active: &[ActiveJob],
        overlap: Overlap,
        limits: &Limits,
    ) -> Result<RunNow, ScheduleError> {
        self.permit(ScheduleCall::RunNow)?;
        limits.check_runnable(self)?;
        if let (Overlap::Respect, Some(oldest)) = (overlap, active.first())
            && self.overlap_policy.room(self.max_instances, active.len() as u64) == 0
        {
            return Err(ScheduleError::Overlap {
                schedule: self.label(),
                job: oldest.uuid.clone(),
                since: oldest.since,
                policy: self.policy(),
            });
        }
        let mut schedule = self.clone();
        schedule.counters.total_runs = schedule.counters.total_runs.saturating_add(1);
        Ok(RunNow { schedule, job: self.job_by_hand(now) })
    }

    /// Switches it off because it cannot be used; `reason` becomes its `last_error`, as one line.
    #[must_use]
    pub fn quarantine(&self, now: Timestamp, reason: &str) -> Self {
        Self { state: ScheduleState::Disabled, last_error: Some(one_line(reason)), ..self.touched(now) }
    }

    /// Where its cursor belongs when it stands wrong: at a start, and when the clock went back. An ACTIVE schedule
    /// whose next occurrence lies beyond the first one after `now` and after what is decided gets that one, so that a
    /// clock that was ahead for a while causes no silence; one whose due time is not that of its occurrence gets it. None:
    /// it stands right. What was decided a moment after `now` was read, by a call of another task or process, is no clock
    /// that was ahead.
    #[must_use]
    pub fn realigned(&self, now: Timestamp) -> Option<Upcoming> {
        let next = self.next.filter(|_| self.state == ScheduleState::Active)?;
        let first = self.first_after(self.turning_point(now)).filter(|first| first.occurrence < next.occurrence);
        let right = first.unwrap_or_else(|| self.upcoming(next.occurrence));
        (right != next).then_some(right)
    }

    /// Behind which instant a call puts the cursor: `now`; or what is decided, when a call has read the clock and then
    /// waited for its turn while that was decided. When `now` lies further back the clock was set back, and what is
    /// decided would keep the schedule silent.
    fn turning_point(&self, now: Timestamp) -> Timestamp {
        if self.decided_at.since(now) <= LONGEST_WAIT { now.max(self.decided_until) } else { now }
    }

    /// How many occurrences there are from the cursor up to an instant, it included: what a call passes over that moves
    /// the cursor behind it.
    fn occurrences_until(&self, now: Timestamp) -> u64 {
        self.next.map_or(0, |next| self.occurrences().count_in(next.occurrence, now))
    }

    fn permit(&self, call: ScheduleCall) -> Result<Verdict, ScheduleError> {
        if let Some(deleted_at) = self.deleted_at {
            return Err(ScheduleError::Deleted { schedule: self.label(), deleted_at });
        }
        match self.state.on(call) {
            Verdict::Refuse => Err(ScheduleError::Refused { schedule: self.label(), state: self.state, call }),
            verdict => Ok(verdict),
        }
    }

    fn timing_differs(&self, other: &Self) -> bool {
        self.trigger != other.trigger
            || self.start_at != other.start_at
            || self.end_at != other.end_at
            || self.jitter_seconds != other.jitter_seconds
            || !self.timezone.is_same(&other.timezone)
    }

    fn policy(&self) -> String {
        match self.overlap_policy {
            OverlapPolicy::Forbid => "FORBID".to_owned(),
            OverlapPolicy::Allow => format!("ALLOW {}", self.max_instances),
        }
    }

    fn touched(&self, now: Timestamp) -> Self {
        Self { updated_at: now, ..self.clone() }
    }

    fn unchanged(&self) -> Managed {
        Managed { schedule: self.clone(), passed_over: 0, effect: Effect::None }
    }

    fn changed(mut self, passed_over: u64) -> Managed {
        self.counters.passed_over = self.counters.passed_over.saturating_add(passed_over);
        Managed { schedule: self, passed_over, effect: Effect::Changed }
    }
}

#[cfg(test)]
mod tests;
