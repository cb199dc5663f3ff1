//! Picking up after a start or a lost link: nothing that was under way is forgotten.

use norfab_model::{Broker, Clock, Link, ScheduleStore, Scope, Store, StoreError, Timestamp};

use crate::Dispatcher;
use crate::dispatcher::{Alignment, Recovery};

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Makes NEW again what was being sent when the process or the link ended: a worker that has it already does not run
    /// it twice. What else is in flight is asked for by the poll of this pass.
    pub(crate) async fn recover(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let some = match &self.recovery {
            Recovery::Of(jobs) if jobs.is_empty() => return Ok(()),
            Recovery::Of(jobs) => Some(Scope::Jobs(jobs.clone())),
            Recovery::Needed => None,
        };
        if self.link.link() == Link::Down {
            return Ok(());
        }
        let found = self.store.job_recover(now, some.as_ref().unwrap_or(&self.config.scope)).await?;
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
    pub(crate) async fn realign_jobs(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.instants == Alignment::Done {
            return Ok(());
        }
        let jobs = self.store.job_realign(now).await?;
        if jobs > 0 {
            tracing::warn!(jobs, "Brought deadlines and polls of jobs back: the clock went back");
            self.due = None;
        }
        self.instants = Alignment::Done;
        Ok(())
    }
}
