//! Looking schedules up and listing them, with how many of their jobs are unfinished.

use std::collections::HashMap;

use norfab_model::{
    Listed, ScheduleCursor, ScheduleDetail, ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey, SchedulePage,
    ScheduleState, ScheduleView, StoreError,
};
use rusqlite::Connection;

use super::failed;
use super::row::{Row, Unreadable};
use crate::sqlite::codec::PayloadError;
use crate::sqlite::row::Cell;
use crate::sqlite::statement::{query, scalar};
use crate::sqlite::{Session, encode, storage};

/// What is read beside the columns of a schedule that every call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// How many unfinished jobs it has.
    Unfinished,
    /// That, and its arguments, if they take so many bytes at the most as they are stored, each of the two.
    Arguments(i64),
}

/// How many rows are to be held in memory at once: as they are stored, they take much more than what they say.
pub(super) const AT_ONCE: usize = 1000;

const LOOK_UP: &str = "look a schedule up";

pub(super) fn schedule_find(shared: &Session<'_>, key: &ScheduleKey) -> Result<Option<ScheduleView>, ScheduleError> {
    Ok(look_up(shared, key, Beside::Unfinished)?.map(|(_, view)| view))
}

pub(super) fn schedule_detail(
    shared: &Session<'_>,
    key: &ScheduleKey,
) -> Result<Option<ScheduleDetail>, ScheduleError> {
    let Some((row, view)) = look_up(shared, key, Beside::Arguments(i64::MAX))? else { return Ok(None) };
    let wrong = |column: &'static str| {
        let row = &row;
        move |error: PayloadError| row.unreadable(&format!("its {column} cannot be read: {error}"))
    };
    let args = shared.payloads.args(&row.args).map_err(wrong("args"))?;
    let kwargs = shared.payloads.kwargs(&row.kwargs).map_err(wrong("kwargs"))?;
    Ok(Some(ScheduleDetail { view, args, kwargs }))
}

fn look_up(
    shared: &Session<'_>,
    key: &ScheduleKey,
    beside: Beside,
) -> Result<Option<(Row, ScheduleView)>, ScheduleError> {
    // One snapshot for all statements.
    let tx = shared.snapshot(LOOK_UP)?;
    let row = match key {
        ScheduleKey::Id(id) => by_id(&tx, id, beside, LOOK_UP)?,
        ScheduleKey::Name(name) => by_name(&tx, name, beside, LOOK_UP)?,
    };
    let Some(row) = row else { return Ok(None) };
    let schedule = row.schedule()?;
    let active_jobs = row.unfinished();
    tx.commit().map_err(failed(LOOK_UP))?;
    Ok(Some((row, ScheduleView { schedule, active_jobs })))
}

/// The row of a schedule, without its arguments.
pub(super) fn row_of(connection: &Connection, id: &ScheduleId, doing: &'static str) -> Result<Option<Row>, StoreError> {
    by_id(connection, id, Beside::Nothing, doing)
}

/// The row of an identity, or the one that has a name and is not deleted; without its arguments.
pub(super) fn row_by(
    connection: &Connection,
    key: &ScheduleKey,
    doing: &'static str,
) -> Result<Option<Row>, StoreError> {
    match key {
        ScheduleKey::Id(id) => row_of(connection, id, doing),
        ScheduleKey::Name(name) => row_named(connection, name, doing),
    }
}

/// The row that has a name and is not deleted, without its arguments.
pub(super) fn row_named(connection: &Connection, name: &str, doing: &'static str) -> Result<Option<Row>, StoreError> {
    by_name(connection, name, Beside::Nothing, doing)
}

fn by_id(
    connection: &Connection,
    id: &ScheduleId,
    beside: Beside,
    doing: &'static str,
) -> Result<Option<Row>, StoreError> {
    let ids = encode::array(&[id]).map_err(storage(doing))?;
    let rows = load(connection, "[]", &ids, beside).map_err(storage(doing))?;
    Ok(rows.into_iter().next())
}

