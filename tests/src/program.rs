//! Our own program in processes of its own: commands that are run to their end, and an owner that is stopped in order or
//! killed at any moment.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use norfab_client::{Clock, SystemClock};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::wait::PATIENCE;

/// A stop in order is promised within two seconds; the rest is for a machine that is busy with other things.
const STOP_LIMIT: Duration = Duration::from_secs(6);
/// How much of a log a failure shows.
const SHOWN: usize = 40;

/// The program for one client of a NorFab folder.
#[derive(Clone, Debug)]
pub struct Program {
    executable: PathBuf,
    folder: PathBuf,
    client: String,
    log: Option<String>,
    form: Form,
    #[cfg(unix)]
    user: Option<u32>,
}

/// For whom it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The exit code; nothing when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said besides.
    pub stderr: String,
}

/// A running `norfab run`. It is killed when this is dropped, and what it logged is shown if the test fails.
#[derive(Debug)]
pub struct OwnerProcess {
    child: Child,
    log: watch::Receiver<Vec<String>>,
    reader: JoinHandle<()>,
    printer: JoinHandle<String>,
}

/// A `norfab run` that was asked to stop and has ended.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub status: ExitStatus,
    /// All that it logged.
    pub log: Vec<String>,
    /// What it printed.
    pub stdout: String,
}

impl Program {
    /// The program at this path, for the client of this name in the folder of an `inventory.yaml`. A test of this package
    /// knows the path: `env!("CARGO_BIN_EXE_norfab-under-test")`.
    pub fn new(executable: impl Into<PathBuf>, folder: &Path, client: &str) -> Self {
        Self {
            executable: executable.into(),
            folder: folder.to_owned(),
            client: client.into(),
            log: None,
            form: Form::Text,
            #[cfg(unix)]
            user: None,
        }
    }

    /// Another copy of the program.
    pub fn at(self, executable: &Path) -> Self {
        Self { executable: executable.to_owned(), ..self }
    }

    /// The same, with a log of these directives.
    pub fn log(self, directives: &str) -> Self {
        Self { log: Some(directives.to_owned()), ..self }
    }

    /// The same, printing JSON.
    pub fn json(self) -> Self {
        Self { form: Form::Json, ..self }
    }

    /// The same, run as the user with this number, which only root may do.
    #[cfg(unix)]
    pub fn user(self, user: u32) -> Self {
        Self { user: Some(user), ..self }
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    ///
    /// When it does not start, or takes longer than anything that works.
    pub async fn run(&self, line: &[&str]) -> Ended {
        let output = self.command(line).output();
        let output = tokio::time::timeout(PATIENCE, output).await;
        output.unwrap_or_else(|_| panic!("it did not end: {line:?}")).expect("the program did not start").into()
    }

    /// Starts `norfab run`, and does not wait for anything.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn spawn_owner(&self) -> OwnerProcess {
        let mut child = self.command(&["run"]).spawn().expect("the program did not start");
        let stderr = child.stderr.take().expect("stderr is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (lines, log) = watch::channel(Vec::new());
        OwnerProcess { child, log, reader: tokio::spawn(read(stderr, lines)), printer: tokio::spawn(read_all(stdout)) }
    }

    /// Starts `norfab run`, and waits until it has reached the broker.
    ///
    /// # Panics
    ///
    /// When it does not get that far.
    pub async fn start_owner(&self) -> OwnerProcess {
        let mut owner = self.spawn_owner();
        owner.ready().await;
        owner
    }

    /// A command without what the environment of the test might tell it.
    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command.env_remove("NORFAB_BASE_DIR").env_remove("NORFAB_LOG").env("TZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(directives) = &self.log {
            command.env("NORFAB_LOG", directives);
        }
        if self.form == Form::Json {
            command.arg("--json");
        }
        #[cfg(unix)]
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.arg("--base-dir").arg(&self.folder).args(["--client", &self.client]).args(line);
        command
    }
}

