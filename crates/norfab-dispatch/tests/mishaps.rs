//! What befalls other schedulers: kills at the worst moment, times far ahead, a database that is locked, full or hangs.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, T0, after, echo, result, stored};
use norfab_dispatch::{Config, ManualClock};
use norfab_model::{
    Claim, Clock, Interval, JobFilter, JobId, JobStatus, Limits, NewSchedule, ScheduleCounters, ScheduleId,
    ScheduleStore, Scope, Store, Timestamp, Workers,
};
use norfab_store::{SqliteStore, StoreOptions};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

fn file(folder: &tempfile::TempDir) -> std::path::PathBuf {
    folder.path().join("jobs.db")
}

async fn open(path: &Path, busy_timeout: Duration) -> Arc<SqliteStore> {
    let options = StoreOptions { busy_timeout, ..StoreOptions::default() };
    Arc::new(SqliteStore::open(path, &options).await.expect("opens"))
}

/// A store that waits for others as long as any does.
async fn patient(folder: &tempfile::TempDir) -> Arc<SqliteStore> {
    open(&file(folder), Duration::from_secs(600)).await
}

/// Another program's connection to the database.
async fn other_program(path: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.expect("connects")
}

async fn every(bench: &Bench<SqliteStore>, seconds: u64) -> ScheduleId {
    let interval = Interval::new(seconds).expect("an interval");
    let new = NewSchedule::new("dummy", "echo", interval).workers(Workers::List(vec!["w1".into()]));
    let valid = Limits::default().check_schedule(bench.clock.now(), new).expect("valid");
    let schedule = bench.store.schedule_add(&valid).await.expect("added");
    bench.control.wake();
    schedule.uuid
}

async fn counters(bench: &Bench<SqliteStore>, id: &ScheduleId) -> ScheduleCounters {
    bench.store.schedule_find(&id.clone().into()).await.expect("readable").expect("there").schedule.counters
}

/// Waits until the health says this of the database, or nothing.
async fn told(bench: &Bench<SqliteStore>, part: Option<&str>) {
    let mut health = bench.control.health();
    let wanted = health.wait_for(|health| match (part, &health.storage_error) {
        (Some(part), Some(error)) => error.contains(part),
        (None, None) => true,
        _ => false,
    });
    let seen = tokio::time::timeout(Duration::from_secs(60), wanted).await;
    assert!(seen.is_ok_and(|seen| seen.is_ok()), "the health never said {part:?}");
}

#[tokio::test]
async fn jobs_far_ahead_run_at_their_time_and_no_earlier() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(patient(&folder).await).await;
    let (month, years) = (after(30 * 86_400), after(9 * 365 * 86_400));
    let jobs = [bench.add(echo().at(month)).await, bench.add(echo().at(years)).await];
    for (id, time) in jobs.iter().zip([month, years]) {
        bench.settle().await;
        bench.clock.advance_to(Timestamp::from_micros(time.as_micros() - 1));
        bench.silent().await;
        bench.clock.advance_to(time);
        assert_eq!(&bench.next_post().await.job, id);
        bench.reply(id, result());
        assert_eq!(bench.told(id, JobStatus::Completed).await.released_at, Some(time));
    }
    bench.silent().await;
}

/// Killed between the commit of the claim and the message: the job is sent after the restart, once.
#[tokio::test]
async fn a_claim_without_its_message_is_sent_once() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = patient(&folder).await;
    let valid = Limits::default().check_job(T0, echo()).expect("valid");
    store.job_add(T0, &valid).await.expect("added");
    assert_eq!(store.job_claim(Claim::new(T0, &Scope::All, 10)).await.expect("claimed").posts.len(), 1);
    store.close().await;

    let mut bench = Bench::start(patient(&folder).await, ManualClock::at(after(1)), Config::default());
    bench.link_up().await;
    assert_eq!(&bench.next_post().await.job, valid.id());
    bench.silent().await;
    bench.reply(valid.id(), result());
    bench.told(valid.id(), JobStatus::Completed).await;
    bench.silent().await;
}

