//! Picking up after a start or a lost link: nothing that was under way is forgotten.

use norfab_model::{Broker, Clock, JobFilter, JobId, JobStatus, Link, Moment, ScheduleStore, Scope, Store, StoreError};

use crate::Dispatcher;
use crate::dispatcher::{Alignment, Claims, Recovery};

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Makes NEW again what was being sent when the process or the link ended: a worker that has it already does not run
    /// it twice. What else is in flight is asked for by the poll of this pass.
    pub(crate) async fn recover(&mut self, now: Moment) -> Result<(), StoreError> {
        self.recover_claims(now).await?;
        let some = match &self.recovery {
            Recovery::Of(jobs) if jobs.is_empty() => return Ok(()),
            Recovery::Of(jobs) => Some(Scope::Jobs(jobs.clone())),
            Recovery::Needed => None,
        };
        if self.link.link() == Link::Down {
            return Ok(());
        }
        let found = self.store.job_recover(now.wall, some.as_ref().unwrap_or(&self.config.scope)).await?;
        self.due = None;
        self.recovery = Recovery::Of(Vec::new());
        if found.requeued + found.in_flight > 0 {
            tracing::info!(
                sent_again = found.requeued,
                asked_for = found.in_flight,
                "Picked up jobs that were under way"
            );
        }
        Ok(())
    }

    /// Brings instants of jobs back that lie further off than their full length: after a start, and when the clock went
    /// back.
    pub(crate) async fn realign_jobs(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.instants == Alignment::Done {
            return Ok(());
        }
        let jobs = self.store.job_realign(now.wall).await?;
        if jobs > 0 {
            tracing::warn!(jobs, "Brought deadlines and polls of jobs back: the clock went back");
            self.due = None;
        }
        self.instants = Alignment::Done;
        Ok(())
    }

    /// Makes NEW again what the database says is being sent, and is not: the claim was reported as failed.
    async fn recover_claims(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.claims == Claims::Known || self.link.link() == Link::Down {
            return Ok(());
        }
        let mut unsent = Vec::new();
        let mut filter = JobFilter { statuses: vec![JobStatus::Submitting], limit: 1000, ..JobFilter::default() };
        loop {
            let page = self.store.job_list(&filter).await?;
            let jobs = page.jobs.into_iter().map(|job| job.uuid);
            unsent.extend(jobs.filter(|job| serves(&self.config.scope, job) && !self.requests.is_posted(job)));
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                break;
            }
        }
        if !unsent.is_empty() {
            let found = self.store.job_recover(now.wall, &Scope::Jobs(unsent)).await?;
            self.due = None;
            tracing::info!(sent_again = found.requeued, "Picked up jobs whose claim seemed to fail");
        }
        self.claims = Claims::Known;
        Ok(())
    }
}

fn serves(scope: &Scope, job: &JobId) -> bool {
    match scope {
        Scope::All => true,
        Scope::Jobs(jobs) => jobs.contains(job),
    }
}
