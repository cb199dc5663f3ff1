//! The calls that people and other programs make.

use std::sync::Mutex;
use std::time::Duration;

use norfab_model::{
    Coalesce, Interval, JobId, Json, Limits, NewJob, NewSchedule, Overlap, OverlapPolicy, Patch, ScheduleError,
    ScheduleId, ScheduleKey, SchedulePatch, ScheduleStore, Start, Store, StoreError, Timestamp, Trigger,
};

use crate::script::{Change, Forced, NewOp, Op, Rule};

/// What was made so far, for calls to choose from.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    jobs: Vec<JobId>,
    schedules: Vec<ScheduleId>,
}

impl Roster {
    fn job(&self, which: usize) -> Option<JobId> {
        self.jobs.iter().rev().nth(which).cloned()
    }

    fn schedule(&self, which: usize) -> Option<ScheduleId> {
        let count = self.schedules.len();
        (count > 0).then(|| self.schedules[which % count].clone())
    }
}

/// How many schedules there are at the most.
const MOST_SCHEDULES: usize = 4;

/// Carries out a call at `now`; says what came of it. Err when the store itself failed.
pub(crate) async fn carry_out<S: Store + ScheduleStore>(
    store: &S,
    roster: &Mutex<Roster>,
    now: Timestamp,
    op: &Op,
) -> Result<String, StoreError> {
    let limits = Limits::default();
    let schedule = |which: &usize| roster.lock().expect("nobody panics with it").schedule(*which);
    let known = |which: &usize| roster.lock().expect("nobody panics with it").job(*which);
    match op {
        Op::Add(new) => add(store, roster, now, new).await,
        Op::Create(rule) => create(store, roster, now, rule).await,
        Op::Cancel(which) => match known(which) {
            Some(id) => said(store.job_cancel(now, &id).await.map(|job| job.status)),
            None => nothing(),
        },
        Op::Reschedule(which, by) => match known(which) {
            Some(id) => said(store.job_reschedule(now, &id, shifted(now, *by)).await.map(|job| job.status)),
            None => nothing(),
        },
        Op::Answer => answer(store, now).await,
        Op::Pause(which) => match schedule(which) {
            Some(id) => told(store.schedule_pause(now, &id).await.map(|managed| managed.schedule.state)),
            None => nothing(),
        },
        Op::Resume(which) => match schedule(which) {
            Some(id) => told(store.schedule_resume(now, &id, &limits).await.map(|managed| managed.schedule.state)),
            None => nothing(),
        },
        Op::Disable(which) => match schedule(which) {
            Some(id) => told(store.schedule_disable(now, &ScheduleKey::Id(id)).await.map(|_| "disabled")),
            None => nothing(),
        },
        Op::Delete(which) => match schedule(which) {
            Some(id) => told(store.schedule_delete(now, &ScheduleKey::Id(id)).await.map(|_| "deleted")),
            None => nothing(),
        },
        Op::RunNow(which, forced) => match schedule(which) {
            Some(id) => {
                let overlap = if *forced == Forced::Yes { Overlap::Force } else { Overlap::Respect };
                told(store.schedule_run_now(now, &id, overlap, &limits).await.map(|run| run.job.uuid))
            }
            None => nothing(),
        },
        Op::Update(which, change) => match schedule(which) {
            Some(id) => {
                let patch = patch(now, change);
                told(store.schedule_update(now, &id, &patch, &limits).await.map(|managed| managed.schedule.revision))
            }
            None => nothing(),
        },
    }
}

fn nothing() -> Result<String, StoreError> {
    Ok("nothing".into())
}

fn said<T: std::fmt::Display>(outcome: Result<T, StoreError>) -> Result<String, StoreError> {
    match outcome {
        Ok(done) => Ok(done.to_string()),
        Err(error @ StoreError::Storage { .. }) => Err(error),
        Err(refusal) => Ok(refusal.to_string()),
    }
}

fn told<T: std::fmt::Display>(outcome: Result<T, ScheduleError>) -> Result<String, StoreError> {
    match outcome {
        Ok(done) => Ok(done.to_string()),
        Err(ScheduleError::Store(error)) => Err(error),
        Err(refusal) => Ok(refusal.to_string()),
    }
}

