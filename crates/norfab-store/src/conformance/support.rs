//! What the cases share: fixed times, jobs, replies, and ways into every status.

use std::time::Duration;

use norfab_model::{
    Claim, Claimed, FabricEvent, FabricEventKind, InputRequest, Interval, Job, JobDetail, JobId, JobStatus, Json,
    Limits, Link, LiveWorkers, Materialize, Materialized, NewJob, NewSchedule, Overdue, Released, Reply, ReplyKind,
    RetryPolicy, Schedule, ScheduleId, ScheduleKey, ScheduleStore, Scope, Store, Timestamp, Trigger, ValidJob,
    ValidSchedule, Workers,
};

/// When every case begins.
pub(super) const START: Timestamp = Timestamp::from_seconds(1_795_996_800);

/// So many seconds after the start.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(START.as_micros() + seconds * 1_000_000)
}

pub(super) const MICRO: Duration = Duration::from_micros(1);

/// A job for one worker that takes at most 60 s.
pub(super) fn job() -> NewJob {
    NewJob::new("dummy", "echo").workers(Workers::One("w1".to_owned())).timeout(60)
}

pub(super) fn valid(now: Timestamp, job: NewJob) -> ValidJob {
    Limits::default().check_job(now, job).expect("the case asks for a valid job")
}

pub(super) fn id(text: &str) -> JobId {
    JobId::new(text).expect("an identity")
}

pub(super) async fn add(store: &impl Store, now: Timestamp, job: NewJob) -> Job {
    store.job_add(now, &valid(now, job)).await.expect("the job is added")
}

/// Adds a job under a chosen identity.
pub(super) async fn add_as(store: &impl Store, now: Timestamp, name: &str, job: NewJob) -> Job {
    add(store, now, NewJob { id: Some(id(name)), ..job }).await
}

pub(super) async fn find(store: &impl Store, job: &JobId) -> Job {
    store.job_find(job).await.expect("the store answers").expect("the job is there")
}

pub(super) async fn detail(store: &impl Store, job: &JobId) -> JobDetail {
    store.job_detail(job).await.expect("the store answers").expect("the job is there")
}

pub(super) async fn messages(store: &impl Store, job: &JobId) -> Vec<String> {
    let events = store.event_list(job, 0, 1000).await.expect("the store answers");
    events.into_iter().map(|event| event.message).collect()
}

pub(super) fn only(job: &JobId) -> Scope {
    Scope::Jobs(vec![job.clone()])
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("valid JSON")
}

pub(super) fn accepted(workers: &[&str]) -> ReplyKind {
    ReplyKind::Accepted { workers: names(workers) }
}

pub(super) fn stored(worker: &str) -> ReplyKind {
    ReplyKind::Stored { worker: worker.to_owned() }
}

pub(super) fn result(worker: &str, text: &str) -> ReplyKind {
    ReplyKind::Result { worker: worker.to_owned(), result: json(text) }
}

pub(super) fn question(input: &str) -> InputRequest {
    InputRequest {
        id: input.to_owned(),
        question: "Go on?".to_owned(),
        default: serde_json::Value::Bool(false),
        timeout: Some(120.0),
        metadata: serde_json::json!({ "step": 1 }),
    }
}

pub(super) fn event(worker: &str, kind: FabricEventKind, message: &str) -> ReplyKind {
    ReplyKind::Event(FabricEvent {
        worker: worker.to_owned(),
        kind,
        message: message.to_owned(),
        severity: "INFO".to_owned(),
        task: Some("echo".to_owned()),
        data: json(&format!("{{\"worker\":\"{worker}\",\"message\":\"{message}\"}}")),
    })
}

/// Applies replies for one job, in one call.
pub(super) async fn tell(
    store: &impl Store,
    now: Timestamp,
    job: &JobId,
    replies: Vec<ReplyKind>,
) -> norfab_model::AppliedReplies {
    let replies = replies.into_iter().map(|kind| Reply::new(job.clone(), kind)).collect();
    store.job_apply(now, RetryPolicy::default(), replies).await.expect("the replies are applied")
}

/// These workers of the service are alive, as was asked at an instant.
pub(super) fn live(asked_at: Timestamp, workers: &[&str]) -> LiveWorkers {
    let entries: Vec<_> =
        workers.iter().map(|name| serde_json::json!({"name": name, "service": "dummy", "status": "alive"})).collect();
    LiveWorkers::from_answer(asked_at, &Json::from(serde_json::Value::from(entries))).expect("an answer")
}

/// Claims one job; for any worker it is `w7`.
pub(super) async fn claim(store: &impl Store, now: Timestamp, job: &JobId) {
    let (scope, live) = (only(job), live(now, &["w7"]));
    let claim = Claim { live: Some(&live), ..Claim::new(now, &scope, 10) };
    let claimed = store.job_claim(claim).await.expect("the store claims");
    assert_eq!(claimed.posts.len(), 1, "{job} is claimed");
}

