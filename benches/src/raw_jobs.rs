//! The job table written by SQLite alone: what the life of a job costs at least, with the same schema, indexes and
//! durability.

use std::path::Path;

use anyhow::{Context, Result};
use norfab_client::{Clock, SqliteStore, Store, SystemClock, Timestamp};
use norfab_store::StoreOptions;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::database;
use crate::dealer::new_job;

/// Jobs of one commit.
const BATCH: usize = 1000;

const ADD: &str = "INSERT INTO jobs (uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, \
                   received_timestamp, created_at, scheduled_for, origin, added_at, released_at) \
                   VALUES (?1, 'bench', 'echo', ?2, ?3, 600, ?4, ?5, '\"bench-worker-1\"', '2026-11-29 16:05:05', \
                   '2026-11-29 16:05:05', ?6, 'direct', ?7, ?8)";

/// What becomes of a NEW job: claimed, confirmed by the broker, taken by its worker, completed with a result.
const STEPS: [&str; 4] = [
    "UPDATE jobs SET status = 'SUBMITTING', dispatch_target = '\"bench-worker-1\"', posts_sent = 1, \
     last_poll_timestamp = ?2 WHERE rowid = ?1 AND status = 'NEW'",
    "UPDATE jobs SET status = 'DISPATCHED', workers_dispatched = '[\"bench-worker-1\"]', started_at = ?2, \
     started_timestamp = 'Sun Nov 29 16:05:05 2026' WHERE rowid = ?1 AND status = 'SUBMITTING'",
    "UPDATE jobs SET status = 'STARTED', workers_started = '[\"bench-worker-1\"]', last_poll_timestamp = ?2 \
     WHERE rowid = ?1 AND status = 'DISPATCHED'",
    "UPDATE jobs SET status = 'COMPLETED', workers_completed = '[\"bench-worker-1\"]', result_data = ?3, \
     finished_at = ?2, completed_timestamp = 'Sun Nov 29 16:05:06 2026' WHERE rowid = ?1 AND status = 'STARTED'",
];

/// Bytes of the result of an `echo`, compressed.
const RESULT_BYTES: usize = 400;

/// A job database under SQLite alone.
pub(crate) struct RawJobs {
    connection: Connection,
}

impl RawJobs {
    /// Makes the database as the client does, and opens it without the client.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        SqliteStore::open(path, &StoreOptions::default()).await.context("no database")?.close().await;
        Ok(Self { connection: database::connect(path)? })
    }

    /// So many jobs from NEW to COMPLETED: the five writes of each, 1,000 jobs a commit.
    pub(crate) fn lives(&mut self, jobs: usize) -> Result<()> {
        let result = vec![7_u8; RESULT_BYTES];
        let mut left = jobs;
        while left > 0 {
            let tx = self.begin()?;
            let batch = left.min(BATCH);
            let now = SystemClock.now();
            let rows = (0..batch).map(|_| add(&tx, "NEW", None, now)).collect::<Result<Vec<i64>>>()?;
            for (at, step) in STEPS.iter().enumerate() {
                let mut statement = tx.prepare_cached(step)?;
                for row in &rows {
                    if at + 1 < STEPS.len() {
                        statement.execute(params![row, now.as_seconds_f64()])?;
                    } else {
                        statement.execute(params![row, now.as_seconds_f64(), result])?;
                    }
                }
            }
            tx.commit()?;
            left -= batch;
        }
        Ok(())
    }

    /// Adds jobs that are due at an instant.
    pub(crate) fn add_scheduled(&mut self, jobs: usize, at: Timestamp) -> Result<()> {
        let tx = self.begin()?;
        for _ in 0..jobs {
            add(&tx, "SCHEDULED", Some(at), SystemClock.now())?;
        }
        Ok(tx.commit()?)
    }

    /// Makes NEW what is due.
    pub(crate) fn release(&mut self, now: Timestamp) -> Result<usize> {
        let tx = self.begin()?;
        let released = tx.execute(
            "UPDATE jobs INDEXED BY jobs_due SET status = 'NEW', deadline = ?1 + timeout, released_at = ?1 \
             WHERE status = 'SCHEDULED' AND scheduled_for <= ?1",
            [now.as_seconds_f64()],
        )?;
        tx.commit()?;
        Ok(released)
    }

    /// Adds one job, in a commit of its own.
    pub(crate) fn add_one(&mut self, now: Timestamp) -> Result<()> {
        let tx = self.begin()?;
        add(&tx, "NEW", None, now)?;
        Ok(tx.commit()?)
    }

    fn begin(&mut self) -> Result<Transaction<'_>> {
        Ok(self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }
}

/// Adds a job; returns its row number.
fn add(tx: &Transaction<'_>, status: &str, at: Option<Timestamp>, now: Timestamp) -> Result<i64> {
    let seconds = now.as_seconds_f64();
    let released = at.is_none().then_some(seconds);
    tx.prepare_cached(ADD)?.execute(params![
        new_job(),
        br#"{"args":[]}"#,
        br#"{"kwargs":{"n":1}}"#,
        released.map(|at| at + 600.0),
        status,
        at.map(Timestamp::as_seconds_f64),
        seconds,
        released,
    ])?;
    Ok(tx.last_insert_rowid())
}
