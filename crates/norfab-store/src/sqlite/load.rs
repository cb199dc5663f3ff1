//! Reading and writing whole rows inside a transaction: what every step of a job's life has in common.

use std::collections::HashMap;
use std::time::Duration;

use norfab_model::{Job, JobId, Results, StoreError, Timestamp};
use rusqlite::Connection;
use tracing::warn;

use super::encode::{self, Before, ChangedJobs, UnreadableRow};
use super::local_time::LocalTime;
use super::row::{Cell, Loaded, Row, StoredJob, Unreadable};
use super::schedule::{count_failed_in_tx, schedule_of};
use super::storage;
use crate::sqlite::statement::{query, scalar, statement};
use crate::transition;

/// Which rows to load, and what of them.
#[derive(Debug)]
pub(super) struct Wanted {
    rows: String,
    uuids: String,
    arguments: bool,
    results: bool,
    uuids_with_results: String,
}

impl Wanted {
    /// The rows with these numbers, without payloads.
    pub(super) fn rows(rows: &[i64]) -> Result<Self, encode::EncodeError> {
        let mut rows = rows.to_vec();
        // Rows lie in this order.
        rows.sort_unstable();
        Ok(Self { rows: encode::array(&rows)?, ..Self::none() })
    }

    /// The rows of these jobs, without payloads.
    pub(super) fn jobs<'a>(jobs: impl IntoIterator<Item = &'a JobId>) -> Result<Self, encode::EncodeError> {
        Ok(Self { uuids: sorted_ids(jobs)?, ..Self::none() })
    }

    fn none() -> Self {
        let none = || "[]".to_owned();
        Self { rows: none(), uuids: none(), arguments: false, results: false, uuids_with_results: none() }
    }

    /// The same with their arguments.
    pub(super) fn with_arguments(self) -> Self {
        Self { arguments: true, ..self }
    }

    /// The same with the results of all of them.
    pub(super) fn with_results(self) -> Self {
        Self { results: true, ..self }
    }

    /// The same, and these jobs with their results; they are not among those already named.
    pub(super) fn and_with_results<'a>(
        self,
        jobs: impl IntoIterator<Item = &'a JobId>,
    ) -> Result<Self, encode::EncodeError> {
        Ok(Self { uuids_with_results: sorted_ids(jobs)?, ..self })
    }

    /// Loads them, each once, the oldest first.
    pub(super) fn load(self, connection: &Connection) -> Result<Vec<Loaded>, rusqlite::Error> {
        let Self { rows, uuids, arguments, results, uuids_with_results } = self;
        let load = query!(StoredJob, "sql/job/load.sql", rows, uuids, arguments, results, uuids_with_results);
        let mut loaded = load.read_as::<Loaded>().fetch_all(connection)?;
        loaded.sort_by_key(|loaded| loaded.row.row);
        loaded.dedup_by_key(|loaded| loaded.row.row);
        Ok(loaded)
    }
}

/// Their UUIDs in the order of the index; those of most jobs begin with a time, so that their rows follow each other too.
fn sorted_ids<'a>(jobs: impl IntoIterator<Item = &'a JobId>) -> Result<String, encode::EncodeError> {
    let mut jobs: Vec<&JobId> = jobs.into_iter().collect();
    jobs.sort_unstable();
    encode::ids(jobs)
}

/// One job while a step is carried out on it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) row: Row,
    pub(super) before: Before,
    pub(super) job: Job,
}

/// Sorts rows into jobs and what is none.
pub(super) fn steps(rows: Vec<Loaded>) -> (Vec<Step>, Vec<Unreadable>) {
    let mut steps = Vec::with_capacity(rows.len());
    let mut unreadable = Vec::new();
    for Loaded { row, job } in rows {
        match job {
            Ok(job) => steps.push(Step { row, before: Before::from(&job), job }),
            Err(what) => unreadable.push(what),
        }
    }
    (steps, unreadable)
}

/// Puts steps into the order in which their rows were selected.
pub(super) fn in_order(steps: &mut [Step], rows: &[i64]) {
    let places: HashMap<i64, usize> = rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
    steps.sort_by_key(|step| places.get(&step.row.row).copied());
}

/// The changes of these steps as parameters: row numbers, fields, texts.
pub(super) fn changes<'a>(
    steps: impl IntoIterator<Item = &'a Step>,
    local: &LocalTime,
) -> Result<(String, Vec<u8>, Vec<u8>), encode::EncodeError> {
    let mut changes = ChangedJobs::default();
    for Step { row, before, job } in steps {
        changes.push(row.row, *before, job, local)?;
    }
    changes.into_parameters()
}

/// Every row that a statement was to change must have been in the status that it expected. In a transaction that began
/// with the rows read, it is; were it not, nothing of the transaction may stay.
pub(super) fn all_written(written: usize, expected: usize, doing: &'static str) -> Result<(), StoreError> {
    if written == expected {
        return Ok(());
    }
    Err(storage(doing)(format!("{written} rows changed, not {expected}: their status is not the one that was read")))
}

/// Writes the ends of jobs that were never sent, and counts those of schedules that failed.
pub(super) fn finish(
    connection: &Connection,
    steps: &[Step],
    local: &LocalTime,
    doing: &'static str,
) -> Result<(), StoreError> {
    let (rows, numbers, texts) = changes(steps, local).map_err(storage(doing))?;
    let outcome = statement!("sql/job/finish.sql", rows, numbers, texts).execute(connection);
    all_written(outcome.map_err(storage(doing))?, steps.len(), doing)?;
    let none = Results::new();
    let failed = steps.iter().filter_map(|step| transition::failed_run(step.before.status, &step.job, &none));
    count_failed_in_tx(connection, failed.cloned(), doing)
}

/// Ends rows that cannot be read, so that they come up in no further pass. The rest of the pass goes on.
pub(super) fn fail_unreadable(
    connection: &Connection,
    now: Timestamp,
    local: &LocalTime,
    unreadable: &[Unreadable],
    doing: &'static str,
) -> Result<(), StoreError> {
    if unreadable.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::with_capacity(unreadable.len());
    for Unreadable { row, what } in unreadable {
        warn!(job = %what.uuid, reason = %what.reason, "A job cannot be read and is set to FAILED");
        let error = format!("the job cannot be read: {}", what.reason);
        rows.push(UnreadableRow::new(*row, &error).map_err(storage(doing))?);
    }
    let rows = encode::array(&rows).map_err(storage(doing))?;
    let (seconds, ctime) = (now.as_seconds_f64(), local.ctime());
    let failed =
        scalar!("sql/job/fail_unreadable.sql", rows, seconds, ctime).fetch_all(connection).map_err(storage(doing))?;
    count_failed_in_tx(connection, failed.iter().filter_map(schedule_of), doing)
}

/// An instant that one statement looks up, to be waited for: one between two microseconds becomes the later one, or who
/// wakes at it would find nothing to do yet. What is no instant is due already: the epoch.
pub(super) fn not_before(cell: &Cell) -> Option<Timestamp> {
    let Ok(instant) = cell.instant() else { return Some(Timestamp::EPOCH) };
    instant.map(|at| match cell {
        Cell::Real(seconds) if at.as_seconds_f64() < *seconds => at.saturating_add(Duration::from_micros(1)),
        _ => at,
    })
}
