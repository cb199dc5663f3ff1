//! What the fabric says of a job, and what that changes: `decide` is a pure function of the job and the reply.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Job, JobId, JobStatus, Json, Workers};

/// One message of the broker or of a worker about a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The job that it speaks of.
    pub job: JobId,
    /// What it says.
    pub kind: ReplyKind,
}

/// What a reply says of its job.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyKind {
    /// 202: the broker takes a request, a POST or a GET, and names the workers that it hands it to. No promise that they
    /// have it.
    Accepted {
        /// The workers; for target `any` a single one.
        workers: Vec<String>,
    },
    /// 400: the broker could not hand a request over.
    Refused {
        /// The broker's text.
        errors: Vec<String>,
    },
    /// 201: a worker has stored the job.
    Stored {
        /// The worker.
        worker: String,
    },
    /// 300: a worker has the job and has not finished it.
    Pending {
        /// The worker.
        worker: String,
    },
    /// 102: a worker waits for an answer.
    WaitingInput {
        /// The worker.
        worker: String,
        /// What it asks.
        request: InputRequest,
    },
    /// 200: a worker's result, well or badly.
    Result {
        /// The worker.
        worker: String,
        /// Its answer.
        result: Json,
    },
    /// 404: a worker does not know the job, or not yet.
    NotFound {
        /// The worker.
        worker: String,
    },
    /// Something that happened at a worker.
    Event(FabricEvent),
}

/// An event as a worker sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct FabricEvent {
    /// The worker that it comes from.
    pub worker: String,
    /// What it is about.
    pub kind: FabricEventKind,
    /// Its text.
    pub message: String,
    /// INFO, WARNING, ERROR or what the worker says.
    pub severity: String,
    /// The task.
    pub task: Option<String>,
    /// The whole event as it came.
    pub data: Json,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq)]
pub enum FabricEventKind {
    /// The task tells how far it is.
    Progress,
    /// The result can be fetched.
    ResultReady,
    /// The task asks the client something.
    InputRequest(InputRequest),
    /// The worker has taken an answer.
    InputResponse {
        /// The question that was answered, where the worker names it.
        input_id: Option<String>,
    },
    /// A kind that this release does not know; kept as an event, without effect.
    Other(String),
}

/// A question of a worker to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// Its identity, named in the answer.
    pub id: String,
    /// The question.
    #[serde(default)]
    pub question: String,
    /// What the worker takes when nobody answers.
    #[serde(default)]
    pub default: Value,
    /// Seconds that it waits.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// What else the task says.
    #[serde(default)]
    pub metadata: Value,
}

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
    /// An event to keep and to show.
    pub event: Option<FabricEvent>,
    /// A worker whose result should be fetched at once.
    pub fetch: Option<String>,
    /// Why the reply changes nothing.
    pub ignored: Option<Ignored>,
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

/// Decides what a reply changes in a job. Pure; [`Job::apply`] carries the part of it out that the job shows.
///
/// Any sign of a worker implies the earlier states: the job need not have seen a 202. The job is COMPLETED when every
/// expected worker has a result, whatever the results say; a failed task is a result.
#[must_use]
pub fn decide(job: &Job, reply: ReplyKind) -> Change {
    if job.status.is_terminal() {
        return ignore(Ignored::JobEnded);
    }
    if !job.status.is_in_flight() {
        return ignore(Ignored::NotSent);
    }
    let change = match reply {
        ReplyKind::Accepted { workers } => accepted(job, &workers),
        ReplyKind::Refused { errors } => refused(job, errors),
        ReplyKind::Stored { worker } | ReplyKind::Pending { worker } => of_worker(job, worker, |change, _| {
            change.ignored = None;
        }),
        ReplyKind::WaitingInput { worker, request } => {
            of_worker(job, worker, |change, worker| asks(job, change, worker, request))
        }
        ReplyKind::Result { worker, result } => of_worker(job, worker, |change, worker| {
            if job.workers_completed.contains(worker) {
                change.ignored = Some(Ignored::Repeated);
            } else {
                change.results.push((worker.to_owned(), result));
            }
        }),
        ReplyKind::NotFound { worker } => not_found(job, worker),
        ReplyKind::Event(event) => of_event(job, event),
    };
    settle(job, change)
}

fn ignore(why: Ignored) -> Change {
    Change { ignored: Some(why), ..Change::default() }
}

/// The first 202 after a POST fixes the set of workers; so does a 202 to a GET where the set is not known yet.
fn accepted(job: &Job, workers: &[String]) -> Change {
    if !job.workers_dispatched.is_empty() || workers.is_empty() {
        return ignore(Ignored::Repeated);
    }
    let mut change = Change::default();
    // A list is a promise to the caller: what the broker left out of it must answer for itself.
    let expected = match job.dispatch_target.as_ref().unwrap_or(&job.workers_requested) {
        Workers::List(names) => names.clone(),
        _ => workers.to_vec(),
    };
    for missing in expected.iter().filter(|name| !workers.contains(name) && !job.workers_completed.contains(*name)) {
        let message = format!("worker {missing:?} is not registered with the broker");
        change.results.push((missing.clone(), failed_result(job, missing, "error", &message)));
        change.errors.push(message);
    }
    change.dispatched = Some(expected);
    change
}

