//! What the tests of the program share: a fabric in the test's process, the program in processes of its own.

#![allow(dead_code, reason = "each test file uses its part")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use norfab_client::{Client, Job, JobId, Outcome, Role, SystemClock};
use norfab_loopback::{Loopback, LoopbackConfig, LoopbackError};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpSocket;
use tokio::process::{Child, ChildStderr, Command};

/// Longer than anything here takes, also on a machine that is busy with something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder for a client, and a fabric.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    pub(crate) fabric: Loopback,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Reads stdout, which must be exactly one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// The command failed with this code, and its error has this part.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, part: &str) -> &Self {
        self.exits(code);
        assert!(self.stderr.contains(part), "{self:?}");
        assert!(self.stderr.contains("error:") && self.stdout.is_empty(), "{self:?}");
        self
    }

    /// The command printed this error as JSON.
    #[track_caller]
    pub(crate) fn fails_in_json(&self, code: i32, kind: &str, part: &str) -> &Self {
        self.exits(code);
        let error = &self.json()["error"];
        assert_eq!(error["kind"], kind, "{self:?}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{self:?}");
        self
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The program, without what the environment of the tests might tell it.
pub(crate) fn norfab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_norfab"));
    command.env_remove("NORFAB_BASE_DIR").env_remove("NORFAB_LOG").env("TZ", "UTC");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Waits for a command to end.
pub(crate) async fn end(command: &mut Command) -> Ended {
    let child = command.spawn().expect("starts");
    ended(child).await
}

pub(crate) async fn ended(child: Child) -> Ended {
    tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("ends in time").expect("ends").into()
}

/// Sends a signal.
#[cfg(unix)]
pub(crate) async fn signal(name: &str, child: &Child) {
    let pid = child.id().expect("runs").to_string();
    let status = Command::new("kill").args([name, &pid]).status().await.expect("kill starts");
    assert!(status.success());
}

impl Site {
    pub(crate) async fn start() -> Self {
        let fabric = Loopback::start(LoopbackConfig::default(), SystemClock).await.expect("fabric starts");
        Self { folder: TempDir::new().expect("temporary folder"), fabric }
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.folder.path().join("__norfab__/files/client/norfab/norfab.db")
    }

    /// The program for this folder and fabric.
    pub(crate) fn command(&self, line: &[&str]) -> Command {
        at(self.folder.path(), self.fabric.endpoint(), line)
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, line: &[&str]) -> Ended {
        end(&mut self.command(line)).await
    }

    /// A client that only looks on, to wait for what other processes do.
    pub(crate) async fn watcher(&self) -> Client {
        Client::builder()
            .folder(self.folder.path())
            .endpoint(self.fabric.endpoint())
            .role(Role::Beside)
            .build()
            .await
            .expect("client")
    }

    /// The job that a command has just told of in JSON, watched to its end.
    pub(crate) async fn outcome(&self, uuid: &Value) -> (Job, Outcome) {
        let client = self.watcher().await;
        let id = JobId::new(uuid.as_str().expect("a UUID")).expect("a UUID");
        let mut handle = client.job(&id).await.expect("is there");
        let outcome = tokio::time::timeout(PATIENCE, handle.outcome()).await.expect("ends in time").expect("outcome");
        let job = handle.job().await.expect("is there");
        client.shutdown().await;
        (job, outcome)
    }
}

/// The program for a folder and an endpoint.
pub(crate) fn at(folder: &Path, endpoint: &str, line: &[&str]) -> Command {
    let mut command = norfab();
    command.arg("--base-dir").arg(folder).args(["--broker", endpoint]).args(line);
    command
}

/// A port that is taken and at which nobody listens: whoever connects is refused, and no other test can get it.
pub(crate) struct Nobody {
    socket: TcpSocket,
}

impl Nobody {
    pub(crate) fn listens() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        Self { socket }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("bound").port()
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port())
    }

    /// A fabric at this port from now on; none if somebody else got it in this moment.
    pub(crate) async fn give_way(self) -> Option<Loopback> {
        let port = self.port();
        drop(self);
        match Loopback::start(LoopbackConfig::default().port(port), SystemClock).await {
            Ok(fabric) => Some(fabric),
            Err(LoopbackError::Bind { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A running `norfab run`.
pub(crate) struct Owner {
    pub(crate) child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Owner {
    /// Starts it and waits until it serves.
    pub(crate) async fn start(site: &Site) -> Self {
        let mut owner = Self::spawn(&mut site.command(&["run"]));
        owner.wait_for("The link to the broker is up").await;
        owner
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("starts");
        let log = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self { child, log }
    }

    /// Waits for a line of its log with this part.
    pub(crate) async fn wait_for(&mut self, part: &str) -> String {
        let mut seen = Vec::new();
        let found = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = self.log.next_line().await.expect("UTF-8") {
                if line.contains(part) {
                    return line;
                }
                seen.push(line);
            }
            panic!("the log ended without {part:?}");
        });
        found.await.unwrap_or_else(|_| panic!("no line with {part:?} in time"))
    }

    /// Stops it in order.
    #[cfg(unix)]
    pub(crate) async fn stop(self) -> Ended {
        signal("-TERM", &self.child).await;
        // The pipe stays open until it has ended.
        let Self { child, log: _log } = self;
        ended(child).await
    }
}
