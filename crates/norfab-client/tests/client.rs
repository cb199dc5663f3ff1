//! The client on the loopback fabric: what it refuses, what its roles do, and what a stop leaves behind.

use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use norfab_client::{
    Client, ClientBuilder, ClientError, Clock, Config, HolderKind, Interval, JobFilter, JobId, JobStatus, Json, Limits,
    ManualClock, NewJob, NewSchedule, Outcome, Ports, Role, Security, SqliteStore, Store, StoreError, StoreOpenError,
    SystemClock, Timestamp, Update, WorkerResult, Workers, connect_plain,
};
use norfab_loopback::{Loopback, LoopbackConfig};
use norfab_store::StoreOptions;
use serde_json::json;
use tempfile::TempDir;

/// A fabric and a folder for the databases of one test.
struct Bench {
    fabric: Loopback,
    folder: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let fabric = Loopback::start(LoopbackConfig::new("demo", 2), SystemClock).await.expect("a free port");
        Self { fabric, folder: tempfile::tempdir().expect("temporary folder") }
    }

    fn builder(&self) -> ClientBuilder {
        Client::builder()
            .database(self.folder.path().join("jobs.db"))
            .endpoint(self.fabric.endpoint())
            .security(Security::Plain)
    }

    async fn client(&self, role: Role) -> Client {
        self.builder().role(role).build().await.expect("opens")
    }
}

fn echo() -> NewJob {
    NewJob::new("demo", "echo")
}

fn hours_ahead() -> Timestamp {
    SystemClock.now().plus_seconds(7200)
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it took too long")
}

#[tokio::test]
async fn a_job_runs_and_its_life_can_be_followed() {
    let bench = Bench::start().await;
    let client = bench.client(Role::Owner).await;
    let mut handle = client.submit_job(echo().kwargs(json!({"text": "hi"}))).await.expect("added");
    let mut statuses = Vec::new();
    while let Some(update) = within(handle.next_update()).await.expect("readable") {
        if let Update::Status(job) = update {
            statuses.push(job.status);
        }
    }
    assert_eq!(statuses.last(), Some(&JobStatus::Completed));
    let Outcome::Completed { results } = within(handle.outcome()).await.expect("ended") else {
        panic!("not completed")
    };
    assert_eq!(results.len(), 2);
    assert!(results.values().all(|raw| !WorkerResult::read(raw).expect("a result").failed));
    client.shutdown().await;
}

#[tokio::test]
async fn what_is_refused_is_not_in_the_database() {
    let bench = Bench::start().await;
    let client = bench.client(Role::Owner).await;
    let refused = [
        client.submit_job(echo().at(hours_ahead())).await.err(),
        client.schedule_job(echo()).await.err(),
        client.submit_job(echo().workers(Workers::List(Vec::new()))).await.err(),
        client.submit_job(echo().workers(Workers::List(vec!["a".into(), "a".into()]))).await.err(),
        client.submit_job(echo().kwargs(json!(["no object"]))).await.err(),
        client.submit_job(echo().timeout(0)).await.err(),
        client.schedule_job(echo().at(Timestamp::from_seconds(20_000_000_000))).await.err(),
        client.submit_job(echo().kwargs(json!({"x": "y".repeat(17 << 20)}))).await.err(),
    ];
    assert!(refused.iter().all(Option::is_some), "{refused:?}");
    assert_eq!(client.stats().await.expect("counts").jobs.total_jobs, 0);

    let id = JobId::new("0123456789abcdef0123456789abcdef").expect("an id");
    let job = NewJob { id: Some(id.clone()), ..echo() };
    within(client.run_job(job.clone())).await.expect("runs");
    let twice = client.submit_job(job).await.err();
    assert!(matches!(&twice, Some(ClientError::Store(StoreError::JobExists(found))) if *found == id), "{twice:?}");
    client.shutdown().await;
}

