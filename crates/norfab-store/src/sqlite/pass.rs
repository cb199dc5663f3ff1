//! What a pass asks of the database: each method selects the rows that are due by an index made for it, decides by the
//! pure steps, and writes all of them with one statement.

use std::collections::HashMap;

use norfab_model::{
    Claim, Claimed, Job, JobEvent, JobId, JobStatus, Json, Link, LiveWorkers, NextDue, Overdue, Poll, Post, Recovered,
    Released, Scope, SendAgain, SentAgain, StoreError, Timestamp,
};
use rusqlite::Connection;

use super::encode;
use super::event::event_add_in_tx;
use super::load::{self, Step, Wanted, fail_unreadable};
use super::schedule::count_failed_in_tx;
use super::{Session, select, storage};
use crate::sqlite::statement::statement;
use crate::transition::{self, AgainStep, BATCH, ClaimStep, MOST_CLAIMED_BYTES};

pub(super) fn job_release_due(
    shared: &Session<'_>,
    now: Timestamp,
    scope: &Scope,
    link: Link,
) -> Result<Released, StoreError> {
    const DOING: &str = "release delayed jobs";
    let tx = shared.write_along(DOING)?;
    let rows = select::due(&tx, now, scope, link, BATCH, DOING)?;
    if rows.is_empty() {
        return Ok(Released::default());
    }
    let local = shared.local(now, &tx).map_err(storage(DOING))?;
    let rows = Wanted::rows(&rows).map_err(storage(DOING))?.load(&tx).map_err(storage(DOING))?;
    let (mut steps, unreadable) = load::steps(rows);
    let mut events: Vec<JobEvent> =
        steps.iter_mut().filter_map(|step| transition::release(&mut step.job, now, link)).collect();
    let missed: Vec<Step> = steps.extract_if(.., |step| step.job.status == JobStatus::Missed).collect();
    steps.retain(|step| step.job.status == JobStatus::New);
    let released = steps;
    if !released.is_empty() {
        let written = release(&tx, now, &released).map_err(storage(DOING))?;
        load::all_written(written, released.len(), DOING)?;
    }
    if !missed.is_empty() {
        load::finish(&tx, &missed, &local, DOING)?;
    }
    fail_unreadable(&tx, now, &local, &unreadable, DOING)?;
    event_add_in_tx(&tx, shared.codec, &mut events, DOING)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(Released { released: jobs(released), missed: jobs(missed) })
}

/// Makes jobs NEW; returns how many. Nearly all have a timeout as this project writes it.
fn release(connection: &Connection, now: Timestamp, released: &[Step]) -> Result<usize, encode::EncodeError> {
    let mut rows = encode::ReleasedRows::with_capacity(released.len());
    released.iter().for_each(|step| rows.push(step.row.row, &step.job));
    let (rows, deadlines) = rows.into_parameters()?;
    let now = now.as_seconds_f64();
    let plain = statement!("sql/job/release.sql", &rows, now).execute(connection)?;
    if plain == released.len() {
        return Ok(plain);
    }
    Ok(plain + statement!("sql/job/release_by_deadline.sql", rows, deadlines, now).execute(connection)?)
}

fn jobs(steps: Vec<Step>) -> Vec<Job> {
    steps.into_iter().map(|step| step.job).collect()
}

