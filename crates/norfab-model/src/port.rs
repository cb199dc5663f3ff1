//! The ports of the dispatcher: where jobs and schedules are kept, how the fabric is reached, and what time it is.
//! Each has more than one real implementer.

mod next_due;
mod schedule;

use std::future::Future;

pub use next_due::NextDue;
pub use schedule::{Materialize, Materialized, Quarantined, Realigned, Rezoned, ScheduleOutcome, ScheduleStore};
use serde::{Deserialize, Serialize};

use crate::{
    FabricEvent, FollowUp, InputRequest, Job, JobDetail, JobEvent, JobFilter, JobId, JobPage, JobStats, JobStatus,
    Json, LiveWorkers, Moment, Reply, Results, RetryPolicy, ScheduleId, Timestamp, Uptime, ValidJob, Workers,
};

/// Which jobs an owner of the database serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Only these: a guest serves its own.
    Jobs(Vec<JobId>),
}

/// Whether the broker can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It has answered on this connection.
    Up,
    /// It has not, or no longer.
    Down,
}

/// What went wrong in a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such job.
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    /// The job is in the database already.
    #[error("job {0} exists already; leave the UUID out to get a new one")]
    JobExists(JobId),
    /// Only a job that waits for its time can be cancelled or rescheduled.
    #[error("job {job} is {status}, and only a SCHEDULED job can be {wanted}")]
    NotScheduled {
        /// The job.
        job: JobId,
        /// Where it stands.
        status: JobStatus,
        /// `cancelled` or `rescheduled`.
        wanted: &'static str,
    },
    /// A row cannot be read. The other rows are usable.
    #[error("job {job} cannot be read: {reason}")]
    Unreadable {
        /// What stands in its `uuid` column.
        job: String,
        /// Which column, and what is wrong with it.
        reason: String,
    },
    /// The store was opened for reading only.
    #[error("the database is open for reading only, so that it cannot {0}")]
    ReadOnly(&'static str),
    /// The storage itself failed: locked, full, gone. Worth a retry after a pause.
    #[error("the job database failed to {doing}")]
    Storage {
        /// What was tried.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The outcome of looking at delayed jobs that are due.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Released {
    /// Jobs that became NEW.
    pub released: Vec<Job>,
    /// Jobs that became MISSED.
    pub missed: Vec<Job>,
}

/// Which jobs may expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// Only those that are NEW: nothing of the others is known yet, their results may wait at the workers.
    Unsent,
    /// Those in flight too.
    All,
}

/// What to claim.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// Now.
    pub now: Timestamp,
    /// Among these.
    pub scope: &'a Scope,
    /// How many at the most.
    pub limit: u32,
    /// The workers that are alive, for jobs to any of them. None: not known.
    pub live: Option<&'a LiveWorkers>,
    /// How often a job is tried for which there is no worker.
    pub policy: RetryPolicy,
}

impl<'a> Claim<'a> {
    /// A claim with the default patience that knows of no live workers.
    #[must_use]
    pub fn new(now: Timestamp, scope: &'a Scope, limit: u32) -> Self {
        Self { now, scope, limit, live: None, policy: RetryPolicy::default() }
    }
}

/// The outcome of claiming NEW jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claimed {
    /// What to send now; each is committed as SUBMITTING.
    pub posts: Vec<Post>,
    /// Jobs that became FAILED: their stored payload cannot be read, their start deadline has passed, or nobody is there
    /// for them.
    pub failed: Vec<Job>,
    /// Jobs for which nobody is there now, to be tried again; and those that may not start any more but may have been sent
    /// by an earlier claim: DISPATCHED, to be asked for.
    pub postponed: Vec<Job>,
    /// How many jobs were left alone because the live workers must be asked for.
    pub unplaced: u32,
    /// More NEW jobs wait behind these.
    pub more: bool,
}

/// A job to send again, though it is in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendAgain {
    /// The job.
    pub job: JobId,
    /// Why, and where to.
    pub why: Resend,
}

