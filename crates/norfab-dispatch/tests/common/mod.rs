//! A dispatcher on a clock moved by hand, with the test in the place of the fabric.

#![allow(dead_code, unused_macros, reason = "each test file uses its part")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use norfab_dispatch::{Config, Control, Dispatcher, LinkState, ManualClock, Notice, Ports};
use norfab_model::{
    Broker, BrokerError, Clock, Connection, FabricEvent, FabricEventKind, Inbound, Job, JobId, JobStatus, Json, Limits,
    NewJob, Poll, Post, Reply, ReplyKind, Request, ScheduleStore, Store, Timestamp, Workers,
};
use norfab_store::{SqliteStore, StoreOptions};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) async fn open(folder: &std::path::Path) -> SqliteStore {
    SqliteStore::open(folder.join("jobs.db"), &StoreOptions::default()).await.expect("opens")
}

/// Runs a test on both stores.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                super::$name(Arc::new(norfab_store::MemoryStore::new())).await;
            })+
        }
        mod sqlite {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                let folder = tempfile::tempdir().expect("temporary folder");
                super::$name(Arc::new(crate::common::open(folder.path()).await)).await;
            })+
        }
    };
}

pub(crate) const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

/// Hands what is sent to the test, and what the test says to the dispatcher.
pub(crate) struct ScriptedBroker {
    sent: mpsc::UnboundedSender<Request>,
    inbound: mpsc::UnboundedReceiver<Inbound>,
    full: Arc<AtomicBool>,
    renewed: mpsc::UnboundedSender<()>,
    /// Where the list of workers is answered at once.
    answers: mpsc::WeakUnboundedSender<Inbound>,
    workers: Arc<Mutex<Vec<&'static str>>>,
    age: Arc<AtomicU64>,
}

impl ScriptedBroker {
    /// The workers of service `dummy`, as the broker names them.
    fn name_workers(&self, id: JobId) {
        let age = self.age.load(Ordering::SeqCst).to_string();
        let entry =
            |name: &&str| serde_json::json!({ "name": name, "service": "dummy", "status": "alive", "alive (s)": age });
        let entries = self.workers.lock().expect("no panic").iter().map(entry).collect();
        let answer = Json::from(serde_json::Value::Array(entries));
        let answers = self.answers.upgrade().expect("the test is there");
        answers.send(Inbound::Mmi { id, answer }).expect("the dispatcher runs");
    }
}

impl Broker for ScriptedBroker {
    async fn send(&mut self, request: Request) -> Result<(), BrokerError> {
        if matches!(request, Request::Post(_)) && self.full.load(Ordering::SeqCst) {
            return Err(BrokerError::Full);
        }
        if let Request::Mmi { id, task, .. } = &request
            && task == "show_workers"
        {
            self.name_workers(id.clone());
            return Ok(());
        }
        self.sent.send(request).map_err(|_| BrokerError::Closed)
    }

    async fn receive(&mut self, batch: &mut Vec<Inbound>, limit: usize) -> usize {
        self.inbound.recv_many(batch, limit).await
    }

    async fn reconnect(&mut self) -> Result<(), BrokerError> {
        self.renewed.send(()).map_err(|_| BrokerError::Closed)
    }

    async fn close(&mut self) {}
}

