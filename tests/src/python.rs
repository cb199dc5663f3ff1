//! The Python of the peer, and the real Python client.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

/// The Python interpreter that has NorFab, or nothing when the peer is to be left out.
///
/// # Panics
///
/// When there is none and nobody said that the peer is to be left out: a test must not pass by not running.
pub fn interpreter() -> Option<PathBuf> {
    if std::env::var_os("NORFAB_NO_PEER").is_some_and(|value| !value.is_empty() && value != "0") {
        eprintln!("Skipped: it needs the real NorFab, and NORFAB_NO_PEER is set");
        return None;
    }
    let given = std::env::var_os("NORFAB_PEER_PYTHON").map(PathBuf::from);
    let python = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv-peer/bin/python"));
    assert!(
        python.exists(),
        "{} is missing: run `cargo xtask peer`, or leave the real NorFab out with NORFAB_NO_PEER=1",
        python.display()
    );
    Some(python)
}

/// The path of one of the scripts in `tests/peer`.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peer").join(name)
}

/// A start of the real Python client on a database of the NorFab folder layout.
#[derive(Debug)]
pub struct PythonClient {
    command: tokio::process::Command,
}

/// What the Python client printed.
#[derive(Debug)]
pub struct PythonReport {
    /// Its own listing of the database, oldest first.
    pub jobs: Vec<PythonJob>,
    /// What the workers answered to the job that was run, by worker; `Null` when none was asked for.
    pub result: Value,
}

/// A job as the Python client lists it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct PythonJob {
    /// 32 hex digits.
    pub uuid: String,
    /// The service.
    pub service: String,
    /// The task.
    pub task: String,
    /// The status's name in the table.
    pub status: String,
    /// Positional arguments.
    pub args: Value,
    /// Keyword arguments.
    pub kwargs: Value,
    /// Results by worker, or `Null`.
    pub result_data: Value,
    /// All else.
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Job(Box<PythonJob>),
    Result(Value),
}

impl PythonClient {
    /// A client of this name in the folder of an `inventory.yaml`. Nothing when the peer is to be left out.
    pub fn new(base_dir: &Path, name: &str) -> Option<Self> {
        let mut command = tokio::process::Command::new(interpreter()?);
        command.arg(script("python_client.py")).arg("--base-dir").arg(base_dir).args(["--client", name]);
        Some(Self { command })
    }

    /// Has it run a job on all workers as well, once it has listed the others.
    pub fn run(mut self, service: &str, task: &str, kwargs: &Value) -> Self {
        self.command.args(["--run", service, task, "--kwargs", &kwargs.to_string()]);
        self
    }

    /// Starts it, and gives what it saw.
    ///
    /// # Panics
    ///
    /// When it fails, with what it said, or takes more than two minutes.
    pub async fn report(mut self) -> PythonReport {
        let output = self.command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(LIMIT, output).await.expect("the Python client did not end");
        let output = output.expect("the Python client did not start");
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "the Python client failed ({}): {complained}", output.status);
        let mut report = PythonReport { jobs: Vec::new(), result: Value::Null };
        for line in said.lines() {
            match serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")) {
                Line::Job(job) => report.jobs.push(*job),
                Line::Result(result) => report.result = result,
            }
        }
        report
    }
}
