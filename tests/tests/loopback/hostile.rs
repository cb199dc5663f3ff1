//! A broker that means harm, or is badly broken: floods, giants, and what was never asked for. The client goes on serving,
//! keeps its memory, believes nothing of what concerns others, and does not fill its log.

use std::collections::BTreeSet;
use std::time::Duration;

use norfab_client::{Clock, JobId, JobStatus, NewJob, Outcome, Role, SystemClock, WorkerResult, Workers};
use norfab_nfp::Frames;
use norfab_tests::{OwnerProcess, eventually};
use omq_tokio::{CurveKeypair, Message, Options, Socket, SocketType};
use serde_json::{Value, json};

use crate::common::{Ground, job};

/// Messages of one flood.
const FLOOD: usize = 1_500;
/// Messages that may wait for a client.
const QUEUE: u32 = 1 << 20;

/// A broker that says what it is told to.
pub(crate) struct Hostile {
    socket: Socket,
    pub(crate) endpoint: String,
    client: String,
    workers: Value,
}

impl Hostile {
    pub(crate) async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// One with keys, and its public one.
    pub(crate) async fn with_curve() -> (Self, String) {
        let unfit = |keys: &CurveKeypair| ["{{", "{%", "{#"].iter().any(|part| keys.public.to_z85().contains(part));
        let mut keys = CurveKeypair::generate();
        // An inventory is a template.
        while unfit(&keys) {
            keys = CurveKeypair::generate();
        }
        let public = keys.public.to_z85();
        (Self::with(Options::default().curve_server(keys)).await, public)
    }

    async fn with(options: Options) -> Self {
        let socket = Socket::new(SocketType::Router, options.send_hwm(QUEUE));
        let endpoint = socket.bind("tcp://127.0.0.1:0").await.expect("a free port").to_string();
        Self { socket, endpoint, client: String::new(), workers: json!([]) }
    }

    /// Serves questions until a request for a job comes; gives its command and UUID.
    pub(crate) async fn next(&mut self) -> (String, String) {
        loop {
            let received = tokio::time::timeout(Duration::from_secs(60), self.socket.recv()).await;
            let mut message = received.expect("a request").expect("a message");
            let frames: Frames = std::iter::from_fn(|| message.pop_front()).map(Into::into).collect();
            let text = |at: usize| String::from_utf8_lossy(&frames[at]).into_owned();
            self.client = text(0);
            if text(3) != "0x11" {
                return (text(3), text(6));
            }
            let answer = if text(7).contains("show_workers") { self.workers.clone() } else { json!("0.25.0") };
            self.say("0x11", "mmi.service.broker", &text(6), "200", &answer).await;
        }
    }

    /// Waits for a POST, whatever else comes.
    pub(crate) async fn post(&mut self) -> String {
        loop {
            let (command, id) = self.next().await;
            if command == "0x04" {
                return id;
            }
        }
    }

    pub(crate) async fn say(&mut self, command: &str, service: &str, id: &str, status: &str, payload: &Value) {
        let payload = payload.to_string();
        self.frames(&["", "NFPB01", command, service, id, status, &payload]).await;
    }

    /// A reply of the service `demo`.
    pub(crate) async fn reply(&mut self, id: &str, status: &str, payload: &Value) {
        self.say("0x05", "demo", id, status, payload).await;
    }

    pub(crate) async fn frames(&mut self, frames: &[&str]) {
        let frames: Frames = frames.iter().map(|frame| frame.as_bytes().to_vec()).collect();
        self.socket.send_to(self.client.as_str(), Message::multipart(frames)).await.expect("it is connected");
    }

    pub(crate) async fn accept(&mut self, id: &str) {
        let workers = json!({"workers": ["w1"], "uuid": id, "target": "w1", "status": "DISPATCHED", "service": "demo"});
        self.reply(id, "202", &workers).await;
        self.reply(id, "201", &json!({"worker": "w1", "uuid": id, "status": "ACCEPTED", "service": "demo"})).await;
    }
}

pub(crate) fn event(id: &str, number: usize) -> Value {
    json!({"worker": "w1", "service": "demo", "uuid": id, "event_type": "progress", "message": format!("step {number}"),
        "task": "echo", "status": "running", "resource": [], "severity": "INFO", "timestamp": "x", "extras": {"text": "x".repeat(500)}})
}

pub(crate) fn result(worker: &str, text: &str) -> Value {
    json!({ worker: {"result": text, "failed": false, "errors": [], "messages": [], "status": "completed"} })
}

