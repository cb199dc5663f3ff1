//! What statements are given: rows of JSON, instants as integer microseconds, payloads cut out of one blob. So a step
//! over a thousand jobs is one statement.

use norfab_model::{Job, JobEvent, JobId, Results, Timestamp, ValidJob};
use serde::Serialize;

use super::codec::{Codec, Place};
use super::local_time::LocalTime;
use super::packed::{self, Packed};

/// Why something cannot be written as the database keeps it. It does not happen with what the types allow.
pub(super) type EncodeError = Box<dyn std::error::Error + Send + Sync>;

/// A parameter that is a JSON array.
pub(super) fn array<T: Serialize>(values: &[T]) -> Result<String, EncodeError> {
    Ok(serde_json::to_string(values)?)
}

/// A parameter that is a JSON array of identities.
pub(super) fn ids<'a>(ids: impl IntoIterator<Item = &'a JobId>) -> Result<String, EncodeError> {
    array(&ids.into_iter().map(JobId::as_str).collect::<Vec<_>>())
}

fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_micros)
}

fn json<T: Serialize>(value: &T) -> Result<String, EncodeError> {
    Ok(serde_json::to_string(value)?)
}

/// A list as the Python client writes it: NULL instead of an empty one.
fn list<'a, T: Serialize + 'a>(values: impl ExactSizeIterator<Item = &'a T>) -> Result<Option<String>, EncodeError> {
    if values.len() == 0 { Ok(None) } else { json(&values.collect::<Vec<_>>()).map(Some) }
}

/// A new job, for `sql/job/add.sql`.
#[derive(Serialize)]
pub(super) struct NewRow {
    uuid: String,
    service: String,
    task: String,
    args_at: usize,
    args_bytes: usize,
    kwargs_at: usize,
    kwargs_bytes: usize,
    timeout: u32,
    deadline: Option<i64>,
    status: &'static str,
    workers_requested: String,
    local_time: String,
    scheduled_for: Option<i64>,
    start_deadline: Option<i64>,
    origin: &'static str,
    added_at: Option<i64>,
    released_at: Option<i64>,
}

impl NewRow {
    /// The row of a job, its payloads put into `blob`.
    pub(super) fn new(
        valid: &ValidJob,
        job: &Job,
        local: &LocalTime,
        codec: Codec,
        blob: &mut Vec<u8>,
    ) -> Result<Self, EncodeError> {
        let args = codec.append(&format!("{{\"args\":{}}}", valid.args().as_str()), blob)?;
        let kwargs = codec.append(&format!("{{\"kwargs\":{}}}", valid.kwargs().as_str()), blob)?;
        Ok(Self {
            uuid: job.uuid.to_string(),
            service: job.service.clone(),
            task: job.task.clone(),
            args_at: args.at,
            args_bytes: args.bytes,
            kwargs_at: kwargs.at,
            kwargs_bytes: kwargs.bytes,
            timeout: job.timeout,
            deadline: micros(job.deadline),
            status: job.status.as_str(),
            workers_requested: json(&job.workers_requested)?,
            local_time: local.date_time(),
            scheduled_for: micros(job.scheduled_for),
            start_deadline: micros(job.start_deadline),
            origin: job.origin.as_str(),
            added_at: micros(job.created_at),
            released_at: micros(job.released_at),
        })
    }
}

/// A job that changed, for every statement that updates jobs; each takes the columns that it sets.
#[derive(Serialize)]
pub(super) struct ChangedRow {
    row: i64,
    expected: &'static str,
    status: &'static str,
    deadline: Option<i64>,
    scheduled_for: Option<i64>,
    start_deadline: Option<i64>,
    released_at: Option<i64>,
    dispatch_target: Option<String>,
    posts_sent: u32,
    posts_refused: u32,
    next_attempt_at: Option<i64>,
    last_poll: Option<i64>,
    workers_dispatched: Option<String>,
    workers_started: Option<String>,
    workers_completed: Option<String>,
    pending_inputs: Option<String>,
    errors: Option<String>,
    started_at: Option<i64>,
    started_timestamp: Option<String>,
    finished_at: Option<i64>,
    completed_timestamp: Option<String>,
    results_at: Option<usize>,
    results_bytes: Option<usize>,
}

