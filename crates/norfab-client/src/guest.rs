//! A guest: a process that waits for its own jobs and serves them while nobody owns the database.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use norfab_dispatch::{Config, Control, Dispatcher, LinkState, Ports};
use norfab_model::{Broker, Clock, Job, JobId, JobStatus, ScheduleStore, Scope, Store, Timestamp};
use tokio::sync::{Notify, watch};

use crate::ClientError;
use crate::client::Shared;
use crate::owner::{HolderKind, LockError, OwnerLock};

/// What a guest knows: its jobs, and whether it gave up.
#[derive(Debug)]
pub(crate) struct Guest {
    database: PathBuf,
    connect_timeout: Duration,
    jobs: Mutex<Vec<JobId>>,
    adopted: Notify,
    gave_up: watch::Sender<Option<String>>,
}

/// How often a guest looks whether it is needed.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How long before the time of a job a guest connects, so that the job is not late by what connecting takes.
const LEAD: Duration = Duration::from_secs(2);

impl Guest {
    pub(crate) fn new(database: PathBuf, connect_timeout: Duration) -> Self {
        let gave_up = watch::Sender::new(None);
        Self { database, connect_timeout, jobs: Mutex::default(), adopted: Notify::new(), gave_up }
    }

    /// Takes a job as one of its own.
    pub(crate) fn adopt(&self, job: JobId) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        // A new job is a new try.
        self.gave_up.send_replace(None);
        self.adopted.notify_one();
    }

    /// Waits until the fabric could not be reached in time, and tells why.
    pub(crate) async fn gave_up(&self) -> String {
        let mut gave_up = self.gave_up.subscribe();
        match gave_up.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            _ => std::future::pending().await,
        }
    }

    /// Looks after its jobs until it is stopped: whenever one is nearly due or under way and nobody holds the lock, it
    /// serves.
    pub(crate) async fn attend<S: Store + ScheduleStore, B: Broker, C: Clock>(
        &self,
        shared: Arc<Shared<S, C>>,
        connect: impl Fn() -> Result<B, ClientError> + Send,
        config: Config,
        mut stop: watch::Receiver<bool>,
    ) {
        while !*stop.borrow() {
            let now = shared.clock.now();
            if self.gave_up.borrow().is_none() && !self.needed(&shared, now).await.is_empty() {
                match OwnerLock::take(&self.database, HolderKind::Guest) {
                    Ok(lock) => self.serve(&shared, &connect, config.clone(), &mut stop, lock).await,
                    Err(LockError::Held { .. }) => {}
                    Err(LockError::Io(path, error)) => tracing::warn!("Cannot lock {}: {error}", path.display()),
                }
            }
            let next = shared.clock.uptime().saturating_add(LOOK_INTERVAL);
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => {}
                () = self.adopted.notified() => {}
                () = shared.clock.sleep_until(Timestamp::MAX, next) => {}
            }
        }
    }

    /// Its jobs that a dispatcher has something to do for now or in a moment. Those that have ended are forgotten.
    async fn needed<S: Store, C: Clock>(&self, shared: &Shared<S, C>, now: Timestamp) -> Vec<Job> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut needed = Vec::new();
        let mut ended = Vec::new();
        for id in jobs {
            match shared.store.job_find(&id).await {
                Ok(Some(job)) if job.status.is_terminal() => ended.push(id),
                Ok(Some(job)) if due_at(&job).is_none_or(|at| at <= now.saturating_add(LEAD)) => needed.push(job),
                Ok(_) => {}
                Err(error) => tracing::debug!(job = %id, "Cannot look at a job: {error}"),
            }
        }
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| !ended.contains(id));
        needed
    }

    /// Dispatches its own jobs until none of them needs it, or the fabric cannot be reached in time.
    async fn serve<S: Store + ScheduleStore, B: Broker, C: Clock>(
        &self,
        shared: &Arc<Shared<S, C>>,
        connect: &impl Fn() -> Result<B, ClientError>,
        config: Config,
        stop: &mut watch::Receiver<bool>,
        lock: OwnerLock,
    ) {
        let connected = {
            let _home = shared.home.enter();
            connect()
        };
        let broker = match connected {
            Ok(broker) => broker,
            Err(error) => return self.give_up(shared, &error.to_string()).await,
        };
        let ports = Ports { store: Arc::clone(&shared.home.store), broker, clock: shared.clock.clone() };
        let (dispatcher, control, notices) =
            Dispatcher::new(ports, Config { scope: Scope::Jobs(Vec::new()), ..config });
        shared.set_control(Some(control.clone()));
        let watched = shared.home.watch(dispatcher.watch());
        let running = shared.home.spawn(dispatcher.run());
        let spreading = shared.home.spawn({
            let shared = Arc::clone(shared);
            async move { shared.spread(notices).await }
        });
        let unreachable = self.accompany(shared, &control, stop).await;
        control.shutdown();
        shared.set_control(None);
        // A panic of these tasks is not ours to spread; they have nothing to return.
        let _ = running.await;
        drop(watched);
        let _ = spreading.await;
        if let Some(reason) = unreachable {
            self.give_up(shared, &reason).await;
        }
        drop(lock);
    }

    /// Hands its jobs to the running dispatcher and waits until it is not needed. Tells why when the link did not come up
    /// in time, or was lost for as long while a job had not been sent.
    async fn accompany<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        control: &Control,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<String> {
        let mut down_since = shared.clock.uptime();
        let mut health = control.health();
        let mut was_up = false;
        let mut served: Vec<JobId> = Vec::new();
        loop {
            let now = shared.clock.moment();
            let needed = self.needed(shared, now.wall).await;
            if needed.is_empty() || *stop.borrow() {
                return None;
            }
            if health.borrow_and_update().link == LinkState::Up {
                (was_up, down_since) = (true, now.up);
            }
            // Nobody is late before the time of the first job. One that was sent is waited for until its deadline.
            let due = needed.iter().map(|job| due_at(job).map_or(down_since, |at| now.up_at(at)));
            let first = due.min().unwrap_or(down_since);
            let limit = first.max(down_since).saturating_add(self.connect_timeout);
            if now.up >= limit && (!was_up || needed.iter().any(|job| !job.status.is_in_flight())) {
                return Some(why_down(control, self.connect_timeout));
            }
            for job in needed {
                if !served.contains(&job.uuid) {
                    control.serve(job.uuid.clone());
                    served.push(job.uuid);
                }
            }
            let next = now.up.saturating_add(LOOK_INTERVAL.min(limit.since(now.up)).max(Duration::from_millis(1)));
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => {}
                () = self.adopted.notified() => {}
                _ = health.changed() => {}
                () = self.ended(shared, &served) => {}
                () = shared.clock.sleep_until(Timestamp::MAX, next) => {}
            }
        }
    }

    /// Waits for the end of any of these jobs.
    async fn ended<S: Store, C: Clock>(&self, shared: &Shared<S, C>, jobs: &[JobId]) {
        let Some(last) = jobs.last() else { return std::future::pending().await };
        let mut seen = shared.watchers.subscribe(last);
        let over = seen.wait_for(|seen| seen.job.as_ref().is_some_and(|job| job.status.is_terminal())).await.is_ok();
        if !over {
            std::future::pending::<()>().await;
        }
    }

    /// Fails what was never sent, so that nothing of this process is left behind.
    async fn give_up<S: Store, C: Clock>(&self, shared: &Shared<S, C>, reason: &str) {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = format!("the fabric was not reached: {reason}");
        match shared.store.job_give_up(shared.clock.now(), &jobs, &text).await {
            Ok(failed) => failed.into_iter().for_each(|job| shared.watchers.job_changed(job)),
            Err(error) => tracing::error!("Cannot mark the unsent jobs as failed: {error}"),
        }
        self.gave_up.send_replace(Some(reason.to_owned()));
    }
}

/// When a job has to be sent; None when it waits for no time.
fn due_at(job: &Job) -> Option<Timestamp> {
    job.scheduled_for.filter(|_| job.status == JobStatus::Scheduled)
}

/// What is known of why the broker does not answer.
pub(crate) fn why_down(control: &Control, waited: Duration) -> String {
    match &control.health().borrow().link {
        LinkState::Down { reason } => reason.clone(),
        LinkState::Connecting => format!("the broker did not answer within {} s", waited.as_secs_f64()),
        LinkState::Up => format!("the broker did not answer this question within {} s", waited.as_secs_f64()),
    }
}
