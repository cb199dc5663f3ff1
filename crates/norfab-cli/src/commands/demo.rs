//! `norfab demo`: a fabric in this process, an immediate and a delayed job, then a schedule, and their lives as they
//! happen. It needs nothing and leaves nothing behind.

mod cadence;

use std::path::PathBuf;
use std::time::Duration;

use norfab_client::{
    Client, ClientError, Clock, Job, JobDetail, JobStatus, LinkState, NewJob, Role, ScheduleDetail, Security,
    SystemClock, Timestamp, Update, Uptime, Workers,
};
use norfab_loopback::{Loopback, LoopbackConfig};
use serde_json::json;
use tempfile::TempDir;

use self::cadence::Cadence;
use super::Verdict;
use super::follow::Countdown;
use super::job::not_well;
use super::questions::Handle;
use crate::failure::Failure;
use crate::output::{Moments, Output, Stream, Tint, elapsed, event_line, of_status, plain, status_line};
use crate::signals::{Signals, StopSignal};

/// How far ahead the delayed job is.
const AHEAD: u32 = 3;
/// Both jobs have ended long before; otherwise something is wrong, and that is said.
const LONGEST: Duration = Duration::from_secs(60);

/// Shows it all.
pub(crate) async fn demo(out: &Output, signals: &mut Signals) -> Result<Verdict, Failure> {
    let folder = TempDir::with_prefix("norfab-demo-").map_err(Failure::Temporary)?;
    let fabric = Loopback::start(LoopbackConfig::default(), SystemClock)
        .await
        .map_err(|error| Failure::Demo(error.to_string()))?;
    let place = Place { database: folder.path().join("demo.db"), endpoint: fabric.endpoint().to_owned() };
    let shown = play(&place, out, signals).await;
    fabric.shutdown().await;
    folder.close().map_err(Failure::Temporary)?;
    match shown? {
        Some(signal) => Err(Failure::Interrupted(signal)),
        None => Ok(Verdict::Done),
    }
}

/// Where the demonstration takes place.
#[derive(Debug)]
struct Place {
    database: PathBuf,
    endpoint: String,
}

impl Place {
    /// A client that serves the jobs.
    async fn open(&self) -> Result<Client, ClientError> {
        Client::builder()
            .database(&self.database)
            .name("demo")
            .endpoint(&self.endpoint)
            .security(Security::Plain)
            .role(Role::Owner)
            .build()
            .await
    }
}

/// Plays both acts; gives the signal that broke them off, if one did.
async fn play(place: &Place, out: &Output, signals: &mut Signals) -> Result<Option<StopSignal>, Failure> {
    let client = place.open().await?;
    out.print(&format!(
        "A broker and two workers run in this process, at {}.\nThe client keeps its jobs in {}.\n",
        place.endpoint,
        place.database.display()
    ))?;
    let mut show = Show::new(out);
    let (immediate, delayed) = match show.play(&client, signals).await {
        Ok(Ok(jobs)) => jobs,
        other => {
            client.shutdown().await;
            return other.map(Result::err);
        }
    };
    let schedule = match Cadence::new(place, &show, client).play(signals).await? {
        Ok(schedule) => schedule,
        Err(signal) => return Ok(Some(signal)),
    };
    let value = json!({"immediate": immediate, "delayed": delayed, "schedule": schedule});
    out.result(&value, || closing(&immediate, &delayed, &schedule))?;
    match [&immediate, &delayed].into_iter().find_map(not_well) {
        Some(why) => Err(Failure::Demo(why)),
        None => Ok(None),
    }
}

/// One of the two jobs.
#[derive(Debug)]
struct Life {
    name: &'static str,
    handle: Handle,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    GoesOn,
    Over,
}

impl Life {
    fn new(name: &'static str, handle: Handle) -> Self {
        Self { name, handle, state: State::GoesOn }
    }

    /// What happens next to it; nothing any more when it is over.
    async fn next(&mut self) -> Result<Option<Update>, ClientError> {
        match self.state {
            State::GoesOn => self.handle.next_update().await,
            State::Over => std::future::pending().await,
        }
    }
}

/// The telling of it.
#[derive(Debug)]
struct Show<'a> {
    out: &'a Output,
    began: Uptime,
    countdown: Option<Countdown>,
    /// Until when to count down in lines, where nothing can be drawn.
    due: Option<Timestamp>,
}

impl<'a> Show<'a> {
    fn new(out: &'a Output) -> Self {
        Self { out, began: SystemClock.uptime(), countdown: None, due: None }
    }

    /// Adds both jobs and tells their lives; gives them as they ended, or the signal that broke it off.
    async fn play(
        &mut self,
        client: &Client,
        signals: &mut Signals,
    ) -> Result<Result<(JobDetail, JobDetail), StopSignal>, Failure> {
        link_up(client).await?;
        let now = SystemClock.now();
        let greeting = json!({"message": "good morning"});
        let later =
            NewJob::new("demo", "echo").workers(Workers::Any).kwargs(greeting).at(now.plus_seconds(AHEAD)).grace(30);
        let steps = NewJob::new("demo", "emit").kwargs(json!({"n": 3, "interval": 0.2}));
        let mut delayed = Life::new("delayed", client.schedule_job(later).await?);
        let mut immediate = Life::new("immediate", client.submit_job(steps).await?);
        let stopped = self.tell_both(&mut delayed, &mut immediate, signals).await?;
        self.out.clear_bar();
        if let Some(signal) = stopped {
            return Ok(Err(signal));
        }
        Ok(Ok((client.get_job(immediate.handle.id()).await?, client.get_job(delayed.handle.id()).await?)))
    }

