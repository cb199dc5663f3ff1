//! The steps of a job's life as pure functions, for both stores: what changes in the job, and the event that tells of it.
//!
//! A step answers whether the job takes it; one that is in another status stays as it is.

mod delivery;
mod fold;

use std::time::Duration;

use norfab_model::{
    InputAnswer, Job, JobEvent, JobId, JobStatus, Json, Link, MissedJobs, Overdue, Poll, Post, Results, ScheduleId,
    Timestamp, Workers, expire, run_failed,
};

pub(crate) use delivery::{AgainStep, ClaimStep, claim, fail, send_again};
use delivery::{ask_instead, is_overdue};
pub(crate) use fold::{Fold, Stored, must_last, needs_results};

/// The longest pause before another attempt to send a job.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// How long a call may wait between reading the clock and its turn.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How many delayed jobs one call releases, and how many one call expires. What is left is due at once.
pub(crate) const BATCH: u32 = 10_000;
/// Once the payloads of a claim have as many bytes, it takes no further job.
pub(crate) const MOST_CLAIMED_BYTES: usize = 64 << 20;
/// How many unfinished jobs are listed.
pub(crate) const MOST_UNFINISHED: u32 = 100_000;
/// Bytes of results that are kept for a job, unless told otherwise.
pub(crate) const MOST_RESULT_BYTES: usize = 64 << 20;
/// Characters of an event's message that the client writes itself.
const MOST_MESSAGE_CHARS: usize = 500;

/// An event of the client's own.
fn event(job: &JobId, now: Timestamp, severity: &str, message: &str) -> JobEvent {
    JobEvent {
        id: 0,
        job_uuid: job.clone(),
        message: message.chars().take(MOST_MESSAGE_CHARS).collect(),
        severity: severity.to_owned(),
        task: None,
        data: Json::empty_object(),
        created_at: Some(now.floor_second()),
    }
}

/// What is noted of a job that was just added: nothing of an immediate one.
pub(crate) fn added(job: &Job, now: Timestamp) -> Option<JobEvent> {
    job.scheduled_for.map(|at| {
        let message = match job.start_deadline {
            Some(latest) => format!("scheduled for {at}, to start at {latest} at the latest"),
            None => format!("scheduled for {at}"),
        };
        event(&job.uuid, now, "INFO", &message)
    })
}

/// How late a release is told of as an event; by how much any is late, the columns of the job say.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Releases a delayed job that is due while the link is up, or marks it missed when its start deadline has passed,
/// whenever it was meant to start.
pub(crate) fn release(job: &mut Job, now: Timestamp, link: Link) -> Option<JobEvent> {
    if job.status != JobStatus::Scheduled {
        return None;
    }
    if let Some(latest) = job.start_deadline.filter(|latest| *latest < now) {
        end(job, JobStatus::Missed, now);
        return Some(event(&job.uuid, now, "WARNING", &format!("missed: the start deadline {latest} passed")));
    }
    let scheduled_for = job.scheduled_for.filter(|at| *at <= now && link == Link::Up)?;
    job.status = JobStatus::New;
    job.released_at = Some(now);
    job.deadline = Some(now.plus_seconds(job.timeout));
    let late = now.since(scheduled_for);
    (late >= WORTH_TELLING)
        .then(|| event(&job.uuid, now, "INFO", &format!("released {} after its time", seconds(late))))
}

/// Withdraws a job that waits for its time.
pub(crate) fn cancel(job: &mut Job, now: Timestamp) -> Option<JobEvent> {
    if job.status != JobStatus::Scheduled {
        return None;
    }
    end(job, JobStatus::Cancelled, now);
    Some(event(&job.uuid, now, "INFO", "cancelled"))
}

/// Moves the time of a job that waits for it, and its start deadline as far.
pub(crate) fn reschedule(job: &mut Job, now: Timestamp, to: Timestamp) -> Option<JobEvent> {
    let from = job.scheduled_for.filter(|_| job.status == JobStatus::Scheduled)?;
    job.scheduled_for = Some(to);
    job.start_deadline = job.start_deadline.map(|latest| to.saturating_add(latest.since(from)));
    Some(event(&job.uuid, now, "INFO", &format!("rescheduled from {from} to {to}")))
}

