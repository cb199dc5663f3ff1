//! What statements about schedules are given: rows of JSON, or packed where a pass writes thousands; instants as integer
//! microseconds.

use std::collections::HashSet;

use norfab_model::{
    Job, JobId, JobStatus, Json, LastOutcome, Origin, Schedule, ScheduleCounters, ScheduleId, ScheduleState,
    StoreError, Timestamp, Upcoming,
};
use rusqlite::Connection;
use serde::Serialize;

use super::all_written;
use super::row::MOST;
use crate::by_zone::ByZone;
use crate::sqlite::codec::{self, Codec};
use crate::sqlite::encode::{EncodeError, array};
use crate::sqlite::local_time::LocalTime;
use crate::sqlite::packed::{Packed, Place};
use crate::sqlite::statement::{scalar, statement};
use crate::sqlite::storage;

fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_micros)
}

/// A schedule with its rule, for the statements that add or update.
#[derive(Serialize)]
pub(super) struct RuleRow {
    row: Option<i64>,
    expected_state: &'static str,
    expected_revision: u64,
    uuid: String,
    name: Option<String>,
    service: String,
    task: String,
    workers: String,
    timeout: u32,
    trigger_type: &'static str,
    trigger_config: String,
    timezone: String,
    start_at: Option<i64>,
    end_at: Option<i64>,
    anchor_at: i64,
    jitter_seconds: u32,
    next_run_at: Option<i64>,
    next_due_at: Option<i64>,
    decided_until: i64,
    decided_at: i64,
    #[serde(flatten)]
    by_zone: ByZone,
    state: &'static str,
    coalesce: &'static str,
    misfire_grace_seconds: Option<u32>,
    overlap_policy: &'static str,
    max_instances: u32,
    created_at: i64,
    updated_at: i64,
    revision: u64,
    args_at: Option<usize>,
    args_bytes: Option<usize>,
    kwargs_at: Option<usize>,
    kwargs_bytes: Option<usize>,
}

impl RuleRow {
    /// A new schedule.
    pub(super) fn new(schedule: &Schedule) -> Result<Self, EncodeError> {
        Ok(Self {
            row: None,
            expected_state: schedule.state.as_str(),
            expected_revision: schedule.revision,
            uuid: schedule.uuid.to_string(),
            name: schedule.name.clone(),
            service: schedule.service.clone(),
            task: schedule.task.clone(),
            workers: serde_json::to_string(&schedule.workers)?,
            timeout: schedule.timeout,
            trigger_type: schedule.trigger.kind(),
            trigger_config: schedule.trigger.config(),
            timezone: schedule.timezone.name().to_owned(),
            start_at: micros(schedule.start_at),
            end_at: micros(schedule.end_at),
            anchor_at: schedule.anchor_at.as_micros(),
            jitter_seconds: schedule.jitter_seconds,
            next_run_at: micros(schedule.next.map(|next| next.occurrence)),
            next_due_at: micros(schedule.next.map(|next| next.due)),
            decided_until: schedule.decided_until.as_micros(),
            decided_at: schedule.decided_at.as_micros(),
            by_zone: ByZone::of(schedule),
            state: schedule.state.as_str(),
            coalesce: schedule.coalesce.as_str(),
            misfire_grace_seconds: schedule.misfire_grace_seconds,
            overlap_policy: schedule.overlap_policy.as_str(),
            max_instances: schedule.max_instances,
            created_at: schedule.created_at.as_micros(),
            updated_at: schedule.updated_at.as_micros(),
            revision: schedule.revision.min(MOST),
            args_at: None,
            args_bytes: None,
            kwargs_at: None,
            kwargs_bytes: None,
        })
    }

    /// The schedule with this number, which stands there as `before` and is to be `after`.
    pub(super) fn changed(number: i64, before: &Schedule, after: &Schedule) -> Result<Self, EncodeError> {
        Ok(Self {
            row: Some(number),
            expected_state: before.state.as_str(),
            expected_revision: before.revision,
            ..Self::new(after)?
        })
    }

    /// The same with these positional arguments, which are put into `blob`.
    pub(super) fn args(self, args: &Json, codec: Codec, blob: &mut Vec<u8>) -> Result<Self, EncodeError> {
        let codec::Place { at, bytes } = codec.append(&format!("{{\"args\":{}}}", args.as_str()), blob)?;
        Ok(Self { args_at: Some(at), args_bytes: Some(bytes), ..self })
    }