impl ChangedRow {
    /// The row with this number, which was `before` and is to be `job`; `local` is the time at which it changes.
    pub(super) fn new(row: i64, before: &Job, job: &Job, local: &LocalTime) -> Result<Self, EncodeError> {
        let started = job.started_at.filter(|_| before.started_at.is_none());
        let finished = job.finished_at.filter(|_| before.finished_at.is_none());
        Ok(Self {
            row,
            expected: before.status.as_str(),
            status: job.status.as_str(),
            deadline: micros(job.deadline),
            scheduled_for: micros(job.scheduled_for),
            start_deadline: micros(job.start_deadline),
            released_at: micros(job.released_at),
            dispatch_target: job.dispatch_target.as_ref().map(json).transpose()?,
            posts_sent: job.posts_sent,
            posts_refused: job.posts_refused,
            next_attempt_at: micros(job.next_attempt_at),
            last_poll: micros(job.last_poll),
            workers_dispatched: list(job.workers_dispatched.iter())?,
            workers_started: list(job.workers_started.iter())?,
            workers_completed: list(job.workers_completed.iter())?,
            pending_inputs: if job.pending_inputs.is_empty() { None } else { Some(json(&job.pending_inputs)?) },
            errors: list(job.errors.iter())?,
            started_at: micros(started),
            started_timestamp: started.map(|_| local.ctime()),
            finished_at: micros(finished),
            completed_timestamp: finished.map(|_| local.ctime()),
            results_at: None,
            results_bytes: None,
        })
    }

    /// The same with results, which are put into `blob`.
    pub(super) fn results(self, results: &Results, codec: Codec, blob: &mut Vec<u8>) -> Result<Self, EncodeError> {
        let Place { at, bytes } = codec.append(&json(results)?, blob)?;
        Ok(Self { results_at: Some(at), results_bytes: Some(bytes), ..self })
    }
}

/// New events, for `sql/event/add.sql`.
#[derive(Debug, Default)]
pub(super) struct NewEvents<'a> {
    jobs: Vec<&'a str>,
    packed: Packed<10>,
    message: packed::Place,
    severity: packed::Place,
    task: packed::Place,
    /// The data that was stored last, and where: mostly they are all the same.
    data: Option<(&'a str, packed::Place)>,
    created_at: packed::Place,
}

impl<'a> NewEvents<'a> {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { jobs: Vec::with_capacity(rows), packed: Packed::with_capacity(rows), ..Self::default() }
    }

    /// Adds an event, its data compressed.
    pub(super) fn push(&mut self, event: &'a JobEvent, codec: Codec) -> Result<(), EncodeError> {
        let created_at = LocalTime::utc(event.created_at.unwrap_or(Timestamp::EPOCH)).date_time();
        let data = match self.data {
            Some((text, place)) if text == event.data.as_str() => place,
            _ => {
                let mut blob = Vec::new();
                codec.append(event.data.as_str(), &mut blob)?;
                self.packed.bytes(&blob)
            }
        };
        self.data = Some((event.data.as_str(), data));
        let [message_at, message_bytes] = self.packed.text(Some(&event.message), &mut self.message);
        let [severity_at, severity_bytes] = self.packed.text(Some(&event.severity), &mut self.severity);
        let [task_at, task_bytes] = self.packed.text(event.task.as_deref(), &mut self.task);
        let [data_at, data_bytes] = data.fields();
        let [created_at_at, created_at_bytes] = self.packed.text(Some(&created_at), &mut self.created_at);
        self.packed.push([
            message_at,
            message_bytes,
            severity_at,
            severity_bytes,
            task_at,
            task_bytes,
            data_at,
            data_bytes,
            created_at_at,
            created_at_bytes,
        ]);
        self.jobs.push(event.job_uuid.as_str());
        Ok(())
    }

    /// The jobs as JSON, the fields and the texts.
    pub(super) fn into_parameters(self) -> Result<(String, Vec<u8>, Vec<u8>), EncodeError> {
        let (numbers, texts) = self.packed.into_blobs();
        Ok((array(&self.jobs)?, numbers, texts))
    }
}

/// Delayed jobs that are released, for `sql/job/release_due.sql`.
#[derive(Debug, Default)]
pub(super) struct ReleasedRows {
    rows: Vec<i64>,
    packed: Packed<2>,
}

impl ReleasedRows {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), packed: Packed::with_capacity(rows) }
    }

    /// The row with this number is to be `job`.
    pub(super) fn push(&mut self, row: i64, job: &Job) {
        self.packed.push([micros(job.deadline), micros(job.released_at)]);
        self.rows.push(row);
    }

    /// The row numbers as JSON, and the fields.
    pub(super) fn into_parameters(self) -> Result<(String, Vec<u8>), EncodeError> {
        Ok((array(&self.rows)?, self.packed.into_blobs().0))
    }
}

/// Error texts as their column holds them, of a row that cannot be read.
#[derive(Serialize)]
pub(super) struct UnreadableRow {
    row: i64,
    errors: String,
}

impl UnreadableRow {
    /// The row with this number gets this one error.
    pub(super) fn new(row: i64, error: &str) -> Result<Self, EncodeError> {
        Ok(Self { row, errors: json(&[error])? })
    }
}
