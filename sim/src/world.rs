//! One run: the client, its store, the fabric and the clock, driven by a script on one thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use norfab_dispatch::{Config, Control, Dispatcher, Notice, Ports};
use norfab_model::{Job, JobDetail, JobFilter, Schedule, ScheduleError, ScheduleState, Store, StoreError, Timestamp};
use tokio::sync::mpsc;

use crate::clock::{START, SimClock};
use crate::fabric::Fabric;
use crate::gate::Gate;
use crate::ledger::{Ledger, Schedules, peek};
use crate::ops::{Roster, carry_out};
use crate::port::SimBroker;
use crate::script::{Op, Script, Step};
use crate::shelf::Shelf;
use crate::store::{Interloper, SimStore};
use crate::violation::{Journal, Violation};
use crate::watch::Watch;
use crate::witness::Witness;

/// How long everything works at the end, in seconds.
const AFTERMATH: u32 = 300;
/// How often the jobs are looked at while time passes.
const LOOK: Duration = Duration::from_secs(10);
/// So long after its start, and after the clock was set, a client with a database that works has noticed.
const NOTICED: Duration = Duration::from_secs(5);

/// Tells whether a task was woken, and passes it on.
struct Alarm {
    rang: AtomicBool,
    outer: Waker,
}

impl Alarm {
    fn new(outer: &Waker) -> Arc<Self> {
        Arc::new(Self { rang: AtomicBool::new(false), outer: outer.clone() })
    }

    fn rang(&self) -> bool {
        self.rang.load(Ordering::SeqCst)
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::SeqCst);
        self.outer.wake_by_ref();
    }
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// What happened, when it was to be kept.
    pub lines: Vec<String>,
    /// A hash of all that happened: the same for the same script.
    pub hash: u64,
}

/// Whether to keep what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only its hash.
    Hash,
    /// Every line.
    Lines,
}

/// Runs a script on a shelf.
pub(crate) async fn run<H: Shelf>(shelf: H, script: &Script, keep: Keep) -> Outcome {
    norfab_model::seed_ids(script.seed);
    let journal = if keep == Keep::Lines { Journal::kept() } else { Journal::default() };
    let mut world = World::new(shelf, script, journal.clone()).await;
    if let Err(error) = world.play(script).await {
        journal.broken("the store failed by itself", || format!("{error}: {error:?}"));
    }
    Outcome { violation: journal.first(), lines: journal.lines(), hash: journal.hash() }
}

struct Process<S> {
    run: Pin<Box<dyn Future<Output = ()>>>,
    control: Control,
    notices: mpsc::UnboundedReceiver<Notice>,
    store: Arc<S>,
}

/// When the client has done all that it has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing is to be done at this instant.
    Asleep,
    /// Its process has ended.
    Ended,
}

struct World<H: Shelf> {
    shelf: H,
    config: Config,
    clock: SimClock,
    journal: Journal,
    fabric: Fabric,
    gate: Gate,
    ledger: Ledger,
    witness: Witness,
    roster: Arc<Mutex<Roster>>,
    foreign: Arc<H::Store>,
    process: Option<Process<H::Store>>,
    watch: Watch,
    next_look: Timestamp,
    /// When the client was started last or the clock was set, in true time.
    disturbed: Timestamp,
    /// Turns and messages at the last whole second.
    pace: (Timestamp, u64, u64),
}

impl<H: Shelf> World<H> {
    async fn new(shelf: H, script: &Script, journal: Journal) -> Self {
        let clock = SimClock::new();
        let fabric = Fabric::new(script.seed, script.noise, script.numbers, clock.clone(), journal.clone());
        let numbers = script.numbers;
        let config = Config {
            gone_timeout: Duration::from_secs(numbers.gone),
            window: numbers.window,
            catch_up_limit: numbers.catch_up,
            poll_batch: numbers.poll_batch,
            reply_batch: numbers.reply_batch,
            watch_interval: Duration::from_millis(numbers.watch),
            ..Config::default()
        };
        let witness = Witness::new(journal.clone(), clock.clone());
        let watch = Watch::new(journal.clone(), fabric.clone(), witness.clone(), numbers.gone);
        let ledger = Ledger::new(journal.clone());
        let foreign = shelf.open().await;
        let gate = Gate::default();
        let pace = (START, 0, 0);
        let (roster, process, next_look, disturbed) = (Arc::default(), None, START, START);
        Self {
            shelf,
            config,
            clock,
            journal,
            fabric,
            gate,
            ledger,
            witness,
            roster,
            foreign,
            process,
            watch,
            next_look,
            disturbed,
            pace,
        }
    }

    async fn play(&mut self, script: &Script) -> Result<(), ScheduleError> {
        self.start().await;
        for (_, step) in &script.steps {
            self.journal.note(self.clock.truth(), || format!("{step:?}"));
            self.step(step).await?;
            if self.journal.first().is_some() {
                return Ok(());
            }
        }
        self.aftermath().await
    }

