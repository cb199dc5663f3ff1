//! Lists and counts. A page is the newest rows that a filter lets through; which index finds them depends on the filter.

use std::collections::BTreeMap;

use norfab_model::{Job, JobCursor, JobFilter, JobPage, JobStats, JobStatus, StoreError, Timestamp};
use rusqlite::Connection;
use tracing::warn;

use super::encode;
use super::load::Wanted;
use super::row::Cell;
use super::{Session, storage};
use crate::sqlite::statement::{query, row, scalar};
use crate::transition::MOST_UNFINISHED;

pub(super) fn job_list(shared: &Session<'_>, filter: &JobFilter) -> Result<JobPage, StoreError> {
    const DOING: &str = "list jobs";
    // One snapshot for both statements.
    let tx = shared.snapshot(DOING)?;
    let search = Search::new(filter).map_err(storage(DOING))?;
    let mut rows = search.rows(&tx, filter).map_err(storage(DOING))?;
    let page = filter.page_size() as usize;
    let more = rows.len() > page;
    rows.truncate(page);
    let next = rows.last().filter(|_| more).map(|row| JobCursor(*row));
    let loaded = Wanted::rows(&rows).map_err(storage(DOING))?.load(&tx).map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))?;
    let (mut jobs, mut unreadable) = (Vec::with_capacity(loaded.len()), Vec::new());
    for row in loaded.into_iter().rev() {
        match row.job {
            Ok(job) => jobs.push(job),
            Err(row) => unreadable.push(row.what),
        }
    }
    Ok(JobPage { jobs, unreadable, next })
}

/// The parameters that all lists share.
struct Search<'a> {
    before: i64,
    service: Option<&'a str>,
    task: Option<&'a str>,
    workers: Option<String>,
    /// One more than the page has, to see whether there are more.
    limit: i64,
}

impl<'a> Search<'a> {
    fn new(filter: &'a JobFilter) -> Result<Self, encode::EncodeError> {
        Ok(Self {
            before: filter.cursor.map_or(i64::MAX, |JobCursor(row)| row),
            service: filter.service.as_deref(),
            task: filter.task.as_deref(),
            workers: if filter.workers.is_empty() { None } else { Some(encode::array(&filter.workers)?) },
            limit: i64::from(filter.page_size()) + 1,
        })
    }

    /// The numbers of the rows of the page and of one more, the newest first.
    fn rows(&self, connection: &Connection, filter: &JobFilter) -> Result<Vec<i64>, rusqlite::Error> {
        let by_due = filter.due_from.is_some() || filter.due_until.is_some();
        if filter.statuses.is_empty() && filter.schedule.is_none() && !by_due {
            return self.of_any_status(connection);
        }
        let statuses = if filter.statuses.is_empty() { &JobStatus::ALL[..] } else { &filter.statuses[..] };
        let mut rows = Vec::new();
        for status in statuses {
            rows.extend(self.of_status(connection, filter, status.as_str())?);
        }
        rows.sort_unstable_by(|one, other| other.cmp(one));
        rows.dedup();
        rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(rows)
    }

    fn of_any_status(&self, connection: &Connection) -> Result<Vec<i64>, rusqlite::Error> {
        let Self { before, service, task, workers, limit } = self;
        match service {
            Some(service) => {
                scalar!("sql/job/list_by_service.sql", before, service, task, workers, limit).fetch_all(connection)
            }
            None => scalar!("sql/job/list_newest.sql", before, service, task, workers, limit).fetch_all(connection),
        }
    }

    fn of_status(
        &self,
        connection: &Connection,
        filter: &JobFilter,
        status: &str,
    ) -> Result<Vec<i64>, rusqlite::Error> {
        let Self { before, service, task, workers, limit } = self;
        let from = filter.due_from.map(Timestamp::as_seconds_f64);
        let until = filter.due_until.map(Timestamp::as_seconds_f64);
        if let Some(schedule) = filter.schedule.as_ref().map(|schedule| schedule.as_str()) {
            return scalar!(
                "sql/job/list_by_schedule.sql",
                before,
                service,
                task,
                workers,
                limit,
                status,
                schedule,
                from,
                until
            )
            .fetch_all(connection);
        }
        if from.is_some() || until.is_some() {
            let (from, until) = (from.unwrap_or(f64::MIN), until.unwrap_or(f64::MAX));
            return scalar!("sql/job/list_by_due.sql", before, service, task, workers, limit, status, from, until)
                .fetch_all(connection);
        }
        scalar!("sql/job/list_by_status.sql", before, service, task, workers, limit, status).fetch_all(connection)
    }
}

pub(super) fn job_unfinished(shared: &Session<'_>) -> Result<Vec<Job>, StoreError> {
    const DOING: &str = "list unfinished jobs";
    let tx = shared.snapshot(DOING)?;
    let rows = scalar!("sql/job/unfinished.sql", MOST_UNFINISHED).fetch_all(&tx).map_err(storage(DOING))?;
    let loaded = Wanted::rows(&rows).map_err(storage(DOING))?.load(&tx).map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))?;
    let readable = |row: super::row::Loaded| match row.job {
        Ok(job) => Some(job),
        Err(row) => {
            warn!(job = %row.what.uuid, reason = %row.what.reason, "A job cannot be read");
            None
        }
    };
    Ok(loaded.into_iter().filter_map(readable).collect())
}

pub(super) fn stats(shared: &Session<'_>) -> Result<JobStats, StoreError> {
    const DOING: &str = "count jobs";
    let tx = shared.snapshot(DOING)?;
    let by_status = query!(Count, "sql/job/count_by_status.sql").fetch_all(&tx).map_err(storage(DOING))?;
    let by_service = query!(Count, "sql/job/count_by_service.sql").fetch_all(&tx).map_err(storage(DOING))?;
    let events = scalar!("sql/event/count.sql").fetch_one(&tx).map_err(storage(DOING))?;
    tx.commit().map_err(storage(DOING))?;
    let jobs_by_status = by_name(by_status);
    Ok(JobStats {
        total_jobs: jobs_by_status.values().sum(),
        total_events: u64::try_from(events).unwrap_or(0),
        jobs_by_status,
        jobs_by_service: by_name(by_service),
    })
}

row! {
    /// How many jobs have a status or a service.
    struct Count {
        name: Cell,
        jobs: i64,
    }
}

fn by_name(counts: Vec<Count>) -> BTreeMap<String, u64> {
    let mut by_name = BTreeMap::new();
    for Count { name, jobs } in counts {
        *by_name.entry(name.shown()).or_default() += u64::try_from(jobs).unwrap_or(0);
    }
    by_name
}
