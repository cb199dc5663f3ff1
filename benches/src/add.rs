//! Delayed jobs of many callers at once; the limit is one commit for each.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use norfab_client::{Client, Role};
use norfab_model::NewJob;

use crate::database::{Database, copied, runtime};
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{after, new_job};
use crate::setting::Setting;
use crate::stopwatch::{now, rate, timed, wall};

/// So many tasks call, one job after the other.
const TASKS: usize = 64;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let count = setting.size(10_000);
    let samples = (0..setting.runs()).map(|_| sample(count)).collect::<Result<Vec<_>>>()?;
    Ok(vec![Figure::new("add", "jobs/s", Judge::AtLeast(1.0), samples)])
}

fn sample(count: usize) -> Result<Sample> {
    let (ours, limit) = (Database::new()?, Database::new()?);
    let rate_of_ours = runtime()?.block_on(schedule(&ours, count))?;
    Ok(Sample { ours: rate_of_ours, limit: commit_each(&ours, &limit, count)? })
}

async fn schedule(database: &Database, count: usize) -> Result<f64> {
    let client = Client::builder().database(database.path()).role(Role::Beside).build().await?;
    let client = Arc::new(client);
    let job = new_job().at(after(wall(), 3600));
    let begun = now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(schedule_some(Arc::clone(&client), job.clone(), (task..count).step_by(TASKS).len())))
        .collect();
    for task in tasks {
        task.await??;
    }
    let took = begun.elapsed();
    Arc::into_inner(client).context("a task holds the client still")?.shutdown().await;
    Ok(rate(count, took))
}

async fn schedule_some(client: Arc<Client>, job: NewJob, count: usize) -> Result<()> {
    for _ in 0..count {
        client.schedule_job(job.clone()).await?;
    }
    Ok(())
}

/// Inserts the same rows, each durable before the next.
fn commit_each(added: &Database, into: &Database, count: usize) -> Result<f64> {
    let (insert, rows) = copied(&added.connect()?, "jobs")?;
    ensure!(rows.len() == count, "there are {} jobs, not {count}", rows.len());
    let connection = into.connect()?;
    let mut insert = connection.prepare(&insert)?;
    let (done, took) = timed(|| rows.iter().try_for_each(|row| crate::database::run(&mut insert, row).map(drop)));
    done?;
    Ok(rate(count, took))
}
