//! What statements are given: row numbers or identities as JSON, the fields of the rows packed, instants as integer
//! microseconds. So a step over a thousand jobs is one statement.

use norfab_model::{Job, JobEvent, JobId, JobStatus, Results, Timestamp, ValidJob};
use serde::Serialize;

use super::codec::Codec;
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

/// New jobs, for `sql/job/add.sql`.
#[derive(Debug, Default)]
pub(super) struct NewJobs<'a> {
    uuids: Vec<&'a str>,
    packed: Packed<22>,
    /// The texts that were written last: service, task, status, workers, local time, origin.
    last: [packed::Place; 6],
}

impl<'a> NewJobs<'a> {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { uuids: Vec::with_capacity(rows), packed: Packed::with_capacity(rows), ..Self::default() }
    }

    /// Adds a job, its payloads compressed.
    pub(super) fn push(
        &mut self,
        valid: &ValidJob,
        job: &'a Job,
        local: &LocalTime,
        codec: Codec,
    ) -> Result<(), EncodeError> {
        let args = self.compress(&format!("{{\"args\":{}}}", valid.args().as_str()), codec)?;
        let kwargs = self.compress(&format!("{{\"kwargs\":{}}}", valid.kwargs().as_str()), codec)?;
        let workers = json(&job.workers_requested)?;
        let local = local.date_time();
        let texts = [&job.service, &job.task, job.status.as_str(), &workers, &local, job.origin.as_str()];
        let numbers = [
            Some(i64::from(job.timeout)),
            micros(job.deadline),
            micros(job.scheduled_for),
            micros(job.start_deadline),
            micros(job.created_at),
            micros(job.released_at),
        ];
        let mut places = [args, kwargs, [None; 2], [None; 2], [None; 2], [None; 2], [None; 2], [None; 2]];
        for ((place, text), last) in places[2..].iter_mut().zip(texts).zip(&mut self.last) {
            *place = self.packed.text(Some(text), last);
        }
        self.packed.push(row(&numbers, &places));
        self.uuids.push(job.uuid.as_str());
        Ok(())
    }

    fn compress(&mut self, payload: &str, codec: Codec) -> Result<[Option<i64>; 2], EncodeError> {
        let mut blob = Vec::new();
        codec.append(payload, &mut blob)?;
        Ok(self.packed.bytes(&blob).fields())
    }

    /// The identities as JSON, the fields and the texts.
    pub(super) fn into_parameters(self) -> Result<(String, Vec<u8>, Vec<u8>), EncodeError> {
        let (numbers, texts) = self.packed.into_blobs();
        Ok((array(&self.uuids)?, numbers, texts))
    }
}

/// The fields of a row: first its numbers, then where its texts lie.
fn row<const FIELDS: usize>(numbers: &[Option<i64>], texts: &[[Option<i64>; 2]]) -> [Option<i64>; FIELDS] {
    let mut fields = numbers.iter().chain(texts.iter().flatten());
    std::array::from_fn(|_| fields.next().copied().flatten())
}

/// What has to be known of a job as it was, to write what it has become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pub(super) status: JobStatus,
    had_started: bool,
    had_finished: bool,
}

impl From<&Job> for Before {
    fn from(job: &Job) -> Self {
        Self { status: job.status, had_started: job.started_at.is_some(), had_finished: job.finished_at.is_some() }
    }
}

/// Jobs that changed, for every statement that updates jobs; each takes the columns that it sets. The fields of row N, of
/// 20 digits each and 31 in a row: deadline, scheduled for, start deadline, POSTs sent, POSTs refused, next attempt, last
/// poll, started, finished; then the texts: expected status, status, target, workers dispatched, started, completed,
/// pending inputs, errors, when started, when completed, results.
#[derive(Debug, Default)]
pub(super) struct ChangedJobs {
    rows: Vec<i64>,
    packed: Packed<31>,
    last: [packed::Place; 10],
}

impl ChangedJobs {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), packed: Packed::with_capacity(rows), ..Self::default() }
    }

    /// The row with this number, which was `before` and is to be `job`; `local` is the time at which it changes.
    pub(super) fn push(
        &mut self,
        number: i64,
        before: Before,
        job: &Job,
        local: &LocalTime,
    ) -> Result<(), EncodeError> {
        self.add(number, before, job, local, [None, None])
    }

    /// The same with other results.
    pub(super) fn push_with_results(
        &mut self,
        number: i64,
        (before, job): (Before, &Job),
        local: &LocalTime,
        (results, codec): (&Results, Codec),
    ) -> Result<(), EncodeError> {
        let mut blob = Vec::new();
        codec.append(&json(results)?, &mut blob)?;
        let place = self.packed.bytes(&blob).fields();
        self.add(number, before, job, local, place)
    }

    fn add(
        &mut self,
        number: i64,
        before: Before,
        job: &Job,
        local: &LocalTime,
        results: [Option<i64>; 2],
    ) -> Result<(), EncodeError> {
        let started = job.started_at.filter(|_| !before.had_started);
        let finished = job.finished_at.filter(|_| !before.had_finished);
        let pending = if job.pending_inputs.is_empty() { None } else { Some(json(&job.pending_inputs)?) };
        let texts = [
            Some(before.status.as_str().to_owned()),
            Some(job.status.as_str().to_owned()),
            job.dispatch_target.as_ref().map(json).transpose()?,
            list(job.workers_dispatched.iter())?,
            list(job.workers_started.iter())?,
            list(job.workers_completed.iter())?,
            pending,
            list(job.errors.iter())?,
            started.map(|_| local.ctime()),
            finished.map(|_| local.ctime()),
        ];
        let numbers = [
            micros(job.deadline),
            micros(job.scheduled_for),
            micros(job.start_deadline),
            Some(i64::from(job.posts_sent)),
            Some(i64::from(job.posts_refused)),
            micros(job.next_attempt_at),
            micros(job.last_poll),
            micros(started),
            micros(finished),
        ];
        let mut places = [[None; 2]; 11];
        for ((place, text), last) in places.iter_mut().zip(&texts).zip(&mut self.last) {
            *place = self.packed.text(text.as_deref(), last);
        }
        places[10] = results;
        self.packed.push(row(&numbers, &places));
        self.rows.push(number);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row numbers as JSON, the fields and the texts.
    pub(super) fn into_parameters(self) -> Result<(String, Vec<u8>, Vec<u8>), EncodeError> {
        let (numbers, texts) = self.packed.into_blobs();
        Ok((array(&self.rows)?, numbers, texts))
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

/// Delayed jobs that are released, for `sql/job/release.sql` and `sql/job/release_by_deadline.sql`.
#[derive(Debug, Default)]
pub(super) struct ReleasedRows {
    rows: Vec<i64>,
    deadlines: Packed<1>,
}

impl ReleasedRows {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), deadlines: Packed::with_capacity(rows) }
    }

    /// The row with this number is to be `job`.
    pub(super) fn push(&mut self, row: i64, job: &Job) {
        self.deadlines.push([micros(job.deadline)]);
        self.rows.push(row);
    }

    /// The row numbers as JSON, and the deadlines.
    pub(super) fn into_parameters(self) -> Result<(String, Vec<u8>), EncodeError> {
        Ok((array(&self.rows)?, self.deadlines.into_blobs().0))
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
