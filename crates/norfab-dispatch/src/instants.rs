//! When there is something to do next: asked for once, and kept up by what changes.

use std::time::Duration;

use norfab_model::{Broker, Clock, Job, Link, Moment, NextDue, ScheduleStore, Store, StoreError, Timestamp};

use crate::Dispatcher;

/// Whether jobs that could not be sent may wait to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempts {
    MayWait,
    None,
}

/// How long a pass waits that finds something due and cannot do it: what stands in its way is not known.
const STUCK_PAUSE: Duration = Duration::from_secs(1);

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// The nearest instants at which there is work, asked for once. What changes from then on is noted in them; a step that
    /// something was due for has them asked for again, as what it changed is not taken out of them.
    pub(crate) async fn due(&mut self) -> Result<NextDue, StoreError> {
        match self.due {
            Some(due) => Ok(due),
            None => {
                let due = self.store.job_next_due(&self.config.scope).await?;
                if due.send.is_none() {
                    self.attempts = Attempts::None;
                }
                self.due = Some(due);
                Ok(due)
            }
        }
    }

    /// Notes how a job is now in the nearest instants.
    pub(crate) fn note(&mut self, job: &Job) {
        if job.next_attempt_at.is_some() {
            self.attempts = Attempts::MayWait;
        }
        if let Some(due) = &mut self.due {
            due.note(job);
        }
    }

    /// Notes a job that was made, and may have been sent by now.
    pub(crate) fn note_made(&mut self, job: &Job) {
        if !self.requests.is_under_way(&job.uuid) {
            self.note(job);
        } else if let Some(due) = &mut self.due {
            due.note_sent(job);
        }
    }

    /// Something may have changed behind the instants that were asked for.
    pub(crate) fn forget_instants(&mut self) {
        self.due = None;
        self.attempts = Attempts::MayWait;
        self.schedule_due = None;
    }

    /// The nearest instant at which there is work, as the wall clock will show it; a step of that clock is noticed at the
    /// next look.
    pub(crate) async fn next_wake(&mut self, now: Moment) -> Result<Timestamp, StoreError> {
        let due = self.due().await?;
        let up = self.link.link() == Link::Up;
        // While the link is down the instants of its work are frozen: they must not wake the loop again and again.
        let release = due.release.filter(|_| up);
        let may_send = up && self.room() > 0 && self.live.owed_since().is_none();
        let send = due.send.filter(|_| may_send);
        let send = send.map(|at| self.send_after.map_or(at, |after| now.wall_at(after).max(at)));
        let poll = due.polled.filter(|_| up).map(|at| at.saturating_add(self.config.poll_interval));
        let miss = due.miss.map(|at| at.saturating_add(Duration::from_micros(1)));
        let expire = due.expire.filter(|_| !self.is_silent()).and_then(|at| self.hold.delays(now, at));
        let requests = self.requests.next().filter(|_| up && !self.link.is_doubted());
        let occurrence = self.schedules_wake(now).await;
        let instants = [release, miss, due.expire_unsent, expire, send, poll, occurrence];
        let unasked = self.send_after.filter(|_| up && !self.fetch.is_empty());
        let live = self.live.gives_up_at(self.config.probe_timeout).filter(|at| *at > now.up);
        let waits = [requests, self.link.next(now.up), self.doubtful_at(), live, unasked];
        let waits = waits.into_iter().flatten().min().map(|at| now.wall_at(at));
        let wake = instants.into_iter().flatten().chain(waits).min().unwrap_or(Timestamp::MAX);
        // Whatever is in a row, the loop must not turn on the spot.
        let earliest = if self.progress { now.wall } else { now.wall.saturating_add(STUCK_PAUSE) };
        Ok(if wake <= now.wall { earliest } else { wake })
    }
}
