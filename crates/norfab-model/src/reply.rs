//! What the fabric says of a job, and what that changes: `decide` is a pure function of the job and the reply.

mod change;
mod decide;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::change::{Change, FollowUp, Ignored, Retry, RetryTarget};
pub use self::decide::{MOST_WORKERS, decide, expire, failed_result};
use crate::{JobId, Json, Workers};

/// One message of the broker or of a worker about a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The job that it speaks of.
    pub job: JobId,
    /// What it says.
    pub kind: ReplyKind,
    /// What the client remembers that belongs to it.
    pub context: Context,
}

impl Reply {
    /// A reply of which the client remembers nothing.
    #[must_use]
    pub fn new(job: JobId, kind: ReplyKind) -> Self {
        Self { job, kind, context: Context::Unknown }
    }
}

/// What the client remembers of its own requests: a 202 and a 400 do not say what they answer, and a single 404 says
/// little. Lost with the process, and then found out again by asking.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Context {
    /// Nothing.
    #[default]
    Unknown,
    /// Not what it answers, but whom that was for, as the message itself says.
    Answer {
        /// The workers that the request went to.
        target: Workers,
    },
    /// It answers a POST.
    Post {
        /// The workers that the POST went to.
        target: Workers,
        /// How many attempts to reach one of them failed before.
        failed_before: u32,
        /// What the broker knew of the workers when it left.
        registry: Registry,
    },
    /// It answers a GET.
    Get {
        /// The workers that the GET went to.
        target: Workers,
        /// What the broker knew of the workers when it left.
        registry: Registry,
    },
    /// The worker has said the same so many times in a row before, since the job was last sent to it.
    Repeated(u32),
}

/// Whether the broker knows the workers that are there. They notice by its silence that it was started again, and register
/// with the new one each in its own time; until then nothing tells it of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// All had the time to register. Who has not is gone.
    Settled,
    /// The link came up a moment ago, perhaps to a new broker: some may be about to register, and have jobs from before.
    Filling,
}

/// What a reply says of its job.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyKind {
    /// 202: the broker takes a request, a POST or a GET, and names the workers that it hands it to. No promise that they
    /// have it.
    Accepted {
        /// The workers; for target `any` a single one.
        workers: Vec<String>,
    },
    /// 400: the broker could not hand a request over.
    Refused {
        /// The broker's text.
        errors: Vec<String>,
    },
    /// 201: a worker has stored the job.
    Stored {
        /// The worker.
        worker: String,
    },
    /// 300: a worker has the job and has not finished it.
    Pending {
        /// The worker.
        worker: String,
    },
    /// 102: a worker waits for an answer.
    WaitingInput {
        /// The worker.
        worker: String,
        /// What it asks.
        request: InputRequest,
    },
    /// 200: a worker's result, well or badly.
    Result {
        /// The worker.
        worker: String,
        /// Its answer.
        result: Json,
    },
    /// 404: a worker does not know the job, or not yet.
    NotFound {
        /// The worker.
        worker: String,
    },
    /// Something that happened at a worker.
    Event(FabricEvent),
}

/// An event as a worker sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct FabricEvent {
    /// The worker that it comes from.
    pub worker: String,
    /// What it is about.
    pub kind: FabricEventKind,
    /// Its text.
    pub message: String,
    /// INFO, WARNING, ERROR or what the worker says.
    pub severity: String,
    /// The task.
    pub task: Option<String>,
    /// The whole event as it came.
    pub data: Json,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq)]
pub enum FabricEventKind {
    /// The task tells how far it is.
    Progress,
    /// The result can be fetched.
    ResultReady,
    /// The task asks the client something.
    InputRequest(InputRequest),
    /// The worker has taken an answer.
    InputResponse {
        /// The question that was answered, where the worker names it.
        input_id: Option<String>,
    },
    /// A kind that this release does not know; kept as an event, without effect.
    Other(String),
}

/// A question of a worker to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// Its identity, named in the answer.
    pub id: String,
    /// The question.
    #[serde(default)]
    pub question: String,
    /// What the worker takes when nobody answers.
    #[serde(default)]
    pub default: Value,
    /// Seconds that it waits.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// What else the task says.
    #[serde(default)]
    pub metadata: Value,
}

#[cfg(test)]
mod tests;
