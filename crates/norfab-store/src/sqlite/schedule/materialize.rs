//! The pass over due schedules: a batch in one transaction of a constant number of statements. A batch that a rule of a
//! table stops is cut in halves until the one schedule is found that is to blame.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;

use norfab_model::{
    Claim, Claimed, JobEvent, JobId, Materialize, Materialized, Origin, Quarantined, ScheduleId, ScheduleState,
    StoreError, Timestamp, one_line,
};
use rusqlite::Connection;
use tracing::warn;

use super::all_written;
use super::aside::{self, Aside, Where};
use super::claimed_as_made::{ClaimedAsMade, MOST_JOBS, MOST_STORED_BYTES};
use super::encode::{Changes, QuarantineRow, ScheduledJobs};
use super::find::{self, AT_ONCE};
use super::realign::next_due;
use super::row::{Row, Unreadable};
use crate::materialize::{Batch, Changed, Due, PlannedRow, Settled};
use crate::sqlite::event::event_add_in_tx;
use crate::sqlite::local_time::LocalTime;
use crate::sqlite::pass::job_claim_in_tx;
use crate::sqlite::statement::{Tx, scalar, statement};
use crate::sqlite::{Session, encode, error, storage};

pub(super) const DOING: &str = "materialize schedules";
/// Of so many due schedules, those that were seen are told by their rows: for a list of what to leave out SQLite makes a
/// table, which takes longer than the reading of a few rows.
const FEW: u32 = 16;

pub(super) fn schedule_materialize_due(
    shared: &Session<'_>,
    request: Materialize<'_>,
) -> Result<Materialized, StoreError> {
    let tx = if request.claim.is_some() { shared.write(DOING)? } else { shared.write_along(DOING)? };
    let (mut due, seen) = due(&tx, &request)?;
    let request = Materialize { seen, ..request };
    let more = due.len() > request.batch as usize;
    due.truncate(request.batch as usize);
    if due.is_empty() && request.claim.is_none() {
        let next_due_at = next_due(&tx).map_err(storage(DOING))?;
        return Ok(Materialized { more, next_due_at, ..Materialized::default() });
    }
    match attempt(shared, tx, &request, &due) {
        Ok(outcome) => Ok(Materialized { more, ..outcome }),
        Err(error) if refusal(&error).is_some() => {
            // Should SQLite have undone what others did along with it, they are told why.
            if let Some(group) = shared.group {
                group.note(&error);
            }
            // It may be the claim that is refused, which is left to a call of its own: without it, all are tried once more
            // before any of them is to blame.
            let error = if request.claim.is_some() { None } else { Some(error) };
            let (outcome, stopped_by) = in_parts(shared, &Materialize { claim: None, ..request }, due, error);
            let next_due_at = next_due(shared.connection).map_err(storage(DOING))?;
            settle_parts(Materialized { more, next_due_at, ..outcome }, stopped_by)
        }
        Err(error) => Err(error),
    }
}

/// The numbers of the due rows, and of one more to see whether there are more; and which of those that were seen may still
/// be among them.
fn due<'a>(connection: &Connection, request: &Materialize<'a>) -> Result<(Vec<i64>, &'a [ScheduleId]), StoreError> {
    let select = |seen: &[ScheduleId], most: u32| {
        let seen = encode::array(seen).map_err(storage(DOING))?;
        let (seconds, limit) = (request.now.as_seconds_f64(), i64::from(most) + 1);
        scalar!("sql/schedule/due.sql", seconds, seen, limit).fetch_all(connection).map_err(storage(DOING))
    };
    if !request.seen.is_empty() {
        let few = request.batch.min(FEW);
        let due = select(&[], few)?;
        if due.len() <= few as usize {
            return Ok((due, request.seen));
        }
    }
    Ok((select(request.seen, request.batch)?, &[]))
}

