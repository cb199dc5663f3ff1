//! Several processes that materialise from one database, and one that is killed while it does: no occurrence twice, none
//! lost, and the counters right. Each process is this test program again, told by its environment what to do.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use common::{Database, START, at, every};
use norfab_model::{
    Coalesce, JobId, Limits, Materialize, NewSchedule, OverlapPolicy, Schedule, ScheduleId, ScheduleStore, Store,
};
use norfab_store::{Durability, SqliteStore, StoreOptions};

const PATH: &str = "NORFAB_STORE_TEST_PATH";
const FROM: &str = "NORFAB_STORE_TEST_FROM";
const SECONDS: i64 = 200;

/// Starts a process that begins at a second; from `steps` it reads a line before each. Each lives in a zone of its own,
/// which must not matter.
fn start(database: &Database, from: i64, steps: Stdio) -> Child {
    const ZONES: [&str; 4] = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"];
    let zone = usize::try_from(from).unwrap() % ZONES.len();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_materializes", "--include-ignored", "--nocapture"])
        .stdin(steps)
        .stdout(Stdio::piped())
        .env(PATH, database.path())
        .env(FROM, from.to_string())
        .env("TZ", ZONES[zone])
        .spawn()
        .unwrap()
}

fn options() -> StoreOptions {
    StoreOptions {
        durability: Durability::Normal,
        busy_timeout: std::time::Duration::from_secs(60),
        ..StoreOptions::default()
    }
}

/// In a child: lives through the seconds by a clock of its own, each when it is told to, and says when it is over. With
/// nobody there to tell it, it goes on by itself.
#[tokio::test]
#[ignore = "the other tests start it in processes of its own"]
async fn child_materializes() {
    let (Ok(path), Ok(from)) = (std::env::var(PATH), std::env::var(FROM)) else { return };
    let store = SqliteStore::open(path, &options()).await.unwrap();
    for second in from.parse::<i64>().unwrap()..=SECONDS {
        std::io::stdin().read_line(&mut String::new()).unwrap();
        materialize(&store, second).await;
        let mut out = std::io::stdout().lock();
        writeln!(out, "second {second}").unwrap();
        out.flush().unwrap();
    }
    store.close().await;
}

async fn materialize(store: &SqliteStore, second: i64) {
    let limits = Limits::default();
    let request =
        Materialize { now: at(second), limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim: None };
    let outcome = store.schedule_materialize_due(request).await.unwrap();
    assert_eq!(outcome.quarantined, []);
}

/// Four schedules of which every occurrence counts.
async fn add_schedules(database: &Database) -> Vec<ScheduleId> {
    let store = database.open().await;
    let all = |seconds| every(seconds).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000);
    let mut ids = Vec::new();
    for new in [all(1), all(2).jitter(1), all(3), every(5)] {
        ids.push(add(&store, new).await.uuid);
    }
    store.close().await;
    ids
}

async fn add(store: &SqliteStore, new: NewSchedule) -> Schedule {
    store.schedule_add(&Limits::default().check_schedule(START, new).unwrap()).await.unwrap()
}

/// Every occurrence up to the end is there once, under the identity that is its own, and is counted.
async fn all_are_there_once(database: &Database, ids: &[ScheduleId]) {
    let store = database.open().await;
    // What a jitter held back at the last second.
    materialize(&store, SECONDS + 5).await;
    for (id, seconds) in ids.iter().zip([1, 2, 3]) {
        let rows =
            database.rows(&["uuid"], &format!("FROM jobs WHERE schedule_id = '{id}' ORDER BY scheduled_for")).await;
        let found: Vec<String> = rows.into_iter().flatten().collect();
        let last = (SECONDS + 5) / seconds - i64::from(seconds == 2 && database_is_behind(&store, id).await);
        let expected: Vec<String> =
            (1..=last).map(|k| format!("'{}'", JobId::of_occurrence(id, at(k * seconds)))).collect();
        assert_eq!(found, expected, "every {seconds} s");
        let counters = store.schedule_find(&id.clone().into()).await.unwrap().unwrap().schedule.counters;
        assert_eq!(counters.total_runs, expected.len() as u64);
        assert_eq!((counters.passed_over, counters.overlap_skips, counters.missed_runs), (0, 0, 0));
    }
    // The first of it never ends, so that the others are skipped or stand for each other.
    let counters = store.schedule_find(&ids[3].clone().into()).await.unwrap().unwrap().schedule.counters;
    assert_eq!(counters.total_runs, 1);
    assert_eq!(counters.total_runs + counters.overlap_skips + counters.coalesced_runs, (SECONDS as u64 + 5) / 5);
    assert_eq!(database.value("(SELECT * FROM pragma_integrity_check)", "").await, "'ok'");
    assert_eq!(database.rows(&["rowid"], "FROM pragma_foreign_key_check").await.len(), 0);
    store.close().await;
}

/// Whether the jitter of the last occurrence reaches beyond the end.
async fn database_is_behind(store: &SqliteStore, id: &ScheduleId) -> bool {
    let schedule = store.schedule_find(&id.clone().into()).await.unwrap().unwrap().schedule;
    schedule.next.is_some_and(|next| next.occurrence <= at(SECONDS + 5))
}

#[tokio::test]
async fn several_processes_make_each_occurrence_once() {
    let database = Database::missing();
    let ids = add_schedules(&database).await;
    // Some of them are late, so that their clocks differ.
    let children: Vec<Child> = [1, 2, 20, 63].map(|from| start(&database, from, Stdio::null())).into();
    for mut child in children {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while lines.next().is_some() {}
        assert!(child.wait().unwrap().success());
    }
    all_are_there_once(&database, &ids).await;
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_no_hole_and_no_double() {
    let database = Database::missing();
    let ids = add_schedules(&database).await;
    let mut from = 1;
    // Killed some steps on, in the middle of the next one.
    for steps in [1, 7, 3, 11, 2, 5, 13, 4, 9, 6] {
        let mut child = start(&database, from, Stdio::piped());
        let mut granted = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for _ in 0..steps {
            granted.write_all(b"\n").unwrap();
            // The first line begins with the name of the test.
            from = lines.find_map(|line| line.rsplit_once("second ")?.1.parse().ok()).unwrap();
        }
        granted.write_all(b"\n").unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = database.open().await;
        for id in &ids[..3] {
            let schedule = store.schedule_find(&id.clone().into()).await.unwrap().unwrap().schedule;
            let jobs = database.value("count(*)", &format!("FROM jobs WHERE schedule_id = '{id}'")).await;
            assert_eq!(jobs, schedule.counters.total_runs.to_string(), "job and counter are one");
            let last = database.value("max(scheduled_for)", &format!("FROM jobs WHERE schedule_id = '{id}'")).await;
            let last_run = schedule.last_run_at.map(|at| format!("{:?}", at.as_seconds_f64()));
            assert_eq!(last.replace("NULL", ""), last_run.unwrap_or_default(), "job and cursor are one");
        }
        store.close().await;
    }
    assert!(start(&database, from, Stdio::null()).wait_with_output().unwrap().status.success());
    all_are_there_once(&database, &ids).await;
}