/// Stopped in order while jobs run: nothing stays claimed, and who starts next goes on with them and with the cadence.
#[tokio::test]
async fn an_orderly_stop_keeps_nothing_claimed_and_the_restart_goes_on() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(patient(&folder).await).await;
    let id = every(&bench, 60).await;
    bench.settle().await;
    bench.clock.advance_to(after(60));
    let running = bench.next_post().await.job;
    bench.reply(&running, stored());
    bench.told(&running, JobStatus::Started).await;
    // One that can wait for no room in the queue stays NEW.
    bench.set_full(true);
    let waiting = bench.add(echo()).await;
    bench.settle().await;
    let store = bench.stop().await;
    let claimed = JobFilter { statuses: vec![JobStatus::Submitting], ..JobFilter::default() };
    assert_eq!(store.job_list(&claimed).await.expect("lists").jobs, []);
    store.close().await;

    let mut bench = Bench::start(patient(&folder).await, ManualClock::at(after(90)), Config::default());
    bench.link_up().await;
    assert_eq!(bench.next_post().await.job, waiting);
    assert_eq!(bench.next_get().await.job, running);
    for job in [&running, &waiting] {
        bench.reply(job, result());
        bench.told(job, JobStatus::Completed).await;
    }
    bench.clock.advance_to(after(120));
    assert_eq!(bench.next_post().await.job, JobId::of_occurrence(&id, after(120)));
    assert_eq!(counters(&bench, &id).await, ScheduleCounters { total_runs: 2, ..ScheduleCounters::default() });
}

/// Late beyond its grace an occurrence is marked, and nothing of it is sent; the next one runs.
#[tokio::test]
async fn a_missed_occurrence_is_never_sent() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(patient(&folder).await).await;
    let new = NewSchedule::new("dummy", "echo", Interval::new(60).expect("an interval")).grace(5);
    let valid = Limits::default().check_schedule(T0, new).expect("valid");
    let id = bench.store.schedule_add(&valid).await.expect("added").uuid;
    bench.control.wake();
    bench.settle().await;
    bench.link_lost().await;
    bench.clock.advance_to(after(66));
    bench.link_up().await;
    let missed = JobId::of_occurrence(&id, after(60));
    assert_eq!(bench.told(&missed, JobStatus::Missed).await.posts_sent, 0);
    bench.silent().await;
    bench.clock.advance_to(after(120));
    assert_eq!(bench.next_post().await.job, JobId::of_occurrence(&id, after(120)));
    let expected = ScheduleCounters { total_runs: 1, missed_runs: 1, ..ScheduleCounters::default() };
    assert_eq!(counters(&bench, &id).await, expected);
}

/// Another program holds the write lock: that is told, nothing is sent, reading goes on; afterwards what came due is
/// caught up by itself.
#[tokio::test]
async fn a_locked_database_is_told_and_caught_up_with() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(open(&file(&folder), Duration::from_millis(10)).await).await;
    let id = every(&bench, 60).await;
    let delayed = bench.add(echo().at(after(61))).await;
    bench.settle().await;
    let mut other = other_program(&file(&folder)).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.expect("the lock");
    bench.clock.advance_to(after(60));
    told(&bench, Some("locked")).await;
    bench.clock.advance_to(after(90));
    bench.silent().await;
    assert_eq!(bench.job(&delayed).await.status, JobStatus::Scheduled);
    lock.rollback().await.expect("gives way");
    bench.clock.advance_to(after(190));
    let sent = [bench.next_post().await.job, bench.next_post().await.job];
    assert!(sent.contains(&delayed) && sent.contains(&JobId::of_occurrence(&id, after(180))), "{sent:?}");
    told(&bench, None).await;
    let expected = ScheduleCounters { total_runs: 1, coalesced_runs: 2, ..ScheduleCounters::default() };
    assert_eq!(counters(&bench, &id).await, expected);
    bench.silent().await;
}

