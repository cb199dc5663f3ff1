//! Commands that serve their own job, and whoever else comes to the database meanwhile: another such command, an owner,
//! a crash.

#![cfg(unix)]

mod common;

use common::{Owner, PATIENCE, Site};
use norfab_client::{Client, Clock, NewJob, Outcome, Role, SystemClock};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr};

/// A command that waits for its job.
struct Waiting {
    child: Child,
    progress: Lines<BufReader<ChildStderr>>,
}

impl Waiting {
    /// One whose job has begun, and takes so many seconds.
    async fn start(site: &Site, seconds: &str) -> Self {
        let seconds = format!("seconds={seconds}");
        let child = site.command(&["job", "run", "demo", "sleep", "-k", &seconds]).spawn().expect("starts");
        let mut waiting = Self::of(child);
        waiting.tells("STARTED").await;
        waiting
    }

    fn of(mut child: Child) -> Self {
        let progress = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self { child, progress }
    }

    async fn tells(&mut self, part: &str) {
        let told = tokio::time::timeout(PATIENCE, async {
            while !self.progress.next_line().await.expect("UTF-8").expect("a line").contains(part) {}
        });
        told.await.unwrap_or_else(|_| panic!("it did not tell {part:?}"));
    }

    async fn ends_well(self) {
        // The pipe stays open until it has ended.
        let Self { child, progress: _progress } = self;
        common::ended(child).await.exits(0);
    }
}

async fn only_job(site: &Site) -> Value {
    let list = site.run(&["--json", "job", "list"]).await.exits(0).json();
    assert_eq!(list["jobs"].as_array().map(Vec::len), Some(1), "{list}");
    list["jobs"][0].clone()
}

#[tokio::test]
async fn two_at_once_serve_one_after_the_other() {
    let site = Site::start().await;
    let first = Waiting::start(&site, "3").await;
    let line = ["--connect-timeout", "1", "job", "run", "demo", "echo"];
    let child = site.command(&line).spawn().expect("starts");
    let mut second = Waiting::of(child);
    second.tells(&format!("waits for process {}", first.child.id().expect("it runs"))).await;
    assert_eq!(site.fabric.executions().len(), 2);
    first.ends_well().await;
    second.ends_well().await;
    assert_eq!(site.fabric.executions().len(), 4);
}

#[tokio::test]
async fn an_owner_waits_for_a_guest_and_says_so() {
    let site = Site::start().await;
    let left = site.run(&["--json", "job", "schedule", "demo", "echo", "--in", "0s"]).await.exits(0).json();
    let mut guest = Waiting::start(&site, "2").await;
    let mut owner = Owner::spawn(&mut site.command(&["run"]));
    let said = owner.wait_for("Waits for a command").await;
    assert!(said.contains(&guest.child.id().expect("it runs").to_string()), "{said}");
    assert_eq!(site.fabric.executions().len(), 2, "the job of nobody was sent");
    guest.tells("COMPLETED").await;
    owner.wait_for("The link to the broker is up").await;
    guest.ends_well().await;
    let (_, outcome) = site.outcome(&left["uuid"]).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(site.fabric.executions().len(), 4);
    owner.stop().await.exits(0);
}

/// The system frees the lock of a process that is killed; what it left beside it misleads nobody.
#[tokio::test]
async fn an_owner_takes_over_at_once_when_a_guest_is_killed() {
    let site = Site::start().await;
    let mut guest = Waiting::start(&site, "2").await;
    guest.child.kill().await.expect("it can be killed");
    let holder = site.database().with_extension("db.owner");
    assert!(holder.exists(), "a killed guest leaves its name behind");
    let mut owner = Owner::spawn(&mut site.command(&["run"]));
    // Nothing is waited for before.
    let first = owner.wait_for("").await;
    assert!(first.contains("Serves the jobs of"), "{first}");
    let (job, outcome) = site.outcome(&only_job(&site).await["uuid"]).await;
    assert!(matches!(outcome, Outcome::Completed { results } if results.len() == 2), "{job:?}");
    assert_eq!(site.fabric.executions().len(), 2, "it was run again");
    owner.stop().await.exits(0);
}

/// The next guest serves its own job, and leaves that of the killed one to an owner.
#[tokio::test]
async fn a_guest_comes_after_a_killed_one() {
    let site = Site::start().await;
    let mut killed = Waiting::start(&site, "60").await;
    killed.child.kill().await.expect("it can be killed");
    site.run(&["job", "run", "demo", "echo"]).await.exits(0);
    let list = site.run(&["--json", "job", "list", "--status", "started"]).await.exits(0).json();
    assert_eq!(list["jobs"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(site.fabric.executions().len(), 4);
}

/// A handle in the owner's process learns what another process does to its job.
#[tokio::test]
async fn a_handle_of_the_owner_ends_when_another_process_cancels() {
    let site = Site::start().await;
    let builder = Client::builder().folder(site.folder.path()).endpoint(site.fabric.endpoint());
    let owner = builder.role(Role::Owner).build().await.expect("opens");
    let later = |hours: u32| NewJob::new("demo", "echo").at(SystemClock.now().plus_seconds(3600 * hours));
    let mut cancelled = owner.schedule_job(later(1)).await.expect("added");
    let mut moved = owner.schedule_job(later(2)).await.expect("added");
    site.run(&["job", "cancel", cancelled.id().as_str()]).await.exits(0);
    site.run(&["job", "reschedule", moved.id().as_str(), "--in", "0s"]).await.exits(0);
    let outcomes = async { tokio::join!(cancelled.outcome(), moved.outcome()) };
    let (cancelled, moved) = tokio::time::timeout(PATIENCE, outcomes).await.expect("in time");
    assert_eq!(cancelled.expect("readable"), Outcome::Cancelled);
    assert!(matches!(moved, Ok(Outcome::Completed { .. })), "{moved:?}");
    owner.shutdown().await;
}
