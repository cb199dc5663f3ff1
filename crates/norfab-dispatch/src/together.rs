//! What is due at one instant is asked of the store at once: it can be one commit there, and one wait for the disk.

use norfab_model::{Broker, Clock, Materialize, Moment, ScheduleId, ScheduleStore, Store, StoreError};

use crate::Dispatcher;
use crate::dispatcher::Claims;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Releases delayed jobs, makes jobs of due occurrences, and sends these with what else is NEW. Nobody waits for the
    /// storing of what came as much as for this.
    pub(crate) async fn make_and_send(&mut self, now: Moment) -> Result<(), StoreError> {
        let releases = self.must_release(now).await?;
        let ending = if self.has_occurrence(now) { self.ending() } else { None };
        let sends = self.may_send(now.up) && (releases || ending.is_some() || self.must_send(now).await?);
        if sends {
            self.claims = Claims::InDoubt;
        }
        let (released, mut made, claimed) = {
            let (store, config, claim) = (&self.store, &self.config, self.claim(now));
            let (limits, budget_left, batch) = (&config.limits, self.looked.budget_left, config.schedule_batch);
            let link = self.link.link();
            let release = when(releases, || store.job_release_due(now.wall, &config.scope, link));
            let make = when(ending.is_some(), || {
                let (seen, claim) = (ending.as_deref().unwrap_or_default(), sends.then_some(&claim));
                store.schedule_materialize_due(Materialize { now: now.wall, limits, budget_left, batch, seen, claim })
            });
            let send = when(sends && ending.is_none(), || store.job_claim(claim.clone()));
            tokio::join!(biased; release, make, send)
        };
        // What was claimed leaves first, whatever became of the release. Where the making failed, or the store left the claim to
        // another call, claims stay in doubt, which the rest of the pass begins with.
        let along = made.as_mut().and_then(|made| made.as_mut().ok()?.claimed.take());
        let mut claimed = claimed.transpose().map(|claimed| claimed.or(along));
        let sent = match &mut claimed {
            Ok(Some(claimed)) => self.send_claimed(now, claimed).await,
            Ok(None) | Err(_) => Ok(()),
        };
        if let Some(made) = made {
            self.materialized(now, made);
        }
        let released = match released {
            Some(outcome) => outcome.map(|released| self.tell_released(released)),
            None => Ok(()),
        };
        let claimed = claimed.map(|claimed| self.tell_unsent(claimed.unwrap_or_default()));
        claimed.and(released).and(sent)
    }

    /// The schedules whose jobs may be ended by what came and is not stored: their occurrences wait for that, as an earlier
    /// one would count as running still. None when they are not known.
    fn ending(&self) -> Option<Vec<ScheduleId>> {
        let mut schedules = Vec::new();
        for reply in &self.inbox {
            schedules.extend(self.requests.cause(&reply.job)?.schedule.clone());
        }
        schedules.sort();
        schedules.dedup();
        Some(schedules)
    }
}

/// Does it or not.
async fn when<T, F: Future<Output = T>>(does: bool, work: impl FnOnce() -> F) -> Option<T> {
    if does { Some(work().await) } else { None }
}
