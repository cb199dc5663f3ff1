//! Colours, by what they mean. There are none where the stream is no terminal or the person wants none.

use std::fmt::Display;

use console::StyledObject;
use norfab_client::{JobStatus, ScheduleState};

/// Where a text goes: one may be a terminal and the other not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Results.
    Stdout,
    /// Progress, notes, errors.
    Stderr,
}

/// What a word's colour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tint {
    /// It ended well.
    Good,
    /// It ended badly.
    Bad,
    /// Worth a look.
    Notice,
    /// Under way.
    Active,
    /// Waits for its time.
    Waiting,
    /// Of little interest.
    Quiet,
}

impl Tint {
    /// The text for a stream.
    pub(crate) fn on<D: Display>(self, stream: Stream, text: D) -> StyledObject<D> {
        let text = match stream {
            Stream::Stdout => console::style(text).for_stdout(),
            Stream::Stderr => console::style(text).for_stderr(),
        };
        match self {
            Self::Good => text.green(),
            Self::Bad => text.red().bold(),
            Self::Notice => text.yellow(),
            Self::Active => text.blue(),
            Self::Waiting => text.cyan(),
            Self::Quiet => text.dim(),
        }
    }
}

/// The colour of a schedule's state.
#[must_use]
pub(crate) fn of_state(state: ScheduleState) -> Tint {
    match state {
        ScheduleState::Active => Tint::Good,
        ScheduleState::Paused => Tint::Notice,
        ScheduleState::Completed => Tint::Quiet,
        ScheduleState::Disabled => Tint::Bad,
    }
}

/// The colour of a status.
#[must_use]
pub(crate) fn of_status(status: JobStatus) -> Tint {
    match status {
        JobStatus::Completed => Tint::Good,
        JobStatus::Failed | JobStatus::Stale => Tint::Bad,
        JobStatus::Missed | JobStatus::WaitingClientInput => Tint::Notice,
        JobStatus::Cancelled => Tint::Quiet,
        JobStatus::Scheduled => Tint::Waiting,
        JobStatus::New | JobStatus::Submitting | JobStatus::Dispatched | JobStatus::Started => Tint::Active,
    }
}
