//! The jobs that a schedule makes: of an occurrence, missed, or by hand.

use std::fmt;

use super::{Schedule, Upcoming};
use crate::{Job, JobId, JobStatus, Json, Origin, Timestamp, ValidJob};

/// The job that an occurrence becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedJob {
    /// Its identity, see [`JobId::of_occurrence`].
    pub uuid: JobId,
    /// The nominal instant: `scheduled_for` of the job.
    pub occurrence: Timestamp,
    /// The nominal instant with its jitter.
    pub due: Timestamp,
    /// The last instant at which it may start: the due time and the grace. None without a grace.
    pub start_deadline: Option<Timestamp>,
}

/// Occurrences beyond their grace: one MISSED job, that of the newest, stands for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedJobs {
    /// The newest.
    pub newest: PlannedJob,
    /// The oldest.
    pub from: Timestamp,
    /// How many they are.
    pub count: u64,
}

impl fmt::Display for MissedJobs {
    /// The message of the MISSED job's event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = self.newest.occurrence;
        match self.count {
            1 => write!(f, "missed the occurrence of {to}: it could not start within its grace"),
            count => write!(
                f,
                "missed {count} occurrences from {} to {to}: they could not start within their grace",
                self.from
            ),
        }
    }
}

impl Schedule {
    /// The job that one of its occurrences becomes.
    #[must_use]
    pub fn planned_job(&self, Upcoming { occurrence, due }: Upcoming) -> PlannedJob {
        PlannedJob {
            uuid: JobId::of_occurrence(&self.uuid, occurrence),
            occurrence,
            due,
            start_deadline: self.misfire_grace_seconds.map(|grace| due.plus_seconds(grace)),
        }
    }

    /// The row of a job that is made at `now` for an occurrence: NEW, its deadline running.
    #[must_use]
    pub fn new_job(&self, now: Timestamp, planned: &PlannedJob) -> Job {
        Job {
            scheduled_for: Some(planned.occurrence),
            start_deadline: planned.start_deadline,
            ..self.job(now, planned.uuid.clone(), Origin::Occurrence)
        }
    }

    /// The row of the MISSED job that stands for occurrences beyond their grace.
    #[must_use]
    pub fn missed_job(&self, now: Timestamp, missed: &MissedJobs) -> Job {
        Job {
            status: JobStatus::Missed,
            deadline: None,
            released_at: None,
            finished_at: Some(now),
            ..self.new_job(now, &missed.newest)
        }
    }

    /// The row of a job that is made by hand: NEW, no occurrence.
    pub(super) fn job_by_hand(&self, now: Timestamp) -> Job {
        self.job(now, JobId::generate(now), Origin::RunNow)
    }

    fn job(&self, now: Timestamp, id: JobId, origin: Origin) -> Job {
        let immediate = ValidJob {
            id,
            service: self.service.clone(),
            task: self.task.clone(),
            workers: self.workers.clone(),
            args: Json::empty_array(),
            kwargs: Json::empty_object(),
            timeout: self.timeout,
            scheduled_for: None,
            start_deadline: None,
        };
        Job { schedule_id: Some(self.uuid.clone()), origin, ..immediate.row(now) }
    }
}
