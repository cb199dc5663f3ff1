//! A client that adds, moves, withdraws and schedules jobs as fast as it can while it dispatches them, and says on its
//! standard output what it was told to be done; made to be killed. Its arguments are a NorFab folder and a seed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use norfab_client::{
    Client, Clock, Coalesce, Interval, JobId, NewJob, NewSchedule, Overlap, OverlapPolicy, ScheduleKey, SystemClock,
    Workers,
};
use norfab_tests::Chance;
use serde_json::json;

/// Who works at once.
const HANDS: u64 = 6;
/// Schedules of one life.
const MOST_SCHEDULES: u64 = 2;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Done {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the folder is missing")?;
    let seed: u64 = arguments.next().ok_or("the seed is missing")?.parse()?;
    let client = Client::builder().folder(folder).name("rust").build().await?;
    say("up", &[]);
    let schedules = Arc::new(AtomicU64::new(0));
    let hands = (0..HANDS).map(|hand| {
        let chance = Chance::seeded(seed.wrapping_mul(1000).wrapping_add(hand));
        tokio::spawn(Hand { client: client.clone(), chance, schedules: Arc::clone(&schedules) }.work())
    });
    for hand in hands.collect::<Vec<_>>() {
        hand.await??;
    }
    Ok(())
}

/// One line, in one piece: who reads it must not get half of it.
fn say(what: &str, words: &[&str]) {
    let line = format!("{what} {}\n", words.join(" "));
    let mut out = std::io::stdout().lock();
    // Who reads is gone only when this process is to end.
    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

type Done = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// One of several who use the client at once.
struct Hand {
    client: Client,
    chance: Chance,
    schedules: Arc<AtomicU64>,
}

impl Hand {
    async fn work(mut self) -> Done {
        loop {
            match self.chance.below(12) {
                0..=5 => self.immediate().await?,
                6..=9 => self.delayed().await?,
                _ => self.schedule().await?,
            }
        }
    }

    fn job(&mut self) -> NewJob {
        let one = |number: u64| format!("demo-worker-{}", number + 1);
        let workers = match self.chance.below(5) {
            0 => Workers::All,
            1 => Workers::Any,
            2 => Workers::List(vec![one(1), one(0)]),
            _ => Workers::One(one(self.chance.below(2))),
        };
        let text = "x".repeat(usize::try_from(self.chance.below(2000)).unwrap_or(0));
        NewJob::new("demo", "echo").workers(workers).kwargs(json!({ "text": text }))
    }

    async fn immediate(&mut self) -> Done {
        let job = self.job();
        let handle = self.client.submit_job(job).await?;
        say("added", &[handle.id().as_str()]);
        Ok(())
    }

    async fn delayed(&mut self) -> Done {
        let job = self.job().at(self.soon());
        let job = if self.chance.below(4) == 0 { job.grace(1) } else { job };
        let id = self.client.schedule_job(job).await?.id().clone();
        say("added", &[id.as_str()]);
        if self.chance.below(3) == 0 {
            self.reschedule(&id).await;
        }
        if self.chance.below(3) == 0 {
            // It may be on its way by now.
            if self.client.cancel_scheduled_job(&id).await.is_ok() {
                say("cancelled", &[id.as_str()]);
            }
        }
        Ok(())
    }

    async fn reschedule(&mut self, id: &JobId) {
        let at = self.soon();
        let micros = at.as_micros().to_string();
        if self.client.reschedule_job(id, at).await.is_ok() {
            say("moved", &[id.as_str(), &micros]);
        }
    }

    fn soon(&mut self) -> norfab_client::Timestamp {
        SystemClock.now().saturating_add(Duration::from_millis(self.chance.below(1500)))
    }

    async fn schedule(&mut self) -> Done {
        if self.schedules.fetch_add(1, Ordering::Relaxed) >= MOST_SCHEDULES {
            return self.immediate().await;
        }
        let coalesce = match self.chance.below(3) {
            0 => Coalesce::Latest,
            1 => Coalesce::Earliest,
            _ => Coalesce::All,
        };
        let new = NewSchedule::new("demo", "echo", Interval::new(1)?).workers(Workers::Any).coalesce(coalesce);
        let new = match self.chance.below(2) {
            0 => new,
            _ => new.overlap_policy(OverlapPolicy::Allow).max_instances(1 + self.chance.below(5)),
        };
        let new = if self.chance.below(3) == 0 { new.grace(1 + self.chance.below(3)) } else { new };
        let id = self.client.create_job_schedule(new).await?.schedule.uuid;
        say("created", &[id.as_str()]);
        let key = ScheduleKey::from(id.clone());
        for _ in 0..self.chance.below(3) {
            match self.chance.below(8) {
                0..=2 => {
                    self.client.pause_job_schedule(&key).await?;
                    self.delayed().await?;
                    self.client.resume_job_schedule(&key).await?;
                }
                3..=6 => {
                    let run = self.client.run_job_schedule_now(&key, Overlap::Force).await?;
                    say("added", &[run.id().as_str()]);
                }
                _ => {
                    self.client.delete_job_schedule(&key).await?;
                    say("deleted", &[id.as_str()]);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
