//! The client: adds jobs, follows them, asks the broker. What runs behind it depends on its [`Role`](crate::Role).

mod add;

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use norfab_dispatch::{Config, Control, ControlError, Dispatcher, Health, Notice, Ports};
use norfab_model::{
    Broker, Clock, Job, JobDetail, JobEvent, JobFilter, JobId, JobPage, JobStats, Json, Limits, NewJob, ScheduleStore,
    Start, Store, StoreError, Timestamp,
};
use norfab_nfp::NfpBroker;
use norfab_store::SqliteStore;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub(crate) use self::add::to_the_end;
use crate::aside::{self, Question};
use crate::guest::Guest;
use crate::home::Home;
use crate::owner::OwnerLock;
use crate::watch::Watchers;
use crate::{ClientBuilder, ClientError, JobHandle, Outcome, SystemClock};

/// A NorFab client, generic over its store, its broker and its clock. Cheap to clone; when the last clone is dropped the
/// dispatcher is told to end, and [`shutdown`](Client::shutdown) waits for it.
///
/// ```no_run
/// use norfab_client::{Client, Json, NewJob, Outcome};
///
/// # async fn example() -> Result<(), norfab_client::ClientError> {
/// let client = Client::builder().folder("/etc/norfab").build().await?;
/// let job = NewJob::new("nornir", "cli").kwargs(serde_json::json!({"commands": ["show clock"]}));
/// if let Outcome::Completed { results } = client.run_job(job).await? {
///     println!("{} workers answered", results.len());
/// }
/// client.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct Client<S: Store + ScheduleStore = SqliteStore, B: Broker = NfpBroker, C: Clock = SystemClock> {
    core: Arc<Core<S, B, C>>,
}

/// What a client and its handles share.
#[derive(Debug)]
pub(crate) struct Shared<S, C> {
    pub(crate) store: Arc<S>,
    pub(crate) clock: C,
    pub(crate) watchers: Watchers,
    pub(crate) home: Home<S>,
    control: Mutex<Option<Control>>,
}

/// Makes a connection to the broker under a name.
pub(crate) type Connect<B> = Arc<dyn Fn(&str) -> Result<B, ClientError> + Send + Sync>;

/// What a client is made of.
pub(crate) struct Parts<S, B, C> {
    pub(crate) store: Arc<S>,
    pub(crate) home: Home<S>,
    pub(crate) clock: C,
    pub(crate) limits: Limits,
    /// The client's name; the broker knows it by this.
    pub(crate) name: String,
    /// How the broker is reached, where it may be.
    pub(crate) connect: Option<Connect<B>>,
}

struct Core<S: Store + ScheduleStore, B: Broker, C: Clock> {
    shared: Arc<Shared<S, C>>,
    limits: Limits,
    name: String,
    connect: Option<Connect<B>>,
    guest: Option<Arc<Guest>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    stop: watch::Sender<bool>,
    broker: PhantomData<fn() -> B>,
}

/// What a client can tell of itself.
#[derive(Debug, Clone, Serialize)]
pub struct ClientStats {
    /// Counts over the job database.
    #[serde(flatten)]
    pub jobs: JobStats,
    /// Messages that could not be used, since this process dispatches.
    pub strays: u64,
    /// Replies that changed nothing, since this process dispatches.
    pub ignored_replies: u64,
}

impl Client {
    /// Begins to build a client for a NorFab folder or for explicit values.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Client<S, B, C> {
    /// A client over other ports than the usual ones: another store, a scripted broker, a clock moved by hand. It
    /// dispatches at once, and takes no lock.
    #[must_use]
    pub fn from_ports(ports: Ports<S, B, C>, config: Config, limits: Limits) -> Self {
        let Ports { store, broker, clock } = ports;
        let home = Home::of_caller(Arc::clone(&store));
        let parts = Parts { store, home, clock, limits, name: String::new(), connect: None };
        let client = Self::assemble(parts, None);
        client.dispatch(broker, config, None);
        client
    }

    /// A client without anything that runs behind it yet.
    pub(crate) fn assemble(parts: Parts<S, B, C>, guest: Option<Arc<Guest>>) -> Self {
        let Parts { store, home, clock, limits, name, connect } = parts;
        let shared = Shared { store, home, clock, watchers: Watchers::default(), control: Mutex::new(None) };
        let core = Core {
            shared: Arc::new(shared),
            limits,
            name,
            connect,
            guest,
            tasks: Mutex::default(),
            stop: watch::Sender::new(false),
            broker: PhantomData,
        };
        Self { core: Arc::new(core) }
    }

