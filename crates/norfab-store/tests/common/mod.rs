//! What the tests of the store in SQLite share: a database in a folder of its own, and plain SQL on it.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

use norfab_model::{
    Interval, Job, JobId, Limits, NewJob, NewSchedule, Schedule, ScheduleId, ScheduleStore, Store, Timestamp, Workers,
};
use norfab_store::conformance::LeftCursor;
use norfab_store::{SqliteStore, StoreOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};

pub(crate) const START: Timestamp = Timestamp::from_seconds(1_795_996_800);

/// So many seconds after the start.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(START.as_micros() + seconds * 1_000_000)
}

pub(crate) fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

pub(crate) fn job(name: &str) -> NewJob {
    let job = NewJob::new("dummy", "echo").workers(Workers::One("w1".to_owned())).timeout(60);
    NewJob { id: Some(id(name)), ..job }
}

pub(crate) async fn add(store: &SqliteStore, now: Timestamp, job: NewJob) -> Job {
    store.job_add(now, &Limits::default().check_job(now, job).unwrap()).await.unwrap()
}

/// A schedule every so many seconds for one worker.
pub(crate) fn every(seconds: u64) -> NewSchedule {
    NewSchedule::new("dummy", "echo", Interval::new(seconds).unwrap()).workers(Workers::One("w1".to_owned()))
}

/// Adds schedules of the names `schedule-0` and so on, with a template.
pub(crate) async fn schedules(store: &SqliteStore, now: Timestamp, count: usize, seconds: u64) -> Vec<Schedule> {
    let mut added = Vec::with_capacity(count);
    for number in 0..count {
        let kwargs = norfab_model::Json::parse(format!("{{\"number\":{number}}}")).unwrap();
        let new = every(seconds).name(format!("schedule-{number}")).kwargs(kwargs);
        let valid = Limits::default().check_schedule(now, new).unwrap();
        added.push(store.schedule_add(&valid).await.unwrap());
    }
    added
}

/// A text of so many bytes that hardly gets any smaller.
pub(crate) fn random(bytes: usize) -> String {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + u8::try_from(state >> 58).unwrap())
    };
    std::iter::repeat_with(next).filter(|letter| *letter != '\\').take(bytes).collect()
}

/// A database file in a folder of its own.
pub(crate) struct Database {
    folder: tempfile::TempDir,
}

impl Database {
    /// No file yet.
    pub(crate) fn missing() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A file with these bytes.
    pub(crate) fn with_bytes(bytes: &[u8]) -> Self {
        let database = Self::missing();
        std::fs::write(database.path(), bytes).unwrap();
        database
    }

    /// What the Python client left behind.
    pub(crate) fn of_python() -> Self {
        Self::with_bytes(&std::fs::read(fixture("python-client-0.25.0.db")).unwrap())
    }

    /// A database that these statements make.
    pub(crate) async fn with_sql(sql: &str) -> Self {
        let database = Self::missing();
        database.execute(sql).await;
        database
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        self.open_with(StoreOptions::default()).await
    }

    pub(crate) async fn open_with(&self, options: StoreOptions) -> SqliteStore {
        SqliteStore::open(self.path(), &options).await.unwrap()
    }

    pub(crate) async fn connect(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path()).create_if_missing(true).foreign_keys(false);
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    /// Runs SQL beside any store.
    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// The rows that a query gives, each column as an SQL literal.
    pub(crate) async fn rows(&self, columns: &[&str], rest: &str) -> Vec<Vec<String>> {
        let columns: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let mut connection = self.connect().await;
        let rows = sqlx::query(AssertSqlSafe(format!("SELECT {} {rest}", columns.join(", "))))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| (0..row.len()).map(|column| row.get(column)).collect()).collect()
    }

    /// One value, as an SQL literal.
    pub(crate) async fn value(&self, column: &str, rest: &str) -> String {
        self.rows(&[column], rest).await[0][0].clone()
    }

    /// The whole schema, as SQL.
    pub(crate) async fn schema(&self) -> Vec<Vec<String>> {
        self.rows(&["type", "name", "sql"], "FROM sqlite_master ORDER BY type, name").await
    }
}

/// Makes the cursor of a schedule what a release with other zone data has left, in the database at a path.
pub(crate) async fn leave(path: &Path, schedule: &ScheduleId, cursor: LeftCursor) {
    let LeftCursor { zone_data, zone_offset, next, decided_until } = cursor;
    let mut connection = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.unwrap();
    let left = sqlx::query(
        "UPDATE job_schedules
        SET zone_data = ?2, zone_offset = ?3, next_run_at = ?4, next_due_at = ?5, decided_until = ?6, decided_at = NULL
        WHERE uuid = ?1",
    )
    .bind(schedule.as_str())
    .bind(zone_data)
    .bind(zone_offset)
    .bind(next.occurrence.as_seconds_f64())
    .bind(next.due.as_seconds_f64())
    .bind(decided_until.as_seconds_f64())
    .execute(&mut connection)
    .await
    .unwrap();
    assert_eq!(left.rows_affected(), 1);
    connection.close().await.unwrap();
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peer/fixtures").join(name)
}
