//! Schedules: rules that make a job again and again. What a call may do and what it makes of the schedule is decided in
//! the model, within the store's transaction; here it is checked, handed over and told to the dispatcher.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use norfab_model::{
    Broker, Clock, Json, Limits, Managed, Moved, NewJob, NewSchedule, Overlap, Schedule, ScheduleDetail, ScheduleError,
    ScheduleFilter, ScheduleId, ScheduleKey, SchedulePage, SchedulePatch, ScheduleStore, ScheduleWarning, Store,
    SwitchedOff, Timestamp, Upcoming, Workers,
};
use serde::Serialize;

use crate::client::{Shared, to_the_end};
use crate::{Client, ClientError, JobHandle, Outcome, Results, WorkerResult};

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

/// The instants of a schedule, or of a rule that is none yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The schedule; of a rule, the one that it would be.
    pub schedule: Schedule,
    /// Its occurrences. Of a rule, each is shown as due at its nominal instant: what the jitter makes of it hangs on the
    /// identity that the schedule will have.
    pub next: Vec<Upcoming>,
}

impl Preview {
    /// Whether a clock change moved an occurrence, and from which time of day.
    #[must_use]
    pub fn moved(&self, one: &Upcoming) -> Option<Moved> {
        self.schedule.occurrences().moved(one.occurrence)
    }
}

