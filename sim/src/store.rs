//! A store that fails when it is told to, at whose calls the client may die, and into which others break.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use norfab_model::{
    AppliedReplies, Claim, Claimed, InputAnswer, Job, JobDetail, JobEvent, JobFilter, JobId, JobPage, JobStats, Limits,
    Link, LiveWorkers, Managed, Materialize, Materialized, NextDue, Overdue, Overlap, Poll as Ask, Realigned,
    Recovered, Released, Reply, RetryPolicy, Rezoned, RunNow, Schedule, ScheduleDetail, ScheduleError, ScheduleFilter,
    ScheduleId, ScheduleKey, SchedulePage, SchedulePatch, ScheduleStore, ScheduleView, Scope, SendAgain, SentAgain,
    Store, StoreError, StoredAnswer, SwitchedOff, Timestamp, ValidJob, ValidSchedule,
};

use crate::gate::{Doing, Fate, Gate, Place, storage};
use crate::ledger::{Call, Ledger};
use crate::script::Op;
use crate::witness::Witness;

/// Carries out what somebody else does in the middle of things.
pub(crate) type Interloper = Arc<dyn Fn(Op) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A store in the simulation.
pub(crate) struct SimStore<S> {
    inner: Arc<S>,
    ledger: Ledger,
    witness: Witness,
    /// None: nothing goes wrong with it.
    trouble: Option<(Gate, Interloper)>,
}

impl<S> SimStore<S> {
    /// One with which all goes well.
    pub(crate) fn sound(inner: Arc<S>, ledger: Ledger, witness: Witness) -> Self {
        Self { inner, ledger, witness, trouble: None }
    }

    /// The same one for a client that may be hurt at it.
    pub(crate) fn troubled(self, gate: Gate, interloper: Interloper) -> Self {
        Self { trouble: Some((gate, interloper)), ..self }
    }

    async fn call<T, E: From<StoreError>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.call_for(Doing::Else, work).await
    }

    async fn call_for<T, E: From<StoreError>>(
        &self,
        doing: Doing,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some((gate, interloper)) = &self.trouble else { return work.await };
        let _inside = gate.enter();
        turn().await;
        if gate.is_crashed() {
            return pending().await;
        }
        let (ops, fate) = gate.store_call(doing);
        for op in ops {
            interloper(op).await;
        }
        let done = match fate {
            Fate::Pass => work.await,
            Fate::Fail(Place::After, what) => work.await.and(Err(storage(what).into())),
            Fate::Fail(_, what) => Err(storage(what).into()),
            Fate::Crash(place) => {
                if place == Place::After {
                    drop(work.await);
                }
                gate.crash();
                pending().await
            }
        };
        turn().await;
        done
    }
}

/// Waits until the caller was looked at once more, as for a thread that does the work: what runs beside has begun, or is done,
/// when this goes on.
async fn turn() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

macro_rules! pass_on {
    ($($name:ident($($arg:ident: $of:ty),*) -> $out:ty;)+) => {
        $(async fn $name(&self $(, $arg: $of)*) -> $out {
            self.call(self.inner.$name($($arg),*)).await
        })+
    };
}

macro_rules! watch {
    ($($name:ident($($arg:ident: $of:ty),*) -> $out:ty as $call:expr;)+) => {
        $(async fn $name(&self $(, $arg: $of)*) -> $out {
            self.call(self.ledger.watch(&*self.inner, $call, self.inner.$name($($arg),*))).await
        })+
    };
}