/// Materialises these rows and commits, or does nothing of it. Of many, as many as are held in memory at once are read and
/// written together; about the next ones is decided meanwhile.
fn attempt(
    shared: &Session<'_>,
    tx: Tx<'_>,
    request: &Materialize<'_>,
    numbers: &[i64],
) -> Result<Materialized, StoreError> {
    let local = shared.local(request.now, &tx).map_err(storage(DOING))?;
    let place = if numbers.len() > AT_ONCE { Where::Aside } else { Where::Here };
    let budget_used = AtomicU32::new(0);
    let pass = Pass { request, budget_used: &budget_used };
    let (mut outcome, mut events) = aside::with(place, |aside| pass.carry_out(shared, &tx, &local, numbers, aside))?;
    event_add_in_tx(&tx, shared.codec, &mut events, DOING)?;
    if let Some(claim) = request.claim.filter(|_| outcome.claimed.is_none()) {
        outcome.claimed = claim_behind(shared, &tx, claim)?;
    }
    outcome.next_due_at = next_due(&tx).map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))?;
    Ok(outcome)
}

/// Claims what is NEW by now. Should that fail, it is undone by itself: it is none of the schedules that is to blame.
fn claim_behind(
    shared: &Session<'_>,
    connection: &Connection,
    claim: &Claim<'_>,
) -> Result<Option<Claimed>, StoreError> {
    let claim = || {
        let part = Tx::within(connection).map_err(storage(DOING))?;
        let claimed = job_claim_in_tx(shared, &part, claim)?;
        part.commit().map_err(storage(DOING))?;
        Ok(Some(claimed))
    };
    claim().or_else(|error: StoreError| {
        // Unless SQLite has undone all of it, who asks for it in a call of its own is told.
        if connection.is_autocommit() {
            return Err(error);
        }
        tracing::debug!(error = &error as &dyn std::error::Error, "Left a claim to a call of its own");
        Ok(None)
    })
}

/// A pass over some rows: what is computed of them. It is computed in the order of the rows, since they share a budget.
#[derive(Clone, Copy)]
struct Pass<'a> {
    request: &'a Materialize<'a>,
    budget_used: &'a AtomicU32,
}

/// What is decided about a part of the rows.
struct Decided {
    /// They go where they come from: two threads would wait for each other, were one to free what the other allocates.
    rows: Vec<Row>,
    batch: Batch,
    jobs: Vec<PlannedRow>,
    unusable: Vec<Unusable>,
}

/// What is written of a part of the rows.
struct Written {
    changes: Changes,
    events: Vec<JobEvent>,
    outcome: Materialized,
}

impl<'a> Pass<'a> {
    fn carry_out(
        self,
        shared: &Session<'_>,
        connection: &Connection,
        local: &LocalTime,
        numbers: &[i64],
        aside: &Aside<'a>,
    ) -> Result<(Materialized, Vec<JobEvent>), StoreError> {
        let (mut outcome, mut events) = (Materialized::default(), Vec::new());
        let fits = |claim: &&Claim<'_>| claim.now == self.request.now && numbers.len() <= MOST_JOBS;
        let claim = self.request.claim.filter(fits);
        let mut claimed = None;
        let mut write = |written: &Receiver<Written>| {
            let Written { changes, events: more, outcome: part } = answer(written)?;
            changes.write(connection, DOING)?;
            events.extend(more);
            add(&mut outcome, part);
            Ok::<_, StoreError>(())
        };
        let mut quarantined = Vec::new();
        let (mut decided, mut settled) = (None, None);
        for some in numbers.chunks(AT_ONCE).map(Some).chain([None]) {
            let next = match some {
                Some(some) => {
                    let rows = match claim {
                        Some(_) => find::counted_with_arguments(connection, some, MOST_STORED_BYTES, DOING)?,
                        None => find::counted(connection, some, DOING)?,
                    };
                    Some(aside.run(move || self.decide(rows)))
                }
                None => None,
            };
            let settling = match std::mem::replace(&mut decided, next) {
                Some(decided) => {
                    let Decided { rows, batch, jobs, unusable } = answer(&decided)?;
                    let as_made = match claim {
                        Some(claim) => ClaimedAsMade::of(shared, connection, claim, &rows, &jobs)?,
                        None => None,
                    };
                    drop(rows);
                    quarantined.extend(unusable);
                    let made = add_jobs(connection, self.request.now, &jobs, as_made.as_ref(), local)?;
                    claimed = as_made.map(|as_made| as_made.into_claimed(&made));
                    Some(aside.run(move || settle(batch, jobs, &made)))
                }
                None => None,
            };
            if let Some(settled) = std::mem::replace(&mut settled, settling) {
                write(&settled)?;
            }
        }
        if let Some(settled) = settled {
            write(&settled)?;
        }
        quarantine(connection, self.request.now, &quarantined)?;
        outcome.claimed = claimed;
        outcome.quarantined.extend(quarantined.into_iter().map(|unusable| unusable.what));
        Ok((outcome, events))
    }

