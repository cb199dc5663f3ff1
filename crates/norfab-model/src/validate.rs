//! The limits of what a caller may ask for, and the checks. Each error says which field, which value and which limit.

use std::collections::HashSet;
use std::time::Duration;

use crate::{
    IdError, Interval, JobId, Json, NewJob, Start, Timestamp, UnsafePayload, ValidJob, Workers, ZoneError,
    check_payload,
};

mod schedule;

const DAY: u64 = 86_400;

/// The bounds of jobs and schedules. The defaults are generous; a client may be given tighter or wider ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a service or task name. Default 255.
    pub name_bytes: usize,
    /// Bytes of the encoded arguments, `args` and `kwargs` each. Default 16 MiB.
    pub payload_bytes: usize,
    /// Seconds of a timeout. Default 604,800 (a week).
    pub timeout_seconds: u32,
    /// Seconds of a misfire grace. Default 31,536,000 (a year).
    pub misfire_grace_seconds: u32,
    /// Seconds of an interval. Default 315,619,200 (ten years), which is also the most that an
    /// [`Interval`](crate::Interval) can have.
    pub interval_seconds: u32,
    /// Seconds of jitter. Default 86,400 (a day).
    pub jitter_seconds: u32,
    /// Jobs of one schedule that may be unfinished at a time. Default 1,000.
    pub max_instances: u32,
    /// How far ahead a job may be scheduled, a schedule begin or end. Default 3,653 days (ten years).
    pub ahead: Duration,
    /// How far in the past the time of a new job may lie. Default one day.
    pub behind: Duration,
    /// Tasks that must not be sent: `service:task`, either part may be `*`. Default none.
    pub forbidden_tasks: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            name_bytes: 255,
            payload_bytes: 16 << 20,
            timeout_seconds: 604_800,
            misfire_grace_seconds: 31_536_000,
            interval_seconds: Interval::MAX_SECONDS,
            jitter_seconds: 86_400,
            max_instances: 1000,
            ahead: Duration::from_secs(3653 * DAY),
            behind: Duration::from_secs(DAY),
            forbidden_tasks: Vec::new(),
        }
    }
}