#[tokio::test]
async fn only_a_waiting_job_can_be_cancelled_or_moved() {
    let bench = Bench::start().await;
    let client = bench.client(Role::Owner).await;
    let unknown = JobId::generate(SystemClock.now());
    assert!(matches!(client.cancel_scheduled_job(&unknown).await, Err(ClientError::Store(StoreError::NoSuchJob(_)))));
    assert!(matches!(client.job(&unknown).await, Err(ClientError::Store(StoreError::NoSuchJob(_)))));

    let mut handle = client.schedule_job(echo().at(hours_ahead()).grace(60)).await.expect("added");
    let later = hours_ahead();
    let moved = client.reschedule_job(handle.id(), later).await.expect("moved");
    assert_eq!((moved.scheduled_for, moved.start_deadline), (Some(later), Some(later.plus_seconds(60))));
    let past = client.reschedule_job(handle.id(), Timestamp::EPOCH).await;
    assert!(matches!(past, Err(ClientError::Invalid(_))), "{past:?}");
    client.cancel_scheduled_job(handle.id()).await.expect("cancelled");
    assert_eq!(within(handle.outcome()).await.expect("ended"), Outcome::Cancelled);
    let again = client.reschedule_job(handle.id(), hours_ahead()).await;
    let Err(ClientError::Store(StoreError::NotScheduled { status, .. })) = again else { panic!("{again:?}") };
    assert_eq!(status, JobStatus::Cancelled);
    assert_eq!(bench.fabric.executions().len(), 0);
    client.shutdown().await;
}

#[tokio::test]
async fn there_is_one_owner() {
    let bench = Bench::start().await;
    let owner = bench.client(Role::Owner).await;
    let second = bench.builder().build().await.err();
    let Some(ClientError::Owned { lock, holder }) = &second else { panic!("{second:?}") };
    assert!(lock.ends_with("jobs.db.lock"));
    let holder = holder.as_ref().expect("it says who it is");
    assert_eq!((holder.pid, holder.kind), (std::process::id(), HolderKind::Owner));
    owner.shutdown().await;
    bench.client(Role::Owner).await.shutdown().await;
}

#[tokio::test]
async fn a_client_beside_the_owner_hands_over_and_watches() {
    let bench = Bench::start().await;
    let owner = bench.client(Role::Owner).await;
    let beside = bench.client(Role::Beside).await;
    let mut handle = beside.submit_job(echo()).await.expect("added");
    assert!(matches!(within(handle.outcome()).await.expect("ends"), Outcome::Completed { .. }));

    // The owner learns of a cancellation by another process.
    let mut waiting = owner.schedule_job(echo().at(hours_ahead())).await.expect("added");
    beside.cancel_scheduled_job(waiting.id()).await.expect("cancelled");
    assert_eq!(within(waiting.outcome()).await.expect("ends"), Outcome::Cancelled);
    assert!(matches!(handle.send_response("w", Json::empty_object()).await, Err(ClientError::NoQuestion { .. })));
    beside.shutdown().await;
    owner.shutdown().await;
}

/// The owner looks at least once a second by its own clock, which stands still here otherwise.
#[tokio::test]
async fn an_owner_sees_within_a_second_what_others_do() {
    let bench = Bench::start().await;
    let path = bench.folder.path().join("jobs.db");
    let open = async || Arc::new(SqliteStore::open(&path, &StoreOptions::default()).await.expect("opens"));
    let clock = ManualClock::at(SystemClock.now());
    let broker = connect_plain(bench.fabric.endpoint(), "norfab").expect("an endpoint");
    let ports = Ports { store: open().await, broker, clock: clock.clone() };
    let owner = Client::from_ports(ports, Config::default(), Limits::default());
    // Once it answers, it has looked for the first time.
    let patience = Duration::from_secs(20);
    within(owner.mmi("show_workers", Json::empty_object(), patience)).await.expect("answers");
    let other = open().await;
    for _ in 0..3 {
        let mut handle = owner.schedule_job(echo().at(hours_ahead())).await.expect("added");
        let Ok(Some(Update::Status(job))) = handle.next_update().await else { panic!("it has no status") };
        assert_eq!(job.status, JobStatus::Scheduled);
        other.job_cancel(clock.now(), handle.id()).await.expect("cancelled");
        clock.advance(Duration::from_secs(1));
        let ended = async {
            while let Some(update) = handle.next_update().await.expect("readable") {
                if matches!(&update, Update::Status(job) if job.status == JobStatus::Cancelled) {
                    return;
                }
            }
            panic!("it ended otherwise");
        };
        within(ended).await;
    }
    owner.shutdown().await;
}

