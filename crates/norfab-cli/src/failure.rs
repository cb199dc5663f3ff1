//! What can go wrong with a command, and the exit code and the JSON that come of it.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use norfab_client::{ClientError, JobDetail, ScheduleError, StoreError, StoreOpenError};
use serde_json::{Value, json};

use crate::given::GivenError;
use crate::payload::PayloadError;
use crate::signals::StopSignal;

/// What can go wrong with a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The arguments for a job cannot be used.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// What an option names cannot be read.
    #[error(transparent)]
    Given(#[from] GivenError),
    /// The client says so.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There is nothing to look at.
    #[error(
        "there is no job database {}; check --base-dir and --client, or run a job to make it", path.display()
    )]
    NoDatabase {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The fabric was not reached in time, so that the job did not end well.
    #[error("the fabric was not reached: {reason}; job {} is {}", .job.job.uuid, .job.job.status)]
    Unreachable {
        /// What is known of the cause.
        reason: String,
        /// The job as it now is.
        job: Box<JobDetail>,
    },
    /// The program was asked to stop while it waited for a job.
    #[error("stopped by {}: {what_now}", .signal.as_str())]
    Stopped {
        /// What asked.
        signal: StopSignal,
        /// What becomes of the job.
        what_now: String,
        /// The job as it now is.
        job: Box<JobDetail>,
    },
    /// The program was asked to stop, and left what it was doing.
    #[error("stopped by {} before its end", .0.as_str())]
    Interrupted(StopSignal),
    /// The demonstration did not come to its end.
    #[error("the demonstration failed: {0}")]
    Demo(String),
    /// The broker's answer has another shape than expected.
    #[error("the broker's answer to {task} cannot be read")]
    Answer {
        /// What it was asked.
        task: &'static str,
        /// Where it differs.
        #[source]
        source: serde_json::Error,
    },
    /// A temporary folder cannot be made.
    #[error("cannot make a temporary folder")]
    Temporary(#[source] io::Error),
    /// Signals cannot be caught.
    #[error("cannot catch signals")]
    Signals(#[source] io::Error),
    /// The threads of the program cannot be started.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// The output cannot be written.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
}

/// What a failure means for who called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something else.
    Error,
    /// What was asked for cannot be.
    Usage,
    /// It is in another status, there already, or another's.
    Conflict,
    /// There is no such thing.
    NotFound,
    /// The fabric was not reached in time.
    Unreachable,
    /// It was stopped before its end.
    Stopped(StopSignal),
}

impl Kind {
    /// The name in JSON.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Usage => "usage",
            Self::Conflict => "conflict",
            Self::NotFound => "not_found",
            Self::Unreachable => "unreachable",
            Self::Stopped(_) => "stopped",
        }
    }

    /// The exit code.
    #[must_use]
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Error => 1,
            Self::Usage => 2,
            Self::Conflict => 3,
            Self::NotFound => 4,
            Self::Unreachable => 5,
            Self::Stopped(signal) => signal.exit_code(),
        })
    }
}

impl Failure {
    /// What it means for who called.
    #[must_use]
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Usage(_) | Self::Payload(_) | Self::Given(_) => Kind::Usage,
            Self::NoDatabase { .. } => Kind::NotFound,
            Self::Unreachable { .. } => Kind::Unreachable,
            Self::Stopped { signal, .. } | Self::Interrupted(signal) => Kind::Stopped(*signal),
            Self::Client(error) => kind_of(error),
            _ => Kind::Error,
        }
    }

    /// Whether nobody reads the output any more: no failure to speak of.
    #[must_use]
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// All of it in one line, causes included, each told once: many an error ends with its cause's words already.
    #[must_use]
    pub(crate) fn describe(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            let words = cause.to_string();
            if !text.ends_with(&words) {
                text.push_str(": ");
                text.push_str(&words);
            }
            source = cause.source();
        }
        text
    }

    /// The JSON of it, with the job or the schedule where it is about one.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let error = json!({ "kind": self.kind().as_str(), "message": self.describe() });
        match self {
            Self::Unreachable { job, .. } | Self::Stopped { job, .. } => json!({ "error": error, "job": job }),
            Self::Client(ClientError::Schedule(ScheduleError::NameTaken { existing })) => {
                json!({ "error": error, "schedule": existing })
            }
            Self::Client(ClientError::Schedule(ScheduleError::Unreadable(row))) => {
                json!({ "error": error, "schedule": row })
            }
            _ => json!({ "error": error }),
        }
    }
}

