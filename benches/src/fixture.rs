//! What stands in the databases: schedules and jobs that the product itself has made once, copied so often by SQL.

use anyhow::{Context, Result};
use norfab_model::{
    Claim, Interval, Job, JobId, Json, Limits, NewJob, NewSchedule, Reply, ReplyKind, RetryPolicy, Schedule,
    ScheduleStore, Scope, Store, Timestamp, Workers,
};
use norfab_store::SqliteStore;
use rusqlite::Connection;

use crate::database::{Database, multiply};

/// When the measurements begin that need no clock.
pub(crate) const START: Timestamp = Timestamp::from_seconds(1_795_996_800);

/// So many seconds after an instant.
pub(crate) fn after(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_micros(now.as_micros() + seconds * 1_000_000)
}

/// So many seconds after the start.
pub(crate) fn at(seconds: i64) -> Timestamp {
    after(START, seconds)
}

/// An identity that grows with time, as those that the product gives, in SQL.
const GROWING_ID: &str = "printf('%012x7%03x', 1795996800000 + n, 0) || lower(hex(randomblob(8)))";

/// A job as a caller asks for it.
pub(crate) fn new_job() -> NewJob {
    NewJob::new("nornir", "cli").workers(Workers::One("nornir-worker-1".to_owned())).kwargs(arguments())
}

/// A schedule as a caller asks for it, without its name.
pub(crate) fn new_schedule(seconds: u64) -> Result<NewSchedule> {
    let workers = Workers::One("nornir-worker-1".to_owned());
    Ok(NewSchedule::new("nornir", "cli", Interval::new(seconds)?).workers(workers).kwargs(arguments()))
}

fn arguments() -> Json {
    let kwargs =
        serde_json::json!({ "commands": ["show version", "show interfaces"], "FC": "spine", "dry_run": false });
    Json::from(kwargs)
}

/// Adds a schedule.
pub(crate) async fn add_schedule(store: &SqliteStore, now: Timestamp, new: NewSchedule) -> Result<Schedule> {
    Ok(store.schedule_add(&Limits::default().check_schedule(now, new)?).await?)
}

/// Adds a job.
pub(crate) async fn add_job(store: &SqliteStore, now: Timestamp, new: NewJob) -> Result<Job> {
    Ok(store.job_add(now, &Limits::default().check_job(now, new)?).await?)
}

/// So many ACTIVE schedules of an hour, the first occurrence of all an hour after `now`.
pub(crate) fn schedules(database: &Database, now: Timestamp, count: usize) -> Result<()> {
    let new = new_schedule(3600)?.name("schedule-0");
    database.with_store(|store| async move { add_schedule(&store, now, new).await })?;
    database.fill(|connection| {
        let row = newest(connection, "job_schedules")?;
        let replaced = [("uuid", GROWING_ID), ("name", "'schedule-' || n")];
        multiply(connection, "job_schedules", row, count.saturating_sub(1), &replaced)
    })
}

/// So many SCHEDULED jobs, due at this instant.
pub(crate) fn scheduled_jobs(database: &Database, count: usize, due: Timestamp) -> Result<()> {
    let now = after(due, -7200);
    database.with_store(|store| async move { add_job(&store, now, new_job().at(due)).await })?;
    database.fill(|connection| {
        let row = newest(connection, "jobs")?;
        multiply(connection, "jobs", row, count.saturating_sub(1), &[("uuid", GROWING_ID)])
    })
}

/// So many COMPLETED jobs, every tenth of them of one schedule, which is returned.
pub(crate) fn finished_jobs(database: &Database, now: Timestamp, count: usize) -> Result<Schedule> {
    let new = new_schedule(60)?.paused();
    let schedule = database.with_store(|store| async move {
        complete(&store, now).await?;
        add_schedule(&store, now, new).await
    })?;
    database.fill(|connection| {
        let row = newest(connection, "jobs")?;
        let seconds = now.as_seconds_f64();
        let of_schedule = format!("CASE WHEN n % 10 = 1 THEN '{}' END", schedule.uuid);
        let scheduled_for = format!("CASE WHEN n % 10 = 1 THEN {seconds:?} - 60.0 * n END");
        let added_at = format!("{seconds:?} - n");
        let replaced = [
            ("uuid", GROWING_ID),
            ("schedule_id", of_schedule.as_str()),
            ("scheduled_for", scheduled_for.as_str()),
            ("origin", "CASE WHEN n % 10 = 1 THEN 'occurrence' ELSE 'direct' END"),
            ("added_at", added_at.as_str()),
        ];
        multiply(connection, "jobs", row, count.saturating_sub(1), &replaced)
    })?;
    Ok(schedule)
}

/// One job through its whole life.
async fn complete(store: &SqliteStore, now: Timestamp) -> Result<()> {
    let job = add_job(store, now, new_job()).await?.uuid;
    let claimed = store.job_claim(Claim::new(now, &Scope::All, 1)).await?;
    anyhow::ensure!(claimed.posts.len() == 1, "the job was not claimed");
    let replies = answers(&job)?.into();
    store.job_apply(after(now, 1), RetryPolicy::default(), replies).await?;
    let done = store.job_find(&job).await?.context("the job is gone")?;
    anyhow::ensure!(done.status == norfab_model::JobStatus::Completed, "the job is {}", done.status);
    Ok(())
}

/// What the broker and the worker say of a job that goes well.
pub(crate) fn answers(job: &JobId) -> Result<[Reply; 3]> {
    let worker = || "nornir-worker-1".to_owned();
    let result = Json::parse(r#"{"failed": false, "result": {"spine-1": "up 4 days"}}"#)?;
    let kinds = [
        ReplyKind::Accepted { workers: vec![worker()] },
        ReplyKind::Stored { worker: worker() },
        ReplyKind::Result { worker: worker(), result },
    ];
    Ok(kinds.map(|kind| Reply::new(job.clone(), kind)))
}

fn newest(connection: &Connection, table: &str) -> Result<i64> {
    Ok(connection.query_row(&format!("SELECT max(rowid) FROM {table}"), [], |row| row.get(0))?)
}
