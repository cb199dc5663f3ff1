//! What callers do to schedules that can be read.

use norfab_model::{
    ActiveJob, Effect, IdError, JobId, Limits, Managed, Overlap, RunNow, Schedule, ScheduleError, ScheduleId,
    ScheduleKey, SchedulePatch, Timestamp, ValidSchedule, one_line,
};
use rusqlite::Connection;

use super::encode::{Changes, RuleRow, ScheduledJobs};
use super::{all_written, failed, find};
use crate::sqlite::row::Cell;
use crate::sqlite::statement::{query, row, statement};
use crate::sqlite::{Session, encode};

pub(super) fn schedule_add(shared: &Session<'_>, valid: &ValidSchedule) -> Result<Schedule, ScheduleError> {
    const DOING: &str = "add a schedule";
    let schedule = valid.schedule();
    let mut blob = Vec::new();
    let row = RuleRow::new(schedule)
        .and_then(|row| row.args(valid.args(), shared.codec, &mut blob))
        .and_then(|row| row.kwargs(valid.kwargs(), shared.codec, &mut blob))
        .and_then(|row| encode::array(&[row]))
        .map_err(failed(DOING))?;
    let tx = shared.write(DOING)?;
    if find::row_of(&tx, &schedule.uuid, DOING)?.is_some() {
        return Err(ScheduleError::Exists(schedule.uuid.clone()));
    }
    refuse_taken_name(&tx, schedule, DOING)?;
    let added = statement!("sql/schedule/add.sql", row, blob).execute(&tx).map_err(failed(DOING))?;
    all_written(added, 1, DOING)?;
    tx.commit().map_err(failed(DOING))?;
    Ok(schedule.clone())
}

/// Refuses a schedule whose name another one has.
fn refuse_taken_name(connection: &Connection, schedule: &Schedule, doing: &'static str) -> Result<(), ScheduleError> {
    let Some(name) = &schedule.name else { return Ok(()) };
    match find::row_named(connection, name, doing)? {
        Some(row) if row.uuid.text() != Ok(schedule.uuid.as_str()) => {
            Err(ScheduleError::NameTaken { existing: Box::new(row.schedule()?) })
        }
        _ => Ok(()),
    }
}

/// A schedule as it was read for a call.
struct Found {
    /// The number of its row.
    number: i64,
    /// As it stands there.
    stored: Schedule,
    /// By the zone data of this process.
    schedule: Schedule,
}

fn read(connection: &Connection, id: &ScheduleId, doing: &'static str) -> Result<Found, ScheduleError> {
    let row = find::row_of(connection, id, doing)?;
    let row = row.ok_or_else(|| ScheduleError::Unknown(ScheduleKey::Id(id.clone())))?;
    let (stored, schedule) = row.to_write()?;
    Ok(Found { number: row.row, stored, schedule })
}

/// Carries out a call that leaves the rule as it is.
pub(super) fn change(
    shared: &Session<'_>,
    id: &ScheduleId,
    doing: &'static str,
    call: impl FnOnce(&Schedule) -> Result<Managed, ScheduleError>,
) -> Result<Managed, ScheduleError> {
    let tx = shared.write(doing)?;
    let Found { number, stored, schedule } = read(&tx, id, doing)?;
    let managed = call(&schedule)?;
    if managed.effect == Effect::Changed {
        write(&tx, number, &stored, &managed.schedule, doing)?;
        tx.commit().map_err(failed(doing))?;
    }
    Ok(managed)
}

/// Writes what a call made of a schedule whose rule stays, and that stands there as `before`.
pub(super) fn write(
    connection: &Connection,
    number: i64,
    before: &Schedule,
    after: &Schedule,
    doing: &'static str,
) -> Result<(), ScheduleError> {
    let mut changes = Changes::with_capacity(1);
    changes.push(number, before, after);
    Ok(changes.write(connection, doing)?)
}

pub(super) fn schedule_update(
    shared: &Session<'_>,
    now: Timestamp,
    id: &ScheduleId,
    patch: &SchedulePatch,
    limits: &Limits,
) -> Result<Managed, ScheduleError> {
    const DOING: &str = "update a schedule";
    let tx = shared.write(DOING)?;
    let Found { number, stored, schedule } = read(&tx, id, DOING)?;
    let updated = schedule.update(now, patch.clone(), limits)?;
    let managed = updated.managed;
    refuse_taken_name(&tx, &managed.schedule, DOING)?;
    let mut blob = Vec::new();
    let mut row = RuleRow::changed(number, &stored, &managed.schedule).map_err(failed(DOING))?;
    if let Some(args) = &updated.args {
        row = row.args(args, shared.codec, &mut blob).map_err(failed(DOING))?;
    }
    if let Some(kwargs) = &updated.kwargs {
        row = row.kwargs(kwargs, shared.codec, &mut blob).map_err(failed(DOING))?;
    }
    let row = encode::array(&[row]).map_err(failed(DOING))?;
    let written = statement!("sql/schedule/update.sql", row, blob).execute(&tx);
    all_written(written.map_err(failed(DOING))?, 1, DOING)?;
    let ruled = Schedule { revision: managed.schedule.revision, ..stored };
    write(&tx, number, &ruled, &managed.schedule, DOING)?;
    tx.commit().map_err(failed(DOING))?;
    Ok(managed)
}

pub(super) fn schedule_run_now(
    shared: &Session<'_>,
    now: Timestamp,
    id: &ScheduleId,
    overlap: Overlap,
    limits: &Limits,
) -> Result<RunNow, ScheduleError> {
    const DOING: &str = "run a schedule";
    let tx = shared.write(DOING)?;
    let Found { number, stored, schedule } = read(&tx, id, DOING)?;
    let active = active(&tx, &schedule, DOING)?;
    let run = schedule.run_now(now, &active, overlap, limits)?;
    let local = shared.local(now, &tx).map_err(failed(DOING))?;
    let mut jobs = ScheduledJobs::new(now, run.job.origin, 1);
    jobs.push(number, &run.job);
    if jobs.add(&tx, &local, DOING)?.len() != 1 {
        return Err(failed(DOING)(format!("its job {} is there already", run.job.uuid)));
    }
    write(&tx, number, &stored, &run.schedule, DOING)?;
    tx.commit().map_err(failed(DOING))?;
    Ok(run)
}

row! {
    /// What `sql/schedule/active.sql` returns.
    struct ActiveRow {
        uuid: Cell,
        since: Cell,
    }
}

/// As many unfinished jobs of a schedule as its policy asks about, the oldest first.
fn active(connection: &Connection, schedule: &Schedule, doing: &'static str) -> Result<Vec<ActiveJob>, ScheduleError> {
    let rows = query!(ActiveRow, "sql/schedule/active.sql", schedule.uuid.as_str(), schedule.max_instances)
        .fetch_all(connection)
        .map_err(failed(doing))?;
    let read = |row: ActiveRow| {
        let since = row.since.instant().ok().flatten().unwrap_or(schedule.created_at);
        Ok(ActiveJob { uuid: identity(&row.uuid).map_err(failed(doing))?, since })
    };
    rows.into_iter().map(read).collect()
}

/// The identity of a job in the way, for a message. One that cannot be read is in the way too, until its deadline ends it.
fn identity(cell: &Cell) -> Result<JobId, IdError> {
    let shown: String = one_line(&cell.shown()).chars().take(60).collect();
    cell.text().ok().and_then(|text| JobId::new(text).ok()).map_or_else(|| JobId::new(format!("({shown})")), Ok)
}