    async fn step(&mut self, step: &Step) -> Result<(), ScheduleError> {
        match step {
            Step::Pass(millis) => return self.pass(Duration::from_millis(*millis)).await,
            Step::Own(op) => self.own(op).await?,
            Step::Foreign(op) => {
                let store = self.sound(&self.foreign);
                self.call(&store, op).await?;
            }
            Step::Clock(millis) => {
                self.disturbed = self.clock.truth();
                self.clock.step(millis.saturating_mul(1000));
            }
            Step::Crash => self.crash().await,
            Step::Stop => self.stop().await,
            Step::Start => self.start().await,
            Step::Arm(after, charge) => self.gate.arm(*after, charge.clone()),
            other => self.disturb(other),
        }
        self.settle().await;
        self.look().await
    }

    fn disturb(&mut self, step: &Step) {
        let mut fabric = self.fabric.state();
        match step {
            Step::BrokerDies => fabric.broker_dies(),
            Step::BrokerStarts => fabric.broker_starts(),
            Step::WorkerDies(worker) => fabric.worker_dies(*worker),
            Step::WorkerStarts(worker) => fabric.worker_starts(*worker),
            Step::WorkerPauses(worker) => fabric.worker_pauses(*worker),
            Step::WorkerResumes(worker) => fabric.worker_resumes(*worker),
            Step::ConnectionBreaks => fabric.connection_breaks(),
            Step::Cut => fabric.cut(),
            Step::Mended => fabric.mend(),
            Step::Stolen => fabric.steal(),
            Step::Full(posts) => fabric.fill(*posts),
            Step::Ambush(times) => fabric.lie_in_ambush(*times),
            _ => {}
        }
    }

    // The client's process.

    async fn start(&mut self) {
        if self.process.is_some() {
            return;
        }
        self.disturbed = self.clock.truth();
        self.gate.new_process();
        let store = self.shelf.open().await;
        self.fabric.state().open();
        let troubled = self.sound(&store).troubled(self.gate.clone(), self.interloper());
        let ports = Ports {
            store: Arc::new(troubled),
            broker: SimBroker::new(self.fabric.clone(), self.gate.clone(), self.witness.clone()),
            clock: self.clock.clone(),
        };
        let (dispatcher, control, notices) = Dispatcher::new(ports, self.config.clone());
        let run = Box::pin(tokio::task::unconstrained(dispatcher.run()));
        self.process = Some(Process { run, control, notices, store });
    }

    fn sound(&self, store: &Arc<H::Store>) -> SimStore<H::Store> {
        SimStore::sound(Arc::clone(store), self.ledger.clone(), self.witness.clone())
    }

    fn interloper(&self) -> Interloper {
        let store = Arc::new(self.sound(&self.foreign));
        let (roster, clock, journal) = (Arc::clone(&self.roster), self.clock.clone(), self.journal.clone());
        Arc::new(move |op| {
            let store = Arc::clone(&store);
            let (roster, clock, journal) = (Arc::clone(&roster), clock.clone(), journal.clone());
            Box::pin(async move {
                let done = carry_out(&*store, &roster, clock.shown(), &op).await;
                journal.note(clock.truth(), || format!("meanwhile {op:?}: {done:?}"));
            })
        })
    }

    async fn crash(&mut self) {
        if let Some(Process { run, store, .. }) = self.process.take() {
            self.journal.note(self.clock.truth(), || "the client dies".into());
            self.fabric.state().close();
            self.clock.forget();
            drop(run);
            // What a thread of the store has begun is done or not before anybody looks.
            store.close().await;
        }
    }

    async fn stop(&mut self) {
        if let Some(process) = &self.process {
            process.control.shutdown();
            // Its last look at the socket is a timeout of zero, for which the runtime has to turn.
            self.settle_until(Rest::Ended).await;
        }
    }

    async fn own(&mut self, op: &Op) -> Result<(), StoreError> {
        let store = self.process.as_ref().map_or(&self.foreign, |process| &process.store);
        let store = self.sound(store);
        self.call(&store, op).await?;
        if let Some(process) = &self.process {
            process.control.wake();
        }
        Ok(())
    }

    async fn call(&self, store: &SimStore<H::Store>, op: &Op) -> Result<(), StoreError> {
        let done = carry_out(store, &self.roster, self.clock.shown(), op).await?;
        self.journal.note(self.clock.truth(), || done);
        Ok(())
    }

    /// Lets the client do all that it has to do at this instant.
    async fn settle(&mut self) {
        self.settle_until(Rest::Asleep).await;
    }