    fn decide(self, rows: Vec<Row>) -> Decided {
        let (due, unusable) = read(&rows, self.request.seen);
        let used = self.budget_used.load(Ordering::Relaxed);
        let budget_left = self.request.budget_left.saturating_sub(used);
        let batch = Batch::decide(&Materialize { budget_left, ..*self.request }, due);
        self.budget_used.store(used.saturating_add(batch.budget_used()), Ordering::Relaxed);
        let jobs = batch.jobs();
        Decided { rows, batch, jobs, unusable }
    }
}

fn settle(batch: Batch, jobs: Vec<PlannedRow>, made: &HashSet<JobId>) -> Written {
    let Settled { changed, events, outcome } = batch.settle(jobs, made);
    let mut changes = Changes::with_capacity(changed.len());
    for Changed { number, before, after } in &changed {
        changes.push(*number, before, after);
    }
    Written { changes, events, outcome }
}

/// What was computed; nothing comes only from work that has ended in a panic.
fn answer<T>(computed: &Receiver<T>) -> Result<T, StoreError> {
    computed.recv().map_err(storage(DOING))
}

/// The schedules of these rows that are active and were not seen, and the rows that are none.
fn read(rows: &[Row], seen: &[ScheduleId]) -> (Vec<Due>, Vec<Unusable>) {
    let (mut due, mut unusable) = (Vec::with_capacity(rows.len()), Vec::new());
    let is_seen = |row: &&Row| row.uuid.seen().text().is_ok_and(|uuid| seen.iter().any(|id| id.as_str() == uuid));
    for row in rows.iter().filter(|row| !is_seen(row)) {
        match row.moved() {
            Ok((stored, moved)) if stored.state == ScheduleState::Active => {
                due.push(Due::new(row.row, stored, moved, row.unfinished()));
            }
            Ok(_) => {}
            Err(row) => unusable.push(Unusable::unreadable(row)),
        }
    }
    (due, unusable)
}

/// Adds jobs, some of them claimed; returns those that were not there already.
fn add_jobs(
    connection: &Connection,
    now: Timestamp,
    jobs: &[PlannedRow],
    as_made: Option<&ClaimedAsMade>,
    local: &LocalTime,
) -> Result<HashSet<JobId>, StoreError> {
    let mut rows = ScheduledJobs::new(now, Origin::Occurrence, jobs.len());
    for new in jobs {
        match as_made.and_then(|as_made| as_made.job(new)) {
            Some(claimed) => rows.push_claimed(new.schedule, claimed).map_err(storage(DOING))?,
            None => rows.push(new.schedule, &new.job),
        }
    }
    rows.add(connection, local, DOING)
}

/// A row that cannot be used.
struct Unusable {
    number: i64,
    what: Quarantined,
}

impl Unusable {
    fn unreadable(Unreadable { row, what }: Unreadable) -> Self {
        let reason = one_line(&format!("the schedule cannot be read: {}", what.reason));
        Self { number: row, what: Quarantined { uuid: what.uuid, name: what.name, reason } }
    }
}

fn quarantine(connection: &Connection, now: Timestamp, unusable: &[Unusable]) -> Result<(), StoreError> {
    if unusable.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = unusable.iter().map(|one| QuarantineRow { row: one.number, reason: &one.what.reason }).collect();
    let (rows, seconds) = (encode::array(&rows).map_err(storage(DOING))?, now.as_seconds_f64());
    let written = statement!("sql/schedule/quarantine.sql", rows, seconds).execute(connection);
    all_written(written.map_err(storage(DOING))?, unusable.len(), DOING)
}

