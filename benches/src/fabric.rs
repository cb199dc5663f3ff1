//! A loopback fabric in a process of its own, so that what it costs is not counted as the client's: this program starts
//! itself with a hidden option.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use norfab_client::SystemClock;
use norfab_loopback::{Loopback, LoopbackConfig};
use norfab_model::Timestamp;

/// The hidden option.
pub(crate) const OPTION: &str = "--serve-loopback";

/// The service of the workers.
pub(crate) const SERVICE: &str = "bench";
/// The first worker.
pub(crate) const WORKER: &str = "bench-worker-1";

/// A running fabric. It ends when this is dropped.
pub(crate) struct Fabric {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    endpoint: String,
}

/// A POST as it came from the wire.
pub(crate) type SeenPost = (String, Timestamp);

impl Fabric {
    /// Starts one, with one worker.
    pub(crate) fn start() -> Result<Self> {
        let program = std::env::current_exe().context("this program has no path")?;
        let mut process = Command::new(program)
            .arg(OPTION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the loopback does not start")?;
        let commands = process.stdin.take().context("no standard input")?;
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        let mut fabric = Self { process, commands, answers, endpoint: String::new() };
        fabric.endpoint = fabric.line()?;
        Ok(fabric)
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Every POST that came so far, in order.
    pub(crate) fn posts(&mut self) -> Result<Vec<SeenPost>> {
        writeln!(self.commands, "posts").context("the loopback is gone")?;
        let posts: Vec<(String, i64)> = serde_json::from_str(&self.line()?).context("not a list of POSTs")?;
        Ok(posts.into_iter().map(|(job, at)| (job, Timestamp::from_micros(at))).collect())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("the loopback is gone")?;
        anyhow::ensure!(!line.is_empty(), "the loopback has ended");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // One that has ended already cannot be ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the process with the hidden option does, until its standard input ends: a line asks for all POSTs.
pub(crate) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let config = LoopbackConfig { concurrency: 64, ..LoopbackConfig::new(SERVICE, 1) };
    let loopback = runtime.block_on(Loopback::start(config, SystemClock))?;
    println!("{}", loopback.endpoint());
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        let messages = loopback.messages();
        let posts = messages.iter().filter(|message| message.command == "0x04");
        let posts: Vec<_> = posts.map(|message| (&message.uuid, message.at.as_micros())).collect();
        println!("{}", serde_json::to_string(&posts)?);
    }
    Ok(())
}
