//! The port to where schedules are kept: a trait of its own, so that a store is two small promises instead of a large
//! one.

use std::future::Future;

use crate::{
    Claim, Claimed, Job, LastOutcome, Limits, Managed, Overlap, RunNow, Schedule, ScheduleDetail, ScheduleError,
    ScheduleFilter, ScheduleId, ScheduleKey, SchedulePage, SchedulePatch, ScheduleView, SwitchedOff, Timestamp,
    Upcoming, ValidSchedule,
};

/// One batch of due schedules to look at.
#[derive(Debug, Clone, Copy)]
pub struct Materialize<'a> {
    /// The instant of the pass.
    pub now: Timestamp,
    /// What a schedule must keep to, forbidden tasks included.
    pub limits: &'a Limits,
    /// How many jobs the pass may still make beyond the first of each schedule.
    pub budget_left: u32,
    /// How many schedules to look at, at the most.
    pub batch: u32,
    /// Schedules that this pass has looked at and that are due still: not to be looked at again.
    pub seen: &'a [ScheduleId],
    /// What to claim behind it, if anything: a job that is made and sent at once need not be written twice.
    pub claim: Option<&'a Claim<'a>>,
}

/// What became of a batch of due schedules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Materialized {
    /// Jobs that were made, as they were made: NEW.
    pub created: Vec<Job>,
    /// MISSED jobs that were made, each standing for all the missed occurrences of its schedule.
    pub missed: Vec<Job>,
    /// The schedules of which something was due, and what it came to.
    pub outcomes: Vec<ScheduleOutcome>,
    /// Schedules that were switched off because they cannot be used.
    pub quarantined: Vec<Quarantined>,
    /// Schedules that are due still, since the budget was spent: the next pass follows at once.
    pub still_due: Vec<ScheduleId>,
    /// How much of the budget was taken.
    pub budget_used: u32,
    /// Other schedules are due that were not in this batch.
    pub more: bool,
    /// When a schedule is due next after this batch, those among them that were left out of it; an instant too early does
    /// no harm.
    pub next_due_at: Option<Timestamp>,
    /// What was claimed behind the batch, of which jobs may be among the posts. None when nothing was to be claimed, or when
    /// the store leaves that to a call of its own, which it may do at any time.
    pub claimed: Option<Claimed>,
}

/// What came of one due schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleOutcome {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its name.
    pub name: Option<String>,
    /// What became of its occurrences.
    pub outcome: LastOutcome,
}

/// A schedule that was switched off because it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// What stands in its `uuid` column.
    pub uuid: String,
    /// What stands in its `name` column.
    pub name: Option<String>,
    /// Why, as in its `last_error`.
    pub reason: String,
}

/// A schedule whose cursor was put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Realigned {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its name.
    pub name: Option<String>,
    /// Where the cursor stood.
    pub from: Upcoming,
    /// Where it stands now.
    pub to: Upcoming,
}

/// A schedule whose next occurrence is another instant by the zone data of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rezoned {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its name.
    pub name: Option<String>,
    /// Where the cursor stood.
    pub from: Upcoming,
    /// Where it stands now; None when nothing is left.
    pub to: Option<Upcoming>,
}

