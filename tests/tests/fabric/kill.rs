//! The process that dispatches, killed at any moment, and other processes beside it.

use std::collections::BTreeSet;

use norfab_client::{JobFilter, JobId, JobStatus};
use norfab_tests::{Ended, Program, Security};
use serde_json::json;

use crate::audit::{all_completed, all_in_order};
use crate::common::{fabric_and_program, job, outcome, run, workers_of};

with_curve_and_without!(the_next_owner_starts_at_once);

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
