//! A broker that means harm, or is badly broken: what was never asked for, and floods of what cannot be used. The client
//! goes on serving, believes nothing of what concerns others, and does not fill its log. [`giants`](crate::giants) has what
//! is large.

use std::collections::BTreeSet;
use std::time::Duration;

use norfab_client::{
    Client, Clock, JobDetail, JobEvent, JobHandle, JobId, JobStatus, NewJob, Outcome, Role, SqliteStore, SystemClock,
    Workers,
};
use norfab_nfp::Frames;
use omq_tokio::{CurveKeypair, Message, Options, Socket, SocketType};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::common::Ground;

/// How often each kind of message comes in a flood.
const FLOOD: usize = 1_100;
/// Messages that may wait for a client.
const QUEUE: u32 = 1 << 20;

/// A broker that says what it is told to.
pub(crate) struct Hostile {
    socket: Socket,
    pub(crate) endpoint: String,
    client: String,
    pub(crate) workers: Value,
    /// The command and the UUID of each request for a job so far.
    asked: Vec<(String, String)>,
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
        Self { socket, endpoint, client: String::new(), workers: json!([]), asked: Vec::new() }
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
                let request = (text(3), text(6));
                self.asked.push(request.clone());
                return request;
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
        self.message(Message::multipart(frames)).await;
    }

    pub(crate) async fn message(&mut self, message: Message) {
        self.socket.send_to(self.client.as_str(), message).await.expect("it is connected");
    }

    pub(crate) async fn accept(&mut self, id: &str) {
        let workers = json!({"workers": ["w1"], "uuid": id, "target": "w1", "status": "DISPATCHED", "service": "demo"});
        self.reply(id, "202", &workers).await;
        self.reply(id, "201", &json!({"worker": "w1", "uuid": id, "status": "ACCEPTED", "service": "demo"})).await;
    }

    /// Says of a job, in the name of a worker, all that can be said of one.
    async fn claim(&mut self, id: &str, worker: &str) {
        let question = json!({"id": "q1", "question": "a lie?", "default": true, "timeout": 60, "metadata": {}});
        for (status, claim) in [
            (
                "202",
                json!({"workers": [worker], "uuid": id, "target": worker, "status": "DISPATCHED", "service": "demo"}),
            ),
            ("201", json!({"worker": worker, "uuid": id, "status": "ACCEPTED", "service": "demo"})),
            ("300", json!({"worker": worker, "uuid": id, "status": "STARTED", "service": "demo"})),
            ("102", json!({"worker": worker, "uuid": id, "input_request": question})),
            ("404", json!({"worker": worker, "uuid": id, "status": "JOB NOT FOUND"})),
            ("400", json!({"workers": null, "uuid": id, "target": worker, "errors": ["a lie"]})),
            ("200", result(worker, "a lie")),
        ] {
            self.reply(id, status, &claim).await;
        }
        for kind in ["progress", "result_ready", "input_request", "input_response", "another"] {
            let mut claim = event(id, 1);
            claim["worker"] = json!(worker);
            claim["event_type"] = json!(kind);
            claim["extras"] = json!({"input_request": question, "input_response": {"input_id": "q1"}});
            self.say("0x08", "demo", id, "200", &claim).await;
        }
    }
}

pub(crate) fn event(id: &str, number: usize) -> Value {
    json!({"worker": "w1", "service": "demo", "uuid": id, "event_type": "progress", "message": format!("step {number}"),
        "task": "echo", "status": "running", "resource": [], "severity": "INFO", "timestamp": "x", "extras": {"text": "x".repeat(500)}})
}

pub(crate) fn result(worker: &str, text: &str) -> Value {
    json!({ worker: {"result": text, "failed": false, "errors": [], "messages": [], "status": "completed"} })
}

/// A job to the worker by whose name most is said.
pub(crate) fn to_w1() -> NewJob {
    NewJob::new("demo", "echo").workers(Workers::One("w1".to_owned()))
}

/// Adds a job, and has it sent and accepted.
pub(crate) async fn running(broker: &mut Hostile, client: &Client) -> JobHandle<SqliteStore, SystemClock> {
    let handle = client.submit_job(to_w1()).await.expect("added");
    assert_eq!(broker.post().await, handle.id().as_str());
    broker.accept(handle.id().as_str()).await;
    handle
}

