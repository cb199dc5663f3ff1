//! Whatever is done, in whatever order: the store in SQLite and the one in memory say and hold the same.

use std::fmt::Debug;
use std::time::Duration;

use norfab_model::{
    Claim, Context, FabricEvent, FabricEventKind, InputRequest, JobFilter, JobId, Json, Limits, Link, LiveWorkers,
    NewJob, Overdue, Registry, Reply, ReplyKind, Resend, RetryPolicy, Scope, SendAgain, Start, Store, StoreError,
    Timestamp, Workers,
};
use norfab_store::conformance::pass_ends;
use norfab_store::{Durability, MemoryStore, SqliteStore, StoreOptions};
use proptest::prelude::*;

/// Few jobs, workers and spans of time, so that things meet.
const JOBS: u8 = 5;
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];

#[derive(Debug, Clone)]
enum Step {
    Wait(Duration),
    Add { job: u8, delay: Option<i64>, grace: Option<u64>, timeout: u64, workers: Workers, payload: String },
    Cancel(u8),
    Reschedule(u8, i64),
    Release(Scope, Link),
    Expire(Scope, Overdue),
    Claim(Scope, u32, Option<Vec<String>>),
    Again(Vec<(u8, Resend)>, Option<Vec<String>>),
    Poll(Scope, Duration, u32),
    Apply(Vec<Reply>),
    Recover(Scope),
    GiveUp(Vec<u8>),
    Unclaim(Vec<u8>),
    Answer(u8, String, InputRequest),
    TakeAnswers(Scope, u32),
}

fn id(job: u8) -> JobId {
    JobId::new(format!("job-{job}")).unwrap()
}

/// A span in microseconds; many of them alike, some off by one.
fn span() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(1), Just(999_999), Just(1_000_000), Just(2_000_000), 0..3_000_000_i64]
}

fn wait() -> impl Strategy<Value = Duration> {
    span().prop_map(|micros| Duration::from_micros(micros.unsigned_abs()))
}

fn job() -> impl Strategy<Value = u8> {
    0..JOBS
}

fn scope() -> impl Strategy<Value = Scope> {
    let some = prop::collection::vec(job(), 0..3).prop_map(|jobs| Scope::Jobs(jobs.into_iter().map(id).collect()));
    prop_oneof![3 => Just(Scope::All), 1 => some]
}

fn link() -> impl Strategy<Value = Link> {
    prop_oneof![Just(Link::Up), Just(Link::Down)]
}

fn worker() -> impl Strategy<Value = String> {
    prop::sample::select(&WORKERS[..]).prop_map(str::to_owned)
}

fn some_workers() -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(WORKERS.map(str::to_owned).to_vec(), 1..=3)
}

fn workers() -> impl Strategy<Value = Workers> {
    prop_oneof![
        Just(Workers::All),
        Just(Workers::Any),
        worker().prop_map(Workers::One),
        some_workers().prop_map(Workers::List)
    ]
}

fn question() -> impl Strategy<Value = InputRequest> {
    prop::sample::select(vec!["q1", "q2"]).prop_map(|input| InputRequest {
        id: input.to_owned(),
        question: "?".to_owned(),
        default: serde_json::Value::Null,
        timeout: None,
        metadata: serde_json::json!({}),
    })
}

fn event_kind() -> impl Strategy<Value = FabricEventKind> {
    prop_oneof![
        Just(FabricEventKind::Progress),
        Just(FabricEventKind::ResultReady),
        question().prop_map(FabricEventKind::InputRequest),
        prop::option::of(Just("q1".to_owned())).prop_map(|input_id| FabricEventKind::InputResponse { input_id }),
    ]
}

fn event() -> impl Strategy<Value = ReplyKind> {
    (worker(), event_kind(), "[ -~żó☃]{0,12}").prop_map(|(worker, kind, message)| {
        ReplyKind::Event(FabricEvent {
            data: Json::of(&message).unwrap(),
            severity: "INFO".to_owned(),
            task: None,
            worker,
            kind,
            message,
        })
    })
}

