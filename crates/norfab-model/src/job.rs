//! A job as a caller asks for it, as the database holds it, and as it is listed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{InputRequest, JobId, JobStatus, Json, ScheduleId, Timestamp, Workers};

/// The results of a job: a worker's name, and what that worker answered.
pub type Results = BTreeMap<String, Json>;

/// What a caller asks for. [`Limits::check_job`](crate::Limits::check_job) makes a [`ValidJob`] of it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The service whose workers run it.
    pub service: String,
    /// The task that they run.
    pub task: String,
    /// Which workers of the service.
    pub workers: Workers,
    /// Positional arguments, a JSON array. Tasks that take `job` first accept none: prefer `kwargs`.
    pub args: Json,
    /// Keyword arguments, a JSON object.
    pub kwargs: Json,
    /// Seconds that the job may take once it is released. Passing it makes the job STALE; it stops no worker.
    pub timeout: u64,
    /// When it may start.
    pub start: Start,
    /// The identity, when the caller chooses it; else one is made.
    pub id: Option<JobId>,
}

/// When a job may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// As soon as it is added.
    Now,
    /// Not before a given time.
    At {
        /// The earliest instant of the start.
        scheduled_for: Timestamp,
        /// Seconds that the start may be late before the job is MISSED; without it any lateness is accepted.
        misfire_grace_seconds: Option<u64>,
    },
}

impl NewJob {
    /// A job for all workers of a service, to start now, without arguments, with the default timeout of 600 s.
    #[must_use]
    pub fn new(service: impl Into<String>, task: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            task: task.into(),
            workers: Workers::All,
            args: Json::empty_array(),
            kwargs: Json::empty_object(),
            timeout: 600,
            start: Start::Now,
            id: None,
        }
    }

    /// The same job for these workers.
    #[must_use]
    pub fn workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// The same job with these keyword arguments.
    #[must_use]
    pub fn kwargs(self, kwargs: impl Into<Json>) -> Self {
        Self { kwargs: kwargs.into(), ..self }
    }

    /// The same job with these positional arguments.
    #[must_use]
    pub fn args(self, args: impl Into<Json>) -> Self {
        Self { args: args.into(), ..self }
    }

    /// The same job with another timeout, in seconds.
    #[must_use]
    pub fn timeout(self, timeout: u64) -> Self {
        Self { timeout, ..self }
    }

    /// The same job, to start at or after a time, however late.
    #[must_use]
    pub fn at(self, scheduled_for: Timestamp) -> Self {
        Self { start: Start::At { scheduled_for, misfire_grace_seconds: None }, ..self }
    }

    /// The same delayed job, MISSED when it cannot start within so many seconds after its time. No effect on a job that
    /// starts now.
    #[must_use]
    pub fn grace(mut self, seconds: u64) -> Self {
        if let Start::At { misfire_grace_seconds, .. } = &mut self.start {
            *misfire_grace_seconds = Some(seconds);
        }
        self
    }
}

/// A job that has passed validation and may be stored. Only [`Limits::check_job`](crate::Limits::check_job) makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidJob {
    pub(crate) id: JobId,
    pub(crate) service: String,
    pub(crate) task: String,
    pub(crate) workers: Workers,
    pub(crate) args: Json,
    pub(crate) kwargs: Json,
    pub(crate) timeout: u32,
    pub(crate) scheduled_for: Option<Timestamp>,
    pub(crate) start_deadline: Option<Timestamp>,
}

impl ValidJob {
    /// Its identity.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Its positional arguments, a JSON array.
    #[must_use]
    pub fn args(&self) -> &Json {
        &self.args
    }

    /// Its keyword arguments, a JSON object.
    #[must_use]
    pub fn kwargs(&self) -> &Json {
        &self.kwargs
    }

    /// The row as it is when the job is added at `now`: SCHEDULED when it has a time, else NEW with its deadline running.
    #[must_use]
    pub fn row(&self, now: Timestamp) -> Job {
        let delayed = self.scheduled_for.is_some();
        Job {
            uuid: self.id.clone(),
            service: self.service.clone(),
            task: self.task.clone(),
            status: if delayed { JobStatus::Scheduled } else { JobStatus::New },
            workers_requested: self.workers.clone(),
            workers_dispatched: Vec::new(),
            workers_started: BTreeSet::new(),
            workers_completed: BTreeSet::new(),
            pending_inputs: BTreeMap::new(),
            errors: Vec::new(),
            timeout: self.timeout,
            deadline: (!delayed).then(|| now.plus_seconds(self.timeout)),
            scheduled_for: self.scheduled_for,
            start_deadline: self.start_deadline,
            schedule_id: None,
            origin: Origin::Direct,
            created_at: Some(now),
            released_at: (!delayed).then_some(now),
            started_at: None,
            finished_at: None,
            dispatch_target: None,
            posts_sent: 0,
            posts_refused: 0,
            next_attempt_at: None,
            last_poll: None,
        }
    }
}

/// Where a job came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A caller added it.
    Direct,
    /// An occurrence of a schedule.
    Occurrence,
    /// A schedule run by hand.
    RunNow,
}

impl Origin {
    /// The text that the database holds.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Occurrence => "occurrence",
            Self::RunNow => "run_now",
        }
    }

    /// Reads the text of the database; NULL and what is unknown is a direct job, as every job of the Python client is.
    #[must_use]
    pub fn from_column(text: Option<&str>) -> Self {
        match text {
            Some("occurrence") => Self::Occurrence,
            Some("run_now") => Self::RunNow,
            _ => Self::Direct,
        }
    }
}

