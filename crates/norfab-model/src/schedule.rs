//! A schedule: a durable rule that makes a job of each occurrence, as the database holds it and as it is listed.

mod error;
mod job;
mod manage;
mod name;
mod new;
mod outcome;
mod patch;
mod policy;
mod rezone;
mod state;
mod warning;

use std::time::Duration;

use serde::ser::{Serialize, Serializer};

pub use error::ScheduleError;
pub use job::{MissedJobs, PlannedJob};
pub use manage::{ActiveJob, Effect, Managed, RunNow, SwitchedOff, Updated};
pub use name::ScheduleKey;
pub(crate) use name::checked_name;
pub use new::{Begin, NewSchedule, ValidSchedule};
pub use outcome::LastOutcome;
pub use patch::{Patch, SchedulePatch};
pub use policy::{Coalesce, Overlap, OverlapPolicy};
pub use state::{ScheduleCall, ScheduleState, Verdict};
pub use warning::{Passes, SLEEP_CAP_SECONDS, ScheduleWarning};

use crate::{Json, Occurrences, ScheduleId, Timestamp, Trigger, Workers, Zone, jitter};

/// One schedule without its arguments: what a list shows and what decisions are made on. Serialised with the column
/// names of the database.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Schedule {
    /// Its identity.
    pub uuid: ScheduleId,
    /// Its name, unique among schedules that are not deleted.
    pub name: Option<String>,
    /// The service whose workers run each job.
    pub service: String,
    /// The task that they run.
    pub task: String,
    /// Which workers of the service.
    pub workers: Workers,
    /// Seconds that each job may take.
    pub timeout: u32,
    /// When it runs.
    #[serde(flatten, serialize_with = "trigger_columns")]
    pub trigger: Trigger,
    /// The zone in which its instants are shown, and by whose clocks a cron or calendar trigger runs.
    pub timezone: Zone,
    /// The first instant that counts, a whole second.
    pub start_at: Option<Timestamp>,
    /// The last instant that counts.
    pub end_at: Option<Timestamp>,
    /// From where the trigger counts, an instant of an interval's grid: `start_at`, else the creation cut to a whole
    /// second.
    pub anchor_at: Timestamp,
    /// The most seconds by which an occurrence is delayed.
    pub jitter_seconds: u32,
    /// The cursor: the first occurrence that has not been decided, in the columns `next_run_at` and `next_due_at`. It
    /// stays while the schedule is paused or disabled; None when nothing is left.
    #[serde(flatten, serialize_with = "cursor_columns")]
    pub next: Option<Upcoming>,
    /// Up to this instant everything is decided, it included: the newest occurrence that was, or the instant behind which
    /// a call put the cursor, and never before the creation. It never goes back; the cursor does, with the clock.
    pub decided_until: Timestamp,
    /// Where the clock stands at the least when `decided_until` counts; a clock before it was set back. The same instant,
    /// or an earlier one once newer zone data has put later what was decided.
    pub decided_at: Timestamp,
    /// The last occurrence that became a NEW job.
    pub last_run_at: Option<Timestamp>,
    /// Where it stands.
    pub state: ScheduleState,
    /// Which of several occurrences that are due at once become jobs.
    pub coalesce: Coalesce,
    /// Seconds after its due time within which an occurrence must start. None: any lateness is accepted.
    pub misfire_grace_seconds: Option<u32>,
    /// Whether a job may be made while earlier ones are unfinished.
    pub overlap_policy: OverlapPolicy,
    /// With ALLOW, how many jobs may be unfinished at a time.
    pub max_instances: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When a caller last changed it; its jobs do not.
    pub updated_at: Timestamp,
    /// When it was deleted. It is DISABLED then, and only history.
    pub deleted_at: Option<Timestamp>,
    /// Grows by one with every update.
    pub revision: u64,
    /// What became of its occurrences so far.
    #[serde(flatten)]
    pub counters: ScheduleCounters,
    /// Why it was switched off, one line of at most 500 characters, without values of arguments.
    pub last_error: Option<String>,
    /// What the last look at it came to, when it was due.
    pub last_outcome: Option<LastOutcome>,
}

/// An occurrence, and when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Upcoming {
    /// The nominal instant, on the grid of the schedule.
    pub occurrence: Timestamp,
    /// The nominal instant with its jitter.
    pub due: Timestamp,
}

