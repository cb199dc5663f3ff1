//! A store on plain maps, which behaves as the one in SQLite does and keeps nothing: for tests, and for programs that want
//! no file.

mod data;
mod schedule;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use norfab_model::{
    AppliedReplies, Claim, Claimed, InputAnswer, Job, JobDetail, JobEvent, JobFilter, JobId, JobPage, JobStats,
    JobStatus, Link, LiveWorkers, NextDue, Overdue, Poll, Recovered, Released, Reply, RetryPolicy, Scope, SendAgain,
    SentAgain, Store, StoreError, StoredAnswer, Timestamp, ValidJob,
};

use self::data::{Data, in_scope};
use crate::transition::{self, BATCH, MOST_UNFINISHED};

/// A job store in memory.
///
/// Cloning gives another handle on the same jobs, as a second process would have on a database: what one of them changes
/// shows in the other's [`change_mark`](Store::change_mark).
#[derive(Debug, Default)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    /// How many of the changes are this handle's own.
    own_changes: Arc<Mutex<i64>>,
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        Self { data: Arc::clone(&self.data), own_changes: Arc::default() }
    }
}

/// The data while one handle may change it.
struct Writing<'a> {
    data: MutexGuard<'a, Data>,
    own_changes: &'a Mutex<i64>,
}

impl Deref for Writing<'_> {
    type Target = Data;

    fn deref(&self) -> &Data {
        &self.data
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut Data {
        &mut self.data
    }
}

impl Drop for Writing<'_> {
    /// Counts what changed, as a commit would.
    fn drop(&mut self) {
        if std::mem::take(&mut self.data.touched) {
            self.data.changes += 1;
            *self.own_changes.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data to be changed by this handle.
    fn write(&self) -> Writing<'_> {
        Writing { data: self.read(), own_changes: &self.own_changes }
    }
}

impl Store for MemoryStore {
    async fn job_add(&self, now: Timestamp, job: &ValidJob) -> Result<Job, StoreError> {
        let mut data = self.write();
        if data.numbers.contains_key(job.id()) {
            return Err(StoreError::JobExists(job.id().clone()));
        }
        let row = job.row(now);
        data.insert(row.clone(), job.args().clone(), job.kwargs().clone());
        let event = transition::added(&row, now);
        data.log(event);
        Ok(row)
    }