/// Whether a NEW job may be sent now.
pub(crate) fn may_be_sent(job: &Job, now: Timestamp) -> bool {
    job.status == JobStatus::New && job.next_attempt_at.is_none_or(|at| at <= now)
}

/// What to send of a job to these workers.
pub(crate) fn post(job: &Job, target: Workers, args: Json, kwargs: Json) -> Post {
    Post {
        job: job.uuid.clone(),
        service: job.service.clone(),
        target,
        task: job.task.clone(),
        args,
        kwargs,
        timeout: job.timeout,
        schedule_id: job.schedule_id.clone(),
        scheduled_for: job.scheduled_for,
    }
}

/// Ends a NEW job whose payload cannot be read.
pub(crate) fn fail_unreadable(job: &mut Job, now: Timestamp, reason: &str) -> JobEvent {
    fail(job, now, &format!("the stored arguments cannot be read: {reason}"))
}

/// What to ask for, for a job in flight.
pub(crate) fn poll(job: &Job) -> Poll {
    Poll { job: job.uuid.clone(), service: job.service.clone(), target: job.outstanding_workers() }
}

/// Whether a job may expire now at all.
pub(crate) fn may_expire(job: &Job, overdue: Overdue) -> bool {
    overdue == Overdue::All || job.status == JobStatus::New
}

/// Ends a job whose deadline has passed; the results that did not come are added as such.
pub(crate) fn expire_job(job: &mut Job, stored: Stored, now: Timestamp) -> Option<(JobEvent, Results)> {
    if !job.status.can_become(JobStatus::Stale) {
        return None;
    }
    if job.status == JobStatus::New && job.may_have_arrived() {
        let results = stored.kept(job);
        return Some((ask_instead(job, now), results));
    }
    let mut results = stored.kept(job);
    let change = expire(job);
    job.apply(&change);
    end(job, JobStatus::Stale, now);
    for (worker, result) in change.results {
        results.entry(worker).or_insert(result);
    }
    let message = change.errors.first().map_or("the deadline passed", String::as_str);
    Some((event(&job.uuid, now, "WARNING", message), results))
}

/// Brings the instants of an unfinished job back to at most their full length from `now`; tells whether one moved. A
/// deadline may be a little ahead: whoever added the job may have read the clock a moment later.
pub(crate) fn realign(job: &mut Job, now: Timestamp) -> Option<()> {
    if job.status != JobStatus::New && !job.status.is_in_flight() {
        return None;
    }
    let next = job.next_attempt_at.map_or(now, |at| at.min(now.saturating_add(LONGEST_RETRY)).max(now));
    let deadline = next.plus_seconds(job.timeout);
    let latest = [
        (&mut job.deadline, deadline, deadline.saturating_add(LONGEST_WAIT)),
        (&mut job.last_poll, now, now),
        (&mut job.next_attempt_at, now.saturating_add(LONGEST_RETRY), now.saturating_add(LONGEST_RETRY)),
    ];
    let stands_wrong = latest.iter().any(|(instant, _, bearable)| instant.is_some_and(|instant| instant > *bearable));
    if !stands_wrong {
        return None;
    }
    for (instant, latest, _) in latest {
        *instant = instant.map(|instant| instant.min(latest));
    }
    Some(())
}

/// After a restart: a claim is taken back, unless the job should not start any more, and what else is in flight counts as
/// never asked for.
pub(crate) fn recover(job: &mut Job, now: Timestamp) {
    if job.status == JobStatus::Submitting {
        // The claim of another program counts for one.
        job.posts_sent = job.posts_sent.max(1);
        let again = !job.is_too_late_to_start(now) && !is_overdue(job, now);
        job.status = if again { JobStatus::New } else { JobStatus::Dispatched };
        job.next_attempt_at = None;
    }
    if job.status.is_polled() {
        job.last_poll = None;
    }
}

/// Takes back a claim of which no message left the process. A target that was chosen by it is forgotten.
pub(crate) fn unclaim(job: &mut Job) {
    if job.status != JobStatus::Submitting {
        return;
    }
    job.status = JobStatus::New;
    job.posts_sent = job.posts_sent.saturating_sub(1);
    job.next_attempt_at = None;
    job.last_poll = None;
    if job.posts_sent == 0 {
        job.dispatch_target = None;
    }
}

