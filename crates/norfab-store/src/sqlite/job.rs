//! Single jobs: looked up, cancelled, moved, given up.

use norfab_model::{Job, JobDetail, JobEvent, JobId, StoreError, Timestamp};

use super::codec::PayloadError;
use super::encode::Before;
use super::event::event_add_in_tx;
use super::load::{self, Step, Wanted};
use super::row::{Loaded, Unreadable};
use super::{Session, storage};
use crate::sqlite::statement::statement;
use crate::transition;
use rusqlite::Connection;

pub(super) fn job_find(shared: &Session<'_>, id: &JobId) -> Result<Option<Job>, StoreError> {
    const DOING: &str = "look a job up";
    let connection = shared.read(DOING)?;
    let rows = Wanted::jobs([id]).map_err(storage(DOING))?.load(connection).map_err(storage(DOING))?;
    rows.into_iter().next().map(|row| row.job).transpose().map_err(unreadable)
}

pub(super) fn job_detail(shared: &Session<'_>, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
    const DOING: &str = "look a job up";
    let connection = shared.read(DOING)?;
    let wanted = Wanted::jobs([id]).map_err(storage(DOING))?.with_arguments().with_results();
    let rows = wanted.load(connection).map_err(storage(DOING))?;
    rows.into_iter().next().map(|row| detail(shared, row)).transpose().map_err(unreadable)
}

fn detail(shared: &Session<'_>, Loaded { row, job }: Loaded) -> Result<JobDetail, Unreadable> {
    let job = job?;
    let uuid = job.uuid.clone();
    let wrong = |column: &'static str| {
        let (number, uuid) = (row.row, uuid.as_str());
        move |error: PayloadError| Unreadable::new(number, uuid, &format!("its {column} cannot be read: {error}"))
    };
    Ok(JobDetail {
        job,
        args: shared.payloads.args(&row.args).map_err(wrong("args"))?,
        kwargs: shared.payloads.kwargs(&row.kwargs).map_err(wrong("kwargs"))?,
        results: shared.payloads.results(&row.result_data).map_err(wrong("result_data"))?,
    })
}

fn unreadable(Unreadable { what, .. }: Unreadable) -> StoreError {
    StoreError::Unreadable { job: what.uuid, reason: what.reason }
}

pub(super) fn job_cancel(shared: &Session<'_>, now: Timestamp, id: &JobId) -> Result<Job, StoreError> {
    const DOING: &str = "cancel a job";
    let tx = shared.write(DOING)?;
    let local = shared.local(now, &tx).map_err(storage(DOING))?;
    let (step, mut event) = change_scheduled(&tx, id, "cancelled", DOING, |job| transition::cancel(job, now))?;
    load::finish(&tx, std::slice::from_ref(&step), &local, DOING)?;
    event_add_in_tx(&tx, shared.codec, [&mut event], DOING)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(step.job)
}

pub(super) fn job_reschedule(
    shared: &Session<'_>,
    now: Timestamp,
    id: &JobId,
    scheduled_for: Timestamp,
) -> Result<Job, StoreError> {
    const DOING: &str = "reschedule a job";
    let tx = shared.write(DOING)?;
    let local = shared.local(now, &tx).map_err(storage(DOING))?;
    let change = |job: &mut Job| transition::reschedule(job, now, scheduled_for);
    let (step, mut event) = change_scheduled(&tx, id, "rescheduled", DOING, change)?;
    let (rows, numbers, _) = load::changes([&step], &local).map_err(storage(DOING))?;
    let outcome = statement!("sql/job/reschedule.sql", rows, numbers).execute(&tx);
    load::all_written(outcome.map_err(storage(DOING))?, 1, DOING)?;
    event_add_in_tx(&tx, shared.codec, [&mut event], DOING)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(step.job)
}

/// Loads a job and carries out a step that only a SCHEDULED one takes.
fn change_scheduled(
    connection: &Connection,
    id: &JobId,
    wanted: &'static str,
    doing: &'static str,
    change: impl FnOnce(&mut Job) -> Option<JobEvent>,
) -> Result<(Step, JobEvent), StoreError> {
    let rows = Wanted::jobs([id]).map_err(storage(doing))?.load(connection).map_err(storage(doing))?;
    let Loaded { row, job } = rows.into_iter().next().ok_or_else(|| StoreError::NoSuchJob(id.clone()))?;
    let mut job = job.map_err(unreadable)?;
    let before = Before::from(&job);
    match change(&mut job) {
        Some(event) => Ok((Step { row, before, job }, event)),
        None => Err(StoreError::NotScheduled { job: id.clone(), status: job.status, wanted }),
    }
}

pub(super) fn job_give_up(
    shared: &Session<'_>,
    now: Timestamp,
    ids: &[JobId],
    reason: &str,
) -> Result<Vec<Job>, StoreError> {
    const DOING: &str = "give jobs up";
    let tx = shared.write(DOING)?;
    let local = shared.local(now, &tx).map_err(storage(DOING))?;
    let rows = Wanted::jobs(ids).map_err(storage(DOING))?.load(&tx).map_err(storage(DOING))?;
    let (mut steps, _) = load::steps(rows);
    let mut events = Vec::new();
    steps.retain_mut(|step| {
        let event = transition::give_up(&mut step.job, now, reason);
        let given_up = event.is_some();
        events.extend(event);
        given_up
    });
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    load::finish(&tx, &steps, &local, DOING)?;
    event_add_in_tx(&tx, shared.codec, &mut events, DOING)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(steps.into_iter().map(|step| step.job).collect())
}
