//! A client that is killed at random moments, again and again, while it adds, moves, withdraws, schedules and dispatches
//! jobs as fast as it can. After each kill its files are looked at as it left them: whole, nothing that it was told to be
//! done is missing, and nothing is there twice.
//!
//! `NORFAB_CRASHES` says how often, `NORFAB_CRASH_SEED` repeats a run as far as chance goes; see `cargo xtask crash`.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use norfab_client::{JobStatus, Outcome, Role, ScheduleFilter, ScheduleKey};
use norfab_tests::Chance;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::common::Ground;

/// How often where nothing else is said; some twenty seconds.
const CRASHES: u64 = 40;
/// Kills of one database before another begins: each is looked at as a whole.
const EPOCH: u64 = 20;
/// The longest life after it is up, and the longest before, in milliseconds.
const LIFE: u64 = 250;
const BIRTH: u64 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments() {
    let crashes = number("NORFAB_CRASHES").unwrap_or(CRASHES);
    let seed = number("NORFAB_CRASH_SEED").unwrap_or_else(|| Chance::new().below(1 << 32));
    println!("NORFAB_CRASHES={crashes} NORFAB_CRASH_SEED={seed}");
    let mut chance = Chance::seeded(seed);
    let mut left = crashes;
    let mut sum = Sum::default();
    while left > 0 {
        let kills = left.min(EPOCH);
        epoch(&mut chance, kills, &mut sum).await;
        left -= kills;
    }
    println!("{crashes} kills, seed {seed}: {sum:?}");
    assert!(sum.jobs > 0 && sum.facts > 0 && (crashes < CRASHES || sum.occurrences > 0), "nothing happened: {sum:?}");
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// What there was to be checked.
#[derive(Debug, Default)]
struct Sum {
    jobs: usize,
    occurrences: usize,
    executions: usize,
    facts: usize,
}

/// One database, killed so many times, and brought to its end.
async fn epoch(chance: &mut Chance, kills: u64, sum: &mut Sum) {
    let ground = Ground::start().await;
    let mut facts = Facts::default();
    let mut ended = HashMap::new();
    for kill in 0..kills {
        let moment = live_and_die(&ground, chance, &mut facts).await;
        let rows = Rows::of_copy(&ground.database()).await;
        let told = rows.as_ref().map_or_else(|| facts.check(&Rows::default()), |rows| rows.check(&facts, &mut ended));
        assert_eq!(told, Vec::<String>::new(), "after kill {kill} of this database, {moment}");
        let executions = ground.fabric.executions();
        let once: BTreeSet<_> = executions.iter().map(|run| (&run.job, &run.worker)).collect();
        assert_eq!(once.len(), executions.len(), "a worker ran a job twice");
    }
    let rows = bring_to_the_end(&ground).await;
    assert_eq!(rows.check(&facts, &mut ended), Vec::<String>::new(), "in the end");
    assert_eq!(in_the_end(&ground, &rows), Vec::<String>::new());
    sum.jobs += rows.jobs.len();
    sum.occurrences += rows.jobs.values().filter(|job| job.origin == "occurrence").count();
    sum.executions += ground.fabric.executions().len();
    sum.facts += facts.count();
    ground.fabric.shutdown().await;
}

/// Starts the client, kills it at some moment, and notes what it said. Gives the moment, for a failure to tell.
async fn live_and_die(ground: &Ground, chance: &mut Chance, facts: &mut Facts) -> String {
    let seed = chance.below(1 << 40).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_norfab-crash-child"));
    command.arg(ground.path()).arg(&seed).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    // Some die before they are up, while they open the database or take up what the last one left.
    let early = chance.below(5) == 0;
    if !early {
        let up = tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await.expect("it comes up");
        assert_eq!(up.expect("readable").as_deref(), Some("up "), "seed {seed}");
    }
    // Who is killed must be heard meanwhile, or it would wait for its pipe.
    let (said, moment) = tokio::join!(
        async {
            let mut said = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                said.push(line);
            }
            said
        },
        async {
            let moment = chance.moment(Duration::from_millis(if early { BIRTH } else { LIFE })).await;
            kill(&mut child).await;
            moment
        }
    );
    said.iter().for_each(|line| facts.note(line));
    format!("{moment:?} after it {}, seed {seed}", if early { "began" } else { "was up" })
}

async fn kill(child: &mut Child) {
    assert_eq!(child.try_wait().expect("asked"), None, "it ended by itself");
    child.kill().await.expect("killed");
}

/// What the client was told to be done, before it died.
#[derive(Debug, Default)]
struct Facts {
    added: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    moved: BTreeMap<String, i64>,
    created: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl Facts {
    fn note(&mut self, line: &str) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (what, id) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match what.as_str() {
            "up" => true,
            "added" => self.added.insert(id),
            "cancelled" => self.cancelled.insert(id),
            "moved" => self.moved.insert(id, words.next().and_then(|at| at.parse().ok()).expect("a time")).is_none(),
            "created" => self.created.insert(id),
            "deleted" => self.deleted.insert(id),
            _ => panic!("it said {line:?}"),
        };
    }

