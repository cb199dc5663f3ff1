//! What happened in the fabric, for tests that must prove it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use norfab_model::Timestamp;

/// A task that a worker began to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The job, as the client named it.
    pub job: String,
    /// The worker.
    pub worker: String,
    /// The task.
    pub task: String,
    /// When it began.
    pub at: Timestamp,
}

/// A whole message that the broker got from a client; what is not UTF-8 in it is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenMessage {
    /// When it came.
    pub at: Timestamp,
    /// The client's name.
    pub client: String,
    /// The command frame, such as `0x04`.
    pub command: String,
    /// The service asked.
    pub service: String,
    /// The workers asked, as on the wire.
    pub target: String,
    /// The job, or the question.
    pub uuid: String,
    /// Bytes of these five frames and the payload.
    pub bytes: usize,
}

/// The records of a fabric, shared by its handle and the task that serves it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    executions: Vec<Execution>,
    messages: Vec<SeenMessage>,
}

impl Records {
    pub(crate) fn execution(&self, execution: Execution) {
        self.inner().executions.push(execution);
    }

    pub(crate) fn message(&self, message: SeenMessage) {
        self.inner().messages.push(message);
    }

    pub(crate) fn executions(&self) -> Vec<Execution> {
        self.inner().executions.clone()
    }

    pub(crate) fn messages(&self) -> Vec<SeenMessage> {
        self.inner().messages.clone()
    }

    /// A panic elsewhere leaves the lists whole: each is only pushed to.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
