//! Many large results: the most memory that the process of the client ever has.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use norfab_client::{NewJob, Outcome, Workers};
use serde_json::json;

use crate::fabric::{Fabric, SERVICE, WORKER};
use crate::figure::{Figure, Judge, Sample};
use crate::place::Place;
use crate::setting::Setting;

/// The hidden option.
pub(crate) const OPTION: &str = "--collect-results";

const RESULTS: usize = 1000;
const BYTES: usize = 1_000_000;
/// Mebibytes.
const MOST: f64 = 200.0;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let count = setting.size(RESULTS);
    let samples = (0..setting.runs()).map(|_| Ok(Sample { ours: peak(count)?, limit: MOST }));
    let samples = samples.collect::<Result<Vec<_>>>()?;
    Ok(vec![Figure::new("results peak memory", "MiB", Judge::AtMost(1.0), samples)])
}

/// The peak of a process that does nothing else.
fn peak(count: usize) -> Result<f64> {
    let program = std::env::current_exe().context("this program has no path")?;
    let output = Command::new(program).args([OPTION, &count.to_string()]).output()?;
    ensure!(output.status.success(), "it did not collect them: {}", String::from_utf8_lossy(&output.stderr));
    let kibibytes: f64 = String::from_utf8(output.stdout)?.trim().parse().context("no number of KiB")?;
    Ok(kibibytes / 1024.0)
}

/// What the process with the hidden option does: it prints its peak in KiB.
pub(crate) fn collect(count: usize) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(collect_here(count))?;
    let status = std::fs::read_to_string("/proc/self/status").context("the peak is known on Linux only")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the system tells no peak")?;
    println!("{}", peak.trim().trim_end_matches(" kB"));
    Ok(())
}

async fn collect_here(count: usize) -> Result<()> {
    let fabric = Fabric::start()?;
    let place = Place::new()?;
    let client = place.client(&fabric).await?;
    let mut handles = Vec::with_capacity(count);
    for number in 0..count {
        let job = NewJob::new(SERVICE, "echo").workers(Workers::One(WORKER.to_owned()));
        handles.push(client.submit_job(job.kwargs(json!({"data": text(number)}))).await?);
    }
    for handle in &mut handles {
        let outcome = handle.outcome().await?;
        let Outcome::Completed { results } = outcome else { anyhow::bail!("an echo did not complete: {outcome:?}") };
        let bytes: usize = results.values().map(|result| result.as_str().len()).sum();
        ensure!(bytes > BYTES, "a result of {bytes} bytes only");
    }
    drop(handles);
    client.shutdown().await;
    Ok(())
}

/// Letters without a pattern, so that compression does not make little of them.
fn text(seed: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed as u64 + 0x9E37_79B9_7F4A_7C15;
    let letters = (0..BYTES).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        LETTERS.get((state >> 58) as usize).map_or('A', |letter| char::from(*letter))
    });
    letters.collect()
}