    async fn settle_until(&mut self, rest: Rest) {
        let Some(process) = &mut self.process else { return };
        let gate = &self.gate;
        let ended = loop {
            let mut alarm = None;
            let ended = std::future::poll_fn(|context| {
                let bell = Alarm::new(context.waker());
                let waker = Waker::from(Arc::clone(&bell));
                alarm = Some(bell);
                match process.run.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(()) => Poll::Ready(true),
                    Poll::Pending if gate.is_crashed() => Poll::Ready(false),
                    Poll::Pending if gate.is_in_store() || rest == Rest::Ended => Poll::Pending,
                    Poll::Pending => Poll::Ready(false),
                }
            })
            .await;
            // Whoever only lets others go first is woken by that.
            tokio::task::yield_now().await;
            if ended || gate.is_crashed() || !alarm.is_some_and(|alarm| alarm.rang()) {
                break ended;
            }
        };
        while process.notices.try_recv().is_ok() {}
        if ended {
            self.process = None;
            self.fabric.state().close();
            self.clock.forget();
        } else if self.gate.is_crashed() {
            self.crash().await;
        }
        if self.clock.is_stuck() || self.gate.runs_away() {
            self.journal.broken("the loop turns on the spot", String::new);
        }
    }

    // Time.

    async fn pass(&mut self, span: Duration) -> Result<(), ScheduleError> {
        let until = self.clock.truth().saturating_add(span);
        while self.clock.truth() < until && self.journal.first().is_none() {
            let happens = self.fabric.state().next().map(|at| START.saturating_add(Duration::from_micros(at)));
            let next = happens.into_iter().chain(self.clock.wake()).min().unwrap_or(until).min(until);
            self.clock.pass_to(next);
            self.gate.time_passes();
            self.fabric.state().happen();
            self.settle().await;
            self.check_pace();
            if self.clock.truth() >= self.next_look {
                self.look().await?;
            }
        }
        Ok(())
    }

    /// Without messages and changes the loop turns a few times a second.
    fn check_pace(&mut self) {
        let (since, turns, messages) = self.pace;
        let truth = self.clock.truth();
        if since.saturating_add(Duration::from_secs(1)) <= truth {
            let now = (self.clock.looks(), self.fabric.state().messages);
            let (turned, spoken) = (now.0 - turns, now.1 - messages);
            if turned > 60 + 6 * spoken {
                self.journal.broken("the loop turns too often", || format!("{turned} times, {spoken} messages"));
            }
            self.pace = (truth, now.0, now.1);
        }
    }

    // The rules.

    async fn look(&mut self) -> Result<(), ScheduleError> {
        self.next_look = self.clock.truth().saturating_add(LOOK);
        let schedules = self.schedules().await?;
        let jobs = self.jobs().await?;
        self.watch.look(jobs, &schedules, self.is_aligned().then(|| self.clock.shown()));
        Ok(())
    }

    /// Whether the client must have noticed by now how the clock was set.
    fn is_aligned(&self) -> bool {
        let noticed = self.disturbed.saturating_add(NOTICED) < self.clock.truth();
        let works = |process: &Process<H::Store>| process.control.health().borrow().storage_error.is_none();
        noticed && self.process.as_ref().is_some_and(works)
    }

    async fn schedules(&self) -> Result<Schedules, ScheduleError> {
        peek(&*self.foreign).await
    }

    async fn jobs(&self) -> Result<Vec<Job>, StoreError> {
        let mut all = Vec::new();
        let mut filter = JobFilter { limit: 1000, ..JobFilter::default() };
        loop {
            let page = self.foreign.job_list(&filter).await?;
            all.extend(page.jobs);
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// Everything is mended, and what is still open must come to its end.
    async fn aftermath(&mut self) -> Result<(), ScheduleError> {
        self.gate.disarm();
        self.fabric.state().heal();
        self.journal.note(self.clock.truth(), || "all is well".into());
        self.start().await;
        let healed = self.clock.shown();
        self.look().await?;
        self.watch.healed();
        let before = self.schedules().await?;
        self.pass(Duration::from_secs(AFTERMATH.into())).await?;
        self.look().await?;
        if self.journal.first().is_some() {
            return Ok(());
        }
        let mut details: Vec<JobDetail> = Vec::new();
        for job in self.jobs().await? {
            details.extend(self.foreign.job_detail(&job.uuid).await?);
        }
        let after = self.schedules().await?;
        let now = self.clock.shown();
        self.watch.finish(&details, &after, healed, now);
        for (id, schedule) in after {
            self.check_alive(before.get(&id), &schedule, now);
        }
        Ok(())
    }

    /// An ACTIVE schedule runs again.
    fn check_alive(&self, before: Option<&Schedule>, after: &Schedule, now: Timestamp) {
        let Some(before) = before.filter(|before| before.state == ScheduleState::Active) else { return };
        // It may come to its end while its last job is unfinished.
        if before.end_at.is_some() {
            return;
        }
        let first = before.occurrences().next_after(now.saturating_sub(Duration::from_secs(AFTERMATH.into())));
        // What was decided before the clock went back is passed over.
        let first = first.filter(|first| *first > before.decided_until);
        let was_due = first.is_some_and(|first| before.due_time(first).plus_seconds(200) < now);
        // One that comes seldom may find an earlier job unfinished.
        let (old, new) = (&before.counters, &after.counters);
        let runs = new.total_runs > old.total_runs
            || (new.overlap_skips > old.overlap_skips
                && before.occurrences().count_in(now, now.plus_seconds(3599)) < 2);
        if was_due && !runs {
            self.journal.broken("a schedule is silent", || format!("{before:?}\n{after:?}"));
        }
        if after.next.is_some_and(|next| next.due.plus_seconds(5) < now) {
            self.journal.broken("a schedule hangs", || format!("{now} {after:?}"));
        }
    }
}
