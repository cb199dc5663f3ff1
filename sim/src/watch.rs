//! The rules for jobs, looked at between the steps: what ended stays as it is, nothing runs twice, nothing leaves early or
//! late, and every row is counted.

use std::collections::{BTreeMap, BTreeSet};

use norfab_model::{Job, JobDetail, JobId, JobStatus, Origin, Timestamp, Workers, run_failed};

use crate::fabric::{Entry, Fabric, State, short};
use crate::ledger::Schedules;
use crate::script::WORKERS;
use crate::violation::Journal;
use crate::witness::Witness;

/// How much later than its deadline a job may end once all is well: an answer is waited for, the broker is asked whether
/// it is there, a new connection is made, and jobs are asked for before they expire.
const AFTER_DEADLINE: u32 = 40;
/// A job that has so much time left when all is well must not end for want of it.
const TIME_ENOUGH: u32 = 110;
/// For how long a job is tried again that no worker takes, and the answers to that; one with a start deadline until then.
const ATTEMPTS: u32 = 62;
/// The longest pause before another attempt.
const LONGEST_RETRY: u32 = 10;
/// By how much a deadline may lie beyond its full length: its clock may have been read a moment later than by who looks.
const BEARABLE: u32 = 60;

/// What was seen of the jobs so far.
#[derive(Debug)]
pub(crate) struct Watch {
    journal: Journal,
    fabric: Fabric,
    witness: Witness,
    gone: u64,
    seen: BTreeMap<JobId, Job>,
    /// What had ended before all was well.
    ended: BTreeSet<JobId>,
    /// What was released before all was well, and had not ended.
    open: BTreeSet<JobId>,
}

impl Watch {
    pub(crate) fn new(journal: Journal, fabric: Fabric, witness: Witness, gone: u64) -> Self {
        Self { journal, fabric, witness, gone, seen: BTreeMap::new(), ended: BTreeSet::new(), open: BTreeSet::new() }
    }

    /// Looks at all jobs. `aligned`: what the clock shows when the client must have brought their instants back.
    pub(crate) fn look(&mut self, jobs: Vec<Job>, schedules: &Schedules, aligned: Option<Timestamp>) {
        let fabric = self.fabric.clone();
        let mut fabric = fabric.state();
        if jobs.len() < self.seen.len() {
            self.journal.broken("a job is gone", || format!("{} of {}", jobs.len(), self.seen.len()));
        }
        let now: BTreeMap<JobId, Job> = jobs.into_iter().map(|job| (job.uuid.clone(), job)).collect();
        for job in now.values() {
            self.check_history(job);
            self.check_executions(job, &fabric);
            check_posts(&self.journal, job, &fabric);
            if let Some(now) = aligned {
                check_instants(&self.journal, job, now);
            }
        }
        self.check_sent(&now, &mut fabric);
        check_rows(&self.journal, now.values(), schedules);
        self.seen = now;
    }

    fn check_history(&self, job: &Job) {
        if self.witness.is_early(job) {
            self.journal.broken("released by nobody at its time", || format!("{job:?}"));
        }
        let Some(before) = self.seen.get(&job.uuid) else { return };
        if before.status.is_terminal() && before != job {
            self.journal.broken("an ended job changed", || format!("{before:?}\n{job:?}"));
        }
        if job.status == JobStatus::Scheduled && before.status != JobStatus::Scheduled {
            self.journal.broken("a released job waits again", || format!("{job:?}"));
        }
    }

    fn check_executions(&self, job: &Job, fabric: &State) {
        let Some(executions) = fabric.executions.get(&job.uuid) else { return };
        let workers: BTreeSet<usize> = executions.iter().map(|execution| execution.worker).collect();
        // Workers drop what they know, those here too. Whether the client counts on that, `witness` sees.
        if workers.len() < executions.len() {
            self.journal.broken("run twice on a worker", || format!("{job:?} {executions:?}"));
        }
        let any = job.workers_requested == Workers::Any;
        if any && workers.len() > 1 && !fabric.was_gone(&job.uuid, self.gone) {
            self.journal.broken("any on two workers", || format!("{job:?} {executions:?}"));
        }
        if let Some(names) = job.workers_requested.names()
            && let Some(stranger) = workers.iter().find(|worker| !names.iter().any(|name| name == WORKERS[**worker].0))
        {
            self.journal
                .broken("run on a worker that was not asked for", || format!("{job:?} {}", WORKERS[*stranger].0));
        }
    }

