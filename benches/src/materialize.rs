//! Due schedules become jobs; the limit is to insert the same jobs one by one.

use anyhow::{Result, ensure};
use norfab_client::Config;
use norfab_model::{Limits, Materialize, ScheduleStore};
use norfab_store::SqliteStore;

use crate::database::{Database, copied, run};
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{START, at, schedules};
use crate::setting::Setting;
use crate::stopwatch::rate;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let count = setting.size(100_000);
    let due = Database::new()?;
    schedules(&due, START, count)?;
    let samples = (0..setting.runs()).map(|_| sample(&due, count)).collect::<Result<Vec<_>>>()?;
    Ok(vec![Figure::new("materialize", "jobs/s", Judge::AtLeast(0.8), samples)])
}

fn sample(due: &Database, count: usize) -> Result<Sample> {
    let ours = due.copy()?;
    let took = ours.until_closed(|store| async move { materialize(&store, count).await })?;
    let limit = insert_one_by_one(&ours, &due.copy()?, count)?;
    Ok(Sample { ours: rate(count, took), limit })
}

async fn materialize(store: &SqliteStore, count: usize) -> Result<()> {
    let limits = Limits::default();
    let mut made = 0;
    loop {
        let request = Materialize {
            now: at(3600),
            limits: &limits,
            budget_left: 0,
            batch: Config::default().schedule_batch,
            seen: &[],
            claim: None,
        };
        let outcome = store.schedule_materialize_due(request).await?;
        made += outcome.created.len();
        if !outcome.more {
            break;
        }
    }
    ensure!(made == count, "{made} jobs were made, not {count}");
    Ok(())
}

/// Inserts what was made into a database with the same schedules.
fn insert_one_by_one(made: &Database, into: &Database, count: usize) -> Result<f64> {
    let (insert, new) = copied(&made.connect()?, "jobs")?;
    ensure!(new.len() == count, "there are {} jobs, not {count}", new.len());
    let took = into.until_closed_raw(|connection| {
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare(&insert)?;
        for row in &new {
            run(&mut insert, row)?;
        }
        drop(insert);
        Ok(transaction.commit()?)
    })?;
    Ok(rate(count, took))
}