    async fn job_find(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.read().row(id).map(|row| row.job.clone()))
    }

    async fn job_detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        Ok(self.read().row(id).map(|row| JobDetail {
            job: row.job.clone(),
            args: row.args.clone(),
            kwargs: row.kwargs.clone(),
            results: row.results.clone(),
        }))
    }

    async fn job_list(&self, filter: &JobFilter) -> Result<JobPage, StoreError> {
        Ok(self.read().list(filter))
    }

    async fn job_cancel(&self, now: Timestamp, id: &JobId) -> Result<Job, StoreError> {
        self.write().change_scheduled(id, "cancelled", |job| transition::cancel(job, now))
    }

    async fn job_reschedule(&self, now: Timestamp, id: &JobId, scheduled_for: Timestamp) -> Result<Job, StoreError> {
        let change = |job: &mut Job| transition::reschedule(job, now, scheduled_for);
        self.write().change_scheduled(id, "rescheduled", change)
    }

    async fn job_release_due(&self, now: Timestamp, scope: &Scope, link: Link) -> Result<Released, StoreError> {
        let mut data = self.write();
        let mut due = data.selected(BATCH, |job| {
            let waits = job.status == JobStatus::Scheduled && in_scope(scope, job);
            let due = job.scheduled_for.filter(|at| link == Link::Up && *at <= now);
            due.or(job.start_deadline.filter(|latest| *latest < now)).filter(|_| waits)
        });
        due.sort_unstable();
        let mut outcome = Released::default();
        for job in due.into_iter().filter_map(|number| data.release(number, now, link)) {
            if job.status == JobStatus::New { outcome.released.push(job) } else { outcome.missed.push(job) }
        }
        Ok(outcome)
    }

    async fn job_expire_due(&self, now: Timestamp, scope: &Scope, overdue: Overdue) -> Result<Vec<Job>, StoreError> {
        let mut data = self.write();
        let mut due = data.selected(BATCH, |job| {
            let may = transition::may_expire(job, overdue) && in_scope(scope, job);
            let at = job.expires_at().filter(|at| may && *at <= now)?;
            Some((job.status != JobStatus::New, at))
        });
        due.sort_unstable();
        Ok(due.into_iter().filter_map(|number| data.expire(number, now)).collect())
    }

    async fn job_claim(&self, claim: Claim<'_>) -> Result<Claimed, StoreError> {
        Ok(self.write().claim(&claim))
    }

    async fn job_send_again(
        &self,
        now: Timestamp,
        jobs: Vec<SendAgain>,
        live: Option<&LiveWorkers>,
    ) -> Result<SentAgain, StoreError> {
        Ok(self.write().send_again(now, jobs, live))
    }

    async fn job_take_polls(
        &self,
        now: Timestamp,
        scope: &Scope,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Poll>, StoreError> {
        let mut data = self.write();
        let due = data.selected(limit, |job| {
            let polled = job.last_poll.unwrap_or(Timestamp::EPOCH);
            (job.status.is_polled() && polled <= before && in_scope(scope, job)).then_some(polled)
        });
        let mut polls = Vec::with_capacity(due.len());
        for number in due {
            if let Some(row) = data.rows.get_mut(&number) {
                row.job.last_poll = Some(now);
                polls.push(transition::poll(&row.job));
            }
        }
        data.touched |= !polls.is_empty();
        Ok(polls)
    }

    async fn job_apply(
        &self,
        now: Timestamp,
        policy: RetryPolicy,
        replies: Vec<Reply>,
    ) -> Result<AppliedReplies, StoreError> {
        Ok(self.write().apply(now, policy, replies))
    }

    async fn job_realign(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut data = self.write();
        let moved = data.rows.values_mut().filter_map(|row| transition::realign(&mut row.job, now)).count();
        data.touched |= moved > 0;
        Ok(moved as u64)
    }

    async fn job_recover(&self, now: Timestamp, scope: &Scope) -> Result<Recovered, StoreError> {
        let mut data = self.write();
        let mut found = Recovered::default();
        for row in data.rows.values_mut().filter(|row| in_scope(scope, &row.job)) {
            let claimed = row.job.status == JobStatus::Submitting;
            transition::recover(&mut row.job, now);
            if claimed && row.job.status == JobStatus::New {
                found.requeued += 1;
            } else if row.job.status.is_polled() {
                found.in_flight += 1;
            }
        }
        data.touched |= found != Recovered::default();
        Ok(found)
    }

    async fn job_give_up(&self, now: Timestamp, ids: &[JobId], reason: &str) -> Result<Vec<Job>, StoreError> {
        let mut data = self.write();
        let mut numbers: Vec<i64> = ids.iter().filter_map(|id| data.numbers.get(id).copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut given_up = Vec::new();
        for number in numbers {
            let Some(row) = data.rows.get_mut(&number) else { continue };
            let before = row.job.status;
            if let Some(event) = transition::give_up(&mut row.job, now, reason) {
                given_up.push(row.job.clone());
                let failed = transition::failed_run(before, &row.job, &row.results).cloned();
                data.count_failed(failed);
                data.log([event]);
            }
        }
        Ok(given_up)
    }

    async fn job_unclaim(&self, _: Timestamp, ids: &[JobId]) -> Result<(), StoreError> {
        let mut data = self.write();
        for id in ids {
            if let Some(row) = data.row_mut(id).filter(|row| row.job.status == JobStatus::Submitting) {
                transition::unclaim(&mut row.job);
                data.touched = true;
            }
        }
        Ok(())
    }

    async fn answer_add(
        &self,
        _: Timestamp,
        job: &JobId,
        worker: &str,
        answer: &InputAnswer,
    ) -> Result<(), StoreError> {
        let mut data = self.write();
        let row = data.row(job).ok_or_else(|| StoreError::NoSuchJob(job.clone()))?;
        let (job, service) = (job.clone(), row.job.service.clone());
        data.answers.push(StoredAnswer { job, service, worker: worker.to_owned(), answer: answer.clone() });
        data.touched = true;
        Ok(())
    }

    async fn answer_take(&self, scope: &Scope, limit: u32) -> Result<Vec<StoredAnswer>, StoreError> {
        Ok(self.write().take_answers(scope, limit as usize))
    }

    async fn job_next_due(&self, scope: &Scope) -> Result<NextDue, StoreError> {
        let data = self.read();
        let mut due = NextDue::default();
        data.rows.values().filter(|row| in_scope(scope, &row.job)).for_each(|row| due.note(&row.job));
        Ok(due)
    }

    async fn job_unfinished(&self) -> Result<Vec<Job>, StoreError> {
        let data = self.read();
        let unfinished = data.rows.values().map(|row| &row.job).filter(|job| !job.status.is_terminal());
        Ok(unfinished.take(MOST_UNFINISHED as usize).cloned().collect())
    }

    async fn event_list(&self, job: &JobId, after: i64, limit: u32) -> Result<Vec<JobEvent>, StoreError> {
        let data = self.read();
        let events = data.events.iter().filter(|event| event.job_uuid == *job && event.id > after);
        Ok(events.take(limit as usize).cloned().collect())
    }

    async fn stats(&self) -> Result<JobStats, StoreError> {
        let data = self.read();
        let mut stats = JobStats {
            total_jobs: data.rows.len() as u64,
            total_events: data.events.len() as u64,
            ..JobStats::default()
        };
        for row in data.rows.values() {
            *stats.jobs_by_status.entry(row.job.status.to_string()).or_default() += 1;
            *stats.jobs_by_service.entry(row.job.service.clone()).or_default() += 1;
        }
        Ok(stats)
    }

    async fn change_mark(&self) -> Result<i64, StoreError> {
        let changes = self.read().changes;
        Ok(changes - *self.own_changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests;