/// What a rule of a table says that stopped a statement, when it was one.
fn refusal(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Storage { source, .. } => error::constraint(source.as_ref()).map(str::to_owned),
        _ => None,
    }
}

/// Materialises a batch that was refused as a whole: its halves, and theirs, until those that are to blame stand alone
/// and are switched off. Without an error it is not known that one of them is to blame: all are tried first. Each part is a
/// transaction of its own. Also returns what could not be done.
fn in_parts(
    shared: &Session<'_>,
    request: &Materialize<'_>,
    batch: Vec<i64>,
    error: Option<StoreError>,
) -> (Materialized, Option<StoreError>) {
    let (mut outcome, mut stopped_by) = (Materialized::default(), None);
    let (mut waiting, mut refused) = match error {
        Some(error) => (Vec::new(), Some((batch, error))),
        None => (vec![batch], None),
    };
    loop {
        match refused.take() {
            Some((mut part, _)) if part.len() > 1 => {
                let rest = part.split_off(part.len() / 2);
                waiting.extend([rest, part]);
            }
            Some((part, error)) => match switch_off(shared, request.now, &part, &error) {
                Ok(quarantined) => outcome.quarantined.extend(quarantined),
                // Not even that: it stays as it is, and the others go on.
                Err(_) => stopped_by = Some(error),
            },
            None => {}
        }
        let Some(part) = waiting.pop() else { break };
        let budget_left = request.budget_left.saturating_sub(outcome.budget_used);
        match part_alone(shared, &Materialize { budget_left, ..*request }, &part) {
            Ok(done) => add(&mut outcome, done),
            Err(error) if refusal(&error).is_some() => refused = Some((part, error)),
            Err(error) => {
                stopped_by = Some(error);
                break;
            }
        }
    }
    (outcome, stopped_by)
}

fn part_alone(shared: &Session<'_>, request: &Materialize<'_>, part: &[i64]) -> Result<Materialized, StoreError> {
    let tx = shared.write_along(DOING)?;
    attempt(shared, tx, request, part)
}

/// Switches off a schedule whose jobs or whose progress the database refuses.
fn switch_off(
    shared: &Session<'_>,
    now: Timestamp,
    part: &[i64],
    error: &StoreError,
) -> Result<Vec<Quarantined>, StoreError> {
    // Were it undone by a power cut, the next pass would find the same.
    let tx = shared.write_along(DOING)?;
    let refusal = refusal(error).unwrap_or_default();
    let reason = one_line(&format!("the database refuses what becomes of it: {refusal}"));
    let rows = find::rows(&tx, part, DOING)?;
    let unusable = rows.iter().map(|row| {
        let what = row.unreadable(&reason).what;
        Unusable { number: row.row, what: Quarantined { uuid: what.uuid, name: what.name, reason: what.reason } }
    });
    let unusable: Vec<Unusable> = unusable.collect();
    quarantine(&tx, now, &unusable)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(unusable.into_iter().map(|unusable| unusable.what).collect())
}

fn add(outcome: &mut Materialized, part: Materialized) {
    outcome.created.extend(part.created);
    outcome.missed.extend(part.missed);
    outcome.outcomes.extend(part.outcomes);
    outcome.quarantined.extend(part.quarantined);
    outcome.still_due.extend(part.still_due);
    outcome.budget_used = outcome.budget_used.saturating_add(part.budget_used);
}

/// What was done counts, even when something could not be: that comes up again in the next call, and fails it when it
/// stands alone.
fn settle_parts(outcome: Materialized, stopped_by: Option<StoreError>) -> Result<Materialized, StoreError> {
    match stopped_by {
        None => Ok(outcome),
        Some(error) if outcome.outcomes.is_empty() && outcome.quarantined.is_empty() => Err(error),
        Some(error) => {
            warn!(error = &error as &dyn std::error::Error, "Some due schedules could not be looked at");
            Ok(Materialized { more: true, ..outcome })
        }
    }
}
