//! The dispatcher: a loop that waits for one event and then makes one pass, whatever the event was.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use norfab_model::{
    Broker, Clock, Connection, Job, JobEvent, JobId, Json, Moment, NextDue, Reply, Request, Resend, ScheduleStore,
    Scope, SendAgain, Store, StoreError, Timestamp, Uptime,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::control::Command;
use crate::event::{self, Event};
use crate::gather::{LULL, Lull};
use crate::hang::{Passes, Watch};
use crate::hold::{Gait, Hold};
use crate::instants::Attempts;
use crate::link::LinkMonitor;
use crate::live::Live;
use crate::materialize::Looked;
use crate::requests::{Patience, Requests};
use crate::stray::Strays;
use crate::trouble::Trouble;
use crate::{Config, Control, ControlError, Health, LinkState, Notice};

/// The three ports of a dispatcher.
#[derive(Debug)]
pub struct Ports<S, B, C> {
    /// Where the jobs are.
    pub store: Arc<S>,
    /// How the fabric is reached.
    pub broker: B,
    /// What time it is.
    pub clock: C,
}

/// Serves the jobs of one store. See the crate's page for what it does; [`run`](Dispatcher::run) does it.
#[derive(Debug)]
pub struct Dispatcher<S, B, C> {
    pub(crate) store: Arc<S>,
    pub(crate) broker: B,
    pub(crate) clock: C,
    pub(crate) config: Config,
    commands: mpsc::UnboundedReceiver<Command>,
    notices: mpsc::UnboundedSender<Notice>,
    health: watch::Sender<Health>,
    passes: Arc<Passes>,
    pub(crate) link: LinkMonitor,
    trouble: Trouble,
    /// Failures of the schedules alone: they must not stop the jobs.
    pub(crate) schedule_trouble: Trouble,
    transport: Transport,
    /// What came and is not applied yet.
    pub(crate) inbox: Vec<Reply>,
    /// When the last was applied.
    pub(crate) stored_at: Option<Uptime>,
    /// Questions to the broker that wait for their answer.
    pub(crate) questions: HashMap<JobId, oneshot::Sender<Result<Json, ControlError>>>,
    /// What is remembered of the requests that were sent.
    pub(crate) requests: Requests,
    /// Jobs to be sent again.
    pub(crate) again: Vec<SendAgain>,
    /// The workers that are alive.
    pub(crate) live: Live,
    /// Whether jobs in flight may expire.
    pub(crate) hold: Hold,
    /// Workers to be asked for a result at once.
    pub(crate) fetch: Vec<norfab_model::Poll>,
    /// Whether jobs that were under way must be picked up.
    pub(crate) recovery: Recovery,
    /// The nearest instants, or earlier ones; None when they must be asked for.
    pub(crate) due: Option<NextDue>,
    /// Whether NEW jobs may wait for another attempt.
    pub(crate) attempts: Attempts,
    /// When a schedule is due next, or that none is; None when it must be asked for.
    pub(crate) schedule_due: Option<Option<Timestamp>>,
    /// What this pass has made of due schedules.
    pub(crate) looked: Looked,
    /// Whether the schedules' cursors are by the zone data of this process.
    pub(crate) zones: Alignment,
    /// Whether the schedules' cursors fit the clock.
    pub(crate) cursors: Alignment,
    /// Whether the instants kept for jobs fit the clock.
    pub(crate) instants: Alignment,
    /// Whether this pass has changed anything.
    pub(crate) progress: bool,
    /// The queue to the broker was full: no new job before this.
    pub(crate) send_after: Option<Uptime>,
    /// Whether it is known what was claimed.
    pub(crate) claims: Claims,
    /// Whether answers of other processes may wait to be sent.
    pub(crate) answers: Answers,
    mark: Option<i64>,
    /// When to look for changes of other processes again.
    next_look: Uptime,
    /// What the clock showed at the last look.
    last: Option<Moment>,
    pub(crate) strays: Strays,
    pub(crate) ignored: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Open,
    Ended,
}

/// What a start or a new link leaves to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// All that was under way must be picked up.
    Needed,
    /// These jobs must be, which may have been under way before they were served here; none when all is done.
    Of(Vec<JobId>),
}