/// Why a job in flight is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resend {
    /// The broker has not answered the POST: to the workers recorded with the claim, while the job is SUBMITTING.
    Unanswered,
    /// These workers do not have it: to those of them that are still expected to answer.
    Lost(Vec<String>),
    /// Its one worker has been gone for long, and any other would do: to another one that is alive, if there is one.
    Elsewhere,
}

/// What came of sending jobs again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SentAgain {
    /// What to send now; each is committed.
    pub posts: Vec<Post>,
    /// The jobs, as they now are.
    pub jobs: Vec<Job>,
    /// Jobs that were left for the next call, as the payloads of those before them are large enough for one.
    pub left: Vec<SendAgain>,
}

/// One job to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    /// The job.
    pub job: JobId,
    /// The service whose workers run it.
    pub service: String,
    /// The workers that it goes to.
    pub target: Workers,
    /// The task that they run.
    pub task: String,
    /// Positional arguments.
    pub args: Json,
    /// Keyword arguments.
    pub kwargs: Json,
    /// Seconds that a worker may take.
    pub timeout: u32,
    /// The schedule that the job belongs to.
    pub schedule_id: Option<ScheduleId>,
    /// When it was meant to start. None: at once, so that somebody may be waiting for it.
    pub scheduled_for: Option<Timestamp>,
}

/// One job to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The job.
    pub job: JobId,
    /// The service whose workers run it.
    pub service: String,
    /// The workers that have not answered.
    pub target: Workers,
}

/// The outcome of replies for one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The job as it now is.
    pub job: Job,
    /// The events that were stored, in order.
    pub events: Vec<JobEvent>,
    /// What to do next about it, in order.
    pub follow_ups: Vec<FollowUp>,
    /// Whether the row changed.
    pub changed: bool,
    /// What its workers answered, when these replies ended it and the results are small enough to be handed around, up to
    /// 64 KiB with the workers' names: who waits for them need not ask the store then.
    pub results: Option<Results>,
}

/// What replies came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AppliedReplies {
    /// Each job that at least one reply spoke of.
    pub jobs: Vec<Applied>,
    /// Replies that changed nothing, by reason; those for jobs that do not exist are not among them.
    pub ignored: Vec<(JobId, crate::Ignored)>,
    /// Replies for jobs that do not exist, or whose row cannot be read.
    pub unknown: Vec<JobId>,
}