fn kind_of(error: &ClientError) -> Kind {
    match error {
        ClientError::Invalid(_) => Kind::Usage,
        ClientError::Store(error) => kind_of_store(error),
        ClientError::Schedule(error) => kind_of_schedule(error),
        ClientError::Open(StoreOpenError::NotFound { .. }) | ClientError::UnknownTask { .. } => Kind::NotFound,
        ClientError::Owned { .. } => Kind::Conflict,
        ClientError::Unreachable { .. } => Kind::Unreachable,
        _ => Kind::Error,
    }
}

fn kind_of_store(error: &StoreError) -> Kind {
    match error {
        StoreError::NoSuchJob(_) => Kind::NotFound,
        StoreError::NotScheduled { .. } | StoreError::JobExists(_) => Kind::Conflict,
        _ => Kind::Error,
    }
}

fn kind_of_schedule(error: &ScheduleError) -> Kind {
    match error {
        ScheduleError::Unknown(_) | ScheduleError::Deleted { .. } => Kind::NotFound,
        ScheduleError::NameTaken { .. }
        | ScheduleError::Exists(_)
        | ScheduleError::Refused { .. }
        | ScheduleError::Stale { .. }
        | ScheduleError::Overlap { .. } => Kind::Conflict,
        ScheduleError::Invalid(_) => Kind::Usage,
        ScheduleError::Store(error) => kind_of_store(error),
        _ => Kind::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use norfab_client::{JobId, JobStatus, UnreadableSchedule};

    #[track_caller]
    fn check(failure: impl Into<Failure>, kind: Kind, message: &str) {
        let failure = failure.into();
        assert_eq!((failure.kind(), failure.describe().as_str()), (kind, message));
        assert_eq!(failure.json()["error"]["kind"], kind.as_str());
    }

    #[test]
    fn kinds() {
        let job = JobId::new("a1").expect("valid");
        let not_scheduled =
            StoreError::NotScheduled { job: job.clone(), status: JobStatus::Completed, wanted: "cancelled" };
        check(
            ClientError::from(not_scheduled),
            Kind::Conflict,
            "job a1 is COMPLETED, and only a SCHEDULED job can be cancelled",
        );
        check(ClientError::from(StoreError::NoSuchJob(job)), Kind::NotFound, "there is no job a1");
        check(
            ClientError::Unreachable { reason: "refused".into() },
            Kind::Unreachable,
            "the fabric was not reached: refused",
        );
        let unknown = ScheduleError::Unknown("clock".into());
        check(ClientError::from(unknown), Kind::NotFound, "there is no schedule \"clock\"");
        let row = UnreadableSchedule {
            uuid: "x".into(),
            name: None,
            state: "DISABLED".into(),
            last_error: None,
            reason: "its timeout is no number".into(),
        };
        let unreadable = ScheduleError::Unreadable(Box::new(row));
        assert_eq!(Failure::from(ClientError::from(unreadable)).json()["schedule"]["state"], "DISABLED");
        let stale = ScheduleError::Stale { schedule: "\"clock\"".into(), expected: 1, actual: 2 };
        let words = "schedule \"clock\" is at revision 2, not 1: it was updated meanwhile; read it again";
        check(ClientError::from(stale), Kind::Conflict, words);
        check(PayloadError::NoKey, Kind::Usage, "-k needs KEY=VALUE, and one was given without a key or without \"=\"");
    }

    #[test]
    fn causes_are_told_once() {
        let source = io::Error::other("disk full");
        check(Failure::Output(source), Kind::Error, "cannot write the output: disk full");
        let storage = StoreError::Storage { doing: "claim jobs", source: "disk full".into() };
        check(ClientError::from(storage), Kind::Error, "the job database failed to claim jobs: disk full");
        let said_by_both = Wrapped(io::Error::other("disk full"));
        let storage = StoreError::Storage { doing: "claim jobs", source: Box::new(said_by_both) };
        let once = "the job database failed to claim jobs: while writing: disk full";
        check(ClientError::from(storage), Kind::Error, once);
    }

    /// An error that tells its source's words itself.
    #[derive(Debug, thiserror::Error)]
    #[error("while writing: {0}")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn a_closed_pipe_is_told_apart() {
        assert!(Failure::Output(io::ErrorKind::BrokenPipe.into()).is_closed_pipe());
        assert!(!Failure::Output(io::Error::other("disk full")).is_closed_pipe());
    }
}
