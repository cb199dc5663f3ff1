//! Immediate jobs submitted at once, until all are COMPLETED and their results stored, beside SQLite alone.

use anyhow::{Result, ensure};
use norfab_client::{Client, Clock, JobStatus, Outcome, SystemClock};
use tokio::task::JoinSet;

use crate::fabric::Fabric;
use crate::figure::{self, Figure, Judge};
use crate::place::{Place, echo};
use crate::raw_jobs::RawJobs;
use crate::setting::Setting;

const JOBS: usize = 20_000;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let jobs = setting.size(JOBS);
    let samples = figure::by_turns(setting, async || ours(jobs).await, async || limit(jobs).await)?;
    Ok(vec![Figure::new("end to end", "jobs/s", Judge::AtLeast(0.15), samples)])
}

/// Jobs in a second.
async fn ours(jobs: usize) -> Result<f64> {
    let fabric = Fabric::start()?;
    let place = Place::new()?;
    let client = place.client(&fabric).await?;
    client.run_job(echo()).await?;
    let began = SystemClock.now();
    let mut running = JoinSet::new();
    for _ in 0..jobs {
        running.spawn(completed(client.clone()));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let seconds = SystemClock.now().since(began).as_secs_f64();
    let completed = client.stats().await?.jobs.jobs_by_status.get(JobStatus::Completed.as_str()).copied().unwrap_or(0);
    ensure!(completed == jobs as u64 + 1, "{completed} of {jobs} jobs completed");
    client.shutdown().await;
    Ok(jobs as f64 / seconds)
}

async fn completed(client: Client) -> Result<()> {
    let outcome = client.submit_job(echo()).await?.outcome().await?;
    ensure!(matches!(outcome, Outcome::Completed { .. }), "an echo did not complete: {outcome:?}");
    Ok(())
}

async fn limit(jobs: usize) -> Result<f64> {
    let place = Place::new()?;
    let mut raw = RawJobs::open(&place.database()).await?;
    let began = SystemClock.now();
    raw.lives(jobs)?;
    Ok(jobs as f64 / SystemClock.now().since(began).as_secs_f64())
}
