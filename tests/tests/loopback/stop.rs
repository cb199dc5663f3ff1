//! An orderly stop at any moment: within two seconds, with success, and without anything left half done.

use std::time::Duration;

use norfab_client::{Client, Clock, JobStatus, NewJob, Outcome, Role, SystemClock};
use norfab_tests::{Chance, OwnerProcess, Relay, eventually};
use serde_json::json;
use sqlx::sqlite::SqliteConnection;
use tokio::net::TcpSocket;

use crate::common::{Ground, job, let_go};

/// What is promised.
const LIMIT: Duration = Duration::from_secs(2);
/// A machine that is busy with other things may make anything late; once in so many times it is not.
const ATTEMPTS: usize = 3;

/// A running owner, and what must stay as it is until it has ended.
struct Scene {
    ground: Ground,
    owner: OwnerProcess,
    kept: Kept,
}

#[expect(dead_code, reason = "they are kept, and never looked at")]
enum Kept {
    Nothing,
    Socket(TcpSocket),
    Relay(Relay),
    Lock(SqliteConnection),
    Client(Client),
}

/// Stops the owner of a scene by each signal. It may be too late only because the machine is busy.
async fn check(scene: impl AsyncFn() -> Scene) {
    for signal in ["TERM", "INT"] {
        let mut took = Vec::new();
        while took.last().is_none_or(|took| *took > LIMIT) {
            assert!(took.len() < ATTEMPTS, "{signal}: {took:?}");
            let Scene { ground, owner, kept } = scene().await;
            let stopped = owner.stop_by(signal).await;
            assert!(stopped.status.success(), "{signal}: {stopped:?}");
            assert!(!stopped.log.concat().contains("panicked"), "{stopped:?}");
            took.push(stopped.took);
            // What is on a way that leads nowhere counts as sent, and does not arrive.
            if !matches!(kept, Kept::Relay(_)) {
                nothing_is_half_sent(&ground).await;
            }
        }
        println!("{signal}: {took:?}");
    }
}

/// What counts as being sent was sent.
async fn nothing_is_half_sent(ground: &Ground) {
    // It may not have got as far as making the database.
    if std::fs::metadata(ground.database()).map_or(0, |file| file.len()) == 0 {
        return;
    }
    for job in ground.jobs().await.iter().filter(|job| job.status == JobStatus::Submitting) {
        ground.until_sent(&job.uuid).await;
    }
}

async fn scene(ground: Ground, kept: Kept) -> Scene {
    let owner = ground.program().start_owner().await;
    Scene { ground, owner, kept }
}

#[tokio::test]
async fn with_nothing_to_do() {
    check(async || scene(Ground::start().await, Kept::Nothing).await).await;
}

#[tokio::test]
async fn without_a_broker() {
    check(async || {
        let ground = Ground::start().await;
        // Taken, and nobody listens at it.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        ground.lead_to(&format!("tcp://{}", socket.local_addr().expect("bound")));
        let mut owner = ground.program().spawn_owner();
        owner.logged("The link to the broker is down").await;
        Scene { ground, owner, kept: Kept::Socket(socket) }
    })
    .await;
}

#[tokio::test]
async fn while_it_connects() {
    check(async || {
        let ground = Ground::start().await;
        let relay = Relay::to_nowhere().await;
        ground.lead_to(relay.endpoint());
        let mut owner = ground.program().spawn_owner();
        owner.logged("Serves the jobs of").await;
        Scene { ground, owner, kept: Kept::Relay(relay) }
    })
    .await;
}

#[tokio::test]
async fn with_many_jobs_under_way() {
    check(async || {
        let ground = Ground::start().await;
        let client = ground.client(Role::Beside).await;
        for _ in 0..200 {
            client.submit_job(job("sleep").kwargs(json!({"seconds": 60}))).await.expect("added");
        }
        client.shutdown().await;
        let scene = scene(ground, Kept::Nothing).await;
        let begun = || scene.ground.fabric.executions().len();
        eventually("the first executions", async || (begun() >= 5).then_some(())).await;
        scene
    })
    .await;
}

/// The broker is there and reads nothing more; there is more to send than fits on the way.
#[tokio::test]
async fn with_a_full_queue() {
    check(async || {
        let ground = Ground::start().await;
        let relay = Relay::to(ground.fabric.endpoint()).await;
        ground.lead_to(relay.endpoint());
        let client = ground.client(Role::Beside).await;
        let owner = ground.program().start_owner().await;
        relay.hold();
        let text = "x".repeat(12 << 20);
        let mut last = None;
        for _ in 0..10 {
            let large = job("echo").kwargs(json!({ "text": text }));
            last = Some(client.submit_job(large).await.expect("added"));
        }
        let last = last.expect("ten");
        let some_wait = async || {
            let jobs = client.list_jobs(&norfab_client::JobFilter::default()).await.expect("lists").jobs;
            jobs.iter().any(|job| job.status == JobStatus::Submitting).then_some(())
        };
        eventually("the first of the jobs on its way", some_wait).await;
        assert!(!last.job().await.expect("there").status.is_terminal());
        client.shutdown().await;
        Scene { ground, owner, kept: Kept::Relay(relay) }
    })
    .await;
}