/// Checks a new schedule and shows its first instants, at most 1,000, as if it were created at `from`.
///
/// # Errors
/// [`ClientError::Invalid`].
pub fn preview_new(limits: &Limits, new: NewSchedule, from: Timestamp, count: usize) -> Result<Preview, ClientError> {
    let schedule = limits.check_schedule(from, new)?.schedule().clone();
    let nominal = |one: Upcoming| Upcoming { due: one.occurrence, ..one };
    let next = schedule.preview(from).take(count.min(LONGEST_PREVIEW)).map(nominal).collect();
    Ok(Preview { schedule, next })
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
        let schedule = self.managed(async move |shared| shared.store.schedule_add(&valid).await).await?;
        Ok(Created { schedule, warnings })
    }

    /// The instants of a schedule after `from`, at most 1,000: by the very function that makes the jobs, so that what is
    /// shown is what runs, and what ran. None: those that are to come. See [`Schedule::outlook`].
    ///
    /// # Errors
    /// [`ClientError::Schedule`] with [`ScheduleError::Unknown`].
    pub async fn preview(
        &self,
        key: &ScheduleKey,
        from: Option<Timestamp>,
        count: usize,
    ) -> Result<Preview, ClientError> {
        let found = self.store().schedule_find(key).await?.ok_or_else(|| ScheduleError::Unknown(key.clone()))?;
        let (schedule, now) = (found.schedule, self.clock().now());
        let next = schedule.outlook(now, from.unwrap_or(now)).take(count.min(LONGEST_PREVIEW)).collect();
        Ok(Preview { schedule, next })
    }

    /// A page of the schedules, or of the deleted ones, in the order of their creation.
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
        let now = self.clock().now();
        self.managed(async move |shared| shared.store.schedule_pause(now, &id).await).await
    }

    /// Lets a paused or disabled schedule go on with its first occurrence after now. What came due meanwhile is not
    /// caught up; the answer says how many occurrences were passed over.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn resume_job_schedule(&self, key: &ScheduleKey) -> Result<Managed, ClientError> {
        let id = self.schedule_id(key).await?;
        let (now, limits) = (self.clock().now(), self.limits().clone());
        self.managed(async move |shared| shared.store.schedule_resume(now, &id, &limits).await).await
    }

    /// Changes the fields that the patch gives, for future occurrences.
    ///
    /// # Errors
    /// [`ClientError::Schedule`], with [`ScheduleError::Stale`] when the patch demands another revision.
    pub async fn update_job_schedule(&self, key: &ScheduleKey, patch: &SchedulePatch) -> Result<Managed, ClientError> {
        let id = self.schedule_id(key).await?;
        let (now, limits, patch) = (self.clock().now(), self.limits().clone(), patch.clone());
        self.managed(async move |shared| shared.store.schedule_update(now, &id, &patch, &limits).await).await
    }

    /// Switches a schedule off until it is resumed; a row that cannot be read, too.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn disable_job_schedule(&self, key: &ScheduleKey) -> Result<SwitchedOff, ClientError> {
        let (now, key) = (self.clock().now(), key.clone());
        self.managed(async move |shared| shared.store.schedule_disable(now, &key).await).await
    }

    /// Deletes a schedule: its name is free at once, its jobs and their origin stay. So a row that cannot be read is got
    /// rid of.
    ///
    /// # Errors
    /// [`ClientError::Schedule`].
    pub async fn delete_job_schedule(&self, key: &ScheduleKey) -> Result<SwitchedOff, ClientError> {
        let (now, key) = (self.clock().now(), key.clone());
        self.managed(async move |shared| shared.store.schedule_delete(now, &key).await).await
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
        let (now, limits) = (self.clock().now(), self.limits().clone());
        let run = self.managed(async move |shared| shared.store.schedule_run_now(now, &id, overlap, &limits).await);
        Ok(self.follow(&run.await?.job.uuid))
    }

    /// Asks workers of a service, by an ordinary `list_tasks` job, whether they have a task that is meant for `workers`:
    /// those that are named, each of which must have it; of all that answer each for [`Workers::All`], and one of them for
    /// [`Workers::Any`].
    ///
    /// # Errors
    /// [`ClientError::UnknownTask`] when a worker has not got it; [`ClientError::Unverified`] when none answered, or not
    /// each of those that are named.
    pub async fn verify_task(&self, service: &str, task: &str, workers: &Workers) -> Result<(), ClientError> {
        // Who `any` turns out to be at a job is another one each time.
        let asked = if *workers == Workers::Any { Workers::All } else { workers.clone() };
        let question = NewJob::new(service, "list_tasks")
            .workers(asked)
            .kwargs(serde_json::json!({"brief": true}))
            .timeout(VERIFY_TIMEOUT);
        let results = match self.run_job(question).await? {
            Outcome::Completed { results } | Outcome::Failed { results, .. } | Outcome::Stale { results, .. } => {
                results
            }
            Outcome::Cancelled | Outcome::Missed => Results::new(),
        };
        judge(service, task, workers, &results)
    }

    async fn schedule_id(&self, key: &ScheduleKey) -> Result<ScheduleId, ClientError> {
        if let ScheduleKey::Id(id) = key {
            return Ok(id.clone());
        }
        let view = self.store().schedule_find(key).await?.ok_or_else(|| ScheduleError::Unknown(key.clone()))?;
        Ok(view.schedule.uuid)
    }

    /// Manages a schedule, and wakes the dispatcher of this process when that has succeeded, whether or not the caller is
    /// still there then.
    async fn managed<T, F>(&self, call: impl FnOnce(Arc<Shared<S, C>>) -> F) -> Result<T, ClientError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ScheduleError>> + Send + 'static,
    {
        let shared = Arc::clone(self.shared());
        let call = call(Arc::clone(&shared));
        let managing = to_the_end(async move {
            let done = call.await?;
            shared.wake();
            Ok::<_, ScheduleError>(done)
        });
        Ok(managing.await??)
    }
}

/// Whether workers that told their tasks have one of them.
fn judge(service: &str, task: &str, workers: &Workers, results: &Results) -> Result<(), ClientError> {
    let answers: BTreeMap<&str, BTreeSet<String>> =
        results.iter().filter_map(|(worker, raw)| Some((worker.as_str(), task_names(raw)?))).collect();
    let silent: Vec<String> = workers
        .names()
        .unwrap_or_default()
        .iter()
        .filter(|name| !answers.contains_key(name.as_str()))
        .cloned()
        .collect();
    let lacking = answers.iter().find(|(_, tasks)| !tasks.contains(task)).map(|(worker, _)| (*worker).to_owned());
    let is_enough = *workers == Workers::Any && answers.values().any(|tasks| tasks.contains(task));
    match lacking {
        Some(worker) if !is_enough => {
            Err(ClientError::UnknownTask { service: service.to_owned(), task: task.to_owned(), worker })
        }
        _ if answers.is_empty() || !silent.is_empty() => {
            Err(ClientError::Unverified { service: service.to_owned(), workers: silent })
        }
        _ => Ok(()),
    }
}

