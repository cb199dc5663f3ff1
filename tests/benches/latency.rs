//! How long `run_job` of an `echo` takes, one after the other, ours and the Python client's on the same real fabric in the
//! same run. `cargo bench -p norfab-tests --bench latency` prints one JSON line for each.

use std::process::Command;
use std::time::{Duration, Instant};

use norfab_client::{Client, Durability, NewJob, Outcome, Workers};
use norfab_tests::{Peer, Security};
use serde_json::json;

const CALLS: usize = 500;
const WORKER: &str = "dummy-worker-1";

#[tokio::main]
async fn main() {
    for security in [Security::Curve, Security::Plain] {
        let Some(peer) = Peer::builder().security(security).start().await else { return };
        // The Python client commits with synchronous NORMAL; FULL is what ours does unless told otherwise.
        for (name, durability) in [("ours, full", Durability::Full), ("ours, normal", Durability::Normal)] {
            let builder = Client::builder().folder(peer.base_dir()).name("bench").durability(durability);
            let client = builder.build().await.expect("opens");
            measure(&client, 20).await;
            let times = measure(&client, CALLS).await;
            client.shutdown().await;
            print(name, security, times);
        }
        print("python", security, python(&peer));
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn measure(client: &Client, calls: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(calls);
    for n in 0..calls {
        let job = NewJob::new("dummy", "echo").workers(Workers::One(WORKER.to_owned())).kwargs(json!({"n": n}));
        let began = Instant::now();
        let outcome = client.run_job(job).await.expect("runs");
        times.push(began.elapsed());
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
    times
}

/// The same calls by the Python client.
fn python(peer: &Peer) -> Vec<Duration> {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("peer/latency.py");
    let output = Command::new(norfab_tests::interpreter().expect("the peer has a Python"))
        .arg(script)
        .arg("--base-dir")
        .arg(peer.base_dir())
        .args(["--calls", &CALLS.to_string()])
        .output()
        .expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seconds: Vec<f64> = serde_json::from_slice(&output.stdout).expect("a list of seconds");
    seconds.into_iter().map(Duration::from_secs_f64).collect()
}

fn print(client: &str, security: Security, mut times: Vec<Duration>) {
    times.sort_unstable();
    let milliseconds = |share: f64| {
        let place = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1;
        (times[place].as_secs_f64() * 1e5).round() / 100.0
    };
    let line = json!({
        "figure": "run_job echo, one after the other",
        "client": client,
        "security": format!("{security:?}"),
        "calls": times.len(),
        "p50_ms": milliseconds(0.5),
        "p99_ms": milliseconds(0.99),
        "min_ms": milliseconds(0.0),
        "max_ms": milliseconds(1.0),
    });
    println!("{line}");
}
