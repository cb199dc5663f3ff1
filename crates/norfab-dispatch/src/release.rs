//! Jobs whose time has come, and jobs whose time is over.

use norfab_model::{Broker, Clock, Link, Moment, Overdue, Released, ScheduleStore, Store, StoreError};

use crate::Dispatcher;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Releases delayed jobs that are due while the link is up, and marks those MISSED that may not start any more.
    pub(crate) async fn release_due(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.must_release(now).await? {
            let outcome = self.store.job_release_due(now.wall, &self.config.scope, self.link.link()).await?;
            self.tell_released(outcome);
        }
        Ok(())
    }

    /// Whether there is a job to be released or to be marked.
    pub(crate) async fn must_release(&mut self, now: Moment) -> Result<bool, StoreError> {
        let due = self.due().await?;
        let to_release = self.link.link() == Link::Up && due.release.is_some_and(|at| at <= now.wall);
        let to_miss = due.miss.is_some_and(|at| at < now.wall);
        Ok(to_release || to_miss)
    }

    pub(crate) fn tell_released(&mut self, outcome: Released) {
        self.due = None;
        self.progress |= !outcome.released.is_empty() || !outcome.missed.is_empty();
        for job in outcome.released {
            tracing::info!(job = %job.uuid, "Released a delayed job");
            self.tell_job(job);
        }
        for job in outcome.missed {
            tracing::warn!(job = %job.uuid, "Missed the start deadline of a delayed job");
            self.tell_job(job);
        }
    }

    /// Ends jobs whose deadline has passed; those in flight only when their results do not wait anywhere.
    pub(crate) async fn expire_due(&mut self, now: Moment) -> Result<(), StoreError> {
        let due = self.due().await?;
        // While the broker is silent it is not known whether results wait.
        let overdue = if self.is_silent() { Overdue::Unsent } else { self.hold.overdue(now.up) };
        let in_flight = due.expire.filter(|_| overdue == Overdue::All);
        if due.expire_unsent.into_iter().chain(in_flight).all(|at| at > now.wall) {
            return Ok(());
        }
        let expired = self.store.job_expire_due(now.wall, &self.config.scope, overdue).await?;
        self.due = None;
        self.progress |= !expired.is_empty();
        for job in expired {
            tracing::warn!(job = %job.uuid, status = %job.status, "The deadline of a job passed");
            self.tell_job(job);
        }
        Ok(())
    }
}
