//! Applying what the fabric said, in batches, and telling of it after the commit.

use norfab_model::{Broker, Clock, Job, JobStatus, Poll, ScheduleStore, Store, StoreError, Timestamp, Workers};

use crate::Dispatcher;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Applies the replies that wait, one transaction a batch. What fails stays in the inbox for the next pass.
    pub(crate) async fn apply_replies(&mut self, now: Timestamp) -> Result<(), StoreError> {
        while !self.inbox.is_empty() {
            let size = self.inbox.len().min(self.config.reply_batch);
            let outcome = self.store.job_apply(now, self.inbox[..size].to_vec()).await?;
            self.inbox.drain(..size);
            self.due = None;
            self.progress = true;
            for applied in outcome.jobs {
                if applied.job.status != JobStatus::Submitting {
                    self.unconfirmed.remove(&applied.job.uuid);
                }
                if !applied.fetch.is_empty() && !applied.job.status.is_terminal() {
                    self.fetch.push(Poll {
                        job: applied.job.uuid.clone(),
                        service: applied.job.service.clone(),
                        target: Workers::List(applied.fetch),
                    });
                }
                for event in applied.events {
                    self.tell_event(event);
                }
                if applied.changed {
                    log_end(&applied.job);
                    self.tell_job(applied.job);
                }
            }
            for (job, why) in outcome.ignored {
                self.ignored += 1;
                tracing::debug!(%job, "Ignored a reply: {}", why.as_str());
            }
            for job in outcome.unknown {
                self.stray(&format!("a reply for job {job}, which is not in the database or cannot be read"));
            }
        }
        Ok(())
    }
}

fn log_end(job: &Job) {
    match job.status {
        JobStatus::Completed => tracing::info!(job = %job.uuid, "Completed a job"),
        JobStatus::Failed => {
            let why = job.errors.last().map_or("no reason is known", String::as_str);
            tracing::warn!(job = %job.uuid, "Failed a job: {why}");
        }
        _ => {}
    }
}
