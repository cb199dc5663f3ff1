//! Jobs on the real broker and workers, beside a bare DEALER and beside the Python client.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use norfab_client::{Client, Clock, NewJob, Outcome, SystemClock, Workers};
use norfab_tests::{Peer, Security};
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::dealer::Dealer;
use crate::figure::{Figure, Judge, Sample};
use crate::setting::Setting;

const JOBS: usize = 2000;
const WINDOW: usize = 500;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut figures = Vec::new();
    for (workers, name) in [(1, "one worker"), (2, "two workers")] {
        let (mut rates, mut efforts) = (Vec::new(), Vec::new());
        for _ in 0..setting.runs() {
            let Some(run) = runtime.block_on(run(workers, setting.size(JOBS)))? else { return Ok(Vec::new()) };
            rates.push(Sample { ours: run.ours.rate(), limit: run.bare.rate() });
            efforts.push(Sample { ours: run.ours.effort(), limit: run.python.effort() });
        }
        figures.push(Figure::new(format!("real fabric, {name}"), "jobs/s", Judge::AtLeast(0.9), rates));
        let name = format!("real fabric CPU beside Python, {name}");
        figures.push(Figure::new(name, "ms/job", Judge::AtMost(1.0), efforts));
    }
    Ok(figures)
}

/// The same jobs by three clients on one fabric.
struct Run {
    ours: Work,
    bare: Work,
    python: Work,
}

/// What it took to run so many jobs.
#[derive(Deserialize)]
struct Work {
    jobs: usize,
    seconds: f64,
    cpu_seconds: f64,
}

impl Work {
    /// Jobs in a second.
    fn rate(&self) -> f64 {
        self.jobs as f64 / self.seconds
    }

    /// Milliseconds of a core for one job.
    fn effort(&self) -> f64 {
        self.cpu_seconds * 1e3 / self.jobs as f64
    }
}

/// Nothing when the environment says that the real NorFab is not wanted.
async fn run(workers: u32, jobs: usize) -> Result<Option<Run>> {
    let Some(peer) = Peer::builder().workers(workers).security(Security::Plain).start().await else { return Ok(None) };
    let names = peer.about().workers.clone();
    let client = Client::builder().folder(peer.base_dir()).name("bench").build().await?;
    let ours = ours(&client, &peer.about().service, &names, jobs).await?;
    client.shutdown().await;
    let mut dealer = Dealer::connect(&peer.about().endpoint, "bare", &peer.about().service).await?;
    dealer.run_jobs(&names, names.len(), WINDOW).await?;
    let (began, cpu) = (SystemClock.now(), cpu_time()?);
    dealer.run_jobs(&names, jobs, WINDOW).await?;
    let seconds = SystemClock.now().since(began).as_secs_f64();
    let bare = Work { jobs, seconds, cpu_seconds: cpu_time()?.saturating_sub(cpu).as_secs_f64() };
    let python = python(peer.base_dir(), &names, jobs / 4)?;
    Ok(Some(Run { ours, bare, python }))
}

async fn ours(client: &Client, service: &str, workers: &[String], jobs: usize) -> Result<Work> {
    let echo =
        |worker: &String| NewJob::new(service, "echo").workers(Workers::One(worker.clone())).kwargs(json!({"n": 1}));
    for worker in workers {
        client.run_job(echo(worker)).await?;
    }
    let (began, cpu) = (SystemClock.now(), cpu_time()?);
    let mut running = JoinSet::new();
    for worker in workers.iter().cycle().take(jobs) {
        let (client, job) = (client.clone(), echo(worker));
        running.spawn(async move { client.submit_job(job).await?.outcome().await });
    }
    while let Some(outcome) = running.join_next().await {
        let outcome = outcome??;
        ensure!(matches!(outcome, Outcome::Completed { .. }), "an echo did not complete: {outcome:?}");
    }
    let seconds = SystemClock.now().since(began).as_secs_f64();
    Ok(Work { jobs, seconds, cpu_seconds: cpu_time()?.saturating_sub(cpu).as_secs_f64() })
}

/// The same by the Python client.
fn python(base_dir: &Path, workers: &[String], jobs: usize) -> Result<Work> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/peer/effort.py");
    let output = Command::new(norfab_tests::interpreter().context("the peer has no Python")?)
        .arg(script)
        .arg("--base-dir")
        .arg(base_dir)
        .args(["--jobs", &jobs.to_string(), "--workers"])
        .args(workers)
        .output()?;
    if !output.status.success() {
        bail!("the Python client failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("not what it took")
}

/// What this process has used of all cores so far.
fn cpu_time() -> Result<Duration> {
    /// Of the system's clock in which it counts, on every Linux there is.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").context("the CPU time is known on Linux only")?;
    let (_, fields) = stat.rsplit_once(')').context("no statistics of this process")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks: f64 = ticks.sum::<Result<f64, _>>()?;
    Ok(Duration::from_secs_f64(ticks / TICKS))
}
