//! The maps themselves, and the steps on them.

use std::collections::{BTreeMap, HashMap, HashSet};

use norfab_model::{
    Applied, AppliedReplies, Claim, Claimed, Job, JobCursor, JobEvent, JobFilter, JobId, JobPage, Json, Link,
    LiveWorkers, Post, Reply, Results, RetryPolicy, ScheduleId, Scope, SendAgain, SentAgain, StoreError, StoredAnswer,
    Timestamp, Workers,
};

use super::schedule::ScheduleRow;

use crate::transition::{
    self, AgainStep, ClaimStep, Fold, MOST_CLAIMED_BYTES, MOST_RESULT_BYTES, Stored, needs_results,
};

#[derive(Debug, Default)]
pub(super) struct Data {
    /// By row number, which grows as jobs are added.
    pub(super) rows: BTreeMap<i64, Row>,
    pub(super) numbers: HashMap<JobId, i64>,
    pub(super) events: Vec<JobEvent>,
    /// By row number, as the jobs are.
    pub(super) schedules: BTreeMap<i64, ScheduleRow>,
    /// Answers that wait to be sent, the oldest first.
    pub(super) answers: Vec<StoredAnswer>,
    /// Changes by any handle.
    pub(super) changes: i64,
    /// Whether the handle that holds the data has changed anything.
    pub(super) touched: bool,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) job: Job,
    pub(super) args: Json,
    pub(super) kwargs: Json,
    pub(super) results: Results,
}

impl Row {
    fn payload_bytes(&self) -> usize {
        self.args.as_str().len().saturating_add(self.kwargs.as_str().len())
    }

    /// What to send to these, when there are any.
    fn post(&self, target: Option<Workers>) -> Option<Post> {
        target.map(|target| transition::post(&self.job, target, self.args.clone(), self.kwargs.clone()))
    }
}

/// Whether a job was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    Yes,
    /// It, or its occurrence, is there.
    No,
}

/// Whether a job is served.
pub(super) fn in_scope(scope: &Scope, job: &Job) -> bool {
    match scope {
        Scope::All => true,
        Scope::Jobs(jobs) => jobs.contains(&job.uuid),
    }
}

impl Data {
    pub(super) fn row(&self, id: &JobId) -> Option<&Row> {
        self.rows.get(self.numbers.get(id)?)
    }

    pub(super) fn row_mut(&mut self, id: &JobId) -> Option<&mut Row> {
        self.rows.get_mut(self.numbers.get(id)?)
    }

    pub(super) fn log(&mut self, events: impl IntoIterator<Item = JobEvent>) {
        for mut event in events {
            event.id = self.next_event();
            self.events.push(event);
            self.touched = true;
        }
    }

    fn next_event(&self) -> i64 {
        i64::try_from(self.events.len()).unwrap_or(i64::MAX).saturating_add(1)
    }

    /// Counts a failed run, when it is one of a schedule.
    pub(super) fn count_failed(&mut self, schedule: Option<ScheduleId>) {
        let row = schedule.and_then(|id| self.schedules.values_mut().find(|row| row.schedule.uuid == id));
        if let Some(row) = row {
            let counters = &mut row.schedule.counters;
            counters.failed_runs = counters.failed_runs.saturating_add(1);
        }
    }

    /// Adds a job unless it is there, or the occurrence that it is of.
    pub(super) fn insert(&mut self, job: Job, args: Json, kwargs: Json) -> Inserted {
        let occurrence = |job: &Job| job.schedule_id.clone().zip(job.scheduled_for);
        let new = occurrence(&job);
        if self.numbers.contains_key(&job.uuid)
            || new.is_some() && self.rows.values().any(|row| occurrence(&row.job) == new)
        {
            return Inserted::No;
        }
        let number = self.rows.last_key_value().map_or(1, |(last, _)| last + 1);
        self.numbers.insert(job.uuid.clone(), number);
        self.rows.insert(number, Row { job, args, kwargs, results: Results::new() });
        self.touched = true;
        Inserted::Yes
    }

    /// The rows that `key` gives a place, in the order of their places and then of their age, at most `limit`.
    pub(super) fn selected<K: Ord>(&self, limit: u32, key: impl Fn(&Job) -> Option<K>) -> Vec<i64> {
        let mut found: Vec<(K, i64)> =
            self.rows.iter().filter_map(|(number, row)| Some((key(&row.job)?, *number))).collect();
        found.sort();
        found.into_iter().map(|(_, number)| number).take(limit as usize).collect()
    }

