//! What a pass and two lists cost over a long history, beside a short one.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use norfab_client::Config;
use norfab_model::{
    Claim, JobFilter, JobStatus, Limits, Link, Materialize, NextDue, Overdue, RetryPolicy, Schedule, ScheduleStore,
    Scope, Store,
};
use norfab_store::SqliteStore;

use crate::database::{Database, Opened, runtime};
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{START, add_job, after, answers, finished_jobs, new_job};
use crate::setting::Setting;
use crate::stopwatch::now;

/// The jobs of the short history.
const SHORT: usize = 1000;
/// How many delayed jobs each pass releases; it makes one of the schedule that has a history too.
const DUE: usize = 10;
/// How often each is done for one sample; the median counts.
const REPEATS: u32 = 51;

/// A database that the product has open, and the schedule in it that has a history.
struct History {
    store: SqliteStore,
    schedule: Schedule,
    repeats: u32,
}

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let (short, long) = (Database::new()?, Database::new()?);
    let of_short = finished_jobs(&short, START, setting.size(SHORT).min(SHORT))?;
    let of_long = finished_jobs(&long, START, setting.size(1_000_000))?;
    runtime()?.block_on(async {
        let repeats = setting.rounds(REPEATS).min(REPEATS);
        let of_short = History::open(&short, of_short, repeats).await?;
        let of_long = History::open(&long, of_long, repeats).await?;
        let (mut passes, mut newest, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setting.runs() {
            passes.push(Sample { ours: of_long.pass().await?, limit: of_short.pass().await? });
            let last = JobFilter { limit: 20, ..JobFilter::default() };
            newest.push(Sample { ours: of_long.list(&last).await?, limit: of_short.list(&last).await? });
            let (ours, limit) = (of_long.page(), of_short.page());
            pages.push(Sample { ours: of_long.list(&ours).await?, limit: of_short.list(&limit).await? });
        }
        of_short.close().await;
        of_long.close().await;
        let figure = |name, samples| Figure::new(name, "ms", Judge::AtMost(1.2), samples);
        Ok(vec![
            figure("growth of a pass", passes),
            figure("growth of the last 20", newest),
            figure("growth of a history", pages),
        ])
    })
}

impl History {
    async fn open(database: &Database, schedule: Schedule, repeats: u32) -> Result<Self> {
        let Opened(store) = database.open().await?;
        store.schedule_resume(START, &schedule.uuid, &Limits::default()).await?;
        Ok(Self { store, schedule, repeats })
    }

    async fn close(self) {
        self.store.close().await;
    }

    /// One page of the schedule's history.
    fn page(&self) -> JobFilter {
        JobFilter { schedule: Some(self.schedule.uuid.clone()), limit: 20, ..JobFilter::default() }
    }

    /// What a pass asks of the store, when some jobs and an occurrence are due and all of them are answered: in milliseconds.
    async fn pass(&self) -> Result<f64> {
        let (store, limits) = (&self.store, Limits::default());
        let mut times = Vec::new();
        for repeat in 0..self.repeats {
            let due = store.schedule_next_due().await?.context("the schedule has no next occurrence")?;
            for _ in 0..DUE {
                add_job(store, START, new_job().at(due)).await?;
            }
            let begun = now();
            let asked: NextDue = store.job_next_due(&Scope::All).await?;
            ensure!(asked.release == Some(due), "nothing is due");
            store.schedule_next_due().await?;
            let released = store.job_release_due(due, &Scope::All, Link::Up).await?.released;
            store.job_expire_due(due, &Scope::All, Overdue::All).await?;
            let batch = Config::default().schedule_batch;
            let request = Materialize { now: due, limits: &limits, budget_left: 1000, batch, seen: &[], claim: None };
            let made = store.schedule_materialize_due(request).await?.created;
            let claimed = store.job_claim(Claim::new(due, &Scope::All, 500)).await?.posts;
            store.job_take_polls(due, &Scope::All, after(START, -60), 500).await?;
            let answers = claimed.iter().map(|post| answers(&post.job)).collect::<Result<Vec<_>>>()?;
            let applied = store.job_apply(due, RetryPolicy::default(), answers.into_iter().flatten().collect()).await?;
            times.push(begun.elapsed());
            ensure!(released.len() == DUE && made.len() == 1, "not all was due in pass {repeat}");
            let ended = applied.jobs.iter().filter(|applied| applied.job.status == JobStatus::Completed).count();
            ensure!(ended == DUE + 1, "{ended} of {} jobs ended in pass {repeat}", DUE + 1);
        }
        median(times)
    }

    /// One list, in milliseconds.
    async fn list(&self, filter: &JobFilter) -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..self.repeats {
            let begun = now();
            let page = self.store.job_list(filter).await?;
            times.push(begun.elapsed());
            ensure!(!page.jobs.is_empty(), "the list is empty");
        }
        median(times)
    }
}

fn median(mut times: Vec<Duration>) -> Result<f64> {
    times.sort_unstable();
    let middle = times.get(times.len() / 2).context("nothing was measured")?;
    Ok(middle.as_secs_f64() * 1e3)
}