/// A call that neither works nor fails turns the health red, and what was under way goes on when it returns.
#[tokio::test]
async fn a_database_that_hangs_is_told_and_waited_for() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let config = Config { storage_patience: Duration::from_millis(20), ..Config::default() };
    let mut bench = Bench::start(patient(&folder).await, ManualClock::at(T0), config);
    bench.link_up().await;
    let id = every(&bench, 60).await;
    bench.settle().await;
    let mut other = other_program(&file(&folder)).await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.expect("the lock");
    bench.clock.advance_to(after(60));
    told(&bench, Some("has not answered for 20ms")).await;
    lock.rollback().await.expect("gives way");
    assert_eq!(bench.next_post().await.job, JobId::of_occurrence(&id, after(60)));
    told(&bench, None).await;
    bench.silent().await;
}

/// No room on the disk: a limit on the size of files does to writing what a full disk does, and can be lifted.
#[cfg(target_os = "linux")]
mod disk {
    use std::process::{Command, Stdio};

    use norfab_model::StoreError;

    use super::*;

    const PATH: &str = "NORFAB_DISPATCH_TEST_PATH";

    /// Sets how large a file of this process may grow.
    fn limit_files(size: &str) {
        let status = Command::new("prlimit")
            .args(["--pid", &std::process::id().to_string(), &format!("--fsize={size}:unlimited")])
            .status()
            .expect("prlimit of util-linux");
        assert!(status.success());
    }

    /// In a child, which alone has the limit: while nothing can be written nothing is sent, one error tells it, reading
    /// works; with room again all goes on by itself.
    #[tokio::test]
    #[ignore = "the other test starts it in a process of its own"]
    async fn child_has_no_room() {
        let Some(path) = std::env::var_os(PATH) else { return };
        let mut bench = Bench::up(open(path.as_ref(), Duration::from_secs(60)).await).await;
        let id = every(&bench, 60).await;
        let delayed = bench.add(echo().at(after(60))).await;
        bench.settle().await;
        limit_files("0");
        bench.clock.advance_to(after(60));
        told(&bench, Some("the job database failed to")).await;
        for second in [61, 65, 80] {
            bench.clock.advance_to(after(second));
            bench.silent().await;
        }
        let refused = Limits::default().check_job(T0, echo()).expect("valid");
        let error = bench.store.job_add(T0, &refused).await.expect_err("there is no room");
        assert!(matches!(error, StoreError::Storage { .. }), "{error}");
        assert_eq!(bench.job(&delayed).await.status, JobStatus::Scheduled, "reading works");
        limit_files("unlimited");
        // The longest pause between two attempts.
        bench.clock.advance(Duration::from_secs(30));
        let sent = [bench.next_post().await.job, bench.next_post().await.job];
        assert!(sent.contains(&delayed) && sent.contains(&JobId::of_occurrence(&id, after(60))), "{sent:?}");
        told(&bench, None).await;
        assert_eq!(bench.store.job_find(refused.id()).await.expect("readable"), None, "it was refused whole");
        bench.silent().await;
    }

    #[test]
    fn without_room_nothing_is_sent_and_it_goes_on_by_itself() {
        let folder = tempfile::tempdir().expect("temporary folder");
        // Who has no room is told by a signal first, which would end the process.
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "disk::child_has_no_room", "--include-ignored"])
            .stdin(Stdio::null())
            .env(PATH, file(&folder))
            .output()
            .expect("starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The queue to the broker is full, and the database cannot take the claim back just then.
#[tokio::test]
async fn a_claim_that_cannot_be_taken_back_is_sent() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(Arc::new(common::open(folder.path()).await)).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("jobs.db"));
    let mut other = sqlx::ConnectOptions::connect(&options).await.expect("opens");
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON jobs WHEN old.status = 'SUBMITTING' AND new.status = 'NEW' \
                  BEGIN SELECT RAISE(ABORT, 'no room'); END";
    sqlx::query(refuse).execute(&mut other).await.expect("made");
    bench.set_full(true);
    let id = bench.add(echo()).await;
    let mut health = bench.control.health();
    health.wait_for(|health| health.storage_error.is_some()).await.expect("the dispatcher runs");
    sqlx::query("DROP TRIGGER refuse").execute(&mut other).await.expect("dropped");
    bench.set_full(false);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.next_post().await.job, id);
    bench.silent().await;
}