pub(super) fn job_expire_due(
    shared: &Session<'_>,
    now: Timestamp,
    scope: &Scope,
    overdue: Overdue,
) -> Result<Vec<Job>, StoreError> {
    const DOING: &str = "expire jobs";
    let tx = shared.write(DOING)?;
    let rows = select::fitting(&select::to_expire(&tx, now, scope, overdue, BATCH, DOING)?);
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let local = shared.local(now, &tx).map_err(storage(DOING))?;
    let wanted = Wanted::rows(&rows).map_err(storage(DOING))?.with_results();
    let (steps, unreadable) = load::steps(wanted.load(&tx).map_err(storage(DOING))?);
    let (mut expired, mut changes, mut events) = (Vec::new(), encode::ChangedJobs::default(), Vec::new());
    let mut failed = Vec::new();
    for mut step in steps {
        let stored = shared.stored_results(&step.row);
        if let Some((event, results)) = transition::expire_job(&mut step.job, stored, now) {
            let states = (step.before, &step.job);
            let change = changes.push_with_results(step.row.row, states, &local, (&results, shared.codec));
            change.map_err(storage(DOING))?;
            failed.extend(transition::failed_run(step.before.status, &step.job, &results).cloned());
            events.push(event);
            expired.push(step.job);
        }
    }
    let (rows, numbers, texts) = changes.into_parameters().map_err(storage(DOING))?;
    let outcome = statement!("sql/job/apply.sql", rows, numbers, texts).execute(&tx);
    load::all_written(outcome.map_err(storage(DOING))?, expired.len(), DOING)?;
    count_failed_in_tx(&tx, failed, DOING)?;
    fail_unreadable(&tx, now, &local, &unreadable, DOING)?;
    event_add_in_tx(&tx, shared.codec, &mut events, DOING)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(expired)
}

const CLAIM: &str = "claim jobs";

pub(super) fn job_claim(shared: &Session<'_>, claim: &Claim<'_>) -> Result<Claimed, StoreError> {
    let tx = shared.write(CLAIM)?;
    let claimed = job_claim_in_tx(shared, &tx, claim)?;
    tx.commit().map_err(storage(CLAIM))?;
    Ok(claimed)
}

/// The same within a transaction.
pub(super) fn job_claim_in_tx(shared: &Session<'_>, tx: &Connection, claim: &Claim<'_>) -> Result<Claimed, StoreError> {
    let now = claim.now;
    // One more than asked for shows whether more wait.
    let mut found = select::to_claim(tx, now, claim.scope, claim.limit.saturating_add(1), CLAIM)?;
    let waiting = found.len();
    found.truncate(claim.limit as usize);
    let rows = select::fitting(&found);
    if rows.is_empty() {
        return Ok(Claimed { more: waiting > 0, ..Claimed::default() });
    }
    let local = shared.local(now, tx).map_err(storage(CLAIM))?;
    let wanted = Wanted::rows(&rows).map_err(storage(CLAIM))?.with_arguments();
    let (mut steps, unreadable) = load::steps(wanted.load(tx).map_err(storage(CLAIM))?);
    load::in_order(&mut steps, &rows);
    let mut claims = claim_steps(shared, claim, steps);
    if !claims.claimed.is_empty() {
        let (rows, numbers, texts) = load::changes(&claims.claimed, &local).map_err(storage(CLAIM))?;
        let outcome = statement!("sql/job/claim.sql", rows, numbers, texts).execute(tx);
        load::all_written(outcome.map_err(storage(CLAIM))?, claims.claimed.len(), CLAIM)?;
    }
    if !claims.postponed.is_empty() {
        let (rows, numbers, texts) = load::changes(&claims.postponed, &local).map_err(storage(CLAIM))?;
        let outcome = statement!("sql/job/apply.sql", rows, numbers, texts).execute(tx);
        load::all_written(outcome.map_err(storage(CLAIM))?, claims.postponed.len(), CLAIM)?;
    }
    if !claims.failed.is_empty() {
        load::finish(tx, &claims.failed, &local, CLAIM)?;
    }
    fail_unreadable(tx, now, &local, &unreadable, CLAIM)?;
    event_add_in_tx(tx, shared.codec, &mut claims.events, CLAIM)?;
    Ok(Claimed {
        posts: claims.posts,
        failed: jobs(claims.failed),
        postponed: jobs(claims.postponed),
        unplaced: claims.unplaced,
        more: claims.left > 0 || waiting > rows.len(),
    })
}

/// What jobs that may be claimed come to.
#[derive(Default)]
struct Claims {
    claimed: Vec<Step>,
    postponed: Vec<Step>,
    failed: Vec<Step>,
    posts: Vec<Post>,
    events: Vec<JobEvent>,
    /// How many stay NEW until the live workers are known.
    unplaced: u32,
    /// How many stay NEW, as the payloads of those before them are large enough for one call.
    left: usize,
}