fn by_name(
    connection: &Connection,
    name: &str,
    beside: Beside,
    doing: &'static str,
) -> Result<Option<Row>, StoreError> {
    let rows = scalar!("sql/schedule/named.sql", name).fetch_all(connection);
    let rows = encode::array(&rows.map_err(storage(doing))?).map_err(storage(doing))?;
    Ok(load(connection, &rows, "[]", beside).map_err(storage(doing))?.into_iter().next())
}

/// The rows with these numbers, in this order, without their arguments.
pub(super) fn rows(connection: &Connection, numbers: &[i64], doing: &'static str) -> Result<Vec<Row>, StoreError> {
    in_order(connection, numbers, Beside::Nothing, doing)
}

/// The same with how many unfinished jobs each has.
pub(super) fn counted(connection: &Connection, numbers: &[i64], doing: &'static str) -> Result<Vec<Row>, StoreError> {
    in_order(connection, numbers, Beside::Unfinished, doing)
}

/// The same with the arguments that take `most` bytes at the most as they are stored; larger ones cannot be read from the
/// row.
pub(super) fn counted_with_arguments(
    connection: &Connection,
    numbers: &[i64],
    most: i64,
    doing: &'static str,
) -> Result<Vec<Row>, StoreError> {
    in_order(connection, numbers, Beside::Arguments(most), doing)
}

fn in_order(
    connection: &Connection,
    numbers: &[i64],
    beside: Beside,
    doing: &'static str,
) -> Result<Vec<Row>, StoreError> {
    let mut sorted = numbers.to_vec();
    // Rows lie in this order, and each is read once.
    sorted.sort_unstable();
    sorted.dedup();
    let parameter = encode::array(&sorted).map_err(storage(doing))?;
    let mut rows = load(connection, &parameter, "[]", beside).map_err(storage(doing))?;
    // Mostly they are in this order already.
    if !rows.iter().map(|row| row.row).eq(numbers.iter().copied()) {
        let places: HashMap<i64, usize> = numbers.iter().enumerate().map(|(place, number)| (*number, place)).collect();
        rows.sort_by_key(|row| places.get(&row.row).copied());
    }
    Ok(rows)
}

fn load(connection: &Connection, numbers: &str, ids: &str, beside: Beside) -> Result<Vec<Row>, rusqlite::Error> {
    let arguments = if let Beside::Arguments(most) = beside { most } else { -1 };
    let unfinished = beside != Beside::Nothing;
    query!(Row, "sql/schedule/load.sql", numbers, ids, arguments, unfinished).fetch_all(connection)
}

pub(super) fn schedule_list(shared: &Session<'_>, filter: &ScheduleFilter) -> Result<SchedulePage, ScheduleError> {
    const DOING: &str = "list schedules";
    let tx = shared.snapshot(DOING)?;
    let mut numbers = search(&tx, filter).map_err(failed(DOING))?;
    let page = filter.page_size() as usize;
    let more = numbers.len() > page;
    numbers.truncate(page);
    let next = numbers.last().filter(|_| more).map(|number| ScheduleCursor(*number));
    let rows = counted(&tx, &numbers, DOING)?;
    tx.commit().map_err(failed(DOING))?;
    let (mut schedules, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match row.schedule() {
            Ok(schedule) => schedules.push(ScheduleView { schedule, active_jobs: row.unfinished() }),
            Err(Unreadable { what, .. }) => unreadable.push(*what),
        }
    }
    Ok(SchedulePage { schedules, unreadable, next })
}

/// The numbers of the rows of a page and of one more.
fn search(connection: &Connection, filter: &ScheduleFilter) -> Result<Vec<i64>, encode::EncodeError> {
    let behind = filter.cursor.map_or(i64::MIN, |ScheduleCursor(row)| row);
    let states: Vec<&str> = filter.states.iter().map(|state: &ScheduleState| state.as_str()).collect();
    let states = if states.is_empty() { None } else { Some(encode::array(&states)?) };
    let (service, task) = (filter.service.as_deref(), filter.task.as_deref());
    let limit = i64::from(filter.page_size()) + 1;
    let deleted = filter.listed == Listed::Deleted;
    let rows = scalar!("sql/schedule/list.sql", behind, states, service, task, limit, deleted);
    Ok(rows.fetch_all(connection)?)
}