    /// What left since the last look.
    fn check_sent(&self, jobs: &BTreeMap<JobId, Job>, fabric: &mut State) {
        for sent in std::mem::take(&mut fabric.sent) {
            let Some(job) = jobs.get(&sent.job) else {
                self.journal.broken("sent without a row", || short(&sent.job));
                continue;
            };
            if job.status == JobStatus::Scheduled {
                self.journal.broken("sent early", || format!("{} {job:?}", sent.shown));
            }
            if job.start_deadline.is_some_and(|deadline| deadline < sent.shown) {
                self.journal.broken("sent late", || format!("{} {job:?}", sent.shown));
            }
        }
    }

    /// From here on all is well.
    pub(crate) fn healed(&mut self) {
        let released = self.seen.values().filter(|job| job.status != JobStatus::Scheduled);
        let (ended, open): (Vec<&Job>, Vec<&Job>) = released.partition(|job| job.status.is_terminal());
        self.ended = ended.into_iter().map(|job| job.uuid.clone()).collect();
        self.open = open.into_iter().map(|job| job.uuid.clone()).collect();
    }

    /// Looks at the end, when everything has been well since `healed` and the clock shows `now`.
    pub(crate) fn finish(&self, details: &[JobDetail], schedules: &Schedules, healed: Timestamp, now: Timestamp) {
        let fabric = self.fabric.state();
        let mut failed: BTreeMap<_, u64> = BTreeMap::new();
        for detail in details {
            let job = &detail.job;
            self.check_end(job, healed, now);
            self.check_verdicts(detail, &fabric);
            self.check_complete(detail, &fabric);
            self.check_lost(job, &fabric, healed);
            if let Some(schedule) = job.schedule_id.as_ref().filter(|_| run_failed(job.status, detail.results.values()))
            {
                *failed.entry(schedule.clone()).or_default() += 1;
            }
        }
        for (id, schedule) in schedules {
            let counted = schedule.counters.failed_runs;
            let there = failed.get(id).copied().unwrap_or(0);
            if counted != there {
                self.journal.broken("failed runs", || format!("{counted} counted, {there} there: {schedule:?}"));
            }
        }
    }

    fn check_end(&self, job: &Job, healed: Timestamp, now: Timestamp) {
        let late = match job.status {
            JobStatus::Scheduled => job.scheduled_for.is_some_and(|at| at.plus_seconds(5) < now),
            status if status.is_terminal() => false,
            _ => {
                let by_itself = job.deadline.is_none_or(|deadline| {
                    let waits = job.next_attempt_at.unwrap_or(deadline);
                    deadline.max(waits).plus_seconds(AFTER_DEADLINE) < now
                });
                // Whatever deadline stands in its row.
                let tried = job.start_deadline.unwrap_or(healed).max(healed.plus_seconds(ATTEMPTS));
                let was_open = self.open.contains(&job.uuid);
                by_itself || was_open && tried.plus_seconds(job.timeout + AFTER_DEADLINE) < now
            }
        };
        if late {
            self.journal.broken("a job does not end", || format!("{now} {job:?}"));
        }
    }

    /// What the client itself says of a worker must be so.
    fn check_verdicts(&self, detail: &JobDetail, fabric: &State) {
        let job = &detail.job;
        let executions = fabric.executions.get(&job.uuid).map_or(0, Vec::len);
        if job.status == JobStatus::Failed && executions > 0 {
            self.journal.broken("failed though it ran", || format!("{job:?}"));
        }
        if matches!(job.status, JobStatus::Missed | JobStatus::Cancelled) && fabric.posts.contains_key(&job.uuid) {
            self.journal.broken("sent though it should not start", || format!("{job:?}"));
        }
        if job.status != JobStatus::Completed {
            return;
        }
        for (worker, result) in &detail.results {
            let entry = fabric.workers.iter().zip(WORKERS).find(|(_, (name, _))| name == worker);
            let entry = entry.and_then(|(on, _)| on.disk.get(&job.uuid));
            // Only the client's own results name the job.
            let own = result.as_str().contains("juuid");
            match entry {
                Some(Entry::Done(real)) if !own && real == result => {}
                Some(Entry::Interrupted) | None if own => {}
                _ => self
                    .journal
                    .broken("a result is missing", || format!("of {worker}: {entry:?}, {result:?}, {job:?}")),
            }
        }
    }