fn claim_steps(shared: &Session<'_>, claim: &Claim<'_>, steps: Vec<Step>) -> Claims {
    let mut claims = Claims::default();
    let mut bytes = 0_usize;
    for mut step in steps {
        if bytes >= MOST_CLAIMED_BYTES {
            claims.left += 1;
            continue;
        }
        let (args, kwargs) = match arguments(shared, &step) {
            Ok(arguments) => arguments,
            Err(reason) => {
                claims.events.push(transition::fail_unreadable(&mut step.job, claim.now, &reason));
                claims.failed.push(step);
                continue;
            }
        };
        match transition::claim(&mut step.job, claim.now, claim.live, claim.policy) {
            ClaimStep::Send => {
                bytes = bytes.saturating_add(args.as_str().len()).saturating_add(kwargs.as_str().len());
                let target = step.job.dispatch_target.clone();
                claims.posts.extend(target.map(|target| transition::post(&step.job, target, args, kwargs)));
                claims.claimed.push(step);
            }
            ClaimStep::Postponed(event) => {
                claims.events.extend(event);
                claims.postponed.push(step);
            }
            ClaimStep::Failed(event) => {
                claims.events.push(event);
                claims.failed.push(step);
            }
            ClaimStep::Unplaced => claims.unplaced += 1,
        }
    }
    claims
}

fn arguments(shared: &Session<'_>, step: &Step) -> Result<(Json, Json), String> {
    let args = shared.payloads.args(&step.row.args).map_err(|error| error.to_string())?;
    let kwargs = shared.payloads.kwargs(&step.row.kwargs).map_err(|error| error.to_string())?;
    Ok((args, kwargs))
}

pub(super) fn job_send_again(
    shared: &Session<'_>,
    now: Timestamp,
    again: Vec<SendAgain>,
    live: Option<&LiveWorkers>,
) -> Result<SentAgain, StoreError> {
    const DOING: &str = "send jobs again";
    if again.is_empty() {
        return Ok(SentAgain::default());
    }
    let tx = shared.write(DOING)?;
    let wanted = Wanted::jobs(again.iter().map(|again| &again.job)).map_err(storage(DOING))?.with_arguments();
    let (steps, _) = load::steps(wanted.load(&tx).map_err(storage(DOING))?);
    let mut steps: HashMap<JobId, Step> = steps.into_iter().map(|step| (step.job.uuid.clone(), step)).collect();
    let (mut sent, mut changed, mut events) = (SentAgain::default(), Vec::<JobId>::new(), Vec::new());
    let mut bytes = 0_usize;
    for again in again {
        if bytes >= MOST_CLAIMED_BYTES {
            sent.left.push(again);
            continue;
        }
        let Some(step) = steps.get_mut(&again.job) else { continue };
        let (args, kwargs) = match arguments(shared, step) {
            Ok(arguments) => arguments,
            Err(reason) => {
                // The claim has read them before. It is asked for until its deadline.
                tracing::warn!(job = %again.job, "Cannot send a job again, its arguments cannot be read: {reason}");
                continue;
            }
        };
        match transition::send_again(&mut step.job, now, &again.why, live) {
            AgainStep::Send(target, event) => {
                bytes = bytes.saturating_add(args.as_str().len()).saturating_add(kwargs.as_str().len());
                sent.posts.push(transition::post(&step.job, target, args, kwargs));
                events.push(event);
            }
            AgainStep::Ask(event) => events.push(event),
            AgainStep::Nothing => continue,
        }
        if !changed.contains(&again.job) {
            changed.push(again.job);
        }
    }
    let changed: Vec<Step> = changed.iter().filter_map(|job| steps.remove(job)).collect();
    if !changed.is_empty() {
        let local = shared.local(now, &tx).map_err(storage(DOING))?;
        let (rows, numbers, texts) = load::changes(&changed, &local).map_err(storage(DOING))?;
        let outcome = statement!("sql/job/send_again.sql", rows, numbers, texts).execute(&tx);
        load::all_written(outcome.map_err(storage(DOING))?, changed.len(), DOING)?;
        event_add_in_tx(&tx, shared.codec, &mut events, DOING)?;
        tx.commit().map_err(storage(DOING))?;
    }
    sent.jobs = jobs(changed);
    Ok(sent)
}