/// A client beside the owner looks at least once a second, on a machine that lets it.
#[tokio::test]
async fn a_client_beside_the_owner_sees_within_a_second_what_others_do() {
    let bench = Bench::start().await;
    let (one, two) = (bench.client(Role::Beside).await, bench.client(Role::Beside).await);
    let mut took = Vec::new();
    for _ in 0..5 {
        let handle = one.schedule_job(echo().at(hours_ahead())).await.expect("added");
        let id = handle.id().clone();
        let waiting = tokio::spawn(async move {
            let mut handle = handle;
            handle.outcome().await
        });
        let begin = SystemClock.now();
        two.cancel_scheduled_job(&id).await.expect("cancelled");
        let outcome = within(waiting).await.expect("no panic").expect("readable");
        assert_eq!(outcome, Outcome::Cancelled);
        took.push(SystemClock.now().since(begin));
    }
    took.sort_unstable();
    assert!(took[2] < Duration::from_secs(1), "half of them took longer: {took:?}");
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test]
async fn a_guest_serves_its_own_jobs_while_nobody_else_does() {
    let bench = Bench::start().await;
    let beside = bench.client(Role::Beside).await;
    let other = beside.submit_job(echo()).await.expect("added");
    let guest = bench.client(Role::Guest).await;
    let mut own = guest.submit_job(echo()).await.expect("added");
    assert!(matches!(within(own.outcome()).await.expect("ends"), Outcome::Completed { .. }));
    assert_eq!(other.job().await.expect("there").status, JobStatus::New);
    guest.shutdown().await;

    // The guest has let go of the database: an owner takes over what is left.
    let owner = bench.client(Role::Owner).await;
    let mut other = owner.job(other.id()).await.expect("there");
    assert!(matches!(within(other.outcome()).await.expect("ends"), Outcome::Completed { .. }));
    owner.shutdown().await;
    beside.shutdown().await;
}

#[tokio::test]
async fn two_guests_serve_one_after_the_other() {
    let bench = Bench::start().await;
    let (first, second) = (bench.client(Role::Guest).await, bench.client(Role::Guest).await);
    let mut one = first.submit_job(echo()).await.expect("added");
    let mut two = second.submit_job(echo()).await.expect("added");
    let (one, two) = within(async { tokio::join!(one.outcome(), two.outcome()) }).await;
    assert!(matches!((one, two), (Ok(Outcome::Completed { .. }), Ok(Outcome::Completed { .. }))));
    assert_eq!(bench.fabric.executions().len(), 4);
    first.shutdown().await;
    second.shutdown().await;
}

/// The question of the job is answered by a client that does not dispatch.
#[tokio::test]
async fn a_question_is_answered_from_beside_the_owner() {
    let bench = Bench::start().await;
    let owner = bench.client(Role::Owner).await;
    let beside = bench.client(Role::Beside).await;
    let worker = bench.fabric.workers()[0].clone();
    let ask = NewJob::new("demo", "ask").workers(Workers::One(worker.clone())).kwargs(json!({"question": "Go on?"}));
    let mut handle = beside.submit_job(ask).await.expect("added");
    loop {
        let update = within(handle.next_update()).await.expect("readable").expect("not ended");
        if matches!(&update, Update::Status(job) if job.pending_inputs.contains_key(&worker)) {
            break;
        }
    }
    handle.send_response(&worker, Json::from(json!("certainly"))).await.expect("handed over");
    let Outcome::Completed { results } = within(handle.outcome()).await.expect("ends") else { panic!("not completed") };
    assert!(results[&worker].as_str().contains("certainly"));
    beside.shutdown().await;
    owner.shutdown().await;
}

#[tokio::test]
async fn a_guest_that_gave_up_tries_again_for_the_next_job() {
    let bench = Bench::start().await;
    // Nothing listens on the discard port of this machine.
    let builder = bench.builder().endpoint("tcp://127.0.0.1:9").role(Role::Guest);
    let guest = builder.connect_timeout(Duration::from_millis(300)).build().await.expect("opens");
    for _ in 0..2 {
        let outcome = within(guest.run_job(echo())).await.expect("ends");
        let Outcome::Failed { errors, .. } = outcome else { panic!("{outcome:?}") };
        assert!(errors.concat().contains("the fabric was not reached"), "{errors:?}");
        assert!(within(guest.unreachable()).await.contains("cannot be reached"));
    }
    guest.shutdown().await;
}