/// Where jobs are kept. Each method is one transaction; it has happened when it returns, and not at all when it fails.
/// Calls may be made while others are under way. Those that one task begins one after the other (polls for the first time)
/// should be carried out in that order, as nothing gets lost by another one, but what the first makes is found by the second.
///
/// Every update is conditional on the status that it expects. `now` is handed in: a store never reads a clock. Methods
/// that look at many jobs take a constant number of statements. A row that cannot be read stops no other: the step that
/// comes upon it sets it to FAILED.
pub trait Store: Send + Sync + 'static {
    /// Adds a job: SCHEDULED when it has a time, else NEW with its deadline running.
    fn job_add(&self, now: Timestamp, job: &ValidJob) -> impl Future<Output = Result<Job, StoreError>> + Send;

    /// The same for a caller that waits for the job's end. Nobody was told that the job is there, so that a power cut may
    /// undo it until it is claimed.
    fn job_add_to_run(&self, now: Timestamp, job: &ValidJob) -> impl Future<Output = Result<Job, StoreError>> + Send {
        self.job_add(now, job)
    }

    /// The job without its payloads.
    fn job_find(&self, id: &JobId) -> impl Future<Output = Result<Option<Job>, StoreError>> + Send;

    /// The job with arguments and results. [`StoreError::Unreadable`] when one of them is corrupt.
    fn job_detail(&self, id: &JobId) -> impl Future<Output = Result<Option<JobDetail>, StoreError>> + Send;

    /// A page of jobs, the newest first.
    fn job_list(&self, filter: &JobFilter) -> impl Future<Output = Result<JobPage, StoreError>> + Send;

    /// SCHEDULED becomes CANCELLED; any other status is [`StoreError::NotScheduled`].
    fn job_cancel(&self, now: Timestamp, id: &JobId) -> impl Future<Output = Result<Job, StoreError>> + Send;

    /// Moves the time of a SCHEDULED job and its start deadline with it, the grace kept. Any other status is
    /// [`StoreError::NotScheduled`].
    fn job_reschedule(
        &self,
        now: Timestamp,
        id: &JobId,
        scheduled_for: Timestamp,
    ) -> impl Future<Output = Result<Job, StoreError>> + Send;

    /// Looks at SCHEDULED jobs: those past their start deadline become MISSED, whenever they were meant to start; those
    /// whose time has come become NEW, with `deadline = now + timeout`, but only while the link is up. At most 10,000 a
    /// call, the earliest due first; [`job_next_due`](Store::job_next_due) tells whether more wait.
    fn job_release_due(
        &self,
        now: Timestamp,
        scope: &Scope,
        link: Link,
    ) -> impl Future<Output = Result<Released, StoreError>> + Send;

    /// NEW (once no longer waiting for another attempt) and in-flight jobs whose deadline has passed become STALE, see
    /// [`expire`](crate::expire); a NEW one that may have arrived at a worker becomes DISPATCHED instead, to be asked for.
    /// Returns them: at most 10,000 a call (fewer where results are large), the earliest
    /// deadlines first, and the NEW ones before those in flight, which `overdue` may leave out.
    fn job_expire_due(
        &self,
        now: Timestamp,
        scope: &Scope,
        overdue: Overdue,
    ) -> impl Future<Output = Result<Vec<Job>, StoreError>> + Send;

    /// Claims up to `limit` NEW jobs, the oldest first: SUBMITTING, the target recorded as [`place`](fn@crate::place)
    /// finds it, `posts_sent` grown. They are sent after this returns, never before. Where payloads are large it claims
    /// fewer, but one at least: what it returns stays below 64 MiB and the payload of one more job. [`Claimed::more`]
    /// tells whether others wait.
    ///
    /// A job that may not start any more becomes FAILED. One for which there is no worker is treated as if a POST of it
    /// had been refused, and both counters grow.
    fn job_claim(&self, claim: Claim<'_>) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Sends jobs in flight again where that is still needed: `posts_sent` grows, the target is recorded where it
    /// changed. A worker never runs a job twice, so that sending it again to the same one is safe. A job that may not
    /// start any more is not sent; SUBMITTING, it becomes DISPATCHED, to be asked for.
    fn job_send_again(
        &self,
        now: Timestamp,
        jobs: Vec<SendAgain>,
        live: Option<&LiveWorkers>,
    ) -> impl Future<Output = Result<SentAgain, StoreError>> + Send;

    /// Takes up to `limit` jobs in flight (other than SUBMITTING) that were last asked for at `before` or earlier, the
    /// longest-ago first, and records that they are asked for now.
    fn job_take_polls(
        &self,
        now: Timestamp,
        scope: &Scope,
        before: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Poll>, StoreError>> + Send;

    /// Applies replies in order, all in one transaction, by [`decide`](crate::decide).
    fn job_apply(
        &self,
        now: Timestamp,
        policy: RetryPolicy,
        replies: Vec<Reply>,
    ) -> impl Future<Output = Result<AppliedReplies, StoreError>> + Send;

    /// After a restart: SUBMITTING becomes NEW again, to be sent to the same workers, and what else is in flight is asked
    /// for at the next pass. A SUBMITTING job that is past its deadline, or may not start any more, becomes DISPATCHED: it
    /// is asked for and not sent. Returns how many jobs of each kind there were.
    fn job_recover(&self, now: Timestamp, scope: &Scope) -> impl Future<Output = Result<Recovered, StoreError>> + Send;

    /// At a start, and when the clock went back: no instant that is kept for an unfinished job lies further off than its
    /// full length. Deadlines come back to `now + timeout`, polls to now, another attempt to ten seconds from now. Returns
    /// how many jobs it concerned.
    fn job_realign(&self, now: Timestamp) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Gives up jobs that were never sent, for a reason that goes into their errors: NEW, and SCHEDULED whose time has
    /// come, become FAILED. Returns those that did. A NEW job that was sent before counts only if every POST was refused.
    fn job_give_up(
        &self,
        now: Timestamp,
        ids: &[JobId],
        reason: &str,
    ) -> impl Future<Output = Result<Vec<Job>, StoreError>> + Send;

    /// Takes claims back whose messages never left this process: SUBMITTING becomes NEW, `posts_sent` shrinks by one, and
    /// a job that was never sent before chooses its target anew. Jobs in another status stay as they are.
    fn job_unclaim(&self, now: Timestamp, ids: &[JobId]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Hands an answer to a worker's question over to the process that dispatches.
    /// [`StoreError::NoSuchJob`] when there is no such job.
    fn answer_add(
        &self,
        now: Timestamp,
        job: &JobId,
        worker: &str,
        answer: &InputAnswer,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes up to `limit` answers out of the store, in the order in which they were added. Fewer than `limit`: no more
    /// wait. Those to a question that is no longer open are dropped. With nothing there this is one look at an index. As with
    /// every method, who drops the future may find it done: answers that were taken are then sent by nobody.
    fn answer_take(
        &self,
        scope: &Scope,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<StoredAnswer>, StoreError>> + Send;

    /// The nearest instants at which there is something to do.
    fn job_next_due(&self, scope: &Scope) -> impl Future<Output = Result<NextDue, StoreError>> + Send;

    /// Unfinished jobs, the oldest first, at most 100,000.
    fn job_unfinished(&self) -> impl Future<Output = Result<Vec<Job>, StoreError>> + Send;

    /// The events of a job behind the event with this number, in order; at most `limit`.
    fn event_list(
        &self,
        job: &JobId,
        after: i64,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<JobEvent>, StoreError>> + Send;

    /// Counts over all jobs.
    fn stats(&self) -> impl Future<Output = Result<JobStats, StoreError>> + Send;

    /// A number that differs from the last answer when something else than this store value (another process, another
    /// client) may have changed the database since.
    fn change_mark(&self) -> impl Future<Output = Result<i64, StoreError>> + Send;

    /// Finishes what is under way and closes. Later calls fail.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What a recovery found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Jobs that were SUBMITTING and are NEW again.
    pub requeued: u64,
    /// Other jobs in flight.
    pub in_flight: u64,
}

/// What is sent to the fabric.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A job to run.
    Post(Post),
    /// A job to ask for.
    Get(Poll),
    /// An answer to a worker's question.
    Put {
        /// The job that asked.
        job: JobId,
        /// Its service.
        service: String,
        /// The worker that asked.
        worker: String,
        /// The answer.
        answer: InputAnswer,
    },
    /// A question to the broker itself.
    Mmi {
        /// Names the answer.
        id: JobId,
        /// `show_workers` or another of the broker's tasks.
        task: String,
        /// Its arguments, a JSON object.
        kwargs: Json,
    },
}

/// The client's answer to an [`InputRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputAnswer {
    /// The question that it answers.
    pub input_id: String,
    /// The answer. Null with `cancelled`.
    pub value: Json,
    /// Whether the client gives the worker an answer at all.
    pub verdict: InputVerdict,
    /// What else to tell the task, a JSON object.
    pub metadata: Json,
}

/// Whether a question is answered or turned down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputVerdict {
    /// The value is the answer.
    Answered,
    /// The client refuses; the task sees the question cancelled.
    Cancelled,
}

/// An answer that another process left in the store, to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAnswer {
    /// The job that asked.
    pub job: JobId,
    /// Its service.
    pub service: String,
    /// The worker that asked.
    pub worker: String,
    /// The answer.
    pub answer: InputAnswer,
}

/// What comes from the fabric.
#[expect(clippy::large_enum_variant, reason = "nearly every message is the large one")]
#[derive(Debug, Clone, PartialEq)]
pub enum Inbound {
    /// Something about a job.
    Reply(Reply),
    /// The broker's answer to a question.
    Mmi {
        /// The question's id.
        id: JobId,
        /// The answer.
        answer: Json,
    },
    /// The connection changed.
    Connection(Connection),
    /// A message that cannot be used; it is counted and logged, never fatal.
    Stray(String),
}

/// What a transport knows of its connection. Connected does not mean that the broker answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A socket is connected (with CURVE: its handshake is done).
    Connected,
    /// It is gone; the transport goes on trying by itself.
    Lost(String),
    /// It cannot be made, and trying again alone will hardly help: wrong keys, no CURVE there.
    Trouble(String),
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The transport has ended.
    #[error("the connection to the broker is closed")]
    Closed,
    /// Too much waits to be sent already.
    #[error("the queue to the broker is full")]
    Full,
}

