//! A year of missed seconds: how long a pass takes over them, and whether making all of them needs ever more memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use norfab_client::Config;
use norfab_model::{Coalesce, Limits, Materialize, Materialized, OverlapPolicy, ScheduleStore};
use norfab_store::SqliteStore;

use crate::database::Database;
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{START, add_schedule, at, new_schedule};
use crate::process::Process;
use crate::setting::Setting;
use crate::stopwatch::now;

const YEAR: i64 = 365 * 86_400;
/// The longest that one pass over them may take, in milliseconds.
const LONGEST: f64 = 5.0;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, coalesce) in [("catch-up latest", Coalesce::Latest), ("catch-up earliest", Coalesce::Earliest)] {
        let samples = (0..setting.runs()).map(|_| one_pass(coalesce)).collect::<Result<Vec<_>>>()?;
        figures.push(Figure::new(name, "ms", Judge::AtMost(1.0), samples));
    }
    let samples = (0..setting.runs()).map(|_| memory(setting.size(100))).collect::<Result<Vec<_>>>()?;
    figures.push(Figure::new("catch-up all, memory", "MiB", Judge::AtMost(1.1), samples));
    Ok(figures)
}

async fn pass(store: &SqliteStore) -> Result<(Materialized, Duration)> {
    let (limits, config) = (Limits::default(), Config::default());
    let (budget_left, batch) = (config.catch_up_limit, config.schedule_batch);
    let request = Materialize { now: at(YEAR), limits: &limits, budget_left, batch, seen: &[], claim: None };
    let begun = now();
    let made = store.schedule_materialize_due(request).await?;
    Ok((made, begun.elapsed()))
}

fn one_pass(coalesce: Coalesce) -> Result<Sample> {
    let new = new_schedule(1)?.coalesce(coalesce);
    let took = Database::new()?.with_store(|store| async move {
        add_schedule(&store, START, new).await?;
        let (made, took) = pass(&store).await?;
        ensure!(made.created.len() == 1, "{} jobs were made, not 1", made.created.len());
        Ok(took)
    })?;
    Ok(Sample { ours: took.as_secs_f64() * 1e3, limit: LONGEST })
}

/// The memory of this process after so many passes that make all they may, beside that after a tenth of them.
fn memory(passes: usize) -> Result<Sample> {
    let database = Database::new()?;
    let new = new_schedule(1)?.coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000);
    database.with_store(|store| {
        let connection = database.connect();
        async move {
            let connection = connection?;
            add_schedule(&store, START, new).await?;
            let mut first = 0.0;
            for number in 0..passes {
                let (made, _) = pass(&store).await?;
                ensure!(made.created.len() > 1, "only {} jobs were made", made.created.len());
                // Else there would soon be no room for more.
                connection.execute("UPDATE jobs SET status = 'COMPLETED' WHERE status = 'NEW'", [])?;
                if number == passes / 10 {
                    first = Process::this().memory()?;
                }
            }
            Ok(Sample { ours: Process::this().memory()?, limit: first })
        }
    })
}
