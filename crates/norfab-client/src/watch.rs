//! Who waits for which job, and how they hear of changes: the store is the truth, a watcher is only told to look.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use norfab_model::{Job, JobId, Results};
use tokio::sync::watch;

/// What a watcher was last told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Grows with everything that happens to the job.
    pub(crate) version: u64,
    /// The job as of its last change, if that was told.
    pub(crate) job: Option<Job>,
    /// The results that it ended with, if those were told.
    pub(crate) results: Option<Results>,
}

/// The watched jobs of one client.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    jobs: HashMap<JobId, watch::Sender<Seen>>,
    closed: bool,
}

impl Watchers {
    /// Begins to watch a job. Do this before reading its state, and no change can fall in between.
    pub(crate) fn subscribe(&self, id: &JobId) -> watch::Receiver<Seen> {
        let mut table = self.table();
        if table.closed {
            // A receiver without sender: whoever waits on it is told at once that nothing will come.
            return watch::Sender::<Seen>::default().subscribe();
        }
        table.jobs.entry(id.clone()).or_default().subscribe()
    }

    /// Ends one handle's watching; the receiver itself is still there.
    pub(crate) fn leave(&self, id: &JobId) {
        let mut table = self.table();
        if table.jobs.get(id).is_some_and(|sender| sender.receiver_count() <= 1) {
            table.jobs.remove(id);
        }
    }

    /// Tells that a job was added, unless what became of it was told already.
    pub(crate) fn job_added(&self, job: &Job) {
        if let Some(sender) = self.table().jobs.get(&job.uuid) {
            sender.send_if_modified(|seen| {
                seen.job.get_or_insert_with(|| job.clone());
                false
            });
        }
    }

    /// Tells how a job is now. What has ended stays so, whoever tells an older state late.
    pub(crate) fn job_changed(&self, job: Job) {
        self.changed(job, None);
    }

    /// Tells how a job ended, and with which results.
    pub(crate) fn job_ended(&self, job: Job, results: Results) {
        self.changed(job, Some(results));
    }

    fn changed(&self, job: Job, results: Option<Results>) {
        if let Some(sender) = self.table().jobs.get(&job.uuid) {
            sender.send_if_modified(|seen| {
                let ended = seen.job.as_ref().is_some_and(|known| known.status.is_terminal());
                if !ended {
                    seen.version += 1;
                    (seen.job, seen.results) = (Some(job), results);
                }
                !ended
            });
        }
    }

    /// Tells that there is a new event of a job.
    pub(crate) fn event_stored(&self, id: &JobId) {
        if let Some(sender) = self.table().jobs.get(id) {
            sender.send_modify(|seen| seen.version += 1);
        }
    }

    /// The jobs that somebody watches.
    pub(crate) fn watched(&self) -> Vec<JobId> {
        let mut table = self.table();
        table.jobs.retain(|_, sender| sender.receiver_count() > 0);
        table.jobs.keys().cloned().collect()
    }

    /// Ends all watching: nobody will tell any more.
    pub(crate) fn close(&self) {
        let mut table = self.table();
        table.closed = true;
        table.jobs.clear();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
