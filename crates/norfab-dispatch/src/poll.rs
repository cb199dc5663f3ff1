//! Asking for jobs in flight: at once where a worker says that its result is ready, and now and then for the rest, since
//! any message may be lost.

use norfab_model::{Broker, Clock, Link, Moment, Poll, ScheduleStore, Store, StoreError};

use crate::Dispatcher;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Asks for the results that are ready, and what a full queue has left unasked.
    pub(crate) async fn fetch_ready(&mut self, now: Moment) {
        if self.is_queue_full(now.up) {
            return;
        }
        let fetch = std::mem::take(&mut self.fetch);
        self.ask_all(now, fetch).await;
    }

    /// Asks for the jobs that nothing was asked of for a poll interval, or since the clock leapt.
    pub(crate) async fn poll(&mut self, now: Moment) -> Result<(), StoreError> {
        let before = now.wall.saturating_sub(self.config.poll_interval);
        let before = self.hold.asked_by().map_or(before, |at| at.max(before));
        while self.link.link() == Link::Up && self.due().await?.polled.is_some_and(|at| at <= before) {
            let polls = self.store.job_take_polls(now.wall, &self.config.scope, before, self.config.poll_batch).await?;
            self.due = None;
            if polls.is_empty() {
                break;
            }
            self.progress = true;
            self.ask_all(now, polls).await;
        }
        if self.link.link() == Link::Up && self.fetch.is_empty() {
            self.hold.asked(now.up);
        }
        Ok(())
    }

    /// Asks for all of these; those that do not get away are kept for later.
    async fn ask_all(&mut self, now: Moment, polls: Vec<Poll>) {
        for poll in polls {
            if self.is_queue_full(now.up) || !self.ask(now, poll.clone()).await {
                self.queue_was_full(now.up);
                self.fetch.push(poll);
            }
        }
    }
}