    /// Carries a step out on a SCHEDULED job.
    pub(super) fn change_scheduled(
        &mut self,
        id: &JobId,
        wanted: &'static str,
        change: impl FnOnce(&mut Job) -> Option<JobEvent>,
    ) -> Result<Job, StoreError> {
        let row = self.row_mut(id).ok_or_else(|| StoreError::NoSuchJob(id.clone()))?;
        let Some(event) = change(&mut row.job) else {
            return Err(StoreError::NotScheduled { job: id.clone(), status: row.job.status, wanted });
        };
        let job = row.job.clone();
        self.log([event]);
        Ok(job)
    }

    pub(super) fn release(&mut self, number: i64, now: Timestamp, link: Link) -> Option<Job> {
        let row = self.rows.get_mut(&number)?;
        let before = row.job.status;
        let event = transition::release(&mut row.job, now, link);
        let job = Some(row.job.clone()).filter(|job| job.status != before);
        self.touched |= job.is_some();
        self.log(event);
        job
    }

    pub(super) fn expire(&mut self, number: i64, now: Timestamp) -> Option<Job> {
        let row = self.rows.get_mut(&number)?;
        let (before, stored) = (row.job.status, Stored(Ok(row.results.clone())));
        let (event, results) = transition::expire_job(&mut row.job, stored, now)?;
        let failed = transition::failed_run(before, &row.job, &results).cloned();
        row.results = results;
        let job = row.job.clone();
        self.count_failed(failed);
        self.log([event]);
        Some(job)
    }

    /// Claims NEW jobs, the oldest first, as far as their payloads go into one call.
    pub(super) fn claim(&mut self, claim: &Claim<'_>) -> Claimed {
        let numbers = self.selected(u32::MAX, |job| {
            let may = transition::may_be_sent(job, claim.now) && in_scope(claim.scope, job);
            may.then_some(job.next_attempt_at.unwrap_or(Timestamp::EPOCH))
        });
        let mut claimed = Claimed::default();
        let (mut bytes, mut looked_at) = (0_usize, 0_usize);
        for number in numbers {
            if looked_at >= claim.limit as usize || bytes >= MOST_CLAIMED_BYTES {
                claimed.more = true;
                break;
            }
            let Some(row) = self.rows.get_mut(&number) else { continue };
            looked_at += 1;
            let before = row.job.status;
            let step = transition::claim(&mut row.job, claim.now, claim.live, claim.policy);
            let job = row.job.clone();
            match step {
                ClaimStep::Send => {
                    bytes = bytes.saturating_add(row.payload_bytes());
                    claimed.posts.extend(row.post(job.dispatch_target.clone()));
                }
                ClaimStep::Postponed(event) => {
                    claimed.postponed.push(job);
                    self.touched = true;
                    self.log(event);
                }
                ClaimStep::Failed(event) => {
                    self.count_failed(transition::failed_run(before, &job, &Results::new()).cloned());
                    claimed.failed.push(job);
                    self.log([event]);
                }
                ClaimStep::Unplaced => claimed.unplaced += 1,
            }
        }
        self.touched |= !claimed.posts.is_empty();
        claimed
    }

    pub(super) fn send_again(&mut self, now: Timestamp, jobs: Vec<SendAgain>, live: Option<&LiveWorkers>) -> SentAgain {
        let mut sent = SentAgain::default();
        let (mut bytes, mut changed) = (0_usize, Vec::<JobId>::new());
        for again in jobs {
            if bytes >= MOST_CLAIMED_BYTES {
                sent.left.push(again);
                continue;
            }
            let Some(row) = self.row_mut(&again.job) else { continue };
            let event = match transition::send_again(&mut row.job, now, &again.why, live) {
                AgainStep::Send(target, event) => {
                    bytes = bytes.saturating_add(row.payload_bytes());
                    sent.posts.extend(row.post(Some(target)));
                    event
                }
                AgainStep::Ask(event) => event,
                AgainStep::Nothing => continue,
            };
            if !changed.contains(&again.job) {
                changed.push(again.job);
            }
            self.log([event]);
        }
        sent.jobs = changed.iter().filter_map(|job| self.row(job)).map(|row| row.job.clone()).collect();
        sent
    }