    /// Starts the dispatcher of an owner. The lock is freed when it has ended.
    pub(crate) fn dispatch(&self, broker: B, config: Config, lock: Option<OwnerLock>) {
        let shared = Arc::clone(&self.core.shared);
        let ports = Ports { store: Arc::clone(&shared.home.store), broker, clock: shared.clock.clone() };
        // What may not be asked for may not be made of a schedule either.
        let config = Config { limits: self.core.limits.clone(), ..config };
        let (dispatcher, control, notices) = Dispatcher::new(ports, config);
        shared.set_control(Some(control.clone()));
        let clock = shared.clock.clone();
        let watched = self.core.shared.home.watch(dispatcher.watch());
        self.spawn(async move {
            match lock {
                Some(lock) => lock.guard(dispatcher.run(), &control, clock).await,
                None => dispatcher.run().await,
            }
            drop(watched);
        });
        self.spawn(async move {
            shared.spread(notices).await;
            shared.watchers.close();
        });
    }

    /// Starts what a client without dispatcher needs: it looks for changes of other processes, and serves its own jobs
    /// while nobody else does, if it is a guest.
    pub(crate) fn look_on(&self, config: &Config) {
        let shared = Arc::clone(&self.core.shared);
        let stop = self.core.stop.subscribe();
        self.spawn(async move { shared.watch_others(stop).await });
        if let (Some(guest), Some(connect)) = (self.core.guest.clone(), self.core.connect.clone()) {
            let (shared, name, stop) =
                (Arc::clone(&self.core.shared), self.core.name.clone(), self.core.stop.subscribe());
            let config = config.clone();
            self.spawn(async move { guest.attend(shared, move || connect(&name), config, stop).await });
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.core.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(self.core.shared.home.spawn(task));
    }

    /// Adds a job that starts now, and waits for its outcome.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] and [`ClientError::Store`], before anything is sent; [`ClientError::Unreachable`] half a
    /// minute past the deadline, when the link is lost while the job is under way and its result cannot be asked for (it
    /// is, later: see [`job`](Self::job)). A job that fails is no error but an [`Outcome`].
    pub async fn run_job(&self, job: NewJob) -> Result<Outcome, ClientError> {
        self.add_and_wait(immediate(job)?).await
    }

    /// Adds a job that starts now. It is in the database when this returns.
    ///
    /// # Errors
    /// [`ClientError::Invalid`], also when the job has a time (that is [`schedule_job`](Self::schedule_job)'s), and
    /// [`ClientError::Store`].
    pub async fn submit_job(&self, job: NewJob) -> Result<JobHandle<S, C>, ClientError> {
        self.add(immediate(job)?).await
    }

    /// Adds a job that starts at its time. It is in the database when this returns, and survives restarts from then on.
    ///
    /// # Errors
    /// [`ClientError::Invalid`], also when the job has no time ([`NewJob::at`]), and [`ClientError::Store`].
    pub async fn schedule_job(&self, job: NewJob) -> Result<JobHandle<S, C>, ClientError> {
        if job.start == Start::Now {
            return Err(ClientError::NoTime);
        }
        self.add(job).await
    }

    /// Withdraws a job that waits for its time.
    ///
    /// # Errors
    /// [`ClientError::Store`] with [`StoreError::NotScheduled`] in any other status, or [`StoreError::NoSuchJob`].
    pub async fn cancel_scheduled_job(&self, id: &JobId) -> Result<Job, ClientError> {
        let now = self.core.shared.clock.now();
        let id = id.clone();
        self.change(async move |shared| shared.store.job_cancel(now, &id).await).await
    }

    /// Gives a job that waits for its time another one. Its grace goes with it.
    ///
    /// # Errors
    /// As [`cancel_scheduled_job`](Self::cancel_scheduled_job), and [`ClientError::Invalid`] for a time beyond the limits.
    pub async fn reschedule_job(&self, id: &JobId, scheduled_for: Timestamp) -> Result<Job, ClientError> {
        let now = self.core.shared.clock.now();
        let before = self.core.shared.find(id).await?;
        let grace = before.scheduled_for.zip(before.start_deadline).map(|(at, deadline)| deadline.since(at));
        self.core.limits.check_time(now, scheduled_for, grace.map(|grace| scheduled_for.saturating_add(grace)))?;
        let id = id.clone();
        self.change(async move |shared| shared.store.job_reschedule(now, &id, scheduled_for).await).await
    }

    /// A handle to a job of the database.
    ///
    /// # Errors
    /// [`ClientError::Store`] with [`StoreError::NoSuchJob`].
    pub async fn job(&self, id: &JobId) -> Result<JobHandle<S, C>, ClientError> {
        let handle = JobHandle::new(id.clone(), Arc::clone(&self.core.shared));
        handle.job().await?;
        Ok(handle)
    }

    /// A handle to a job, which this client serves if it is a guest: for a command that waits for a job added before.
    ///
    /// # Errors
    /// As [`job`](Self::job).
    pub async fn attend_job(&self, id: &JobId) -> Result<JobHandle<S, C>, ClientError> {
        let handle = self.job(id).await?;
        if let Some(guest) = &self.core.guest {
            guest.adopt(id.clone());
        }
        Ok(handle)
    }

    /// Handles to all jobs that have not ended, the oldest first.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn active_jobs(&self) -> Result<Vec<JobHandle<S, C>>, ClientError> {
        let jobs = self.core.shared.store.job_unfinished().await?;
        Ok(jobs.into_iter().map(|job| JobHandle::new(job.uuid, Arc::clone(&self.core.shared))).collect())
    }