/// One job without its payloads: what a list shows and what decisions are made on. Serialised with the column names of
/// the database.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// Its identity.
    pub uuid: JobId,
    /// The service whose workers run it.
    pub service: String,
    /// The task that they run.
    pub task: String,
    /// Where it stands.
    pub status: JobStatus,
    /// The workers that were asked for.
    pub workers_requested: Workers,
    /// The workers that must answer, once they are known; empty before.
    pub workers_dispatched: Vec<String>,
    /// The workers that are known to have stored the job.
    pub workers_started: BTreeSet<String>,
    /// The workers whose result is stored.
    pub workers_completed: BTreeSet<String>,
    /// The workers that wait for an answer, and what each asked.
    pub pending_inputs: BTreeMap<String, InputRequest>,
    /// What went wrong, in order; argument values never appear here.
    pub errors: Vec<String>,
    /// Seconds that it may take from its release.
    pub timeout: u32,
    /// When it becomes STALE. None while it waits for its time.
    pub deadline: Option<Timestamp>,
    /// When it was meant to start. None for immediate jobs.
    pub scheduled_for: Option<Timestamp>,
    /// The last instant at which it may start. None: any lateness is accepted.
    pub start_deadline: Option<Timestamp>,
    /// The schedule that made it.
    pub schedule_id: Option<ScheduleId>,
    /// Who made it.
    pub origin: Origin,
    /// When it was added. None when the database has no readable time of it.
    pub created_at: Option<Timestamp>,
    /// When it became NEW. None while it waits, and for jobs of the Python client.
    pub released_at: Option<Timestamp>,
    /// When the broker named its workers.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The workers that it is sent to, once claimed.
    pub dispatch_target: Option<Workers>,
    /// How often it was sent.
    pub posts_sent: u32,
    /// How often the broker said that it could not hand it over.
    pub posts_refused: u32,
    /// Not sent again before this.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was last asked for.
    #[serde(rename = "last_poll_timestamp")]
    pub last_poll: Option<Timestamp>,
}

impl Job {
    /// The workers that must answer before the job is complete: those that the broker named, or else those that were
    /// asked for by name. None while they are not known.
    #[must_use]
    pub fn expected_workers(&self) -> Option<&[String]> {
        if self.workers_dispatched.is_empty() {
            self.dispatch_target.as_ref().unwrap_or(&self.workers_requested).names()
        } else {
            Some(&self.workers_dispatched)
        }
    }

    /// The workers that have not answered yet, as the target of a request: names where they are known.
    #[must_use]
    pub fn outstanding_workers(&self) -> Workers {
        match self.expected_workers() {
            Some(names) => {
                Workers::List(names.iter().filter(|name| !self.workers_completed.contains(*name)).cloned().collect())
            }
            None => self.dispatch_target.as_ref().unwrap_or(&self.workers_requested).clone(),
        }
    }

    /// When it becomes STALE, if it is NEW or in flight: its deadline, but not while it waits for another attempt.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        let unfinished = self.status == JobStatus::New || self.status.is_in_flight();
        let deadline = self.deadline.filter(|_| unfinished);
        deadline.map(|deadline| self.next_attempt_at.map_or(deadline, |at| at.max(deadline)))
    }
}

/// A job with its payloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobDetail {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Positional arguments, a JSON array.
    pub args: Json,
    /// Keyword arguments, a JSON object.
    pub kwargs: Json,
    /// What each worker answered so far.
    #[serde(rename = "result_data")]
    pub results: Results,
}

/// Which jobs to list. An empty list of a kind does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only jobs in one of these statuses.
    pub statuses: Vec<JobStatus>,
    /// Only jobs of this service.
    pub service: Option<String>,
    /// Only jobs of this task.
    pub task: Option<String>,
    /// Only jobs that at least one of these workers has completed.
    pub workers: Vec<String>,
    /// Only jobs of this schedule.
    pub schedule: Option<ScheduleId>,
    /// Only jobs whose `scheduled_for` is this or later.
    pub due_from: Option<Timestamp>,
    /// Only jobs whose `scheduled_for` is this or earlier.
    pub due_until: Option<Timestamp>,
    /// How many at the most; 0 means the default of 50, and 1,000 is the most.
    pub limit: u32,
    /// Go on behind the page that returned this cursor.
    pub cursor: Option<JobCursor>,
}

impl JobFilter {
    /// How many jobs a page has at the most: the limit within its bounds.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        if self.limit == 0 { 50 } else { self.limit.min(1000) }
    }
}

/// Where a list goes on. Opaque; valid for the database it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobCursor(pub i64);

/// A page of jobs, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Rows that cannot be read as jobs; all the others are usable.
    pub unreadable: Vec<UnreadableJob>,
    /// Where the next page begins; None at the end.
    pub next: Option<JobCursor>,
}

/// A row of the database that is no job, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableJob {
    /// What stands in its `uuid` column.
    pub uuid: String,
    /// Which column, and what is wrong with it.
    pub reason: String,
}

/// Something that happened to a job: sent by a worker, or noted by the client itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobEvent {
    /// Its number, growing with time; 0 before it is stored.
    pub id: i64,
    /// The job.
    pub job_uuid: JobId,
    /// What happened. Starts in lower case.
    pub message: String,
    /// INFO, WARNING, ERROR or what a worker says.
    pub severity: String,
    /// The task, where a worker gives it.
    pub task: Option<String>,
    /// The event as the worker sent it; `{}` for the client's own.
    #[serde(rename = "event_data")]
    pub data: Json,
    /// When it was stored, to the second.
    pub created_at: Option<Timestamp>,
}

/// Counts over a whole job database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JobStats {
    /// All jobs.
    pub total_jobs: u64,
    /// All events.
    pub total_events: u64,
    /// Jobs by status; a status that this release does not know is counted too.
    pub jobs_by_status: BTreeMap<String, u64>,
    /// Jobs by service.
    pub jobs_by_service: BTreeMap<String, u64>,
}