/// What a dispatcher does with a scope at one instant, each step until it gives nothing more.
async fn every_step(store: &impl Store, scope: &Scope, now: Timestamp, link: Link, before: Timestamp) {
    loop {
        let outcome = store.job_release_due(now, scope, link).await.expect("the store looks");
        if outcome == Released::default() {
            break;
        }
    }
    for overdue in [Overdue::Unsent, Overdue::All] {
        while !store.job_expire_due(now, scope, overdue).await.expect("the store looks").is_empty() {}
    }
    if link == Link::Down {
        return;
    }
    let live = live(now, &["w1"]);
    let claim = || Claim { live: Some(&live), ..Claim::new(now, scope, 1000) };
    while store.job_claim(claim()).await.expect("the store claims") != Claimed::default() {}
    while !store.job_take_polls(now, scope, before, 1000).await.expect("the store looks").is_empty() {}
}

pub(super) async fn pass_ends(store: &impl Store, scope: &Scope, now: Timestamp, link: Link) {
    let before = now.saturating_sub(Duration::from_secs(10));
    every_step(store, scope, now, link, before).await;
    let due = store.job_next_due(scope).await.expect("the store tells what is due");
    let later = |at: Option<Timestamp>| at.is_none_or(|at| at > now);
    assert!(
        due.miss.is_none_or(|at| at >= now) && later(due.expire) && later(due.expire_unsent),
        "at {now}, link {link:?}: {due:?}"
    );
    if link == Link::Up {
        let polled = due.polled.is_none_or(|at| at > before);
        assert!(later(due.release) && later(due.send) && polled, "at {now}: {due:?}");
    }
}

/// Adds a job that is in this status at the start time.
pub(super) async fn in_status(store: &impl Store, status: JobStatus) -> JobId {
    let delayed = matches!(status, JobStatus::Scheduled | JobStatus::Cancelled | JobStatus::Missed);
    let new = if delayed { job().at(at(-10)).grace(20) } else { job() };
    let uuid = add_as(store, at(-20), &format!("in-{status}"), new).await.uuid;
    match status {
        JobStatus::Scheduled | JobStatus::New => {}
        JobStatus::Cancelled => drop(store.job_cancel(START, &uuid).await.expect("it is cancelled")),
        JobStatus::Missed => {
            let outcome = store.job_release_due(at(20), &only(&uuid), Link::Up).await.expect("the store looks");
            assert_eq!(outcome.missed.len(), 1);
        }
        JobStatus::Stale => {
            let expired = store.job_expire_due(at(40), &only(&uuid), Overdue::All).await.expect("the store looks");
            assert_eq!(expired.len(), 1);
        }
        in_flight => {
            claim(store, START, &uuid).await;
            let replies = match in_flight {
                JobStatus::Dispatched => vec![accepted(&["w1"])],
                JobStatus::Started => vec![stored("w1")],
                JobStatus::WaitingClientInput => {
                    vec![ReplyKind::WaitingInput { worker: "w1".to_owned(), request: question("q1") }]
                }
                JobStatus::Completed => vec![result("w1", "{}")],
                JobStatus::Failed => vec![ReplyKind::Refused { errors: names(&["no such service"]) }],
                _ => vec![],
            };
            tell(store, START, &uuid, replies).await;
        }
    }
    assert_eq!(find(store, &uuid).await.status, status, "the way into the status");
    uuid
}

pub(super) fn limits() -> Limits {
    Limits::default()
}

pub(super) fn trigger(seconds: u64) -> Trigger {
    Interval::new(seconds).expect("an interval").into()
}

/// A schedule every so many seconds for one worker.
pub(super) fn every(seconds: u64) -> NewSchedule {
    NewSchedule::new("dummy", "echo", trigger(seconds)).workers(Workers::One("w1".to_owned()))
}

pub(super) fn valid_schedule(now: Timestamp, new: NewSchedule) -> ValidSchedule {
    limits().check_schedule(now, new).expect("the case asks for a valid schedule")
}

pub(super) async fn add_schedule(store: &impl ScheduleStore, now: Timestamp, new: NewSchedule) -> Schedule {
    store.schedule_add(&valid_schedule(now, new)).await.expect("the schedule is added")
}

pub(super) async fn schedule(store: &impl ScheduleStore, id: &ScheduleId) -> Schedule {
    let found = store.schedule_find(&ScheduleKey::Id(id.clone())).await.expect("the store answers");
    found.expect("the schedule is there").schedule
}

/// A look at all that is due, with a budget of 100.
pub(super) async fn pass(store: &impl ScheduleStore, now: Timestamp) -> Materialized {
    pass_with(store, now, 100, &[]).await
}

/// A look at what is due but for these schedules, with a budget.
pub(super) async fn pass_with(
    store: &impl ScheduleStore,
    now: Timestamp,
    budget_left: u32,
    seen: &[ScheduleId],
) -> Materialized {
    let request = Materialize { now, limits: &limits(), budget_left, batch: 1000, seen, claim: None };
    store.schedule_materialize_due(request).await.expect("the store materialises")
}
