//! Switching schedules off and deleting them. Neither needs the rule: a row that was edited into nonsense can be got rid of
//! like any other.

use norfab_model::{
    Effect, Managed, Schedule, ScheduleError, ScheduleKey, ScheduleState, StoreError, SwitchedOff, Timestamp,
};
use rusqlite::Connection;

use super::row::{Row, Unreadable};
use super::{all_written, failed, find, manage};
use crate::sqlite::statement::{Tx, statement};
use crate::sqlite::{Session, storage};

/// A schedule as it was found for a call.
struct Found {
    number: i64,
    /// As it stands there, and by the zone data of this process.
    read: Result<(Schedule, Schedule), Unreadable>,
}

pub(super) fn schedule_disable(
    shared: &Session<'_>,
    now: Timestamp,
    key: &ScheduleKey,
) -> Result<SwitchedOff, ScheduleError> {
    const DOING: &str = "disable a schedule";
    let (tx, Found { number, read }) = find_to_write(shared, key, DOING)?;
    let Ok((stored, before)) = read else {
        let written = statement!("sql/schedule/disable_unreadable.sql", number, now.as_seconds_f64());
        all_written(written.execute(&tx).map_err(failed(DOING))?, 1, DOING)?;
        return commit_unreadable(tx, number, DOING);
    };
    let managed = before.disable(now)?;
    if managed.effect == Effect::Changed {
        manage::write(&tx, number, &stored, &managed.schedule, DOING)?;
        tx.commit().map_err(failed(DOING))?;
    }
    Ok(managed.into())
}

pub(super) fn schedule_delete(
    shared: &Session<'_>,
    now: Timestamp,
    key: &ScheduleKey,
) -> Result<SwitchedOff, ScheduleError> {
    const DOING: &str = "delete a schedule";
    let (tx, Found { number, read }) = find_to_write(shared, key, DOING)?;
    let seconds = now.as_seconds_f64();
    let Ok((stored, before)) = read else {
        let written = statement!("sql/schedule/delete_unreadable.sql", number, seconds);
        all_written(written.execute(&tx).map_err(failed(DOING))?, 1, DOING)?;
        return commit_unreadable(tx, number, DOING);
    };
    let managed = before.delete(now)?;
    let written = statement!("sql/schedule/delete.sql", number, seconds, stored.state.as_str());
    all_written(written.execute(&tx).map_err(failed(DOING))?, 1, DOING)?;
    tx.commit().map_err(failed(DOING))?;
    Ok(managed.into())
}

/// Begins to write and finds the schedule. [`ScheduleError::Deleted`] for a row that cannot be read and is only history;
/// of the others their own functions decide.
fn find_to_write<'a>(
    shared: &'a Session<'_>,
    key: &ScheduleKey,
    doing: &'static str,
) -> Result<(Tx<'a>, Found), ScheduleError> {
    let tx = shared.write(doing)?;
    let row = find::row_by(&tx, key, doing)?.ok_or_else(|| ScheduleError::Unknown(key.clone()))?;
    let read = row.to_write();
    if let (Err(unreadable), Some(deleted_at)) = (&read, deletion(&row)) {
        return Err(ScheduleError::Deleted { schedule: unreadable.what.label(), deleted_at });
    }
    Ok((tx, Found { number: row.row, read }))
}

/// When a row was deleted. One that says so and is not switched off was not: another hand has been at it.
fn deletion(row: &Row) -> Option<Timestamp> {
    let is_off = row.state.text() == Ok(ScheduleState::Disabled.as_str());
    row.deleted_at.instant().ok().flatten().filter(|_| is_off)
}

/// Ends the change of a row that could not be read, and tells how it now is: what was wrong may have been put right by it.
fn commit_unreadable(tx: Tx<'_>, number: i64, doing: &'static str) -> Result<SwitchedOff, ScheduleError> {
    let row = numbered(&tx, number, doing)?;
    tx.commit().map_err(failed(doing))?;
    Ok(match row.schedule() {
        Ok(schedule) => Managed { schedule, passed_over: 0, effect: Effect::Changed }.into(),
        Err(unreadable) => SwitchedOff::Unreadable(*unreadable.what),
    })
}

fn numbered(connection: &Connection, number: i64, doing: &'static str) -> Result<Row, StoreError> {
    let rows = find::rows(connection, &[number], doing)?;
    rows.into_iter().next().ok_or_else(|| storage(doing)("its row is gone"))
}
