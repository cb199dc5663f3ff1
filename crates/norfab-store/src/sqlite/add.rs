//! Adding jobs. What is added at the same time by several callers shares one transaction, and so one wait for the disk.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use norfab_model::{Job, JobEvent, StoreError, Timestamp, ValidJob};
use tokio::sync::oneshot;

use super::driver::{Hands, NoAnswer};
use super::encode::NewJobs;
use super::event::event_add_in_tx;
use super::group::{Group, Undone};
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
pub(super) struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<ToAdd>,
    turn: Turn,
}

#[derive(Debug)]
struct ToAdd {
    now: Timestamp,
    job: ValidJob,
    durability: Durability,
    answer: oneshot::Sender<Result<Job, StoreError>>,
}

/// Whether the writer is going to come to the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    None,
    Asked,
}

impl Queue {
    fn locked(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the queue. Returns what the turn was until now; who finds none asks for one.
    fn join(&self, job: ToAdd) -> Turn {
        let mut waiting = self.locked();
        waiting.jobs.push_back(job);
        std::mem::replace(&mut waiting.turn, Turn::Asked)
    }

    /// Those at the front whose turn has come, at most what `lasting` is enough for, and what the rest of them needs.
    fn take(&self, lasting: Durability) -> (Vec<ToAdd>, Option<Durability>) {
        let mut waiting = self.locked();
        let size = batch_size(&waiting.jobs, lasting);
        let batch = waiting.jobs.drain(..size).collect();
        let rest = (!waiting.jobs.is_empty()).then(|| most_durable(&waiting.jobs));
        waiting.turn = if rest.is_some() { Turn::Asked } else { Turn::None };
        (batch, rest)
    }

    /// Nobody comes: those who wait must not wait for ever.
    fn give_up(&self) {
        for waiting in std::mem::take(&mut *self.locked()).jobs {
            // Who does not wait any more needs no answer.
            let _ = waiting.answer.send(Err(storage(DOING)(NoAnswer::Closed)));
        }
    }
}

fn batch_size(waiting: &VecDeque<ToAdd>, lasting: Durability) -> usize {
    let mut bytes = 0_usize;
    let fits = waiting.iter().take(MOST_JOBS).take_while(|one| {
        let fits = bytes < MOST_BYTES && (lasting == Durability::Full || one.durability == Durability::Normal);
        bytes = bytes.saturating_add(one.job.args().as_str().len() + one.job.kwargs().as_str().len());
        fits
    });
    fits.count()
}

fn most_durable<'a>(waiting: impl IntoIterator<Item = &'a ToAdd>) -> Durability {
    waiting.into_iter().fold(Durability::Normal, |most, one| most.or(one.durability))
}

pub(super) async fn job_add(
    shared: &Arc<Shared>,
    now: Timestamp,
    job: &ValidJob,
    durability: Durability,
    hands: Hands,
) -> Result<Job, StoreError> {
    if shared.access == Access::ReadOnly {
        return Err(StoreError::ReadOnly(DOING));
    }
    let (answer, answered) = oneshot::channel();
    if shared.adds.join(ToAdd { now, job: job.clone(), durability, answer }) == Turn::None {
        // Where it is closed, who waits is told.
        let _ = ask_for_turn(shared, durability);
    }
    let answered = shared.connections.kept.answer(hands, answered).await;
    answered.unwrap_or_else(|none| Err(storage(DOING)(none)))
}

/// Has the queue written by the next turn of the writer. A caller that goes away does not take the others' jobs with it.
fn ask_for_turn(shared: &Arc<Shared>, durability: Durability) -> Result<(), NoAnswer> {
    let promise = Promise(Some(Arc::clone(shared)));
    shared.post(durability, move |session| {
        let shared = promise.kept();
        let lasting = session.group.map_or(Durability::Full, Group::durability);
        let mut written = Vec::new();
        loop {
            let (batch, rest) = session.adds.take(lasting);
            let is_last = batch.is_empty() || session.connections.kept.is_open();
            let outcome = add_batch(session, &batch);
            written.push((batch, outcome));
            let (Some(shared), Some(durability)) = (&shared, rest) else { break };
            // Others come in between; once it is closing there are none, and no other turn.
            if is_last {
                let _ = ask_for_turn(shared, durability);
                break;
            }
        }
        Box::new(move |kept| written.into_iter().for_each(|(batch, outcome)| answer(batch, outcome, &kept)))
    })
}

/// That the queue is going to be written.
struct Promise(Option<Arc<Shared>>);

impl Promise {
    fn kept(mut self) -> Option<Arc<Shared>> {
        self.0.take()
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.adds.give_up();
        }
    }
}

/// Adds a batch. For each job: whether it was not there before.
fn add_batch(shared: &Session<'_>, batch: &[ToAdd]) -> Result<Vec<Option<Job>>, StoreError> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let tx = shared.begin(most_durable(batch), DOING)?;
    let jobs: Vec<(Timestamp, Job)> = batch.iter().map(|one| (one.now, one.job.row(one.now))).collect();
    let mut rows = NewJobs::with_capacity(batch.len());
    for (ToAdd { job: valid, .. }, (now, job)) in batch.iter().zip(&jobs) {
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

fn answer(batch: Vec<ToAdd>, outcome: Result<Vec<Option<Job>>, StoreError>, kept: &Result<(), Undone>) {
    match outcome.and_then(|jobs| kept.clone().map(|()| jobs).map_err(storage(DOING))) {
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