/// Whether instants that are kept were looked at since the start, or since what last may have left them wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alignment {
    Unknown,
    Done,
}

/// Whether the database and the requests that are out agree on which jobs are being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claims {
    Known,
    /// A claim, or taking one back, failed or was not made: a database that fails at a commit may have done it all the same.
    InDoubt,
}

/// Whether answers to questions, given by other processes, may wait in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    MayWait,
    Sent,
}

/// How many commands are obeyed before the next pass.
const COMMANDS_AT_ONCE: usize = 1000;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// A dispatcher, the handle to speak to it, and what it tells. It does nothing until it is run.
    #[must_use]
    pub fn new(ports: Ports<S, B, C>, config: Config) -> (Self, Control, mpsc::UnboundedReceiver<Notice>) {
        let config = config.clamped();
        let (command_sender, commands) = mpsc::unbounded_channel();
        let (notices, notice_receiver) = mpsc::unbounded_channel();
        let link = LinkMonitor::new(config.probe_timeout);
        let (health, health_receiver) =
            watch::channel(Health { link: link.state(), strays: 0, ignored: 0, storage_error: None });
        let dispatcher = Self {
            store: ports.store,
            broker: ports.broker,
            clock: ports.clock,
            commands,
            notices,
            passes: Passes::new(health.clone()),
            health,
            link,
            trouble: Trouble::new(
                "Cannot use the job database, nothing is sent until it works again",
                config.longest_pause,
            ),
            schedule_trouble: Trouble::new(
                "Cannot look at the schedules, no occurrence runs until it works again",
                config.longest_pause,
            ),
            transport: Transport::Open,
            inbox: Vec::new(),
            stored_at: None,
            questions: HashMap::new(),
            requests: Requests::new(Patience { answer: config.answer_timeout, gone: config.gone_timeout }),
            again: Vec::new(),
            live: Live::new(config.workers_fresh_for),
            hold: Hold::new(),
            fetch: Vec::new(),
            recovery: Recovery::Needed,
            due: None,
            attempts: Attempts::MayWait,
            schedule_due: None,
            looked: Looked::default(),
            zones: Alignment::Unknown,
            cursors: Alignment::Unknown,
            instants: Alignment::Unknown,
            progress: false,
            send_after: None,
            claims: Claims::Known,
            answers: Answers::MayWait,
            mark: None,
            next_look: Uptime::START,
            last: None,
            strays: Strays::default(),
            ignored: 0,
            config,
        };
        (dispatcher, Control { commands: command_sender, health: health_receiver }, notice_receiver)
    }

    /// A watch over a dispatcher that the store may keep waiting without its thread being free, for another thread. One whose
    /// thread is free notices by itself.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(&self.passes, self.config.storage_patience)
    }

    /// Serves until it is told to shut down or every [`Control`] is gone.
    pub async fn run(mut self) {
        let (mut wake, mut lull) = (Timestamp::MIN, Lull::default());
        loop {
            let now = self.clock.moment();
            if lull.is_none() {
                let (passes, patience) = (Arc::clone(&self.passes), self.config.storage_patience);
                wake = passes.watched(self.look(now, wake), patience).await;
            } else {
                self.fetch_ready(now).await;
            }
            if std::mem::take(&mut self.progress) {
                // Who writes to the socket, or waits for what was told, comes before the next command.
                tokio::task::yield_now().await;
            }
            let before = std::mem::take(&mut lull);
            match self.next_event(now, wake, before).await {
                Event::Command(command) => match self.obey_all(command).await {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(()) => break,
                },
                Event::Inbound(batch) => {
                    self.take(self.clock.moment(), batch);
                    lull = self.lull_after(self.clock.now(), before);
                }
                Event::Timer => {}
                Event::TransportEnded => self.transport_ended(),
            }
        }
        self.stop().await;
    }

    /// What comes next; in a lull, for which nothing is put off, not longer than that.
    async fn next_event(&mut self, now: Moment, wake: Timestamp, lull: Lull) -> Event {
        let until = match self.trouble.retry_at(now.up) {
            Some(at) => (Timestamp::MAX, at.min(self.next_look)),
            None => (wake, self.next_look),
        };
        let open = self.transport == Transport::Open && self.has_room();
        let broker = open.then_some(&mut self.broker);
        let next = event::next(&mut self.commands, broker, &self.clock, until, self.config.reply_batch);
        if lull.is_none() {
            return next.await;
        }
        tokio::time::timeout(LULL, next).await.unwrap_or(Event::Timer)
    }

    /// Looks at the world, and makes a pass unless the database is left alone for a while.
    async fn look(&mut self, now: Moment, wake: Timestamp) -> Timestamp {
        self.notice_time(now).await;
        if self.trouble.retry_at(now.up).is_none() {
            return self.pass(now).await;
        }
        self.report_health();
        wake
    }

    /// Looks for changes of other processes now and then, and at the way that the clock went.
    async fn notice_time(&mut self, now: Moment) {
        if let Some(last) = self.last.replace(now) {
            if now.wall < last.wall {
                tracing::warn!("The clock went back from {} to {}", last.wall, now.wall);
                self.clock_went_back(now);
            }
            if self.hold.time(last, now) == Gait::Leap {
                self.requests.leapt();
                self.live.leapt(last.up);
                self.again.retain(|again| again.why != Resend::Elsewhere);
            }
        }
        if now.up >= self.next_look {
            self.look_for_foreign_changes().await;
            self.next_look = now.up.saturating_add(self.config.watch_interval);
        }
    }

    /// What is stored may lie too far ahead now; what is waited for here goes by the other clock.
    fn clock_went_back(&mut self, now: Moment) {
        self.hold.clock_went_back(now.wall);
        self.live.clock_went_back(now.wall);
        self.forget_instants();
        self.cursors = Alignment::Unknown;
        self.instants = Alignment::Unknown;
    }

    fn transport_ended(&mut self) {
        tracing::error!("The connection to the broker has ended for good; start the process again");
        self.transport = Transport::Ended;
        self.connection(Connection::Trouble("the transport has ended".to_owned()));
    }

    /// One round: applies what came, releases, expires, sends, asks. Returns the next instant at which there is something
    /// to do without an event.
    async fn pass(&mut self, now: Moment) -> Timestamp {
        self.progress = false;
        self.looked = Looked { budget_left: self.config.catch_up_limit, seen: Vec::new() };
        let wake = match self.steps(now).await {
            Ok(wake) => {
                self.trouble.worked();
                wake
            }
            Err(error) => {
                self.forget_instants();
                self.trouble.failed(now.up, &error);
                now.wall
            }
        };
        self.report_health();
        wake
    }

    async fn steps(&mut self, now: Moment) -> Result<Timestamp, StoreError> {
        self.look_after_link(now).await;
        // The results come while what announced them is stored.
        self.fetch_ready(now).await;
        if self.is_settled() {
            self.make_and_send(now).await?;
            if !self.inbox.is_empty() {
                // Whether something is due has to be known for that.
                let wake = self.next_wake(now).await?;
                if let Some(until) = self.gathers(now) {
                    return Ok(wake.min(until));
                }
            }
        }
        self.apply_replies(now).await?;
        self.recover(now).await?;
        self.realign_jobs(now).await?;
        self.release_due(now).await?;
        self.schedules(now).await;
        self.expire_due(now).await?;
        self.send_again(now).await?;
        self.dispatch(now).await?;
        self.fetch_ready(now).await;
        self.poll(now).await?;
        self.send_answers(now).await?;
        self.next_wake(now).await
    }

    /// Whether nothing is left of a start, a lost link, a clock that was set back, a claim in doubt or a failure of the
    /// database, which all need what came to be stored first. What failed may have been stored all the same: a job would be
    /// sent again by it, and the old refusal then be taken for an answer to that.
    pub(crate) fn is_settled(&self) -> bool {
        let recovered = matches!(&self.recovery, Recovery::Of(jobs) if jobs.is_empty());
        let works = self.trouble.current().is_none();
        recovered && works && self.claims == Claims::Known && self.instants == Alignment::Done
    }

    /// Sends, and tells whether it was taken. What is refused is in the database and is tried again from there.
    pub(crate) async fn send(&mut self, request: Request) -> bool {
        match self.broker.send(request).await {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!("Did not send a request: {error}");
                false
            }
        }
    }

    /// Obeys a command and those that wait behind it, so that one pass serves them all. Breaks when it is to end.
    async fn obey_all(&mut self, first: Command) -> ControlFlow<()> {
        let mut next = Some(first);
        let mut obeyed = 0;
        while let Some(command) = next {
            if matches!(command, Command::Shutdown) {
                return ControlFlow::Break(());
            }
            self.obey(command).await;
            obeyed += 1;
            next = if obeyed < COMMANDS_AT_ONCE { self.commands.try_recv().ok() } else { None };
        }
        ControlFlow::Continue(())
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Wake => self.forget_instants(),
            // One that was found and sent since is noted already.
            Command::Added(job) if self.requests.is_under_way(&job.uuid) => {}
            Command::Added(job) => self.note(&job),
            Command::Serve(job) => {
                if let Scope::Jobs(jobs) = &mut self.config.scope {
                    jobs.push(job.clone());
                    self.pick_up(job);
                }
                self.due = None;
            }
            Command::Mmi { task, kwargs, answer } => {
                self.questions.retain(|_, waiting| !waiting.is_closed());
                let id = JobId::generate(self.clock.now());
                if self.send(Request::Mmi { id: id.clone(), task, kwargs }).await {
                    self.questions.insert(id, answer);
                } else {
                    // Who asked may have stopped waiting.
                    let _ = answer.send(Err(ControlError::Busy));
                }
            }
            Command::Answer { job, service, worker, answer } => self.answer(job, service, worker, answer).await,
            Command::Shutdown => {}
        }
    }

    /// A job to be served from now on may have been under way at another process, which died.
    fn pick_up(&mut self, job: JobId) {
        if let Recovery::Of(jobs) = &mut self.recovery {
            jobs.push(job);
        }
        self.hold.link_lost();
    }

    async fn look_for_foreign_changes(&mut self) {
        let Ok(mark) = self.store.change_mark().await else {
            // A database that does not answer is noticed by the pass, which has to ask it something for that.
            self.forget_instants();
            return;
        };
        // What was read before the first mark, when that was late, may have changed since.
        if self.mark.replace(mark) != Some(mark) {
            self.forget_instants();
            self.zones = Alignment::Unknown;
            self.answers = Answers::MayWait;
            self.tell(Notice::ForeignChange);
        }
    }

    pub(crate) fn tell_job(&mut self, job: Job) {
        if job.status.is_terminal() {
            self.requests.ended(&job.uuid);
        }
        self.tell(Notice::Job(Box::new(job)));
    }

    pub(crate) fn tell_event(&self, event: JobEvent) {
        self.tell(Notice::Event(Box::new(event)));
    }

    pub(crate) fn tell(&self, notice: Notice) {
        // Nobody listening is no error: what happened is in the database.
        let _ = self.notices.send(notice);
    }

    fn report_health(&self) {
        let health = Health {
            link: self.link.state(),
            strays: self.strays.total(),
            ignored: self.ignored,
            storage_error: self.trouble.current().or(self.schedule_trouble.current()).map(str::to_owned),
        };
        self.health.send_if_modified(|known| {
            let changed = *known != health;
            if known.link != health.link {
                log_link(&health.link);
            }
            *known = health;
            changed
        });
    }

    /// Stores what has arrived by now, and closes the socket.
    async fn stop(mut self) {
        let now = self.clock.moment();
        let mut batch = Vec::new();
        // A timeout of zero takes what is there and waits for nothing.
        let _ = tokio::time::timeout(Duration::ZERO, self.broker.receive(&mut batch, self.config.reply_batch)).await;
        self.take(now, batch);
        if let Err(error) = self.apply_replies(now).await {
            tracing::warn!("Did not store the last replies, they are asked for at the next start: {error}");
        }
        self.broker.close().await;
    }
}

fn log_link(link: &LinkState) {
    match link {
        LinkState::Up => tracing::info!("The link to the broker is up"),
        LinkState::Connecting => tracing::debug!("Connected, waiting for the broker's answer"),
        LinkState::Down { reason } => tracing::warn!("The link to the broker is down: {reason}"),
    }
}
