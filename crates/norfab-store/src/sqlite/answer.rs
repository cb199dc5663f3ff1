//! Answers to workers' questions: another process leaves them in the database, the one that dispatches takes them out.

use std::collections::{HashMap, HashSet};

use norfab_model::{InputAnswer, Job, JobId, Scope, StoreError, StoredAnswer, Timestamp};
use rusqlite::Connection;
use tracing::warn;

use super::encode;
use super::load::{self, Wanted};
use super::row::Cell;
use super::{Session, storage};
use crate::sqlite::statement::{query, row, statement};
use crate::transition;

row! {
    /// What `sql/answer/waiting.sql` returns.
    struct Row {
        id: i64,
        job: Cell,
        worker: Cell,
        answer: Cell,
    }
}

impl Row {
    /// The answer; none when the row holds none. What it holds is told to nobody.
    fn read(&self) -> Option<(JobId, &str, InputAnswer)> {
        let job = JobId::new(self.job.text().ok()?).ok()?;
        let answer = serde_json::from_str(self.answer.text().ok()?).ok()?;
        Some((job, self.worker.text().ok()?, answer))
    }
}

pub(super) fn answer_add(
    shared: &Session<'_>,
    now: Timestamp,
    job: &JobId,
    worker: &str,
    answer: &InputAnswer,
) -> Result<(), StoreError> {
    const DOING: &str = "hand an answer over";
    let answer = serde_json::to_string(answer).map_err(storage(DOING))?;
    let tx = shared.write(DOING)?;
    let seconds = now.as_seconds_f64();
    let added =
        statement!("sql/answer/add.sql", job.as_str(), worker, answer, seconds).execute(&tx).map_err(storage(DOING))?;
    if added == 0 {
        return Err(StoreError::NoSuchJob(job.clone()));
    }
    tx.commit().map_err(storage(DOING))
}

const TAKE: &str = "take answers";

/// Whether there is any to take.
pub(super) fn any_waits(shared: &Session<'_>, scope: &Scope) -> Result<bool, StoreError> {
    Ok(!waiting(shared.read(TAKE)?, scope, 1, TAKE)?.is_empty())
}

pub(super) fn answer_take(shared: &Session<'_>, scope: &Scope, limit: usize) -> Result<Vec<StoredAnswer>, StoreError> {
    const DOING: &str = TAKE;
    let tx = shared.write(DOING)?;
    let mut taken = Vec::new();
    // What is dropped makes room for more.
    while taken.len() < limit {
        let rows = waiting(&tx, scope, limit - taken.len(), DOING)?;
        if rows.is_empty() {
            break;
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let ids = encode::array(&ids).map_err(storage(DOING))?;
        statement!("sql/answer/delete.sql", ids).execute(&tx).map_err(storage(DOING))?;
        taken.extend(open_ones(&tx, &rows, DOING)?);
    }
    tx.commit().map_err(storage(DOING))?;
    Ok(taken)
}

fn waiting(connection: &Connection, scope: &Scope, limit: usize, doing: &'static str) -> Result<Vec<Row>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = match scope {
        Scope::All => query!(Row, "sql/answer/waiting.sql", limit).fetch_all(connection),
        Scope::Jobs(jobs) => {
            let jobs = encode::ids(jobs).map_err(storage(doing))?;
            query!(Row, "sql/answer/waiting_of.sql", jobs, limit).fetch_all(connection)
        }
    };
    rows.map_err(storage(doing))
}

/// The answers whose question is still open.
fn open_ones(connection: &Connection, rows: &[Row], doing: &'static str) -> Result<Vec<StoredAnswer>, StoreError> {
    let answers: Vec<(JobId, &str, InputAnswer)> = rows.iter().filter_map(Row::read).collect();
    if answers.len() < rows.len() {
        warn!(answers = rows.len() - answers.len(), "Dropped answers that cannot be read");
    }
    let jobs: HashSet<&JobId> = answers.iter().map(|(job, ..)| job).collect();
    let loaded = Wanted::jobs(jobs).map_err(storage(doing))?.load(connection).map_err(storage(doing))?;
    let (steps, _) = load::steps(loaded);
    let jobs: HashMap<&JobId, &Job> = steps.iter().map(|step| (&step.job.uuid, &step.job)).collect();
    let open = answers.iter().filter_map(|(job, worker, answer)| {
        let job = jobs.get(job).filter(|job| transition::awaits(job, worker, answer))?;
        Some(StoredAnswer {
            job: job.uuid.clone(),
            service: job.service.clone(),
            worker: (*worker).to_owned(),
            answer: answer.clone(),
        })
    });
    Ok(open.collect())
}