    /// A job that is over has what each worker did that it was for.
    fn check_complete(&self, detail: &JobDetail, fabric: &State) {
        let job = &detail.job;
        // One for any is another worker's when the first was gone for long.
        if job.status != JobStatus::Completed || job.workers_requested == Workers::Any {
            return;
        }
        for (worker, (on, (name, _))) in fabric.workers.iter().zip(WORKERS).enumerate() {
            let ran = matches!(on.disk.get(&job.uuid), Some(Entry::Done(_)));
            if ran && !detail.results.contains_key(name) && !fabric.was_given_up(worker, &job.uuid) {
                self.journal.broken("completed without a worker that ran it", || format!("{name}: {job:?}"));
            }
        }
    }

    /// With time enough in a fabric that works, a job ends for other reasons than its deadline.
    fn check_lost(&self, job: &Job, fabric: &State, healed: Timestamp) {
        let enough = job.deadline.is_some_and(|deadline| deadline >= healed.plus_seconds(TIME_ENOUGH));
        if job.status != JobStatus::Stale || self.ended.contains(&job.uuid) || !enough || job.timeout < TIME_ENOUGH {
            return;
        }
        // Who never was there cannot answer.
        let ghost = job.workers_requested.names().is_some_and(|names| names.iter().any(|name| name == "gone"));
        let busy =
            |on: &&crate::fabric::Worker| on.disk.get(&job.uuid).is_some_and(|entry| !matches!(entry, Entry::Done(_)));
        if !ghost && !fabric.workers.iter().any(|on| busy(&on)) {
            self.journal.broken("a job is lost", || format!("healed {healed}: {job:?}"));
        }
    }
}

/// Nothing that is kept for a job lies further off than its full length, once a client had the time to see to that since it
/// was started and the clock was set.
pub(crate) fn check_instants(journal: &Journal, job: &Job, now: Timestamp) {
    if job.status != JobStatus::New && !job.status.is_in_flight() {
        return;
    }
    let latest_attempt = now.plus_seconds(LONGEST_RETRY);
    let next = job.next_attempt_at.map_or(now, |at| at.min(latest_attempt).max(now));
    let latest_end = next.plus_seconds(job.timeout + BEARABLE);
    let is_beyond = |instant: Option<Timestamp>, latest| instant.is_some_and(|instant| instant > latest);
    if is_beyond(job.deadline, latest_end)
        || is_beyond(job.next_attempt_at, latest_attempt)
        || is_beyond(job.last_poll, now)
    {
        journal.broken("an instant lies too far ahead", || format!("{now} {job:?}"));
    }
}

/// No message leaves that was not counted before.
fn check_posts(journal: &Journal, job: &Job, fabric: &State) {
    let sent = fabric.posts.get(&job.uuid).copied().unwrap_or(0);
    if sent > job.posts_sent {
        journal.broken("sent before it was recorded", || format!("{sent}: {job:?}"));
    }
}

/// An occurrence has one row, and each run is counted once.
fn check_rows<'a>(journal: &Journal, jobs: impl Iterator<Item = &'a Job>, schedules: &Schedules) {
    let mut occurrences = BTreeSet::new();
    let mut runs: BTreeMap<_, u64> = BTreeMap::new();
    for job in jobs {
        let Some(schedule) = &job.schedule_id else { continue };
        if job.origin == Origin::Occurrence && !occurrences.insert((schedule.clone(), job.scheduled_for)) {
            journal.broken("two rows of an occurrence", || format!("{job:?}"));
        }
        if job.status != JobStatus::Missed {
            *runs.entry(schedule.clone()).or_default() += 1;
        }
    }
    for (id, schedule) in schedules {
        let (counted, there) = (schedule.counters.total_runs, runs.get(id).copied().unwrap_or(0));
        if counted != there {
            journal.broken("runs", || format!("{counted} counted, {there} there: {schedule:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use norfab_model::{Limits, NewJob};

    use super::*;
    use crate::clock::START;

    /// Whether a deadline may lie so many seconds beyond the timeout.
    #[track_caller]
    fn check(beyond: u32, attempt: Option<u32>, is_broken: bool) {
        let valid = Limits::default().check_job(START, NewJob::new("dummy", "quick").timeout(30)).expect("it is a job");
        let deadline = Some(START.plus_seconds(30 + beyond));
        let next_attempt_at = attempt.map(|seconds| START.plus_seconds(seconds));
        let journal = Journal::default();
        check_instants(&journal, &Job { deadline, next_attempt_at, ..valid.row(START) }, START);
        assert_eq!(journal.first().is_some(), is_broken);
    }

    #[test]
    fn no_instant_lies_further_off_than_its_full_length() {
        check(0, None, false);
        check(60, None, false);
        check(61, None, true);
        check(70, Some(10), false);
        check(70, Some(11), true);
    }
}
