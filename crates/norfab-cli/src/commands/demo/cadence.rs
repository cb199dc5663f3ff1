//! The second act of the demonstration: a schedule that runs every two seconds, is paused, and misses its time while
//! nobody serves it.

use std::time::Duration;

use norfab_client::{
    Client, ClientError, Clock, Coalesce, Interval, LastOutcome, NewSchedule, OverlapPolicy, ScheduleDetail,
    ScheduleKey, ScheduleView, SystemClock, Workers,
};

use super::{LONGEST, Place, Show, link_up};
use crate::failure::Failure;
use crate::output::{Moments, managed, switched_off};
use crate::signals::{Signals, StopSignal};

const EVERY: &str = "2s";
/// Long enough for two occurrences.
const A_WHILE: Duration = Duration::from_secs(5);
/// How often the schedule is looked at.
const LOOK: Duration = Duration::from_millis(100);
const NAME: &str = "schedule";

/// The act, with the client that serves at the moment.
#[derive(Debug)]
pub(super) struct Cadence<'a> {
    place: &'a Place,
    show: &'a Show<'a>,
    client: Option<Client>,
    told: Option<LastOutcome>,
}

impl<'a> Cadence<'a> {
    /// Plays it with a client that serves.
    pub(super) fn new(place: &'a Place, show: &'a Show<'a>, client: Client) -> Self {
        Self { place, show, client: Some(client), told: None }
    }

    /// Plays to the end, or until a signal; no client is left then.
    pub(super) async fn play(mut self, signals: &mut Signals) -> Result<Result<ScheduleDetail, StopSignal>, Failure> {
        let played = tokio::select! {
            played = self.act() => played.map(Ok),
            signal = signals.next() => Ok(Err(signal)),
        };
        if let Some(client) = self.client.take() {
            client.shutdown().await;
        }
        played
    }

    async fn act(&mut self) -> Result<ScheduleDetail, Failure> {
        let key = self.create().await?;
        self.until(&key, |view| view.schedule.counters.total_runs >= 2).await?;
        let paused = self.client()?.pause_job_schedule(&key).await?;
        self.show.say(NAME, &managed(&paused, &Moments::now()))?;
        tokio::time::sleep(A_WHILE).await;
        let resumed = self.client()?.resume_job_schedule(&key).await?;
        self.show.say(NAME, &managed(&resumed, &Moments::now()))?;
        self.until(&key, |view| view.schedule.counters.total_runs >= 3).await?;
        self.be_away().await?;
        self.until(&key, |view| view.schedule.counters.missed_runs > 0 && view.active_jobs == 0).await?;
        let detail = self.client()?.get_job_schedule(&key).await?;
        let deleted = self.client()?.delete_job_schedule(&key).await?;
        self.show.say(NAME, &switched_off(&deleted, &Moments::now()))?;
        Ok(detail)
    }

    async fn create(&self) -> Result<ScheduleKey, Failure> {
        let every: Interval = EVERY.parse().map_err(|error| Failure::Demo(format!("{error}")))?;
        let new = NewSchedule::new("demo", "echo", every)
            .name("demo")
            .workers(Workers::Any)
            .coalesce(Coalesce::All)
            .overlap_policy(OverlapPolicy::Allow)
            .max_instances(3)
            .grace(1);
        let schedule = self.client()?.create_job_schedule(new).await?.schedule;
        self.show.say(NAME, &format!("{} {} {}", schedule.state, schedule.label(), schedule.trigger))?;
        Ok(schedule.uuid.into())
    }

    /// Leaves the schedule alone until it has missed its time.
    async fn be_away(&mut self) -> Result<(), Failure> {
        if let Some(client) = self.client.take() {
            client.shutdown().await;
        }
        self.show.say(NAME, "nobody serves it for a while, as after a crash")?;
        tokio::time::sleep(A_WHILE).await;
        let client = self.place.open().await?;
        let client = self.client.insert(client);
        link_up(client).await?;
        self.show.say(NAME, "somebody serves it again")
    }

    /// Tells what the looks at the schedule come to, until it is as wanted.
    async fn until(&mut self, key: &ScheduleKey, is_wanted: fn(&ScheduleView) -> bool) -> Result<(), Failure> {
        let limit = SystemClock.uptime().saturating_add(LONGEST);
        loop {
            let view = self.client()?.get_job_schedule(key).await?.view;
            if view.schedule.last_outcome != self.told {
                self.told.clone_from(&view.schedule.last_outcome);
                if let Some(outcome) = &self.told {
                    self.show.say(NAME, &outcome.to_string())?;
                }
            }
            if is_wanted(&view) {
                return Ok(());
            }
            if SystemClock.uptime() > limit {
                return Err(Failure::Demo(format!("the schedule did not go on within {} s", LONGEST.as_secs())));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn client(&self) -> Result<&Client, ClientError> {
        self.client.as_ref().ok_or(ClientError::Closed)
    }
}
