//! A handle to one job: its outcome, what happens to it as it happens, and the answers to its questions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use norfab_model::{Clock, Job, JobDetail, JobEvent, JobId, JobStatus, Json, Results, Store, Timestamp};
use serde::Serialize;
use tokio::sync::watch;

use crate::ClientError;
use crate::client::Shared;
use crate::watch::Seen;

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// Every worker answered. A task that failed is an answer, see [`WorkerResult`](crate::WorkerResult).
    Completed {
        /// What each worker answered.
        results: Results,
    },
    /// It could not be handed over, or could not be read.
    Failed {
        /// Why.
        errors: Vec<String>,
        /// What came all the same.
        results: Results,
    },
    /// Its deadline passed.
    Stale {
        /// Who did not answer.
        errors: Vec<String>,
        /// What came, and a result with status `timeout` for each worker that did not answer.
        results: Results,
    },
    /// It was withdrawn before its time.
    Cancelled,
    /// It could not start before its start deadline.
    Missed,
}

impl Outcome {
    /// The outcome of a job that has ended; None for one that has not.
    #[must_use]
    pub fn of(detail: JobDetail) -> Option<Self> {
        Self::with(detail.job, detail.results)
    }

    fn with(job: Job, results: Results) -> Option<Self> {
        match job.status {
            JobStatus::Completed => Some(Self::Completed { results }),
            JobStatus::Failed => Some(Self::Failed { errors: job.errors, results }),
            JobStatus::Stale => Some(Self::Stale { errors: job.errors, results }),
            JobStatus::Cancelled => Some(Self::Cancelled),
            JobStatus::Missed => Some(Self::Missed),
            _ => None,
        }
    }
}

/// One thing that happened to a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// It is in another status; this is the job as it now is.
    Status(Box<Job>),
    /// An event was stored: a worker's, or the client's own.
    Event(Box<JobEvent>),
}

/// A handle to one job. Dropping it changes nothing for the job.
#[derive(Debug)]
pub struct JobHandle<S, C> {
    id: JobId,
    shared: Arc<Shared<S, C>>,
    seen: watch::Receiver<Seen>,
    /// Whether the store was read since the watching began; what is told before that may be older.
    looked: bool,
    last_event: i64,
    last_status: Option<JobStatus>,
    waiting: VecDeque<Update>,
}

impl<S: Store, C: Clock> JobHandle<S, C> {
    /// Begins to watch a job, which need not be there yet.
    pub(crate) fn new(id: JobId, shared: Arc<Shared<S, C>>) -> Self {
        let seen = shared.watchers.subscribe(&id);
        Self { id, shared, seen, looked: false, last_event: 0, last_status: None, waiting: VecDeque::new() }
    }