pub(super) fn job_take_polls(
    shared: &Session<'_>,
    now: Timestamp,
    scope: &Scope,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<Poll>, StoreError> {
    const DOING: &str = "choose jobs to ask for";
    let tx = shared.write_along(DOING)?;
    let rows = select::to_poll(&tx, before, scope, limit, DOING)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let local = shared.local(now, &tx).map_err(storage(DOING))?;
    let loaded = Wanted::rows(&rows).map_err(storage(DOING))?.load(&tx).map_err(storage(DOING))?;
    let (mut steps, unreadable) = load::steps(loaded);
    load::in_order(&mut steps, &rows);
    let numbers: Vec<i64> = steps.iter().map(|step| step.row.row).collect();
    let (numbers, seconds) = (encode::array(&numbers).map_err(storage(DOING))?, now.as_seconds_f64());
    statement!("sql/job/take_polls.sql", numbers, seconds).execute(&tx).map_err(storage(DOING))?;
    fail_unreadable(&tx, now, &local, &unreadable, DOING)?;
    tx.commit().map_err(storage(DOING))?;
    Ok(steps.iter().map(|step| transition::poll(&step.job)).collect())
}

pub(super) fn job_realign(shared: &Session<'_>, now: Timestamp) -> Result<u64, StoreError> {
    const DOING: &str = "bring instants back";
    let tx = shared.write(DOING)?;
    let now = now.as_seconds_f64();
    let (retry, wait) = (transition::LONGEST_RETRY.as_secs_f64(), transition::LONGEST_WAIT.as_secs_f64());
    let done = statement!("sql/job/realign.sql", now, retry, wait).execute(&tx);
    let done = done.map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))?;
    Ok(done as u64)
}

pub(super) fn job_recover(shared: &Session<'_>, now: Timestamp, scope: &Scope) -> Result<Recovered, StoreError> {
    const DOING: &str = "recover jobs";
    let tx = shared.write(DOING)?;
    let deadline = now.plus_seconds(600).as_seconds_f64();
    let seconds = now.as_seconds_f64();
    let jobs = match scope {
        Scope::All => String::new(),
        Scope::Jobs(jobs) => encode::ids(jobs).map_err(storage(DOING))?,
    };
    let (requeue, late, ask) = match scope {
        Scope::All => (
            statement!("sql/job/recover.sql", seconds),
            statement!("sql/job/recover_late.sql"),
            statement!("sql/job/recover_polls.sql", deadline),
        ),
        Scope::Jobs(_) => (
            statement!("sql/guest/recover.sql", &jobs, seconds),
            statement!("sql/guest/recover_late.sql", &jobs),
            statement!("sql/guest/recover_polls.sql", &jobs, deadline),
        ),
    };
    let requeued = requeue.execute(&tx).map_err(storage(DOING))?;
    late.execute(&tx).map_err(storage(DOING))?;
    let in_flight = ask.execute(&tx).map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))?;
    Ok(Recovered { requeued: requeued as u64, in_flight: in_flight as u64 })
}

pub(super) fn job_unclaim(shared: &Session<'_>, ids: &[JobId]) -> Result<(), StoreError> {
    const DOING: &str = "take claims back";
    let tx = shared.write(DOING)?;
    let ids = encode::ids(ids).map_err(storage(DOING))?;
    statement!("sql/job/unclaim.sql", ids).execute(&tx).map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))
}

pub(super) fn job_next_due(shared: &Session<'_>, scope: &Scope) -> Result<NextDue, StoreError> {
    const DOING: &str = "look for what is due next";
    let connection = shared.read(DOING)?;
    let due = select::next_due(connection, scope, DOING)?;
    Ok(NextDue {
        release: load::not_before(&due.release),
        miss: load::not_before(&due.miss),
        expire_unsent: load::not_before(&due.expire_unsent),
        expire: load::not_before(&due.expire),
        send: load::not_before(&due.send),
        polled: load::not_before(&due.polled),
    })
}
