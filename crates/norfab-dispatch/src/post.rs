//! Sending what is NEW: first the claim is committed, then the message leaves.

use std::time::Duration;

use norfab_model::{Broker, Clock, JobId, Link, Request, ScheduleStore, Store, StoreError, Timestamp};

use crate::Dispatcher;

/// How long a full queue to the broker is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(100);

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Claims and sends as many NEW jobs as the window has room for.
    pub(crate) async fn dispatch(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.send_after.is_some_and(|at| now < at && at <= now.saturating_add(FULL_PAUSE)) {
            return Ok(());
        }
        self.send_after = None;
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
        self.progress = true;
        let mut posts = claimed.posts.into_iter();
        for post in posts.by_ref() {
            let job = post.job.clone();
            if self.send(Request::Post(post)).await {
                self.unconfirmed.insert(job);
            } else {
                return self.take_back(now, job, posts.map(|post| post.job)).await;
            }
        }
        Ok(())
    }

    /// Makes claimed jobs NEW as before: nothing of them has left this process. What is on its way goes first.
    async fn take_back(
        &mut self,
        now: Timestamp,
        first: JobId,
        rest: impl Iterator<Item = JobId>,
    ) -> Result<(), StoreError> {
        let unsent: Vec<JobId> = std::iter::once(first).chain(rest).collect();
        self.send_after = Some(now.saturating_add(FULL_PAUSE));
        self.store.job_unclaim(now, &unsent).await
    }
}
