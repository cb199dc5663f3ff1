//! Replies of the fabric, a batch in one transaction: the jobs are loaded once, the replies are folded into them in their
//! order, and what changed is written once.

use std::collections::HashMap;

use norfab_model::{Applied, AppliedReplies, JobEvent, JobId, Reply, RetryPolicy, ScheduleId, StoreError, Timestamp};

use super::encode::{self, Before, ChangedJobs};
use super::event::event_add_in_tx;
use super::load::{self, Step, Wanted};
use super::local_time::LocalTime;
use super::schedule::count_failed_in_tx;
use super::{Durability, Session, storage};
use crate::sqlite::statement::statement;
use crate::transition::{Fold, needs_results};
use rusqlite::Connection;

const DOING: &str = "apply replies";

pub(super) fn job_apply(
    shared: &Session<'_>,
    now: Timestamp,
    policy: RetryPolicy,
    durability: Durability,
    replies: Vec<Reply>,
) -> Result<AppliedReplies, StoreError> {
    if replies.is_empty() {
        return Ok(AppliedReplies::default());
    }
    let tx = shared.begin(durability, DOING)?;
    let mut folds = load_folds(shared, &tx, &replies)?;
    let mut outcome = AppliedReplies::default();
    for reply in replies {
        let job = reply.job.clone();
        match folds.of_job(&job) {
            None => outcome.unknown.push(job),
            Some(fold) => {
                if let Some(why) = fold.apply(now, policy, reply, shared.payloads.most_bytes) {
                    outcome.ignored.push((job, why));
                }
            }
        }
    }
    let changed = folds.folds.iter().any(|(_, fold)| fold.changed() || !fold.events.is_empty());
    if changed {
        let local = shared.local(now, &tx).map_err(storage(DOING))?;
        let changes = folds.changes(shared, &local).map_err(storage(DOING))?;
        let written = changes.len();
        if written > 0 {
            let (rows, numbers, texts) = changes.into_parameters().map_err(storage(DOING))?;
            let outcome = statement!("sql/job/apply.sql", rows, numbers, texts).execute(&tx);
            load::all_written(outcome.map_err(storage(DOING))?, written, DOING)?;
        }
        count_failed_in_tx(&tx, folds.failed_runs(), DOING)?;
        event_add_in_tx(&tx, shared.codec, folds.events(), DOING)?;
        tx.commit().map_err(storage(DOING))?;
    }
    outcome.jobs = folds.applied();
    Ok(outcome)
}

/// The jobs of a batch, with their row numbers.
struct Folds {
    folds: Vec<(i64, Fold)>,
    places: HashMap<JobId, usize>,
}

fn load_folds(shared: &Session<'_>, connection: &Connection, replies: &[Reply]) -> Result<Folds, StoreError> {
    let with_results = replies.iter().filter(|reply| needs_results(reply)).map(|reply| &reply.job);
    let with_results: std::collections::HashSet<&JobId> = with_results.collect();
    let jobs: std::collections::HashSet<&JobId> = replies.iter().map(|reply| &reply.job).collect();
    let without = jobs.difference(&with_results).copied();
    let wanted = Wanted::jobs(without).and_then(|wanted| wanted.and_with_results(with_results.iter().copied()));
    let rows = wanted.map_err(storage(DOING))?.load(connection).map_err(storage(DOING))?;
    let (steps, _) = load::steps(rows);
    let mut folds = Vec::with_capacity(steps.len());
    let mut places = HashMap::with_capacity(steps.len());
    for Step { row, job, .. } in steps {
        places.insert(job.uuid.clone(), folds.len());
        // The results of a job that has ended are no business of a late reply.
        let fold = if with_results.contains(&job.uuid) && !job.status.is_terminal() {
            Fold::new(job, Some(shared.stored_results(&row)))
        } else {
            Fold::new(job, None)
        };
        folds.push((row.row, fold));
    }
    Ok(Folds { folds, places })
}

impl Folds {
    fn of_job(&mut self, job: &JobId) -> Option<&mut Fold> {
        let place = *self.places.get(job)?;
        self.folds.get_mut(place).map(|(_, fold)| fold)
    }

    /// The rows that changed, with their results.
    fn changes(&self, shared: &Session<'_>, local: &LocalTime) -> Result<ChangedJobs, encode::EncodeError> {
        let mut changes = ChangedJobs::with_capacity(self.folds.len());
        for (row, fold) in self.folds.iter().filter(|(_, fold)| fold.changed()) {
            match &fold.results {
                Some(results) if fold.results_changed => {
                    let states = (Before::from(&fold.before), &fold.job);
                    changes.push_with_results(*row, states, local, (results, shared.codec))?;
                }
                _ => changes.push(*row, Before::from(&fold.before), &fold.job, local)?,
            }
        }
        Ok(changes)
    }

    /// The schedules that have a failed run more, as often as they have.
    fn failed_runs(&self) -> Vec<ScheduleId> {
        self.folds.iter().filter_map(|(_, fold)| fold.failed_run().cloned()).collect()
    }

    fn events(&mut self) -> impl Iterator<Item = &mut JobEvent> {
        self.folds.iter_mut().flat_map(|(_, fold)| fold.events.iter_mut())
    }

    fn applied(self) -> Vec<Applied> {
        let applied = |(_, fold): (i64, Fold)| Applied {
            changed: fold.changed(),
            results: fold.results_of_end(),
            job: fold.job,
            events: fold.events,
            follow_ups: fold.follow_ups,
        };
        self.folds.into_iter().map(applied).collect()
    }
}
