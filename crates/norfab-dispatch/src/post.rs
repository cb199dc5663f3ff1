//! Sending what is NEW: first the claim is committed, then the message leaves.

use std::time::Duration;

use norfab_model::{
    Broker, Claim, Claimed, Clock, JobId, JobStatus, Link, Moment, RetryPolicy, ScheduleStore, Store, StoreError,
    Uptime,
};

use crate::Dispatcher;
use crate::dispatcher::Claims;
use crate::instants::Attempts;

/// Whether a claim left jobs behind that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Some,
    None,
}

/// How long a full queue to the broker is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(100);

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Claims and sends as many NEW jobs as the window has room for.
    pub(crate) async fn dispatch(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.may_send(now.up) && self.must_send(now).await? {
            self.claims = Claims::InDoubt;
            let mut claimed = self.store.job_claim(self.claim(now)).await?;
            let sent = self.send_claimed(now, &mut claimed).await;
            self.tell_unsent(claimed);
            return sent;
        }
        Ok(())
    }

    /// Whether NEW jobs could be sent, were there any.
    pub(crate) fn may_send(&mut self, now: Uptime) -> bool {
        let has_way = !self.is_queue_full(now) && self.link.link() == Link::Up;
        has_way && self.room() > 0 && self.live.owed_since().is_none()
    }

    /// Whether there is a NEW job to be sent now.
    pub(crate) async fn must_send(&mut self, now: Moment) -> Result<bool, StoreError> {
        Ok(self.due().await?.send.is_some_and(|at| at <= now.wall))
    }

    /// What to claim now.
    pub(crate) fn claim(&self, now: Moment) -> Claim<'_> {
        let limit = u32::try_from(self.room()).unwrap_or(u32::MAX);
        let (scope, live) = (&self.config.scope, self.live.fresh(now.up));
        Claim { now: now.wall, scope, limit, live, policy: self.config.retry }
    }

    /// Sends what was claimed. What could not be sent is to be [told](Self::tell_unsent).
    pub(crate) async fn send_claimed(&mut self, now: Moment, claimed: &mut Claimed) -> Result<(), StoreError> {
        self.claims = Claims::Known;
        let rest = if claimed.more || claimed.unplaced > 0 { Rest::Some } else { Rest::None };
        self.progress |= !(claimed.posts.is_empty() && claimed.failed.is_empty() && claimed.postponed.is_empty());
        for job in &claimed.postponed {
            self.note(job);
        }
        self.note_claimed(rest);
        if claimed.unplaced > 0 {
            self.ask_for_workers(now).await;
        }
        let mut posts = std::mem::take(&mut claimed.posts).into_iter();
        for post in posts.by_ref() {
            let job = post.job.clone();
            if !self.post(now, post).await {
                return self.take_back(now, job, posts.map(|post| post.job)).await;
            }
        }
        Ok(())
    }

    /// Tells of what was to be claimed and could not be sent.
    pub(crate) fn tell_unsent(&mut self, claimed: Claimed) {
        for job in claimed.failed {
            let why = job.errors.last().map_or("no reason is known", String::as_str);
            tracing::error!(job = %job.uuid, "Failed a job that cannot be sent: {why}");
            self.tell_job(job);
        }
        for job in claimed.postponed {
            if job.status == JobStatus::New && RetryPolicy::is_news(job.posts_refused) {
                tracing::warn!(job = %job.uuid, "Found no worker for a job; it is tried again");
            }
            self.tell_job(job);
        }
    }

    /// How many jobs may be sent now: none while less than a quarter of the window is free. A claim waits for the disk, and
    /// is not made for every job that the broker takes.
    pub(crate) fn room(&self) -> usize {
        let room = self.config.window.saturating_sub(self.requests.posts_out());
        if room < self.config.window.div_ceil(4) { 0 } else { room }
    }

    /// Notes that jobs were claimed. When the next one may be sent is asked for where it is not known.
    fn note_claimed(&mut self, rest: Rest) {
        let Some(due) = &mut self.due else { return };
        due.note_claimed();
        match (rest, self.attempts) {
            (Rest::Some, _) => {}
            (Rest::None, Attempts::None) => due.send = None,
            (Rest::None, Attempts::MayWait) => self.due = None,
        }
    }

    /// Whether the queue to the broker was full a moment ago.
    pub(crate) fn is_queue_full(&mut self, now: Uptime) -> bool {
        self.send_after.take_if(|at| *at <= now);
        self.send_after.is_some()
    }

    /// Leaves the queue alone for a moment.
    pub(crate) fn queue_was_full(&mut self, now: Uptime) {
        self.send_after = Some(now.saturating_add(FULL_PAUSE));
    }

    /// Makes claimed jobs NEW as before: nothing of them has left this process. What is on its way goes first.
    async fn take_back(
        &mut self,
        now: Moment,
        first: JobId,
        rest: impl Iterator<Item = JobId>,
    ) -> Result<(), StoreError> {
        let unsent: Vec<JobId> = std::iter::once(first).chain(rest).collect();
        self.queue_was_full(now.up);
        unsent.iter().for_each(|job| self.requests.ended(job));
        // Should the claims not be taken back, the next pass finds them.
        self.claims = Claims::InDoubt;
        self.due = None;
        self.store.job_unclaim(now.wall, &unsent).await?;
        self.claims = Claims::Known;
        Ok(())
    }
}