    fn count(&self) -> usize {
        self.added.len() + self.cancelled.len() + self.moved.len() + self.created.len() + self.deleted.len()
    }

    /// What of it is not so.
    fn check(&self, rows: &Rows) -> Vec<String> {
        let mut wrong = Vec::new();
        wrong.extend(self.added.iter().filter(|id| !rows.jobs.contains_key(*id)).map(|id| format!("lost job {id}")));
        for id in &self.cancelled {
            let status = rows.jobs.get(id).map(|job| job.status.as_str());
            wrong.extend((status != Some("CANCELLED")).then(|| format!("withdrawn job {id} is {status:?}")));
        }
        for (id, micros) in &self.moved {
            let due = rows.jobs.get(id).and_then(|job| job.scheduled_for);
            wrong.extend((due != Some(*micros)).then(|| format!("moved job {id} is due at {due:?}, not {micros}")));
        }
        for id in &self.created {
            wrong.extend((!rows.schedules.contains_key(id)).then(|| format!("lost schedule {id}")));
        }
        for id in &self.deleted {
            let state = rows.schedules.get(id).map(|schedule| (schedule.state.as_str(), schedule.deleted));
            wrong.extend((state != Some(("DISABLED", true))).then(|| format!("deleted schedule {id} is {state:?}")));
        }
        wrong
    }
}

/// The database, read by other means than the store's.
#[derive(Debug, Default)]
struct Rows {
    unsound: Vec<String>,
    jobs: BTreeMap<String, JobRow>,
    schedules: BTreeMap<String, ScheduleRow>,
}

#[derive(Debug)]
struct JobRow {
    status: String,
    origin: String,
    schedule: Option<String>,
    scheduled_for: Option<i64>,
    /// All that a job that has ended has come to.
    end: u64,
    /// Whether it was claimed, not sent, and then too late to be sent.
    too_late: bool,
}

#[derive(Debug)]
struct ScheduleRow {
    state: String,
    deleted: bool,
    /// Occurrences of the grid before the cursor; none where there is no cursor any more.
    passed: Option<i64>,
    /// Jobs that were made, occurrences that were decided otherwise.
    total: i64,
    otherwise: i64,
}

impl Rows {
    /// As the files are, without touching them: the next client is to find them so. None when there are none yet.
    async fn of_copy(database: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().expect("temporary folder");
        let copy = folder.path().join("copy.db");
        if std::fs::metadata(database).map_or(0, |file| file.len()) == 0 {
            return None;
        }
        std::fs::copy(database, &copy).expect("copied");
        let log = |path: &Path| format!("{}-wal", path.display());
        if Path::new(&log(database)).exists() {
            std::fs::copy(log(database), log(&copy)).expect("copied");
        }
        Self::of(&copy).await
    }

    async fn of(database: &Path) -> Option<Self> {
        let mut connection = SqliteConnectOptions::new().filename(database).connect().await.expect("opens");
        let mut unsound = texts(&mut connection, "PRAGMA integrity_check").await;
        unsound.retain(|line| line != "ok");
        let strays = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut connection).await.expect("reads");
        unsound.extend((!strays.is_empty()).then(|| format!("{} rows without what they belong to", strays.len())));
        let made = texts(&mut connection, "SELECT name FROM sqlite_schema WHERE name = 'job_schedules'").await;
        if made.is_empty() {
            // Killed before it made its tables: then there is nothing, or not even that.
            let tables = texts(&mut connection, "SELECT name FROM sqlite_schema").await;
            assert_eq!((tables, unsound), (vec![], vec![]), "half a schema");
            return None;
        }
        let jobs = sqlx::query(
            "SELECT uuid, status, ifnull(origin, 'direct'), schedule_id, CAST(round(scheduled_for * 1e6) AS INTEGER),
                    quote(finished_at) || quote(errors) || quote(workers_completed) || quote(result_data),
                    ifnull(errors, '') LIKE '%never had the job, and its start deadline has passed%' FROM jobs",
        );
        let jobs = jobs.fetch_all(&mut connection).await.expect("reads");
        let schedules = sqlx::query(
            "SELECT uuid, state, deleted_at IS NOT NULL,
                    CAST((next_run_at - anchor_at) / json_extract(trigger_config, '$.seconds') AS INTEGER) - 1,
                    total_runs, missed_runs + overlap_skips + coalesced_runs + passed_over FROM job_schedules",
        );
        let schedules = schedules.fetch_all(&mut connection).await.expect("reads");
        connection.close().await.expect("closes");
        let (jobs, schedules) = (jobs.iter().map(job).collect(), schedules.iter().map(schedule).collect());
        Some(Self { unsound, jobs, schedules })
    }

    /// What is wrong with it. `ended` remembers the jobs that have ended, which must stay as they are.
    fn check(&self, facts: &Facts, ended: &mut HashMap<String, (String, u64)>) -> Vec<String> {
        let mut wrong = self.unsound.clone();
        wrong.extend(facts.check(self));
        for (id, job) in &self.jobs {
            let Ok(status) = job.status.parse::<JobStatus>() else {
                wrong.push(format!("job {id} is {}", job.status));
                continue;
            };
            if status.is_terminal() {
                let now = (job.status.clone(), job.end);
                let before = ended.entry(id.clone()).or_insert_with(|| now.clone());
                wrong.extend((*before != now).then(|| format!("job {id} had ended, and has changed: {job:?}")));
            }
        }
        wrong.extend(ended.keys().filter(|id| !self.jobs.contains_key(*id)).map(|id| format!("lost ended job {id}")));
        wrong.extend(self.schedules.iter().flat_map(|(id, schedule)| self.accounts(id, schedule)));
        wrong
    }

    /// Every due instant of a schedule has exactly one fate, and every job that is counted is there.
    fn accounts(&self, id: &str, schedule: &ScheduleRow) -> Vec<String> {
        let of_it = || self.jobs.values().filter(|job| job.schedule.as_deref() == Some(id));
        let made = of_it().filter(|job| job.status != "MISSED").count();
        let occurrences = || of_it().filter(|job| job.origin == "occurrence");
        let instants: BTreeSet<_> = occurrences().map(|job| job.scheduled_for).collect();
        let by_hand = of_it().filter(|job| job.origin == "run_now").count();
        let number = |count: usize| i64::try_from(count).expect("few");
        let told = format!("schedule {id} {schedule:?}, {made} jobs of which {by_hand} by hand");
        let mut wrong = Vec::new();
        wrong.extend((instants.len() != occurrences().count()).then(|| format!("an occurrence twice: {told}")));
        wrong.extend((number(made) != schedule.total).then(|| format!("jobs are counted wrongly: {told}")));
        let fates = schedule.total - number(by_hand) + schedule.otherwise;
        let accounted = schedule.passed.is_none_or(|passed| passed == fates);
        wrong.extend((!accounted).then(|| format!("not every due instant has one fate: {told}")));
        wrong
    }
}

