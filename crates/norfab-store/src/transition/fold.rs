//! Replies applied to one job, in their order, and what becomes of its results.

use norfab_model::{
    Change, Context, FollowUp, Ignored, Job, JobEvent, JobStatus, Json, Reply, ReplyKind, Results, RetryPolicy,
    ScheduleId, Timestamp, Workers, decide, failed_result,
};

use super::delivery::not_delivered;
use super::{event, failed_run};

/// The most bytes of results that go to who waits for a job without being read from the store.
const MOST_HANDED_AROUND: usize = 64 << 10;

/// The results of a job as they are stored, or why they cannot be read.
pub(crate) struct Stored(pub(crate) Result<Results, String>);

impl Stored {
    /// The results. Of what cannot be read nothing is kept; it is said in the errors, and the workers count as not
    /// having answered, so that they are asked again.
    pub(super) fn kept(self, job: &mut Job) -> Results {
        self.0.unwrap_or_else(|reason| {
            job.errors.push(format!("the results stored so far cannot be read, they are asked for again: {reason}"));
            job.workers_completed.clear();
            Results::new()
        })
    }
}

/// One job while replies are applied to it.
pub(crate) struct Fold {
    /// The job as it was.
    pub(crate) before: Job,
    /// The job as it is by now.
    pub(crate) job: Job,
    /// Its results, when they were loaded.
    pub(crate) results: Option<Results>,
    /// The events to store.
    pub(crate) events: Vec<JobEvent>,
    /// What to do next, in order.
    pub(crate) follow_ups: Vec<FollowUp>,
    /// Whether `results` is to be stored.
    pub(crate) results_changed: bool,
}

impl Fold {
    /// Starts with a job; its results are needed when [`needs_results`] says so of a reply.
    pub(crate) fn new(job: Job, stored: Option<Stored>) -> Self {
        let before = job.clone();
        let mut job = job;
        let results = stored.map(|stored| stored.kept(&mut job));
        let results_changed = job.errors.len() > before.errors.len();
        Self { before, job, results, events: Vec::new(), follow_ups: Vec::new(), results_changed }
    }

    /// Applies one reply. Says why, when it changes nothing.
    pub(crate) fn apply(
        &mut self,
        now: Timestamp,
        policy: RetryPolicy,
        reply: Reply,
        most_bytes: usize,
    ) -> Option<Ignored> {
        let change = decide(&self.job, now, policy, reply);
        if change.ignored.is_some() {
            return change.ignored;
        }
        self.job.apply(&change);
        self.note_times(now);
        self.note_events(&change, now);
        let Change { results, event, follow_up, .. } = change;
        self.events.extend(event.map(|event| JobEvent::from((self.job.uuid.clone(), event, now))));
        self.follow_ups.extend(follow_up);
        if !results.is_empty() {
            keep_results(&self.job, self.results.get_or_insert_default(), results, most_bytes);
            self.results_changed = true;
        }
        None
    }

    /// Whether the row is to be written.
    pub(crate) fn changed(&self) -> bool {
        self.results_changed || self.job != self.before
    }

    /// The schedule that has one more failed run by this.
    pub(crate) fn failed_run(&self) -> Option<&ScheduleId> {
        let none = Results::new();
        failed_run(self.before.status, &self.job, self.results.as_ref().unwrap_or(&none))
    }

    /// The results of a job that ended by these replies, unless they are too large to be handed around.
    pub(crate) fn results_of_end(&self) -> Option<Results> {
        let ended = self.job.status.is_terminal() && !self.before.status.is_terminal();
        let results = self.results.as_ref().filter(|_| ended)?;
        let bytes: usize = results.iter().map(|(worker, result)| worker.len() + result.as_str().len()).sum();
        (bytes <= MOST_HANDED_AROUND).then(|| results.clone())
    }

    fn note_times(&mut self, now: Timestamp) {
        let job = &mut self.job;
        if job.started_at.is_none() && (job.status.is_polled() || job.status == JobStatus::Completed) {
            job.started_at = Some(now);
        }
        if job.status.is_terminal() {
            job.finished_at = Some(now);
        }
    }