/// Where schedules are kept, beside their jobs in a [`Store`](crate::Store): a dispatcher takes an `S: Store +
/// ScheduleStore`.
///
/// Each method is one transaction; it has happened when it returns, and not at all when it fails. What a call makes
/// of a row is decided by the function of [`Schedule`] that has its name, read and written within that transaction,
/// so that two callers at once never undo each other's work. `now` is handed in: a store never reads a clock.
///
/// A store also counts failures: in the transaction in which a job of a schedule ends, `failed_runs` grows by one when
/// [`run_failed`](crate::run_failed) says so.
pub trait ScheduleStore: Send + Sync + 'static {
    /// Adds a schedule with its arguments. [`ScheduleError::NameTaken`], with the other one, when a schedule that is
    /// not deleted has its name.
    fn schedule_add(&self, schedule: &ValidSchedule) -> impl Future<Output = Result<Schedule, ScheduleError>> + Send;

    /// The schedule of an identity (deleted ones too) or of a name. [`ScheduleError::Unreadable`] when its row is no
    /// schedule.
    fn schedule_find(
        &self,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<Option<ScheduleView>, ScheduleError>> + Send;

    /// The same with its arguments. [`ScheduleError::Unreadable`] when they are corrupt.
    fn schedule_detail(
        &self,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<Option<ScheduleDetail>, ScheduleError>> + Send;

    /// A page of the schedules, or of the deleted ones, in the order of their creation.
    fn schedule_list(
        &self,
        filter: &ScheduleFilter,
    ) -> impl Future<Output = Result<SchedulePage, ScheduleError>> + Send;

    /// See [`Schedule::pause`]. [`ScheduleError::Unknown`] when there is none; so for the calls below.
    fn schedule_pause(
        &self,
        now: Timestamp,
        id: &ScheduleId,
    ) -> impl Future<Output = Result<Managed, ScheduleError>> + Send;

    /// See [`Schedule::resume`].
    fn schedule_resume(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        limits: &Limits,
    ) -> impl Future<Output = Result<Managed, ScheduleError>> + Send;

    /// See [`Schedule::update`]. [`ScheduleError::NameTaken`] when another schedule has the new name.
    fn schedule_update(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        patch: &SchedulePatch,
        limits: &Limits,
    ) -> impl Future<Output = Result<Managed, ScheduleError>> + Send;

    /// See [`Schedule::disable`]. Works on a row that cannot be read too, found by whichever of its two names can be.
    fn schedule_disable(
        &self,
        now: Timestamp,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<SwitchedOff, ScheduleError>> + Send;

    /// See [`Schedule::delete`]. Works on a row that cannot be read too. Costs the same whatever its history; jobs are not
    /// touched.
    fn schedule_delete(
        &self,
        now: Timestamp,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<SwitchedOff, ScheduleError>> + Send;

    /// See [`Schedule::run_now`]. The job is added with the schedule's arguments.
    fn schedule_run_now(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        overlap: Overlap,
        limits: &Limits,
    ) -> impl Future<Output = Result<RunNow, ScheduleError>> + Send;

    /// Looks at ACTIVE schedules whose `next_due_at` has come, in the order of it, and carries out what
    /// [`plan_due`](crate::plan_due) decides for each, with its unfinished jobs counted anew: jobs, cursor and
    /// counters in one transaction of a constant number of statements. An occurrence that has its row already gets no
    /// second one. The event of a MISSED job tells what it stands for; of up to a thousand schedules, MISSED jobs are listed as
    /// older than those that run.
    ///
    /// A schedule whose row cannot be read, or that [`Limits::check_runnable`] refuses, is switched off, see
    /// [`Schedule::quarantine`]; the others are not disturbed.
    ///
    /// With [`Materialize::claim`], NEW jobs are claimed behind it, as by [`job_claim`](crate::Store::job_claim) and as
    /// lasting, unless the store leaves that to a call of its own. After an error, jobs may have been claimed: a store that
    /// fails at the end may have done it all the same.
    fn schedule_materialize_due(
        &self,
        request: Materialize<'_>,
    ) -> impl Future<Output = Result<Materialized, ScheduleError>> + Send;

    /// Puts right the cursors that [`Schedule::realigned`] finds wrong; for a start, and when the clock went back.
    /// Rows that cannot be read are left alone.
    fn schedule_realign(&self, now: Timestamp) -> impl Future<Output = Result<Vec<Realigned>, ScheduleError>> + Send;

    /// Brings ACTIVE and PAUSED schedules that run by the clocks of a zone to the zone data of this process, see
    /// [`Schedule::rezoned`], when their cursor was computed by another release of it than `zone_data`, which is
    /// [`Zone::data_version`](crate::Zone::data_version); for a start, and when another process has changed something.
    /// Jobs that were made stay as they are, rows that cannot be read are left alone. Returns those whose cursor has moved.
    ///
    /// For this a store keeps beside each cursor, whenever it is computed, the release of the zone data and the offset
    /// that the zone has at the occurrence. Every other function here, whether it reads or writes, goes by the cursor as it
    /// is by this process's data too: a call that comes before this one must not compute a cursor from one that means
    /// another instant here.
    fn schedule_rezone(&self, zone_data: &str) -> impl Future<Output = Result<Vec<Rezoned>, ScheduleError>> + Send;

    /// The earliest `next_due_at` of an ACTIVE schedule: when a pass has to look next.
    fn schedule_next_due(&self) -> impl Future<Output = Result<Option<Timestamp>, ScheduleError>> + Send;
}
