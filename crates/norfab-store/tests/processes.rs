//! Several processes on one file. Each is this test program again, told by its environment what to do.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Database, START, add, at, job};
use norfab_model::{Claim, Link, RetryPolicy, Scope, Store};
use norfab_store::{SqliteStore, StoreOptions};

const PATH: &str = "NORFAB_STORE_TEST_PATH";
const PROCESSES: u32 = 8;

/// Starts this program again to run only this test, with the path of a database.
fn start(test: &str, database: &Database, zone: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--quiet"])
        .stdout(Stdio::null())
        .env(PATH, database.path())
        .env("TZ", zone)
        .spawn()
        .unwrap()
}

/// Opens the database as one of many that want it: on a slow disk SQLite may keep one waiting for long.
async fn in_child(path: &str) -> SqliteStore {
    let options = StoreOptions { busy_timeout: Duration::from_secs(60), ..StoreOptions::default() };
    SqliteStore::open(path, &options).await.unwrap()
}

/// Waits for all of them before it judges any, so that none goes on in a folder that is being removed.
fn all_succeed(children: Vec<Child>) {
    let ends: Vec<_> = children.into_iter().map(|mut child| child.wait().unwrap()).collect();
    assert!(ends.iter().all(std::process::ExitStatus::success), "{ends:?}");
}

/// In a child: opens the database, adds a job, releases what is due.
#[tokio::test]
#[ignore = "the other tests start it in processes of its own"]
async fn child_opens_and_works() {
    let Ok(path) = std::env::var(PATH) else { return };
    let store = in_child(&path).await;
    add(&store, START, job(&format!("of-{}", std::process::id()))).await;
    store.job_release_due(at(1), &Scope::All, Link::Up).await.unwrap();
    store.close().await;
}

async fn all_succeed_on(database: &Database, jobs_before: i64) {
    all_succeed((0..PROCESSES).map(|_| start("child_opens_and_works", database, "UTC")).collect());
    let info = SqliteStore::inspect(database.path()).await.unwrap();
    assert_eq!(info.jobs, jobs_before + i64::from(PROCESSES));
    assert_eq!((info.schema_version, info.journal_mode.as_str()), (2, "wal"));
    let applied = database.rows(&["version", "success"], "FROM _sqlx_migrations ORDER BY version").await;
    assert_eq!(applied, [["1", "1"], ["2", "1"]]);
}

#[tokio::test]
async fn eight_processes_migrate_a_database_of_the_python_client_at_once() {
    for _ in 0..3 {
        all_succeed_on(&Database::of_python(), 19).await;
    }
}

#[tokio::test]
async fn eight_processes_make_a_database_at_once() {
    for _ in 0..3 {
        all_succeed_on(&Database::missing(), 0).await;
    }
}

/// In a child that lives in New York: a job is added, claimed and ended.
#[tokio::test]
#[ignore = "the other tests start it in processes of its own"]
async fn child_writes_local_time() {
    use norfab_model::{Reply, ReplyKind};

    let Ok(path) = std::env::var(PATH) else { return };
    let store = in_child(&path).await;
    // 2026-07-04T03:59:59Z is still the third over there; on 1 December at 04:30Z the day has one digit less.
    for (name, seconds) in [("summer", 1_783_137_599), ("winter", 1_796_099_400)] {
        let now = norfab_model::Timestamp::from_seconds(seconds);
        let uuid = add(&store, now, job(name)).await.uuid;
        store.job_claim(Claim::new(now, &Scope::All, 10)).await.unwrap();
        let result = ReplyKind::Result { worker: "w1".to_owned(), result: norfab_model::Json::empty_object() };
        store.job_apply(now, RetryPolicy::default(), vec![Reply::new(uuid, result)]).await.unwrap();
    }
    // As the Python client writes it there, without the columns of ours.
    let legacy = Database::of_python();
    let store = SqliteStore::open(legacy.path(), &StoreOptions::default()).await.unwrap();
    let jobs = store.job_unfinished().await.unwrap();
    // It was written at 16:05:09 in UTC; in New York that text means five hours later.
    let created = norfab_model::Timestamp::from_seconds(1_795_968_309 + 5 * 3600);
    assert_eq!((jobs[0].created_at, jobs[0].started_at), (Some(created), Some(created)));
}

#[cfg(unix)]
#[tokio::test]
async fn texts_are_in_local_time_as_the_python_client_writes_them() {
    let database = Database::missing();
    all_succeed(vec![start("child_writes_local_time", &database, "America/New_York")]);
    let columns = ["received_timestamp", "created_at", "started_timestamp", "completed_timestamp"];
    let rows = database.rows(&columns, "FROM jobs ORDER BY rowid").await;
    assert_eq!(
        rows[0],
        ["'2026-07-03 23:59:59'", "'2026-07-03 23:59:59'", "'Fri Jul  3 23:59:59 2026'", "'Fri Jul  3 23:59:59 2026'"]
    );
    assert_eq!(
        rows[1],
        ["'2026-11-30 23:30:00'", "'2026-11-30 23:30:00'", "'Mon Nov 30 23:30:00 2026'", "'Mon Nov 30 23:30:00 2026'"]
    );
    let instants = database.rows(&["added_at", "started_at", "finished_at"], "FROM jobs ORDER BY rowid").await;
    assert_eq!(instants[0], ["1783137599.0", "1783137599.0", "1783137599.0"]);
}
