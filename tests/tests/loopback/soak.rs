//! Schedules at full rate for a long time, with a broker that goes and comes back: nothing is lost or doubled, and the
//! owner stays as small as it was.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use norfab_client::{
    Client, Clock, Coalesce, Interval, NewSchedule, OverlapPolicy, Role, ScheduleFilter, SchedulePage, ScheduleState,
    SystemClock, Timestamp, Workers,
};
use norfab_tests::OwnerProcess;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Row};

use crate::common::Ground;

/// What `cargo xtask soak` sets; it runs for as many seconds.
const SECONDS: &str = "NORFAB_SOAK_SECONDS";
/// How long the broker is away each time.
const AWAY: Duration = Duration::from_secs(2);
/// The log that SQLite writes before the database: bounded, whatever the time.
const MOST_LOG_BYTES: u64 = 64 << 20;

/// How hard, and how long.
struct Soak {
    /// Schedules of one occurrence a second each.
    schedules: usize,
    seconds: u32,
    /// How often the broker goes.
    restart_every: Duration,
}

/// What one look at the owner shows.
#[derive(Debug, Clone, Copy)]
struct Look {
    memory: u64,
    files: usize,
    log_bytes: u64,
}

impl Soak {
    async fn check(self) {
        let ground = Ground::start().await;
        let client = ground.client(Role::Beside).await;
        let owner = ground.program().start_owner().await;
        let first = Timestamp::from_seconds(SystemClock.now().as_micros().div_euclid(1_000_000) + 3);
        let last = first.plus_seconds(self.seconds - 1);
        for number in 0..self.schedules {
            let every = Interval::new(1).expect("an interval");
            let new = NewSchedule::new("demo", "echo", every).workers(Workers::Any).name(format!("soak-{number}"));
            let new = new
                .overlap_policy(OverlapPolicy::Allow)
                .max_instances(1000)
                .start_at(first)
                .end_at(last)
                .coalesce(Coalesce::All)
                .timeout(600);
            client.create_job_schedule(new).await.expect("created");
        }

        let looks = self.live_through(&ground, &owner, last).await;
        until_all_is_done(&client, self.schedules).await;
        self.nothing_is_lost(&ground, &client).await;
        small(&looks);
        client.shutdown().await;
        let log = owner.stop().await;
        assert!(!log.concat().contains("panicked"), "{log:?}");
    }

    /// Takes the broker away now and then until the last occurrence, and looks at the owner all the while.
    async fn live_through(&self, ground: &Ground, owner: &OwnerProcess, last: Timestamp) -> Vec<Look> {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let mut restart_at = SystemClock.now().saturating_add(self.restart_every);
        let mut looks = Vec::new();
        while SystemClock.now() < last {
            ticks.tick().await;
            looks.push(Look::at(owner, ground));
            if SystemClock.now() >= restart_at {
                ground.fabric.stop_broker().await;
                tokio::time::sleep(AWAY).await;
                ground.fabric.start_broker().await.expect("the port is free");
                restart_at = SystemClock.now().saturating_add(self.restart_every);
            }
        }
        looks
    }

    /// Each occurrence has come to one end, each job ran once, where it said that it ran.
    async fn nothing_is_lost(&self, ground: &Ground, client: &Client) {
        let mut jobs_of_all = 0;
        for schedule in all(client).await.schedules {
            let ends = schedule.schedule.counters;
            // All that came due while the broker was away is made up for.
            assert_eq!(ends.total_runs, u64::from(self.seconds), "{ends:?}");
            jobs_of_all += ends.total_runs;
        }
        let mut executions: BTreeMap<String, u32> = BTreeMap::new();
        for execution in ground.fabric.executions() {
            *executions.entry(execution.job).or_default() += 1;
        }
        let mut completed = 0;
        let options = SqliteConnectOptions::new().filename(ground.database()).read_only(true);
        let mut database = options.connect().await.expect("opens");
        let rows = sqlx::query("SELECT uuid, status, errors FROM jobs").fetch_all(&mut database).await.expect("reads");
        for row in &rows {
            let (uuid, status): (String, String) = (row.get("uuid"), row.get("status"));
            if status != "MISSED" {
                assert_eq!(status, "COMPLETED", "{uuid}: {:?}", row.get::<Option<String>, _>("errors"));
                assert_eq!(executions.remove(&uuid), Some(1), "{uuid}");
                completed += 1;
            }
        }
        assert_eq!(completed, jobs_of_all);
        assert_eq!(executions, BTreeMap::new(), "what ran without a row");
        println!("{completed} jobs completed of {} occurrences", self.schedules as u64 * u64::from(self.seconds));
    }
}

async fn all(client: &Client) -> SchedulePage {
    let filter = ScheduleFilter { limit: 1000, ..ScheduleFilter::default() };
    client.list_job_schedules(&filter).await.expect("lists")
}

/// Every schedule is at its end, and none has an unfinished job.
async fn until_all_is_done(client: &Client, schedules: usize) {
    norfab_tests::eventually("the end of all schedules and jobs", async || {
        let page = all(client).await;
        let is_done = |state, active_jobs| state == ScheduleState::Completed && active_jobs == 0;
        let done = page.schedules.iter().filter(|view| is_done(view.schedule.state, view.active_jobs)).count();
        (done == schedules).then_some(())
    })
    .await;
}

/// From a fifth of the time on the owner needs no more than it did, and its log never grew beyond its bound.
fn small(looks: &[Look]) {
    let (early, late) = (looks[looks.len() / 5], looks[looks.len() - 1]);
    let most_log = looks.iter().map(|look| look.log_bytes).max().unwrap_or_default();
    println!("{early:?} to {late:?}; the log had at most {most_log} bytes");
    assert!(late.memory < early.memory + early.memory / 4 + (8 << 20), "{early:?} {late:?}");
    assert!(late.files <= early.files + 3, "{early:?} {late:?}");
    assert!(most_log < MOST_LOG_BYTES, "{most_log}");
}

impl Look {
    fn at(owner: &OwnerProcess, ground: &Ground) -> Self {
        let process = PathBuf::from(format!("/proc/{}", owner.pid().expect("it runs")));
        let status = std::fs::read_to_string(process.join("status")).expect("it runs");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
        let mut log = ground.database().into_os_string();
        log.push("-wal");
        Self {
            memory: kilobytes << 10,
            files: std::fs::read_dir(process.join("fd")).expect("it runs").count(),
            log_bytes: std::fs::metadata(log).map_or(0, |file| file.len()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_while_with_a_broker_that_goes() {
    Soak { schedules: 20, seconds: 12, restart_every: Duration::from_secs(4) }.check().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "half an hour, optimised: cargo xtask soak"]
async fn five_hundred_a_second() {
    let seconds = std::env::var(SECONDS).map_or(1800, |text| text.parse().expect("seconds"));
    Soak { schedules: 500, seconds, restart_every: Duration::from_secs(60) }.check().await;
}
