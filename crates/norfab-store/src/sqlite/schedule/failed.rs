//! Failed runs: counted on the schedule in the transaction in which its job ends.

use std::collections::BTreeMap;

use norfab_model::{ScheduleId, StoreError};
use rusqlite::Connection;

use super::encode::FailedRow;
use crate::sqlite::row::Cell;
use crate::sqlite::statement::statement;
use crate::sqlite::{encode, storage};

/// Counts a failed run for each time that a schedule is named.
pub(in crate::sqlite) fn count_failed_in_tx(
    connection: &Connection,
    failed: impl IntoIterator<Item = ScheduleId>,
    doing: &'static str,
) -> Result<(), StoreError> {
    let mut runs: BTreeMap<ScheduleId, u64> = BTreeMap::new();
    for schedule in failed {
        *runs.entry(schedule).or_default() += 1;
    }
    if runs.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = runs.iter().map(|(schedule, runs)| FailedRow { schedule, runs: *runs }).collect();
    let rows = encode::array(&rows).map_err(storage(doing))?;
    statement!("sql/schedule/count_failed.sql", rows).execute(connection).map_err(storage(doing))?;
    Ok(())
}

/// The schedule that a job's row names, when it names one.
pub(in crate::sqlite) fn schedule_of(cell: &Cell) -> Option<ScheduleId> {
    cell.text().ok().and_then(|text| ScheduleId::new(text).ok())
}
