//! What a pass asks of the database: each method selects the rows that are due by an index made for it, decides by the
//! pure steps, and writes all of them with one statement.

use norfab_model::{
    Claimed, Job, JobEvent, JobStatus, Link, NextDue, Poll, Recovered, Released, Scope, StoreError, Timestamp,
};

use super::encode;
use super::event::event_add_in_tx;
use super::load::{self, Step, Wanted, fail_unreadable};
use super::row::Cell;
use super::schedule::count_failed_in_tx;
use super::{Shared, scope_parameter, storage};
use crate::transition::{self, BATCH};

pub(super) async fn job_release_due(
    shared: &Shared,
    now: Timestamp,
    scope: &Scope,
    link: Link,
) -> Result<Released, StoreError> {
    const DOING: &str = "release delayed jobs";
    let mut tx = shared.write(DOING).await?;
    let (seconds, scope) = (now.as_seconds_f64(), scope_parameter(scope).map_err(storage(DOING))?);
    let rows = match link {
        Link::Up => sqlx::query_file_scalar!("sql/job/due.sql", seconds, scope, BATCH).fetch_all(&mut *tx).await,
        Link::Down => sqlx::query_file_scalar!("sql/job/overdue.sql", seconds, scope, BATCH).fetch_all(&mut *tx).await,
    };
    let rows = rows.map_err(storage(DOING))?;
    if rows.is_empty() {
        return Ok(Released::default());
    }
    let local = shared.local(now, &mut tx).await.map_err(storage(DOING))?;
    let rows = Wanted::rows(&rows).map_err(storage(DOING))?.load(&mut tx).await.map_err(storage(DOING))?;
    let (mut steps, unreadable) = load::steps(rows);
    let mut events: Vec<JobEvent> =
        steps.iter_mut().filter_map(|step| transition::release(&mut step.job, now, link)).collect();
    let (released, rest): (Vec<Step>, Vec<Step>) =
        steps.into_iter().partition(|step| step.job.status == JobStatus::New);
    let missed: Vec<Step> = rest.into_iter().filter(|step| step.job.status == JobStatus::Missed).collect();
    if !released.is_empty() {
        let changes = load::changes(&released, &local).map_err(storage(DOING))?;
        let outcome = sqlx::query_file!("sql/job/release_due.sql", changes).execute(&mut *tx).await;
        load::all_written(&outcome.map_err(storage(DOING))?, released.len(), DOING)?;
    }
    if !missed.is_empty() {
        load::finish(&mut tx, &missed, &local, DOING).await?;
    }
    fail_unreadable(&mut tx, now, &local, &unreadable, DOING).await?;
    event_add_in_tx(&mut tx, shared.codec, &mut events, DOING).await?;
    tx.commit().await.map_err(storage(DOING))?;
    Ok(Released { released: jobs(released), missed: jobs(missed) })
}

fn jobs(steps: Vec<Step>) -> Vec<Job> {
    steps.into_iter().map(|step| step.job).collect()
}

pub(super) async fn job_expire_due(shared: &Shared, now: Timestamp, scope: &Scope) -> Result<Vec<Job>, StoreError> {
    const DOING: &str = "expire jobs";
    let mut tx = shared.write(DOING).await?;
    let (seconds, scope) = (now.as_seconds_f64(), scope_parameter(scope).map_err(storage(DOING))?);
    let rows = sqlx::query_file_scalar!("sql/job/to_expire.sql", seconds, scope, BATCH)
        .fetch_all(&mut *tx)
        .await
        .map_err(storage(DOING))?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let local = shared.local(now, &mut tx).await.map_err(storage(DOING))?;
    let wanted = Wanted::rows(&rows).map_err(storage(DOING))?.with_results();
    let (steps, unreadable) = load::steps(wanted.load(&mut tx).await.map_err(storage(DOING))?);
    let (mut expired, mut changes, mut events, mut blob) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut failed = Vec::new();
    for mut step in steps {
        let stored = shared.stored_results(&step.row);
        if let Some((event, results)) = transition::expire_job(&mut step.job, stored, now) {
            let change = step.changed(&local).and_then(|change| change.results(&results, shared.codec, &mut blob));
            changes.push(change.map_err(storage(DOING))?);
            failed.extend(transition::failed_run(step.before.status, &step.job, &results).cloned());
            events.push(event);
            expired.push(step.job);
        }
    }
    let changes = encode::array(&changes).map_err(storage(DOING))?;
    let outcome = sqlx::query_file!("sql/job/apply.sql", changes, blob).execute(&mut *tx).await;
    load::all_written(&outcome.map_err(storage(DOING))?, expired.len(), DOING)?;
    count_failed_in_tx(&mut tx, failed, DOING).await?;
    fail_unreadable(&mut tx, now, &local, &unreadable, DOING).await?;
    event_add_in_tx(&mut tx, shared.codec, &mut events, DOING).await?;
    tx.commit().await.map_err(storage(DOING))?;
    Ok(expired)
}

