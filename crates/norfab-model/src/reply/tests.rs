//! The reply decision as a table: a job, a reply, and what it changes.

use serde_json::Value;

use super::decide::ignore;
use super::*;
use crate::{Job, JobStatus, Limits, NewJob, Origin, RetryPolicy, Timestamp};

const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);

fn job(workers: Workers, status: JobStatus) -> Job {
    let new = NewJob::new("dummy", "echo").workers(workers);
    let mut job = Limits::default().check_job(NOW, new).expect("valid").row(NOW);
    job.status = status;
    job.posts_sent = 1;
    job
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn list(workers: &[&str]) -> Workers {
    Workers::List(names(workers))
}

/// A job for all, handed to w1 and w2; w1 has stored it.
fn started() -> Job {
    let mut job = job(Workers::All, JobStatus::Started);
    job.workers_dispatched = names(&["w1", "w2"]);
    job.workers_started.insert("w1".into());
    job
}

fn accepted_by(workers: &[&str]) -> ReplyKind {
    ReplyKind::Accepted { workers: names(workers) }
}

fn stored(worker: &str) -> ReplyKind {
    ReplyKind::Stored { worker: worker.into() }
}

fn result(worker: &str) -> ReplyKind {
    ReplyKind::Result { worker: worker.into(), result: Json::parse("{\"failed\":true}").expect("valid") }
}

fn refusal() -> ReplyKind {
    ReplyKind::Refused { errors: vec!["no such service".into()] }
}

fn request(id: &str) -> InputRequest {
    InputRequest {
        id: id.into(),
        question: "Go on?".into(),
        default: Value::Null,
        timeout: None,
        metadata: Value::Null,
    }
}

fn event(worker: &str, kind: FabricEventKind) -> ReplyKind {
    ReplyKind::Event(FabricEvent {
        worker: worker.into(),
        kind,
        message: "something".into(),
        severity: "INFO".into(),
        task: None,
        data: Json::empty_object(),
    })
}

fn judge(job: &Job, kind: ReplyKind, context: Context) -> Change {
    decide(job, NOW, RetryPolicy::default(), Reply { context, ..Reply::new(job.uuid.clone(), kind) })
}

/// Applies replies one after the other and tells the status after the last.
#[track_caller]
fn check(mut job: Job, replies: Vec<ReplyKind>, status: JobStatus) -> (Job, Vec<Change>) {
    let mut changes = Vec::new();
    for reply in replies {
        let before = job.status;
        let change = judge(&job, reply, Context::Unknown);
        job.apply(&change);
        assert!(before == job.status || before.can_become(job.status), "{before} to {}", job.status);
        changes.push(change);
    }
    assert_eq!(job.status, status);
    (job, changes)
}

#[track_caller]
fn ignored(job: &Job, reply: ReplyKind, why: Ignored) {
    assert_eq!(judge(job, reply, Context::Unknown), ignore(why));
}

#[test]
fn the_plain_life() {
    let replies = vec![
        accepted_by(&["w1", "w2"]),
        stored("w1"),
        stored("w2"),
        event("w1", FabricEventKind::ResultReady),
        result("w1"),
        result("w2"),
    ];
    let (job, changes) = check(job(Workers::All, JobStatus::Submitting), replies, JobStatus::Completed);
    let statuses: Vec<_> = changes.iter().filter_map(|change| change.status).collect();
    assert_eq!(statuses, [JobStatus::Dispatched, JobStatus::Started, JobStatus::Completed]);
    assert_eq!(changes[3].follow_up, Some(FollowUp::Fetch("w1".into())));
    assert_eq!(job.workers_completed.len(), 2);
}

#[test]
fn later_evidence_implies_the_earlier_states() {
    let one = || job(Workers::One("w1".into()), JobStatus::Submitting);
    check(one(), vec![stored("w1")], JobStatus::Started);
    check(one(), vec![ReplyKind::Pending { worker: "w1".into() }], JobStatus::Started);
    check(one(), vec![event("w1", FabricEventKind::Progress)], JobStatus::Started);
    check(
        one(),
        vec![ReplyKind::WaitingInput { worker: "w1".into(), request: request("q") }],
        JobStatus::WaitingClientInput,
    );
    check(one(), vec![result("w1")], JobStatus::Completed);
    check(job(list(&["w1", "w2"]), JobStatus::Dispatched), vec![result("w1")], JobStatus::Started);
}

#[test]
fn any_is_the_first_worker_that_speaks() {
    let (job, _) = check(job(Workers::Any, JobStatus::Submitting), vec![result("w2")], JobStatus::Completed);
    assert_eq!(job.workers_dispatched, ["w2"]);
}

#[test]
fn all_is_complete_only_when_its_workers_are_known() {
    let (job, _) = check(job(Workers::All, JobStatus::Submitting), vec![result("w1")], JobStatus::Started);
    let asked = |target, workers: &[&str]| {
        judge(&job, accepted_by(workers), Context::Get { target, registry: Registry::Settled })
    };
    assert_eq!(asked(Workers::All, &["w1"]).status, Some(JobStatus::Completed));
    assert_eq!(asked(Workers::All, &["w1", "w2"]).dispatched, Some(names(&["w1", "w2"])));
    // Who was asked by name says nothing of the others.
    assert_eq!(asked(list(&["w1"]), &["w1"]), ignore(Ignored::Repeated));
    ignored(&job, accepted_by(&["w1"]), Ignored::Repeated);
    assert_eq!(judge(&job, accepted_by(&["w1"]), posted(Workers::All, 0)).status, Some(JobStatus::Completed));
}

/// An earlier POST of a job for all may have reached workers that the broker, a new one, does not know yet.
#[test]
fn all_are_known_only_when_they_had_the_time_to_register() {
    let filling = |target, workers: &[&str], job: &Job| {
        let registry = Registry::Filling;
        judge(job, accepted_by(workers), Context::Get { target, registry })
    };
    let post = |job: &Job, registry| {
        let context = Context::Post { target: Workers::All, failed_before: 0, registry };
        judge(job, accepted_by(&["w1"]), context)
    };
    let again = Job { posts_sent: 2, ..job(Workers::All, JobStatus::Submitting) };
    let waits = post(&again, Registry::Filling);
    assert_eq!((waits.status, &waits.dispatched), (Some(JobStatus::Dispatched), &None));
    assert_eq!(waits.follow_up, Some(FollowUp::AskAll));
    assert_eq!(judge(&again, accepted_by(&["w1"]), Context::Unknown), waits);
    assert_eq!(post(&again, Registry::Settled).dispatched, Some(names(&["w1"])));

    let (answered, _) = check(again.clone(), vec![result("w1")], JobStatus::Started);
    let waits = filling(Workers::All, &["w1"], &answered);
    assert_eq!(waits, Change { follow_up: Some(FollowUp::AskAll), ..Change::default() });
    assert_eq!(judge(&answered, accepted_by(&["w1"]), got()).status, Some(JobStatus::Completed));
    // It was sent to one of them that lacked it, which is not all.
    let to_one = judge(&answered, accepted_by(&["w2"]), posted(list(&["w2"]), 0));
    assert_eq!(to_one, ignore(Ignored::Repeated));
    // Nobody can have got it before.
    let refused = Job { posts_refused: 1, ..again };
    assert_eq!(post(&refused, Registry::Filling).dispatched, Some(names(&["w1"])));
    // Those that are named are the set, whoever registers.
    let named = Job { posts_sent: 2, ..job(list(&["w1", "w2"]), JobStatus::Submitting) };
    assert_eq!(post(&named, Registry::Filling).dispatched, Some(names(&["w1", "w2"])));
}

#[test]
fn an_end_for_want_of_knowing_all_is_told() {
    let (answered, _) = check(job(Workers::All, JobStatus::Submitting), vec![result("w1")], JobStatus::Started);
    let change = expire(&answered);
    assert_eq!((change.status, change.results[0].0.as_str()), (Some(JobStatus::Stale), "all"));
    assert!(change.errors[0].contains("whether further workers have the job"), "{:?}", change.errors);
}

#[test]
fn only_the_first_202_names_the_workers() {
    ignored(&started(), accepted_by(&["w3"]), Ignored::Repeated);
}

fn delayed(job: Job) -> Job {
    Job { origin: Origin::Occurrence, ..job }
}

/// Sent to these, for the first time or after so many failed attempts.
fn posted(target: Workers, failed_before: u32) -> Context {
    Context::Post { target, failed_before, registry: Registry::Settled }
}

fn got() -> Context {
    Context::Get { target: Workers::All, registry: Registry::Settled }
}

fn send_again(workers: &[&str], seconds: u32) -> FollowUp {
    FollowUp::SendAgain { workers: names(workers), at: NOW.plus_seconds(seconds) }
}

#[test]
fn what_the_broker_leaves_out_of_a_list_fails_at_once_in_an_immediate_job() {
    let submitting = job(list(&["w1", "ghost"]), JobStatus::Submitting);
    let (after, changes) = check(submitting, vec![accepted_by(&["w1"]), result("w1")], JobStatus::Completed);
    assert_eq!(after.errors, ["worker \"ghost\" is not registered with the broker"]);
    assert!(changes[0].results[0].1.as_str().contains("\"failed\":true"));
}

#[test]
fn what_the_broker_leaves_out_of_a_list_is_tried_again_and_then_fails() {
    let both = list(&["w1", "ghost"]);
    let submitting = delayed(job(both.clone(), JobStatus::Submitting));
    let first = judge(&submitting, accepted_by(&["w1"]), posted(both.clone(), 0));
    assert_eq!((first.status, &first.follow_up), (Some(JobStatus::Dispatched), &Some(send_again(&["ghost"], 1))));
    assert_eq!(first.dispatched, Some(names(&["w1", "ghost"])));

    let mut dispatched = submitting;
    dispatched.apply(&first);
    let alone = list(&["ghost"]);
    let third = judge(&dispatched, refusal(), posted(alone.clone(), 2));
    assert_eq!((third.status, third.post_refused, third.follow_up), (None, true, Some(send_again(&["ghost"], 4))));
    let last = judge(&dispatched, refusal(), posted(alone.clone(), 9));
    assert_eq!((last.follow_up, last.results.len()), (None, 1));
    // One POST more was sent than failed, before a restart: it may have arrived.
    let again = Job { posts_sent: 11, ..dispatched.clone() };
    let last = judge(&again, refusal(), posted(alone.clone(), 9));
    assert_eq!((last.follow_up, last.results.len()), (None, 0));
    // There by now.
    assert_eq!(judge(&dispatched, accepted_by(&["ghost"]), posted(alone, 3)), ignore(Ignored::Repeated));
    // A GET that leaves somebody out says nothing of delivery.
    assert_eq!(
        judge(&dispatched, accepted_by(&["w1"]), Context::Get { target: both, registry: Registry::Settled }),
        ignore(Ignored::Repeated)
    );
}

#[test]
fn a_400_fails_only_an_immediate_job_whose_every_post_was_refused() {
    let submitting = job(Workers::All, JobStatus::Submitting);
    let (after, _) = check(submitting.clone(), vec![refusal()], JobStatus::Failed);
    assert_eq!((after.errors, after.posts_refused), (names(&["no such service"]), 1));
    let again = Job { posts_sent: 2, ..submitting };
    check(again, vec![refusal()], JobStatus::Dispatched);
    ignored(&started(), refusal(), Ignored::NotYet);
}

/// What becomes of a job whose only POST was refused, and those before it too.
#[track_caller]
fn check_refused(job: Job, refusals: u32, status: JobStatus, seconds: Option<u32>) -> Job {
    let mut job = Job { posts_sent: refusals, posts_refused: refusals - 1, ..job };
    let change = judge(&job, refusal(), Context::Unknown);
    job.apply(&change);
    assert_eq!((job.status, job.next_attempt_at), (status, seconds.map(|seconds| NOW.plus_seconds(seconds))));
    assert_eq!((job.posts_refused, job.errors.is_empty()), (refusals, status == JobStatus::New));
    job
}

#[test]
fn a_400_to_a_job_that_nobody_waits_for_is_tried_again() {
    let nightly = || delayed(job(Workers::All, JobStatus::Submitting));
    let after = check_refused(nightly(), 1, JobStatus::New, Some(1));
    assert_eq!(after.deadline, Some(NOW.plus_seconds(1 + after.timeout)));
    check_refused(nightly(), 4, JobStatus::New, Some(8));
    check_refused(nightly(), 10, JobStatus::Failed, None);
    check_refused(Job { origin: Origin::RunNow, ..nightly() }, 1, JobStatus::New, Some(1));
    let direct = Job { origin: Origin::Direct, scheduled_for: Some(NOW), ..nightly() };
    check_refused(direct.clone(), 1, JobStatus::New, Some(1));
    check_refused(Job { start_deadline: Some(NOW), ..direct.clone() }, 1, JobStatus::Failed, None);
    check_refused(Job { start_deadline: Some(NOW.plus_seconds(8)), ..direct }, 4, JobStatus::New, Some(8));
}

#[test]
fn a_400_to_any_chooses_another_worker_at_once() {
    let chosen = |job: Job| Job { dispatch_target: Some(Workers::One("w1".into())), ..job };
    let immediate = || chosen(job(Workers::Any, JobStatus::Submitting));
    assert_eq!(check_refused(immediate(), 1, JobStatus::New, Some(0)).dispatch_target, None);
    check_refused(immediate(), 2, JobStatus::Failed, None);
    check_refused(delayed(immediate()), 1, JobStatus::New, Some(0));
    check_refused(delayed(immediate()), 2, JobStatus::New, Some(1));
    // One of two POSTs may have arrived: the target stays.
    let mut again = Job { posts_sent: 2, ..immediate() };
    again.apply(&judge(&again, refusal(), Context::Unknown));
    assert_eq!((again.status, again.dispatch_target), (JobStatus::Dispatched, Some(Workers::One("w1".into()))));
}

#[test]
fn a_400_to_a_get_says_that_the_worker_is_away() {
    let given = Job { workers_dispatched: names(&["w1"]), ..job(Workers::Any, JobStatus::Dispatched) };
    assert_eq!(judge(&given, refusal(), got()).follow_up, Some(FollowUp::Gone));
    // One that has the job keeps it.
    let begun = Job { workers_started: ["w1".to_owned()].into(), status: JobStatus::Started, ..given };
    assert_eq!(judge(&begun, refusal(), got()), ignore(Ignored::NotYet));
    assert_eq!(judge(&started(), refusal(), got()), ignore(Ignored::NotYet));
}

fn not_found(worker: &str) -> ReplyKind {
    ReplyKind::NotFound { worker: worker.into() }
}

#[test]
fn a_404_is_final_only_after_the_201_and_asked_twice_again() {
    for worker in ["w1", "w2"] {
        let ask = Some(FollowUp::AskAgain(worker.into()));
        assert_eq!(judge(&started(), not_found(worker), Context::Unknown).follow_up, ask);
        assert_eq!(judge(&started(), not_found(worker), Context::Repeated(0)).follow_up, ask);
    }
    // It may have been under way since before the job was stored.
    let ask = Some(FollowUp::AskAgain("w1".into()));
    assert_eq!(judge(&started(), not_found("w1"), Context::Repeated(1)).follow_up, ask);
    let lost = judge(&started(), not_found("w1"), Context::Repeated(2));
    assert!(lost.follow_up.is_none() && lost.errors[0].contains("w1") && lost.results[0].0 == "w1");
    let (job, _) = check(started(), vec![result("w1"), stored("w2"), result("w2")], JobStatus::Completed);
    ignored(&job, not_found("w2"), Ignored::JobEnded);
    ignored(&started(), not_found("w9"), Ignored::UnknownWorker);
    ignored(&self::job(Workers::All, JobStatus::Submitting), not_found("w1"), Ignored::NotYet);
}

#[test]
fn a_worker_that_says_404_twice_gets_the_job_again() {
    let again = |job: &Job| judge(job, not_found("w2"), Context::Repeated(1));
    assert_eq!(again(&started()).follow_up, Some(send_again(&["w2"], 0)));
    let overdue = Job { deadline: Some(NOW), ..started() };
    assert_eq!(again(&overdue), ignore(Ignored::NotYet));
}

#[test]
fn a_job_that_may_not_be_sent_again_may_wait_at_its_worker_to_be_stored() {
    let late = Job { start_deadline: Some(NOW.saturating_sub(std::time::Duration::from_secs(1))), ..started() };
    let said = |times| judge(&late, not_found("w2"), Context::Repeated(times));
    assert_eq!(said(0).follow_up, Some(FollowUp::AskAgain("w2".into())));
    assert_eq!((said(1), said(2)), (ignore(Ignored::NotYet), ignore(Ignored::NotYet)));
    for times in [3, 4] {
        let change = said(times);
        assert_eq!((change.follow_up, change.results.len(), change.errors.len()), (None, 1, 1));
    }
}

#[test]
fn questions_are_kept_for_each_worker() {
    let asks = |worker: &str, id: &str| event(worker, FabricEventKind::InputRequest(request(id)));
    let took = |worker: &str, id: &str| event(worker, FabricEventKind::InputResponse { input_id: Some(id.into()) });
    let (waiting, _) = check(started(), vec![asks("w1", "a"), asks("w2", "b")], JobStatus::WaitingClientInput);
    check(waiting.clone(), vec![took("w1", "a")], JobStatus::WaitingClientInput);
    check(waiting.clone(), vec![took("w1", "a"), took("w2", "old")], JobStatus::WaitingClientInput);
    check(waiting.clone(), vec![took("w1", "a"), took("w2", "b")], JobStatus::Started);
    check(waiting.clone(), vec![result("w1"), result("w2")], JobStatus::Completed);
    ignored(&waiting, asks("w1", "a"), Ignored::Repeated);
    ignored(&waiting, ReplyKind::WaitingInput { worker: "w1".into(), request: request("a") }, Ignored::Repeated);
    let (again, _) = check(waiting, vec![asks("w1", "c")], JobStatus::WaitingClientInput);
    assert_eq!(again.pending_inputs["w1"].id, "c");
}

#[test]
fn strangers_and_repetitions_change_nothing() {
    let of_two = Job { workers_requested: list(&["w1", "w2"]), ..started() };
    ignored(&of_two, result("w9"), Ignored::UnknownWorker);
    // A job for all is for one more that has it.
    let joined = judge(&started(), stored("w9"), Context::Unknown);
    assert_eq!(joined.dispatched, Some(names(&["w1", "w2", "w9"])));
    ignored(&started(), stored("w1"), Ignored::Repeated);
    let (job, _) = check(started(), vec![result("w1")], JobStatus::Started);
    ignored(&job, result("w1"), Ignored::Repeated);
}

#[test]
fn ended_and_unsent_jobs_are_immutable() {
    for status in JobStatus::ALL {
        let job = Job { status, ..started() };
        if status.is_terminal() {
            ignored(&job, result("w1"), Ignored::JobEnded);
            assert_eq!(expire(&job), ignore(Ignored::JobEnded));
        } else if !status.is_in_flight() {
            ignored(&job, result("w1"), Ignored::NotSent);
        }
    }
}

#[test]
fn expiry_names_who_did_not_answer() {
    let (job, _) = check(started(), vec![result("w1")], JobStatus::Started);
    let change = expire(&job);
    assert_eq!(change.status, Some(JobStatus::Stale));
    assert_eq!(change.results.iter().map(|(worker, _)| worker.as_str()).collect::<Vec<_>>(), ["w2"]);
    assert!(change.results[0].1.as_str().contains("\"status\":\"timeout\""));

    let mut stale = job.clone();
    stale.apply(&change);
    assert_eq!((stale.status, stale.workers_completed), (JobStatus::Stale, job.workers_completed));

    let unknown = expire(&self::job(Workers::All, JobStatus::Submitting));
    assert_eq!(unknown.results[0].0, "all");
    let unsent = expire(&self::job(list(&["w1"]), JobStatus::New));
    assert!(unsent.errors[0].contains("before the job was sent"));
    let waiting = Job { status: JobStatus::Scheduled, ..self::job(Workers::All, JobStatus::New) };
    assert_eq!(expire(&waiting).status, None);
}

/// A broker may name as many workers as it likes.
#[test]
fn a_job_has_a_limited_number_of_workers() {
    let many: Vec<String> = (0..300_000).map(|number| format!("w{number}")).collect();
    let sent = job(Workers::All, JobStatus::Submitting);
    let change = judge(&sent, ReplyKind::Accepted { workers: many }, Context::Unknown);
    assert_eq!(change.dispatched.as_ref().map(Vec::len), Some(MOST_WORKERS));
    let mut full = sent;
    full.apply(&change);
    assert_eq!(judge(&full, stored("another"), Context::Unknown), ignore(Ignored::UnknownWorker));
    assert_eq!(judge(&full, stored("w7"), Context::Unknown).ignored, None);
}
