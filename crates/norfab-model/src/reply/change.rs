//! What a reply changes in a job, and carrying it out on the value.

use crate::{FabricEvent, InputRequest, Job, JobStatus, Json, Timestamp};

/// What a reply changes. Nothing at all when it is late, repeated or not for this job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// The new status.
    pub status: Option<JobStatus>,
    /// The workers that must answer from now on.
    pub dispatched: Option<Vec<String>>,
    /// A worker that is now known to have the job.
    pub started: Option<String>,
    /// A worker that asks something.
    pub asks: Option<(String, InputRequest)>,
    /// A worker that asks no longer.
    pub answered: Option<String>,
    /// Results to keep; their workers have completed.
    pub results: Vec<(String, Json)>,
    /// Errors to keep.
    pub errors: Vec<String>,
    /// The broker could not hand a POST over.
    pub post_refused: bool,
    /// The job is NEW again, to be sent once more.
    pub retry: Option<Retry>,
    /// An event to keep and to show.
    pub event: Option<FabricEvent>,
    /// What the client should do next about it.
    pub follow_up: Option<FollowUp>,
    /// Why the reply changes nothing.
    pub ignored: Option<Ignored>,
}

/// Another attempt to send a job that was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Not before this. The deadline counts from here.
    pub at: Timestamp,
    /// Whether it goes to the same workers.
    pub target: RetryTarget,
    /// Why it is needed.
    pub reason: String,
}

/// Where another attempt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryTarget {
    /// To the workers recorded with the claim.
    Same,
    /// To a worker chosen anew: no worker has the job, and any will do.
    Anew,
}

/// What a reply asks the client to do beside what is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowUp {
    /// A result waits at this worker: GET it at once.
    Fetch(String),
    /// This worker does not know the job, which may be a race between its two threads: ask it again after a pause.
    AskAgain(String),
    /// Workers that have the job may not have registered with the broker again: ask all once they had the time to.
    AskAll,
    /// These workers do not have the job: send it to them again, not before an instant.
    SendAgain {
        /// The workers.
        workers: Vec<String>,
        /// The instant.
        at: Timestamp,
    },
    /// The one worker that the job was given to is gone, and any other would do as well. When it stays away for long, the
    /// job goes to another.
    Gone,
}

/// Why a reply changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// The job has ended; ended jobs are immutable.
    JobEnded,
    /// The job has not been sent.
    NotSent,
    /// The worker is none of the job's.
    UnknownWorker,
    /// It says what is known already.
    Repeated,
    /// It is no news in this status: asked again later.
    NotYet,
}

impl Ignored {
    /// A short text for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobEnded => "the job has ended",
            Self::NotSent => "the job has not been sent",
            Self::UnknownWorker => "the worker is none of the job's",
            Self::Repeated => "it says what is known",
            Self::NotYet => "it is not final",
        }
    }
}

impl Job {
    /// Carries a change out on this value: everything but results and events, which are stored beside the job. The
    /// caller sets `started_at` and `finished_at`, as only it knows the time.
    pub fn apply(&mut self, change: &Change) {
        if let Some(status) = change.status {
            self.status = status;
        }
        if let Some(workers) = &change.dispatched {
            self.workers_dispatched.clone_from(workers);
        }
        self.workers_started.extend(change.started.clone());
        if let Some((worker, request)) = &change.asks {
            self.pending_inputs.insert(worker.clone(), request.clone());
        }
        if let Some(worker) = &change.answered {
            self.pending_inputs.remove(worker);
        }
        // What a passed deadline adds is no answer: those workers have not completed.
        if change.status != Some(JobStatus::Stale) {
            for (worker, _) in &change.results {
                self.workers_completed.insert(worker.clone());
                self.pending_inputs.remove(worker);
            }
        }
        self.errors.extend(change.errors.iter().cloned());
        self.posts_refused = self.posts_refused.saturating_add(u32::from(change.post_refused));
        if let Some(retry) = &change.retry {
            self.retry(retry);
        }
        if self.status.is_terminal() {
            self.pending_inputs.clear();
        }
    }

    /// Notes another attempt. The time that the job may take begins with it.
    fn retry(&mut self, retry: &Retry) {
        self.next_attempt_at = Some(retry.at);
        self.deadline = Some(retry.at.plus_seconds(self.timeout));
        if retry.target == RetryTarget::Anew {
            self.dispatch_target = None;
        }
    }
}
