//! Occurrences at a steady rate: how late each POST is on the wire, beside a bare timer loop that commits one row and
//! sends.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use norfab_client::{Client, Clock, Interval, JobFilter, NewSchedule, SystemClock, Timestamp, Workers};
use norfab_model::jitter;

use crate::dealer::{Dealer, new_job};
use crate::fabric::{Fabric, SERVICE, WORKER};
use crate::figure::{Figure, Judge, Sample};
use crate::place::Place;
use crate::raw_jobs::RawJobs;
use crate::setting::Setting;
use crate::times::Times;

/// A schedule has one occurrence in a round, somewhere in one of its seconds: 500 in each.
const SCHEDULES: usize = 2500;
const ROUND: u32 = 5;
const SPREAD: u64 = 1;
const ROUNDS: u32 = 6;
/// Of the bare loop.
const STEP: Duration = Duration::from_millis(2);

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let (schedules, rounds) = (setting.size(SCHEDULES), setting.rounds(ROUNDS));
    let (mut middle, mut end) = (Vec::new(), Vec::new());
    for _ in 0..setting.runs() {
        let ours = runtime.block_on(ours(schedules, rounds))?;
        let limit = runtime.block_on(limit(schedules * rounds as usize))?;
        let sample = |share| Sample { ours: ours.milliseconds(share), limit: limit.milliseconds(share) };
        middle.push(sample(0.5));
        end.push(sample(0.99));
    }
    Ok(vec![
        Figure::new("lateness p50", "ms", Judge::AtMost(2.0), middle),
        Figure::new("lateness p99", "ms", Judge::AtMost(3.0), end),
    ])
}

async fn ours(schedules: usize, rounds: u32) -> Result<Times> {
    let mut fabric = Fabric::start()?;
    let place = Place::new()?;
    let client = place.client(&fabric).await?;
    // Enough time to create them all.
    let ahead = Duration::from_secs(2) + Duration::from_millis(8) * u32::try_from(schedules)?;
    let start = next_second(SystemClock.now().saturating_add(ahead));
    let end = start.plus_seconds(rounds * ROUND);
    for second in (0..ROUND).cycle().take(schedules) {
        client.create_job_schedule(schedule(start.plus_seconds(second))?).await?;
    }
    ensure!(SystemClock.now() < start, "the schedules began before they were all there");
    // A second more, for those that are late.
    tokio::time::sleep(end.plus_seconds(1).since(SystemClock.now())).await;
    let due = dues(&client, end).await?;
    client.shutdown().await;
    let posts = fabric.posts()?.into_iter();
    let late: Vec<_> = posts.filter_map(|(job, at)| due.get(&job).map(|due| at.since(*due))).collect();
    // A jitter of a whole second, at the end, is one in a million.
    ensure!(late.len() + 2 >= schedules * rounds as usize, "{} occurrences only", late.len());
    Times::of(late)
}

/// Occurrences fall on whole seconds: so does what is measured.
fn next_second(at: Timestamp) -> Timestamp {
    let micros = at.as_micros().rem_euclid(1_000_000);
    at.saturating_add(Duration::from_micros(1_000_000_u64.saturating_sub(micros.unsigned_abs())))
}

fn schedule(start: Timestamp) -> Result<NewSchedule> {
    let every = Interval::new(u64::from(ROUND))?;
    let new = NewSchedule::new(SERVICE, "echo", every).workers(Workers::One(WORKER.to_owned()));
    Ok(new.start_at(start).jitter(SPREAD))
}

/// When each job was due, of those whose occurrence is before `end`.
async fn dues(client: &Client, end: Timestamp) -> Result<HashMap<String, Timestamp>> {
    let mut dues = HashMap::new();
    let mut filter = JobFilter { limit: 1000, ..JobFilter::default() };
    loop {
        let page = client.list_jobs(&filter).await?;
        for job in page.jobs {
            let (schedule, occurrence) = job.schedule_id.zip(job.scheduled_for).context("a job of no schedule")?;
            let due = occurrence.saturating_add(jitter(&schedule, occurrence, u32::try_from(SPREAD)?));
            if due < end {
                dues.insert(job.uuid.to_string(), due);
            }
        }
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            return Ok(dues);
        }
    }
}

async fn limit(count: usize) -> Result<Times> {
    let place = Place::new()?;
    let mut raw = RawJobs::open(&place.database()).await?;
    let mut fabric = Fabric::start()?;
    let (mut outlet, mut inlet) = Dealer::connect(fabric.endpoint(), "bare", SERVICE).await?.split();
    let reader = tokio::spawn(async move { while inlet.said().await.is_ok() {} });
    let mut due = SystemClock.now();
    let mut dues = HashMap::new();
    for _ in 0..count {
        due = due.saturating_add(STEP);
        // What sleeps here is a thread: it wakes sooner than any timer of the runtime.
        std::thread::sleep(due.since(SystemClock.now()));
        raw.add_one(due)?;
        let job = new_job();
        outlet.post(&job, WORKER).await?;
        dues.insert(job, due);
    }
    while fabric.posts()?.len() < count {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    reader.abort();
    let late = fabric.posts()?.into_iter().filter_map(|(job, at)| dues.get(&job).map(|due| at.since(*due)));
    Times::of(late.collect())
}
