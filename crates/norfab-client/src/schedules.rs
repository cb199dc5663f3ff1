//! Schedules: rules that make a job again and again. What a call may do and what it makes of the schedule is decided in
//! the model, within the store's transaction; here it is checked, handed over and told to the dispatcher.

use std::collections::BTreeSet;

use norfab_model::{
    Broker, Clock, Managed, NewJob, NewSchedule, Overlap, Schedule, ScheduleDetail, ScheduleError, ScheduleFilter,
    ScheduleId, ScheduleKey, SchedulePage, SchedulePatch, ScheduleStore, ScheduleWarning, Store, SwitchedOff,
    Timestamp, Upcoming,
};
use serde::Serialize;

use crate::{Client, ClientError, JobHandle, Outcome, WorkerResult};

/// A schedule that was created.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Created {
    /// The schedule as it is stored: normalised, with its first occurrence.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// What a person may not have meant.
    #[serde(serialize_with = "texts")]
    pub warnings: Vec<ScheduleWarning>,
}

fn texts<S: serde::Serializer>(warnings: &[ScheduleWarning], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(warnings.iter().map(ToString::to_string))
}

/// The most instants that a preview shows.
const LONGEST_PREVIEW: usize = 1000;

/// Seconds that a question for a worker's tasks may take.
const VERIFY_TIMEOUT: u64 = 30;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Client<S, B, C> {
    /// Creates a schedule. It makes its first job at its first occurrence after now.
    ///
    /// # Errors
    /// [`ClientError::Invalid`]; [`ClientError::Schedule`] with [`ScheduleError::NameTaken`], which carries the schedule
    /// that has the name, so that a program that creates its schedule at every start can go on with it.
    pub async fn create_job_schedule(&self, new: NewSchedule) -> Result<Created, ClientError> {
        let valid = self.limits().check_schedule(self.clock().now(), new)?;
        let warnings = valid.warnings();
        let schedule = self.store().schedule_add(&valid).await?;
        self.wake();
        Ok(Created { schedule, warnings })
    }

    /// Checks a new schedule and shows its next instants, without creating it.
    ///
    /// # Errors
    /// [`ClientError::Invalid`].
    pub fn preview_new(&self, new: NewSchedule, from: Timestamp, count: usize) -> Result<Vec<Upcoming>, ClientError> {
        let valid = self.limits().check_schedule(self.clock().now(), new)?;
        Ok(valid.schedule().preview(from).take(count.min(LONGEST_PREVIEW)).collect())
    }

    /// The instants of a schedule after `from`, at most 1,000: by the very function that makes the jobs, so that what is
    /// shown is what runs.
    ///
    /// # Errors
    /// [`ClientError::Schedule`] with [`ScheduleError::Unknown`].
    pub async fn preview(
        &self,
        key: &ScheduleKey,
        from: Timestamp,
        count: usize,
    ) -> Result<Vec<Upcoming>, ClientError> {
        let detail = self.get_job_schedule(key).await?;
        Ok(detail.view.schedule.preview(from).take(count.min(LONGEST_PREVIEW)).collect())
    }

    /// A page of the schedules that are not deleted, in the order of their creation.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn list_job_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage, ClientError> {
        Ok(self.store().schedule_list(filter).await?)
    }

    /// A schedule with its arguments, by its UUID (deleted ones too) or its name.
    ///
    /// # Errors
    /// [`ClientError::Schedule`] with [`ScheduleError::Unknown`], or [`ScheduleError::Unreadable`].
    pub async fn get_job_schedule(&self, key: &ScheduleKey) -> Result<ScheduleDetail, ClientError> {
        Ok(self.store().schedule_detail(key).await?.ok_or_else(|| ScheduleError::Unknown(key.clone()))?)
    }

    /// Pauses a schedule. What is NEW or further goes on.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn pause_job_schedule(&self, key: &ScheduleKey) -> Result<Managed, ClientError> {
        let id = self.schedule_id(key).await?;
        self.managed(self.store().schedule_pause(self.clock().now(), &id).await)
    }

    /// Lets a paused or disabled schedule go on with its first occurrence after now. What came due meanwhile is not
    /// caught up; the answer says how many occurrences were passed over.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn resume_job_schedule(&self, key: &ScheduleKey) -> Result<Managed, ClientError> {
        let id = self.schedule_id(key).await?;
        self.managed(self.store().schedule_resume(self.clock().now(), &id, self.limits()).await)
    }

    /// Changes the fields that the patch gives, for future occurrences.
    ///
    /// # Errors
    /// [`ClientError::Schedule`], with [`ScheduleError::Stale`] when the patch demands another revision.
    pub async fn update_job_schedule(&self, key: &ScheduleKey, patch: &SchedulePatch) -> Result<Managed, ClientError> {
        let id = self.schedule_id(key).await?;
        self.managed(self.store().schedule_update(self.clock().now(), &id, patch, self.limits()).await)
    }

    /// Switches a schedule off until it is resumed; a row that cannot be read, too.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn disable_job_schedule(&self, key: &ScheduleKey) -> Result<SwitchedOff, ClientError> {
        self.managed(self.store().schedule_disable(self.clock().now(), key).await)
    }

    /// Deletes a schedule: its name is free at once, its jobs and their origin stay. So a row that cannot be read is got
    /// rid of.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn delete_job_schedule(&self, key: &ScheduleKey) -> Result<SwitchedOff, ClientError> {
        self.managed(self.store().schedule_delete(self.clock().now(), key).await)
    }

    /// Runs a schedule once, now, beside its cadence.
    ///
    /// # Errors
    /// [`ClientError::Schedule`] with [`ScheduleError::Overlap`], which names the running job and since when, unless the
    /// overlap is ignored.
    pub async fn run_job_schedule_now(
        &self,
        key: &ScheduleKey,
        overlap: Overlap,
    ) -> Result<JobHandle<S, C>, ClientError> {
        let id = self.schedule_id(key).await?;
        let run = self.store().schedule_run_now(self.clock().now(), &id, overlap, self.limits()).await?;
        let handle = self.follow(&run.job.uuid);
        self.wake();
        Ok(handle)
    }

    /// Asks the live workers of a service, by an ordinary `list_tasks` job, whether they have a task.
    ///
    /// # Errors
    /// [`ClientError::UnknownTask`] when a worker that answered has not; [`ClientError::Unverified`] when none answered.
    pub async fn verify_task(&self, service: &str, task: &str) -> Result<(), ClientError> {
        let question =
            NewJob::new(service, "list_tasks").kwargs(serde_json::json!({"brief": true})).timeout(VERIFY_TIMEOUT);
        let results = match self.run_job(question).await? {
            Outcome::Completed { results } => results,
            _ => return Err(ClientError::Unverified { service: service.to_owned() }),
        };
        let mut answered = false;
        for (worker, raw) in &results {
            let Some(tasks) =
                WorkerResult::read(raw).ok().filter(|result| !result.failed).and_then(|result| task_names(&result))
            else {
                continue;
            };
            answered = true;
            if !tasks.contains(task) {
                return Err(ClientError::UnknownTask {
                    service: service.to_owned(),
                    task: task.to_owned(),
                    worker: worker.clone(),
                });
            }
        }
        if answered { Ok(()) } else { Err(ClientError::Unverified { service: service.to_owned() }) }
    }

    async fn schedule_id(&self, key: &ScheduleKey) -> Result<ScheduleId, ClientError> {
        if let ScheduleKey::Id(id) = key {
            return Ok(id.clone());
        }
        let view = self.store().schedule_find(key).await?.ok_or_else(|| ScheduleError::Unknown(key.clone()))?;
        Ok(view.schedule.uuid)
    }

    /// Wakes the dispatcher when a call has succeeded.
    fn managed<T>(&self, outcome: Result<T, ScheduleError>) -> Result<T, ClientError> {
        let done = outcome?;
        self.wake();
        Ok(done)
    }
}

/// The names in a worker's answer to a brief `list_tasks`.
fn task_names(result: &WorkerResult) -> Option<BTreeSet<String>> {
    result.result.to().ok()
}
