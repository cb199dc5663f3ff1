//! The account of every occurrence, kept beside the store's own: after each call, what the cursor passed must be what the
//! counters gained, no less and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use norfab_model::{
    Coalesce, Job, JobId, Listed, Materialize, Materialized, Overlap, RunNow, Schedule, ScheduleError, ScheduleFilter,
    ScheduleId, ScheduleKey, ScheduleState, ScheduleStore, Store, StoreError, Timestamp,
};

use crate::violation::Journal;

/// How long a call may wait for its turn, as documented.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A call that concerns schedules.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    /// None: something else than a schedule changed.
    Nothing,
    Add,
    /// It changes the state alone.
    Switch(ScheduleId),
    Resume(Timestamp, ScheduleId),
    Update(Timestamp, ScheduleId),
    RunNow(ScheduleId),
    Realign(Timestamp),
    /// All but these.
    Materialize(Timestamp, Vec<ScheduleId>),
}

impl Call {
    /// Switching a schedule off.
    pub(crate) fn of(key: &ScheduleKey) -> Self {
        match key {
            ScheduleKey::Id(id) => Self::Switch(id.clone()),
            ScheduleKey::Name(_) => Self::Nothing,
        }
    }

    /// Whether it may change this schedule.
    fn concerns(&self, schedule: &ScheduleId) -> bool {
        match self {
            Self::Nothing | Self::Add => false,
            Self::Switch(id) | Self::Resume(_, id) | Self::Update(_, id) | Self::RunNow(id) => id == schedule,
            Self::Realign(_) => true,
            Self::Materialize(_, seen) => !seen.contains(schedule),
        }
    }
}

pub(crate) type Schedules = BTreeMap<ScheduleId, Schedule>;

/// The account; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    journal: Journal,
    /// Whoever has it is looked at: the client makes several calls at once, and others break into them.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    last: Schedules,
    /// A call that has begun and was not seen to end.
    open: Option<Call>,
}

/// The schedules as they are, the deleted ones too.
pub(crate) async fn peek<S: ScheduleStore>(store: &S) -> Result<Schedules, ScheduleError> {
    let mut all = Schedules::new();
    for listed in [Listed::Present, Listed::Deleted] {
        let filter = ScheduleFilter { listed, limit: 1000, ..ScheduleFilter::default() };
        let page = store.schedule_list(&filter).await?;
        all.extend(page.schedules.into_iter().map(|view| (view.schedule.uuid.clone(), view.schedule)));
    }
    Ok(all)
}

impl Ledger {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal, turn: Arc::default(), state: Arc::default() }
    }

    /// Carries out a call and compares.
    pub(crate) async fn watch<S: ScheduleStore, T>(
        &self,
        store: &S,
        call: Call,
        work: impl Future<Output = Result<T, ScheduleError>>,
    ) -> Result<T, ScheduleError> {
        let _turn = self.turn.lock().await;
        self.watch_in_turn(store, call, work).await
    }

    async fn watch_in_turn<S: ScheduleStore, T>(
        &self,
        store: &S,
        call: Call,
        work: impl Future<Output = Result<T, ScheduleError>>,
    ) -> Result<T, ScheduleError> {
        let before = peek(store).await?;
        self.compare(before, Some(call));
        let done = work.await;
        let after = peek(store).await?;
        self.compare(after, None);
        done
    }

    /// Makes jobs, and looks at each of them.
    pub(crate) async fn materialize<S: Store + ScheduleStore>(
        &self,
        store: &S,
        request: Materialize<'_>,
    ) -> Result<Materialized, ScheduleError> {
        let _turn = self.turn.lock().await;
        let unfinished = store.job_unfinished().await?;
        let call = Call::Materialize(request.now, request.seen.to_vec());
        let before = peek(store).await?;
        let made = self.watch_in_turn(store, call, store.schedule_materialize_due(request)).await?;
        let unfinished = still_unfinished(store, unfinished).await?;
        for (id, schedule) in &before {
            let of = |job: &&Job| job.schedule_id.as_ref() == Some(id);
            let created: Vec<&Job> = made.created.iter().filter(of).collect();
            self.check_created(schedule, request.now, &created, unfinished.iter().filter(of).count());
        }
        Ok(made)
    }

    /// Runs a schedule by hand: unless that is forced, there must be room beside its unfinished jobs, and for want of room
    /// alone it is refused.
    pub(crate) async fn run_now<S: Store + ScheduleStore>(
        &self,
        store: &S,
        id: &ScheduleId,
        overlap: Overlap,
        work: impl Future<Output = Result<RunNow, ScheduleError>>,
    ) -> Result<RunNow, ScheduleError> {
        let _turn = self.turn.lock().await;
        let before = store.job_unfinished().await?;
        let schedule = peek(store).await?.remove(id);
        let done = self.watch_in_turn(store, Call::RunNow(id.clone()), work).await;
        let still = still_unfinished(store, before.clone()).await?;
        let Some(schedule) = schedule else { return done };
        let room = |jobs: &[Job]| {
            let own = jobs.iter().filter(|job| job.schedule_id.as_ref() == Some(id)).count();
            schedule.overlap_policy.room(schedule.max_instances, own as u64)
        };
        let wrong = match &done {
            Ok(_) => overlap == Overlap::Respect && room(&still) == 0,
            Err(ScheduleError::Overlap { .. }) => overlap == Overlap::Force || room(&before) > 0,
            Err(_) => false,
        };
        if wrong {
            self.journal.broken("overlap by hand", || format!("{overlap:?} {done:?}: {}", schedule.label()));
        }
        done
    }

    fn check_created(&self, schedule: &Schedule, now: Timestamp, created: &[&Job], unfinished: usize) {
        let room = schedule.overlap_policy.room(schedule.max_instances, unfinished as u64);
        if created.len() as u64 > room {
            self.journal.broken("overlap", || {
                format!("{} jobs beside {unfinished} unfinished ones of {}", created.len(), schedule.label())
            });
        }
        for job in created {
            let at = job.scheduled_for.unwrap_or(Timestamp::MAX);
            let due = schedule.due_time(at);
            let wanted = schedule.next.is_some_and(|next| next.occurrence <= at);
            if due > now || !wanted || job.start_deadline.is_some_and(|latest| latest < now) {
                self.journal.broken("occurrence at a wrong time", || format!("{at} due {due} made at {now}"));
            }
        }
    }

    /// Compares with what was there last.
    pub(crate) fn compare(&self, now: Schedules, next_call: Option<Call>) {
        let mut state = self.state.lock().expect("nobody panics with it");
        let call = std::mem::replace(&mut state.open, next_call).unwrap_or(Call::Nothing);
        for (id, before) in &state.last {
            match now.get(id) {
                None => self.journal.broken("a schedule is gone", || before.label()),
                Some(after) => {
                    if let Err(why) = check(&call, before, after) {
                        self.journal.broken("accounting", || format!("{why}\n{call:?}\n{before:?}\n{after:?}"));
                    }
                }
            }
        }
        state.last = now;
    }
}

