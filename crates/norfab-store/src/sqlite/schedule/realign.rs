//! Cursors: which is due next, and those that a clock which was ahead left too far in the future.

use norfab_model::{Realigned, Schedule, StoreError, Timestamp, Upcoming};

use super::encode::Changes;
use super::find::{self, AT_ONCE};
use crate::sqlite::row::Cell;
use crate::sqlite::statement::scalar;
use crate::sqlite::{Session, load, storage};
use rusqlite::Connection;

pub(super) fn schedule_next_due(shared: &Session<'_>) -> Result<Option<Timestamp>, StoreError> {
    const DOING: &str = "look for the next due schedule";
    next_due(shared.read(DOING)?).map_err(storage(DOING))
}

/// When an active schedule is due next.
pub(super) fn next_due(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let due = scalar!("sql/schedule/next_due.sql").fetch_one(connection)?;
    Ok(load::not_before(&due))
}

pub(super) fn schedule_realign(shared: &Session<'_>, now: Timestamp) -> Result<Vec<Realigned>, StoreError> {
    const DOING: &str = "realign schedules";
    let tx = shared.write(DOING)?;
    let ahead = scalar!("sql/schedule/ahead.sql", now.as_seconds_f64()).fetch_all(&tx).map_err(storage(DOING))?;
    let mut realigned = Vec::new();
    for some in ahead.chunks(AT_ONCE) {
        let mut changes = Changes::default();
        for row in find::rows(&tx, some, DOING)? {
            // Who cannot be read comes to light when it is due.
            let Ok((stored, before)) = row.to_write() else { continue };
            let Some((from, to)) = moved(&before, now) else { continue };
            let after = Schedule { next: Some(to), ..before };
            changes.push(row.row, &stored, &after);
            realigned.push(Realigned { schedule: stored.uuid, name: stored.name, from, to });
        }
        changes.write(&tx, DOING)?;
    }
    tx.commit().map_err(storage(DOING))?;
    Ok(realigned)
}

/// Where a cursor stands that must move, and where it belongs.
fn moved(schedule: &Schedule, now: Timestamp) -> Option<(Upcoming, Upcoming)> {
    Some((schedule.next?, schedule.realigned(now)?))
}