    /// A job with its arguments and results.
    ///
    /// # Errors
    /// [`ClientError::Store`] with [`StoreError::NoSuchJob`], or [`StoreError::Unreadable`] when a payload is corrupt.
    pub async fn get_job(&self, id: &JobId) -> Result<JobDetail, ClientError> {
        self.core.shared.detail(id).await
    }

    /// A job without its payloads: readable also when they are corrupt.
    ///
    /// # Errors
    /// [`ClientError::Store`] with [`StoreError::NoSuchJob`].
    pub async fn find_job(&self, id: &JobId) -> Result<Job, ClientError> {
        self.core.shared.find(id).await
    }

    /// A page of jobs, the newest first.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn list_jobs(&self, filter: &JobFilter) -> Result<JobPage, ClientError> {
        Ok(self.core.shared.store.job_list(filter).await?)
    }

    /// The events of a job behind the event with this number (0 for all), in order, at most `limit`.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn job_events(&self, id: &JobId, after: i64, limit: u32) -> Result<Vec<JobEvent>, ClientError> {
        Ok(self.core.shared.store.event_list(id, after, limit).await?)
    }

    /// Asks the broker itself: `show_workers`, `show_broker_version` or another of its tasks.
    ///
    /// A client that does not dispatch opens a connection of its own for it, under another name, so that it cuts nobody
    /// off.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] with what is known of the cause when no answer comes within `timeout`; of a client that
    /// does not dispatch also sooner, when the broker takes no connection like ours, so that to try again would not help.
    pub async fn mmi(&self, task: &str, kwargs: Json, timeout: Duration) -> Result<Json, ClientError> {
        let answer = match self.core.shared.control() {
            Some(control) => ask(&control, task, kwargs, timeout).await,
            None => self.ask_aside(task, kwargs, timeout).await,
        };
        match answer {
            Err(ClientError::Dispatch(ControlError::Ended)) => Err(ClientError::Closed),
            answer => answer,
        }
    }

    async fn ask_aside(&self, task: &str, kwargs: Json, timeout: Duration) -> Result<Json, ClientError> {
        let connect = self.core.connect.as_ref().ok_or(ClientError::NoBroker)?;
        let shared = &self.core.shared;
        let mark = JobId::generate(shared.clock.now());
        let suffix = mark.as_str().get(24..).unwrap_or_default();
        let mut broker = connect(&format!("{}-ask-{suffix}", self.core.name))?;
        aside::ask(&mut broker, Question { id: mark, task, kwargs }, timeout).await
    }

    /// Counts over the job database and the messages of this process.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn stats(&self) -> Result<ClientStats, ClientError> {
        let jobs = self.core.shared.store.stats().await?;
        let health = self.health();
        let (strays, ignored_replies) = health.map_or((0, 0), |health| (health.strays, health.ignored));
        Ok(ClientStats { jobs, strays, ignored_replies })
    }

    /// How the dispatcher of this process is; None when there is none at the moment.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        self.core.shared.control().map(|control| control.health().borrow().clone())
    }

    /// The health of the dispatcher of this process, to wait for changes of it; None when there is none at the moment.
    #[must_use]
    pub fn watch_health(&self) -> Option<watch::Receiver<Health>> {
        self.core.shared.control().map(|control| control.health())
    }

    /// Waits until a guest has given up to reach the fabric, and tells why. Never returns for other clients.
    pub async fn unreachable(&self) -> String {
        match &self.core.guest {
            Some(guest) => guest.gave_up().await,
            None => std::future::pending().await,
        }
    }

    /// Ends in order: no new dispatch, what is outstanding committed, the socket closed, the lock freed. Jobs in flight go
    /// on at their workers and are picked up by the next start. Takes less than two seconds: what does not end by then,
    /// because the database or the broker hangs, is cut off, which loses no more than a kill does: nothing.
    pub async fn shutdown(self) {
        self.core.signal_stop();
        let mut tasks = std::mem::take(&mut *self.core.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let orderly = async {
            while let Some(task) = tasks.last_mut() {
                if let Err(error) = task.await {
                    tracing::error!("A task of the client ended badly: {error}");
                }
                tasks.pop();
            }
            self.core.shared.watchers.close();
            self.core.shared.store.close().await;
        };
        if tokio::time::timeout(STOP_LIMIT, orderly).await.is_err() {
            tracing::warn!("Something did not end in time and is cut off; the next start picks up what is under way");
            tasks.iter().for_each(JoinHandle::abort);
            self.core.shared.watchers.close();
            // They end where they wait, and the lock is freed with them. One whose thread waits for the disk does so once the
            // disk answers: until then it may still write, and keeps the lock.
            let cut_off = async {
                for task in tasks {
                    // That it was cut off was said.
                    let _ = task.await;
                }
            };
            let _ = tokio::time::timeout(CUT_OFF_LIMIT, cut_off).await;
        }
    }

    pub(crate) fn store(&self) -> &S {
        &self.core.shared.store
    }

    pub(crate) fn clock(&self) -> &C {
        &self.core.shared.clock
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.core.limits
    }

    /// A handle to a job that this client made. A guest serves it.
    pub(crate) fn follow(&self, id: &JobId) -> JobHandle<S, C> {
        if let Some(guest) = &self.core.guest {
            guest.adopt(id.clone());
        }
        JobHandle::new(id.clone(), Arc::clone(&self.core.shared))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<S, C>> {
        &self.core.shared
    }
}

fn immediate(job: NewJob) -> Result<NewJob, ClientError> {
    if job.start == Start::Now { Ok(job) } else { Err(ClientError::TimeGiven) }
}

async fn ask(control: &Control, task: &str, kwargs: Json, timeout: Duration) -> Result<Json, ClientError> {
    match tokio::time::timeout(timeout, control.mmi(task.to_owned(), kwargs)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ClientError::Unreachable { reason: crate::guest::why_down(control, timeout) }),
    }
}