    /// Another handle to the same job.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.id.clone(), Arc::clone(&self.shared))
    }

    /// The job was added after the watching began: it need not be read to know how it is.
    pub(crate) fn added(&mut self, job: &Job) {
        self.shared.watchers.job_added(job);
        self.looked = true;
    }

    /// The job's identity.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// The job as it is now.
    ///
    /// # Errors
    /// [`ClientError::Store`] when it is gone or cannot be read.
    pub async fn job(&self) -> Result<Job, ClientError> {
        self.shared.find(&self.id).await
    }

    /// Waits until the job has ended.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the client is shut down before; [`ClientError::Store`] when the job cannot be read.
    pub async fn outcome(&mut self) -> Result<Outcome, ClientError> {
        loop {
            let job = self.current().await?;
            if job.status.is_terminal() {
                let told = self.seen.borrow().results.clone();
                let outcome = match told {
                    Some(results) => Outcome::with(job, results),
                    None => Outcome::of(self.shared.detail(&self.id).await?),
                };
                if let Some(outcome) = outcome {
                    return Ok(outcome);
                }
            }
            self.seen.changed().await.map_err(|_| ClientError::Closed)?;
        }
    }

    /// Waits until the job should have ended long ago and has not, because its workers cannot be asked for the result:
    /// half a minute past its deadline. Tells so in a sentence. Its result is asked for once the broker is there. Safe to
    /// drop while it waits.
    ///
    /// # Errors
    /// [`ClientError::Store`] when the job cannot be read.
    pub async fn overdue(&self) -> Result<String, ClientError> {
        let clock = &self.shared.clock;
        // Nothing is overdue sooner, and mostly the wait is over by then. However the wall clock is set, this looks again.
        let mut pause = OVERDUE;
        loop {
            let until = clock.uptime().saturating_add(pause);
            while clock.uptime() < until {
                clock.sleep_until(Timestamp::MAX, until).await;
            }
            let job = self.job().await?;
            let deadline = job.deadline.filter(|_| job.status.is_in_flight());
            let now = clock.now();
            if let Some(deadline) = deadline.filter(|at| at.saturating_add(OVERDUE) <= now) {
                return Ok(format!(
                    "the deadline of job {} passed {} s ago, and its result could not be asked for; whoever serves this \
                     database asks for it when the broker is there",
                    self.id,
                    now.since(deadline).as_secs()
                ));
            }
            let left = deadline.map(|at| at.saturating_add(OVERDUE).since(now));
            pause = left.map_or(OVERDUE, |left| left.min(OVERDUE));
        }
    }

    /// The job as it was told last, or as it stands in the store.
    async fn current(&mut self) -> Result<Job, ClientError> {
        let told = self.seen.borrow_and_update().job.clone();
        match told {
            Some(job) if self.looked => Ok(job),
            _ => {
                let job = self.job().await?;
                self.looked = true;
                Ok(job)
            }
        }
    }

    /// What happened next: every event of the job from its beginning on, and its status whenever it is found changed; one
    /// that lasted a moment only may be passed over. None when the job has ended and all was told. Safe to drop while it
    /// waits.
    ///
    /// # Errors
    /// As [`outcome`](Self::outcome).
    pub async fn next_update(&mut self) -> Result<Option<Update>, ClientError> {
        loop {
            if let Some(update) = self.waiting.pop_front() {
                return Ok(Some(update));
            }
            if self.last_status.is_some_and(JobStatus::is_terminal) {
                return Ok(None);
            }
            if !self.look().await? {
                self.seen.changed().await.map_err(|_| ClientError::Closed)?;
            }
        }
    }

    /// Reads what is new and tells whether there was anything.
    async fn look(&mut self) -> Result<bool, ClientError> {
        // The job first: events stored before its end are then never overlooked.
        let job = self.current().await?;
        // A status comes before the events that were stored since; the end comes after all of them.
        if !job.status.is_terminal() {
            self.note_status(&job);
        }
        let events = self.shared.store.event_list(&self.id, self.last_event, EVENTS_AT_ONCE).await?;
        let more = events.len() >= EVENTS_AT_ONCE as usize;
        for event in events {
            self.last_event = event.id;
            self.waiting.push_back(Update::Event(Box::new(event)));
        }
        if job.status.is_terminal() && !more {
            self.note_status(&job);
        }
        Ok(!self.waiting.is_empty())
    }

    fn note_status(&mut self, job: &Job) {
        if self.last_status.replace(job.status) != Some(job.status) {
            self.waiting.push_back(Update::Status(Box::new(job.clone())));
        }
    }

    /// Answers a worker's question. NorFab confirms an answer by an event only, and drops one that comes too late. Where
    /// another process dispatches, the answer goes to it through the database.
    ///
    /// # Errors
    /// [`ClientError::NoQuestion`] when that worker asks nothing; [`ClientError::Store`].
    pub async fn send_response(&self, worker: &str, value: Json) -> Result<(), ClientError> {
        let (job, request) = self.question(worker).await?;
        self.send(job, worker, request.answer(value)).await
    }

    /// Turns a worker's question down.
    ///
    /// # Errors
    /// As [`send_response`](Self::send_response).
    pub async fn cancel_request(&self, worker: &str) -> Result<(), ClientError> {
        let (job, request) = self.question(worker).await?;
        self.send(job, worker, request.cancel()).await
    }

    async fn question(&self, worker: &str) -> Result<(Job, norfab_model::InputRequest), ClientError> {
        let job = self.job().await?;
        match job.pending_inputs.get(worker).cloned() {
            Some(request) => Ok((job, request)),
            None => Err(ClientError::NoQuestion { job: self.id.clone(), worker: worker.to_owned() }),
        }
    }

    async fn send(&self, job: Job, worker: &str, answer: norfab_model::InputAnswer) -> Result<(), ClientError> {
        match self.shared.control() {
            Some(control) => Ok(control.answer(job.uuid, job.service, worker.to_owned(), answer)?),
            None => Ok(self.shared.store.answer_add(self.shared.clock.now(), &job.uuid, worker, &answer).await?),
        }
    }
}

impl<S, C> Drop for JobHandle<S, C> {
    fn drop(&mut self) {
        self.shared.watchers.leave(&self.id);
    }
}

const EVENTS_AT_ONCE: u32 = 1000;

/// Longer than it takes to find out that the broker is gone, and to ask anew.
const OVERDUE: Duration = Duration::from_secs(30);
