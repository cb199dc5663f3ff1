//! What a client costs that has much to wait for and nothing to do: a process of its own, watched from here, and how soon it
//! sees what another process adds.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use norfab_client::{Client, Role, Security, SystemClock};
use norfab_loopback::{Loopback, LoopbackConfig};
use tokio::runtime::Builder;

use crate::database::{Database, runtime};
use crate::figure::{Figure, Judge, Sample};
use crate::fixture::{after, new_job, scheduled_jobs, schedules};
use crate::process::Process;
use crate::setting::Setting;
use crate::stopwatch::{now, wall};

/// The most processor time, in per cent of a core.
const MOST_TIME: f64 = 0.1;
/// The most memory, in MiB.
const MOST_MEMORY: f64 = 32.0;
/// The longest until it sees a change, in seconds.
const LONGEST: f64 = 1.0;
/// What the start may take, which is not measured here, and for how long it is watched then; in seconds.
const START: u32 = 10;
const WINDOW: u32 = 60;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let database = Database::new()?;
    // None is due for an hour.
    let begun = wall();
    schedules(&database, begun, setting.size(100_000))?;
    scheduled_jobs(&database, setting.size(1_000_000), after(begun, 3600))?;
    runtime()?.block_on(async {
        let loopback = Loopback::start(LoopbackConfig::new("nornir", 1), SystemClock).await?;
        let served = Served::start(&database, &loopback)?;
        sleep(Duration::from_secs(setting.rounds(START).into()));
        let (mut time, mut memory, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        let window = Duration::from_secs(setting.rounds(WINDOW).into());
        for _ in 0..setting.runs() {
            let before = served.process().processor_time()?;
            sleep(window);
            let spent = served.process().processor_time()? - before;
            time.push(Sample { ours: spent / window.as_secs_f64() * 100.0, limit: MOST_TIME });
            memory.push(Sample { ours: served.process().most_memory()?, limit: MOST_MEMORY });
        }
        for _ in 0..setting.runs() {
            seen.push(Sample { ours: change(&database, &loopback).await?.as_secs_f64(), limit: LONGEST });
        }
        drop(served);
        loopback.shutdown().await;
        Ok(vec![
            Figure::new("idle, processor", "% of a core", Judge::AtMost(1.0), time),
            Figure::new("idle, memory", "MiB", Judge::AtMost(1.0), memory),
            Figure::new("idle, change seen", "s", Judge::AtMost(1.0), seen),
        ])
    })
}

/// Another client adds a job; how long until its message has arrived.
async fn change(database: &Database, loopback: &Loopback) -> Result<Duration> {
    let other = Client::builder().database(database.path()).role(Role::Beside).build().await?;
    let begun = now();
    let job = other.submit_job(new_job()).await?.id().clone();
    while !loopback.messages().iter().any(|message| message.uuid == job.as_str()) {
        ensure!(begun.elapsed() < Duration::from_secs(60), "the job of the other process is not sent");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = begun.elapsed();
    other.shutdown().await;
    Ok(took)
}

/// A process that serves the database; it ends with this.
struct Served(Child);

impl Served {
    fn start(database: &Database, loopback: &Loopback) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--serve-database").arg(database.path()).arg(loopback.endpoint()).stdin(Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    fn process(&self) -> Process {
        Process::of(self.0.id())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What that process does, until its input ends with the one that measures.
pub(crate) fn serve(database: &Path, endpoint: &str) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let builder = Client::builder().database(database).endpoint(endpoint).security(Security::Plain);
        let client = builder.build().await?;
        let ended = std::thread::spawn(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        tokio::task::spawn_blocking(move || ended.join()).await?.ok();
        client.shutdown().await;
        Ok(())
    })
}
