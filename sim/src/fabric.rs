//! The broker, the network and the workers as they behave on the real fabric, in true time: what is observed there stands
//! in docs/nfp.md.

mod ambush;
mod patience;
mod registry;
mod socket;
mod strain;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use norfab_model::{Context, Inbound, JobId, Json, Reply, ReplyKind, Request, Timestamp, Workers};

use self::ambush::{Ambush, Turn};
use self::patience::Patience;
use self::registry::Registration;
use self::socket::Socket;
use self::strain::Strain;
pub(crate) use self::worker::{Entry, Held, Worker};
use crate::clock::{START, SimClock};
use crate::rng::Rng;
use crate::script::{Noise, Numbers, WORKERS};
use crate::violation::Journal;

/// Microseconds of true time since the start.
pub(crate) type Micros = u64;

pub(crate) const MILLI: Micros = 1000;
pub(crate) const SECOND: Micros = 1_000_000;

/// What happens at an instant.
#[derive(Debug, Clone)]
enum Event {
    /// The client's socket tries to connect.
    Connect { epoch: u64 },
    /// A request arrives at the broker.
    AtBroker { epoch: u64, request: Request },
    /// A message arrives at a worker's process.
    AtWorker { worker: usize, message: Held },
    /// One of a worker's threads takes a message.
    InThread { worker: usize, life: u32, message: Held },
    /// What a worker says arrives at the broker.
    FromWorker { worker: usize, job: JobId, kind: ReplyKind },
    /// A message arrives at the client's socket.
    AtClient { epoch: u64, inbound: Inbound },
    /// A task ends, or goes on.
    Ends { worker: usize, life: u32, job: JobId },
    /// A task asks something.
    Asks { worker: usize, life: u32, job: JobId },
    /// A worker says READY.
    Registers { worker: usize, life: u32 },
    /// The broker has not heard of a worker for its holdtime.
    Purges { worker: usize, silence: u64 },
    /// The broker dies or comes back by itself.
    Broker { turn: Turn },
}

/// A way that keeps its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Lane {
    ToBroker,
    ToClient,
    ToWorker(usize),
    Posts(usize),
    Gets(usize),
    FromWorker(usize),
}

/// A POST that left the client.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) job: JobId,
    /// What the client's clock showed.
    pub(crate) shown: Timestamp,
}

/// One start of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) worker: usize,
    pub(crate) at: Micros,
}

#[derive(Debug)]
pub(crate) struct State {
    rng: Rng,
    strain: Strain,
    ambush: Ambush,
    noise: Noise,
    numbers: Numbers,
    clock: SimClock,
    journal: Journal,
    queue: BTreeMap<(Micros, u64), Event>,
    number: u64,
    lanes: HashMap<Lane, Micros>,
    broker_up: bool,
    /// When the broker was started that runs, or ran last.
    broker_since: Micros,
    cut: bool,
    /// The broker's workers.
    registered: BTreeMap<usize, Registration>,
    silences: u64,
    pub(crate) workers: Vec<Worker>,
    socket: Socket,
    full: u32,
    /// POSTs that left the client since this was last taken.
    pub(crate) sent: Vec<Sent>,
    /// How many POSTs of each job left the client.
    pub(crate) posts: BTreeMap<JobId, u32>,
    /// When the first of them did.
    first_post: BTreeMap<JobId, Micros>,
    pub(crate) executions: BTreeMap<JobId, Vec<Execution>>,
    patience: Patience,
    /// Messages that the client got or sent.
    pub(crate) messages: u64,
}

/// The fabric, shared by the world and the client's socket.
#[derive(Debug, Clone)]
pub(crate) struct Fabric(Arc<Mutex<State>>);