#[tokio::test]
async fn while_another_program_has_the_database() {
    check(async || {
        let mut scene = scene(Ground::start().await, Kept::Nothing).await;
        let client = scene.ground.client(Role::Beside).await;
        let due = SystemClock.now().plus_seconds(1);
        client.schedule_job(job("echo").at(due)).await.expect("added");
        client.shutdown().await;
        let lock = scene.ground.locked().await;
        scene.owner.logged("Cannot use the job database").await;
        Scene { kept: Kept::Lock(lock), ..scene }
    })
    .await;
}

/// It waits for a database that another program is making.
#[tokio::test]
async fn while_it_opens_the_database() {
    check(async || {
        let ground = Ground::start().await;
        let folder = ground.database().parent().expect("a folder").to_owned();
        std::fs::create_dir_all(&folder).expect("folders");
        std::fs::write(ground.database(), "").expect("written");
        let lock = ground.locked().await;
        let owner = ground.program().spawn_owner();
        let holder = ground.database().with_extension("db.owner");
        eventually("the owner with its lock", async || holder.exists().then_some(())).await;
        Scene { ground, owner, kept: Kept::Lock(lock) }
    })
    .await;
}

#[tokio::test]
async fn while_it_waits_for_a_guest() {
    check(async || {
        let ground = Ground::start().await;
        let guest = ground.client(Role::Guest).await;
        let handle = guest.submit_job(job("sleep").kwargs(json!({"seconds": 60}))).await.expect("added");
        ground.until_sent(handle.id()).await;
        let mut owner = ground.program().spawn_owner();
        owner.logged("Waits for a command").await;
        Scene { ground, owner, kept: Kept::Client(guest) }
    })
    .await;
}

/// Moments that nobody chose, while jobs come and go.
#[tokio::test]
async fn at_any_moment() {
    let ground = Ground::start().await;
    let client = ground.client(Role::Beside).await;
    let mut chance = Chance::new();
    let mut late = Vec::new();
    for round in 0..12 {
        let mut owner = ground.program().spawn_owner();
        for _ in 0..20 {
            client.submit_job(job("echo")).await.expect("added");
        }
        // Before it has said anything it may not know yet that it can be asked to stop.
        owner.logged("Serves the jobs of").await;
        let moment = chance.moment(Duration::from_millis(300)).await;
        let signal = if round % 2 == 0 { "TERM" } else { "INT" };
        println!("{signal} after {moment:?}");
        let stopped = owner.stop_by(signal).await;
        assert!(stopped.status.success(), "{stopped:?}");
        late.extend((stopped.took > LIMIT).then_some(stopped.took));
        nothing_is_half_sent(&ground).await;
    }
    assert!(late.len() < ATTEMPTS, "{late:?}");
    // The next one ends what is left, and nothing has run twice.
    let owner = ground.program().start_owner().await;
    let jobs = ground.jobs().await;
    for job in &jobs {
        let outcome = client.job(&job.uuid).await.expect("there").outcome().await.expect("ends");
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
    assert_eq!(ground.fabric.executions().len(), jobs.len());
    owner.stop().await;
    client.shutdown().await;
}

/// What was on the way when the owner stopped, and never arrived, is sent by the next one.
#[tokio::test]
async fn what_was_on_the_way_is_sent_by_the_next_owner() {
    let ground = Ground::start().await;
    let relay = Relay::to(ground.fabric.endpoint()).await;
    ground.lead_to(relay.endpoint());
    let client = ground.client(Role::Beside).await;
    let owner = ground.program().start_owner().await;
    relay.hold();
    let mut handle = client.submit_job(job("echo")).await.expect("added");
    let submitting = async || {
        let status = handle.job().await.expect("there").status;
        (status == JobStatus::Submitting).then_some(())
    };
    eventually("the job on its way", submitting).await;
    owner.stop().await;
    assert_eq!(handle.job().await.expect("there").status, JobStatus::Submitting);
    relay.turn_to(ground.fabric.endpoint());
    let owner = ground.program().start_owner().await;
    let outcome = handle.outcome().await.expect("ends");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(ground.fabric.executions().len(), 1);
    owner.stop().await;
    client.shutdown().await;
}

/// The library's own stop, while another program has the database: it is over in time, and the lock is free.
#[tokio::test]
async fn of_a_client_whose_database_is_locked() {
    let mut took = Vec::new();
    while took.last().is_none_or(|took| *took > LIMIT) {
        assert!(took.len() < ATTEMPTS, "{took:?}");
        let ground = Ground::start().await;
        let client = ground.client(Role::Owner).await;
        let mut health = client.watch_health().expect("an owner dispatches");
        client.schedule_job(NewJob::new("demo", "echo").at(SystemClock.now().plus_seconds(1))).await.expect("added");
        let lock = ground.locked().await;
        health.wait_for(|health| health.storage_error.is_some()).await.expect("goes on");
        let begin = SystemClock.now();
        client.shutdown().await;
        took.push(SystemClock.now().since(begin));
        let dispatching = norfab_client::dispatching(&ground.database()).expect("looks");
        assert_eq!(dispatching, norfab_client::Dispatching::Nobody, "the lock is still held");
        let_go(lock).await;
        ground.client(Role::Owner).await.shutdown().await;
    }
    println!("{took:?}");
}
