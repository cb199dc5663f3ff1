//! Where a command's words go: results to stdout, in lines for a person or as one JSON value; progress, notes and errors
//! to stderr, above a countdown if there is one.

mod job;
mod moment;
mod pretty;
mod schedule;
mod table;
mod tint;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use serde::Serialize;
use tracing_subscriber::fmt::MakeWriter;

pub(crate) use job::{added, detail, event_line, job_list, results, status_line};
pub(crate) use moment::{Moments, elapsed};
pub(crate) use pretty::plain;
pub(crate) use schedule::{
    deleted_list, managed, occurrences, rule, schedule_created, schedule_detail, schedule_list, switched_off,
    unreadable_schedule, wall_clock,
};
pub(crate) use table::{Room, workers as worker_table};
pub(crate) use tint::{Stream, Tint, of_state, of_status};

use crate::failure::Failure;

/// For whom the results are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Human,
    /// For a program: one JSON value.
    Json,
}

/// The two streams. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    format: Format,
    /// What is drawn on stderr at the moment, and must not be torn by lines.
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl Output {
    /// For this format.
    #[must_use]
    pub(crate) fn new(format: Format) -> Self {
        Self { format, bar: Arc::default() }
    }

    /// For whom the results are.
    #[must_use]
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Writes the result: as the one JSON value, or as lines for a person.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub(crate) fn result<T: Serialize + ?Sized>(
        &self,
        value: &T,
        human: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Human => self.print(&human()),
            Format::Json => {
                let text = serde_json::to_string(value).map_err(|error| Failure::Output(error.into()))?;
                self.write_line(&text)
            }
        }
    }

    /// Writes lines for a person to stdout; nothing when the result is JSON, or when there is nothing to say.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        if self.format == Format::Json || text.is_empty() { Ok(()) } else { self.write_line(text) }
    }

    /// Tells how a job goes on, on stderr; nothing when the result is JSON.
    pub(crate) fn progress(&self, text: &str) {
        if self.format == Format::Human {
            self.say(text);
        }
    }

    /// Tells something that a person should know besides the result, on stderr, whatever the format.
    pub(crate) fn note(&self, text: &str) {
        self.say(&format!("{} {text}", Tint::Notice.on(Stream::Stderr, "note:")));
    }

    /// Tells what did not go well, on stderr; nothing when the result is JSON, which tells it.
    pub(crate) fn complain(&self, what: &str) {
        self.progress(&format!("{} {}", Tint::Bad.on(Stream::Stderr, "error:"), plain(what)));
    }

    /// Tells what went wrong, and gives the exit code for it. A closed pipe is no failure: who read had enough.
    pub(crate) fn report(&self, failure: &Failure) -> ExitCode {
        if failure.is_closed_pipe() {
            return ExitCode::SUCCESS;
        }
        match self.format {
            Format::Human => self.complain(&failure.describe()),
            Format::Json => {
                // When even this cannot be written there is nobody left to tell.
                let _ = self.write_line(&failure.json().to_string());
            }
        }
        failure.kind().exit_code()
    }

    /// Draws this on stderr from now on, below everything else.
    pub(crate) fn show_bar(&self, bar: ProgressBar) {
        *self.bar() = Some(bar);
    }

    /// Takes away what is drawn.
    pub(crate) fn clear_bar(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn write_line(&self, text: &str) -> Result<(), Failure> {
        self.above(|| {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.write_all(b"\n")?;
            stdout.flush()
        })
        .map_err(Failure::Output)
    }

    fn say(&self, text: &str) {
        // A stderr that is gone is no reason to stop.
        let _ = self.above(|| writeln!(io::stderr().lock(), "{text}"));
    }

    /// Does something to the terminal while nothing is drawn.
    fn above<T>(&self, act: impl FnOnce() -> T) -> T {
        match &*self.bar() {
            Some(bar) => bar.suspend(act),
            None => act(),
        }
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs go above what is drawn, too.
impl<'a> MakeWriter<'a> for Output {
    type Writer = LogLines<'a>;

    fn make_writer(&'a self) -> LogLines<'a> {
        LogLines(self)
    }
}

/// Takes log lines.
#[derive(Debug)]
pub(crate) struct LogLines<'a>(&'a Output);

impl Write for LogLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.above(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