/// The names in a worker's answer to a brief `list_tasks`; None when it is no such answer.
fn task_names(raw: &Json) -> Option<BTreeSet<String>> {
    WorkerResult::read(raw).ok().filter(|result| !result.failed)?.result.to().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HAS: &str = "list_tasks, reboot";
    const LACKS: &str = "list_tasks";
    const FAILS: &str = "";

    /// What comes of these answers: of workers w1, w2 and so on, each the tasks that it has.
    #[track_caller]
    fn check(workers: Workers, answers: &[&str], expected: &str) {
        let answer = |tasks: &str| match tasks {
            FAILS => json!({"failed": true, "result": null}),
            tasks => json!({"result": tasks.split(", ").collect::<Vec<_>>()}),
        };
        let results = answers.iter().zip(1..).map(|(tasks, n)| (format!("w{n}"), answer(tasks).into())).collect();
        let told = match judge("demo", "reboot", &workers, &results) {
            Ok(()) => "ok".to_owned(),
            Err(ClientError::UnknownTask { worker, .. }) => format!("{worker} lacks it"),
            Err(ClientError::Unverified { workers, .. }) => format!("silent: {}", workers.join(" ")),
            Err(error) => error.to_string(),
        };
        assert_eq!(told, expected, "{workers} {answers:?}");
    }

    /// A rule as a program gets it in JSON, by the clocks of a zone.
    #[test]
    fn a_preview_marks_what_a_clock_change_moved() {
        let trigger: norfab_model::Trigger =
            serde_json::from_value(json!({"type": "cron", "expression": "30 2 * * *"})).expect("a trigger");
        let from = Timestamp::parse("2025-03-08T00:00:00Z").expect("an instant");
        let new = NewSchedule::new("demo", "echo", trigger).timezone("America/New_York");
        let preview = preview_new(&Limits::default(), new.clone(), from, 3).expect("valid");
        let marks: Vec<_> = preview.next.iter().map(|one| preview.moved(one).is_some()).collect();
        assert_eq!(marks, [false, true, false]);
        assert_eq!(preview.next[1].occurrence, Timestamp::parse("2025-03-09T07:00:00Z").expect("an instant"));
        let gone = preview_new(&Limits::default(), new.timezone("CST"), from, 3);
        assert!(matches!(gone, Err(ClientError::Invalid(_))), "{gone:?}");
    }

    #[test]
    fn who_must_have_a_task_depends_on_whom_it_is_for() {
        let named = |names: &[&str]| Workers::List(names.iter().map(|name| (*name).to_owned()).collect());
        check(Workers::All, &[HAS, HAS], "ok");
        check(Workers::All, &[HAS, FAILS], "ok");
        check(Workers::All, &[HAS, LACKS], "w2 lacks it");
        check(Workers::All, &[FAILS], "silent: ");
        check(Workers::All, &[], "silent: ");
        check(Workers::Any, &[LACKS, HAS, FAILS], "ok");
        check(Workers::Any, &[LACKS, FAILS], "w1 lacks it");
        check(Workers::Any, &[FAILS], "silent: ");
        check(Workers::One("w1".to_owned()), &[HAS], "ok");
        check(Workers::One("w1".to_owned()), &[LACKS], "w1 lacks it");
        check(Workers::One("w9".to_owned()), &[], "silent: w9");
        check(named(&["w1", "w2"]), &[HAS, HAS], "ok");
        check(named(&["w1", "w2"]), &[HAS, FAILS], "silent: w2");
        check(named(&["w1", "w2", "w3"]), &[HAS, FAILS, LACKS], "w3 lacks it");
    }
}