/// A 400. While the job is SUBMITTING it can only answer the POST; later it answers a request that is simply made again.
fn refused(job: &Job, errors: Vec<String>) -> Change {
    if job.status != JobStatus::Submitting {
        return ignore(Ignored::NotYet);
    }
    let mut change = Change { post_refused: true, ..Change::default() };
    if job.posts_refused + 1 >= job.posts_sent {
        change.status = Some(JobStatus::Failed);
        change.errors = if errors.is_empty() { vec!["the broker refused the job".to_owned()] } else { errors };
    } else {
        // An earlier POST may have arrived: it is asked for until the deadline.
        change.status = Some(JobStatus::Dispatched);
    }
    change
}

/// A 404 is final only when the worker was known to have the job; before, its two threads may have raced.
fn not_found(job: &Job, worker: String) -> Change {
    if !job.workers_started.contains(&worker) {
        return ignore(Ignored::NotYet);
    }
    if job.workers_completed.contains(&worker) {
        return ignore(Ignored::Repeated);
    }
    let message = format!("worker {worker:?} lost the job: it had stored it, and does not know it any more");
    let result = failed_result(job, &worker, "error", &message);
    Change { results: vec![(worker, result)], errors: vec![message], ..Change::default() }
}

/// What every sign of a worker has in common: it must be one of the job's, and it has the job.
fn of_worker(job: &Job, worker: String, more: impl FnOnce(&mut Change, &str)) -> Change {
    if job.expected_workers().is_some_and(|names| !names.contains(&worker)) {
        return ignore(Ignored::UnknownWorker);
    }
    let mut change = Change::default();
    more(&mut change, &worker);
    if job.expected_workers().is_none() && matches!(job.workers_requested, Workers::Any) {
        change.dispatched = Some(vec![worker.clone()]);
    }
    if !job.workers_started.contains(&worker) {
        change.started = Some(worker);
    }
    change
}

fn asks(job: &Job, change: &mut Change, worker: &str, request: InputRequest) {
    if job.workers_completed.contains(worker)
        || job.pending_inputs.get(worker).is_some_and(|known| known.id == request.id)
    {
        change.ignored = Some(Ignored::Repeated);
    } else {
        change.asks = Some((worker.to_owned(), request));
    }
}

fn of_event(job: &Job, event: FabricEvent) -> Change {
    of_worker(job, event.worker.clone(), |change, worker| {
        match &event.kind {
            FabricEventKind::InputRequest(request) => asks(job, change, worker, request.clone()),
            FabricEventKind::InputResponse { input_id } => {
                let pending = job.pending_inputs.get(worker);
                // An old answer must not clear a newer question.
                if pending.is_some_and(|known| input_id.as_ref().is_none_or(|id| *id == known.id)) {
                    change.answered = Some(worker.to_owned());
                }
            }
            FabricEventKind::ResultReady if !job.workers_completed.contains(worker) => {
                change.fetch = Some(worker.to_owned());
            }
            FabricEventKind::ResultReady | FabricEventKind::Progress | FabricEventKind::Other(_) => {}
        }
        if change.ignored.is_none() {
            change.event = Some(event);
        }
    })
}

/// Fills in the status that follows from the rest of the change.
fn settle(job: &Job, mut change: Change) -> Change {
    if change.status.is_some() || (change.ignored.is_some() && change.started.is_none()) {
        return change;
    }
    let mut after = job.clone();
    after.apply(&change);
    let complete =
        after.expected_workers().is_some_and(|names| names.iter().all(|name| after.workers_completed.contains(name)));
    let next = if complete {
        JobStatus::Completed
    } else if !after.pending_inputs.is_empty() {
        JobStatus::WaitingClientInput
    } else if !after.workers_started.is_empty() {
        JobStatus::Started
    } else {
        JobStatus::Dispatched
    };
    if job.status.can_become(next) {
        change.status = Some(next);
    }
    let changes_nothing = change == Change { ignored: change.ignored, ..Change::default() };
    if changes_nothing && change.ignored.is_none() {
        change.ignored = Some(Ignored::Repeated);
    } else if !changes_nothing {
        change.ignored = None;
    }
    change
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
        if self.status.is_terminal() {
            self.pending_inputs.clear();
        }
    }
}

/// Decides how a job ends whose deadline has passed: STALE, with a `timeout` result for each worker that did not answer
/// (under the target's word when the workers were never known), as the Python client writes it. What came is kept.
#[must_use]
pub fn expire(job: &Job) -> Change {
    if !job.status.can_become(JobStatus::Stale) {
        return ignore(Ignored::JobEnded);
    }
    let missing = match job.outstanding_workers() {
        Workers::List(names) => names,
        other => vec![other.to_string()],
    };
    let message = if job.status == JobStatus::New {
        format!("the deadline passed {} s after the release, before the job was sent", job.timeout)
    } else {
        format!(
            "the deadline passed {} s after the release without a result of {}; the task may still run there",
            job.timeout,
            missing.join(", ")
        )
    };
    Change {
        status: Some(JobStatus::Stale),
        results: missing
            .into_iter()
            .map(|worker| {
                let result = failed_result(job, &worker, "timeout", &message);
                (worker, result)
            })
            .collect(),
        errors: vec![message],
        ..Change::default()
    }
}

/// A result in NorFab's form for a worker that gave none, or none that can be kept. `status` is `error` or `timeout`.
#[must_use]
pub fn failed_result(job: &Job, worker: &str, status: &str, message: &str) -> Json {
    Json::from(serde_json::json!({
        "result": null,
        "failed": true,
        "errors": [message],
        "task": format!("{worker}:{}", job.task),
        "messages": [],
        "juuid": job.uuid,
        "resources": [],
        "resources_failed": [],
        "status": status,
        "task_started": null,
        "task_completed": null,
        "service": job.service,
        "diff": null,
        "dry_run": false,
    }))
}

#[cfg(test)]
mod tests;
