//! What workers ask while a command waits for a job: answered from the command line, by the person at the terminal, or
//! not at all.

use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, IsTerminal};

use norfab_client::{ClientError, InputRequest, Job, JobHandle, JobStatus, Json, SqliteStore, SystemClock};
use tokio::sync::mpsc;

use crate::output::{Format, Output, Stream, Tint, plain};
use crate::payload;

/// A handle of a client with the usual ports.
pub(crate) type Handle = JobHandle<SqliteStore, SystemClock>;

/// The questions of one job.
#[derive(Debug)]
pub(crate) struct Questions {
    answers: VecDeque<Json>,
    known: HashSet<String>,
    /// Asked of the person: the first one is on the screen.
    open: VecDeque<(String, InputRequest)>,
    keyboard: Keyboard,
}

/// Who could answer what the command line does not.
#[derive(Debug)]
enum Keyboard {
    /// Nobody.
    None,
    /// The person at the terminal, not asked yet.
    Ready,
    /// The person, who was asked: lines come from a thread of its own, for reading cannot be interrupted.
    Reading(mpsc::UnboundedReceiver<String>),
}

impl Questions {
    /// With these answers; then the terminal is asked, if there is one.
    #[must_use]
    pub(crate) fn new(answers: &[String], out: &Output) -> Self {
        let asks = out.format() == Format::Human && std::io::stdin().is_terminal();
        Self {
            answers: answers.iter().map(|text| payload::value(text)).collect(),
            known: HashSet::new(),
            open: VecDeque::new(),
            keyboard: if asks { Keyboard::Ready } else { Keyboard::None },
        }
    }

    /// Looks at what a job asks now, and answers what can be answered.
    pub(crate) async fn look(&mut self, job: &Job, handle: &Handle, out: &Output) -> Result<(), ClientError> {
        if job.status != JobStatus::WaitingClientInput {
            self.open.clear();
            return Ok(());
        }
        for (worker, request) in &job.pending_inputs {
            if !self.known.insert(format!("{worker}/{}", request.id)) {
                continue;
            }
            let question =
                format!("{} {}: {}", Tint::Notice.on(Stream::Stderr, "asks"), plain(worker), plain(&request.question));
            match (self.answers.pop_front(), &self.keyboard) {
                (Some(answer), _) => {
                    out.progress(&format!("{question} (answered by --answer)"));
                    reply(handle, worker, answer, out).await?;
                }
                (None, Keyboard::None) => {
                    out.note(&format!(
                        "{}: nobody is here to answer; give --answer for each worker that asks, or it goes on by itself",
                        plain(worker)
                    ));
                }
                (None, _) => {
                    self.open.push_back((worker.clone(), request.clone()));
                    if self.open.len() == 1 {
                        self.prompt(out);
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for the person's line. Never returns while nothing is asked. Safe to drop while it waits.
    pub(crate) async fn line(&mut self) -> String {
        match &mut self.keyboard {
            Keyboard::Reading(lines) if !self.open.is_empty() => match lines.recv().await {
                Some(line) => line,
                // The terminal is gone: whoever asks goes on by itself.
                None => std::future::pending().await,
            },
            _ => std::future::pending().await,
        }
    }

    /// Sends the person's line as the answer to the question on the screen; an empty one means the default.
    pub(crate) async fn answer(&mut self, line: &str, handle: &Handle, out: &Output) -> Result<(), ClientError> {
        let Some((worker, request)) = self.open.pop_front() else { return Ok(()) };
        let line = line.trim_end_matches(['\r', '\n']);
        let value = if line.is_empty() { Json::from(&request.default) } else { payload::value(line) };
        reply(handle, &worker, value, out).await?;
        if !self.open.is_empty() {
            self.prompt(out);
        }
        Ok(())
    }

    fn prompt(&mut self, out: &Output) {
        let Some((worker, request)) = self.open.front() else { return };
        let default = match &request.default {
            serde_json::Value::Null => String::new(),
            value => format!(" [{}]", plain(&value.to_string())),
        };
        let asks = Tint::Notice.on(Stream::Stderr, "asks");
        out.progress(&format!("{asks} {}: {}{default} (answer, then Enter)", plain(worker), plain(&request.question)));
        if matches!(self.keyboard, Keyboard::Ready) {
            self.keyboard = Keyboard::Reading(read_lines());
        }
    }
}

async fn reply(handle: &Handle, worker: &str, answer: Json, out: &Output) -> Result<(), ClientError> {
    match handle.send_response(worker, answer).await {
        // It was answered, or went on by itself, meanwhile.
        Err(error @ ClientError::NoQuestion { .. }) => {
            out.note(&error.to_string());
            Ok(())
        }
        other => other,
    }
}

/// Reads lines until the terminal or the receiver is gone.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