fn reply() -> impl Strategy<Value = Reply> {
    let kind = prop_oneof![
        3 => some_workers().prop_map(|workers| ReplyKind::Accepted { workers }),
        1 => Just(ReplyKind::Refused { errors: vec!["Nobody \"there\"".to_owned()] }),
        3 => worker().prop_map(|worker| ReplyKind::Stored { worker }),
        1 => worker().prop_map(|worker| ReplyKind::Pending { worker }),
        2 => (worker(), question()).prop_map(|(worker, request)| ReplyKind::WaitingInput { worker, request }),
        3 => (worker(), "[ -~ż☃]{0,12}")
            .prop_map(|(worker, text)| ReplyKind::Result { worker, result: Json::of(&text).unwrap() }),
        1 => worker().prop_map(|worker| ReplyKind::NotFound { worker }),
        2 => event(),
    ];
    (0..=JOBS, kind, context()).prop_map(|(job, kind, context)| Reply { context, ..Reply::new(id(job), kind) })
}

fn context() -> impl Strategy<Value = Context> {
    prop_oneof![
        3 => Just(Context::Unknown),
        2 => (workers(), 0..12_u32, registry())
            .prop_map(|(target, failed_before, registry)| Context::Post { target, failed_before, registry }),
        1 => (workers(), registry()).prop_map(|(target, registry)| Context::Get { target, registry }),
        1 => (0..3_u32).prop_map(Context::Repeated),
    ]
}

fn registry() -> impl Strategy<Value = Registry> {
    prop_oneof![Just(Registry::Settled), Just(Registry::Filling)]
}

/// What the broker says of the live workers, when it was asked.
fn live() -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::of(prop::sample::subsequence(WORKERS.map(str::to_owned).to_vec(), 0..=3))
}

fn live_workers(now: Timestamp, names: &[String]) -> LiveWorkers {
    let entry = |name: &String| serde_json::json!({ "name": name, "service": "dummy", "status": "alive" });
    let entries: Vec<_> = names.iter().map(entry).collect();
    LiveWorkers::from_answer(now, &Json::of(&entries).unwrap()).unwrap()
}

fn resend() -> impl Strategy<Value = Resend> {
    prop_oneof![Just(Resend::Unanswered), some_workers().prop_map(Resend::Lost), Just(Resend::Elsewhere)]
}

/// One job is sent again once at a time.
fn again() -> impl Strategy<Value = Vec<(u8, Resend)>> {
    prop::collection::btree_map(0..=JOBS, resend(), 1..4).prop_map(|again| again.into_iter().collect())
}

fn overdue() -> impl Strategy<Value = Overdue> {
    prop::sample::select(vec![Overdue::Unsent, Overdue::All])
}

fn add() -> impl Strategy<Value = Step> {
    let delay = prop::option::of(span());
    (job(), delay, prop::option::of(1..3_u64), 1..6_u64, workers(), "[ -~ż☃]{0,12}").prop_map(
        |(job, delay, grace, timeout, workers, payload)| Step::Add { job, delay, grace, timeout, workers, payload },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => wait().prop_map(Step::Wait),
        5 => add(),
        1 => job().prop_map(Step::Cancel),
        1 => (job(), span()).prop_map(|(job, delay)| Step::Reschedule(job, delay)),
        4 => (scope(), link()).prop_map(|(scope, link)| Step::Release(scope, link)),
        2 => (scope(), overdue()).prop_map(|(scope, overdue)| Step::Expire(scope, overdue)),
        5 => (scope(), 0..4_u32, live()).prop_map(|(scope, limit, live)| Step::Claim(scope, limit, live)),
        2 => (again(), live()).prop_map(|(again, live)| Step::Again(again, live)),
        2 => (scope(), wait(), 0..4_u32).prop_map(|(scope, ago, limit)| Step::Poll(scope, ago, limit)),
        8 => prop::collection::vec(reply(), 1..6).prop_map(Step::Apply),
        1 => scope().prop_map(Step::Recover),
        1 => prop::collection::vec(0..=JOBS, 0..3).prop_map(Step::GiveUp),
        2 => prop::collection::vec(0..=JOBS, 0..3).prop_map(Step::Unclaim),
        2 => (0..=JOBS, worker(), question()).prop_map(|(job, worker, asked)| Step::Answer(job, worker, asked)),
        1 => (scope(), 0..4_u32).prop_map(|(scope, limit)| Step::TakeAnswers(scope, limit)),
    ]
}

fn later(now: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_micros(now.as_micros() + micros)
}

fn told<T: Debug>(outcome: Result<T, StoreError>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    }
}

