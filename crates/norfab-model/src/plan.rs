//! What a pass does with a due schedule: `plan_due` is a pure function of the row, the instant and the unfinished
//! jobs. All of it is arithmetic; a year of missed seconds costs what one costs.

use std::collections::HashSet;
use std::time::Duration;

use crate::{
    Coalesce, JobId, LastOutcome, MissedJobs, Occurrences, PlannedJob, Schedule, ScheduleState, Timestamp, Upcoming,
};

/// What is to be done with a schedule: [`plan_due`] decides it, a store carries it out and then writes the row that
/// [`settle`](Self::settle) returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Occurrences that were due.
    pub due: u64,
    /// Jobs to make, the oldest occurrence first.
    pub create: Vec<PlannedJob>,
    /// Occurrences beyond their grace, for which one MISSED job is to be made.
    pub missed: Option<MissedJobs>,
    /// Occurrences that another one stands for.
    pub coalesced: u64,
    /// Occurrences that found no room beside unfinished jobs.
    pub skipped: u64,
    /// Occurrences that were decided before the clock went back and has now come over them again.
    pub passed_over: u64,
    /// Occurrences that stay due for the next pass, since the budget of this one is spent.
    pub remaining: u64,
    /// The last occurrence that is decided here.
    pub decided: Option<Timestamp>,
    /// Where the cursor moves.
    pub next: Option<Upcoming>,
    /// The state afterwards: COMPLETED when nothing is left.
    pub state: ScheduleState,
    /// How much of the budget it takes.
    pub budget_used: u32,
}

/// Decides what becomes of the due occurrences of a schedule.
///
/// `unfinished` is how many of its jobs have not ended, `budget_left` how many jobs the pass may still make beyond
/// the first of each schedule; it binds [`Coalesce::All`] only. In order:
///
/// 1. Due are the occurrences from the cursor whose due time has come. Those up to `decided_until` are passed over when
///    `now` has come to it again; while the clock is behind it, they are decided like others. Once `now` has come to the
///    creation, those up to it are none.
/// 2. `latest` keeps the last of them, `earliest` the first, `all` every one; the others are coalesced.
/// 3. Those kept whose due time and grace have passed are missed.
/// 4. Of the others, the oldest first, as many become jobs as the overlap policy has room for; what finds no room is
///    skipped. When it is the budget that ends first, they stay due.
/// 5. The cursor moves behind what was decided; with nothing left the schedule is COMPLETED.
///
/// A schedule that is not ACTIVE stays as it is. So does one of which nothing is due, except that a cursor edited by
/// hand is put right.
#[must_use]
pub fn plan_due(schedule: &Schedule, now: Timestamp, unfinished: u64, budget_left: u32) -> Plan {
    if schedule.state != ScheduleState::Active {
        return Plan { state: schedule.state, ..Plan::moving_to(schedule.next) };
    }
    let (cursor, passed_over) = (undecided(schedule, now), walked_again(schedule, now));
    let Some(due) = cursor.and_then(|cursor| due_span(schedule, cursor.occurrence, now)) else {
        return Plan { due: passed_over, passed_over, ..Plan::moving_to(cursor) };
    };
    let kept = coalesce(due, schedule.coalesce);
    let missed = missed_span(schedule, kept, now);
    let on_time = kept.count - missed.map_or(0, |missed| missed.count);
    let room = schedule.overlap_policy.room(schedule.max_instances, unfinished);
    let allowance = match schedule.coalesce {
        Coalesce::All => 1 + u64::from(budget_left),
        Coalesce::Latest | Coalesce::Earliest => 1,
    };
    let made = on_time.min(room).min(allowance);
    let left = on_time - made;
    let (skipped, remaining) = if made < room { (0, left) } else { (left, 0) };
    let create = jobs(schedule, kept, missed, made);
    let decided = create.last().filter(|_| remaining > 0).map_or(due.last, |job| job.occurrence);
    Plan {
        due: due.count.saturating_add(passed_over),
        coalesced: due.count - kept.count,
        missed: missed.map(|span| MissedJobs {
            newest: schedule.planned_job(schedule.upcoming(span.last)),
            from: span.first,
            count: span.count,
        }),
        skipped,
        passed_over,
        remaining,
        create,
        decided: Some(decided),
        // Less than the allowance, which fits.
        budget_used: u32::try_from(made.saturating_sub(1)).unwrap_or(budget_left),
        ..Plan::moving_to(schedule.first_after(decided))
    }
}

