//! A database that cannot be written for a while: nothing is sent that is not in it, reading goes on, one error tells of
//! it, and all goes on by itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use norfab_client::{Clock, JobStatus, Outcome, Role, SystemClock};
use norfab_tests::{Ended, OwnerProcess, Program};
use serde_json::json;

use crate::common::{Ground, job, let_go};

const TROUBLE: &str = "Cannot use the job database";

/// As long as somebody may hold a database who looks at it with another tool.
const HALF_A_MINUTE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn another_program_has_it_for_half_a_minute() {
    let ground = Ground::start().await;
    let mut owner = ground.program().start_owner().await;
    let client = ground.client(Role::Beside).await;
    let mut running = client.submit_job(job("sleep").kwargs(json!({"seconds": 3}))).await.expect("added");
    ground.until_sent(running.id()).await;
    let mut due = client.schedule_job(job("echo").at(SystemClock.now().plus_seconds(2))).await.expect("added");
    let lock = ground.locked().await;
    let begin = SystemClock.now();
    assert_eq!(due.job().await.expect("there").status, JobStatus::Scheduled);

    let error = owner.logged(TROUBLE).await;
    assert!(error.contains(" ERROR ") && error.contains("locked"), "{error}");
    reading_goes_on(&ground.program(), 2).await;
    let refused = ground.program().run(&["job", "schedule", "demo", "echo", "--in", "1s", "--json"]).await;
    is_refused(&refused, "locked");
    // It is this time that matters here.
    tokio::time::sleep(HALF_A_MINUTE.saturating_sub(SystemClock.now().since(begin))).await;
    assert!(!ground.was_sent(due.id()), "it was sent, and is {:?}", due.job().await);
    let_go(lock).await;

    for handle in [&mut running, &mut due] {
        let outcome = handle.outcome().await.expect("ends");
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
    assert_eq!(ground.fabric.executions().len(), 2);
    assert_eq!(ground.jobs().await.len(), 2, "what was refused is not there");
    client.shutdown().await;
    it_works_again(owner).await;
}

/// A file that lets itself not be written any more while the owner has it open, as a file system does that is remounted
/// after an error.
#[tokio::test]
async fn it_becomes_read_only_while_the_owner_runs() {
    let ground = Ground::start().await;
    let mut owner = ground.program().start_owner().await;
    let client = ground.client(Role::Beside).await;
    let mut due = client.schedule_job(job("echo").at(SystemClock.now().plus_seconds(2))).await.expect("added");
    let Some(frozen) = Frozen::freeze(&ground.database()) else { return };
    assert_eq!(due.job().await.expect("there").status, JobStatus::Scheduled);

    let error = owner.logged(TROUBLE).await;
    assert!(error.contains(" ERROR "), "{error}");
    reading_goes_on(&ground.program(), 1).await;
    let line = ["job", "run", "demo", "echo", "--json"];
    is_refused(&ground.program().run(&line).await, "the job database");
    assert!(ground.fabric.messages().iter().all(|message| message.command != "0x04"), "something was sent");
    drop(frozen);

    let outcome = due.outcome().await.expect("ends");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(ground.fabric.executions().len(), 1);
    client.shutdown().await;
    it_works_again(owner).await;
}

/// A process may open the database more than once, and close it again, without taking anything from who has it open.
#[tokio::test]
async fn one_process_opens_it_twice_beside_another() {
    let ground = Ground::start().await;
    let owner = ground.client(Role::Owner).await;
    for role in [Role::ReadOnly, Role::Beside] {
        let second = ground.client(role).await;
        second.shutdown().await;
        let line = ["job", "schedule", "demo", "echo", "--in", "1h", "--json"];
        let other = ground.program().run(&line).await;
        assert_eq!(other.code, Some(0), "{other:?}");
        let own = owner.schedule_job(job("echo").at(SystemClock.now().plus_seconds(7200))).await.expect("added");
        let shown = ground.program().run(&["job", "show", own.id().as_str(), "--json"]).await;
        assert_eq!(shown.code, Some(0), "{role:?}: {shown:?}");
        let id = norfab_client::JobId::new(other.json()["uuid"].as_str().expect("text")).expect("a UUID");
        owner.find_job(&id).await.expect("the owner knows it");
    }
    owner.shutdown().await;
    assert_eq!(ground.jobs().await.len(), 4);
}

async fn reading_goes_on(program: &Program, jobs: usize) {
    let list = program.run(&["job", "list", "--json"]).await;
    assert_eq!(list.code, Some(0), "{list:?}");
    assert_eq!(list.json()["jobs"].as_array().map(Vec::len), Some(jobs), "{list:?}");
}

#[track_caller]
fn is_refused(ended: &Ended, part: &str) {
    let error = &ended.json()["error"];
    assert_eq!((ended.code, error["kind"].as_str()), (Some(1), Some("error")), "{ended:?}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{ended:?}");
}

/// It has told each step that failed once, and the end of the trouble.
async fn it_works_again(mut owner: OwnerProcess) {
    owner.logged("It works again").await;
    let log = owner.stop().await;
    let mut errors: Vec<_> = log.iter().filter_map(|line| line.split_once(" ERROR ")).map(|(_, error)| error).collect();
    errors.sort_unstable();
    let told = errors.len();
    errors.dedup();
    assert!(told > 0 && errors.len() == told, "told more than once: {log:?}");
}

/// The files of a database, which nobody can write until this is dropped, not even who has them open.
struct Frozen(Vec<PathBuf>);

impl Frozen {
    /// Nothing where the system or the file system does not let us.
    fn freeze(database: &Path) -> Option<Self> {
        let beside = |end: &str| PathBuf::from(format!("{}{end}", database.display()));
        let mut frozen = Self(Vec::new());
        for file in [beside("-wal"), database.to_owned()] {
            if !change("+i", &file) {
                eprintln!("Left out: this user cannot freeze files of this file system (chattr +i)");
                return None;
            }
            frozen.0.push(file);
        }
        Some(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for file in &self.0 {
            change("-i", file);
        }
    }
}

fn change(attribute: &str, file: &Path) -> bool {
    Command::new("chattr").arg(attribute).arg(file).output().is_ok_and(|output| output.status.success())
}
