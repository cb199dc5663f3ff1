//! `norfab run`: serves all jobs of the database until it is stopped.

use norfab_client::{Client, ClientError, Role};
use serde::Serialize;

use super::{Site, Verdict};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::{Signals, StopSignal};

/// What `--json` tells at the end.
#[derive(Debug, Serialize)]
struct Report<'a> {
    client: &'a str,
    database: &'a std::path::Path,
    stopped_by: &'static str,
    #[serde(flatten)]
    stats: norfab_client::ClientStats,
}

/// Serves until a signal comes. What happens is in the log.
pub(crate) async fn run(site: &Site, out: &Output, signals: &mut Signals) -> Result<Verdict, Failure> {
    let database = site.database()?;
    let client = tokio::select! {
        client = site.open(Role::Owner) => client?,
        // Nothing was started: it may wait for a command that serves its own job.
        _ = signals.next() => return Ok(Verdict::Done),
    };
    tracing::info!(client = %site.0.client, "Serves the jobs of {}", database.display());
    warn_of_damage(&client).await?;
    let signal = signals.next().await;
    tracing::info!("Stops on {}", signal.as_str());
    let stats = client.stats().await?;
    client.shutdown().await;
    tracing::info!("Stopped");
    report(site, out, &database, signal, stats)
}

/// Jobs that cannot be read are not served; better said at the start than never.
async fn warn_of_damage(client: &Client) -> Result<(), ClientError> {
    let filter = norfab_client::JobFilter { limit: 1000, ..Default::default() };
    let page = client.list_jobs(&filter).await?;
    for row in &page.unreadable {
        tracing::warn!(job = row.uuid, "Cannot read a job, which is left alone: {}", row.reason);
    }
    let active = client.active_jobs().await?.len();
    if active > 0 {
        tracing::info!(jobs = active, "Found jobs that have not ended");
    }
    Ok(())
}

fn report(
    site: &Site,
    out: &Output,
    database: &std::path::Path,
    signal: StopSignal,
    stats: norfab_client::ClientStats,
) -> Result<Verdict, Failure> {
    let report = Report { client: &site.0.client, database, stopped_by: signal.as_str(), stats };
    out.result(&report, String::new)?;
    Ok(Verdict::Done)
}