async fn texts(connection: &mut SqliteConnection, statement: &'static str) -> Vec<String> {
    sqlx::query_scalar(statement).fetch_all(connection).await.expect("reads")
}

fn job(row: &SqliteRow) -> (String, JobRow) {
    let mut end = DefaultHasher::new();
    row.get::<Option<String>, _>(5).hash(&mut end);
    let (status, origin, schedule) = (row.get(1), row.get(2), row.get(3));
    let (scheduled_for, too_late) = (row.get(4), row.get(6));
    (row.get(0), JobRow { status, origin, schedule, scheduled_for, end: end.finish(), too_late })
}

fn schedule(row: &SqliteRow) -> (String, ScheduleRow) {
    let (state, deleted, passed) = (row.get(1), row.get(2), row.get(3));
    (row.get(0), ScheduleRow { state, deleted, passed, total: row.get(4), otherwise: row.get(5) })
}

/// Serves what is left until all jobs have ended, and no schedule makes new ones.
async fn bring_to_the_end(ground: &Ground) -> Rows {
    let client = ground.client(Role::Owner).await;
    let filter = ScheduleFilter { limit: 1000, ..ScheduleFilter::default() };
    for listed in client.list_job_schedules(&filter).await.expect("lists").schedules {
        let key = ScheduleKey::from(listed.schedule.uuid.clone());
        client.disable_job_schedule(&key).await.expect("disabled");
    }
    for mut handle in client.active_jobs().await.expect("lists") {
        let end = tokio::time::timeout(Duration::from_secs(60), handle.outcome()).await;
        let outcome = end.unwrap_or_else(|_| panic!("job {} does not end", handle.id())).expect("ends");
        assert!(!matches!(outcome, Outcome::Stale { .. }), "{}: {outcome:?}", handle.id());
    }
    client.shutdown().await;
    Rows::of(&ground.database()).await.expect("there")
}

/// What is wrong when all is over: each job that is COMPLETED ran, and no job was sent before its time or withdrawn.
fn in_the_end(ground: &Ground, rows: &Rows) -> Vec<String> {
    let mut first_posts = HashMap::new();
    for message in ground.fabric.messages().into_iter().filter(|message| message.command == "0x04") {
        first_posts.entry(message.uuid).or_insert(message.at.as_micros());
    }
    let ran: BTreeSet<String> = ground.fabric.executions().into_iter().map(|run| run.job).collect();
    let mut wrong = Vec::new();
    for (id, job) in &rows.jobs {
        let sent = first_posts.get(id);
        let is_wrong = match job.status.as_str() {
            "COMPLETED" if job.too_late => false,
            "COMPLETED" => !ran.contains(id) || sent.is_none_or(|at| job.scheduled_for.is_some_and(|due| *at < due)),
            "CANCELLED" | "MISSED" => sent.is_some(),
            // A start deadline may pass before it could be sent.
            "FAILED" => job.scheduled_for.is_none() || ran.contains(id),
            _ => true,
        };
        wrong.extend(is_wrong.then(|| format!("job {id} was sent at {sent:?}, ran: {}, {job:?}", ran.contains(id))));
    }
    wrong.extend(ran.iter().filter(|id| !rows.jobs.contains_key(*id)).map(|id| format!("unknown job {id} ran")));
    wrong
}
