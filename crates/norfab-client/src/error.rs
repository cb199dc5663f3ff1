//! What can go wrong with a client, one variant for each thing that a caller can do about it.

use std::path::PathBuf;

use norfab_dispatch::ControlError;
use norfab_model::{JobId, ScheduleError, StoreError, ValidationError};
use norfab_store::StoreOpenError;

use crate::{Holder, InventoryError};

/// What can go wrong with a client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// What was asked for is beyond the limits.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// The job database refused, or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The schedule refused, or its store failed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A worker has no such task.
    #[error("worker {worker:?} of service {service:?} has no task {task:?}; look at its list_tasks")]
    UnknownTask {
        /// The service.
        service: String,
        /// The task.
        task: String,
        /// The worker that answered so.
        worker: String,
    },
    /// The workers that were asked for their tasks did not tell them.
    #[error("{} did not tell their tasks; start them, or leave the check out", asked(service, workers))]
    Unverified {
        /// The service.
        service: String,
        /// Those that were named and did not answer; empty when any would do and none did.
        workers: Vec<String>,
    },
    /// The job database cannot be opened.
    #[error(transparent)]
    Open(#[from] StoreOpenError),
    /// The inventory cannot be used.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// Name, endpoint or keys cannot be used.
    #[error(transparent)]
    Nfp(#[from] norfab_nfp::Error),
    /// A folder or file beside the database cannot be made or locked.
    #[error("cannot use {}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The system starts no thread for the dispatcher.
    #[error("the system starts no thread for the dispatcher; look at its limits of threads and open files")]
    Thread(#[source] std::io::Error),
    /// Another process dispatches for this database.
    #[error(
        "another process {}dispatches for this database (it holds {}); stop it, or use another client name",
        .holder.as_ref().map(|holder| format!("(PID {}) ", holder.pid)).unwrap_or_default(), lock.display()
    )]
    Owned {
        /// The locked file.
        lock: PathBuf,
        /// What is known of the other process.
        holder: Option<Holder>,
    },
    /// Neither a folder nor a database was given.
    #[error("give a NorFab folder, or the path of a database of its own")]
    NoPlace,
    /// Nothing says how the broker is reached.
    #[error("give a NorFab folder with an inventory, or the broker's endpoint")]
    NoBroker,
    /// A job with a time was to start now.
    #[error("this job has a time; use schedule_job for it, or leave the time out")]
    TimeGiven,
    /// A job without a time was to start later.
    #[error("this job has no time; give it one, or use submit_job to start it now")]
    NoTime,
    /// A worker asks nothing.
    #[error("worker {worker:?} asks nothing for job {job} at the moment")]
    NoQuestion {
        /// The job.
        job: JobId,
        /// The worker.
        worker: String,
    },
    /// No answer of the broker in time.
    #[error("the fabric was not reached: {reason}")]
    Unreachable {
        /// What is known of the cause.
        reason: String,
    },
    /// The dispatcher has ended.
    #[error(transparent)]
    Dispatch(#[from] ControlError),
    /// The client was shut down.
    #[error("the client was shut down; open it again")]
    Closed,
}

fn asked(service: &str, workers: &[String]) -> String {
    if workers.is_empty() {
        format!("the workers of service {service:?}")
    } else {
        format!("the workers {} of service {service:?}", workers.join(", "))
    }
}