/// Carries one step out, and tells all that the store says of it.
async fn carry_out(store: &impl Store, now: Timestamp, step: &Step) -> String {
    match step {
        Step::Wait(_) => String::new(),
        Step::Add { job, delay, grace, timeout, workers, payload } => {
            let start = delay.map_or(Start::Now, |delay| Start::At {
                scheduled_for: later(now, delay),
                misfire_grace_seconds: *grace,
            });
            let new = NewJob::new("dummy", "echo").workers(workers.clone()).timeout(*timeout);
            let kwargs = Json::of(&serde_json::json!({ "text": payload })).unwrap();
            let new = NewJob { start, id: Some(id(*job)), kwargs, ..new };
            told(store.job_add(now, &Limits::default().check_job(now, new).unwrap()).await)
        }
        Step::Cancel(job) => told(store.job_cancel(now, &id(*job)).await),
        Step::Reschedule(job, delay) => told(store.job_reschedule(now, &id(*job), later(now, *delay)).await),
        Step::Release(scope, link) => told(store.job_release_due(now, scope, *link).await),
        Step::Expire(scope, overdue) => told(store.job_expire_due(now, scope, *overdue).await),
        Step::Claim(scope, limit, live) => {
            let live = live.as_ref().map(|names| live_workers(now, names));
            told(store.job_claim(Claim { live: live.as_ref(), ..Claim::new(now, scope, *limit) }).await)
        }
        Step::Again(again, live) => {
            let live = live.as_ref().map(|names| live_workers(now, names));
            let again = again.iter().map(|(job, why)| SendAgain { job: id(*job), why: why.clone() });
            told(store.job_send_again(now, again.collect(), live.as_ref()).await)
        }
        Step::Poll(scope, ago, limit) => told(store.job_take_polls(now, scope, now.saturating_sub(*ago), *limit).await),
        Step::Apply(replies) => told(store.job_apply(now, RetryPolicy::default(), replies.clone()).await),
        Step::Recover(scope) => told(store.job_recover(now, scope).await),
        Step::GiveUp(jobs) => {
            let jobs: Vec<JobId> = jobs.iter().copied().map(id).collect();
            told(store.job_give_up(now, &jobs, "no link").await)
        }
        Step::Unclaim(jobs) => {
            let jobs: Vec<JobId> = jobs.iter().copied().map(id).collect();
            told(store.job_unclaim(now, &jobs).await)
        }
        Step::Answer(job, worker, asked) => {
            told(store.answer_add(now, &id(*job), worker, &asked.answer(Json::empty_array())).await)
        }
        Step::TakeAnswers(scope, limit) => told(store.answer_take(scope, *limit).await),
    }
}

/// Everything that a store holds. Payloads are told apart by their text, which `Debug` hides.
async fn contents(store: &impl Store) -> Vec<String> {
    let mut contents = vec![
        told(store.stats().await),
        told(store.job_unfinished().await),
        told(store.job_list(&JobFilter::default()).await),
        told(store.job_next_due(&Scope::All).await),
        told(store.job_next_due(&Scope::Jobs(vec![id(0), id(1)])).await),
    ];
    for job in (0..JOBS).map(id) {
        let detail = store.job_detail(&job).await.unwrap();
        contents.push(serde_json::to_string(&detail).unwrap());
        contents.push(serde_json::to_string(&store.event_list(&job, 0, 1000).await.unwrap()).unwrap());
    }
    contents
}

async fn check(steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { durability: Durability::Normal, ..StoreOptions::default() };
    let sqlite = SqliteStore::open(folder.path().join("jobs.db"), &options).await.unwrap();
    let memory = MemoryStore::new();
    let mut now = Timestamp::from_seconds(1_795_996_800);
    for (number, step) in steps.iter().enumerate() {
        if let Step::Wait(span) = step {
            now = now.saturating_add(*span);
        }
        let (one, other) = (carry_out(&sqlite, now, step).await, carry_out(&memory, now, step).await);
        assert_eq!(one, other, "step {number}: {step:?}");
    }
    assert_eq!(contents(&sqlite).await, contents(&memory).await);
    for link in [Link::Down, Link::Up] {
        pass_ends(&sqlite, &Scope::All, now, link).await;
        pass_ends(&memory, &Scope::All, now, link).await;
    }
    assert_eq!(contents(&sqlite).await, contents(&memory).await);
    assert_eq!(told(sqlite.answer_take(&Scope::All, 100).await), told(memory.answer_take(&Scope::All, 100).await));
    sqlite.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_agree(steps in prop::collection::vec(step(), 1..60)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check(steps));
    }
}