/// What became of the occurrences of a schedule: each is in exactly one of `total_runs`, `missed_runs`,
/// `overlap_skips`, `coalesced_runs` and `passed_over`. When the clock went back, what is walked twice counts twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ScheduleCounters {
    /// NEW jobs that were made, of occurrences and by hand.
    pub total_runs: u64,
    /// Those of its jobs that failed, see [`run_failed`].
    pub failed_runs: u64,
    /// Occurrences beyond their grace.
    pub missed_runs: u64,
    /// Occurrences that found no room beside unfinished jobs.
    pub overlap_skips: u64,
    /// Occurrences that another one stood for.
    pub coalesced_runs: u64,
    /// Occurrences that a resume or an update left behind, and those that were decided before the clock went back.
    pub passed_over: u64,
}

impl ScheduleCounters {
    /// Counts what a look at the schedule came to.
    pub(crate) fn add(&mut self, outcome: &LastOutcome) {
        let counts = [
            (&mut self.total_runs, outcome.created),
            (&mut self.missed_runs, outcome.missed),
            (&mut self.overlap_skips, outcome.skipped),
            (&mut self.coalesced_runs, outcome.coalesced),
            (&mut self.passed_over, outcome.passed_over),
        ];
        counts.into_iter().for_each(|(counter, more)| *counter = counter.saturating_add(more));
    }
}

/// A schedule and how many of its jobs are unfinished.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ScheduleView {
    /// The schedule.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Its unfinished jobs.
    pub active_jobs: u64,
}

/// A schedule with its arguments.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ScheduleDetail {
    /// The schedule and how many of its jobs are unfinished.
    #[serde(flatten)]
    pub view: ScheduleView,
    /// The positional arguments of each job, a JSON array.
    pub args: Json,
    /// The keyword arguments of each job, a JSON object.
    pub kwargs: Json,
}

/// Which of the schedules a list is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listed {
    /// Those that are not deleted.
    #[default]
    Present,
    /// The deleted ones: history, of which jobs may be left.
    Deleted,
}

/// Which schedules to list. An empty list of a kind does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// Those that are there, or the deleted ones.
    pub listed: Listed,
    /// Only schedules in one of these states.
    pub states: Vec<ScheduleState>,
    /// Only schedules of this service.
    pub service: Option<String>,
    /// Only schedules of this task.
    pub task: Option<String>,
    /// How many at the most; 0 means the default of 50, and 1,000 is the most.
    pub limit: u32,
    /// Go on behind the page that returned this cursor.
    pub cursor: Option<ScheduleCursor>,
}

impl ScheduleFilter {
    /// How many schedules a page has at the most: the limit within its bounds.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        if self.limit == 0 { 50 } else { self.limit.min(1000) }
    }
}

/// Where a list goes on. Opaque; valid for the database it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ScheduleCursor(pub i64);

/// A page of schedules, in the order of their creation.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SchedulePage {
    /// The schedules.
    pub schedules: Vec<ScheduleView>,
    /// Rows that cannot be read as schedules; all the others are usable.
    pub unreadable: Vec<UnreadableSchedule>,
    /// Where the next page begins; None at the end.
    pub next: Option<ScheduleCursor>,
}

/// A row of the database that is no schedule, and why: as much of it as can be told. Its texts have one line and no
/// control characters.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnreadableSchedule {
    /// What stands in its `uuid` column.
    pub uuid: String,
    /// What stands in its `name` column.
    pub name: Option<String>,
    /// What stands in its `state` column: `DISABLED` once a pass has come upon it.
    pub state: String,
    /// What stands in its `last_error` column: why it was switched off, if it was.
    pub last_error: Option<String>,
    /// Which column, and what is wrong with it.
    pub reason: String,
}

impl UnreadableSchedule {
    /// How messages name it: its name, if it has one, and its identity.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{name:?} ({})", self.uuid),
            None => self.uuid.clone(),
        }
    }
}