impl Ended {
    /// The one JSON value that it printed.
    ///
    /// # Panics
    ///
    /// When it printed anything else.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl OwnerProcess {
    /// Its process; nothing when it has ended.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until it has reached the broker.
    ///
    /// # Panics
    ///
    /// As [`logged`](Self::logged).
    pub async fn ready(&mut self) {
        self.logged("The link to the broker is up").await;
    }

    /// Waits for a line of its log with this part, which may be there already, and gives it.
    ///
    /// # Panics
    ///
    /// When it ends without one, or does not log one for a long time.
    pub async fn logged(&mut self, part: &str) -> String {
        let has_part = |lines: &Vec<String>| lines.iter().any(|line| line.contains(part));
        let seen = tokio::time::timeout(PATIENCE, self.log.wait_for(has_part)).await;
        let found = seen.ok().and_then(Result::ok).and_then(|log| log.iter().find(|line| line.contains(part)).cloned());
        found.unwrap_or_else(|| panic!("the owner did not log {part:?}"))
    }

    /// What it has logged so far.
    pub fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Kills it where it is, as a crash or a power cut would, waits until it is gone, and gives its log.
    ///
    /// # Panics
    ///
    /// When it had ended by itself.
    pub async fn kill(mut self) -> Vec<String> {
        let ended = self.child.try_wait().expect("its state can be asked for");
        assert_eq!(ended, None, "the owner ended by itself");
        self.child.kill().await.expect("it can be killed");
        self.rest_of_log().await
    }

    /// Asks it to stop, by SIGTERM, waits until it has ended in order, and gives its log.
    ///
    /// # Panics
    ///
    /// When it takes much longer than it may, or ends in any other way.
    pub async fn stop(self) -> Vec<String> {
        let Stopped { status, log, .. } = self.stop_by("TERM").await;
        assert!(status.success(), "the owner did not stop in order: {status}");
        log
    }

    /// Sends it a signal, such as `TERM` or `INT`, waits until it has ended, and tells how it did.
    ///
    /// # Panics
    ///
    /// When it takes much longer than it may.
    pub async fn stop_by(mut self, signal: &str) -> Stopped {
        let pid = self.pid().expect("the owner ended by itself").to_string();
        let begin = SystemClock.now();
        let kill = Command::new("kill").args([&format!("-{signal}"), &pid]).status().await.expect("kill starts");
        assert!(kill.success(), "it cannot be signalled");
        let status = self.ended(STOP_LIMIT).await;
        let took = SystemClock.now().since(begin);
        let log = self.rest_of_log().await;
        let printed = tokio::time::timeout(PATIENCE, &mut self.printer).await;
        let stdout = printed.expect("its output ends").expect("its output can be read");
        Stopped { took, status, log, stdout }
    }

    /// Waits until it ends by itself, and gives how it did and its log.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub async fn end(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.ended(PATIENCE).await;
        (status, self.rest_of_log().await)
    }

    async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let ended = tokio::time::timeout(limit, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("the owner did not end within {limit:?}")).expect("its end can be waited for")
    }

    /// Its whole log, once the process is gone.
    async fn rest_of_log(&mut self) -> Vec<String> {
        let read = tokio::time::timeout(PATIENCE, &mut self.reader).await;
        read.expect("its log ends").expect("its log can be read");
        self.log()
    }
}

impl Drop for OwnerProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log.borrow();
            let shown = log.get(log.len().saturating_sub(SHOWN)..).unwrap_or_default();
            eprintln!("The end of the owner's log:\n{}", shown.join("\n"));
        }
    }
}

/// Reads a log to its end.
async fn read(stderr: ChildStderr, log: watch::Sender<Vec<String>>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log.send_modify(|log| log.push(line));
    }
}

/// Reads what is printed to its end.
async fn read_all(mut stdout: ChildStdout) -> String {
    let mut printed = Vec::new();
    // What came before an error is all that there is.
    let _ = stdout.read_to_end(&mut printed).await;
    String::from_utf8_lossy(&printed).into_owned()
}
