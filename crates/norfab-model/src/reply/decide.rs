//! The decisions on replies and deadlines, as pure functions of the job and of what came.

use super::{
    Change, Context, FabricEvent, FabricEventKind, FollowUp, Ignored, InputRequest, Registry, Reply, ReplyKind, Retry,
    RetryTarget,
};
use crate::{Job, JobStatus, Json, RetryPolicy, Timestamp, Workers};

/// Decides what a reply changes in a job at `now`. Pure; [`Job::apply`] carries the part of it out that the job shows.
///
/// Any sign of a worker implies the earlier states: the job need not have seen a 202. The job is COMPLETED when every
/// expected worker has a result, whatever the results say; a failed task is a result.
///
/// What was not delivered is tried again as `policy` says, unless its caller waits for it; see the table in
/// `docs/job_lifecycle.md`.
#[must_use]
pub fn decide(job: &Job, now: Timestamp, policy: RetryPolicy, reply: Reply) -> Change {
    if job.status.is_terminal() {
        return ignore(Ignored::JobEnded);
    }
    if !job.status.is_in_flight() {
        return ignore(Ignored::NotSent);
    }
    let tries = Tries { job, now, policy };
    let change = match reply.kind {
        ReplyKind::Accepted { workers } => tries.accepted(&workers, reply.context),
        ReplyKind::Refused { errors } => tries.refused(errors, reply.context),
        ReplyKind::NotFound { worker } => tries.not_found(worker, &reply.context),
        ReplyKind::Stored { worker } | ReplyKind::Pending { worker } => of_worker(job, worker, |_, _| {}),
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
        ReplyKind::Event(event) => of_event(job, event),
    };
    settle(job, change)
}

/// How many workers a job may have that does not name them itself. A broker that names more is broken, or means harm: each
/// costs the job's row its name and, in the end, a result.
pub const MOST_WORKERS: usize = 10_000;

/// How often in a row a worker must have said before that it does not know a job that must not be sent to it again, until it
/// is believed that it never will: a second after the first time, and then at each poll. The thread that stores jobs may be
/// many jobs behind the one that answers.
const BELIEVED: u32 = 3;

/// How often in a row a worker that has shown that it has the job must have said before that it does not know it, until it is
/// believed that it lost it. One such answer may have been on its way since before the job was stored, even when the worker
/// has been asked anew meanwhile: it need not say in which order it was asked.
const LOST: u32 = 2;

pub(super) fn ignore(why: Ignored) -> Change {
    Change { ignored: Some(why), ..Change::default() }
}

/// What the decisions on delivery have in common.
struct Tries<'a> {
    job: &'a Job,
    now: Timestamp,
    policy: RetryPolicy,
}

