//! Broker and workers that die, hang or are away, and a second client of our name: no job is lost, none runs twice.

use std::time::Duration;

use norfab_client::{Client, Coalesce, Config, JobId, JobStatus, NewJob, Outcome, OverlapPolicy, Workers};
use norfab_tests::{Chance, Peer, Security, eventually};
use serde_json::json;

use crate::audit::{all_completed, all_in_order, statuses, without_double_or_hole};
use crate::common::{
    W1, W2, builder, fabric, in_seconds, job, now, outcome, run, to, until_begun, until_registered, workers_of,
};
use crate::schedules::{create, every, until_runs};

with_curve_and_without!(
    the_broker_dies_five_times,
    a_worker_is_late_at_the_next_broker,
    a_worker_dies,
    a_worker_hangs_beyond_its_holdtime,
    both_workers_are_away,
    a_second_client_of_the_name_cuts_it_off,
);

/// A job that is due now. What is refused by the broker for a while does not fail it, unlike an immediate one.
fn due_now(task: &str) -> NewJob {
    job(task).at(now())
}

/// A client that asks again soon, so that a test does not wait for long.
async fn impatient(security: Security) -> Option<(Peer, Client)> {
    let (peer, client) = fabric(security, 2).await?;
    client.shutdown().await;
    let config = Config { poll_interval: Duration::from_secs(1), ..Config::default() };
    let client = builder(&peer).dispatch(config).build().await.expect("opens");
    Some((peer, client))
}

async fn scheduled(client: &Client, job: NewJob) -> JobId {
    client.schedule_job(job).await.expect("added").id().clone()
}

async fn submitted(client: &Client, job: NewJob) -> JobId {
    client.submit_job(job).await.expect("added").id().clone()
}

/// 500 jobs to one, all and any, every fifth of them immediate, and a schedule beside them.
async fn the_broker_dies_five_times(security: Security) {
    let Some((peer, client)) = impatient(security).await else { return };
    let new = every(1, "count").coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(100);
    let key = create(&client, new).await;
    let (mut patient, mut immediate) = (Vec::new(), Vec::new());
    let mut chance = Chance::new();
    for _ in 0..5 {
        let begun = peer.executions().len();
        for (number, workers) in (0..100).zip([to(W1), Workers::All, Workers::Any].into_iter().cycle()) {
            match number % 5 {
                0 => immediate.push(submitted(&client, job("count").workers(workers)).await),
                _ => patient.push(scheduled(&client, due_now("count").workers(workers)).await),
            }
        }
        let enough = begun + usize::try_from(chance.below(80)).expect("small");
        println!("Kills the broker after execution {enough}");
        eventually("some executions", async || (peer.executions().len() >= enough).then_some(())).await;
        peer.kill_broker().await;
        peer.start_broker_with_workers().await;
    }
    until_runs(&client, &key, 10).await;
    let patient = all_in_order(&peer, &client, &patient).await;
    let immediate = all_in_order(&peer, &client, &immediate).await;
    println!("Scheduled: {:?}, immediate: {:?}", statuses(&patient), statuses(&immediate));
    all_completed(&patient);
    for detail in immediate {
        // What met a broker without workers fails at once: by the broker's own words, or ours where any worker would do.
        let errors = detail.job.errors.concat();
        let is_refused = ["failed to target workers", "no worker of service"].iter().any(|why| errors.contains(why));
        assert!(detail.job.status == JobStatus::Completed || is_refused, "{:?}", detail.job);
    }
    without_double_or_hole(&peer, &client, &key).await;
    client.shutdown().await;
}

/// The client goes, and then the broker, after both workers got jobs for all and before the broker's word of that came here.
/// The next broker names one worker for seconds, and the other has the jobs too.
async fn a_worker_is_late_at_the_next_broker(security: Security) {
    let Some((peer, client)) = fabric(security, 2).await else { return };
    let mut jobs = vec![submitted(&client, job("count")).await];
    workers_of(outcome(&mut client.job(&jobs[0]).await.expect("there")).await);
    peer.pause_broker().await;
    for _ in 0..10 {
        jobs.push(submitted(&client, job("count")).await);
        jobs.push(scheduled(&client, due_now("count").workers(Workers::All)).await);
    }
    for id in &jobs[1..] {
        let is_sent = async || client.find_job(id).await.expect("there").status == JobStatus::Submitting;
        eventually("a job on its way", async || is_sent().await.then_some(())).await;
    }
    client.shutdown().await;
    peer.resume_broker().await;
    eventually("the executions", async || (peer.finished().len() == 2 * jobs.len()).then_some(())).await;
    peer.kill_broker().await;
    peer.pause_worker(W2).await;
    peer.start_broker().await;
    until_registered(&peer, &[W1]).await;
    let seconds = Duration::from_secs;
    let config = Config { poll_interval: seconds(1), gone_timeout: seconds(15), ..Config::default() };
    let client = builder(&peer).dispatch(config).build().await.expect("opens");
    for id in &jobs {
        let has_answered = async || client.find_job(id).await.expect("there").workers_completed.contains(W1);
        eventually("the first worker's result", async || has_answered().await.then_some(())).await;
    }
    peer.resume_worker(W2).await;
    let jobs = all_in_order(&peer, &client, &jobs).await;
    all_completed(&jobs);
    assert!(jobs.iter().all(|detail| detail.results.len() == 2));
    client.shutdown().await;
}

