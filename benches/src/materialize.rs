//! Due schedules become jobs; the limit is to insert the same jobs one by one.

use anyhow::{Result, ensure};
use norfab_model::{Limits, Materialize, ScheduleStore};
use norfab_store::SqliteStore;
use rusqlite::types::Value;

use crate::database::{Database, columns, rows, run};
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{at, schedules};
use crate::setting::Setting;
use crate::stopwatch::{rate, timed};

/// As many as a dispatcher looks at in one call.
const BATCH: u32 = 1000;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let count = setting.size(100_000);
    let due = Database::new()?;
    schedules(&due, count)?;
    let samples = (0..setting.runs()).map(|_| sample(&due, count)).collect::<Result<Vec<_>>>()?;
    Ok(vec![Figure::new("materialize", "jobs/s", Judge::AtLeast(0.8), samples)])
}

fn sample(due: &Database, count: usize) -> Result<Sample> {
    let ours = due.copy()?;
    let rate_of_ours = ours.with_store(|store| async move { materialize(&store, count).await })?;
    let limit = insert_one_by_one(&ours, due.copy()?, count)?;
    Ok(Sample { ours: rate_of_ours, limit })
}

async fn materialize(store: &SqliteStore, count: usize) -> Result<f64> {
    let limits = Limits::default();
    let (mut made, begun) = (0, crate::stopwatch::now());
    loop {
        let request = Materialize { now: at(3600), limits: &limits, budget_left: 0, batch: BATCH, seen: &[] };
        let outcome = store.schedule_materialize_due(request).await?;
        made += outcome.created.len();
        if !outcome.more {
            break;
        }
    }
    let took = begun.elapsed();
    ensure!(made == count, "{made} jobs were made, not {count}");
    Ok(rate(count, took))
}

/// Inserts what was made into a database with the same schedules.
fn insert_one_by_one(made: &Database, into: Database, count: usize) -> Result<f64> {
    let (of_jobs, new) = new_rows(made)?;
    ensure!(new.len() == count, "there are {} jobs, not {count}", new.len());
    let places: Vec<String> = (1..=of_jobs.len()).map(|place| format!("?{place}")).collect();
    let mut connection = into.connect()?;
    let (done, took) = timed(|| -> Result<()> {
        let transaction = connection.transaction()?;
        let sql = format!("INSERT INTO jobs ({}) VALUES ({})", of_jobs.join(", "), places.join(", "));
        let mut insert = transaction.prepare(&sql)?;
        for row in &new {
            run(&mut insert, row)?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    });
    done?;
    Ok(rate(count, took))
}

/// The jobs of a database: their columns that hold anything, and the rows in the order in which they were made.
fn new_rows(made: &Database) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    let connection = made.connect()?;
    let mut used = Vec::new();
    for column in columns(&connection, "jobs")? {
        let any = format!("SELECT EXISTS (SELECT 1 FROM jobs WHERE {column} IS NOT NULL)");
        if connection.query_row(&any, [], |row| row.get(0))? {
            used.push(column);
        }
    }
    let names: Vec<&str> = used.iter().map(String::as_str).collect();
    let rows = rows(&connection, &names, "FROM jobs ORDER BY rowid")?;
    Ok((used, rows))
}
