//! A client of ours on the real NorFab, for one test.

use std::collections::BTreeSet;
use std::time::Duration;

use norfab_client::{
    Client, ClientBuilder, Clock, Job, JobHandle, JobId, Json, NewJob, Outcome, Role, SystemClock, Timestamp,
    WorkerResult, Workers,
};
use norfab_tests::{Peer, Program, Security, eventually};

pub(crate) const W1: &str = "dummy-worker-1";
pub(crate) const W2: &str = "dummy-worker-2";

/// More than anything takes that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Handle = JobHandle<norfab_client::SqliteStore, SystemClock>;

const NAME: &str = "rust";

/// A peer with short keepalives, and a client on its folder. Nothing when the peer is to be left out.
pub(crate) async fn fabric(security: Security, workers: u32) -> Option<(Peer, Client)> {
    let peer = peer(security, workers).await?;
    let client = open(&peer).await;
    Some((peer, client))
}

/// A peer with short keepalives, the program for a client on its folder, and a client that only adds and looks on. Nothing
/// when the peer is to be left out.
pub(crate) async fn fabric_and_program(security: Security, workers: u32) -> Option<(Peer, Program, Client)> {
    let peer = peer(security, workers).await?;
    let program = Program::new(env!("CARGO_BIN_EXE_norfab-under-test"), peer.base_dir(), NAME);
    let beside = builder(&peer).role(Role::Beside).build().await.expect("opens");
    Some((peer, program, beside))
}

async fn peer(security: Security, workers: u32) -> Option<Peer> {
    let peer = Peer::builder().workers(workers).security(security);
    peer.keepalive(Duration::from_millis(500)).multiplier(3).start().await
}

pub(crate) fn builder(peer: &Peer) -> ClientBuilder {
    Client::builder().folder(peer.base_dir()).name(NAME)
}

pub(crate) async fn open(peer: &Peer) -> Client {
    builder(peer).build().await.expect("opens")
}

pub(crate) fn job(task: &str) -> NewJob {
    NewJob::new("dummy", task)
}

pub(crate) fn to(worker: &str) -> Workers {
    Workers::One(worker.to_owned())
}

pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

pub(crate) fn in_seconds(seconds: u32) -> Timestamp {
    now().plus_seconds(seconds)
}

/// Runs a job to its outcome.
pub(crate) async fn run(client: &Client, job: NewJob) -> Outcome {
    within(client.run_job(job)).await.expect("runs")
}

pub(crate) async fn outcome(handle: &mut Handle) -> Outcome {
    within(handle.outcome()).await.expect("ends")
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it took too long")
}

/// The workers that answered, and whether their tasks worked.
#[track_caller]
pub(crate) fn completed(outcome: Outcome) -> Vec<(String, WorkerResult)> {
    let Outcome::Completed { results } = outcome else { panic!("not completed: {outcome:?}") };
    results.into_iter().map(|(worker, raw)| (worker, read(&raw))).collect()
}

fn read(raw: &Json) -> WorkerResult {
    WorkerResult::read(raw).expect("a result of NorFab's shape")
}

#[track_caller]
pub(crate) fn workers_of(outcome: Outcome) -> BTreeSet<String> {
    completed(outcome)
        .into_iter()
        .map(|(worker, result)| {
            assert!(!result.failed, "{worker}: {result:?}");
            worker
        })
        .collect()
}

/// Waits until the broker knows these workers and no others.
pub(crate) async fn until_registered(peer: &Peer, workers: &[&str]) {
    eventually("the workers that the broker knows", async || {
        let mut known: Vec<String> = peer.stats().await.registered?.into_iter().map(|worker| worker.name).collect();
        known.sort();
        (known == workers).then_some(())
    })
    .await;
}

/// Waits until a worker has begun a job.
pub(crate) async fn until_begun(peer: &Peer, job: &JobId, worker: &str) {
    let has_begun = || peer.runs().get(job.as_str()).is_some_and(|workers| workers.contains_key(worker));
    eventually("the beginning of the job", async || has_begun().then_some(())).await;
}

/// How often each worker executed a job.
pub(crate) fn executions(peer: &Peer, job: &Job) -> Vec<String> {
    let mut workers: Vec<_> =
        peer.executions().into_iter().filter(|run| run.juuid == job.uuid.as_str()).map(|run| run.worker).collect();
    workers.sort();
    workers
}

/// Makes each test one with CURVE and one without.
macro_rules! with_curve_and_without {
    ($($name:ident),+ $(,)?) => {
        mod curve {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(norfab_tests::Security::Curve).await;
            })+
        }
        mod plain {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(norfab_tests::Security::Plain).await;
            })+
        }
    };
}