impl Schedule {
    /// Its occurrences, within its bounds.
    #[must_use]
    pub fn occurrences(&self) -> Occurrences<'_> {
        Occurrences::new(&self.trigger, &self.timezone, self.anchor_at, self.start_at, self.end_at)
    }

    /// When an occurrence is due: its nominal instant and its [`jitter`], but before the next occurrence and not after
    /// `end_at`. So occurrences are due in their order.
    #[must_use]
    pub fn due_time(&self, occurrence: Timestamp) -> Timestamp {
        let delay = jitter(&self.uuid, occurrence, self.jitter_seconds);
        if delay.is_zero() {
            return occurrence;
        }
        let next = self.occurrences().next_after(occurrence);
        let before_next = next.map(|next| next.saturating_sub(Duration::from_micros(1)));
        let latest = before_next.into_iter().chain(self.end_at).min().unwrap_or(Timestamp::MAX);
        occurrence.saturating_add(delay).min(latest).max(occurrence)
    }

    /// An occurrence with its due time.
    #[must_use]
    pub fn upcoming(&self, occurrence: Timestamp) -> Upcoming {
        Upcoming { occurrence, due: self.due_time(occurrence) }
    }

    /// The first occurrence after an instant.
    #[must_use]
    pub fn first_after(&self, instant: Timestamp) -> Option<Upcoming> {
        self.occurrences().next_after(instant).map(|at| self.upcoming(at))
    }

    /// The occurrences after an instant, in order, by its rule alone. It ends with the schedule's bounds, else at the end
    /// of the calendar.
    pub fn preview(&self, after: Timestamp) -> impl Iterator<Item = Upcoming> + '_ {
        self.occurrences().after(after).map(|at| self.upcoming(at))
    }

    /// The occurrences after an instant as they come and as they were, in order. From `now` on these are the ones that are
    /// not decided, in the past those since its creation; of one that was changed since, those since the last change of
    /// its row, as the grid may have been another one before.
    pub fn outlook(&self, now: Timestamp, after: Timestamp) -> impl Iterator<Item = Upcoming> + '_ {
        let grid_since = if self.revision == 1 { self.created_at } else { self.updated_at };
        // Without a cursor nothing is to come.
        let (after, last) = match self.next {
            Some(_) if after < now => (after.max(grid_since), Timestamp::MAX),
            Some(next) => (after.max(next.occurrence.saturating_sub(Duration::from_micros(1))), Timestamp::MAX),
            None if after < now => (after.max(grid_since), self.decided_until),
            None => (after, after),
        };
        self.preview(after).take_while(move |one| one.occurrence <= last)
    }

    /// Up to when everything is decided, when the clock has come that far. None: it was set back to before that.
    #[must_use]
    pub(crate) fn decided_by(&self, now: Timestamp) -> Option<Timestamp> {
        (self.decided_at <= now).then_some(self.decided_until)
    }

    /// The same row with everything decided up to an instant that the clock has come to; what was decided stays so.
    #[must_use]
    pub(crate) fn decided(self, until: Timestamp) -> Self {
        if until > self.decided_until { Self { decided_until: until, decided_at: until, ..self } } else { self }
    }

    /// What is allowed and still hardly meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<ScheduleWarning> {
        warning::warnings(self)
    }

    /// How messages name it: its name, if it has one, and its identity.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{name:?} ({})", self.uuid),
            None => self.uuid.to_string(),
        }
    }
}

/// The anchor of a schedule's grid.
pub(crate) fn anchor(start_at: Option<Timestamp>, created_at: Timestamp) -> Timestamp {
    start_at.unwrap_or_else(|| created_at.floor_second())
}

/// Whether a job that has ended counts as a failed run of its schedule: FAILED, STALE, or COMPLETED with the result
/// of a worker that says `"failed": true`.
#[must_use]
pub fn run_failed<'a>(status: crate::JobStatus, results: impl IntoIterator<Item = &'a Json>) -> bool {
    #[derive(serde::Deserialize)]
    struct Failed {
        #[serde(default)]
        failed: serde_json::Value,
    }
    match status {
        crate::JobStatus::Failed | crate::JobStatus::Stale => true,
        crate::JobStatus::Completed => {
            results.into_iter().any(|result| result.to::<Failed>().is_ok_and(|result| result.failed == true))
        }
        _ => false,
    }
}

fn trigger_columns<S: Serializer>(trigger: &Trigger, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct Columns {
        trigger_type: &'static str,
        trigger_config: Json,
    }
    let trigger_config = Json::parse(trigger.config()).map_err(serde::ser::Error::custom)?;
    Columns { trigger_type: trigger.kind(), trigger_config }.serialize(serializer)
}

fn cursor_columns<S: Serializer>(next: &Option<Upcoming>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct Columns {
        next_run_at: Option<Timestamp>,
        next_due_at: Option<Timestamp>,
    }
    let columns = Columns { next_run_at: next.map(|next| next.occurrence), next_due_at: next.map(|next| next.due) };
    columns.serialize(serializer)
}

#[cfg(test)]
pub(crate) mod tests;
