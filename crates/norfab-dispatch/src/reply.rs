//! Applying what the fabric said, in batches, and telling of it after the commit.

use norfab_model::{
    Broker, Clock, FollowUp, Job, JobId, JobStatus, Moment, Poll, ScheduleStore, Store, StoreError, Workers,
};

use crate::{Dispatcher, Notice};

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Applies the replies that wait, one transaction a batch. What fails stays in the inbox for the next pass.
    pub(crate) async fn apply_replies(&mut self, now: Moment) -> Result<(), StoreError> {
        while !self.inbox.is_empty() {
            self.stored_at = Some(now.up);
            let size = self.inbox.len().min(self.config.reply_batch);
            let replies = self.inbox[..size].to_vec();
            let outcome = self.store.job_apply(now.wall, self.config.retry, replies).await?;
            self.inbox.drain(..size);
            self.progress = true;
            for applied in outcome.jobs {
                self.note(&applied.job);
                if applied.job.next_attempt_at.is_some() {
                    self.live.outdated();
                }
                if applied.job.status.is_terminal() {
                    self.requests.ended(&applied.job.uuid);
                } else {
                    self.follow(now, &applied.job, applied.follow_ups);
                }
                for event in applied.events {
                    self.tell_event(event);
                }
                if applied.changed {
                    log_end(&applied.job);
                    match applied.results {
                        Some(results) => self.tell(Notice::Ended(Box::new(applied.job), results)),
                        None => self.tell_job(applied.job),
                    }
                }
            }
            for (job, why) in outcome.ignored {
                self.ignored += 1;
                tracing::debug!(%job, "Ignored a reply: {}", why.as_str());
            }
            for job in outcome.unknown {
                self.requests.ended(&job);
                self.stray(&format!("a reply for a job that is not in the database or cannot be read: {}", name(&job)));
            }
        }
        Ok(())
    }

    /// Does what replies ask for beside what is stored.
    fn follow(&mut self, now: Moment, job: &Job, follow_ups: Vec<FollowUp>) {
        let mut ready = ready(&follow_ups);
        ready.retain(|worker| !self.requests.was_fetched(&job.uuid, worker));
        if !ready.is_empty() {
            let target = Workers::List(ready);
            self.fetch.push(Poll { job: job.uuid.clone(), service: job.service.clone(), target });
        }
        for follow_up in follow_ups {
            self.requests.follow(now, job, follow_up);
        }
    }
}

/// The workers whose results are ready, of what is to be done next.
fn ready(follow_ups: &[FollowUp]) -> Vec<String> {
    let worker = |follow_up: &FollowUp| match follow_up {
        FollowUp::Fetch(worker) => Some(worker.clone()),
        _ => None,
    };
    follow_ups.iter().filter_map(worker).collect()
}

/// A job that may be none of ours: what is no UUID may be any part of a message.
fn name(job: &JobId) -> String {
    let text = job.as_str();
    let is_uuid = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_uuid { text.to_owned() } else { format!("{} bytes that are no UUID", text.len()) }
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