    /// The same with these keyword arguments, which are put into `blob`.
    pub(super) fn kwargs(self, kwargs: &Json, codec: Codec, blob: &mut Vec<u8>) -> Result<Self, EncodeError> {
        let codec::Place { at, bytes } = codec.append(&format!("{{\"kwargs\":{}}}", kwargs.as_str()), blob)?;
        Ok(Self { kwargs_at: Some(at), kwargs_bytes: Some(bytes), ..self })
    }
}

/// What calls and passes make of schedules whose rule stays.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Most of what a pass does.
    advanced: Advanced,
    rows: Vec<i64>,
    packed: Packed<25>,
    last: LastTexts,
}

/// The texts that were written last, column by column: those of a pass are mostly the same.
#[derive(Debug, Default)]
struct LastTexts {
    zone_data: Place,
    expected_state: Place,
    state: Place,
    last_error: Place,
    last_outcome: Place,
}

/// Active schedules whose next occurrence has become a job, for `sql/schedule/advance.sql`: it writes few columns.
#[derive(Debug, Default)]
struct Advanced {
    /// What came of them all.
    outcome: Option<LastOutcome>,
    rows: Vec<i64>,
    packed: Packed<2>,
}

impl Advanced {
    /// Adds a schedule, if this is all that becomes of it, and of the others too.
    fn push(&mut self, number: i64, before: &Schedule, after: &Schedule) -> bool {
        let Some((next, outcome)) = advance(before, after) else { return false };
        if self.outcome.get_or_insert_with(|| outcome.clone()) != outcome {
            return false;
        }
        self.packed.push([Some(next.occurrence.as_micros()), Some(next.due.as_micros())]);
        self.rows.push(number);
        true
    }

    fn write(self, connection: &Connection, doing: &'static str) -> Result<(), StoreError> {
        let Some(outcome) = self.outcome else { return Ok(()) };
        let (expected, rows) = (self.rows.len(), array(&self.rows).map_err(storage(doing))?);
        let (numbers, _) = self.packed.into_blobs();
        let written = statement!("sql/schedule/advance.sql", rows, numbers, outcome.to_column()).execute(connection);
        all_written(written.map_err(storage(doing))?, expected, doing)
    }
}

/// The cursor and the outcome, if all that becomes of an active schedule is that its next occurrence has become a job and
/// that its cursor moves on. What hangs on a zone takes its data along.
fn advance<'a>(before: &Schedule, after: &'a Schedule) -> Option<(Upcoming, &'a LastOutcome)> {
    let (next, outcome) = (after.next?, after.last_outcome.as_ref()?);
    let occurrence = before.next?.occurrence;
    let counters = ScheduleCounters { total_runs: before.counters.total_runs.checked_add(1)?, ..before.counters };
    let holds = before.state == ScheduleState::Active
        && after.state == ScheduleState::Active
        && !after.trigger.is_zone_bound()
        && (after.decided_until, after.decided_at, after.last_run_at) == (occurrence, occurrence, Some(occurrence))
        && after.counters == counters
        && counters.total_runs <= MOST
        && (before.updated_at, &before.last_error) == (after.updated_at, &after.last_error);
    holds.then_some((next, outcome))
}

impl Changes {
    pub(super) fn with_capacity(rows: usize) -> Self {
        let advanced = Advanced { outcome: None, rows: Vec::with_capacity(rows), packed: Packed::with_capacity(rows) };
        Self { advanced, ..Self::default() }
    }

    /// The schedule with this number, which was `before`, is to be `after`. Counters end where SQLite's numbers do.
    pub(super) fn push(&mut self, number: i64, before: &Schedule, after: &Schedule) {
        if !self.advanced.push(number, before, after) {
            self.add(number, before, after, ByZone::is_new(before, after).then(|| ByZone::of(after)));
        }
    }

    /// The same when this release's zone data leaves or puts the cursor where it is to be.
    pub(super) fn push_rezoned(&mut self, number: i64, before: &Schedule, after: &Schedule) {
        self.add(number, before, after, Some(ByZone::of(after)));
    }