/// What the system says of a process's memory, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn memory(owner: &OwnerProcess, what: &str) -> u64 {
    let path = format!("/proc/{}/status", owner.pid().expect("it runs"));
    let status = std::fs::read_to_string(path).expect("readable");
    let line = status.lines().find(|line| line.starts_with(what)).expect("there");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number") * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_and_giants() {
    let ground = Ground::start().await;
    let mut broker = Hostile::start().await;
    ground.lead_to(&broker.endpoint);
    let client = ground.client(Role::Beside).await;
    let to_w1 = || NewJob::new("demo", "echo").workers(Workers::One("w1".to_owned()));
    let waiting = client.schedule_job(job("echo").at(SystemClock.now().plus_seconds(3600))).await.expect("added");
    let waiting = waiting.id().clone();
    let mut sent = client.submit_job(to_w1()).await.expect("added");
    let owner = ground.program().spawn_owner();
    assert_eq!(broker.post().await, sent.id().as_str());
    broker.accept(sent.id().as_str()).await;

    flood(&mut broker, sent.id().as_str(), 100).await;
    // All of that was read when this is stored: messages come in their order.
    broker.reply(sent.id().as_str(), "200", &result("w1", "the only one")).await;
    let outcome = sent.outcome().await.expect("ends");
    let Outcome::Completed { results } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(results.keys().collect::<Vec<_>>(), ["w1"]);

    let mut again = client.submit_job(to_w1()).await.expect("added");
    assert_eq!(broker.post().await, again.id().as_str());
    broker.accept(again.id().as_str()).await;
    #[cfg(target_os = "linux")]
    let before = memory(&owner, "VmRSS");
    flood(&mut broker, again.id().as_str(), FLOOD).await;
    broker.reply(again.id().as_str(), "200", &result("w1", "the only one")).await;
    again.outcome().await.expect("ends");
    #[cfg(target_os = "linux")]
    {
        let after = memory(&owner, "VmRSS");
        assert!(after < before + (64 << 20), "{before} bytes before, {after} after");
    }

    giant(&mut broker, &client, to_w1()).await;
    // What was said of others changed nothing.
    let spared = client.find_job(&waiting).await.expect("there");
    assert_eq!((spared.status, spared.workers_completed.len()), (JobStatus::Scheduled, 0));
    let unchanged = client.get_job(sent.id()).await.expect("there");
    assert!(unchanged.results.values().all(|result| result.as_str().contains("the only one")));
    client.shutdown().await;
    tells_each_kind_once(&owner.stop().await);
    ground.fabric.shutdown().await;
}

/// Everything that a broker may say without being asked, so many times. The job is one that it has.
async fn flood(broker: &mut Hostile, job: &str, times: usize) {
    for number in 0..times {
        let unknown = JobId::generate(SystemClock.now());
        let (unknown, worker) = (unknown.as_str(), format!("worker-{number}"));
        broker.reply(unknown, "200", &result("w1", "for nobody")).await;
        broker.say("0x08", "demo", unknown, "200", &event(unknown, number)).await;
        broker.reply(job, "200", &result(&worker, "of a worker that is none of the job's")).await;
        broker.reply(job, "404", &json!({"worker": worker, "uuid": job, "status": "JOB NOT FOUND"})).await;
        broker.reply(job, "202", &json!({"workers": [worker], "uuid": job, "target": "all", "service": "demo"})).await;
        broker.reply(unknown, "400", &json!({"workers": null, "errors": [format!("refused {number}")]})).await;
        broker.say("0x11", "mmi.service.broker", unknown, "200", &json!([number])).await;
        let status = format!("{}", 500 + number % 400);
        broker.reply(job, &status, &json!({})).await;
        broker.frames(&["", "NFPB01", "0x05", "demo", job]).await;
        broker.frames(&["", "NFPB01", "0x05", "demo", job, "200", &"[".repeat(200)]).await;
        if number % 4 == 0 {
            broker.say("0x08", "demo", job, "200", &event(job, number)).await;
        }
    }
}

/// A result that is far too large to be kept, and hundreds of thousands of workers.
async fn giant(broker: &mut Hostile, client: &norfab_client::Client, new: NewJob) {
    let mut large = client.submit_job(new).await.expect("added");
    assert_eq!(broker.post().await, large.id().as_str());
    broker.accept(large.id().as_str()).await;
    broker.reply(large.id().as_str(), "200", &result("w1", &"x".repeat(80 << 20))).await;
    let outcome = large.outcome().await.expect("ends");
    let Outcome::Completed { results } = &outcome else { panic!("{outcome:?}") };
    let failed = |result| WorkerResult::read(result).expect("a result").failed;
    assert!(results.values().all(failed), "it is told as that worker's failure");

    let names: Vec<String> = (0..200_000).map(|number| format!("demo-worker-{number}")).collect();
    broker.workers = names.iter().map(|name| json!({"name": name, "service": "demo", "status": "alive"})).collect();
    let any = client.submit_job(NewJob::new("demo", "echo").workers(Workers::Any)).await.expect("added");
    assert_eq!(broker.post().await, any.id().as_str());
    let all = client.submit_job(NewJob::new("demo", "echo").timeout(2)).await.expect("added");
    assert_eq!(broker.post().await, all.id().as_str());
    broker
        .reply(all.id().as_str(), "202", &json!({"workers": names, "uuid": all.id().as_str(), "service": "demo"}))
        .await;
    let named = async || {
        let job = client.find_job(all.id()).await.expect("there");
        (!job.workers_dispatched.is_empty()).then_some(job.workers_dispatched.len())
    };
    assert_eq!(eventually("the workers of the job", named).await, 10_000);
}

/// Of many thousands of messages that could not be used, each kind is told a few times.
fn tells_each_kind_once(log: &[String]) {
    let told: Vec<_> = log.iter().filter(|line| line.contains("Dropped")).collect();
    let kinds = ["not in the database", "refused a command", "is unknown", "not JSON"];
    for kind in kinds {
        let of_it = told.iter().filter(|line| line.contains(kind)).count();
        assert!((1..=6).contains(&of_it), "{kind}: {told:?}");
    }
    let lines: BTreeSet<_> = log.iter().collect();
    assert!(
        log.len() < 200 && lines.len() == log.len(),
        "{} lines: {:?}",
        log.len(),
        log.iter().take(50).collect::<Vec<_>>()
    );
    assert!(!log.concat().contains("panicked"), "{log:?}");
}
