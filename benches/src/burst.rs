//! Many delayed jobs that are due at one instant: from that instant to each POST on the wire, beside releasing them by
//! SQLite alone and sending them without a client.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use norfab_client::{Clock, SystemClock, Timestamp};
use tokio::task::JoinSet;

use crate::dealer::Dealer;
use crate::fabric::{Fabric, SERVICE, WORKER};
use crate::figure::{self, Figure, Judge};
use crate::place::{Place, echo};
use crate::raw_jobs::RawJobs;
use crate::setting::Setting;
use crate::times::Times;

const JOBS: usize = 1000;
/// Enough to add them all before they are due.
const AHEAD: Duration = Duration::from_secs(3);

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let jobs = setting.size(JOBS);
    let samples = figure::by_turns(setting, async || ours(jobs).await, async || limit(jobs).await)?;
    Ok(vec![Figure::new("burst p99", "ms", Judge::AtMost(3.0), samples)])
}

/// Milliseconds from the instant to the POSTs, the last hundredth left out.
async fn ours(jobs: usize) -> Result<f64> {
    let mut fabric = Fabric::start()?;
    let place = Place::new()?;
    let client = place.client(&fabric).await?;
    client.run_job(echo()).await?;
    let due = SystemClock.now().saturating_add(AHEAD);
    let mut adding = JoinSet::new();
    for _ in 0..jobs {
        let client = client.clone();
        adding.spawn(async move { client.schedule_job(echo().at(due)).await });
    }
    let mut ids = HashSet::new();
    let mut handles = Vec::new();
    while let Some(added) = adding.join_next().await {
        let handle = added??;
        ids.insert(handle.id().to_string());
        handles.push(handle);
    }
    ensure!(SystemClock.now() < due, "the jobs were due before they were added");
    for handle in &mut handles {
        handle.outcome().await?;
    }
    drop(handles);
    client.shutdown().await;
    let posts = fabric.posts()?.into_iter().filter(|(job, _)| ids.contains(job));
    lateness(posts.map(|(_, at)| at), due, jobs)
}

async fn limit(jobs: usize) -> Result<f64> {
    let place = Place::new()?;
    let mut raw = RawJobs::open(&place.database()).await?;
    let due = SystemClock.now();
    raw.add_scheduled(jobs, due)?;
    let mut fabric = Fabric::start()?;
    let mut dealer = Dealer::connect(fabric.endpoint(), "bare", SERVICE).await?;
    let workers = [WORKER.to_owned()];
    dealer.run_jobs(&workers, 1, 1).await?;
    let began = SystemClock.now();
    let released = raw.release(began)?;
    ensure!(released == jobs, "{released} of {jobs} jobs were released");
    dealer.run_jobs(&workers, jobs, jobs).await?;
    lateness(fabric.posts()?.into_iter().skip(1).map(|(_, at)| at), began, jobs)
}

fn lateness(posts: impl Iterator<Item = Timestamp>, due: Timestamp, jobs: usize) -> Result<f64> {
    let late: Vec<Duration> = posts.map(|at| at.since(due)).collect();
    ensure!(late.len() == jobs, "{} of {jobs} jobs were sent", late.len());
    Ok(Times::of(late)?.milliseconds(0.99))
}