#[tokio::test]
async fn a_reader_changes_nothing() {
    let bench = Bench::start().await;
    let missing = bench.builder().role(Role::ReadOnly).build().await.err();
    assert!(matches!(&missing, Some(ClientError::Open(StoreOpenError::NotFound { .. }))), "{missing:?}");
    let owner = bench.client(Role::Owner).await;
    let waiting = owner.schedule_job(echo().at(hours_ahead())).await.expect("added");
    let reader = bench.client(Role::ReadOnly).await;
    assert_eq!(reader.list_jobs(&JobFilter::default()).await.expect("lists").jobs.len(), 1);
    assert_eq!(reader.active_jobs().await.expect("lists").len(), 1);
    for refused in [
        reader.submit_job(echo()).await.err(),
        reader.cancel_scheduled_job(waiting.id()).await.err(),
        reader.reschedule_job(waiting.id(), hours_ahead()).await.err(),
    ] {
        assert!(matches!(&refused, Some(ClientError::Store(StoreError::ReadOnly(_)))), "{refused:?}");
    }
    // It may ask the broker, under a name of its own.
    let workers =
        within(reader.mmi("show_workers", Json::empty_object(), Duration::from_secs(20))).await.expect("answers");
    assert!(workers.as_str().contains("demo-worker-1"));
    assert_eq!(reader.find_job(waiting.id()).await.expect("there").status, JobStatus::Scheduled);
    reader.shutdown().await;
    owner.shutdown().await;
}

/// Begins a call and goes away.
async fn begin<T>(call: impl Future<Output = T>) {
    let mut call = std::pin::pin!(call);
    let ends = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready()));
    assert!(!ends.await, "it ends at once");
}

/// Nobody else would look for what was added until its time has passed.
#[tokio::test]
async fn what_is_begun_is_served_though_its_caller_has_gone() {
    let bench = Bench::start().await;
    let client = bench.client(Role::Owner).await;
    let (id, earlier) = (JobId::generate(SystemClock.now()), client.run_job(echo()).await.expect("runs"));
    assert!(matches!(earlier, Outcome::Completed { .. }));
    begin(client.run_job(NewJob { id: Some(id.clone()), ..echo() })).await;
    let mut handle = within(async {
        loop {
            match client.job(&id).await {
                Err(ClientError::Store(StoreError::NoSuchJob(_))) => tokio::task::yield_now().await,
                other => break other.expect("there"),
            }
        }
    })
    .await;
    assert!(matches!(within(handle.outcome()).await.expect("ends"), Outcome::Completed { .. }));

    let every = Interval::new(1).expect("an interval");
    begin(client.create_job_schedule(NewSchedule::new("demo", "echo", every).name("left"))).await;
    let page = within(async {
        loop {
            let page = client.list_jobs(&JobFilter::default()).await.expect("lists");
            if page.jobs.iter().any(|job| job.schedule_id.is_some()) {
                break page;
            }
            tokio::task::yield_now().await;
        }
    });
    assert!(page.await.jobs.len() > 2);
    client.shutdown().await;
}

#[tokio::test]
async fn a_handle_of_a_closed_client_says_so() {
    let bench = Bench::start().await;
    let client = bench.client(Role::Owner).await;
    let mut handle = client.schedule_job(echo().at(hours_ahead())).await.expect("added");
    let waiting = tokio::spawn(async move { handle.outcome().await });
    client.shutdown().await;
    let outcome = within(waiting).await.expect("no panic");
    assert!(matches!(outcome, Err(ClientError::Closed | ClientError::Store(_))), "{outcome:?}");
}

#[tokio::test]
async fn dropping_the_client_frees_the_database() {
    let bench = Bench::start().await;
    drop(bench.client(Role::Owner).await);
    let builder = bench.builder();
    let next = within(async {
        loop {
            match builder.clone().build().await {
                Err(ClientError::Owned { .. }) => tokio::task::yield_now().await,
                other => break other,
            }
        }
    });
    next.await.expect("opens").shutdown().await;
}

