//! Rows as other hands may leave them: one column of a job or of a schedule holds the input. No pass fails by it or spins
//! on it, and the rows beside it are as they were.

use std::sync::{Mutex, PoisonError};

use norfab_model::{
    Claim, Interval, JobFilter, JobId, Limits, Link, Materialize, NewJob, NewSchedule, ScheduleFilter, ScheduleKey,
    ScheduleStore, Scope, Store, Timestamp, Workers, Zone,
};
use norfab_store::conformance::pass_ends;
use norfab_store::{Durability, SqliteStore, StoreOptions};
use rusqlite::Connection;
use rusqlite::types::Value;

const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);
const LATER: Timestamp = Timestamp::from_seconds(1_795_996_800 + 7200);

/// The columns that hold more than a word of the project's own.
const JOB_COLUMNS: &[&str] = &[
    "args",
    "kwargs",
    "timeout",
    "deadline",
    "status",
    "workers_requested",
    "workers_dispatched",
    "workers_started",
    "workers_completed",
    "result_data",
    "errors",
    "received_timestamp",
    "completed_timestamp",
    "scheduled_for",
    "start_deadline",
    "schedule_id",
    "origin",
    "dispatch_target",
    "posts_sent",
    "next_attempt_at",
    "pending_inputs",
    "service",
    "task",
];
const SCHEDULE_COLUMNS: &[&str] = &[
    "args",
    "kwargs",
    "timeout",
    "trigger_type",
    "trigger_config",
    "timezone",
    "start_at",
    "end_at",
    "anchor_at",
    "jitter_seconds",
    "next_run_at",
    "next_due_at",
    "decided_until",
    "state",
    "\"coalesce\"",
    "misfire_grace_seconds",
    "overlap_policy",
    "max_instances",
    "name",
    "service",
    "workers",
    "zone_data",
    "zone_offset",
    "last_outcome",
];

/// A database with a job and a schedule that other hands write to, and one of each that they leave alone.
struct Rows {
    store: SqliteStore,
    hand: Connection,
    _folder: tempfile::TempDir,
}

/// Made once: a database takes longer to make than an input to try.
static ROWS: Mutex<Option<Rows>> = Mutex::new(None);

/// Writes the input to a column: its first byte says which, its second how it is kept, the rest is the value.
pub fn rows(data: &[u8]) {
    let [column, kind, value @ ..] = data else { return };
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    // Taken out, so that what went wrong once is not met again by the next input.
    let kept = rows.take().unwrap_or_else(|| crate::wait(Rows::make()));
    let value = match kind % 4 {
        0 => Value::Blob(value.to_vec()),
        1 => Value::Text(String::from_utf8_lossy(value).into_owned()),
        2 => Value::Real(number(value).map_or(0.0, f64::from_bits)),
        _ => Value::Integer(number(value).map_or(0, u64::cast_signed)),
    };
    crate::wait(kept.check(usize::from(*column), &value));
    *rows = Some(kept);
}

fn number(value: &[u8]) -> Option<u64> {
    value.first_chunk().copied().map(u64::from_le_bytes)
}

impl Rows {
    async fn make() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.db");
        let options = StoreOptions { durability: Durability::Normal, ..StoreOptions::default() };
        let store = SqliteStore::open(&path, &options).await.expect("it opens");
        let hand = Connection::open(&path).expect("it opens");
        hand.execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;",
        )
        .expect("settings");
        Self { store, hand, _folder: folder }
    }

    /// Adds a job of a name, due at once, and a schedule of the same.
    async fn add(&self, name: &str) {
        let limits = Limits::default();
        let new = NewJob::new("dummy", "echo").workers(Workers::One("w1".to_owned())).timeout(60);
        let id = JobId::new(name).expect("a name");
        let job = limits.check_job(NOW, NewJob { id: Some(id), ..new }).expect("a valid job");
        self.store.job_add(NOW, &job).await.expect("the job is added");
        let hour = Interval::new(3600).expect("an interval");
        let new = NewSchedule::new("dummy", "echo", hour).workers(Workers::Any).name(name);
        let schedule = limits.check_schedule(NOW, new).expect("a valid schedule");
        self.store.schedule_add(&schedule).await.expect("the schedule is added");
    }

    async fn check(&self, column: usize, value: &Value) {
        // Each input finds the same, or a failure could not be had again.
        self.hand.execute_batch("DELETE FROM events; DELETE FROM jobs; DELETE FROM job_schedules;").expect("they go");
        self.add("sound").await;
        self.add("touched").await;
        let all = JOB_COLUMNS.len() + SCHEDULE_COLUMNS.len();
        let sql = match column % all {
            at if at < JOB_COLUMNS.len() => format!("UPDATE jobs SET {} = ?1 WHERE uuid = 'touched'", JOB_COLUMNS[at]),
            at => {
                let column = SCHEDULE_COLUMNS[at - JOB_COLUMNS.len()];
                format!("UPDATE job_schedules SET {column} = ?1 WHERE name = 'touched'")
            }
        };
        // NOT NULL and uniqueness hold against any hand.
        if self.hand.execute(&sql, [value]).is_ok() {
            self.read().await;
            self.pass().await;
            self.read().await;
        }
        self.sound().await;
    }

    /// Every way to look at the row answers: with the row, or with an error of that row.
    async fn read(&self) {
        let touched = JobId::new("touched").expect("a name");
        let _ = self.store.job_find(&touched).await;
        let _ = self.store.job_detail(&touched).await;
        let jobs = self.store.job_list(&JobFilter::default()).await.expect("jobs are listed");
        assert!(jobs.jobs.iter().any(|job| job.uuid.as_str() == "sound"), "the sound job is listed");
        let key = ScheduleKey::parse("touched");
        let _ = self.store.schedule_find(&key).await;
        let _ = self.store.schedule_detail(&key).await;
        self.store.schedule_list(&ScheduleFilter::default()).await.expect("schedules are listed");
    }

    /// What a dispatcher does at its start and two hours later.
    async fn pass(&self) {
        self.store.schedule_rezone(Zone::data_version()).await.expect("zones are looked at");
        self.store.schedule_realign(LATER).await.expect("cursors are looked at");
        let limits = Limits::default();
        let claim = Claim::new(LATER, &Scope::All, 100);
        let (seen, claim) = (&[], Some(&claim));
        let request = Materialize { now: LATER, limits: &limits, budget_left: 10, batch: 100, seen, claim };
        let made = self.store.schedule_materialize_due(request).await.expect("due schedules are looked at");
        assert!(!made.more, "two schedules are one batch");
        let request = Materialize { seen: &made.still_due, ..request };
        let again = self.store.schedule_materialize_due(request).await.expect("due schedules are looked at");
        assert!(again.outcomes.is_empty() && again.quarantined.is_empty(), "what was looked at is not due");
        pass_ends(&self.store, &Scope::All, NOW, Link::Up).await;
        pass_ends(&self.store, &Scope::All, LATER, Link::Up).await;
    }

    /// The rows that nobody touched can be read.
    async fn sound(&self) {
        let sound = JobId::new("sound").expect("a name");
        self.store.job_detail(&sound).await.expect("the sound job can be read").expect("it is there");
        let key = ScheduleKey::parse("sound");
        self.store.schedule_detail(&key).await.expect("the sound schedule can be read").expect("it is there");
    }
}