async fn a_worker_dies(security: Security) {
    let Some((peer, client)) = impatient(security).await else { return };
    let before = submitted(&client, job("count").workers(to(W2))).await;
    workers_of(outcome(&mut client.job(&before).await.expect("there")).await);
    let sleep = job("sleep").kwargs(json!({"seconds": 3600}));
    let mut interrupted = client.submit_job(sleep.workers(to(W2)).timeout(10)).await.expect("added");
    until_begun(&peer, interrupted.id(), W2).await;
    peer.kill_worker(W2).await;
    // The broker takes these for a worker that is no more, for as long as it does not know.
    let mut lost = vec![before];
    for workers in [to(W2), Workers::All, Workers::Any, Workers::Any, Workers::List(vec![W2.into(), W1.into()])] {
        lost.push(scheduled(&client, due_now("count").workers(workers)).await);
    }
    until_registered(&peer, &[W1]).await;
    // And these it refuses.
    lost.push(scheduled(&client, due_now("count").workers(to(W2))).await);
    lost.push(scheduled(&client, due_now("count").workers(Workers::Any)).await);
    peer.restart_worker(W2).await;
    let jobs = all_in_order(&peer, &client, &lost).await;
    all_completed(&jobs);
    assert_eq!(jobs[5].results.len(), 2, "{:?}", jobs[5].job);

    // What it was running when it died it neither ends nor begins again.
    let Outcome::Stale { results, .. } = outcome(&mut interrupted).await else { panic!("it cannot end") };
    assert_eq!(results.keys().collect::<Vec<_>>(), [W2]);
    assert_eq!(peer.runs()[interrupted.id().as_str()][W2], 1);
    client.shutdown().await;
}

async fn a_worker_hangs_beyond_its_holdtime(security: Security) {
    let Some((peer, client)) = impatient(security).await else { return };
    let during = submitted(&client, job("sleep").kwargs(json!({"seconds": 2}))).await;
    until_begun(&peer, &during, W2).await;
    peer.pause_worker(W2).await;
    let mut jobs = vec![during];
    for workers in [to(W2), Workers::Any, Workers::Any, Workers::List(vec![W2.into(), W1.into()])] {
        jobs.push(scheduled(&client, due_now("count").workers(workers)).await);
    }
    until_registered(&peer, &[W1]).await;
    jobs.push(scheduled(&client, due_now("count").workers(to(W2))).await);
    // It is not all of the workers that matters then, but those that are there.
    assert_eq!(workers_of(run(&client, job("count")).await).into_iter().collect::<Vec<_>>(), [W1]);
    peer.resume_worker(W2).await;
    until_registered(&peer, &[W1, W2]).await;
    let jobs = all_in_order(&peer, &client, &jobs).await;
    all_completed(&jobs);
    assert_eq!((jobs[0].results.len(), jobs[4].results.len()), (2, 2));
    client.shutdown().await;
}

async fn both_workers_are_away(security: Security) {
    let Some((peer, client)) = impatient(security).await else { return };
    for worker in [W1, W2] {
        peer.kill_worker(worker).await;
    }
    until_registered(&peer, &[]).await;
    let back = in_seconds(20);
    let mut due = Vec::new();
    for workers in [to(W2), Workers::All, Workers::Any, Workers::List(vec![W1.into(), W2.into()])] {
        due.push(scheduled(&client, job("count").workers(workers).at(in_seconds(1))).await);
    }
    for workers in [to(W2), Workers::All, Workers::Any, Workers::List(vec![W1.into(), W2.into()])] {
        let mut refused = client.submit_job(job("count").workers(workers)).await.expect("added");
        let Outcome::Failed { errors, results } = outcome(&mut refused).await else { panic!("nobody can run it") };
        assert!(!errors.is_empty() && results.is_empty(), "{errors:?}");
    }
    assert!(now() < back, "an immediate job does not fail at once");
    eventually("the end of the twenty seconds", async || (now() >= back).then_some(())).await;
    for id in &due {
        let status = client.find_job(id).await.expect("there").status;
        assert!(!status.is_terminal(), "{id} is {status} while it waits for its workers");
    }
    for worker in [W1, W2] {
        peer.restart_worker(worker).await;
    }
    let jobs = all_in_order(&peer, &client, &due).await;
    all_completed(&jobs);
    assert_eq!(jobs[3].results.len(), 2, "{:?}", jobs[3].job);
    client.shutdown().await;
}

async fn a_second_client_of_the_name_cuts_it_off(security: Security) {
    let Some((peer, client)) = impatient(security).await else { return };
    let under_way = submitted(&client, job("sleep").kwargs(json!({"seconds": 2}))).await;
    until_begun(&peer, &under_way, W1).await;
    peer.visit_as("rust").await;
    let mut jobs = vec![under_way];
    for workers in [to(W2), Workers::All, Workers::Any] {
        jobs.push(submitted(&client, job("count").workers(workers.clone())).await);
        jobs.push(scheduled(&client, due_now("count").workers(workers)).await);
    }
    let jobs = all_in_order(&peer, &client, &jobs).await;
    all_completed(&jobs);
    client.shutdown().await;
}
