//! Adding jobs. What is added at the same time by several callers shares one transaction, and so one wait for the disk.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use norfab_model::{Job, JobEvent, StoreError, Timestamp, ValidJob};
use tokio::sync::oneshot;

use super::driver::NoAnswer;
use super::encode::NewJobs;
use super::event::event_add_in_tx;
use super::{Access, Durability, Session, Shared, storage};
use crate::sqlite::statement::scalar;
use crate::transition;
use rusqlite::Connection;

const DOING: &str = "add a job";
/// The most jobs of one transaction, and the most bytes of arguments before they are compressed.
const MOST_JOBS: usize = 1000;
const MOST_BYTES: usize = 32 << 20;

/// Jobs that wait to be added.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Vec<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    now: Timestamp,
    job: ValidJob,
    durability: Durability,
    answer: oneshot::Sender<Result<Job, StoreError>>,
}

impl Queue {
    /// Joins the queue. Who finds it empty must have it written.
    fn join(&self, waiting: Waiting) -> Place {
        let mut queue = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(waiting);
        if queue.len() == 1 { Place::First } else { Place::Behind }
    }

    fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Behind,
}

fn most_durable(waiting: &[Waiting]) -> Durability {
    let full = waiting.iter().any(|one| one.durability == Durability::Full);
    if full { Durability::Full } else { Durability::Normal }
}

pub(super) async fn job_add(
    shared: &Arc<Shared>,
    now: Timestamp,
    job: &ValidJob,
    durability: Durability,
) -> Result<Job, StoreError> {
    if shared.access == Access::ReadOnly {
        return Err(StoreError::ReadOnly(DOING));
    }
    let (answer, answered) = oneshot::channel();
    if shared.adds.join(Waiting { now, job: job.clone(), durability, answer }) == Place::First {
        let turn = Turn(Some(Arc::clone(shared)));
        // A caller that goes away does not take the others' jobs with it. Where it is closed, `turn` ends here.
        let _ = shared.post(move |session| {
            turn.has_come();
            write_waiting(session);
        });
    }
    answered.await.unwrap_or_else(|_| Err(storage(DOING)(NoAnswer::Closed)))
}

/// That the queue is going to be written. Where it is not, those who wait must not wait for ever.
struct Turn(Option<Arc<Shared>>);

impl Turn {
    fn has_come(mut self) {
        self.0 = None;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            drop(shared.adds.take());
        }
    }
}

/// Adds everything that has arrived until the writer has come to it.
fn write_waiting(shared: &Session<'_>) {
    let mut waiting = shared.adds.take();
    while !waiting.is_empty() {
        let rest = waiting.split_off(batch_size(&waiting));
        let outcome = add_batch(shared, &waiting);
        answer(waiting, outcome);
        waiting = rest;
    }
}

fn batch_size(waiting: &[Waiting]) -> usize {
    let mut bytes = 0_usize;
    let fits = waiting.iter().take(MOST_JOBS).take_while(|one| {
        let fits = bytes < MOST_BYTES;
        bytes = bytes.saturating_add(one.job.args().as_str().len() + one.job.kwargs().as_str().len());
        fits
    });
    fits.count()
}

/// Adds a batch. For each job: whether it was not there before.
fn add_batch(shared: &Session<'_>, batch: &[Waiting]) -> Result<Vec<Option<Job>>, StoreError> {
    let tx = shared.begin(most_durable(batch), DOING)?;
    let jobs: Vec<(Timestamp, Job)> = batch.iter().map(|one| (one.now, one.job.row(one.now))).collect();
    let mut rows = NewJobs::with_capacity(batch.len());
    for (Waiting { job: valid, .. }, (now, job)) in batch.iter().zip(&jobs) {
        let local = shared.local(*now, &tx).map_err(storage(DOING))?;
        rows.push(valid, job, &local, shared.codec).map_err(storage(DOING))?;
    }
    let (uuids, numbers, texts) = rows.into_parameters().map_err(storage(DOING))?;
    let added = scalar!("sql/job/add.sql", uuids, numbers, texts).fetch_all(&tx);
    let mut added: HashSet<String> = added.map_err(storage(DOING))?.into_iter().collect();
    // The first of two with one identity has got it.
    let added: Vec<Option<(Timestamp, Job)>> =
        jobs.into_iter().map(|(now, job)| added.remove(job.uuid.as_str()).then_some((now, job))).collect();
    add_events(shared, &tx, &added)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(added.into_iter().map(|added| added.map(|(_, job)| job)).collect())
}

fn add_events(
    shared: &Session<'_>,
    connection: &Connection,
    added: &[Option<(Timestamp, Job)>],
) -> Result<(), StoreError> {
    let added = added.iter().flatten();
    let mut events: Vec<JobEvent> = added.filter_map(|(now, job)| transition::added(job, *now)).collect();
    event_add_in_tx(connection, shared.codec, &mut events, DOING)
}

fn answer(batch: Vec<Waiting>, outcome: Result<Vec<Option<Job>>, StoreError>) {
    match outcome {
        Ok(jobs) => {
            for (waiting, job) in batch.into_iter().zip(jobs) {
                let answer = job.ok_or_else(|| StoreError::JobExists(waiting.job.id().clone()));
                // Who does not wait any more needs no answer.
                let _ = waiting.answer.send(answer);
            }
        }
        Err(StoreError::Storage { doing, source }) => {
            let source: Arc<dyn std::error::Error + Send + Sync> = Arc::from(source);
            for waiting in batch {
                let _ = waiting.answer.send(Err(storage(doing)(Arc::clone(&source))));
            }
        }
        // Nothing but the storage fails here; whoever waits learns it by the channel that closes.
        Err(error) => tracing::error!(%error, "Jobs could not be added"),
    }
}