impl Tries<'_> {
    /// A 202. The first after a POST fixes the set of workers; so does one to a GET that went to whoever there is. A job for
    /// all is another matter when an earlier POST of it may have arrived: those who have it must have had the time to register
    /// with the broker again. One to a POST also tells which of the workers that it was for the broker does not know.
    fn accepted(&self, workers: &[String], context: Context) -> Change {
        let job = self.job;
        if workers.is_empty() {
            return ignore(Ignored::Repeated);
        }
        let workers = workers.get(..MOST_WORKERS).unwrap_or(workers);
        let asked = job.dispatch_target.as_ref().unwrap_or(&job.workers_requested);
        let (target, failed_before, registry) = match context {
            Context::Post { target, failed_before, registry } => (target, failed_before, registry),
            // Nothing but a POST has been sent while the job is SUBMITTING.
            Context::Unknown | Context::Answer { .. } if job.status == JobStatus::Submitting => {
                (asked.clone(), 0, Registry::Filling)
            }
            Context::Get { target: Workers::All, registry } if job.workers_dispatched.is_empty() => {
                return self.of_all(workers, registry);
            }
            _ => return ignore(Ignored::Repeated),
        };
        let mut change = Change::default();
        if job.workers_dispatched.is_empty() {
            match asked {
                // A list is a promise to the caller: what the broker left out of it must answer for itself.
                Workers::List(names) => change.dispatched = Some(names.clone()),
                // One to some of them says nothing of the others.
                Workers::All if target.names().is_some() => {}
                // None but who is named now can have got it.
                Workers::All if job.posts_refused.saturating_add(1) >= job.posts_sent => {
                    change = self.of_all(workers, Registry::Settled);
                }
                Workers::All => change = self.of_all(workers, registry),
                _ => change.dispatched = Some(workers.to_vec()),
            }
        }
        let missing = target.names().unwrap_or_default().iter().filter(|name| !workers.contains(name)).cloned();
        self.not_delivered(&mut change, missing.collect(), failed_before);
        change
    }

    /// The broker names the workers that there are, for a job that is for all of them.
    fn of_all(&self, workers: &[String], registry: Registry) -> Change {
        match registry {
            Registry::Settled => Change { dispatched: Some(self.with_started(workers)), ..Change::default() },
            Registry::Filling => Change { follow_up: Some(FollowUp::AskAll), ..Change::default() },
        }
    }

    /// The workers that the broker names, and those that have shown that they have the job: one may be away for a moment.
    fn with_started(&self, workers: &[String]) -> Vec<String> {
        let away = self.job.workers_started.iter().filter(|name| !workers.contains(name));
        workers.iter().chain(away).cloned().collect()
    }

    /// Workers that the broker does not know are tried again; those of an immediate job, and those that were tried long
    /// enough, have failed. A POST of which it is not known that it left them out may have reached them, though: then they
    /// are asked for until the deadline.
    fn not_delivered(&self, change: &mut Change, mut workers: Vec<String>, failed_before: u32) {
        let job = self.job;
        workers.retain(|name| !job.workers_completed.contains(name) && !job.workers_started.contains(name));
        if workers.is_empty() {
            return;
        }
        match self.policy.next_attempt(job, self.now, failed_before.saturating_add(1)) {
            Some(at) => change.follow_up = Some(FollowUp::SendAgain { workers, at }),
            None if job.posts_sent > failed_before.saturating_add(1) => {}
            None => workers.iter().for_each(|worker| {
                fail(job, change, worker, format!("worker {worker:?} is not registered with the broker"));
            }),
        }
    }

    /// A 400. While the job is SUBMITTING it can only answer the POST.
    fn refused(&self, errors: Vec<String>, context: Context) -> Change {
        let job = self.job;
        if job.status == JobStatus::Submitting {
            return self.post_refused(errors);
        }
        match context {
            Context::Post { target, failed_before, .. } => {
                let mut change = Change { post_refused: true, ..Change::default() };
                self.not_delivered(&mut change, target.names().unwrap_or_default().to_vec(), failed_before);
                change
            }
            // It was given to one worker, which has not said that it has it, and another would do.
            _ if job.workers_requested == Workers::Any && job.workers_started.is_empty() => {
                Change { follow_up: Some(FollowUp::Gone), ..Change::default() }
            }
            _ => ignore(Ignored::NotYet),
        }
    }

    fn post_refused(&self, errors: Vec<String>) -> Change {
        let job = self.job;
        let refusals = job.posts_refused.saturating_add(1);
        let change = Change { post_refused: true, ..Change::default() };
        if refusals < job.posts_sent {
            // An earlier POST may have arrived: it is asked for until the deadline.
            return Change { status: Some(JobStatus::Dispatched), ..change };
        }
        let reason = errors.first().cloned().unwrap_or_else(|| "the broker refused the job".to_owned());
        let any = job.workers_requested == Workers::Any;
        let at = match refusals {
            // The worker that was chosen is gone, others may be there.
            1 if any => Some(self.now),
            _ if any => self.policy.next_attempt(job, self.now, refusals - 1),
            _ => self.policy.next_attempt(job, self.now, refusals),
        };
        match at {
            Some(at) => {
                let target = if any { RetryTarget::Anew } else { RetryTarget::Same };
                Change { status: Some(JobStatus::New), retry: Some(Retry { at, target, reason }), ..change }
            }
            None => {
                let errors = if errors.is_empty() { vec![reason] } else { errors };
                Change { status: Some(JobStatus::Failed), errors, ..change }
            }
        }
    }

    /// A 404. Its two threads may have raced, so that it may even overtake the 201, or the POST was lost on the way. Asked
    /// again, a worker that was known to have the job has lost it; any other gets it again. When it may not start any more,
    /// the worker is asked on until it has said so long enough.
    fn not_found(&self, worker: String, context: &Context) -> Change {
        let job = self.job;
        let expected = job.expected_workers().is_none_or(|names| names.contains(&worker));
        if !expected {
            return ignore(Ignored::UnknownWorker);
        }
        if job.workers_completed.contains(&worker) {
            return ignore(Ignored::Repeated);
        }
        let had_it = job.workers_started.contains(&worker);
        let said_before = if let Context::Repeated(times) = context { *times } else { 0 };
        let mut change = Change::default();
        if job.status == JobStatus::Submitting {
            return ignore(Ignored::NotYet);
        } else if said_before < if had_it { LOST } else { 1 } {
            change.follow_up = Some(FollowUp::AskAgain(worker));
        } else if had_it {
            let message = format!("worker {worker:?} lost the job: it had stored it, and does not know it any more");
            fail(job, &mut change, &worker, message);
        } else if job.is_too_late_to_start(self.now) {
            if said_before < BELIEVED {
                return ignore(Ignored::NotYet);
            }
            let message = format!("worker {worker:?} never had the job, and its start deadline has passed");
            fail(job, &mut change, &worker, message);
        } else if job.deadline.is_some_and(|deadline| deadline <= self.now) {
            return ignore(Ignored::NotYet);
        } else {
            change.follow_up = Some(FollowUp::SendAgain { workers: vec![worker], at: self.now });
        }
        change
    }
}

/// A worker of which no result will come.
fn fail(job: &Job, change: &mut Change, worker: &str, message: String) {
    change.results.push((worker.to_owned(), failed_result(job, worker, "error", &message)));
    change.errors.push(message);
}

/// What every sign of a worker has in common: it must be one of the job's, and it has the job. A job for all is also for one
/// that the broker did not name when it was asked.
fn of_worker(job: &Job, worker: String, more: impl FnOnce(&mut Change, &str)) -> Change {
    let mut change = Change::default();
    if job.expected_workers().is_some_and(|names| !names.contains(&worker)) {
        if job.workers_requested != Workers::All || job.workers_dispatched.len() >= MOST_WORKERS {
            return ignore(Ignored::UnknownWorker);
        }
        change.dispatched = Some(job.workers_dispatched.iter().chain([&worker]).cloned().collect());
    }
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
                change.follow_up = Some(FollowUp::Fetch(worker.to_owned()));
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
    let from = if job.posts_refused > 0 { "last attempt" } else { "release" };
    let message = if job.status == JobStatus::New {
        format!("the deadline passed {} s after the {from}, before the job was sent", job.timeout)
    } else if job.expected_workers().is_none() && !job.workers_completed.is_empty() {
        format!(
            "the deadline passed {} s after the {from}, before it was known whether further workers have the job",
            job.timeout
        )
    } else {
        format!(
            "the deadline passed {} s after the {from} without a result of {}; the task may still run there",
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
