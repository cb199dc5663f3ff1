//! Databases that are there before this client comes: the Python client's, another program's, a newer release's, and
//! files that are none.

mod common;

use common::{Database, START, add, at, fixture, id, job};
use norfab_model::{Claim, JobFilter, JobId, JobStatus, Link, Overdue, Scope, Store, Timestamp, Workers};
use norfab_store::{Access, Codec, CodecChoice, MigrationInfo, SqliteStore, StoreOpenError, StoreOptions};
use serde_json::Value;

const JOB_COLUMNS: [&str; 19] = [
    "uuid",
    "service",
    "task",
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
    "started_timestamp",
    "completed_timestamp",
    "created_at",
    "last_poll_timestamp",
];
const EVENT_COLUMNS: [&str; 7] = ["id", "job_uuid", "message", "severity", "task", "event_data", "created_at"];

/// Everything that the Python client wrote.
async fn legacy_rows(database: &Database) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let jobs = database.rows(&JOB_COLUMNS, "FROM jobs ORDER BY rowid").await;
    (jobs, database.rows(&EVENT_COLUMNS, "FROM events ORDER BY id").await)
}

#[tokio::test]
async fn a_database_of_the_python_client_is_taken_over_without_loss() {
    let database = Database::of_python();
    let before = legacy_rows(&database).await;
    assert_eq!((before.0.len(), before.1.len()), (19, 26));
    let migrated = SqliteStore::migrate(database.path()).await.unwrap();
    let applied: Vec<i64> = migrated.applied.iter().map(|migration| migration.version).collect();
    assert_eq!((applied, migrated.adopted), (vec![1, 2], vec![]));
    assert_eq!(legacy_rows(&database).await, before);
    assert_eq!(SqliteStore::migrate(database.path()).await.unwrap().applied, []);

    let store = database.open().await;
    assert_eq!(store.codec(), Codec::Zlib, "the Python client may come back");
    let described: Value =
        serde_json::from_slice(&std::fs::read(fixture("python-client-0.25.0.json")).unwrap()).unwrap();
    let jobs = described["jobs"].as_array().unwrap();
    assert_eq!(store.job_list(&JobFilter::default()).await.unwrap().jobs.len(), jobs.len());
    for described in jobs {
        check_job(&store, described).await;
    }
    store.close().await;
    assert_eq!(legacy_rows(&database).await, before);
}