/// Whether the question that this answers is still open.
pub(crate) fn awaits(job: &Job, worker: &str, answer: &InputAnswer) -> bool {
    !job.status.is_terminal() && job.pending_inputs.get(worker).is_some_and(|asked| asked.id == answer.input_id)
}

/// Gives up a job that no worker can have: one that is NEW, or whose time has come, and of which every POST was refused.
pub(crate) fn give_up(job: &mut Job, now: Timestamp, reason: &str) -> Option<JobEvent> {
    let ready = match job.status {
        JobStatus::New => true,
        JobStatus::Scheduled => job.scheduled_for.is_some_and(|at| at <= now),
        _ => false,
    };
    if !ready || job.posts_refused < job.posts_sent {
        return None;
    }
    job.errors.push(reason.to_owned());
    end(job, JobStatus::Failed, now);
    Some(event(&job.uuid, now, "ERROR", &format!("gave up: {reason}")))
}

/// What is noted of the MISSED job that stands for occurrences beyond their grace.
pub(crate) fn missed_occurrences(job: &Job, now: Timestamp, missed: &MissedJobs) -> JobEvent {
    event(&job.uuid, now, "WARNING", &missed.to_string())
}

/// The schedule of a job that has ended and was not ended `before`, when that counts as a failed run.
pub(crate) fn failed_run<'a>(before: JobStatus, job: &'a Job, results: &Results) -> Option<&'a ScheduleId> {
    let schedule = job.schedule_id.as_ref().filter(|_| !before.is_terminal())?;
    run_failed(job.status, results.values()).then_some(schedule)
}

fn end(job: &mut Job, status: JobStatus, now: Timestamp) {
    job.status = status;
    job.finished_at = Some(now);
    job.next_attempt_at = None;
    job.pending_inputs.clear();
}