#[tokio::test]
async fn limits_are_the_callers() {
    let bench = Bench::start().await;
    let limits = Limits { forbidden_tasks: vec!["*:echo".into()], ..Limits::default() };
    let client = bench.builder().limits(limits).build().await.expect("opens");
    let refused = client.submit_job(echo()).await.err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|error| error.contains("forbidden_tasks")), "{refused:?}");
    client.shutdown().await;
}

#[tokio::test]
async fn a_task_is_looked_for_at_those_it_is_for() {
    let bench = Bench::start().await;
    let client = bench.client(Role::Owner).await;
    let named = |names: &[&str]| Workers::List(names.iter().map(|name| (*name).to_owned()).collect());
    let first = || Workers::One("demo-worker-1".to_owned());
    for workers in [Workers::All, Workers::Any, first(), named(&["demo-worker-1", "demo-worker-2"])] {
        let before = bench.fabric.executions().len();
        within(client.verify_task("demo", "echo", &workers)).await.expect("they have it");
        let asked = if workers == first() { 1 } else { 2 };
        assert_eq!(bench.fabric.executions().len() - before, asked, "{workers}");
        let unknown = within(client.verify_task("demo", "nosuch", &workers)).await;
        assert!(matches!(unknown, Err(ClientError::UnknownTask { .. })), "{workers}: {unknown:?}");
    }
    for workers in [named(&["demo-worker-1", "demo-worker-9"]), Workers::One("demo-worker-9".to_owned())] {
        match within(client.verify_task("demo", "echo", &workers)).await {
            Err(ClientError::Unverified { workers, .. }) => assert_eq!(workers, ["demo-worker-9"]),
            other => panic!("{other:?}"),
        }
    }
    let nobody = within(client.verify_task("nobody", "echo", &Workers::All)).await;
    assert!(matches!(nobody, Err(ClientError::Unverified { workers, .. }) if workers.is_empty()));
    client.shutdown().await;
}

#[tokio::test]
async fn a_dispatcher_told_to_do_nothing_at_a_time_does_one_thing() {
    let bench = Bench::start().await;
    let nothing =
        Config { window: 0, poll_batch: 0, reply_batch: 0, catch_up_limit: 0, schedule_batch: 0, ..Config::default() };
    let client = bench.builder().dispatch(nothing).build().await.expect("opens");
    let every = NewSchedule::new("demo", "echo", Interval::new(1).expect("an interval"));
    let key = client.create_job_schedule(every).await.expect("created").schedule.uuid.into();
    within(async {
        while client.get_job_schedule(&key).await.expect("there").view.schedule.counters.total_runs == 0 {
            let outcome = client.run_job(echo()).await.expect("runs");
            assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
        }
    })
    .await;
    client.shutdown().await;
}

/// Builds a client of a folder and returns what is wrong with it.
async fn refused(folder: &Path, role: Role) -> String {
    let built = Client::builder().folder(folder).role(role).build().await;
    let error = built.expect_err("refused");
    std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[tokio::test]
async fn bad_folders_are_named() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let inventory = |text: &str| std::fs::write(folder.path().join("inventory.yaml"), text).expect("written");
    assert!(refused(folder.path(), Role::Owner).await.contains("cannot read the inventory"));
    inventory("broker: {zmq_auth: false}");
    assert!(refused(folder.path(), Role::Guest).await.contains("has no broker endpoint"));
    inventory("broker: {endpoint: 'tcp://127.0.0.1:9'}");
    assert!(refused(folder.path(), Role::Owner).await.contains("no public key of the broker"));
    inventory("broker: {endpoint: 'tcp://127.0.0.1:9', shared_key: 'short'}");
    assert!(refused(folder.path(), Role::Owner).await.contains("shared_key"));
    inventory("broker: {endpoint: 'udp://127.0.0.1:9', zmq_auth: false}");
    assert!(refused(folder.path(), Role::Owner).await.contains("cannot be used"));

    let database = Client::builder().folder(folder.path()).database_path().expect("a path");
    std::fs::remove_file(&database).expect("there");
    std::fs::write(&database, "this is no database, but a text of some length").expect("written");
    inventory("broker: {endpoint: 'tcp://127.0.0.1:9', zmq_auth: false}");
    assert!(refused(folder.path(), Role::Owner).await.contains("is not an SQLite database"));
}
