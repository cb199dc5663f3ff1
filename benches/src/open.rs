//! How long a client takes to open a large database, to the end of its first pass: the message of a job that was due.

use std::time::Duration;

use anyhow::{Result, ensure};
use norfab_client::{Client, Security, SystemClock};
use norfab_loopback::{Loopback, LoopbackConfig};

use crate::database::{Database, runtime};
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{add_job, finished_jobs, new_job, schedules};
use crate::setting::Setting;
use crate::stopwatch::{now, wall};

/// The longest that it may take, in seconds.
const LONGEST: f64 = 0.5;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let database = Database::new()?;
    let begun = wall();
    finished_jobs(&database, begun, setting.size(1_000_000))?;
    schedules(&database, begun, setting.size(100_000))?;
    let samples = (0..setting.runs()).map(|_| sample(&database)).collect::<Result<Vec<_>>>()?;
    Ok(vec![Figure::new("open", "s", Judge::AtMost(1.0), samples)])
}

fn sample(database: &Database) -> Result<Sample> {
    let due = database.with_store(|store| async move { add_job(&store, wall(), new_job()).await })?.uuid;
    runtime()?.block_on(async {
        let loopback = Loopback::start(LoopbackConfig::new("nornir", 1), SystemClock).await?;
        let begun = now();
        let builder = Client::builder().database(database.path()).endpoint(loopback.endpoint());
        let client = builder.security(Security::Plain).build().await?;
        while !loopback.messages().iter().any(|message| message.uuid == due.as_str()) {
            ensure!(begun.elapsed() < Duration::from_secs(60), "the job that was due is not sent");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = begun.elapsed();
        client.shutdown().await;
        loopback.shutdown().await;
        Ok(Sample { ours: took.as_secs_f64(), limit: LONGEST })
    })
}