/// Compares one job and its events with their description.
async fn check_job(store: &SqliteStore, described: &Value) {
    let uuid: JobId = id(described["uuid"].as_str().unwrap());
    let found = store.job_detail(&uuid).await.unwrap().unwrap();
    let shown = serde_json::to_value(&found).unwrap();
    let or_empty = |value: &Value| if value.is_null() { Value::Array(vec![]) } else { value.clone() };
    let sorted = |value: &Value| {
        let mut names: Vec<String> = serde_json::from_value(or_empty(value)).unwrap();
        names.sort();
        names
    };
    for field in ["uuid", "service", "task", "status", "args", "kwargs", "timeout", "workers_requested"] {
        assert_eq!(shown[field], described[field], "{field}");
    }
    assert_eq!(shown["workers_dispatched"], or_empty(&described["workers_dispatched"]));
    assert_eq!(shown["errors"], or_empty(&described["errors"]));
    for field in ["workers_started", "workers_completed"] {
        assert_eq!(sorted(&shown[field]), sorted(&described[field]), "{field}");
    }
    let results =
        if described["result_data"].is_null() { serde_json::json!({}) } else { described["result_data"].clone() };
    assert_eq!(shown["result_data"], results);
    check_times(&found.job, described);
    let events = store.event_list(&uuid, 0, 100).await.unwrap();
    let told = described["events"].as_array().unwrap();
    assert_eq!(events.len(), told.len());
    for (event, told) in events.iter().zip(told) {
        assert_eq!((&event.message, &event.severity), (&text(told, "message"), &text(told, "severity")));
        assert_eq!(event.task.as_deref(), told["task"].as_str());
        assert_eq!(event.data.to::<Value>().unwrap(), told["event_data"]);
        assert!(event.created_at.is_some());
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

fn check_times(job: &norfab_model::Job, described: &Value) {
    // The description is read less exactly than the database, by up to a microsecond.
    let is = |found: Option<Timestamp>, field: &str| {
        let told = Timestamp::from_seconds_f64(described[field].as_f64().unwrap()).unwrap();
        let found = found.unwrap_or(Timestamp::EPOCH);
        assert!(found.since(told).max(told.since(found)).as_micros() <= 1, "{field}: {found}, not {told}");
    };
    is(job.deadline, "deadline");
    is(job.last_poll, "last_poll_timestamp");
    assert_eq!((job.scheduled_for, job.start_deadline, &job.schedule_id), (None, None, &None));
    assert!(job.created_at.is_some());
    assert_eq!(job.started_at.is_some(), described["started_timestamp"].is_string());
    assert_eq!(job.finished_at.is_some(), described["completed_timestamp"].is_string());
}

#[tokio::test]
async fn jobs_of_the_python_client_go_on() {
    let database = Database::of_python();
    let store = database.open().await;
    let now = Timestamp::from_seconds(1_795_968_320);
    let recovered = store.job_recover(now, &Scope::All).await.unwrap();
    assert_eq!((recovered.requeued, recovered.in_flight), (2, 6));
    // Thirty-second jobs of 16:05:09 end at 16:05:39.
    assert!(store.job_expire_due(now, &Scope::All, Overdue::All).await.unwrap().is_empty());
    let expired =
        store.job_expire_due(Timestamp::from_seconds(1_795_968_340), &Scope::All, Overdue::All).await.unwrap();
    assert_eq!(expired.len(), 4);
    let claimed = store.job_claim(Claim::new(now, &Scope::All, 10)).await.unwrap();
    assert_eq!((claimed.posts.len(), claimed.failed.len()), (2, 0));
    assert!(claimed.posts[1].kwargs.as_str().contains("zażółć"));
    assert_eq!(claimed.posts[0].target, Workers::List(vec!["dummy-worker-1".to_owned()]));
}

#[tokio::test]
async fn looking_changes_nothing() {
    let database = Database::of_python();
    let before = std::fs::read(database.path()).unwrap();
    let info = SqliteStore::inspect(database.path()).await.unwrap();
    assert!(info.legacy && info.codec.is_none());
    assert_eq!((info.jobs, info.events, info.schema_version, info.pending_migrations.len()), (19, 26, 0, 2));
    assert_eq!(std::fs::read(database.path()).unwrap(), before);
    SqliteStore::migrate(database.path()).await.unwrap();
    let info = SqliteStore::inspect(database.path()).await.unwrap();
    assert!(!info.legacy && info.pending_migrations.is_empty());
    assert_eq!((info.schema_version, info.newest_schema_version), (2, 2));
    assert_eq!((info.journal_mode.as_str(), info.codec.as_deref()), ("wal", Some("zlib")));
    assert_eq!(u64::try_from(info.size_bytes).unwrap(), std::fs::metadata(database.path()).unwrap().len());
    let shown = serde_json::to_value(&info).unwrap();
    assert_eq!(shown["pending_migrations"], serde_json::json!([]));
}

/// Opening must fail so, and leave the file's bytes as they are.
async fn refuses(database: &Database, options: StoreOptions, verdict: impl FnOnce(&StoreOpenError) -> bool) -> String {
    let before = std::fs::read(database.path()).unwrap();
    let error = SqliteStore::open(database.path(), &options).await.unwrap_err();
    assert!(verdict(&error), "{error:?}");
    assert_eq!(std::fs::read(database.path()).unwrap(), before);
    error.to_string()
}

#[tokio::test]
async fn a_newer_release_is_respected() {
    let database = Database::missing();
    database.open().await.close().await;
    database
        .execute("INSERT INTO _sqlx_migrations SELECT 9999, 'later', installed_on, 1, x'00', 0 FROM _sqlx_migrations LIMIT 1")
        .await;
    for access in [Access::Write, Access::ReadOnly] {
        let options = StoreOptions { access, ..StoreOptions::default() };
        let newer = |error: &StoreOpenError| matches!(error, StoreOpenError::Newer { found: 9999, known: 2, .. });
        let told = refuses(&database, options, newer).await;
        assert!(told.contains("schema 9999") && told.ends_with("use a newer release"), "{told}");
    }
    assert!(matches!(SqliteStore::migrate(database.path()).await, Err(StoreOpenError::Newer { .. })));
    assert!(matches!(SqliteStore::inspect(database.path()).await, Err(StoreOpenError::Newer { .. })));
}

#[tokio::test]
async fn another_history_is_respected() {
    let database = Database::missing();
    database.open().await.close().await;
    database.execute("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2").await;
    let other = |error: &StoreOpenError| matches!(error, StoreOpenError::OtherHistory { version: 2, .. });
    refuses(&database, StoreOptions::default(), other).await;
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    let mut headed = b"SQLite format 3\0".to_vec();
    headed.extend([0xa5; 4096]);
    for bytes in [&b"broker:\n  endpoint: tcp://127.0.0.1:5555\n"[..], &[0xff; 5000], b"S", &headed] {
        let database = Database::with_bytes(bytes);
        for access in [Access::Write, Access::ReadOnly] {
            let options = StoreOptions { access, ..StoreOptions::default() };
            let none = |error: &StoreOpenError| matches!(error, StoreOpenError::NotADatabase { .. });
            refuses(&database, options, none).await;
        }
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let database = Database::with_bytes(b"");
    let store = database.open().await;
    add(&store, START, job("one")).await;
    assert_eq!((store.codec(), store.info().await.unwrap().jobs), (Codec::Lz4, 1));
}

#[tokio::test]
async fn a_missing_file_is_made_only_for_writing() {
    let database = Database::missing();
    let read_only = StoreOptions { access: Access::ReadOnly, ..StoreOptions::default() };
    let is_missing = |error| matches!(error, StoreOpenError::NotFound { .. });
    assert!(is_missing(SqliteStore::open(database.path(), &read_only).await.unwrap_err()));
    assert!(is_missing(SqliteStore::migrate(database.path()).await.unwrap_err()));
    assert!(is_missing(SqliteStore::inspect(database.path()).await.unwrap_err()));
    assert!(!database.path().exists());
    let nowhere = database.folder().join("no such folder").join("jobs.db");
    let error = SqliteStore::open(nowhere, &StoreOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreOpenError::File { doing: "make", .. }), "{error:?}");
}

#[tokio::test]
async fn reading_does_not_migrate() {
    let database = Database::of_python();
    let options = StoreOptions { access: Access::ReadOnly, ..StoreOptions::default() };
    let verdict = |error: &StoreOpenError| matches!(error, StoreOpenError::NeedsMigration { found: 0, known: 2, .. });
    refuses(&database, options, verdict).await;
}

#[tokio::test]
async fn columns_that_fit_are_adopted() {
    let database = Database::of_python();
    database
        .execute(
            "ALTER TABLE jobs ADD COLUMN scheduled_for REAL; ALTER TABLE jobs ADD COLUMN start_deadline INTEGER;
             ALTER TABLE jobs ADD COLUMN Schedule_Id TEXT; ALTER TABLE jobs ADD COLUMN comment TEXT NOT NULL DEFAULT '';",
        )
        .await;
    let migrated = SqliteStore::migrate(database.path()).await.unwrap();
    assert_eq!(migrated.adopted, ["jobs.scheduled_for", "jobs.start_deadline", "jobs.schedule_id"]);
    let store = database.open().await;
    add(&store, START, job("delayed").at(at(10)).grace(5)).await;
    assert_eq!(store.job_release_due(at(16), &Scope::All, Link::Up).await.unwrap().missed.len(), 1);
    let found = store.job_find(&id("delayed")).await.unwrap().unwrap();
    assert_eq!((found.scheduled_for, found.start_deadline), (Some(at(10)), Some(at(15))));
}

#[tokio::test]
async fn a_database_of_other_text_is_refused() {
    let database = Database::with_sql("PRAGMA encoding = 'UTF-16le'; CREATE TABLE other (one TEXT)").await;
    let before = database.schema().await;
    for access in [Access::Write, Access::ReadOnly] {
        let options = StoreOptions { access, ..StoreOptions::default() };
        let told = refuses(&database, options, |error| matches!(error, StoreOpenError::Encoding { .. })).await;
        assert!(told.contains("keeps its text in UTF-16le"), "{told}");
    }
    assert_eq!(database.schema().await, before);
}

/// A database with another program's idea of something is refused for this reason, and its schema stays.
async fn refuses_schema(sql: &str, reason: &str) {
    let database = Database::of_python();
    database.execute(sql).await;
    let before = database.schema().await;
    let told =
        refuses(&database, StoreOptions::default(), |error| matches!(error, StoreOpenError::Foreign { .. })).await;
    assert!(told.ends_with(reason), "{told}");
    assert_eq!(database.schema().await, before);
}

#[tokio::test]
async fn columns_that_do_not_fit_are_refused() {
    for declared in ["TEXT", "TIMESTAMP", "BLOB", ""] {
        let sql = format!("ALTER TABLE jobs ADD COLUMN scheduled_for {declared}");
        let reason = format!(
            "jobs has a column scheduled_for of type {declared:?}, which cannot hold what this release keeps there (REAL)"
        );
        refuses_schema(&sql, &reason).await;
    }
    let sql = "ALTER TABLE jobs ADD COLUMN posts_sent REAL";
    refuses_schema(
        sql,
        "a column posts_sent of type \"REAL\", which cannot hold what this release keeps there (INTEGER)",
    )
    .await;
    refuses_schema("ALTER TABLE jobs DROP COLUMN errors", "jobs has no column errors").await;
    let sql = "CREATE TABLE job_schedules (uuid TEXT, name TEXT)";
    refuses_schema(sql, "job_schedules has another primary key").await;
    let sql = "CREATE TABLE job_schedules (uuid TEXT PRIMARY KEY, name TEXT)";
    refuses_schema(sql, "job_schedules has no column service").await;
    let sql = "CREATE TABLE norfab_settings (key TEXT PRIMARY KEY NOT NULL)";
    refuses_schema(sql, "norfab_settings has no column value").await;
    let sql = "CREATE TABLE norfab_settings (key TEXT PRIMARY KEY NOT NULL, value TEXT, owner TEXT NOT NULL)";
    refuses_schema(sql, "has a column owner that must be filled and that this release does not know").await;
    let sql =
        "CREATE TABLE input_answers (id INTEGER PRIMARY KEY, job_uuid TEXT, worker TEXT, answer BLOB, created_at REAL)";
    let reason = "a column answer of type \"BLOB\", which cannot hold what this release keeps there (TEXT)";
    refuses_schema(sql, reason).await;
}

#[tokio::test]
async fn schedules_of_another_program_are_completed() {
    let database = Database::of_python();
    database
        .execute(
            "CREATE TABLE job_schedules (
                 uuid TEXT PRIMARY KEY, name TEXT UNIQUE, service TEXT, task TEXT, args BLOB, kwargs BLOB, workers TEXT,
                 timeout INTEGER, trigger_type TEXT, trigger_config TEXT, timezone TEXT, start_at REAL, end_at REAL,
                 next_run_at REAL, last_run_at REAL, state TEXT, coalesce TEXT, misfire_grace_seconds INTEGER,
                 overlap_policy TEXT, max_instances INTEGER, jitter_seconds INTEGER, created_at REAL, updated_at REAL
             );
             INSERT INTO job_schedules (uuid, service, task, state, next_run_at, created_at)
             VALUES ('nightly', 'dummy', 'echo', 'ACTIVE', 1795996800.0, 1795990000.5);",
        )
        .await;
    let migrated = SqliteStore::migrate(database.path()).await.unwrap();
    assert_eq!(migrated.adopted.len(), 23);
    let filled = ["anchor_at", "next_due_at", "revision", "total_runs", "deleted_at"];
    let rows = database.rows(&filled, "FROM job_schedules").await;
    assert_eq!(rows, [["1795990000.0", "1795996800.0", "1", "0", "NULL"]]);
    let store = database.open().await;
    add(&store, START, job("one")).await;
}

#[tokio::test]
async fn the_choice_of_codec_is_kept() {
    let database = Database::missing();
    let with = |codec| StoreOptions { codec, ..StoreOptions::default() };
    let store = database.open_with(with(CodecChoice::IfNew(Codec::Zlib))).await;
    add(&store, START, job("zlib")).await;
    store.close().await;
    let store = database.open_with(with(CodecChoice::IfNew(Codec::Lz4))).await;
    assert_eq!(store.codec(), Codec::Zlib);
    store.close().await;
    let store = database.open_with(with(CodecChoice::Set(Codec::Lz4))).await;
    add(&store, START, job("lz4")).await;
    store.close().await;
    let store = database.open().await;
    assert_eq!(store.codec(), Codec::Lz4);
    let starts = database.rows(&["substr(args, 1, 2)"], "FROM jobs ORDER BY rowid").await;
    assert_eq!(starts, [["X'789C'"], ["X'0422'"]]);
    for name in ["zlib", "lz4"] {
        assert_eq!(store.job_detail(&id(name)).await.unwrap().unwrap().kwargs.as_str(), "{}");
    }
}

#[tokio::test]
async fn migrations_are_told_by_name() {
    let database = Database::missing();
    database.execute("CREATE TABLE unrelated (x)").await;
    let migrated = SqliteStore::migrate(database.path()).await.unwrap();
    let named = |version, description: &str| MigrationInfo { version, description: description.to_owned() };
    assert_eq!(migrated.applied, [named(1, "legacy"), named(2, "delayed and periodic jobs")]);
    let store = database.open().await;
    assert_eq!(store.codec(), Codec::Zlib);
    assert_eq!(add(&store, START, job("one")).await.status, JobStatus::New);
}
