//! Adding and changing jobs: what was begun comes to its end, and is told of, whether or not the caller is still there.

use std::sync::Arc;

use norfab_model::{Broker, Clock, Job, NewJob, ScheduleStore, Store, StoreError, Timestamp, ValidJob};

use super::{Client, Shared};
use crate::guest::Guest;
use crate::{ClientError, JobHandle};

/// When the caller is told that a job is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acknowledged {
    WhenAdded,
    AtItsEnd,
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Client<S, B, C> {
    pub(super) async fn add(&self, job: NewJob, acknowledged: Acknowledged) -> Result<JobHandle<S, C>, ClientError> {
        let now = self.core.shared.clock.now();
        let job: ValidJob = self.core.limits.check_job(now, job)?;
        // Watched before it is there, so that not even its first change is overlooked.
        let shared = &self.core.shared;
        let mut handle = JobHandle::new(job.id().clone(), Arc::clone(shared));
        let job = match acknowledged {
            Acknowledged::WhenAdded => self.add_and_tell(now, job).await?,
            Acknowledged::AtItsEnd => {
                let job = self.add_to_run(now, &job).await?;
                tell_of(shared, self.core.guest.as_deref(), &job);
                job
            }
        };
        handle.added(&job);
        Ok(handle)
    }

    /// Adds a job. A caller that goes away takes nothing back, and what was added is told of all the same: nobody else would
    /// look for it before its time has passed.
    async fn add_and_tell(&self, now: Timestamp, job: ValidJob) -> Result<Job, ClientError> {
        let (shared, guest) = (Arc::clone(&self.core.shared), self.core.guest.clone());
        let adding = to_the_end(async move {
            let added = shared.store.job_add(now, &job).await;
            if let Ok(job) = &added {
                tell_of(&shared, guest.as_deref(), job);
            }
            added
        });
        Ok(adding.await??)
    }

    /// Adds a job that is to run at once. The dispatcher hears of it while it is being added, so that its claim waits in the
    /// store behind that. Where it comes too early, or nothing was added, it finds nothing; once the job is there, it hears
    /// of it as of any other.
    async fn add_to_run(&self, now: Timestamp, job: &ValidJob) -> Result<Job, StoreError> {
        let shared = &self.core.shared;
        let announce = async {
            if let Some(control) = shared.control().filter(|_| self.core.guest.is_none()) {
                control.added(job.row(now));
            }
        };
        let mut left = LeftBehind { shared, guest: self.core.guest.as_ref(), now, job: Some(job) };
        // The first is begun first.
        let added = tokio::join!(biased; shared.store.job_add_to_run(now, job), announce).0;
        left.job = None;
        added
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

/// A job that is to run, and whose caller went away while it was being added: the store adds it all the same, and nobody
/// would look for it before its time has passed.
struct LeftBehind<'a, S: Store, C: Clock> {
    shared: &'a Arc<Shared<S, C>>,
    guest: Option<&'a Arc<Guest>>,
    now: Timestamp,
    job: Option<&'a ValidJob>,
}

impl<S: Store, C: Clock> Drop for LeftBehind<'_, S, C> {
    fn drop(&mut self) {
        let (Some(job), Ok(runtime)) = (self.job, tokio::runtime::Handle::try_current()) else { return };
        let (shared, guest, now, job) = (Arc::clone(self.shared), self.guest.cloned(), self.now, job.clone());
        runtime.spawn(async move {
            // Behind the first call, by which it is there, or is not to be.
            let again = shared.store.job_add_to_run(now, &job).await;
            if matches!(again, Ok(_) | Err(StoreError::JobExists(_))) {
                tell_of(&shared, guest.as_deref(), &job.row(now));
                shared.wake();
            }
        });
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
