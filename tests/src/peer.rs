//! The real broker and workers of NorFab, in processes of their own, for one test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, mpsc};

use crate::python;
use crate::record::{self, ClientMessage, Execution, Tally};

/// More than the peer takes to give up starting or stopping by itself.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Whether broker and workers speak CURVE, which is NorFab's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Encrypted, the broker's key being known.
    Curve,
    /// In the clear.
    Plain,
}

/// What a peer is to be like.
#[derive(Clone, Debug)]
pub struct Builder {
    workers: u32,
    service: String,
    security: Security,
    keepalive: Duration,
    multiplier: u32,
    concurrency: u32,
}

/// A running broker with its workers. They end, and their files go, when this is dropped.
#[derive(Debug)]
pub struct Peer {
    about: About,
    line: Mutex<Line>,
    process: Child,
    folder: TempDir,
}

/// What a client has to know of the peer.
#[derive(Clone, Debug, Deserialize)]
pub struct About {
    /// Where the broker listens: `tcp://127.0.0.1:PORT`.
    pub endpoint: String,
    /// The broker's public key in Z85, with CURVE.
    pub public_key: Option<String>,
    /// The service of the workers.
    pub service: String,
    /// The names of the workers that were there at the start.
    pub workers: Vec<String>,
    /// The folder of `inventory.yaml` and of all that the processes write.
    pub base_dir: PathBuf,
    /// The process that started the others.
    pub pid: u32,
}

/// A look at the peer's processes and files.
#[derive(Clone, Debug, Deserialize)]
pub struct Stats {
    /// The broker.
    pub broker: Process,
    /// The workers by name, those that ended too.
    pub workers: BTreeMap<String, Process>,
    /// Whom the broker knows; nothing when it does not answer.
    pub registered: Option<Vec<Registered>>,
    /// Lines of `executions.jsonl`.
    pub executions: u64,
    /// Lines of `client-messages.jsonl`.
    pub client_messages: u64,
}

/// A broker or worker process.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Process {
    /// Whether it runs; a paused one does.
    pub running: bool,
    /// Its number.
    pub pid: u32,
}

/// A worker as the broker lists it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// Its service.
    pub service: String,
    /// `alive`, or what the broker thinks of it.
    pub status: String,
}

/// A worker that was started later.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Started {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
}

/// The conversation with the process that started the others: one line each way.
#[derive(Debug)]
struct Line {
    /// Nothing once the peer is told to end.
    commands: Option<ChildStdin>,
    answers: mpsc::UnboundedReceiver<String>,
    /// Nothing ever comes; it breaks when the peer has ended.
    ended: Receiver<()>,
}

#[derive(Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(flatten)]
    fields: Value,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            workers: 1,
            service: "dummy".into(),
            security: Security::Curve,
            keepalive: Duration::from_millis(2500),
            multiplier: 6,
            concurrency: 5,
        }
    }
}

impl Builder {
    /// The number of workers, 1 if not said; they are named `SERVICE-worker-1` and so on.
    pub fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// The service of the workers, `dummy` if not said.
    pub fn service(self, service: &str) -> Self {
        Self { service: service.into(), ..self }
    }

    /// CURVE if not said.
    pub fn security(self, security: Security) -> Self {
        Self { security, ..self }
    }

    /// The interval of keepalives between broker and workers, in whole milliseconds; 2.5 s if not said.
    pub fn keepalive(self, keepalive: Duration) -> Self {
        Self { keepalive, ..self }
    }

    /// How many keepalives may be missed before the other one is taken for dead; 6 if not said.
    pub fn multiplier(self, multiplier: u32) -> Self {
        Self { multiplier, ..self }
    }

    /// How many jobs a worker runs at once; 5 if not said.
    pub fn concurrency(self, concurrency: u32) -> Self {
        Self { concurrency, ..self }
    }