/// A short span, as a person reads it.
fn seconds(span: Duration) -> String {
    if span < Duration::from_secs(60) {
        format!("{:.1} s", span.as_secs_f64())
    } else {
        format!("{} s", span.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use norfab_model::{Limits, LiveWorkers, NewJob, Resend, RetryPolicy};

    use super::*;

    const START: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn delayed() -> Job {
        let new = NewJob::new("dummy", "echo").workers(Workers::Any).at(START).grace(60).timeout(10);
        Limits::default().check_job(START, new).unwrap().row(START)
    }

    fn later(millis: u64) -> Timestamp {
        START.saturating_add(Duration::from_millis(millis))
    }

    #[track_caller]
    fn check(millis: u64, link: Link, status: JobStatus, message: Option<&str>) {
        let mut job = delayed();
        let event = release(&mut job, later(millis), link);
        assert_eq!((job.status, event.map(|event| event.message).as_deref()), (status, message));
    }

    fn sent(job: &mut Job, now: Timestamp, live: Option<&LiveWorkers>) {
        assert!(matches!(claim(job, now, live, RetryPolicy::default()), ClaimStep::Send));
    }

    /// This one worker is there.
    fn alive(asked_at: Timestamp) -> LiveWorkers {
        let answer = Json::parse(r#"[{"name":"w1","service":"dummy","status":"alive"}]"#).unwrap();
        LiveWorkers::from_answer(asked_at, &answer).unwrap()
    }

    #[test]
    fn release_and_miss() {
        check(200, Link::Up, JobStatus::New, None);
        check(1000, Link::Up, JobStatus::New, Some("released 1.0 s after its time"));
        check(200, Link::Down, JobStatus::Scheduled, None);
        check(60_000, Link::Up, JobStatus::New, Some("released 60 s after its time"));
        let missed = "missed: the start deadline 2026-11-30T00:01:00Z passed";
        check(60_001, Link::Up, JobStatus::Missed, Some(missed));
        check(60_001, Link::Down, JobStatus::Missed, Some(missed));
    }

    #[test]
    fn a_claim_renews_the_deadline_of_another_attempt_only() {
        let mut job = delayed();
        release(&mut job, START, Link::Up);
        let live = alive(START);
        sent(&mut job, later(3000), Some(&live));
        assert_eq!((job.deadline, job.posts_sent), (Some(later(10_000)), 1));
        recover(&mut job, later(4000));
        sent(&mut job, later(4000), None);
        assert_eq!((job.deadline, job.posts_sent), (Some(later(10_000)), 2));
        job.status = JobStatus::New;
        job.next_attempt_at = Some(later(5000));
        sent(&mut job, later(5000), None);
        assert_eq!((job.deadline, job.next_attempt_at), (Some(later(15_000)), None));
    }

    #[test]
    fn what_may_not_start_any_more_is_not_sent_by_any_way() {
        let late = later(60_001);
        let mut released = delayed();
        release(&mut released, START, Link::Up);
        let (mut new, mut claimed) = (released.clone(), released);
        assert!(matches!(claim(&mut new, late, Some(&alive(late)), RetryPolicy::default()), ClaimStep::Failed(_)));
        assert_eq!(new.errors, ["the start deadline 2026-11-30T00:01:00Z passed before it could be sent"]);

        sent(&mut claimed, START, Some(&alive(START)));
        let mut asked = claimed.clone();
        assert!(matches!(send_again(&mut asked, late, &Resend::Unanswered, None), AgainStep::Ask(_)));
        assert_eq!((asked.status, asked.last_poll, asked.posts_sent), (JobStatus::Dispatched, None, 1));
        let again = |why| send_again(&mut asked.clone(), late, &why, Some(&alive(late)));
        assert!(matches!(again(Resend::Lost(vec!["w1".to_owned()])), AgainStep::Nothing));
        assert!(matches!(again(Resend::Elsewhere), AgainStep::Nothing));
        recover(&mut claimed, late);
        assert_eq!((claimed.status, claimed.last_poll), (JobStatus::Dispatched, None));
    }

    #[test]
    fn what_may_have_arrived_is_asked_for_before_it_expires() {
        let mut job = delayed();
        release(&mut job, START, Link::Up);
        sent(&mut job, START, Some(&alive(START)));
        recover(&mut job, later(1000));
        assert_eq!(job.status, JobStatus::New);
        let mut late = job.clone();
        assert!(expire_job(&mut job, Stored(Ok(Results::new())), later(10_000)).is_some());
        assert_eq!((job.status, job.last_poll, job.finished_at), (JobStatus::Dispatched, None, None));
        let step = claim(&mut late, later(60_001), None, RetryPolicy::default());
        assert!(matches!(step, ClaimStep::Postponed(_)) && late.status == JobStatus::Dispatched);
        expire_job(&mut job, Stored(Ok(Results::new())), later(10_000)).unwrap();
        assert_eq!(job.status, JobStatus::Stale);
    }

    #[test]
    fn a_pause_before_another_attempt_is_no_clock_that_went_back() {
        let mut job = delayed();
        release(&mut job, START, Link::Up);
        (job.next_attempt_at, job.deadline) = (Some(later(8000)), Some(later(18_000)));
        assert_eq!(realign(&mut job, START), None);
        // Nor is a job that was added a moment after the clock was read.
        job.deadline = Some(later(18_000 + 60_000));
        assert_eq!(realign(&mut job, START), None);
        let hour = START.saturating_sub(Duration::from_secs(3600));
        assert_eq!(realign(&mut job, hour), Some(()));
        assert_eq!(job.deadline, Some(hour.plus_seconds(20)));
    }

    #[test]
    fn a_message_has_an_end() {
        let mut job = delayed();
        let event = give_up(&mut job, START, &"because ".repeat(1000)).unwrap();
        assert_eq!(event.message.chars().count(), MOST_MESSAGE_CHARS);
    }

    #[test]
    fn of_results_that_cannot_be_read_every_worker_is_missing() {
        let mut job = delayed();
        release(&mut job, START, Link::Up);
        sent(&mut job, START, Some(&alive(START)));
        (job.status, job.workers_dispatched) = (JobStatus::Started, vec!["w1".to_owned(), "w2".to_owned()]);
        job.workers_completed.insert("w1".to_owned());
        let (_, results) = expire_job(&mut job, Stored(Err("it is damaged".to_owned())), later(10_000)).unwrap();
        assert_eq!((results.len(), job.errors.len()), (2, 2));
        assert!(job.errors[0].ends_with("it is damaged"));
    }
}