    fn add(&mut self, number: i64, before: &Schedule, after: &Schedule, by_zone: Option<ByZone>) {
        let (packed, last) = (&mut self.packed, &mut self.last);
        let by_this_data = i64::from(by_zone.is_some());
        let ByZone { zone_data, zone_offset } = by_zone.unwrap_or_default();
        let outcome = after.last_outcome.as_ref().map(norfab_model::LastOutcome::to_column);
        let [zone_at, zone_bytes] = packed.text(zone_data.as_deref(), &mut last.zone_data);
        let [expected_at, expected_bytes] = packed.text(Some(before.state.as_str()), &mut last.expected_state);
        let [state_at, state_bytes] = packed.text(Some(after.state.as_str()), &mut last.state);
        let [error_at, error_bytes] = packed.text(after.last_error.as_deref(), &mut last.last_error);
        let [outcome_at, outcome_bytes] = packed.text(outcome.as_deref(), &mut last.last_outcome);
        packed.push([
            count(before.revision),
            micros(before.next.map(|next| next.occurrence)),
            micros(after.next.map(|next| next.occurrence)),
            micros(after.next.map(|next| next.due)),
            Some(after.decided_until.as_micros()),
            micros(after.last_run_at),
            Some(after.updated_at.as_micros()),
            count(after.counters.total_runs),
            count(after.counters.missed_runs),
            count(after.counters.overlap_skips),
            count(after.counters.coalesced_runs),
            count(after.counters.passed_over),
            Some(by_this_data),
            zone_offset.map(i64::from),
            zone_at,
            zone_bytes,
            expected_at,
            expected_bytes,
            state_at,
            state_bytes,
            error_at,
            error_bytes,
            outcome_at,
            outcome_bytes,
            Some(after.decided_at.as_micros()),
        ]);
        self.rows.push(number);
    }

    /// Writes them. Each schedule must be as it was.
    pub(super) fn write(self, connection: &Connection, doing: &'static str) -> Result<(), StoreError> {
        self.advanced.write(connection, doing)?;
        if self.rows.is_empty() {
            return Ok(());
        }
        let (expected, rows) = (self.rows.len(), array(&self.rows).map_err(storage(doing))?);
        let (numbers, texts) = self.packed.into_blobs();
        let written = statement!("sql/schedule/change.sql", rows, numbers, texts).execute(connection);
        all_written(written.map_err(storage(doing))?, expected, doing)
    }
}

/// A counter as SQLite can hold it.
fn count(number: u64) -> Option<i64> {
    Some(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Jobs of schedules that are made now, for `sql/schedule/add_jobs.sql` when they are NEW or missed, and for
/// `sql/schedule/add_claimed_jobs.sql` when they are claimed; what they run comes from the schedules.
#[derive(Debug)]
pub(super) struct ScheduledJobs<'a> {
    now: Timestamp,
    origin: Origin,
    missed: JobRows<'a, 4>,
    new: JobRows<'a, 4>,
    claimed: JobRows<'a, 6>,
    last_target: Place,
}

/// Those of one status.
#[derive(Debug, Default)]
struct JobRows<'a, const FIELDS: usize> {
    uuids: Vec<&'a JobId>,
    packed: Packed<FIELDS>,
}

impl<'a> ScheduledJobs<'a> {
    /// They are all of this origin, and made at this instant.
    pub(super) fn new(now: Timestamp, origin: Origin, rows: usize) -> Self {
        let new = JobRows { uuids: Vec::with_capacity(rows), packed: Packed::with_capacity(rows) };
        let (missed, claimed) = (JobRows::default(), JobRows::default());
        Self { now, origin, missed, new, claimed, last_target: Place::default() }
    }

    /// A job of the schedule with this number.
    pub(super) fn push(&mut self, schedule: i64, job: &'a Job) {
        let rows = if job.status == JobStatus::Missed { &mut self.missed } else { &mut self.new };
        rows.packed.push([Some(schedule), micros(job.deadline), micros(job.scheduled_for), micros(job.start_deadline)]);
        rows.uuids.push(&job.uuid);
    }

