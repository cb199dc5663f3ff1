//! `norfab run`: serves all jobs of the database until it is stopped.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use norfab_client::{Client, ClientError, ControlError, JobFilter, JobStats, Role};
use serde::Serialize;

use super::{Site, Verdict};
use crate::failure::Failure;
use crate::output::{Format, Output};
use crate::signals::{Signals, StopSignal};

/// What `--json` tells at the end.
#[derive(Debug, Serialize)]
struct Report<'a> {
    client: &'a str,
    database: &'a Path,
    stopped_by: &'static str,
    /// Left out when the database does not let itself be counted any more.
    #[serde(flatten)]
    stats: Option<JobStats>,
    strays: u64,
    ignored_replies: u64,
}

/// What this process has seen.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    strays: u64,
    ignored_replies: u64,
}

/// How long the count for the report may take: whoever stops the program waits for it.
const COUNTING: Duration = Duration::from_millis(500);

/// Serves until a signal comes. What happens is in the log.
pub(crate) async fn run(site: &Site, out: &Output, signals: &mut Signals) -> Result<Verdict, Failure> {
    let client = tokio::select! {
        client = site.open(Role::Owner) => client?,
        // Nothing was started: it may wait for a command that serves its own job.
        signal = signals.next() => return report(site, out, signal, Seen::default()).await,
    };
    tracing::info!(client = %site.0.client, "Serves the jobs of {}", site.database()?.display());
    let signal = tokio::select! {
        signal = signals.next() => signal,
        () = ended(&client) => return Err(ClientError::Dispatch(ControlError::Ended).into()),
        never = tell_what_is_there(&client) => match never {},
    };
    tracing::info!("Stops on {}", signal.as_str());
    let seen = client
        .health()
        .map_or_else(Seen::default, |health| Seen { strays: health.strays, ignored_replies: health.ignored });
    client.shutdown().await;
    tracing::info!("Stopped");
    report(site, out, signal, seen).await
}

/// Waits until nothing is dispatched any more, which nobody asked for: better start again than live on doing nothing.
async fn ended(client: &Client) {
    if let Some(mut health) = client.watch_health() {
        while health.changed().await.is_ok() {}
    }
}

/// Jobs that cannot be read are not served; better said at the start than never. A failure to look is none to serve.
async fn tell_what_is_there(client: &Client) -> Infallible {
    if let Err(error) = look(client).await {
        tracing::warn!("Cannot look at the jobs: {}", Failure::from(error).describe());
    }
    std::future::pending().await
}

async fn look(client: &Client) -> Result<(), ClientError> {
    let page = client.list_jobs(&JobFilter { limit: 1000, ..JobFilter::default() }).await?;
    for row in &page.unreadable {
        tracing::warn!(job = row.uuid, "Cannot read a job, which fails when it is its turn: {}", row.reason);
    }
    let active = client.active_jobs().await?.len();
    if active > 0 {
        tracing::info!(jobs = active, "Found jobs that have not ended");
    }
    Ok(())
}

async fn report(site: &Site, out: &Output, signal: StopSignal, seen: Seen) -> Result<Verdict, Failure> {
    if out.format() == Format::Json {
        let Seen { strays, ignored_replies } = seen;
        let (client, database, stopped_by) = (site.0.client.as_str(), &site.database()?, signal.as_str());
        let stats = count(site).await;
        out.result(&Report { client, database, stopped_by, stats, strays, ignored_replies }, String::new)?;
    }
    Ok(Verdict::Done)
}

/// Counts what is in the database, behind everything that was to be done in order.
async fn count(site: &Site) -> Option<JobStats> {
    let counted = tokio::time::timeout(COUNTING, async {
        let client = site.open_existing(Role::ReadOnly).await?;
        let stats = client.stats().await?.jobs;
        client.shutdown().await;
        Ok::<_, Failure>(stats)
    });
    match counted.await {
        Ok(Ok(stats)) => Some(stats),
        Ok(Err(failure)) => {
            tracing::warn!("Cannot count the jobs: {}", failure.describe());
            None
        }
        Err(_) => {
            tracing::warn!("Did not count the jobs: it takes too long");
            None
        }
    }
}
