//! Sending what is NEW: first the claim is committed, then the message leaves.

use norfab_model::{Broker, Clock, Link, Request, Scope, Store, StoreError, Timestamp};

use crate::Dispatcher;

impl<S: Store, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Claims and sends as many NEW jobs as the window has room for.
    pub(crate) async fn dispatch(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let ready = self.due().await?.send.is_some_and(|at| at <= now);
        let room = self.config.window.saturating_sub(self.unconfirmed.len());
        if !ready || room == 0 || self.link.link() == Link::Down {
            return Ok(());
        }
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        let claimed = self.store.job_claim(now, &self.config.scope, limit).await?;
        self.due = None;
        for job in claimed.failed {
            tracing::error!(job = %job.uuid, "Failed a job whose stored arguments cannot be read");
            self.tell_job(job);
        }
        let mut unsent = Vec::new();
        for post in claimed.posts {
            let job = post.job.clone();
            if self.send(Request::Post(post)).await {
                self.unconfirmed.insert(job);
            } else {
                unsent.push(job);
            }
        }
        if !unsent.is_empty() {
            // Nothing left this process, so that they are NEW as before.
            self.store.job_recover(now, &Scope::Jobs(unsent)).await?;
        }
        Ok(())
    }
}