impl Plan {
    /// The row of the schedule once the plan is carried out: counters, cursor, state, last run and last outcome.
    /// `made` holds the identities of the jobs that were really made, of this schedule or of a whole batch: a job
    /// that was there before the clock went back is not made again, and its occurrence counts as passed over.
    #[must_use]
    pub fn settle(&self, schedule: &Schedule, now: Timestamp, made: &HashSet<JobId>) -> Schedule {
        let moved = Schedule { next: self.next, state: self.state, ..schedule.clone() };
        let mut after = match self.decided {
            Some(until) => moved.decided(until),
            None => moved,
        };
        if self.due == 0 {
            return after;
        }
        let fresh: Vec<_> = self.create.iter().filter(|job| made.contains(&job.uuid)).collect();
        let outcome = LastOutcome {
            when: now,
            coalesce: schedule.coalesce,
            due: self.due,
            created: fresh.len() as u64,
            coalesced: self.coalesced,
            missed: self.missed.as_ref().map_or(0, |missed| missed.count),
            skipped: self.skipped,
            passed_over: self.passed_over.saturating_add((self.create.len() - fresh.len()) as u64),
            remaining: self.remaining,
        };
        after.last_run_at = fresh.last().map(|job| job.occurrence).or(schedule.last_run_at);
        after.counters.add(&outcome);
        after.last_outcome = Some(outcome);
        after
    }

    /// A plan that only moves the cursor; without one, nothing is left.
    fn moving_to(next: Option<Upcoming>) -> Self {
        let state = if next.is_some() { ScheduleState::Active } else { ScheduleState::Completed };
        Self {
            due: 0,
            create: Vec::new(),
            missed: None,
            coalesced: 0,
            skipped: 0,
            passed_over: 0,
            remaining: 0,
            decided: None,
            next,
            state,
            budget_used: 0,
        }
    }
}

/// Consecutive occurrences, at least one.
#[derive(Clone, Copy)]
struct Span {
    first: Timestamp,
    last: Timestamp,
    count: u64,
}

impl Span {
    fn new(occurrences: Occurrences<'_>, first: Timestamp, last: Timestamp) -> Option<Self> {
        (first <= last).then(|| Self { first, last, count: occurrences.count_in(first, last) })
    }
}

/// The cursor, put on an occurrence if it stands beside one, and behind what is decided or was before the creation once
/// the clock has come to it again.
fn undecided(schedule: &Schedule, now: Timestamp) -> Option<Upcoming> {
    let occurrences = schedule.occurrences();
    let cursor = match schedule.next {
        Some(cursor) => occurrences.first_at_or_after(cursor.occurrence),
        None => occurrences.next_after(now),
    };
    let created = Some(schedule.created_at).filter(|created| *created <= now);
    let done = created.max(schedule.decided_by(now));
    match (cursor?, done) {
        (cursor, Some(done)) if cursor <= done => schedule.first_after(done),
        (cursor, _) => Some(schedule.upcoming(cursor)),
    }
}

/// How many occurrences behind the creation, from the cursor on, were decided before the clock went back, once it has
/// come over all of them again.
fn walked_again(schedule: &Schedule, now: Timestamp) -> u64 {
    let (Some(cursor), Some(decided)) = (schedule.next, schedule.decided_by(now)) else { return 0 };
    let created = schedule.created_at.saturating_add(Duration::from_micros(1));
    schedule.occurrences().count_in(cursor.occurrence.max(created), decided)
}

/// The occurrences from this one whose due time has come.
fn due_span(schedule: &Schedule, first: Timestamp, now: Timestamp) -> Option<Span> {
    let last = last_due_by(schedule, now)?;
    Span::new(schedule.occurrences(), first, last)
}

/// Those of the kept ones whose due time and grace lie before `now`; they are the oldest of them.
fn missed_span(schedule: &Schedule, kept: Span, now: Timestamp) -> Option<Span> {
    let grace = schedule.misfire_grace_seconds?;
    let overdue = now.saturating_sub(Duration::from_secs(grace.into()) + Duration::from_micros(1));
    let last = last_due_by(schedule, overdue)?;
    Span::new(schedule.occurrences(), kept.first, last.min(kept.last))
}

/// The last occurrence that is due at an instant or before it. Each is due before the next one's nominal instant, so
/// that only two come into question: the last one up to then, and the one before it.
fn last_due_by(schedule: &Schedule, instant: Timestamp) -> Option<Timestamp> {
    let occurrences = schedule.occurrences();
    let last = occurrences.last_at_or_before(instant)?;
    if schedule.due_time(last) <= instant { Some(last) } else { occurrences.last_before(last) }
}

fn coalesce(due: Span, policy: Coalesce) -> Span {
    match policy {
        Coalesce::Latest => Span { first: due.last, last: due.last, count: 1 },
        Coalesce::Earliest => Span { first: due.first, last: due.first, count: 1 },
        Coalesce::All => due,
    }
}

/// The jobs of the first so many kept occurrences that are not missed.
fn jobs(schedule: &Schedule, kept: Span, missed: Option<Span>, count: u64) -> Vec<PlannedJob> {
    let occurrences = schedule.occurrences();
    let first = missed.map_or(Some(kept.first), |missed| occurrences.next_after(missed.last));
    std::iter::successors(first, |at| occurrences.next_after(*at))
        .zip(0..count)
        .map(|(at, _)| schedule.planned_job(schedule.upcoming(at)))
        .collect()
}

#[cfg(test)]
mod tests;
