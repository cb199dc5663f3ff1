//! Cursors that were computed by other zone data than this process has.

use norfab_model::{Rezoned, StoreError};
use rusqlite::Connection;

use super::encode::Changes;
use super::find::{self, AT_ONCE};
use crate::by_zone::told;
use crate::sqlite::statement::scalar;
use crate::sqlite::{Session, storage};

const DOING: &str = "bring schedules to other zone data";

pub(super) fn schedule_rezone(shared: &Session<'_>, zone_data: &str) -> Result<Vec<Rezoned>, StoreError> {
    if by_others(shared.read(DOING)?, zone_data)?.is_empty() {
        return Ok(Vec::new());
    }
    let tx = shared.write(DOING)?;
    let found = by_others(&tx, zone_data)?;
    let mut moved = Vec::new();
    for some in found.chunks(AT_ONCE) {
        let mut changes = Changes::default();
        for row in find::rows(&tx, some, DOING)? {
            // Who cannot be read comes to light when it is due.
            let Ok(stored) = row.stored() else { continue };
            let after = row.by_zone().rezoned(&stored);
            changes.push_rezoned(row.row, &stored, &after);
            moved.extend(told(&stored, &after));
        }
        changes.write(&tx, DOING)?;
    }
    tx.commit().map_err(storage(DOING))?;
    Ok(moved)
}

/// Their row numbers, the oldest first.
fn by_others(connection: &Connection, zone_data: &str) -> Result<Vec<i64>, StoreError> {
    let found = scalar!("sql/schedule/by_other_zones.sql", zone_data).fetch_all(connection);
    let mut numbers = found.map_err(storage(DOING))?;
    numbers.sort_unstable();
    Ok(numbers)
}