/// What is wrong with a job or a schedule that a caller asks for. Values of arguments are never part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValidationError {
    /// A name is empty, too long or has control characters.
    #[error("{field} must have 1 to {limit} bytes and no control characters, but it is {given:?}")]
    Name {
        /// `service`, `task`, `workers` or `name`.
        field: &'static str,
        /// What was given, its first 300 characters.
        given: String,
        /// The most bytes.
        limit: usize,
    },
    /// No worker at all.
    #[error("workers is an empty list; name at least one worker, or give \"all\" or \"any\"")]
    NoWorkers,
    /// A worker twice in a list.
    #[error("workers names {0:?} twice; name each worker once")]
    DuplicateWorker(String),
    /// Positional arguments that are no array.
    #[error("args must be a JSON array")]
    ArgsNotArray,
    /// Keyword arguments that are no object.
    #[error("kwargs must be a JSON object")]
    KwargsNotObject,
    /// Too large.
    #[error("{field} has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// `args` or `kwargs`.
        field: &'static str,
        /// Encoded bytes.
        bytes: usize,
        /// The most bytes.
        limit: usize,
    },
    /// JSON that would break a worker.
    #[error("{field} cannot be sent")]
    Unsafe {
        /// `args` or `kwargs`.
        field: &'static str,
        /// What is wrong with it, and where.
        #[source]
        source: UnsafePayload,
    },
    /// A number of seconds outside its bounds.
    #[error("{field} must be 1 to {limit} whole seconds, but it is {given}")]
    Seconds {
        /// The field's name.
        field: &'static str,
        /// What was given.
        given: u64,
        /// The most seconds.
        limit: u32,
    },
    /// A time too far ahead.
    #[error("{field} is {given}, more than {days} days ahead{}", milliseconds_hint(*.as_milliseconds))]
    TooFarAhead {
        /// `scheduled_for`, `start_at` or `end_at`.
        field: &'static str,
        /// What was given.
        given: Timestamp,
        /// The most days ahead.
        days: u64,
        /// The same number read as milliseconds, when that is a time that would be accepted.
        as_milliseconds: Option<Timestamp>,
    },
    /// A time too far in the past.
    #[error("scheduled_for is {given}, more than {hours} hours in the past; use a later time, or run the job now")]
    TooFarBehind {
        /// What was given.
        given: Timestamp,
        /// The most hours in the past.
        hours: u64,
    },
    /// A time in the past, and its own grace is over too.
    #[error("scheduled_for is {given}, and its grace ended at {start_deadline}: the job could only be missed")]
    GraceOver {
        /// What was given.
        given: Timestamp,
        /// When it had to start at the latest.
        start_deadline: Timestamp,
    },
    /// A task that the configuration forbids.
    #[error("task {task:?} of service {service:?} is forbidden by the pattern {pattern:?} of forbidden_tasks")]
    Forbidden {
        /// The service.
        service: String,
        /// The task.
        task: String,
        /// The pattern that forbids it.
        pattern: String,
    },
    /// The name of a schedule begins or ends with a blank: it would look like another one.
    #[error("name must not begin or end with a blank, but it is {given:?}")]
    NameEdges {
        /// What was given, its first 300 characters.
        given: String,
    },
    /// The name of a schedule that would be taken for an identity.
    #[error("name looks like a UUID: {given:?}; choose one that cannot be taken for a schedule's identity")]
    NameLikeUuid {
        /// What was given.
        given: String,
    },
    /// A zone that there is not.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// Too much jitter.
    #[error("jitter_seconds must be 0 to {limit} whole seconds, but it is {given}")]
    Jitter {
        /// What was given.
        given: u64,
        /// The most seconds.
        limit: u32,
    },
    /// Jitter that would reach the next occurrence.
    #[error("jitter_seconds is {given}, and must be smaller than the interval of {interval} s")]
    JitterNotBelowInterval {
        /// What was given.
        given: u64,
        /// Seconds of the interval.
        interval: u32,
    },
    /// A number of instances outside its bounds.
    #[error("max_instances must be 1 to {limit}, but it is {given}")]
    Instances {
        /// What was given.
        given: u64,
        /// The most.
        limit: u32,
    },
    /// A schedule that ends before it begins.
    #[error("end_at ({end_at}) must be after start_at ({start_at})")]
    EndNotAfterStart {
        /// Where it begins, rounded up to a whole second.
        start_at: Timestamp,
        /// Where it ends.
        end_at: Timestamp,
    },
    /// A schedule without an occurrence to come.
    #[error("nothing is to come: the next occurrence would be at {next}, after end_at ({end_at})")]
    NothingToCome {
        /// The first occurrence after now, if there were no end.
        next: Timestamp,
        /// Where it ends.
        end_at: Timestamp,
    },
    /// The chosen identity cannot be one.
    #[error(transparent)]
    Id(#[from] IdError),
}

fn milliseconds_hint(reading: Option<Timestamp>) -> String {
    reading.map(|at| format!("; read as milliseconds it is {at}: give seconds")).unwrap_or_default()
}

impl Limits {
    /// Checks a job and makes it ready to be stored. Times are judged against `now`.
    ///
    /// # Errors
    /// The first [`ValidationError`] found.
    pub fn check_job(&self, now: Timestamp, job: NewJob) -> Result<ValidJob, ValidationError> {
        self.check_target(&job.service, &job.task, &job.workers)?;
        self.check_payload(&job.args, &job.kwargs)?;
        let timeout = seconds("timeout", job.timeout, self.timeout_seconds)?;
        let (scheduled_for, start_deadline) = match job.start {
            Start::Now => (None, None),
            Start::At { scheduled_for, misfire_grace_seconds } => {
                let start_deadline = self.start_deadline(scheduled_for, misfire_grace_seconds)?;
                self.check_time(now, scheduled_for, start_deadline)?;
                (Some(scheduled_for), start_deadline)
            }
        };
        Ok(ValidJob {
            id: job.id.unwrap_or_else(|| JobId::generate(now)),
            service: job.service,
            task: job.task,
            workers: job.workers,
            args: job.args,
            kwargs: job.kwargs,
            timeout,
            scheduled_for,
            start_deadline,
        })
    }

