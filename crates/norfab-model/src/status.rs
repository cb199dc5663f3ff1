//! The statuses of a job and the only table of their transitions (who may follow whom, by whose hand).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a job stands. The text forms are NorFab's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobStatus {
    /// Waits for its time. Entered when a delayed job is added; left by release (NEW), by lateness (MISSED) or by
    /// cancellation. A crash leaves it as it is; the next pass looks at it again.
    Scheduled,
    /// Ready to be sent, its deadline runs; or not delivered, and waiting for another attempt. Entered by adding an
    /// immediate job, by release, or back from SUBMITTING; left by the claim. A crash leaves it as it is.
    New,
    /// Claimed: the row is committed, the POST goes out or is out, nothing is known of it. Left by the broker's answer
    /// or by any sign of a worker. After a crash it becomes NEW and is sent again to the same workers: a worker never
    /// runs one UUID twice.
    Submitting,
    /// The broker named the workers it hands the job to. A crash leaves it as it is; it is asked for again.
    Dispatched,
    /// At least one worker has stored the job. A crash leaves it as it is; it is asked for again.
    Started,
    /// At least one worker waits for an answer from the client. A crash leaves it as it is; the question is asked for again.
    WaitingClientInput,
    /// Every worker of the set has answered, well or badly. Terminal.
    Completed,
    /// It could not be handed over, or cannot be read. Terminal.
    Failed,
    /// Its deadline passed; what came is kept. Terminal.
    Stale,
    /// Withdrawn while it waited for its time. Terminal.
    Cancelled,
    /// Its start deadline passed before it could be released. Terminal.
    Missed,
}

/// A text that names no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a job status; the statuses are {all}", all = JobStatus::ALL.map(JobStatus::as_str).join(", "))]
pub struct UnknownStatus(pub String);

impl JobStatus {
    /// Every status, in the order of a job's life.
    pub const ALL: [JobStatus; 11] = [
        Self::Scheduled,
        Self::New,
        Self::Submitting,
        Self::Dispatched,
        Self::Started,
        Self::WaitingClientInput,
        Self::Completed,
        Self::Failed,
        Self::Stale,
        Self::Cancelled,
        Self::Missed,
    ];

    /// The text that the database and NorFab use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "SCHEDULED",
            Self::New => "NEW",
            Self::Submitting => "SUBMITTING",
            Self::Dispatched => "DISPATCHED",
            Self::Started => "STARTED",
            Self::WaitingClientInput => "WAITING_CLIENT_INPUT",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Stale => "STALE",
            Self::Cancelled => "CANCELLED",
            Self::Missed => "MISSED",
        }
    }

    /// Whether nothing can change the job any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stale | Self::Cancelled | Self::Missed)
    }

    /// Whether the job was handed to the fabric, or may have been, and has not ended.
    #[must_use]
    pub const fn is_in_flight(self) -> bool {
        matches!(self, Self::Submitting | Self::Dispatched | Self::Started | Self::WaitingClientInput)
    }

    /// Whether the fabric is asked for a job in this status from time to time.
    #[must_use]
    pub const fn is_polled(self) -> bool {
        self.is_in_flight() && !matches!(self, Self::Submitting)
    }

    /// Whether a job may go from this status to `next`. The same status again is no transition.
    #[must_use]
    pub const fn can_become(self, next: JobStatus) -> bool {
        use JobStatus as S;
        match (self, next) {
            // Released, missed or withdrawn.
            (S::Scheduled, S::New | S::Missed | S::Cancelled)
            // Claimed, or given up before it was sent; or sent by an earlier claim, and too late to be sent again.
            | (S::New, S::Submitting | S::Dispatched | S::Failed | S::Stale)
            // Sent again, refused, expired.
            | (S::Submitting, S::New | S::Failed | S::Stale)
            // Evidence of a later state implies the earlier ones.
            | (S::Submitting, S::Dispatched | S::Started | S::WaitingClientInput | S::Completed)
            | (S::Dispatched, S::Started | S::WaitingClientInput | S::Completed | S::Failed | S::Stale)
            | (S::Started, S::WaitingClientInput | S::Completed | S::Failed | S::Stale)
            | (S::WaitingClientInput, S::Started | S::Completed | S::Failed | S::Stale) => true,
            _ => false,
        }
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobStatus {
    type Err = UnknownStatus;
    /// Reads the text form, in any case.
    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        for status in JobStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_string(&status).expect("serialises"), format!("\"{status}\""));
        }
        assert_eq!("completed".parse(), Ok(JobStatus::Completed));
        assert!("DONE".parse::<JobStatus>().is_err());
    }

    #[test]
    fn terminal_is_the_end() {
        for from in JobStatus::ALL {
            let onward = JobStatus::ALL.into_iter().filter(|to| from.can_become(*to)).count();
            assert_eq!(from.is_terminal(), onward == 0, "{from}");
            assert!(!from.can_become(from));
        }
    }

    #[test]
    fn every_status_but_the_entries_is_reached() {
        for to in JobStatus::ALL {
            let reached = JobStatus::ALL.into_iter().any(|from| from.can_become(to));
            assert_eq!(reached, to != JobStatus::Scheduled, "{to}");
        }
    }

    #[test]
    fn a_waiting_job_is_never_sent_past_release() {
        assert!(!JobStatus::Scheduled.can_become(JobStatus::Submitting));
        assert!(!JobStatus::New.can_become(JobStatus::Cancelled));
    }
}
