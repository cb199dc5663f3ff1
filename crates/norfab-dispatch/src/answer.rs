//! Answers to questions that other processes left in the store: only the process that dispatches speaks to workers.

use norfab_model::{
    Broker, Clock, InputAnswer, JobId, Link, Moment, Request, ScheduleStore, Store, StoreError, StoredAnswer,
};

use crate::Dispatcher;
use crate::dispatcher::Answers;

/// How many answers are sent in one go.
const AT_ONCE: u32 = 100;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Sends the answers that wait. One that the queue to the broker has no room for goes back into the store.
    pub(crate) async fn send_answers(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.answers == Answers::Sent || self.link.link() == Link::Down {
            return Ok(());
        }
        let answers = self.store.answer_take(&self.config.scope, AT_ONCE).await?;
        if answers.len() < AT_ONCE as usize {
            self.answers = Answers::Sent;
        }
        for StoredAnswer { job, service, worker, answer } in answers {
            let put = Request::Put { job: job.clone(), service, worker: worker.clone(), answer: answer.clone() };
            if self.send(put).await {
                self.progress = true;
            } else {
                self.store.answer_add(now.wall, &job, &worker, &answer).await?;
                self.answers = Answers::MayWait;
            }
        }
        Ok(())
    }

    /// Sends an answer of this process. One that cannot leave now waits in the store.
    pub(crate) async fn answer(&mut self, job: JobId, service: String, worker: String, answer: InputAnswer) {
        let put = Request::Put { job: job.clone(), service, worker: worker.clone(), answer: answer.clone() };
        if self.link.link() == Link::Up && self.send(put).await {
            return;
        }
        self.answers = Answers::MayWait;
        if let Err(error) = self.store.answer_add(self.clock.now(), &job, &worker, &answer).await {
            tracing::warn!(%job, "Cannot keep an answer to worker {worker:?} until it can be sent: {error}");
        }
    }
}