pub(crate) struct Bench<S> {
    pub(crate) store: Arc<S>,
    pub(crate) clock: ManualClock,
    pub(crate) control: Control,
    pub(crate) notices: mpsc::UnboundedReceiver<Notice>,
    sent: mpsc::UnboundedReceiver<Request>,
    fabric: mpsc::UnboundedSender<Inbound>,
    full: Arc<AtomicBool>,
    renewed: mpsc::UnboundedReceiver<()>,
    workers: Arc<Mutex<Vec<&'static str>>>,
    age: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl<S: Store + ScheduleStore> Bench<S> {
    /// A running dispatcher whose link is down.
    pub(crate) fn start(store: Arc<S>, clock: ManualClock, config: Config) -> Self {
        let (sent_in, sent) = mpsc::unbounded_channel();
        let (fabric, inbound) = mpsc::unbounded_channel();
        let full = Arc::new(AtomicBool::new(false));
        let (renewed_in, renewed) = mpsc::unbounded_channel();
        let workers = Arc::new(Mutex::new(vec!["w1"]));
        let age = Arc::new(AtomicU64::new(0));
        let scripted = ScriptedBroker {
            sent: sent_in,
            inbound,
            full: Arc::clone(&full),
            renewed: renewed_in,
            answers: fabric.downgrade(),
            workers: Arc::clone(&workers),
            age: Arc::clone(&age),
        };
        let ports = Ports { store: Arc::clone(&store), broker: scripted, clock: clock.clone() };
        let (dispatcher, control, notices) = Dispatcher::new(ports, config);
        let task = tokio::spawn(dispatcher.run());
        Self { store, clock, control, notices, sent, fabric, full, renewed, workers, age, task }
    }

    /// A running dispatcher whose link is up.
    pub(crate) async fn up(store: Arc<S>) -> Self {
        let mut bench = Self::start(store, ManualClock::at(T0), Config::default());
        bench.link_up().await;
        bench
    }

    /// Connects and answers the question on the new connection.
    pub(crate) async fn link_up(&mut self) {
        self.say(Inbound::Connection(Connection::Connected));
        let id = self.next_probe().await;
        self.say(Inbound::Mmi { id, answer: Json::empty_array() });
        self.control.health().wait_for(|health| health.link == LinkState::Up).await.expect("the dispatcher runs");
    }

    pub(crate) async fn link_lost(&self) {
        self.say(Inbound::Connection(Connection::Lost("gone".into())));
        self.control.health().wait_for(|health| health.link != LinkState::Up).await.expect("the dispatcher runs");
    }

    /// Lets the queue for jobs be full, or not.
    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// Lets the transport end for good.
    pub(crate) fn end_transport(&mut self) {
        self.fabric = mpsc::unbounded_channel().0;
    }

    pub(crate) fn say(&self, inbound: Inbound) {
        self.fabric.send(inbound).expect("the dispatcher runs");
    }

    pub(crate) fn reply(&self, job: &JobId, kind: ReplyKind) {
        self.say(Inbound::Reply(Reply::new(job.clone(), kind)));
    }

    /// The workers that the broker names from now on.
    pub(crate) fn set_workers(&self, workers: &[&'static str]) {
        *self.workers.lock().expect("no panic") = workers.to_vec();
    }

    /// For how many seconds the broker has known them.
    pub(crate) fn set_age(&self, seconds: u64) {
        self.age.store(seconds, Ordering::SeqCst);
    }

    /// What is sent next. The question whether the broker is there is answered on the way.
    pub(crate) async fn next(&mut self) -> Request {
        loop {
            match self.next_unanswered().await {
                Request::Mmi { id, task, .. } if task == "show_broker_version" => {
                    self.say(Inbound::Mmi { id, answer: Json::empty_array() });
                }
                request => return request,
            }
        }
    }

    pub(crate) async fn next_unanswered(&mut self) -> Request {
        tokio::time::timeout(Duration::from_secs(10), self.sent.recv())
            .await
            .expect("nothing was sent")
            .expect("the dispatcher runs")
    }

    /// The question whether the broker is there, not answered.
    pub(crate) async fn next_probe(&mut self) -> JobId {
        match self.next_unanswered().await {
            Request::Mmi { id, task, .. } if task == "show_broker_version" => id,
            other => panic!("not a question whether the broker is there: {other:?}"),
        }
    }

    /// Forgets what was sent, as a connection does that is gone.
    pub(crate) fn forget_sent(&mut self) {
        while self.sent.try_recv().is_ok() {}
    }

    /// Waits until the connection is thrown away for a new one.
    pub(crate) async fn rebuilt(&mut self) {
        let wait = tokio::time::timeout(Duration::from_secs(10), self.renewed.recv());
        wait.await.expect("no new connection was made").expect("the dispatcher runs");
    }

    pub(crate) async fn next_post(&mut self) -> Post {
        match self.next().await {
            Request::Post(post) => post,
            other => panic!("not a POST: {other:?}"),
        }
    }

    pub(crate) async fn next_get(&mut self) -> Poll {
        match self.next().await {
            Request::Get(poll) => poll,
            other => panic!("not a GET: {other:?}"),
        }
    }

    /// Lets the dispatcher do all that it has to do, and checks that it sends nothing. Everything said before has been
    /// worked on by then: the second question leaves only after the pass behind the first.
    pub(crate) async fn silent(&mut self) {
        self.settle().await;
        if let Ok(request) = self.sent.try_recv() {
            panic!("sent: {request:?}");
        }
    }

    /// Lets the dispatcher do all that it has to do, and checks that it sends nothing.
    pub(crate) async fn settle(&mut self) {
        let sent = self.pump().await;
        assert!(sent.is_empty(), "sent: {sent:?}");
    }

    /// Lets the dispatcher do all that it has to do, and gives what it sends.
    pub(crate) async fn pump(&mut self) -> Vec<Request> {
        let mut kept = Vec::new();
        for _ in 0..3 {
            let control = self.control.clone();
            let asked = tokio::spawn(async move { control.mmi("settle".into(), Json::empty_object()).await });
            loop {
                match self.next().await {
                    Request::Mmi { id, task, .. } if task == "settle" => {
                        self.say(Inbound::Mmi { id, answer: Json::empty_array() });
                        break;
                    }
                    other => kept.push(other),
                }
            }
            asked.await.expect("no panic").expect("answered");
        }
        kept
    }

    pub(crate) async fn add(&self, job: NewJob) -> JobId {
        let now = self.clock.now();
        let valid = Limits::default().check_job(now, job).expect("valid");
        self.store.job_add(now, &valid).await.expect("added");
        self.control.wake();
        valid.id().clone()
    }

    pub(crate) async fn job(&self, id: &JobId) -> Job {
        self.store.job_find(id).await.expect("readable").expect("there")
    }

    /// Waits until a job is told to be in a status.
    pub(crate) async fn told(&mut self, id: &JobId, status: JobStatus) -> Job {
        let wait = async {
            loop {
                match self.notices.recv().await.expect("the dispatcher runs") {
                    Notice::Job(job) | Notice::Ended(job, _) if job.uuid == *id && job.status == status => return *job,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait)
            .await
            .unwrap_or_else(|_| panic!("{id} did not become {status}"))
    }

    /// Ends it as an orderly stop does, and gives the store back.
    pub(crate) async fn stop(self) -> Arc<S> {
        self.control.shutdown();
        self.task.await.expect("no panic");
        self.store
    }
}

pub(crate) fn echo() -> NewJob {
    NewJob::new("dummy", "echo").workers(Workers::List(vec!["w1".into()]))
}

pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn accepted_by(workers: &[&str]) -> ReplyKind {
    ReplyKind::Accepted { workers: names(workers) }
}

pub(crate) fn refused() -> ReplyKind {
    ReplyKind::Refused { errors: names(&["no worker is registered"]) }
}

pub(crate) fn not_found(worker: &str) -> ReplyKind {
    ReplyKind::NotFound { worker: worker.to_owned() }
}

pub(crate) fn accepted() -> ReplyKind {
    ReplyKind::Accepted { workers: vec!["w1".into()] }
}

pub(crate) fn stored() -> ReplyKind {
    ReplyKind::Stored { worker: "w1".into() }
}

pub(crate) fn result() -> ReplyKind {
    ReplyKind::Result { worker: "w1".into(), result: Json::parse("{\"result\":1,\"failed\":false}").expect("valid") }
}

pub(crate) fn result_ready() -> ReplyKind {
    ReplyKind::Event(FabricEvent {
        worker: "w1".into(),
        kind: FabricEventKind::ResultReady,
        message: "completed".into(),
        severity: "INFO".into(),
        task: None,
        data: Json::empty_object(),
    })
}

pub(crate) fn after(seconds: u32) -> Timestamp {
    T0.plus_seconds(seconds)
}