    /// Checks the new time of a delayed job; `start_deadline` is the one that goes with it.
    ///
    /// # Errors
    /// A [`ValidationError`] when the time is too far ahead or behind, or its grace is over.
    pub fn check_time(
        &self,
        now: Timestamp,
        scheduled_for: Timestamp,
        start_deadline: Option<Timestamp>,
    ) -> Result<(), ValidationError> {
        self.check_ahead(now, "scheduled_for", scheduled_for)?;
        if scheduled_for < now.saturating_sub(self.behind) {
            return Err(ValidationError::TooFarBehind { given: scheduled_for, hours: self.behind.as_secs() / 3600 });
        }
        match start_deadline {
            Some(start_deadline) if start_deadline < now => {
                Err(ValidationError::GraceOver { given: scheduled_for, start_deadline })
            }
            _ => Ok(()),
        }
    }

    fn check_ahead(&self, now: Timestamp, field: &'static str, given: Timestamp) -> Result<(), ValidationError> {
        let latest = now.saturating_add(self.ahead);
        if given <= latest {
            return Ok(());
        }
        let reading = Timestamp::from_micros(given.as_micros() / 1000);
        let plausible = reading <= latest && reading >= now.saturating_sub(self.behind);
        let (days, as_milliseconds) = (self.ahead.as_secs() / DAY, plausible.then_some(reading));
        Err(ValidationError::TooFarAhead { field, given, days, as_milliseconds })
    }

    fn start_deadline(&self, at: Timestamp, grace: Option<u64>) -> Result<Option<Timestamp>, ValidationError> {
        grace
            .map(|given| seconds("misfire_grace_seconds", given, self.misfire_grace_seconds))
            .map(|grace| grace.map(|seconds| at.plus_seconds(seconds)))
            .transpose()
    }

    fn check_target(&self, service: &str, task: &str, workers: &Workers) -> Result<(), ValidationError> {
        self.check_name("service", service)?;
        self.check_name("task", task)?;
        self.check_workers(workers)?;
        self.check_forbidden(service, task)
    }

    fn check_name(&self, field: &'static str, name: &str) -> Result<(), ValidationError> {
        if name.is_empty() || name.len() > self.name_bytes || name.chars().any(char::is_control) {
            let given = name.chars().take(300).collect();
            return Err(ValidationError::Name { field, given, limit: self.name_bytes });
        }
        Ok(())
    }

    fn check_workers(&self, workers: &Workers) -> Result<(), ValidationError> {
        let Some(names) = workers.names() else { return Ok(()) };
        if names.is_empty() {
            return Err(ValidationError::NoWorkers);
        }
        let mut seen = HashSet::new();
        for name in names {
            self.check_name("workers", name)?;
            if !seen.insert(name) {
                return Err(ValidationError::DuplicateWorker(name.clone()));
            }
        }
        Ok(())
    }

    fn check_forbidden(&self, service: &str, task: &str) -> Result<(), ValidationError> {
        let matches = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        let hit = self.forbidden_tasks.iter().find(|pattern| {
            let (of_service, of_task) = pattern.split_once(':').unwrap_or((pattern.as_str(), "*"));
            matches(of_service, service) && matches(of_task, task)
        });
        hit.map_or(Ok(()), |pattern| {
            Err(ValidationError::Forbidden {
                service: service.to_owned(),
                task: task.to_owned(),
                pattern: pattern.clone(),
            })
        })
    }

    fn check_payload(&self, args: &Json, kwargs: &Json) -> Result<(), ValidationError> {
        if !args.is_array() {
            return Err(ValidationError::ArgsNotArray);
        }
        if !kwargs.is_object() {
            return Err(ValidationError::KwargsNotObject);
        }
        for (field, json) in [("args", args), ("kwargs", kwargs)] {
            let bytes = json.as_str().len();
            if bytes > self.payload_bytes {
                return Err(ValidationError::TooLarge { field, bytes, limit: self.payload_bytes });
            }
            check_payload(json).map_err(|source| ValidationError::Unsafe { field, source })?;
        }
        Ok(())
    }
}

fn seconds(field: &'static str, given: u64, limit: u32) -> Result<u32, ValidationError> {
    u32::try_from(given).ok().filter(|seconds| (1..=limit).contains(seconds)).ok_or(ValidationError::Seconds {
        field,
        given,
        limit,
    })
}

#[cfg(test)]
mod tests;
