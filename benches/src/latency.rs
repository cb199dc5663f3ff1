//! `run_job` of an `echo`, one after the other, beside the bare exchange of the same messages.

use anyhow::{Result, ensure};
use norfab_client::{Client, Clock, Outcome, SystemClock};

use crate::dealer::Dealer;
use crate::fabric::{Fabric, SERVICE, WORKER};
use crate::figure::{Figure, Judge, Sample};
use crate::place::{Place, echo};
use crate::setting::Setting;
use crate::times::Times;

const CALLS: usize = 1000;
const WARM_UP: usize = 50;
/// What a client may add to the bare exchange, in milliseconds.
const ROOM: f64 = 1.0;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let (mut middle, mut end) = (Vec::new(), Vec::new());
    for _ in 0..setting.runs() {
        let (ours, bare) = runtime.block_on(run(setting.size(CALLS)))?;
        middle.push(Sample { ours: ours.milliseconds(0.5), limit: bare.milliseconds(0.5) });
        end.push(Sample { ours: ours.milliseconds(0.99), limit: ours.milliseconds(0.5) });
    }
    Ok(vec![
        Figure::new("latency p50", "ms", Judge::Within(ROOM), middle),
        Figure::new("latency p99 to p50", "ms", Judge::AtMost(4.0), end),
    ])
}

async fn run(calls: usize) -> Result<(Times, Times)> {
    let fabric = Fabric::start()?;
    let place = Place::new()?;
    let client = place.client(&fabric).await?;
    ours(&client, WARM_UP).await?;
    let ours = ours(&client, calls).await?;
    client.shutdown().await;
    let mut dealer = Dealer::connect(fabric.endpoint(), "bare", SERVICE).await?;
    bare(&mut dealer, WARM_UP).await?;
    Ok((ours, bare(&mut dealer, calls).await?))
}

async fn ours(client: &Client, calls: usize) -> Result<Times> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = SystemClock.now();
        let outcome = client.run_job(echo()).await?;
        times.push(SystemClock.now().since(began));
        ensure!(matches!(outcome, Outcome::Completed { .. }), "an echo did not complete: {outcome:?}");
    }
    Times::of(times)
}

async fn bare(dealer: &mut Dealer, calls: usize) -> Result<Times> {
    let worker = [WORKER.to_owned()];
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = SystemClock.now();
        dealer.run_jobs(&worker, 1, 1).await?;
        times.push(SystemClock.now().since(began));
    }
    Times::of(times)
}