fn shifted(now: Timestamp, seconds: i64) -> Timestamp {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { now.saturating_sub(by) } else { now.saturating_add(by) }
}

async fn add<S: Store>(store: &S, roster: &Mutex<Roster>, now: Timestamp, new: &NewOp) -> Result<String, StoreError> {
    let start = match new.at {
        None => Start::Now,
        Some((seconds, misfire_grace_seconds)) => {
            Start::At { scheduled_for: shifted(now, seconds), misfire_grace_seconds }
        }
    };
    let job =
        NewJob { start, ..NewJob::new("dummy", new.task.name()).workers(new.workers.clone()).timeout(new.timeout) };
    let Ok(valid) = Limits::default().check_job(now, job) else { return nothing() };
    let added = store.job_add(now, &valid).await;
    if added.is_ok() {
        roster.lock().expect("nobody panics with it").jobs.push(valid.id().clone());
    }
    said(added.map(|job| job.uuid))
}

async fn create<S: ScheduleStore>(
    store: &S,
    roster: &Mutex<Roster>,
    now: Timestamp,
    rule: &Rule,
) -> Result<String, StoreError> {
    if roster.lock().expect("nobody panics with it").schedules.len() >= MOST_SCHEDULES {
        return nothing();
    }
    let Ok(interval) = Interval::new(rule.interval.into()) else { return nothing() };
    let new = NewSchedule::new("dummy", rule.job.task.name(), Trigger::from(interval));
    let new = NewSchedule {
        workers: rule.job.workers.clone(),
        timeout: rule.job.timeout,
        jitter_seconds: rule.jitter,
        misfire_grace_seconds: rule.grace,
        coalesce: coalesce(rule.coalesce),
        overlap_policy: policy(rule.instances),
        max_instances: rule.instances.unwrap_or(1),
        start_at: rule.start.map(|by| shifted(now, by)),
        end_at: rule.end.map(|by| shifted(now, i64::try_from(by).unwrap_or(0))),
        ..new
    };
    let new = if rule.paused { new.paused() } else { new };
    let valid = match Limits::default().check_schedule(now, new) {
        Ok(valid) => valid,
        Err(refusal) => return Ok(refusal.to_string()),
    };
    let added = store.schedule_add(&valid).await;
    if added.is_ok() {
        roster.lock().expect("nobody panics with it").schedules.push(valid.schedule().uuid.clone());
    }
    told(added.map(|schedule| schedule.uuid))
}

fn coalesce(number: u8) -> Coalesce {
    match number {
        0 => Coalesce::Latest,
        1 => Coalesce::Earliest,
        _ => Coalesce::All,
    }
}

fn policy(instances: Option<u64>) -> OverlapPolicy {
    if instances.is_some() { OverlapPolicy::Allow } else { OverlapPolicy::Forbid }
}

fn optional<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Clear, Patch::Set)
}

fn patch(now: Timestamp, change: &Change) -> SchedulePatch {
    let keep = SchedulePatch::default();
    match change {
        Change::Interval(seconds) => {
            SchedulePatch { trigger: Interval::new((*seconds).into()).ok().map(Trigger::from), ..keep }
        }
        Change::Jitter(seconds) => SchedulePatch { jitter_seconds: Patch::Set(*seconds), ..keep },
        Change::Coalesce(number) => SchedulePatch { coalesce: Patch::Set(coalesce(*number)), ..keep },
        Change::Instances(instances) => SchedulePatch {
            overlap_policy: Patch::Set(policy(*instances)),
            max_instances: Patch::Set(instances.unwrap_or(1)),
            ..keep
        },
        Change::Grace(seconds) => SchedulePatch { misfire_grace_seconds: optional(*seconds), ..keep },
        Change::End(seconds) => {
            SchedulePatch { end_at: optional(seconds.map(|by| shifted(now, i64::try_from(by).unwrap_or(0)))), ..keep }
        }
        Change::Nothing => keep,
    }
}

async fn answer<S: Store>(store: &S, now: Timestamp) -> Result<String, StoreError> {
    let mut answered = 0;
    for job in store.job_unfinished().await? {
        for (worker, request) in &job.pending_inputs {
            store.answer_add(now, &job.uuid, worker, &request.answer(Json::from(serde_json::json!("yes")))).await?;
            answered += 1;
        }
    }
    Ok(format!("{answered} answers"))
}