impl<S: Store, C: Clock> Shared<S, C> {
    pub(crate) fn control(&self) -> Option<Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the dispatcher of this process look at the database anew.
    pub(crate) fn wake(&self) {
        if let Some(control) = self.control() {
            control.wake();
        }
    }

    pub(crate) fn set_control(&self, control: Option<Control>) {
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control;
    }

    pub(crate) async fn find(&self, id: &JobId) -> Result<Job, ClientError> {
        Ok(self.store.job_find(id).await?.ok_or_else(|| StoreError::NoSuchJob(id.clone()))?)
    }

    pub(crate) async fn detail(&self, id: &JobId) -> Result<JobDetail, ClientError> {
        Ok(self.store.job_detail(id).await?.ok_or_else(|| StoreError::NoSuchJob(id.clone()))?)
    }

    /// Passes on what a dispatcher tells, until it ends.
    pub(crate) async fn spread(&self, mut notices: mpsc::UnboundedReceiver<Notice>) {
        while let Some(notice) = notices.recv().await {
            match notice {
                Notice::Job(job) => self.watchers.job_changed(*job),
                Notice::Ended(job, results) => self.watchers.job_ended(*job, results),
                Notice::Event(event) => self.watchers.event_stored(&event.job_uuid),
                Notice::ForeignChange => self.look_again().await,
            }
        }
    }

    /// Looks a few times a second whether another process changed the database.
    async fn watch_others(&self, mut stop: watch::Receiver<bool>) {
        let mut mark = None;
        loop {
            match self.store.change_mark().await {
                Ok(now) if mark.replace(now) != Some(now) => self.look_again().await,
                Ok(_) => {}
                Err(error) => tracing::debug!("Cannot look for changes: {error}"),
            }
            let next = self.clock.uptime().saturating_add(LOOK_INTERVAL);
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => return,
                () = self.clock.sleep_until(Timestamp::MAX, next) => {}
            }
        }
    }

    /// Reads the watched jobs anew and tells their watchers.
    pub(crate) async fn look_again(&self) {
        for id in self.watchers.watched() {
            match self.store.job_find(&id).await {
                Ok(Some(job)) => self.watchers.job_changed(job),
                Ok(None) => {}
                Err(error) => tracing::debug!(job = %id, "Cannot look at a job: {error}"),
            }
        }
    }
}

const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How long an orderly stop may take. With what a program does around it, it ends within two seconds.
const STOP_LIMIT: Duration = Duration::from_millis(1500);

/// How long a task that is cut off may take to notice it.
const CUT_OFF_LIMIT: Duration = Duration::from_millis(200);

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Core<S, B, C> {
    fn signal_stop(&self) {
        self.stop.send_replace(true);
        if let Some(control) = self.shared.control() {
            control.shutdown();
        }
    }
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Drop for Core<S, B, C> {
    fn drop(&mut self) {
        self.signal_stop();
    }
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Clone for Client<S, B, C> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> std::fmt::Debug for Client<S, B, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("name", &self.core.name).finish_non_exhaustive()
    }
}