/// The end of a job that `w1` has told the truth about. All that came before was read by then: messages come in their order.
pub(crate) async fn ends_with_the_truth(broker: &mut Hostile, handle: &mut JobHandle<SqliteStore, SystemClock>) {
    broker.reply(handle.id().as_str(), "200", &result("w1", "the truth")).await;
    let outcome = handle.outcome().await.expect("ends");
    let Outcome::Completed { results } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(results.keys().collect::<Vec<_>>(), ["w1"]);
    assert!(results.values().all(|result| result.as_str().contains("the truth")), "{results:?}");
}

/// Of jobs that it was not given, that are withdrawn or have ended, it may say what it likes; and of one that it was given,
/// in the name of a worker that is none of the job's.
#[tokio::test]
async fn what_is_said_of_others_changes_nothing() {
    let ground = Ground::start().await;
    let mut broker = Hostile::start().await;
    ground.lead_to(&broker.endpoint);
    let client = ground.client(Role::Beside).await;
    let later = || to_w1().at(SystemClock.now().plus_seconds(3600));
    let waiting = client.schedule_job(later()).await.expect("added").id().clone();
    let withdrawn = client.schedule_job(later()).await.expect("added").id().clone();
    client.cancel_scheduled_job(&withdrawn).await.expect("withdrawn");
    let owner = ground.program().spawn_owner();
    let mut ended = running(&mut broker, &client).await;
    broker.say("0x08", "demo", ended.id().as_str(), "200", &event(ended.id().as_str(), 1)).await;
    ends_with_the_truth(&mut broker, &mut ended).await;
    let mut given = running(&mut broker, &client).await;
    let others =
        [(&waiting, JobStatus::Scheduled), (&withdrawn, JobStatus::Cancelled), (ended.id(), JobStatus::Completed)];
    let mut before = Vec::new();
    for (id, status) in others {
        let known = known_of(&ground, &client, id).await;
        assert_eq!(known.detail.job.status, status);
        before.push(known);
    }
    let asked_before = broker.asked.len();

    for _ in 0..10 {
        for (id, _) in others {
            broker.claim(id.as_str(), "w1").await;
        }
        broker.claim(given.id().as_str(), "w2").await;
    }
    ends_with_the_truth(&mut broker, &mut given).await;
    // What was asked meanwhile has come when this has.
    let mut last = running(&mut broker, &client).await;
    ends_with_the_truth(&mut broker, &mut last).await;

    for ((id, _), before) in others.iter().zip(before) {
        assert_eq!(known_of(&ground, &client, id).await, before);
        let asked = broker.asked[asked_before..].iter().filter(|(_, asked)| asked == id.as_str());
        assert_eq!(asked.count(), 0, "{:?}", broker.asked);
    }
    let given = known_of(&ground, &client, given.id()).await;
    assert_eq!(given.detail.job.workers_dispatched, ["w1"]);
    assert_eq!(given.detail.job.workers_completed.iter().collect::<Vec<_>>(), ["w1"]);
    assert!(given.events.iter().all(|event| !event.data.as_str().contains("w2")), "{:?}", given.events);
    client.shutdown().await;
    owner.stop().await;
    ground.fabric.shutdown().await;
}

/// All that a database has of a job.
#[derive(Debug, PartialEq)]
struct Known {
    detail: JobDetail,
    events: Vec<JobEvent>,
    /// Each column as it stands in the table.
    row: String,
}

async fn known_of(ground: &Ground, client: &Client, id: &JobId) -> Known {
    let detail = client.get_job(id).await.expect("there");
    let events = client.job_events(id, 0, 1000).await.expect("readable");
    let mut connection = SqliteConnectOptions::new().filename(ground.database()).connect().await.expect("opens");
    let columns = "SELECT group_concat('quote(' || name || ')', ' || char(10) || ') FROM pragma_table_info('jobs')";
    let columns: String = sqlx::query_scalar(columns).fetch_one(&mut connection).await.expect("reads");
    let row = AssertSqlSafe(format!("SELECT {columns} FROM jobs WHERE uuid = '{id}'"));
    let row = sqlx::query_scalar(row).fetch_one(&mut connection).await.expect("reads");
    connection.close().await.expect("closes");
    Known { detail, events, row }
}

/// Messages that cannot be used are told a few times, however many come.
#[tokio::test]
async fn a_flood_does_not_fill_the_log() {
    let ground = Ground::start().await;
    let mut broker = Hostile::start().await;
    ground.lead_to(&broker.endpoint);
    let client = ground.client(Role::Beside).await;
    let owner = ground.program().spawn_owner();
    let mut given = running(&mut broker, &client).await;
    flood(&mut broker, given.id().as_str(), FLOOD).await;
    ends_with_the_truth(&mut broker, &mut given).await;
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