/// How the fabric is reached. Messages may be lost at any time; nothing rests on their arrival.
pub trait Broker: Send + 'static {
    /// Hands a request over to be sent. What is handed over while the connection is down is sent later, or lost.
    fn send(&mut self, request: Request) -> impl Future<Output = Result<(), BrokerError>> + Send;

    /// Waits for at least one message and appends up to `limit` that are there to `batch`. Safe to drop while it waits.
    /// Returns how many; 0 when the transport has ended.
    fn receive(&mut self, batch: &mut Vec<Inbound>, limit: usize) -> impl Future<Output = usize> + Send;

    /// Throws the connection away and makes a new one.
    fn reconnect(&mut self) -> impl Future<Output = Result<(), BrokerError>> + Send;

    /// Sends what was handed over, as far as that goes within a second, and ends.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}

/// What time it is, and how much of it passes.
pub trait Clock: Clone + Send + Sync + 'static {
    /// Now, by the wall clock: for instants that somebody named, or that are stored.
    fn now(&self) -> Timestamp;

    /// Now, by a clock that never goes back and that nobody sets: for how long something takes.
    fn uptime(&self) -> Uptime;

    /// Returns when the wall clock has reached `at` or the other one `until`, whichever comes first, or earlier: the caller
    /// looks at the clock again. Never later than 60 s after the call, so that a step of the wall clock delays nothing by
    /// more.
    fn sleep_until(&self, at: Timestamp, until: Uptime) -> impl Future<Output = ()> + Send;

    /// Both times of now.
    fn moment(&self) -> Moment {
        Moment { wall: self.now(), up: self.uptime() }
    }
}

/// An event as a store keeps it, of a worker's.
impl From<(JobId, FabricEvent, Timestamp)> for JobEvent {
    fn from((job_uuid, event, now): (JobId, FabricEvent, Timestamp)) -> Self {
        Self {
            id: 0,
            job_uuid,
            message: event.message,
            severity: event.severity,
            task: event.task,
            data: event.data,
            created_at: Some(now.floor_second()),
        }
    }
}

impl InputRequest {
    /// The answer to this question.
    #[must_use]
    pub fn answer(&self, value: Json) -> InputAnswer {
        InputAnswer {
            input_id: self.id.clone(),
            value,
            verdict: InputVerdict::Answered,
            metadata: Json::empty_object(),
        }
    }

    /// The refusal to answer this question.
    #[must_use]
    pub fn cancel(&self) -> InputAnswer {
        InputAnswer {
            input_id: self.id.clone(),
            value: Json::from(serde_json::Value::Null),
            verdict: InputVerdict::Cancelled,
            metadata: Json::empty_object(),
        }
    }
}