    async fn tell_both(
        &mut self,
        delayed: &mut Life,
        immediate: &mut Life,
        signals: &mut Signals,
    ) -> Result<Option<StopSignal>, Failure> {
        let limit = self.began.saturating_add(LONGEST);
        while delayed.state == State::GoesOn || immediate.state == State::GoesOn {
            tokio::select! {
                update = delayed.next() => self.update(delayed, update?)?,
                update = immediate.next() => self.update(immediate, update?)?,
                signal = signals.next() => return Ok(Some(signal)),
                () = self.tick() => self.count_down()?,
                () = tokio::time::sleep(limit.since(SystemClock.uptime())) => {
                    return Err(Failure::Demo(format!("the jobs did not end within {} s", LONGEST.as_secs())));
                }
            }
        }
        Ok(None)
    }

    fn update(&mut self, life: &mut Life, update: Option<Update>) -> Result<(), Failure> {
        match update {
            Some(Update::Status(job)) => self.status(life.name, &job),
            // What the client notes of itself is told by the statuses already.
            Some(Update::Event(event)) if event.data.as_str() == "{}" => Ok(()),
            Some(Update::Event(event)) => self.say(life.name, &event_line(&event)),
            None => {
                life.state = State::Over;
                Ok(())
            }
        }
    }

    fn status(&mut self, name: &str, job: &Job) -> Result<(), Failure> {
        match (job.status, job.scheduled_for) {
            (JobStatus::Scheduled, Some(at)) => {
                self.say(name, &status_line(job, &Moments::now(), Stream::Stdout))?;
                self.countdown = Countdown::until(at, "  the delayed job starts", self.out);
                self.due = Some(at);
                Ok(())
            }
            (_, Some(_)) if self.due.take().is_some() => {
                self.out.clear_bar();
                self.countdown = None;
                self.say(name, &status_line(job, &Moments::now(), Stream::Stdout))
            }
            _ => self.say(name, &status_line(job, &Moments::now(), Stream::Stdout)),
        }
    }

    /// Ten times a second where a countdown is drawn, else at each full second before the time.
    async fn tick(&self) {
        let Some(due) = self.due else { return std::future::pending().await };
        let left = due.since(SystemClock.now());
        let pause = match self.countdown {
            Some(_) => Duration::from_millis(100),
            None if left.is_zero() => return std::future::pending().await,
            None => Duration::from_nanos(u64::from(left.subsec_nanos())) + Duration::from_millis(1),
        };
        tokio::time::sleep(pause).await;
    }

    fn count_down(&self) -> Result<(), Failure> {
        let now = SystemClock.now();
        match (&self.countdown, self.due) {
            (Some(countdown), _) => {
                countdown.draw(now);
                Ok(())
            }
            (None, Some(due)) if due > now => {
                let seconds = due.since(now).as_secs_f64().ceil();
                self.say("delayed", &format!("starts in {seconds} s"))
            }
            _ => Ok(()),
        }
    }

    fn say(&self, name: &str, what: &str) -> Result<(), Failure> {
        let at = elapsed(SystemClock.uptime().since(self.began));
        let name = Tint::Quiet.on(Stream::Stdout, format!("{name:9}"));
        self.out.print(&format!("{at:>10}  {name}  {what}"))
    }
}

async fn link_up(client: &Client) -> Result<(), Failure> {
    let Some(mut health) = client.watch_health() else { return Ok(()) };
    let up = health.wait_for(|health| health.link == LinkState::Up);
    match tokio::time::timeout(LONGEST, up).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(Failure::Demo("the broker in this process did not answer".to_owned())),
    }
}

/// The last words.
fn closing(immediate: &JobDetail, delayed: &JobDetail, schedule: &ScheduleDetail) -> String {
    let line = |name: &str, detail: &JobDetail| {
        let job = &detail.job;
        let workers: Vec<_> = job.workers_completed.iter().map(String::as_str).collect();
        let status = of_status(job.status).on(Stream::Stdout, job.status);
        let lateness = job.scheduled_for.zip(job.released_at).map(|(due, released)| {
            format!(", released {:.1} ms after its time", released.since(due).as_secs_f64() * 1000.0)
        });
        format!("{name:9}  {status} by {}{}", plain(&workers.join(" and ")), lateness.unwrap_or_default())
    };
    let counters = &schedule.view.schedule.counters;
    let counted = format!(
        "schedule   {} runs, {} passed over while it was paused, {} missed",
        counters.total_runs, counters.passed_over, counters.missed_runs
    );
    format!(
        "\n{}\n{}\n{counted}\n\nNow with a NorFab of your own: norfab --base-dir DIR workers, where DIR holds inventory.yaml.",
        line("immediate", immediate),
        line("delayed", delayed)
    )
}
