//! Adding and changing jobs: what was begun comes to its end, and is told of, whether or not the caller is still there.

use std::sync::Arc;

use norfab_model::{Broker, Clock, Job, NewJob, ScheduleStore, Store, StoreError, Timestamp, ValidJob};
use tokio::sync::oneshot;

use super::{Client, Shared};
use crate::guest::Guest;
use crate::{ClientError, JobHandle, Outcome};

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Client<S, B, C> {
    /// Adds a job. A caller that goes away takes nothing back, and what was added is told of all the same: nobody else would
    /// look for it before its time has passed.
    pub(super) async fn add(&self, job: NewJob) -> Result<JobHandle<S, C>, ClientError> {
        let (now, job) = self.checked(job)?;
        // Watched before it is there, so that not even its first change is overlooked.
        let mut handle = JobHandle::new(job.id().clone(), Arc::clone(&self.core.shared));
        let (shared, guest) = (Arc::clone(&self.core.shared), self.core.guest.clone());
        let adding = to_the_end(async move {
            let added = shared.store.job_add(now, &job).await;
            if let Ok(job) = &added {
                tell_of(&shared, guest.as_deref(), job);
            }
            added
        });
        handle.added(&adding.await??);
        Ok(handle)
    }

    /// Adds a job that is to run at once, and waits for its outcome. All of it is done where the dispatcher runs: the caller
    /// is told once. One that goes away takes nothing back, only then nobody waits.
    pub(super) async fn add_and_wait(&self, job: NewJob) -> Result<Outcome, ClientError> {
        let (now, job) = self.checked(job)?;
        let (mut tell, told) = oneshot::channel();
        let (shared, guest) = (Arc::clone(&self.core.shared), self.core.guest.clone());
        self.core.shared.home.spawn(async move {
            let outcome = match add_to_run(&shared, guest.as_deref(), now, &job).await {
                Ok(handle) => tokio::select! {
                    outcome = outcome_in_time(handle) => outcome,
                    () = tell.closed() => return,
                },
                Err(error) => Err(error.into()),
            };
            // Who went away needs no answer.
            let _ = tell.send(outcome);
        });
        told.await.map_err(|_| ClientError::Closed)?
    }

    fn checked(&self, job: NewJob) -> Result<(Timestamp, ValidJob), ClientError> {
        let now = self.core.shared.clock.now();
        Ok((now, self.core.limits.check_job(now, job)?))
    }

    /// Changes a job, and tells the dispatcher of this process and the watchers of it, whether or not the caller is still
    /// there then.
    pub(super) async fn change<F>(&self, call: impl FnOnce(Arc<Shared<S, C>>) -> F) -> Result<Job, ClientError>
    where
        F: Future<Output = Result<Job, StoreError>> + Send + 'static,
    {
        let shared = Arc::clone(&self.core.shared);
        let call = call(Arc::clone(&shared));
        let changing = to_the_end(async move {
            let job = call.await?;
            shared.watchers.job_changed(job.clone());
            shared.wake();
            Ok::<_, StoreError>(job)
        });
        Ok(changing.await??)
    }
}

/// Carries a change out to its end, whether or not the caller is still there then.
pub(crate) async fn to_the_end<T: Send + 'static>(
    change: impl Future<Output = T> + Send + 'static,
) -> Result<T, ClientError> {
    // It ends otherwise only when the runtime does.
    tokio::spawn(change).await.map_err(|_| ClientError::Closed)
}

/// Adds a job that is to run at once. The dispatcher hears of it while it is being added, so that its claim waits in the
/// store behind that. Where it comes too early, or nothing was added, it finds nothing; once the job is there, it hears of it
/// as of any other.
async fn add_to_run<S: Store, C: Clock>(
    shared: &Arc<Shared<S, C>>,
    guest: Option<&Guest>,
    now: Timestamp,
    job: &ValidJob,
) -> Result<JobHandle<S, C>, StoreError> {
    let mut handle = JobHandle::new(job.id().clone(), Arc::clone(shared));
    let announce = async {
        if let Some(control) = shared.control().filter(|_| guest.is_none()) {
            control.added(job.row(now));
        }
    };
    // The first is begun first.
    let added = tokio::join!(biased; shared.home.store.job_add_to_run(now, job), announce).0?;
    tell_of(shared, guest, &added);
    handle.added(&added);
    Ok(handle)
}

/// Waits for the outcome of a job, though not for ever when its result cannot be asked for.
async fn outcome_in_time<S: Store, C: Clock>(mut handle: JobHandle<S, C>) -> Result<Outcome, ClientError> {
    let watch = handle.another();
    tokio::select! {
        outcome = handle.outcome() => outcome,
        reason = watch.overdue() => Err(ClientError::Unreachable { reason: reason? }),
    }
}

/// Has a job that was added served: by this process where it serves all, or its own.
fn tell_of<S: Store, C: Clock>(shared: &Shared<S, C>, guest: Option<&Guest>, job: &Job) {
    if let Some(guest) = guest {
        guest.adopt(job.uuid.clone());
    }
    if let Some(control) = shared.control() {
        control.added(job.clone());
    }
}