    pub(super) fn apply(&mut self, now: Timestamp, policy: RetryPolicy, replies: Vec<Reply>) -> AppliedReplies {
        let mut outcome = AppliedReplies::default();
        let with_results: HashSet<JobId> =
            replies.iter().filter(|reply| needs_results(reply)).map(|reply| reply.job.clone()).collect();
        let mut folds: BTreeMap<i64, Fold> = BTreeMap::new();
        for reply in replies {
            let job = reply.job.clone();
            let Some((number, row)) = self.numbers.get(&job).and_then(|number| Some((*number, self.rows.get(number)?)))
            else {
                outcome.unknown.push(job);
                continue;
            };
            let fold = folds.entry(number).or_insert_with(|| {
                let stored = with_results.contains(&job).then(|| Stored(Ok(row.results.clone())));
                Fold::new(row.job.clone(), stored)
            });
            if let Some(why) = fold.apply(now, policy, reply, MOST_RESULT_BYTES) {
                outcome.ignored.push((job, why));
            }
        }
        outcome.jobs = folds.into_iter().map(|(number, fold)| self.keep(number, fold)).collect();
        outcome
    }

    fn keep(&mut self, number: i64, mut fold: Fold) -> Applied {
        let (changed, handed_around) = (fold.changed(), fold.results_of_end());
        for event in &mut fold.events {
            event.id = self.next_event();
            self.events.push(event.clone());
        }
        self.touched |= changed || !fold.events.is_empty();
        self.count_failed(fold.failed_run().cloned());
        if let Some(row) = self.rows.get_mut(&number) {
            row.job = fold.job.clone();
            if let Some(results) = fold.results.filter(|_| fold.results_changed) {
                row.results = results;
            }
        }
        Applied { job: fold.job, events: fold.events, follow_ups: fold.follow_ups, changed, results: handed_around }
    }

    /// Takes answers of these jobs out, at most `limit` whose question is still open.
    pub(super) fn take_answers(&mut self, scope: &Scope, limit: usize) -> Vec<StoredAnswer> {
        let mut taken = Vec::new();
        let (mut left, waiting) = (Vec::new(), std::mem::take(&mut self.answers));
        let before = waiting.len();
        for answer in waiting {
            let job = self.row(&answer.job).map(|row| &row.job).filter(|job| in_scope(scope, job));
            match job.filter(|_| taken.len() < limit) {
                None => left.push(answer),
                Some(job) if transition::awaits(job, &answer.worker, &answer.answer) => taken.push(answer),
                Some(_) => {}
            }
        }
        self.touched |= left.len() < before;
        self.answers = left;
        taken
    }

    pub(super) fn list(&self, filter: &JobFilter) -> JobPage {
        let before = filter.cursor.map_or(i64::MAX, |JobCursor(number)| number);
        let found = self.rows.range(..before).rev().filter(|(_, row)| matches(filter, &row.job));
        let page = filter.page_size() as usize;
        let mut found: Vec<(i64, Job)> = found.take(page + 1).map(|(number, row)| (*number, row.job.clone())).collect();
        let more = found.len() > page;
        found.truncate(page);
        let next = found.last().filter(|_| more).map(|(number, _)| JobCursor(*number));
        JobPage { jobs: found.into_iter().map(|(_, job)| job).collect(), unreadable: Vec::new(), next }
    }
}

fn matches(filter: &JobFilter, job: &Job) -> bool {
    let wanted = |wanted: &Option<String>, given: &str| wanted.as_ref().is_none_or(|wanted| wanted == given);
    (filter.statuses.is_empty() || filter.statuses.contains(&job.status))
        && wanted(&filter.service, &job.service)
        && wanted(&filter.task, &job.task)
        && (filter.workers.is_empty() || filter.workers.iter().any(|worker| job.workers_completed.contains(worker)))
        && (filter.schedule.is_none() || filter.schedule == job.schedule_id)
        && filter.due_from.is_none_or(|from| job.scheduled_for.is_some_and(|at| at >= from))
        && filter.due_until.is_none_or(|until| job.scheduled_for.is_some_and(|at| at <= until))
}
