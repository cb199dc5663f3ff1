//! A database that is copied while schedules are materialised and cut within its write-ahead log, as a power cut leaves
//! it: no cursor stands ahead of its jobs, and what is made anew has the identities that it had.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Database, START, at, every};
use norfab_model::{Coalesce, JobId, Limits, Materialize, OverlapPolicy, ScheduleId, ScheduleStore, Store};
use norfab_store::{SqliteStore, StoreOptions};

const SECONDS: i64 = 40;

async fn materialize(store: &SqliteStore, second: i64) {
    let limits = Limits::default();
    let request =
        Materialize { now: at(second), limits: &limits, budget_left: 1000, batch: 1000, seen: &[], claim: None };
    store.schedule_materialize_due(request).await.unwrap();
}

/// A schedule every second of which every occurrence counts.
async fn add(store: &SqliteStore) -> ScheduleId {
    let new = every(1).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000);
    store.schedule_add(&Limits::default().check_schedule(START, new).unwrap()).await.unwrap().uuid
}

fn log_of(path: &Path) -> PathBuf {
    path.with_file_name("jobs.db-wal")
}

/// The file and its log as they are on the disk.
struct Copy {
    file: Vec<u8>,
    log: Vec<u8>,
}

impl Copy {
    fn of(path: &Path) -> Self {
        Self { file: fs::read(path).unwrap(), log: fs::read(log_of(path)).unwrap() }
    }
}

/// Opens a copy whose log ends after so many bytes, checks it, and lets it live on to the end.
async fn check(copy: &Copy, bytes: usize, id: &ScheduleId) {
    let database = Database::with_bytes(&copy.file);
    fs::write(log_of(&database.path()), &copy.log[..bytes]).unwrap();
    let store = database.open().await;
    assert_eq!(database.value("(SELECT * FROM pragma_integrity_check)", "").await, "'ok'", "cut after {bytes}");
    let schedule = store.schedule_find(&id.clone().into()).await.unwrap().unwrap().schedule;
    let made = i64::try_from(schedule.counters.total_runs).unwrap();
    assert_eq!(schedule.next.map(|next| next.occurrence), Some(at(made + 1)), "cut after {bytes}");
    assert_eq!(uuids(&database).await, expected(id, made), "cut after {bytes}: as far as the cursor");
    materialize(&store, SECONDS).await;
    assert_eq!(uuids(&database).await, expected(id, SECONDS), "cut after {bytes}: made anew");
    store.close().await;
}

async fn uuids(database: &Database) -> Vec<String> {
    database.rows(&["uuid"], "FROM jobs ORDER BY scheduled_for").await.into_iter().flatten().collect()
}

fn expected(id: &ScheduleId, last: i64) -> Vec<String> {
    (1..=last).map(|second| format!("'{}'", JobId::of_occurrence(id, at(second)))).collect()
}

#[tokio::test]
async fn a_cut_log_undoes_cursor_and_jobs_together() {
    let database = Database::missing();
    let store = database.open_with(StoreOptions::default()).await;
    let id = add(&store).await;
    let begun = fs::metadata(log_of(&database.path())).unwrap().len();
    let begun = usize::try_from(begun).unwrap();
    for second in 1..=SECONDS {
        materialize(&store, second).await;
    }
    let copy = Copy::of(&database.path());
    let tail = copy.log.len() - begun;
    assert!(tail > 100_000, "the log was written into the file already");
    // Spread over the tail, on no boundary of anything.
    for part in 0..40 {
        check(&copy, begun + tail * part / 40 + part * 7, &id).await;
    }
    check(&copy, copy.log.len(), &id).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_any_moment_holds_together() {
    let database = Database::missing();
    let store = database.open().await;
    let id = add(&store).await;
    let (over, path) = (Arc::new(AtomicBool::new(false)), database.path());
    let copies = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut copies = vec![Copy::of(&path)];
            while !over.load(Ordering::Acquire) && copies.len() < 500 {
                copies.push(Copy::of(&path));
            }
            copies
        }
    });
    for second in 1..=SECONDS {
        materialize(&store, second).await;
    }
    over.store(true, Ordering::Release);
    let copies = copies.join().unwrap();
    store.close().await;
    let every_nth = copies.len().div_ceil(40);
    for copy in copies.iter().step_by(every_nth) {
        check(copy, copy.log.len(), &id).await;
    }
}
