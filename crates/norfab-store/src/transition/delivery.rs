//! Handing jobs to the fabric: the claim, and sending again what was not delivered.

use norfab_model::{Job, JobEvent, JobStatus, LiveWorkers, Placement, Resend, RetryPolicy, Timestamp, Workers, place};

use super::{end, event, seconds};

/// What comes of the attempt to claim a NEW job.
pub(crate) enum ClaimStep {
    /// It is SUBMITTING, and is sent.
    Send,
    /// It is not sent now: NEW until another attempt, as nobody is there for it, or DISPATCHED, to be asked for.
    Postponed(Option<JobEvent>),
    /// It is FAILED.
    Failed(JobEvent),
    /// It stays as it is: the live workers must be asked for first.
    Unplaced,
}

/// Claims a NEW job. One that waited for another attempt gets its full time again.
pub(crate) fn claim(job: &mut Job, now: Timestamp, live: Option<&LiveWorkers>, policy: RetryPolicy) -> ClaimStep {
    if job.is_too_late_to_start(now) && job.may_have_arrived() {
        return ClaimStep::Postponed(Some(ask_instead(job, now)));
    }
    if let Some(latest) = job.start_deadline.filter(|_| job.is_too_late_to_start(now)) {
        return ClaimStep::Failed(fail(
            job,
            now,
            &format!("the start deadline {latest} passed before it could be sent"),
        ));
    }
    let target = match place(job, now, live) {
        Placement::To(target) => target,
        Placement::Nobody => return postpone(job, now, policy),
        Placement::Ask => return ClaimStep::Unplaced,
    };
    if job.next_attempt_at.take().is_some() || job.deadline.is_none() {
        job.deadline = Some(now.plus_seconds(job.timeout));
    }
    job.status = JobStatus::Submitting;
    job.dispatch_target = Some(target);
    job.posts_sent = job.posts_sent.saturating_add(1);
    job.last_poll = Some(now);
    ClaimStep::Send
}

/// A job to any worker for which there is none: as if a POST of it had been refused.
fn postpone(job: &mut Job, now: Timestamp, policy: RetryPolicy) -> ClaimStep {
    let reason = format!("no worker of service {:?} is registered with the broker", job.service);
    let refusals = job.posts_refused.saturating_add(1);
    match policy.next_attempt(job, now, refusals) {
        None => ClaimStep::Failed(fail(job, now, &reason)),
        Some(at) => {
            job.posts_sent = job.posts_sent.saturating_add(1);
            job.posts_refused = refusals;
            job.next_attempt_at = Some(at);
            job.deadline = Some(at.plus_seconds(job.timeout));
            ClaimStep::Postponed(not_delivered(job, now, at, &reason))
        }
    }
}

/// What is noted of a refusal, when it is worth it.
pub(super) fn not_delivered(job: &Job, now: Timestamp, at: Timestamp, reason: &str) -> Option<JobEvent> {
    let wait = seconds(at.since(now));
    let told = || event(&job.uuid, now, "WARNING", &format!("not delivered, tried again in {wait}: {reason}"));
    RetryPolicy::is_news(job.posts_refused).then(told)
}

/// A job that may have been sent, and must not be sent any more, is asked for.
pub(super) fn ask_instead(job: &mut Job, now: Timestamp) -> JobEvent {
    job.status = JobStatus::Dispatched;
    job.last_poll = None;
    job.next_attempt_at = None;
    let message = "the broker has not confirmed it, and it is too late to send it again; its workers are asked for it";
    event(&job.uuid, now, "WARNING", message)
}

/// Ends a NEW job that cannot be sent.
pub(crate) fn fail(job: &mut Job, now: Timestamp, reason: &str) -> JobEvent {
    job.errors.push(reason.to_owned());
    end(job, JobStatus::Failed, now);
    event(&job.uuid, now, "ERROR", &format!("failed: {reason}"))
}

/// What comes of sending a job in flight again.
pub(crate) enum AgainStep {
    /// It is sent to these.
    Send(Workers, JobEvent),
    /// It is not sent, as it may not start any more; it is asked for instead.
    Ask(JobEvent),
    /// There is no need any more, or nobody to send it to.
    Nothing,
}

/// Sends a job in flight again, where that is still needed.
pub(crate) fn send_again(job: &mut Job, now: Timestamp, why: &Resend, live: Option<&LiveWorkers>) -> AgainStep {
    let step = match why {
        Resend::Unanswered if job.status == JobStatus::Submitting => {
            if job.is_too_late_to_start(now) || is_overdue(job, now) {
                return AgainStep::Ask(ask_instead(job, now));
            }
            let target = job.dispatch_target.as_ref().unwrap_or(&job.workers_requested).clone();
            let message = format!("sent again to {target}: the broker has not confirmed it");
            Some((target, message))
        }
        Resend::Lost(workers) if job.status.is_polled() && !job.is_too_late_to_start(now) => {
            let needed = |worker: &&String| {
                !job.workers_started.contains(*worker)
                    && !job.workers_completed.contains(*worker)
                    && job.expected_workers().is_none_or(|names| names.contains(worker))
            };
            let workers: Vec<String> = workers.iter().filter(needed).cloned().collect();
            let target = Workers::List(workers.clone());
            (!workers.is_empty()).then(|| (target, format!("sent again to {}: not delivered yet", workers.join(", "))))
        }
        Resend::Elsewhere if job.status.is_polled() && !job.is_too_late_to_start(now) => elsewhere(job, live),
        _ => None,
    };
    let Some((target, message)) = step else { return AgainStep::Nothing };
    job.posts_sent = job.posts_sent.saturating_add(1);
    job.last_poll = Some(now);
    AgainStep::Send(target, event(&job.uuid, now, "WARNING", &message))
}

/// Gives a job to another worker, when any will do and none has said that it has it.
fn elsewhere(job: &mut Job, live: Option<&LiveWorkers>) -> Option<(Workers, String)> {
    if job.workers_requested != Workers::Any || !job.workers_started.is_empty() {
        return None;
    }
    let gone = job.expected_workers().unwrap_or_default().to_vec();
    let chosen = live?.choose(&job.uuid, &job.service, &gone)?.to_owned();
    let message = format!("sent to {chosen}: {} is gone", gone.join(", "));
    let target = Workers::One(chosen.clone());
    job.dispatch_target = Some(target.clone());
    job.workers_dispatched = vec![chosen];
    Some((target, message))
}

pub(super) fn is_overdue(job: &Job, now: Timestamp) -> bool {
    job.deadline.is_some_and(|deadline| deadline <= now)
}
