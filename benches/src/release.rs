//! Delayed jobs whose time has come become NEW; the limit is the UPDATE alone.

use std::time::Duration;

use anyhow::{Result, ensure};
use norfab_model::{Link, Scope, Store};
use norfab_store::SqliteStore;

use crate::database::Database;
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{at, scheduled_jobs};
use crate::setting::Setting;
use crate::stopwatch::rate;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let count = setting.size(100_000);
    let due = Database::new()?;
    scheduled_jobs(&due, count, at(3600))?;
    let samples = (0..setting.runs()).map(|_| sample(&due, count)).collect::<Result<Vec<_>>>()?;
    Ok(vec![Figure::new("release", "jobs/s", Judge::AtLeast(0.7), samples)])
}

fn sample(due: &Database, count: usize) -> Result<Sample> {
    let ours = due.copy()?.until_closed(|store| async move { release(&store, count).await })?;
    Ok(Sample { ours: rate(count, ours), limit: rate(count, update(&due.copy()?, count)?) })
}

async fn release(store: &SqliteStore, count: usize) -> Result<()> {
    let mut released = 0;
    while released < count {
        let outcome = store.job_release_due(at(3600), &Scope::All, Link::Up).await?;
        ensure!(!outcome.released.is_empty(), "only {released} jobs were released");
        released += outcome.released.len();
    }
    Ok(())
}

/// All of them in one statement.
fn update(due: &Database, count: usize) -> Result<Duration> {
    due.until_closed_raw(|connection| {
        let changed = connection.execute(
            "UPDATE jobs SET status = 'NEW', deadline = ?1 + timeout, released_at = ?1
             WHERE status = 'SCHEDULED' AND scheduled_for <= ?1",
            [at(3600).as_seconds_f64()],
        )?;
        ensure!(changed == count, "{changed} jobs were changed, not {count}");
        Ok(())
    })
}
