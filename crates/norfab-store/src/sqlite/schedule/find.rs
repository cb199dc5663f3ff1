//! Looking schedules up and listing them, with how many of their jobs are unfinished.

use std::collections::HashMap;

use norfab_model::{
    Listed, Schedule, ScheduleCursor, ScheduleDetail, ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey,
    SchedulePage, ScheduleState, ScheduleView, StoreError,
};
use rusqlite::Connection;

use super::failed;
use super::row::{Row, ToWrite, Unreadable};
use crate::sqlite::codec::PayloadError;
use crate::sqlite::row::Cell;
use crate::sqlite::statement::{query, row, scalar};
use crate::sqlite::{Session, encode, storage};

/// Whether the arguments of a schedule are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payloads {
    With,
    Without,
}

/// How many rows are to be held in memory at once: as they are stored, they take much more than what they say.
pub(super) const AT_ONCE: usize = 1000;

const LOOK_UP: &str = "look a schedule up";

pub(super) fn schedule_find(shared: &Session<'_>, key: &ScheduleKey) -> Result<Option<ScheduleView>, ScheduleError> {
    Ok(look_up(shared, key, Payloads::Without)?.map(|(_, view)| view))
}

pub(super) fn schedule_detail(
    shared: &Session<'_>,
    key: &ScheduleKey,
) -> Result<Option<ScheduleDetail>, ScheduleError> {
    let Some((row, view)) = look_up(shared, key, Payloads::With)? else { return Ok(None) };
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
    payloads: Payloads,
) -> Result<Option<(Row, ScheduleView)>, ScheduleError> {
    // One snapshot for all statements.
    let tx = shared.snapshot(LOOK_UP)?;
    let row = match key {
        ScheduleKey::Id(id) => by_id(&tx, id, payloads, LOOK_UP)?,
        ScheduleKey::Name(name) => by_name(&tx, name, payloads, LOOK_UP)?,
    };
    let Some(row) = row else { return Ok(None) };
    let schedule = row.schedule()?;
    let active_jobs = unfinished(&tx, [&schedule.uuid], LOOK_UP)?.remove(&schedule.uuid).unwrap_or(0);
    tx.commit().map_err(failed(LOOK_UP))?;
    Ok(Some((row, ScheduleView { schedule, active_jobs })))
}

/// The row of a schedule, without its arguments.
pub(super) fn row_of(connection: &Connection, id: &ScheduleId, doing: &'static str) -> Result<Option<Row>, StoreError> {
    by_id(connection, id, Payloads::Without, doing)
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
    by_name(connection, name, Payloads::Without, doing)
}

fn by_id(
    connection: &Connection,
    id: &ScheduleId,
    payloads: Payloads,
    doing: &'static str,
) -> Result<Option<Row>, StoreError> {
    let ids = encode::array(&[id]).map_err(storage(doing))?;
    let rows = load(connection, "[]", &ids, payloads).map_err(storage(doing))?;
    Ok(rows.into_iter().next())
}

fn by_name(
    connection: &Connection,
    name: &str,
    payloads: Payloads,
    doing: &'static str,
) -> Result<Option<Row>, StoreError> {
    let rows = scalar!("sql/schedule/named.sql", name).fetch_all(connection);
    let rows = encode::array(&rows.map_err(storage(doing))?).map_err(storage(doing))?;
    Ok(load(connection, &rows, "[]", payloads).map_err(storage(doing))?.into_iter().next())
}

/// The rows with these numbers, in this order, without their arguments.
pub(super) fn rows(connection: &Connection, numbers: &[i64], doing: &'static str) -> Result<Vec<Row>, StoreError> {
    let parameter = encode::array(numbers).map_err(storage(doing))?;
    let mut rows = load(connection, &parameter, "[]", Payloads::Without).map_err(storage(doing))?;
    in_order(&mut rows, numbers, |row| row.row);
    Ok(rows)
}

/// The schedules of the rows with these numbers, in this order.
pub(super) fn to_write(
    connection: &Connection,
    numbers: &[i64],
    doing: &'static str,
) -> Result<Vec<ToWrite>, StoreError> {
    let parameter = encode::array(numbers).map_err(storage(doing))?;
    let load = query!(Row, "sql/schedule/load.sql", parameter, "[]", false);
    let mut rows = load.read_as::<ToWrite>().fetch_all(connection).map_err(storage(doing))?;
    in_order(&mut rows, numbers, |row| row.row);
    Ok(rows)
}

fn in_order<T>(rows: &mut [T], numbers: &[i64], number: impl Fn(&T) -> i64) {
    // Mostly they are already.
    if rows.iter().map(&number).eq(numbers.iter().copied()) {
        return;
    }
    let places: HashMap<i64, usize> = numbers.iter().enumerate().map(|(place, number)| (*number, place)).collect();
    rows.sort_by_key(|row| places.get(&number(row)).copied());
}

fn load(connection: &Connection, numbers: &str, ids: &str, payloads: Payloads) -> Result<Vec<Row>, rusqlite::Error> {
    let with_payloads = payloads == Payloads::With;
    query!(Row, "sql/schedule/load.sql", numbers, ids, with_payloads).fetch_all(connection)
}

row! {
    /// What `sql/schedule/unfinished.sql` returns.
    struct Unfinished {
        schedule: String,
        jobs: i64,
    }
}

/// How many unfinished jobs each of these schedules has.
pub(super) fn unfinished<'a>(
    connection: &Connection,
    ids: impl IntoIterator<Item = &'a ScheduleId>,
    doing: &'static str,
) -> Result<HashMap<ScheduleId, u64>, StoreError> {
    let ids = encode::array(&ids.into_iter().collect::<Vec<_>>()).map_err(storage(doing))?;
    let counts = query!(Unfinished, "sql/schedule/unfinished.sql", ids).fetch_all(connection);
    let counts = counts.map_err(storage(doing))?;
    let count = |jobs: i64| u64::try_from(jobs).unwrap_or(0);
    Ok(counts.into_iter().filter_map(|row| Some((ScheduleId::new(row.schedule).ok()?, count(row.jobs)))).collect())
}

pub(super) fn schedule_list(shared: &Session<'_>, filter: &ScheduleFilter) -> Result<SchedulePage, ScheduleError> {
    const DOING: &str = "list schedules";
    let tx = shared.snapshot(DOING)?;
    let mut numbers = search(&tx, filter).map_err(failed(DOING))?;
    let page = filter.page_size() as usize;
    let more = numbers.len() > page;
    numbers.truncate(page);
    let next = numbers.last().filter(|_| more).map(|number| ScheduleCursor(*number));
    let read: Vec<Result<Schedule, Unreadable>> = rows(&tx, &numbers, DOING)?.iter().map(Row::schedule).collect();
    let ids = read.iter().flatten().map(|schedule| &schedule.uuid);
    let mut active = unfinished(&tx, ids, DOING)?;
    tx.commit().map_err(failed(DOING))?;
    let (mut schedules, mut unreadable) = (Vec::with_capacity(read.len()), Vec::new());
    for row in read {
        match row {
            Ok(schedule) => {
                let active_jobs = active.remove(&schedule.uuid).unwrap_or(0);
                schedules.push(ScheduleView { schedule, active_jobs });
            }
            Err(row) => unreadable.push(*row.what),
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
