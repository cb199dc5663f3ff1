//! How the rest of a program speaks to the dispatcher's task, and what it hears from it.

use norfab_model::{InputAnswer, Job, JobEvent, JobId, Json, Results};
use tokio::sync::{mpsc, oneshot, watch};

/// What the dispatcher tells, always after the transaction it speaks of.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A job changed; this is how it is now.
    Job(Box<Job>),
    /// A job ended, with these results, which were at hand; of one whose results are large, [`Job`](Self::Job) is told.
    Ended(Box<Job>, Results),
    /// An event of a job was stored.
    Event(Box<JobEvent>),
    /// Another process changed the database: what, is for the reader to find out.
    ForeignChange,
}

/// Whether the fabric can be reached, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// The broker has answered on this connection.
    Up,
    /// A connection is being made, or is there and the broker was asked on it a moment ago.
    Connecting,
    /// The broker cannot be reached, or does not answer.
    Down {
        /// What is known of the cause, for a person.
        reason: String,
    },
}

/// How the dispatcher is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The link to the broker.
    pub link: LinkState,
    /// Messages that could not be used: malformed, unknown, for jobs that do not exist.
    pub strays: u64,
    /// Replies that changed nothing: late, repeated, of a stranger.
    pub ignored: u64,
    /// Why the database cannot be used at the moment.
    pub storage_error: Option<String>,
}

/// Why the dispatcher did not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The dispatcher has ended.
    #[error("the dispatcher has ended; open the client again")]
    Ended,
    /// Too much waits to be sent to the broker already.
    #[error("too much waits to be sent to the broker; try again")]
    Busy,
}

#[derive(Debug)]
pub(crate) enum Command {
    /// Something in the store is new.
    Wake,
    /// A job was added to the store.
    Added(Box<Job>),
    /// A question to the broker.
    Mmi { task: String, kwargs: Json, answer: oneshot::Sender<Result<Json, ControlError>> },
    /// An answer to a worker's question.
    Answer { job: JobId, service: String, worker: String, answer: InputAnswer },
    /// A guest serves one more job.
    Serve(JobId),
    /// No more dispatch.
    Shutdown,
}

/// Speaks to a dispatcher. Cheap to clone; when the last one is dropped the dispatcher ends.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) health: watch::Receiver<Health>,
}

impl Control {
    /// Says that this process changed the store: a job was added, cancelled or moved.
    pub fn wake(&self) {
        // Nobody to wake is no error: what was changed waits in the database.
        let _ = self.commands.send(Command::Wake);
    }

    /// Says that this process added a job to the store. Cheaper than [`wake`](Self::wake): nothing else is looked for.
    pub fn added(&self, job: Job) {
        // As above.
        let _ = self.commands.send(Command::Added(Box::new(job)));
    }

    /// Adds a job to those that a guest serves. No effect on an owner, which serves all.
    pub fn serve(&self, job: JobId) {
        let _ = self.commands.send(Command::Serve(job));
    }

    /// Asks the broker itself. Waits as long as it takes; set a timeout around it.
    ///
    /// # Errors
    /// [`ControlError::Ended`], or [`ControlError::Busy`] when the question cannot even wait to be sent.
    pub async fn mmi(&self, task: String, kwargs: Json) -> Result<Json, ControlError> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(Command::Mmi { task, kwargs, answer }).map_err(|_| ControlError::Ended)?;
        answered.await.map_err(|_| ControlError::Ended)?
    }

    /// Sends an answer to a worker's question. NorFab does not confirm it but by an event.
    ///
    /// # Errors
    /// [`ControlError::Ended`].
    pub fn answer(&self, job: JobId, service: String, worker: String, answer: InputAnswer) -> Result<(), ControlError> {
        self.commands.send(Command::Answer { job, service, worker, answer }).map_err(|_| ControlError::Ended)
    }

    /// Lets the dispatcher end: no new dispatch, what is outstanding committed, the socket closed. Await its `run` to
    /// know when.
    pub fn shutdown(&self) {
        let _ = self.commands.send(Command::Shutdown);
    }

    /// How the dispatcher is; the receiver can wait for changes.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }
}
