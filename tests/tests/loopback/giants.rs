//! What a broker that means harm may say much of, or at length: the client keeps its memory, which is measured at its peak,
//! in a process of its own.

use std::fs;

use norfab_client::{Client, Clock, JobId, NewJob, Outcome, Role, SystemClock, WorkerResult, Workers};
use norfab_tests::{OwnerProcess, eventually};
use omq_tokio::Message;
use serde_json::{Value, json};

use crate::common::Ground;
use crate::hostile::{Hostile, ends_with_the_truth, event, result, running};

const MEBIBYTE: u64 = 1 << 20;
/// The bytes of a large text: with what is around it, less than the most that a question may have.
const LARGE: usize = 1_000_000;

/// What the system says of a process's memory, in bytes.
pub(crate) fn memory(pid: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("readable");
    let line = status.lines().find(|line| line.starts_with(what)).expect("there");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number") * 1024
}

/// How much more memory a process has than it had.
struct Growth {
    pid: u32,
    before: u64,
}

impl Growth {
    fn begin(owner: &OwnerProcess) -> Self {
        let pid = owner.pid().expect("it runs");
        // Forgets the peak that there was.
        fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("writable");
        Self { pid, before: memory(pid, "VmRSS") }
    }

    /// In mebibytes.
    fn now(&self) -> u64 {
        memory(self.pid, "VmRSS").saturating_sub(self.before) / MEBIBYTE
    }

    /// At no moment was it more, in mebibytes.
    #[track_caller]
    fn is_below(&self, limit: u64) {
        let most = memory(self.pid, "VmHWM").saturating_sub(self.before) / MEBIBYTE;
        assert!(most < limit, "{most} MiB more than before");
    }
}

fn message(command: &str, id: &str, status: &str, payload: &Value) -> Message {
    let frames = ["", "NFPB01", command, "demo", id, status, &payload.to_string()];
    Message::multipart(frames.map(|frame| frame.as_bytes().to_vec()))
}

/// Each kind of message of a job, with a megabyte where it has room for one.
fn large(id: &str) -> Vec<Message> {
    let text = "x".repeat(LARGE);
    let mut told = event(id, 1);
    told["extras"] = json!({ "text": text });
    let mut said = event(id, 1);
    said["message"] = json!(text);
    vec![
        message("0x05", id, "200", &result("w1", &text)),
        message("0x08", id, "200", &told),
        message("0x08", id, "200", &said),
        message("0x05", id, "201", &json!({"worker": text, "uuid": id})),
        message("0x05", id, "404", &json!({"worker": text, "uuid": id})),
        message("0x05", id, "400", &json!({"workers": null, "errors": [text]})),
        asks(id, &json!({ "text": text })),
    ]
}

/// A question with such metadata.
fn asks(id: &str, metadata: &Value) -> Message {
    let question = json!({"id": "q1", "question": "Go on?", "metadata": metadata});
    message("0x05", id, "102", &json!({"worker": "w1", "input_request": question}))
}

/// Says each of them so many times.
async fn flood(broker: &mut Hostile, messages: &[Message], times: usize) {
    for _ in 0..times {
        for message in messages {
            broker.message(message.clone()).await;
        }
    }
}

/// A job that the client does not have.
fn unknown() -> String {
    JobId::generate(SystemClock.now()).to_string()
}

/// All that is said is of a job that the client does not have: it is read, and that is all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_not_kept() {
    let ground = Ground::start().await;
    let mut broker = Hostile::start().await;
    ground.lead_to(&broker.endpoint);
    let client = ground.client(Role::Beside).await;
    let owner = ground.program().spawn_owner();
    let mut given = running(&mut broker, &client).await;
    let growth = Growth::begin(&owner);
    let messages = large(&unknown());
    flood(&mut broker, &messages, 32).await;
    ends_with_the_truth(&mut broker, &mut given).await;
    growth.is_below(128);
    client.shutdown().await;
    owner.stop().await;
    ground.fabric.shutdown().await;
}

/// Nothing can be applied while the database is away, so that what comes has to wait. Of a database that is locked the same
/// holds, but the owner waits for it five seconds at each attempt, and reads only between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_the_database_is_bounded() {
    let ground = Ground::start().await;
    let mut broker = Hostile::start().await;
    ground.lead_to(&broker.endpoint);
    let client = ground.client(Role::Beside).await;
    let mut owner = ground.program().spawn_owner();
    running(&mut broker, &client).await;
    client.shutdown().await;
    let growth = Growth::begin(&owner);
    fs::rename(ground.database(), ground.path().join("away.db")).expect("moved");
    owner.logged("was removed or moved away").await;
    flood(&mut broker, &[asks(&unknown(), &json!("x".repeat(LARGE)))], 448).await;

    // It takes what it has room for, and then no more: a second in which it has read nothing.
    let (mut last, mut same) = (0, 0);
    let is_full = async || {
        let now = growth.now();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (now >= 128 && same >= 50).then_some(())
    };
    eventually("an end of what it takes", is_full).await;
    growth.is_below(288);
    owner.stop().await;
    ground.fabric.shutdown().await;
}

/// A result that is far too large to be kept, and masses of workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giants_do_not_stay() {
    let ground = Ground::start().await;
    let mut broker = Hostile::start().await;
    ground.lead_to(&broker.endpoint);
    let client = ground.client(Role::Beside).await;
    let owner = ground.program().spawn_owner();
    let mut given = running(&mut broker, &client).await;
    let growth = Growth::begin(&owner);
    broker.reply(given.id().as_str(), "200", &result("w1", &"x".repeat(80 << 20))).await;
    let outcome = given.outcome().await.expect("ends");
    let Outcome::Completed { results } = &outcome else { panic!("{outcome:?}") };
    let failed = |result| WorkerResult::read(result).expect("a result").failed;
    assert!(results.values().all(failed), "it is told as that worker's failure");
    // Three copies of it would be more.
    growth.is_below(224);

    let growth = Growth::begin(&owner);
    masses_of_workers(&mut broker, &client).await;
    growth.is_below(160);
    client.shutdown().await;
    owner.stop().await;
    ground.fabric.shutdown().await;
}

async fn masses_of_workers(broker: &mut Hostile, client: &Client) {
    let names: Vec<String> = (0..100_000).map(|number| format!("demo-worker-{number}")).collect();
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