    /// A job of the schedule with this number that is claimed for the first time.
    pub(super) fn push_claimed(&mut self, schedule: i64, job: &'a Job) -> Result<(), EncodeError> {
        let target = job.dispatch_target.as_ref().map(serde_json::to_string).transpose()?;
        let rows = &mut self.claimed;
        let [target_at, target_bytes] = rows.packed.text(target.as_deref(), &mut self.last_target);
        rows.packed.push([
            Some(schedule),
            micros(job.deadline),
            micros(job.scheduled_for),
            micros(job.start_deadline),
            target_at,
            target_bytes,
        ]);
        rows.uuids.push(&job.uuid);
        Ok(())
    }

    /// Adds them at the time `local`; returns the identities of those that were not there already.
    pub(super) fn add(
        self,
        connection: &Connection,
        local: &LocalTime,
        doing: &'static str,
    ) -> Result<HashSet<JobId>, StoreError> {
        let Self { now, origin, missed, new, claimed, last_target: _ } = self;
        let made = Made { now, origin, local, doing };
        // What a schedule has missed was due before what runs.
        let mut added = made.add(connection, missed, JobStatus::Missed)?;
        added.extend(made.add(connection, new, JobStatus::New)?);
        added.extend(made.add_claimed(connection, claimed)?);
        Ok(added)
    }
}

/// How jobs of schedules are made.
struct Made<'a> {
    now: Timestamp,
    origin: Origin,
    local: &'a LocalTime,
    doing: &'static str,
}

impl Made<'_> {
    fn add(
        &self,
        connection: &Connection,
        jobs: JobRows<'_, 4>,
        status: JobStatus,
    ) -> Result<HashSet<JobId>, StoreError> {
        if jobs.uuids.is_empty() {
            return Ok(HashSet::new());
        }
        let doing = self.doing;
        let uuids = array(&jobs.uuids).map_err(storage(doing))?;
        let (numbers, _) = jobs.packed.into_blobs();
        let (now, date_time, origin) = (self.now.as_seconds_f64(), self.local.date_time(), self.origin.as_str());
        let (released, finished, ctime) = match status {
            JobStatus::Missed => (None, Some(now), Some(self.local.ctime())),
            _ => (Some(now), None, None),
        };
        let status = status.as_str();
        let add = statement!(
            "sql/schedule/add_jobs.sql",
            uuids,
            numbers,
            now,
            date_time,
            origin,
            status,
            released,
            finished,
            ctime
        );
        let added = add.execute(connection).map_err(storage(doing))?;
        self.added(connection, jobs.uuids, added)
    }

    fn add_claimed(&self, connection: &Connection, jobs: JobRows<'_, 6>) -> Result<HashSet<JobId>, StoreError> {
        if jobs.uuids.is_empty() {
            return Ok(HashSet::new());
        }
        let doing = self.doing;
        let uuids = array(&jobs.uuids).map_err(storage(doing))?;
        let (numbers, targets) = jobs.packed.into_blobs();
        let (now, date_time, origin) = (self.now.as_seconds_f64(), self.local.date_time(), self.origin.as_str());
        let add = statement!("sql/schedule/add_claimed_jobs.sql", uuids, numbers, targets, now, date_time, origin);
        let added = add.execute(connection).map_err(storage(doing))?;
        self.added(connection, jobs.uuids, added)
    }

    /// Which of these are new, when so many of them are.
    fn added(&self, connection: &Connection, jobs: Vec<&JobId>, added: usize) -> Result<HashSet<JobId>, StoreError> {
        if added == jobs.len() {
            return Ok(jobs.into_iter().cloned().collect());
        }
        let doing = self.doing;
        let newest = i64::try_from(added).unwrap_or(i64::MAX);
        let added = scalar!("sql/schedule/added_jobs.sql", newest).fetch_all(connection).map_err(storage(doing))?;
        added.into_iter().map(|uuid| JobId::new(uuid).map_err(storage(doing))).collect()
    }
}

/// A schedule that cannot be used, for `sql/schedule/quarantine.sql`.
#[derive(Serialize)]
pub(super) struct QuarantineRow<'a> {
    pub(super) row: i64,
    pub(super) reason: &'a str,
}

/// Failed runs of one schedule, for `sql/schedule/count_failed.sql`.
#[derive(Serialize)]
pub(super) struct FailedRow<'a> {
    pub(super) schedule: &'a ScheduleId,
    pub(super) runs: u64,
}
