//! The process that dispatches, killed at any moment, and other processes beside it.

use std::collections::BTreeSet;
use std::time::Duration;

use norfab_client::{Client, JobFilter, JobId, JobStatus, NewJob, Workers};
use norfab_tests::{Chance, Ended, Peer, Program, Security, eventually};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::audit::{all_completed, all_in_order};
use crate::common::{
    W1, W2, builder, fabric_and_program, in_seconds, job, now, outcome, run, to, until_registered, workers_of,
};

with_curve_and_without!(
    the_next_owner_starts_at_once,
    killed_at_fifty_moments,
    killed_before_the_broker_has_the_job,
    killed_before_the_broker_confirms_the_job,
    killed_before_it_knows_the_workers,
    killed_before_a_worker_confirms_the_job,
    killed_before_the_result_is_kept,
);

/// What runs while the owner is killed: to one, all and any, immediate, due and to come, quick and slow.
fn some_jobs() -> Vec<NewJob> {
    let slow = || job("sleep").kwargs(json!({"seconds": 0.3}));
    vec![
        job("count").workers(to(W2)),
        job("count"),
        job("count").workers(Workers::Any),
        job("count").workers(Workers::Any).at(now()),
        job("count").at(now()),
        slow().workers(Workers::Any),
        slow().workers(Workers::Any).at(in_seconds(1)),
        slow().at(in_seconds(1)),
    ]
}

async fn add(client: &Client, job: NewJob) -> JobId {
    let is_immediate = job.start == norfab_client::Start::Now;
    let added = if is_immediate { client.submit_job(job).await } else { client.schedule_job(job).await };
    added.expect("added").id().clone()
}

async fn killed_at_fifty_moments(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let mut jobs = Vec::new();
    let mut chance = Chance::new();
    for round in 0..50 {
        // Half of the owners find jobs that wait, half begin while they are added.
        let before = if round % 2 == 0 { None } else { Some(program.spawn_owner()) };
        for job in some_jobs() {
            jobs.push(add(&client, job).await);
        }
        let owner = before.unwrap_or_else(|| program.spawn_owner());
        let moment = chance.moment(Duration::from_millis(500)).await;
        println!("Killed after {moment:?}");
        calm(&owner.kill().await);
    }
    let owner = program.start_owner().await;
    let details = all_in_order(&peer, &client, &jobs).await;
    all_completed(&details);
    calm(&owner.stop().await);
    client.shutdown().await;
}

/// A job to one worker, all of them and any of them, each immediate and scheduled.
async fn one_of_each_kind(client: &Client, kind: impl Fn() -> NewJob) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for workers in [to(W2), Workers::All, Workers::Any] {
        jobs.push(add(client, kind().workers(workers.clone())).await);
        jobs.push(add(client, kind().workers(workers).at(now())).await);
    }
    jobs
}

/// Waits until these jobs are in this status, those to any worker aside: to choose one, the broker may have to be asked.
async fn until_all(client: &Client, jobs: &[JobId], status: JobStatus) {
    eventually("the jobs in another status", async || {
        for id in jobs {
            let job = client.find_job(id).await.expect("there");
            if job.status != status && job.workers_requested != Workers::Any {
                return None;
            }
        }
        Some(())
    })
    .await;
}

/// The owner after the one that was killed brings all of these jobs to their end.
async fn the_next_owner_ends_them(peer: &Peer, program: &Program, client: Client, jobs: &[JobId]) {
    until_registered(peer, &[W1, W2]).await;
    let owner = program.start_owner().await;
    all_completed(&all_in_order(peer, &client, jobs).await);
    calm(&owner.stop().await);
    client.shutdown().await;
}

/// What was claimed does not arrive: the broker dies with it.
async fn killed_before_the_broker_has_the_job(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let owner = program.start_owner().await;
    peer.pause_broker().await;
    let jobs = one_of_each_kind(&client, || job("count")).await;
    until_all(&client, &jobs, JobStatus::Submitting).await;
    calm(&owner.kill().await);
    peer.kill_broker().await;
    peer.start_broker_with_workers().await;
    the_next_owner_ends_them(&peer, &program, client, &jobs).await;
}

/// What was sent arrives, and nobody is there any more to be told.
async fn killed_before_the_broker_confirms_the_job(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let owner = program.start_owner().await;
    peer.pause_broker().await;
    let jobs = one_of_each_kind(&client, || job("count")).await;
    until_all(&client, &jobs, JobStatus::Submitting).await;
    calm(&owner.kill().await);
    peer.resume_broker().await;
    the_next_owner_ends_them(&peer, &program, client, &jobs).await;
}

/// As before, and results are told to the next owner from its first moment on: who speaks first is not all.
async fn killed_before_it_knows_the_workers(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let owner = program.start_owner().await;
    // All are sent at once, and keep the workers busy until the next owner is there.
    let (mut jobs, at) = (Vec::new(), in_seconds(5));
    for _ in 0..200 {
        jobs.push(add(&client, job("count").at(at)).await);
    }
    eventually("the time of the jobs", async || (at.since(now()) < Duration::from_millis(200)).then_some(())).await;
    peer.pause_broker().await;
    until_all(&client, &jobs, JobStatus::Submitting).await;
    calm(&owner.kill().await);
    peer.resume_broker().await;
    let owner = program.start_owner().await;
    let details = all_in_order(&peer, &client, &jobs).await;
    all_completed(&details);
    assert!(details.iter().all(|detail| detail.results.len() == 2));
    calm(&owner.stop().await);
    client.shutdown().await;
}