impl Fabric {
    pub(crate) fn new(seed: u64, noise: Noise, numbers: Numbers, clock: SimClock, journal: Journal) -> Self {
        let workers = WORKERS.map(|(name, _)| Worker::new(name));
        Self(Arc::new(Mutex::new(State {
            rng: Rng::new(seed ^ 0xfab),
            strain: Strain::new(seed),
            ambush: Ambush::new(seed),
            noise,
            numbers,
            clock,
            journal,
            queue: BTreeMap::new(),
            number: 0,
            lanes: HashMap::new(),
            broker_up: true,
            broker_since: 0,
            cut: false,
            registered: (0..WORKERS.len()).map(|worker| (worker, Registration::new(0))).collect(),
            silences: 0,
            workers: workers.to_vec(),
            socket: Socket::default(),
            full: 0,
            sent: Vec::new(),
            posts: BTreeMap::new(),
            first_post: BTreeMap::new(),
            executions: BTreeMap::new(),
            patience: Patience::default(),
            messages: 0,
        })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl State {
    pub(crate) fn now(&self) -> Micros {
        self.clock.truth().since(START).as_micros() as Micros
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Micros> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets everything happen whose time has come.
    pub(crate) fn happen(&mut self) {
        let now = self.now();
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= now) {
            let event = entry.remove();
            self.on(event);
        }
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.journal.note(self.clock.truth(), line);
    }

    fn at(&mut self, at: Micros, event: Event) {
        self.number += 1;
        self.queue.insert((at, self.number), event);
    }

    /// A delay of the network.
    fn delay(&mut self) -> Micros {
        let slow = self.noise.slow && self.rng.per_mille(15);
        if slow { self.rng.between(SECOND / 2, 14 * SECOND) } else { self.rng.between(100, 8 * MILLI) }
    }

    /// Sends along a lane: later than what went before on it.
    fn along(&mut self, lane: Lane, delay: Micros, event: Event) {
        let at = (self.now() + delay).max(self.lanes.get(&lane).map_or(0, |last| last + 1));
        self.lanes.insert(lane, at);
        self.at(at, event);
    }

    fn lost(&mut self) -> bool {
        self.noise.loss && self.rng.per_mille(12)
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Connect { epoch } => self.connect(epoch),
            Event::AtBroker { epoch, request } => {
                let open = self.is_connected(epoch) && !self.socket.stolen || self.socket.last_words == Some(epoch);
                if self.broker_up && !self.cut && open && !self.lost() {
                    self.at_broker(request);
                }
            }
            Event::AtWorker { worker, message } => self.at_worker(worker, message),
            Event::InThread { worker, life, message } => self.in_thread(worker, life, message),
            Event::FromWorker { worker, job, kind } => {
                if self.broker_up && self.registered.contains_key(&worker) {
                    self.say(Inbound::Reply(Reply::new(job.clone(), kind.clone())));
                    if self.noise.double && self.rng.per_mille(20) {
                        self.say(Inbound::Reply(Reply::new(job, kind)));
                    } else {
                        for _ in 0..self.repeats(&kind) {
                            self.say_again(Inbound::Reply(Reply::new(job.clone(), kind.clone())));
                        }
                    }
                }
            }
            Event::AtClient { epoch, inbound } => self.at_client(epoch, inbound),
            Event::Ends { worker, life, job } => self.task_ends(worker, life, &job),
            Event::Asks { worker, life, job } => self.task_asks(worker, life, &job),
            Event::Registers { worker, life } => self.registers(worker, life),
            Event::Purges { worker, silence } => self.purges(worker, silence),
            Event::Broker { turn: Turn::Dies } => self.broker_dies(),
            Event::Broker { turn: Turn::Starts } => self.broker_comes_back(),
        }
    }

    // The broker.

    fn at_broker(&mut self, request: Request) {
        match request {
            Request::Mmi { id, task, .. } => {
                let answer = if task == "show_workers" { self.list() } else { Json::from(serde_json::json!([{}])) };
                self.say(Inbound::Mmi { id, answer });
            }
            Request::Post(post) => {
                let message = |job| Held::Post { job, task: post.task.clone() };
                self.route(&post.job, &post.service, &post.target, message);
                if post.target == Workers::All {
                    self.handed_to_all();
                }
            }
            Request::Get(poll) => self.route(&poll.job, &poll.service, &poll.target, |job| Held::Get { job }),
            Request::Put { job, worker, answer, .. } => {
                if let Some(worker) = self.registered.keys().find(|of| WORKERS[**of].0 == worker).copied() {
                    self.deliver(worker, Held::Put { job, answer });
                }
            }
        }
    }

    fn route(&mut self, job: &JobId, service: &str, target: &Workers, message: impl Fn(JobId) -> Held) {
        let of_service = |worker: &&usize| service == "all" || WORKERS[**worker].1 == service;
        let workers: Vec<usize> = match target {
            Workers::All => self.registered.keys().filter(of_service).copied().collect(),
            Workers::Any => {
                let all: Vec<usize> = self.registered.keys().filter(of_service).copied().collect();
                if all.is_empty() { all } else { vec![self.rng.pick(&all)] }
            }
            named => {
                let names = named.names().unwrap_or_default();
                let known = |worker: &&usize| names.iter().any(|name| name == WORKERS[**worker].0);
                self.registered.keys().filter(known).copied().collect()
            }
        };
        let kind = if workers.is_empty() {
            ReplyKind::Refused { errors: vec!["the broker failed to target workers".into()] }
        } else {
            ReplyKind::Accepted { workers: workers.iter().map(|worker| WORKERS[*worker].0.to_owned()).collect() }
        };
        let context = Context::Answer { target: target.clone() };
        self.say(Inbound::Reply(Reply { context, ..Reply::new(job.clone(), kind) }));
        for worker in workers {
            self.deliver(worker, message(job.clone()));
        }
    }

    // What the script does.

    pub(crate) fn worker_dies(&mut self, worker: usize) {
        if self.workers[worker].dies() {
            self.falls_silent(worker);
        }
    }

    pub(crate) fn worker_starts(&mut self, worker: usize) {
        if self.workers[worker].starts() {
            self.register_within(worker, SECOND);
        }
    }

    pub(crate) fn worker_pauses(&mut self, worker: usize) {
        if self.workers[worker].pauses() {
            self.falls_silent(worker);
        }
    }

    pub(crate) fn worker_resumes(&mut self, worker: usize) {
        if let Some(held) = self.workers[worker].resumes() {
            self.register_within(worker, SECOND);
            for message in held {
                self.hand_over(worker, message);
            }
        }
    }

    pub(crate) fn connection_breaks(&mut self) {
        if self.socket.connected {
            self.disconnect();
        }
    }

    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    pub(crate) fn mend(&mut self) {
        if std::mem::take(&mut self.cut) {
            // A broker that was started meanwhile knows nothing of the connection.
            let other = self.socket.broker_since < self.broker_since;
            if self.rng.per_mille(500) || !self.broker_up || other {
                self.disconnect();
            } else {
                self.connect_soon();
            }
        }
    }

    pub(crate) fn steal(&mut self) {
        self.socket.stolen = self.socket.connected;
    }

    pub(crate) fn fill(&mut self, posts: u32) {
        self.full = posts;
    }

    /// Everything works from now on.
    pub(crate) fn heal(&mut self) {
        self.noise = Noise::NONE;
        self.full = 0;
        self.ambush.lift();
        self.mend();
        self.broker_starts();
        if self.socket.stolen {
            // The other client is gone; whoever notices makes a new connection.
            self.note(|| "the thief is gone".into());
        }
        for worker in 0..self.workers.len() {
            self.worker_resumes(worker);
            self.worker_starts(worker);
        }
    }

    /// Whether a second worker may have a job: when it was to be sent there, the broker had refused all that was asked of the
    /// first for so long.
    pub(crate) fn was_gone(&self, job: &JobId, seconds: u64) -> bool {
        self.patience.longest(job) >= seconds * SECOND
    }
}

/// The end of an identity, which differs from job to job.
pub(crate) fn short(job: &JobId) -> String {
    let text = job.as_str();
    text.get(text.len().saturating_sub(6)..).unwrap_or(text).to_owned()
}

fn shown(inbound: &Inbound) -> String {
    match inbound {
        Inbound::Reply(reply) => {
            let job = short(&reply.job);
            match &reply.kind {
                ReplyKind::Accepted { workers } => format!("202 {job} {}", workers.join(",")),
                ReplyKind::Refused { .. } => format!("400 {job}"),
                ReplyKind::Stored { worker } => format!("201 {job} {worker}"),
                ReplyKind::Pending { worker } => format!("300 {job} {worker}"),
                ReplyKind::WaitingInput { worker, .. } => format!("102 {job} {worker}"),
                ReplyKind::Result { worker, .. } => format!("200 {job} {worker}"),
                ReplyKind::NotFound { worker } => format!("404 {job} {worker}"),
                ReplyKind::Event(event) => format!("event {job} {} {}", event.worker, event.message),
            }
        }
        Inbound::Mmi { .. } => "MMI".into(),
        Inbound::Connection(connection) => format!("{connection:?}"),
        Inbound::Stray(what) => format!("stray {what}"),
    }
}