    fn note_events(&mut self, change: &Change, now: Timestamp) {
        if let Some(retry) = &change.retry {
            self.events.extend(not_delivered(&self.job, now, retry.at, &retry.reason));
        }
        for error in &change.errors {
            let message = if self.job.status == JobStatus::Failed { format!("failed: {error}") } else { error.clone() };
            self.events.push(event(&self.job.uuid, now, "ERROR", &message));
        }
    }
}

/// Whether a reply may bring or make results, or end the job, so that those that are stored have to be at hand: whether
/// a run failed is seen by them.
pub(crate) fn needs_results(reply: &Reply) -> bool {
    match reply.kind {
        ReplyKind::Result { .. } | ReplyKind::NotFound { .. } => true,
        // A POST that was not delivered makes results. The answer to a GET is of no weight, but where it tells of whom
        // there is: all of them may have answered.
        ReplyKind::Accepted { .. } => !matches!(&reply.context, Context::Get { target, .. } if *target != Workers::All),
        ReplyKind::Refused { .. } => !matches!(reply.context, Context::Get { .. }),
        _ => false,
    }
}

/// Whether what a reply changes must outlast a power cut. It does when the reply may end a job, or a worker's part of it,
/// that the worker never had: that is told, and the job must not be sent again. And when it fixes the workers of a job that
/// went to whoever was there: it must not be sent to others. All else the fabric says again when it is asked.
pub(crate) fn must_last(reply: &Reply) -> bool {
    match &reply.kind {
        ReplyKind::Refused { .. } | ReplyKind::NotFound { .. } => true,
        ReplyKind::Accepted { workers } => match &reply.context {
            Context::Post { target, .. } | Context::Answer { target } => {
                target.names().is_none_or(|names| names.iter().any(|name| !workers.contains(name)))
            }
            Context::Unknown => true,
            Context::Get { .. } | Context::Repeated(_) => false,
        },
        _ => false,
    }
}

/// Adds results. One that makes the whole larger than is read back becomes a failure of that worker.
fn keep_results(job: &Job, kept: &mut Results, new: Vec<(String, Json)>, most_bytes: usize) {
    let size = |worker: &str, result: &Json| worker.len() + result.as_str().len() + 8;
    let mut total: usize = kept.iter().map(|(worker, result)| size(worker, result)).sum();
    for (worker, result) in new {
        let bytes = size(&worker, &result);
        let result = if total.saturating_add(bytes) > most_bytes {
            let message = format!("the result has {bytes} bytes, and {most_bytes} is the most that is kept for a job");
            failed_result(job, &worker, "error", &message)
        } else {
            result
        };
        total = total.saturating_add(size(&worker, &result));
        kept.insert(worker, result);
    }
}

#[cfg(test)]
mod tests {
    use norfab_model::{JobId, Registry, Workers};

    use super::*;

    #[track_caller]
    fn check(kind: ReplyKind, context: Context, expected: bool) {
        let reply = Reply { context, ..Reply::new(JobId::new("job").unwrap(), kind) };
        assert_eq!(must_last(&reply), expected, "{reply:?}");
    }

    fn to(names: &[&str]) -> Context {
        let target = Workers::List(names.iter().map(|name| (*name).to_owned()).collect());
        Context::Post { target, failed_before: 0, registry: Registry::Settled }
    }

    #[test]
    fn what_the_fabric_says_again_may_be_lost_and_nothing_else() {
        let accepted = || ReplyKind::Accepted { workers: vec!["w1".to_owned()] };
        let worker = || "w1".to_owned();
        check(accepted(), to(&["w1"]), false);
        check(accepted(), to(&["w1", "w2"]), true);
        check(accepted(), Context::Post { target: Workers::All, failed_before: 0, registry: Registry::Settled }, true);
        check(accepted(), Context::Get { target: Workers::All, registry: Registry::Settled }, false);
        check(accepted(), Context::Unknown, true);
        check(ReplyKind::Stored { worker: worker() }, Context::Unknown, false);
        check(ReplyKind::Result { worker: worker(), result: Json::empty_object() }, Context::Unknown, false);
        check(ReplyKind::Refused { errors: Vec::new() }, to(&["w1"]), true);
        check(ReplyKind::NotFound { worker: worker() }, Context::Repeated(3), true);
    }
}