impl<S: Store + ScheduleStore> Store for SimStore<S> {
    pass_on! {
        job_add(now: Timestamp, job: &ValidJob) -> Result<Job, StoreError>;
        job_add_to_run(now: Timestamp, job: &ValidJob) -> Result<Job, StoreError>;
        job_find(id: &JobId) -> Result<Option<Job>, StoreError>;
        job_detail(id: &JobId) -> Result<Option<JobDetail>, StoreError>;
        job_list(filter: &JobFilter) -> Result<JobPage, StoreError>;
        job_cancel(now: Timestamp, id: &JobId) -> Result<Job, StoreError>;
        job_reschedule(now: Timestamp, id: &JobId, scheduled_for: Timestamp) -> Result<Job, StoreError>;
        job_expire_due(now: Timestamp, scope: &Scope, overdue: Overdue) -> Result<Vec<Job>, StoreError>;
        job_claim(claim: Claim<'_>) -> Result<Claimed, StoreError>;
        job_send_again(now: Timestamp, jobs: Vec<SendAgain>, live: Option<&LiveWorkers>) -> Result<SentAgain, StoreError>;
        job_take_polls(now: Timestamp, scope: &Scope, before: Timestamp, limit: u32) -> Result<Vec<Ask>, StoreError>;
        job_recover(now: Timestamp, scope: &Scope) -> Result<Recovered, StoreError>;
        job_realign(now: Timestamp) -> Result<u64, StoreError>;
        job_give_up(now: Timestamp, ids: &[JobId], reason: &str) -> Result<Vec<Job>, StoreError>;
        job_unclaim(now: Timestamp, ids: &[JobId]) -> Result<(), StoreError>;
        answer_add(now: Timestamp, job: &JobId, worker: &str, answer: &InputAnswer) -> Result<(), StoreError>;
        answer_take(scope: &Scope, limit: u32) -> Result<Vec<StoredAnswer>, StoreError>;
        job_next_due(scope: &Scope) -> Result<NextDue, StoreError>;
        job_unfinished() -> Result<Vec<Job>, StoreError>;
        event_list(job: &JobId, after: i64, limit: u32) -> Result<Vec<JobEvent>, StoreError>;
        stats() -> Result<JobStats, StoreError>;
        change_mark() -> Result<i64, StoreError>;
    }

    async fn job_release_due(&self, now: Timestamp, scope: &Scope, link: Link) -> Result<Released, StoreError> {
        self.call(self.witness.release(self.inner.job_release_due(now, scope, link))).await
    }

    async fn job_apply(
        &self,
        now: Timestamp,
        policy: RetryPolicy,
        replies: Vec<Reply>,
    ) -> Result<AppliedReplies, StoreError> {
        self.call(self.witness.hear(self.inner.job_apply(now, policy, replies))).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

impl<S: Store + ScheduleStore> ScheduleStore for SimStore<S> {
    pass_on! {
        schedule_find(key: &ScheduleKey) -> Result<Option<ScheduleView>, ScheduleError>;
        schedule_detail(key: &ScheduleKey) -> Result<Option<ScheduleDetail>, ScheduleError>;
        schedule_list(filter: &ScheduleFilter) -> Result<SchedulePage, ScheduleError>;
        schedule_next_due() -> Result<Option<Timestamp>, ScheduleError>;
        // No schedule here is bound to a zone.
        schedule_rezone(zone_data: &str) -> Result<Vec<Rezoned>, ScheduleError>;
    }

    watch! {
        schedule_add(schedule: &ValidSchedule) -> Result<Schedule, ScheduleError> as Call::Add;
        schedule_pause(now: Timestamp, id: &ScheduleId) -> Result<Managed, ScheduleError> as Call::Switch(id.clone());
        schedule_resume(now: Timestamp, id: &ScheduleId, limits: &Limits) -> Result<Managed, ScheduleError>
            as Call::Resume(now, id.clone());
        schedule_update(now: Timestamp, id: &ScheduleId, patch: &SchedulePatch, limits: &Limits)
            -> Result<Managed, ScheduleError> as Call::Update(now, id.clone());
        schedule_realign(now: Timestamp) -> Result<Vec<Realigned>, ScheduleError> as Call::Realign(now);
    }

    async fn schedule_run_now(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        overlap: Overlap,
        limits: &Limits,
    ) -> Result<RunNow, ScheduleError> {
        let work = self.inner.schedule_run_now(now, id, overlap, limits);
        self.call(self.ledger.run_now(&*self.inner, id, overlap, work)).await
    }

    async fn schedule_disable(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        self.call(self.ledger.watch(&*self.inner, Call::of(key), self.inner.schedule_disable(now, key))).await
    }

    async fn schedule_delete(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        self.call(self.ledger.watch(&*self.inner, Call::of(key), self.inner.schedule_delete(now, key))).await
    }

    async fn schedule_materialize_due(&self, request: Materialize<'_>) -> Result<Materialized, ScheduleError> {
        let _inside = self.trouble.as_ref().map(|(gate, _)| gate.enter());
        let is_due = self.inner.schedule_next_due().await?.is_some_and(|due| due <= request.now);
        let doing = if is_due { Doing::Making } else { Doing::Else };
        self.call_for(doing, self.witness.make(self.ledger.materialize(&*self.inner, request))).await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use norfab_model::NewJob;
    use norfab_store::MemoryStore;

    use super::*;
    use crate::clock::{START, SimClock};
    use crate::gate::Charge;
    use crate::violation::Journal;
    use crate::witness::Witness;

    /// Of two calls that run side by side so many are done when the client dies at one of them, and none later.
    #[track_caller]
    fn check(call: u32, place: Place, done: u64) {
        let (inner, gate, journal) = (Arc::new(MemoryStore::new()), Gate::default(), Journal::default());
        let (ledger, witness) = (Ledger::new(journal.clone()), Witness::new(journal, SimClock::new()));
        let nobody: Interloper = Arc::new(|_| Box::pin(async {}));
        let store = SimStore::sound(Arc::clone(&inner), ledger, witness).troubled(gate.clone(), nobody);
        gate.arm(call, Charge::Crash(place));

        let job = || Limits::default().check_job(START, NewJob::new("dummy", "quick")).expect("it is a job");
        let (one, two) = (job(), job());
        let mut both = pin!(async { tokio::join!(biased; store.job_add(START, &one), store.job_add(START, &two)) });
        let mut context = Context::from_waker(Waker::noop());
        assert!((0..10).all(|_| both.as_mut().poll(&mut context).is_pending()) && gate.is_crashed());
        let Poll::Ready(stats) = pin!(inner.stats()).poll(&mut context) else { panic!("it waits for nothing") };
        assert_eq!(stats.expect("it works").total_jobs, done);
    }

    #[test]
    fn who_is_dead_does_nothing_more() {
        check(0, Place::Before, 0);
        check(0, Place::After, 1);
        check(1, Place::Before, 1);
        check(1, Place::After, 2);
    }
}
