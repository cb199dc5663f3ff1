//! Sending again what was not delivered, and asking again who did not know of it yet.

use norfab_model::{
    Broker, Clock, JobId, Json, Link, Moment, Poll, Post, Request, Resend, ScheduleStore, SendAgain, Store, StoreError,
};

use crate::Dispatcher;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Does what is due of the requests that went unanswered or astray. While it is doubtful whether the broker is there
    /// at all, nothing is.
    pub(crate) async fn send_again(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.link.link() == Link::Down || self.link.is_doubted() {
            return Ok(());
        }
        let due = self.requests.due(now.up);
        for poll in due.ask {
            self.progress = true;
            self.ask(now, poll).await;
        }
        self.again.extend(due.send);
        // Only who needs another worker waits for the list of them. How old the broker is stands there too.
        let unlisted = self.live.fresh(now.up).is_none();
        let waits = |again: &SendAgain| unlisted && again.why == Resend::Elsewhere;
        let (waiting, again): (Vec<SendAgain>, Vec<SendAgain>) = self.again.iter().cloned().partition(waits);
        if !waiting.is_empty() || self.requests.take_unsure() && unlisted {
            self.ask_for_workers(now).await;
        }
        if again.is_empty() {
            return Ok(());
        }
        let sent = self.store.job_send_again(now.wall, again, self.live.fresh(now.up)).await?;
        self.progress = true;
        self.due = None;
        self.again = waiting;
        self.again.extend(sent.left);
        for post in sent.posts {
            let (job, target) = (post.job.clone(), post.target.clone());
            if self.post(now, post).await {
                tracing::info!(%job, "Sent a job again to {target}");
            } else {
                self.requests.post_later(now.up, &job);
            }
        }
        for job in sent.jobs {
            self.tell_job(job);
        }
        Ok(())
    }

    /// Sends a POST, and tells whether it got away.
    pub(crate) async fn post(&mut self, now: Moment, post: Post) -> bool {
        self.requests.posted(now.up, &post);
        let job = post.job.clone();
        let sent = self.send(Request::Post(post)).await;
        if !sent {
            self.requests.never_left(&job);
        }
        sent
    }

    /// Sends a GET, and tells whether it got away.
    pub(crate) async fn ask(&mut self, now: Moment, poll: Poll) -> bool {
        self.requests.asked(now.up, &poll);
        let job = poll.job.clone();
        let sent = self.send(Request::Get(poll)).await;
        if !sent {
            self.requests.never_left(&job);
        }
        sent
    }

    /// Asks the broker for the live workers, unless it is asked already.
    pub(crate) async fn ask_for_workers(&mut self, now: Moment) {
        if self.live.owed_since().is_none() {
            let id = JobId::generate(now.wall);
            let (task, kwargs) = ("show_workers".to_owned(), Json::empty_object());
            self.live.asked(now, id.clone());
            self.send(Request::Mmi { id, task, kwargs }).await;
        }
    }
}