pub(super) async fn job_claim(
    shared: &Shared,
    now: Timestamp,
    scope: &Scope,
    limit: u32,
) -> Result<Claimed, StoreError> {
    const DOING: &str = "claim jobs";
    let mut tx = shared.write(DOING).await?;
    let (seconds, scope) = (now.as_seconds_f64(), scope_parameter(scope).map_err(storage(DOING))?);
    // One more than asked for shows whether more wait.
    let mut rows = sqlx::query_file_scalar!("sql/job/to_claim.sql", seconds, scope, i64::from(limit) + 1)
        .fetch_all(&mut *tx)
        .await
        .map_err(storage(DOING))?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    if rows.is_empty() {
        return Ok(Claimed { more, ..Claimed::default() });
    }
    let local = shared.local(now, &mut tx).await.map_err(storage(DOING))?;
    let wanted = Wanted::rows(&rows).map_err(storage(DOING))?.with_arguments();
    let (mut steps, unreadable) = load::steps(wanted.load(&mut tx).await.map_err(storage(DOING))?);
    load::in_order(&mut steps, &rows);
    let (mut claimed, mut failed, mut posts, mut events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for mut step in steps {
        let args = shared.payloads.args(&step.row.args);
        match args.and_then(|args| Ok((args, shared.payloads.kwargs(&step.row.kwargs)?))) {
            Ok((args, kwargs)) => {
                transition::claim(&mut step.job, now);
                posts.push(transition::post(&step.job, args, kwargs));
                claimed.push(step);
            }
            Err(error) => {
                events.push(transition::fail_unreadable(&mut step.job, now, &error.to_string()));
                failed.push(step);
            }
        }
    }
    let changes = load::changes(&claimed, &local).map_err(storage(DOING))?;
    let outcome = sqlx::query_file!("sql/job/claim.sql", changes).execute(&mut *tx).await;
    load::all_written(&outcome.map_err(storage(DOING))?, claimed.len(), DOING)?;
    if !failed.is_empty() {
        load::finish(&mut tx, &failed, &local, DOING).await?;
    }
    fail_unreadable(&mut tx, now, &local, &unreadable, DOING).await?;
    event_add_in_tx(&mut tx, shared.codec, &mut events, DOING).await?;
    tx.commit().await.map_err(storage(DOING))?;
    Ok(Claimed { posts, failed: jobs(failed), more })
}

pub(super) async fn job_take_polls(
    shared: &Shared,
    now: Timestamp,
    scope: &Scope,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<Poll>, StoreError> {
    const DOING: &str = "choose jobs to ask for";
    let mut tx = shared.write(DOING).await?;
    let (seconds, scope) = (before.as_seconds_f64(), scope_parameter(scope).map_err(storage(DOING))?);
    let rows = sqlx::query_file_scalar!("sql/job/to_poll.sql", seconds, scope, limit)
        .fetch_all(&mut *tx)
        .await
        .map_err(storage(DOING))?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (numbers, seconds) = (encode::array(&rows).map_err(storage(DOING))?, now.as_seconds_f64());
    sqlx::query_file!("sql/job/take_polls.sql", numbers, seconds).execute(&mut *tx).await.map_err(storage(DOING))?;
    let loaded = Wanted::rows(&rows).map_err(storage(DOING))?.load(&mut tx).await.map_err(storage(DOING))?;
    tx.commit().await.map_err(storage(DOING))?;
    // A row that cannot be read has been put off like the others; its deadline will end it.
    let (mut steps, _) = load::steps(loaded);
    load::in_order(&mut steps, &rows);
    Ok(steps.iter().map(|step| transition::poll(&step.job)).collect())
}

pub(super) async fn job_recover(shared: &Shared, now: Timestamp, scope: &Scope) -> Result<Recovered, StoreError> {
    const DOING: &str = "recover jobs";
    let mut tx = shared.write(DOING).await?;
    let scope = scope_parameter(scope).map_err(storage(DOING))?;
    let deadline = now.plus_seconds(600).as_seconds_f64();
    let requeued = sqlx::query_file!("sql/job/recover.sql", scope).execute(&mut *tx).await.map_err(storage(DOING))?;
    let in_flight = sqlx::query_file!("sql/job/recover_polls.sql", scope, deadline)
        .execute(&mut *tx)
        .await
        .map_err(storage(DOING))?;
    tx.commit().await.map_err(storage(DOING))?;
    Ok(Recovered { requeued: requeued.rows_affected(), in_flight: in_flight.rows_affected() })
}

/// What `sql/job/next_due.sql` returns.
struct Due {
    release: Cell,
    miss: Cell,
    expire: Cell,
    send: Cell,
    polled: Cell,
}

pub(super) async fn job_next_due(shared: &Shared, scope: &Scope) -> Result<NextDue, StoreError> {
    const DOING: &str = "look for what is due next";
    let mut connection = shared.read(DOING).await?;
    let scope = scope_parameter(scope).map_err(storage(DOING))?;
    let due = sqlx::query_file_as!(Due, "sql/job/next_due.sql", scope)
        .fetch_one(&mut *connection)
        .await
        .map_err(storage(DOING))?;
    let at = |cell: &Cell| load::not_before(cell, DOING);
    Ok(NextDue {
        release: at(&due.release)?,
        miss: at(&due.miss)?,
        expire: at(&due.expire)?,
        send: at(&due.send)?,
        polled: at(&due.polled)?,
    })
}
