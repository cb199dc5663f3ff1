//! Events: stored with what they tell of, in one statement a batch.

use norfab_model::{JobEvent, JobId, Json, StoreError};
use rusqlite::Connection;

use super::codec::{Codec, Reader};
use super::encode::NewEvents;
use super::row::Cell;
use super::{Session, storage};
use crate::sqlite::statement::{query, row, statement};

row! {
    /// What `sql/event/list.sql` returns.
    struct Row {
        id: i64,
        message: Cell,
        severity: Cell,
        task: Cell,
        data: Cell,
        created_at: Cell,
    }
}

impl Row {
    /// The event. Columns that cannot be read are left empty: the others still tell something.
    fn event(self, job: &JobId, payloads: Reader) -> JobEvent {
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        JobEvent {
            id: self.id,
            job_uuid: job.clone(),
            message: text(&self.message),
            severity: text(&self.severity),
            task: self.task.optional_text().unwrap_or_default().map(str::to_owned),
            data: payloads.json(&self.data).unwrap_or_else(|_| Json::empty_object()),
            created_at: self.created_at.instant().unwrap_or_default(),
        }
    }
}

pub(super) fn event_list(
    shared: &Session<'_>,
    job: &JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<JobEvent>, StoreError> {
    const DOING: &str = "list events";
    let connection = shared.read(DOING)?;
    let rows =
        query!(Row, "sql/event/list.sql", job.as_str(), after, limit).fetch_all(connection).map_err(storage(DOING))?;
    Ok(rows.into_iter().map(|row| row.event(job, shared.payloads)).collect())
}

/// Stores events and gives them their numbers.
pub(super) fn event_add_in_tx<'a>(
    connection: &Connection,
    codec: Codec,
    events: impl IntoIterator<Item = &'a mut JobEvent>,
    doing: &'static str,
) -> Result<(), StoreError> {
    let mut events: Vec<&mut JobEvent> = events.into_iter().collect();
    if events.is_empty() {
        return Ok(());
    }
    let mut new = NewEvents::with_capacity(events.len());
    for event in &events {
        new.push(event, codec).map_err(storage(doing))?;
    }
    let (jobs, numbers, texts) = new.into_parameters().map_err(storage(doing))?;
    statement!("sql/event/add.sql", jobs, numbers, texts).execute(connection).map_err(storage(doing))?;
    // They were inserted in their order, and each number is one more than the last.
    for (event, id) in events.iter_mut().rev().zip((0..=connection.last_insert_rowid()).rev()) {
        event.id = id;
    }
    Ok(())
}