/// The broker has confirmed it, and the workers are still to begin.
async fn killed_before_a_worker_confirms_the_job(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let owner = program.start_owner().await;
    for worker in [W1, W2] {
        peer.pause_worker(worker).await;
    }
    let jobs = one_of_each_kind(&client, || job("count")).await;
    until_all(&client, &jobs, JobStatus::Dispatched).await;
    calm(&owner.kill().await);
    for worker in [W1, W2] {
        peer.resume_worker(worker).await;
    }
    the_next_owner_ends_them(&peer, &program, client, &jobs).await;
}

/// The results are there, and the database takes nothing: another process is writing.
async fn killed_before_the_result_is_kept(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let owner = program.start_owner().await;
    let jobs = one_of_each_kind(&client, || job("sleep").kwargs(json!({"seconds": 2.5}))).await;
    until_all(&client, &jobs, JobStatus::Started).await;
    let path = builder(&peer).database_path().expect("a path");
    let mut writer = SqliteConnectOptions::new().filename(path).connect().await.expect("opens");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.expect("locks");
    let ended = || peer.finished_runs().into_iter().filter(|(id, _)| jobs.iter().any(|job| job.as_str() == id)).count();
    eventually("the end of all tasks", async || (ended() == jobs.len()).then_some(())).await;
    // It may complain of the database.
    owner.kill().await;
    sqlx::query("ROLLBACK").execute(&mut writer).await.expect("unlocks");
    writer.close().await.expect("closes");
    for id in &jobs {
        let job = client.find_job(id).await.expect("there");
        assert!(!job.status.is_terminal(), "it was kept all the same: {job:?}");
    }
    the_next_owner_ends_them(&peer, &program, client, &jobs).await;
}

async fn the_next_owner_starts_at_once(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 1).await else { return };
    let first = program.start_owner().await;
    let mut running = client.submit_job(job("sleep").kwargs(json!({"seconds": 2}))).await.expect("added");
    let (status, log) = program.spawn_owner().end().await;
    assert_eq!(status.code(), Some(3), "a second owner beside the first: {log:?}");
    calm(&first.kill().await);
    // It is not sent away by what the dead one left behind.
    let second = program.start_owner().await;
    workers_of(outcome(&mut running).await);
    workers_of(run(&client, job("count")).await);
    all_completed(&all_in_order(&peer, &client, &[running.id().clone()]).await);
    calm(&second.stop().await);
    client.shutdown().await;
}

/// Ten at a time add, withdraw, move and list, while the owner sends what becomes due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_processes_beside_an_owner() {
    let Some((peer, program, client)) = fabric_and_program(Security::Curve, 1).await else { return };
    let owner = program.start_owner().await;
    let busy: Vec<_> = (0..10).map(|number| tokio::spawn(be_busy(program.clone(), number))).collect();
    let mut withdrawn = BTreeSet::new();
    for task in busy {
        withdrawn.extend(task.await.expect("only typed errors"));
    }
    let page = client.list_jobs(&JobFilter { limit: 1000, ..JobFilter::default() }).await.expect("lists");
    let jobs: Vec<JobId> = page.jobs.iter().map(|job| job.uuid.clone()).collect();
    assert_eq!((jobs.len(), page.unreadable.len()), (10 * ROUNDS, 0));
    let details = all_in_order(&peer, &client, &jobs).await;
    let posts = peer.posts();
    for detail in details {
        let (id, status) = (detail.job.uuid.as_str(), detail.job.status);
        let expected = if withdrawn.contains(id) { JobStatus::Cancelled } else { JobStatus::Completed };
        assert_eq!(status, expected, "{:?}", detail.job);
        assert_eq!(posts.contains_key(id), status == JobStatus::Completed, "{:?}", detail.job);
    }
    calm(&owner.stop().await);
    client.shutdown().await;
}

const ROUNDS: usize = 4;

/// Gives the jobs that it has withdrawn.
async fn be_busy(program: Program, number: usize) -> Vec<String> {
    let mut withdrawn = Vec::new();
    let name = format!("schedule {}", number / 2);
    for _ in 0..ROUNDS {
        let added = program.run(&["job", "schedule", "dummy", "count", "--in", "1s", "--json"]).await;
        typed(&added, &[0]);
        let id = added.json()["uuid"].as_str().expect("a UUID").to_owned();
        // Two processes want each name.
        typed(&program.run(&["schedule", "create", &name, "dummy", "count", "--every", "1h", "--json"]).await, &[0, 3]);
        typed(&program.run(&["job", "list", "--json"]).await, &[0]);
        // It may be on its way by now.
        typed(&program.run(&["job", "reschedule", &id, "--in", "1s", "--json"]).await, &[0, 3]);
        let cancelled = program.run(&["job", "cancel", &id, "--json"]).await;
        typed(&cancelled, &[0, 3]);
        if cancelled.code == Some(0) {
            withdrawn.push(id);
        }
        typed(&program.run(&["schedule", "delete", &name, "--json"]).await, &[0, 4]);
    }
    withdrawn
}

/// A command ended in one of these ways, and said so in JSON.
#[track_caller]
fn typed(ended: &Ended, codes: &[i32]) {
    assert!(ended.code.is_some_and(|code| codes.contains(&code)), "{ended:?}");
    let kind = ended.json()["error"]["kind"].as_str().map(str::to_owned);
    let expected = match ended.code {
        Some(3) => Some("conflict"),
        Some(4) => Some("not_found"),
        _ => None,
    };
    assert_eq!(kind.as_deref(), expected, "{ended:?}");
}

/// A log in which nothing is wrong with the program itself.
#[track_caller]
fn calm(log: &[String]) {
    let errors: Vec<_> = log.iter().filter(|line| line.contains(" ERROR ") || line.contains("panicked")).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