    /// Starts the broker and the workers, and returns when all of them are registered. Nothing when the environment
    /// says that tests without the real NorFab are wanted.
    ///
    /// # Panics
    ///
    /// When the peer's Python is missing, or the peer does not start.
    pub async fn start(self) -> Option<Peer> {
        let python = python::interpreter()?;
        let folder = tempfile::Builder::new().prefix("norfab-peer-").tempdir().expect("no temporary folder");
        let complaints = folder.path().join("peer-stderr.log");
        let stderr = std::fs::File::create(&complaints).expect("no file for the peer's standard error");
        let mut process = Command::new(python)
            .args(self.arguments(folder.path()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the peer did not start");
        let commands = process.stdin.take();
        let (answers, ended) = listen(process.stdout.take().expect("stdout is piped"));
        let mut line = Line { commands, answers, ended };
        let Some(first) = line.answer().await else {
            let said = std::fs::read_to_string(&complaints).unwrap_or_default();
            panic!("the peer did not get ready: {said}");
        };
        Some(Peer { about: parse(&first), line: Mutex::new(line), process, folder })
    }

    fn arguments(&self, folder: &Path) -> Vec<String> {
        let mut arguments = vec![python::script("peer.py").display().to_string()];
        for (option, value) in [
            ("--base-dir", folder.display().to_string()),
            ("--workers", self.workers.to_string()),
            ("--service", self.service.clone()),
            ("--keepalive", self.keepalive.as_millis().to_string()),
            ("--multiplier", self.multiplier.to_string()),
            ("--concurrency", self.concurrency.to_string()),
        ] {
            arguments.extend([option.into(), value]);
        }
        arguments.push(if self.security == Security::Curve { "--auth" } else { "--no-auth" }.into());
        arguments
    }
}

impl Peer {
    /// One worker of the service `dummy`, with CURVE, unless told otherwise.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What a client has to know.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The folder of `inventory.yaml`.
    pub fn base_dir(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the broker in an orderly way.
    pub async fn stop_broker(&self) {
        self.act(json!({"cmd": "stop_broker"})).await;
    }

    /// Kills the broker.
    pub async fn kill_broker(&self) {
        self.act(json!({"cmd": "stop_broker", "kill": true})).await;
    }

    /// Starts the broker again, with the same endpoint and keys; returns when it listens, workers or not.
    pub async fn start_broker(&self) {
        self.act(json!({"cmd": "start_broker"})).await;
    }

    /// Starts the broker again, and returns when all running workers are registered.
    pub async fn start_broker_with_workers(&self) {
        self.act(json!({"cmd": "start_broker", "wait": true})).await;
    }

    /// Holds the broker's process where it is: what is sent to it waits.
    pub async fn pause_broker(&self) {
        self.act(json!({"cmd": "pause_broker"})).await;
    }

    /// Lets a paused broker go on.
    pub async fn resume_broker(&self) {
        self.act(json!({"cmd": "resume_broker"})).await;
    }

    /// Kills a worker.
    pub async fn kill_worker(&self, name: &str) {
        self.act(json!({"cmd": "kill_worker", "name": name})).await;
    }

    /// Stops a worker once its running jobs are done.
    pub async fn stop_worker(&self, name: &str) {
        self.act(json!({"cmd": "stop_worker", "name": name})).await;
    }

    /// Holds a worker's process where it is.
    pub async fn pause_worker(&self, name: &str) {
        self.act(json!({"cmd": "pause_worker", "name": name})).await;
    }

    /// Lets a paused worker go on.
    pub async fn resume_worker(&self, name: &str) {
        self.act(json!({"cmd": "resume_worker", "name": name})).await;
    }

    /// Starts a worker that ran before, under its name and with its memory; returns when it is registered.
    pub async fn restart_worker(&self, name: &str) -> Started {
        self.command(json!({"cmd": "start_worker", "name": name})).await
    }

    /// Starts one more worker, of any service; returns when it is registered.
    pub async fn add_worker(&self, service: &str) -> Started {
        self.command(json!({"cmd": "start_worker", "service": service})).await
    }

    /// Has a second client of this name ask the broker something, and leave again. From then on the broker knows the
    /// first one no more.
    pub async fn visit_as(&self, client: &str) {
        self.act(json!({"cmd": "visit", "client": client})).await;
    }

    /// Looks at processes, registrations and files.
    pub async fn stats(&self) -> Stats {
        self.command(json!({"cmd": "stats"})).await
    }

    /// Every execution of a task that has begun, in the order in which they did.
    pub fn executions(&self) -> Vec<Execution> {
        record::read_lines(&self.base_dir().join("executions.jsonl"))
    }

    /// Every execution of a task that has ended, in the order in which they did.
    pub fn finished(&self) -> Vec<Execution> {
        record::read_lines(&self.base_dir().join("finished.jsonl"))
    }

    /// How often each worker began to execute each job.
    pub fn runs(&self) -> Tally {
        record::tally(self.executions())
    }

    /// How often each worker ended an execution of each job, from when on it has its result.
    pub fn finished_runs(&self) -> Tally {
        record::tally(self.finished())
    }

    /// When the broker got each POST, in seconds since 1970, by the job's UUID.
    pub fn posts(&self) -> BTreeMap<String, Vec<f64>> {
        record::posts(self.client_messages())
    }

    /// Every message that the broker got from a client, in the order in which they came.
    pub fn client_messages(&self) -> Vec<ClientMessage> {
        record::read_lines(&self.base_dir().join("client-messages.jsonl"))
    }

    async fn act(&self, command: Value) {
        let _: IgnoredAny = self.command(command).await;
    }

    async fn command<T: DeserializeOwned>(&self, command: Value) -> T {
        let mut line = self.line.lock().await;
        let commands = line.commands.as_mut().expect("the peer runs until it is dropped");
        writeln!(commands, "{command}").and_then(|()| commands.flush()).expect("the peer ended by itself");
        let answer = line.answer().await.expect("the peer ended by itself");
        let answer: Answer = parse(&answer);
        assert!(answer.ok, "{command}: {}", answer.error);
        serde_json::from_value(answer.fields).unwrap_or_else(|error| panic!("answer to {command}: {error}"))
    }
}

impl Drop for Peer {
    /// Has the peer end all of its processes, and waits until they are gone: paused ones have to be woken for that,
    /// which only the peer does.
    fn drop(&mut self) {
        let line = self.line.get_mut();
        line.commands = None;
        if line.ended.recv_timeout(STOP_LIMIT) == Err(RecvTimeoutError::Timeout) {
            eprintln!("The peer does not stop and is killed: {}", self.base_dir().display());
            _ = self.process.kill();
        }
        _ = self.process.wait();
    }
}

impl Line {
    /// The next line, or nothing when the peer has ended or is stuck.
    async fn answer(&mut self) -> Option<String> {
        tokio::time::timeout(ANSWER_LIMIT, self.answers.recv()).await.ok().flatten()
    }
}

/// Reads the peer's lines in a thread, which works in any runtime and when a test is torn down.
fn listen(stdout: ChildStdout) -> (mpsc::UnboundedReceiver<String>, Receiver<()>) {
    let (lines, answers) = mpsc::unbounded_channel();
    let (alive, ended) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            _ = lines.send(line);
        }
        drop(alive); // the end of its output is the end of the peer
    });
    (answers, ended)
}

fn parse<T: DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("what the peer said: {error}: {line}"))
}
