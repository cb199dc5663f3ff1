//! What the store was seen to do for jobs, call by call, beside its own word: what the clock showed as each was released,
//! and which workers were known to have it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use norfab_model::{AppliedReplies, Job, JobId, JobStatus, Materialized, Post, Released, Timestamp};

use crate::clock::SimClock;
use crate::violation::Journal;

/// Sees the calls of a run; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Witness {
    journal: Journal,
    clock: SimClock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What the clock showed when each job was released that has a time.
    released: BTreeMap<JobId, Timestamp>,
    /// What it showed when a release began that was not seen to end: its caller died, and it may be done all the same.
    begun: Option<Timestamp>,
    /// The workers of each job whose word that they have it is stored.
    known: BTreeMap<JobId, BTreeSet<String>>,
}

impl Witness {
    pub(crate) fn new(journal: Journal, clock: SimClock) -> Self {
        Self { journal, clock, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Carries out a release: by the clock, whatever instant its caller names, each job must be due, and what is missed must
    /// be past its start deadline.
    pub(crate) async fn release<E>(&self, work: impl Future<Output = Result<Released, E>>) -> Result<Released, E> {
        let done = self.begin(work).await?;
        self.note_released(&done.released);
        let shown = self.clock.shown();
        for job in done.missed.iter().filter(|job| job.start_deadline.is_none_or(|latest| latest >= shown)) {
            self.journal.broken("missed too soon", || format!("{shown} {job:?}"));
        }
        Ok(done)
    }

    /// Makes the jobs of schedules, which are released as they are made.
    pub(crate) async fn make<E>(&self, work: impl Future<Output = Result<Materialized, E>>) -> Result<Materialized, E> {
        let made = self.begin(work).await?;
        self.note_released(&made.created);
        Ok(made)
    }

    /// Stores what workers say.
    pub(crate) async fn hear<E>(
        &self,
        work: impl Future<Output = Result<AppliedReplies, E>>,
    ) -> Result<AppliedReplies, E> {
        let heard = work.await?;
        let mut state = self.state();
        for job in heard.jobs.iter().map(|applied| &applied.job) {
            state.known.entry(job.uuid.clone()).or_default().extend(job.workers_started.iter().cloned());
        }
        drop(state);
        Ok(heard)
    }

    /// A POST leaves the client. A worker would not run the job again, which is its own doing: the client must not count on
    /// it once it has stored that the worker has the job. What it has not stored, as it died first or the store failed, it may
    /// send again; so it may to workers that have said nothing.
    pub(crate) fn see_leave(&self, post: &Post) {
        let state = self.state();
        let Some(known) = state.known.get(&post.job) else { return };
        let has_it =
            post.target.names().map_or_else(|| known.first(), |names| names.iter().find_map(|name| known.get(name)));
        if let Some(worker) = has_it {
            self.journal.broken("sent to who has it", || format!("{worker}: {post:?}"));
        }
    }

    async fn begin<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.state().begun = Some(self.clock.shown());
        let done = work.await;
        self.state().begun = None;
        done
    }

    fn note_released(&self, jobs: &[Job]) {
        let shown = self.clock.shown();
        for job in jobs {
            if job.scheduled_for.is_some_and(|at| at > shown) {
                self.journal.broken("released early", || format!("{shown} {job:?}"));
            }
            self.state().released.insert(job.uuid.clone(), shown);
        }
    }

    /// Whether no release of a job was seen, at its time or later, though it has a time and no longer waits for it. That the
    /// clock went back since does not matter.
    pub(crate) fn is_early(&self, job: &Job) -> bool {
        let waits = matches!(job.status, JobStatus::Scheduled | JobStatus::Missed | JobStatus::Cancelled);
        let Some(at) = job.scheduled_for.filter(|_| !waits) else { return false };
        let mut state = self.state();
        if let Some(begun) = state.begun.filter(|_| !state.released.contains_key(&job.uuid)) {
            state.released.insert(job.uuid.clone(), begun);
        }
        state.released.get(&job.uuid).is_none_or(|shown| *shown < at)
    }
}

#[cfg(test)]
mod tests {
    use norfab_model::{Json, Limits, NewJob, Workers};

    use super::*;
    use crate::clock::START;

    fn delayed() -> Job {
        let new = NewJob::new("dummy", "quick").at(START.plus_seconds(30));
        let job = Limits::default().check_job(START, new).expect("it is a job").row(START);
        Job { status: JobStatus::New, ..job }
    }

    /// What is said of a job for in 30 s that was released after so many seconds, in a run whose clock was days ahead before.
    #[track_caller]
    fn check(after: u32, class: Option<&str>) {
        let (journal, clock) = (Journal::default(), SimClock::new());
        let witness = Witness::new(journal.clone(), clock.clone());
        clock.step(200_000_000_000);
        clock.step(-200_000_000_000);
        clock.pass_to(START.plus_seconds(after));
        let job = delayed();
        witness.note_released(std::slice::from_ref(&job));
        assert_eq!(journal.first().map(|broken| broken.class), class);
        clock.step(-60_000_000);
        assert_eq!(witness.is_early(&job), class.is_some());
    }

    #[test]
    fn a_release_is_judged_by_the_clock_of_its_call() {
        check(29, Some("released early"));
        check(30, None);
        check(31, None);
    }

    #[test]
    fn what_nobody_released_is_early() {
        let witness = Witness::new(Journal::default(), SimClock::new());
        assert!(witness.is_early(&delayed()));
        assert!(!witness.is_early(&Job { status: JobStatus::Scheduled, ..delayed() }));
        assert!(!witness.is_early(&Job { scheduled_for: None, ..delayed() }));
    }

    /// Whether a rule is broken by sending a job that w1 is known to have.
    #[track_caller]
    fn check_leave(target: Workers, is_broken: bool) {
        let journal = Journal::default();
        let witness = Witness::new(journal.clone(), SimClock::new());
        let job = delayed();
        witness.state().known.insert(job.uuid.clone(), BTreeSet::from(["w1".to_owned()]));
        witness.see_leave(&Post {
            job: job.uuid,
            service: job.service,
            target,
            task: job.task,
            args: Json::empty_array(),
            kwargs: Json::empty_object(),
            timeout: job.timeout,
            schedule_id: None,
            scheduled_for: None,
        });
        assert_eq!(journal.first().is_some(), is_broken);
    }

    #[test]
    fn who_has_a_job_is_not_sent_it() {
        check_leave(Workers::One("w1".into()), true);
        check_leave(Workers::List(vec!["w2".into(), "w1".into()]), true);
        check_leave(Workers::All, true);
        check_leave(Workers::One("w2".into()), false);
    }
}