/// Those of these jobs that are unfinished still. Another call of the same instant may have ended some first: so many are
/// left that nobody can have taken for ended.
async fn still_unfinished<S: Store>(store: &S, mut jobs: Vec<Job>) -> Result<Vec<Job>, StoreError> {
    let still: BTreeSet<JobId> = store.job_unfinished().await?.into_iter().map(|job| job.uuid).collect();
    jobs.retain(|job| still.contains(&job.uuid));
    Ok(jobs)
}

/// What the counters gained, runs by hand apart.
fn gained(before: &Schedule, after: &Schedule) -> Option<u64> {
    let (old, new) = (&before.counters, &after.counters);
    [
        new.total_runs.checked_sub(old.total_runs)?,
        new.missed_runs.checked_sub(old.missed_runs)?,
        new.overlap_skips.checked_sub(old.overlap_skips)?,
        new.coalesced_runs.checked_sub(old.coalesced_runs)?,
        new.passed_over.checked_sub(old.passed_over)?,
    ]
    .into_iter()
    .try_fold(0_u64, u64::checked_add)
}

fn check(call: &Call, before: &Schedule, after: &Schedule) -> Result<(), String> {
    let gained = gained(before, after).ok_or("a counter went back")?;
    let silent = Schedule { counters: before.counters, ..after.clone() };
    let unchanged = gained == 0 && silent == *before;
    let moved = silent.next != before.next || silent.decided_until != before.decided_until;
    if unchanged {
        return check_rest(call, after);
    }
    if !call.concerns(&before.uuid) {
        return Err("changed by nobody".into());
    }
    let expected = match call {
        Call::Nothing | Call::Add => return Err("changed by nobody".into()),
        Call::Switch(_) | Call::RunNow(..) if moved => return Err("the cursor moved".into()),
        Call::Switch(_) => 0,
        Call::RunNow(..) => 1,
        Call::Realign(now) => {
            let back = before
                .first_after(*now)
                .filter(|first| before.next.is_some_and(|next| first.occurrence < next.occurrence));
            let right = back.or(before.next.map(|next| before.upcoming(next.occurrence)));
            if after.next != right || silent.decided_until != before.decided_until {
                return Err("not brought back".into());
            }
            0
        }
        Call::Resume(now, _) => left_behind(before, *now),
        Call::Update(now, _) if moved => left_behind(before, *now),
        Call::Update(..) => 0,
        Call::Materialize(now, _) => passed(before, after, *now)?,
    };
    if gained == expected {
        check_rest(call, after)
    } else {
        Err(format!("counted {gained}, and {expected} were passed"))
    }
}

/// After a look nothing may be due but what the budget left.
fn check_rest(call: &Call, after: &Schedule) -> Result<(), String> {
    let Call::Materialize(now, seen) = call else { return Ok(()) };
    if seen.contains(&after.uuid) {
        return Ok(());
    }
    let due = after.state == ScheduleState::Active && after.next.is_some_and(|next| next.due <= *now);
    if due && after.coalesce != Coalesce::All { Err("left due".into()) } else { Ok(()) }
}

/// How many occurrences a call passes over that puts the cursor behind its instant.
fn left_behind(before: &Schedule, now: Timestamp) -> u64 {
    let behind = if before.decided_until.since(now) <= LONGEST_WAIT { now.max(before.decided_until) } else { now };
    before.next.map_or(0, |next| before.occurrences().count_in(next.occurrence, behind))
}

/// How many occurrences lie between the cursors. Those up to the creation count only while the clock is behind it.
fn passed(before: &Schedule, after: &Schedule, now: Timestamp) -> Result<u64, String> {
    let micro = Duration::from_micros(1);
    let next = before.next.filter(|next| before.state == ScheduleState::Active && next.due <= now);
    let from = next.ok_or("it was not due")?.occurrence;
    let from = if before.created_at <= now { from.max(before.created_at.saturating_add(micro)) } else { from };
    let to = after.next.map_or(Timestamp::MAX, |next| next.occurrence.saturating_sub(micro));
    if before.occurrences().last_at_or_before(to).is_some_and(|last| last > now) {
        return Err("the cursor passed what is to come".into());
    }
    Ok(before.occurrences().count_in(from, to))
}
