//! `norfab run`, and what other processes do beside it.

#![cfg(unix)]

mod common;

use common::{Nobody, Owner, Site, at};
use norfab_client::{JobStatus, Outcome};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::test]
async fn a_job_that_another_process_scheduled_runs_at_its_time() {
    let site = Site::start().await;
    let owner = Owner::start(&site).await;
    let ended = site.run(&["--json", "job", "schedule", "demo", "echo", "--in", "1s", "-k", "n=1"]).await;
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let job = ended.exits(0).json();
    assert_eq!(job["status"], "SCHEDULED");
    let (row, outcome) = site.outcome(&job["uuid"]).await;
    assert!(matches!(outcome, Outcome::Completed { results } if results.len() == 2));
    assert!(row.released_at >= row.scheduled_for);
    let uuid = job["uuid"].as_str().expect("text");
    let shown = site.run(&["job", "show", uuid, "--events"]).await;
    shown.exits(0);
    for part in ["COMPLETED", "scheduled for", "demo-worker-1: completed", "\"n\": 1", "events:"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let shown = site.run(&["--json", "job", "show", uuid, "--events"]).await.exits(0).json();
    let events = shown["events"].as_array().expect("events");
    assert!(events.len() >= 4 && events.iter().all(|event| event["event_data"].is_object()), "{shown}");
    site.run(&["job", "cancel", uuid]).await.fails(3, "is COMPLETED, and only a SCHEDULED job can be cancelled");
    site.run(&["job", "reschedule", uuid, "--in", "1h"]).await.fails(3, "only a SCHEDULED job can be rescheduled");
    owner.stop().await.exits(0);
}

#[tokio::test]
async fn cancelled_and_moved_before_the_time() {
    let site = Site::start().await;
    let schedule = ["--json", "job", "schedule", "demo", "echo", "--in", "1h"];
    let ended = site.run(&schedule).await;
    assert!(ended.stderr.contains("`norfab run`"), "{ended:?}");
    let cancelled = ended.json();
    let moved = site.run(&schedule).await.exits(0).json();
    let owner = Owner::start(&site).await;
    let gone = site.run(&["--json", "job", "cancel", cancelled["uuid"].as_str().expect("text")]).await;
    assert_eq!(gone.exits(0).json()["status"], "CANCELLED");
    let now = site.run(&["--json", "job", "reschedule", moved["uuid"].as_str().expect("text"), "--in", "0s"]).await;
    assert_eq!(now.exits(0).json()["uuid"], moved["uuid"]);
    let (row, outcome) = site.outcome(&moved["uuid"]).await;
    assert!(matches!(outcome, Outcome::Completed { .. }) && row.status == JobStatus::Completed);
    let list = site.run(&["--json", "job", "list", "--status", "cancelled"]).await.exits(0).json();
    assert_eq!(list["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["jobs"][0]["uuid"], cancelled["uuid"]);
    assert_eq!(site.fabric.executions().len(), 2);
    owner.stop().await.exits(0);
}

#[tokio::test]
async fn a_second_owner_is_refused() {
    let site = Site::start().await;
    let owner = Owner::start(&site).await;
    let second = site.run(&["run"]).await;
    second.exits(3);
    assert!(second.stderr.contains("norfab.db.lock") && second.stderr.contains("PID"), "{second:?}");
    site.run(&["run", "--json"]).await.fails_in_json(3, "conflict", "norfab.db.lock");
    owner.stop().await.exits(0);
}

#[tokio::test]
async fn it_goes_on_trying_until_the_fabric_is_there() {
    for _ in 0..10 {
        let folder = TempDir::new().expect("temporary folder");
        let nobody = Nobody::listens();
        let endpoint = nobody.endpoint();
        let mut owner = Owner::spawn(&mut at(folder.path(), &endpoint, &["run"]));
        owner.wait_for("The link to the broker is down").await;
        // The port is free for a moment, and another program may take it.
        let Some(fabric) = nobody.give_way().await else { continue };
        owner.wait_for("The link to the broker is up").await;
        let ended = common::end(&mut at(folder.path(), &endpoint, &["--json", "job", "run", "demo", "echo"])).await;
        assert_eq!(ended.exits(0).json()["status"], "COMPLETED");
        owner.stop().await.exits(0);
        fabric.shutdown().await;
        return;
    }
    panic!("the port was taken every time");
}

#[tokio::test]
async fn it_stops_while_a_job_runs_and_a_waiting_command_takes_over() {
    let site = Site::start().await;
    let owner = Owner::start(&site).await;
    let mut waiting = site.command(&["job", "run", "demo", "sleep", "-k", "seconds=2"]).spawn().expect("starts");
    let mut progress = BufReader::new(waiting.stderr.take().expect("piped")).lines();
    while !progress.next_line().await.expect("UTF-8").expect("a line").contains("STARTED") {}
    owner.stop().await.exits(0);
    // The command that waits takes over, and the job is not run twice.
    while let Some(line) = progress.next_line().await.expect("UTF-8") {
        assert!(!line.contains("error:"), "{line}");
    }
    common::ended(waiting).await.exits(0);
    assert_eq!(site.fabric.executions().len(), 2);
}

#[tokio::test]
async fn signals_and_json() {
    let site = Site::start().await;
    let mut owner = Owner::spawn(&mut site.command(&["run", "--json"]));
    owner.wait_for("Serves the jobs of").await;
    let report = owner.stop().await.exits(0).json();
    assert_eq!((&report["stopped_by"], &report["total_jobs"]), (&"SIGTERM".into(), &0.into()), "{report}");
}

#[tokio::test]
async fn it_stops_in_order_without_a_fabric_or_a_database() {
    let folder = TempDir::new().expect("temporary folder");
    let nobody = Nobody::listens();
    let mut owner = Owner::spawn(&mut at(folder.path(), &nobody.endpoint(), &["run", "--json"]));
    owner.wait_for("The link to the broker is down").await;
    // What the process has open stays open, but nobody finds it any more, so that it cannot be counted.
    std::fs::rename(folder.path().join("__norfab__"), folder.path().join("away")).expect("renames");
    let report = owner.stop().await.exits(0).json();
    assert_eq!((&report["stopped_by"], report.get("total_jobs")), (&"SIGTERM".into(), None), "{report}");
}

#[tokio::test]
async fn a_question_beside_an_owner_is_answered() {
    let site = Site::start().await;
    let owner = Owner::start(&site).await;
    let line = ["job", "run", "demo", "ask", "--workers", "any", "-k", "question=Go on?", "--answer", "yes"];
    let ended = site.run(&line).await;
    ended.exits(0);
    assert!(ended.stderr.contains("Go on?") && ended.stdout.contains("yes"), "{ended:?}");
    owner.stop().await.exits(0);
    assert_eq!(site.fabric.executions().len(), 1);
}
