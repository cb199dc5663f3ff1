//! What statements about schedules are given: rows of JSON, instants as integer microseconds.

use norfab_model::{Job, Json, Schedule, ScheduleId, Timestamp};
use serde::Serialize;

use super::row::MOST;
use crate::by_zone::ByZone;
use crate::sqlite::codec::{Codec, Place};
use crate::sqlite::encode::EncodeError;
use crate::sqlite::local_time::LocalTime;

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
        let Place { at, bytes } = codec.append(&format!("{{\"args\":{}}}", args.as_str()), blob)?;
        Ok(Self { args_at: Some(at), args_bytes: Some(bytes), ..self })
    }

    /// The same with these keyword arguments, which are put into `blob`.
    pub(super) fn kwargs(self, kwargs: &Json, codec: Codec, blob: &mut Vec<u8>) -> Result<Self, EncodeError> {
        let Place { at, bytes } = codec.append(&format!("{{\"kwargs\":{}}}", kwargs.as_str()), blob)?;
        Ok(Self { kwargs_at: Some(at), kwargs_bytes: Some(bytes), ..self })
    }
}

/// What a call or a pass makes of a schedule whose rule stays, for `sql/schedule/change.sql`.
#[derive(Serialize)]
pub(super) struct ChangeRow {
    row: i64,
    expected_state: &'static str,
    expected_revision: u64,
    expected_run_at: Option<i64>,
    state: &'static str,
    next_run_at: Option<i64>,
    next_due_at: Option<i64>,
    decided_until: i64,
    decided_at: i64,
    /// Whether the cursor was computed by this release's zone data just now.
    by_this_data: bool,
    #[serde(flatten)]
    by_zone: ByZone,
    last_run_at: Option<i64>,
    updated_at: i64,
    total_runs: u64,
    missed_runs: u64,
    overlap_skips: u64,
    coalesced_runs: u64,
    passed_over: u64,
    last_error: Option<String>,
    last_outcome: Option<String>,
}

impl ChangeRow {
    /// The schedule with this number, which stands there as `before` and is to be `after`. Counters end where SQLite's numbers do.
    pub(super) fn new(number: i64, before: &Schedule, after: &Schedule) -> Self {
        Self {
            row: number,
            expected_state: before.state.as_str(),
            expected_revision: before.revision,
            expected_run_at: micros(before.next.map(|next| next.occurrence)),
            state: after.state.as_str(),
            next_run_at: micros(after.next.map(|next| next.occurrence)),
            next_due_at: micros(after.next.map(|next| next.due)),
            decided_until: after.decided_until.as_micros(),
            decided_at: after.decided_at.as_micros(),
            by_this_data: ByZone::is_new(before, after),
            by_zone: ByZone::of(after),
            last_run_at: micros(after.last_run_at),
            updated_at: after.updated_at.as_micros(),
            total_runs: after.counters.total_runs.min(MOST),
            missed_runs: after.counters.missed_runs.min(MOST),
            overlap_skips: after.counters.overlap_skips.min(MOST),
            coalesced_runs: after.counters.coalesced_runs.min(MOST),
            passed_over: after.counters.passed_over.min(MOST),
            last_error: after.last_error.clone(),
            last_outcome: after.last_outcome.as_ref().map(norfab_model::LastOutcome::to_column),
        }
    }

    /// The same when this release's zone data leaves or puts the cursor where it is to be.
    pub(super) fn rezoned(number: i64, before: &Schedule, after: &Schedule) -> Self {
        Self { by_this_data: true, ..Self::new(number, before, after) }
    }
}

/// A job of a schedule, for `sql/schedule/add_jobs.sql`; what it runs comes from the schedule.
#[derive(Serialize)]
pub(super) struct ScheduledRow<'a> {
    schedule: i64,
    uuid: &'a str,
    status: &'static str,
    local_time: String,
    completed_timestamp: Option<String>,
    deadline: Option<i64>,
    scheduled_for: Option<i64>,
    start_deadline: Option<i64>,
    origin: &'static str,
    added_at: Option<i64>,
    released_at: Option<i64>,
    finished_at: Option<i64>,
}

impl<'a> ScheduledRow<'a> {
    /// A job of the schedule with this number, which is added at the time `local`.
    pub(super) fn new(schedule: i64, job: &'a Job, local: &LocalTime) -> Self {
        Self {
            schedule,
            uuid: job.uuid.as_str(),
            status: job.status.as_str(),
            local_time: local.date_time(),
            completed_timestamp: job.finished_at.map(|_| local.ctime()),
            deadline: micros(job.deadline),
            scheduled_for: micros(job.scheduled_for),
            start_deadline: micros(job.start_deadline),
            origin: job.origin.as_str(),
            added_at: micros(job.created_at),
            released_at: micros(job.released_at),
            finished_at: micros(job.finished_at),
        }
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
