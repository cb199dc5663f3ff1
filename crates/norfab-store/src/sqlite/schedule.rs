//! Schedules: rows of `job_schedules` beside their jobs. A call is one transaction that reads the row, decides by the
//! model's functions, and writes what they say.

mod aside;
mod claimed_as_made;
mod encode;
mod failed;
mod find;
mod manage;
mod materialize;
mod realign;
mod rezone;
mod row;
mod switch_off;

use norfab_model::{
    Limits, Managed, Materialize, Materialized, Overlap, Realigned, Rezoned, RunNow, Schedule, ScheduleDetail,
    ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey, SchedulePage, SchedulePatch, ScheduleStore, ScheduleView,
    StoreError, SwitchedOff, Timestamp, ValidSchedule,
};

use super::encode::EncodeError;
use super::{Durability, OwnedClaim, Session, SqliteStore, storage};

pub(super) use failed::{count_failed_in_tx, schedule_of};

/// Wraps what went wrong in the storage.
fn failed<E: Into<EncodeError>>(doing: &'static str) -> impl Fn(E) -> ScheduleError + Copy {
    move |source| ScheduleError::Store(storage(doing)(source))
}

/// A statement must have changed so many rows. In a transaction that began with the rows read, it has; had it not,
/// nothing of the transaction may stay.
fn all_written(written: usize, expected: usize, doing: &'static str) -> Result<(), StoreError> {
    if written == expected {
        return Ok(());
    }
    Err(storage(doing)(format!("{written} schedules changed, not {expected}: they are not as they were read")))
}

impl ScheduleStore for SqliteStore {
    async fn schedule_add(&self, schedule: &ValidSchedule) -> Result<Schedule, ScheduleError> {
        let schedule = schedule.clone();
        self.shared.on_writer(move |session| manage::schedule_add(session, &schedule)).await
    }

    async fn schedule_find(&self, key: &ScheduleKey) -> Result<Option<ScheduleView>, ScheduleError> {
        let key = key.clone();
        self.shared.on_reader(move |session| find::schedule_find(session, &key)).await
    }

    async fn schedule_detail(&self, key: &ScheduleKey) -> Result<Option<ScheduleDetail>, ScheduleError> {
        let key = key.clone();
        self.shared.on_reader(move |session| find::schedule_detail(session, &key)).await
    }

    async fn schedule_list(&self, filter: &ScheduleFilter) -> Result<SchedulePage, ScheduleError> {
        let filter = filter.clone();
        self.shared.on_reader(move |session| find::schedule_list(session, &filter)).await
    }

    async fn schedule_pause(&self, now: Timestamp, id: &ScheduleId) -> Result<Managed, ScheduleError> {
        let id = id.clone();
        let pause = move |schedule: &Schedule| schedule.pause(now);
        self.shared.on_writer(move |session| manage::change(session, &id, "pause a schedule", pause)).await
    }

    async fn schedule_resume(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        limits: &Limits,
    ) -> Result<Managed, ScheduleError> {
        let (id, limits) = (id.clone(), limits.clone());
        let resume = move |schedule: &Schedule| schedule.resume(now, &limits);
        self.shared.on_writer(move |session| manage::change(session, &id, "resume a schedule", resume)).await
    }

    async fn schedule_update(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        patch: &SchedulePatch,
        limits: &Limits,
    ) -> Result<Managed, ScheduleError> {
        let (id, patch, limits) = (id.clone(), patch.clone(), limits.clone());
        self.shared.on_writer(move |session| manage::schedule_update(session, now, &id, &patch, &limits)).await
    }

    async fn schedule_disable(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        let key = key.clone();
        self.shared.on_writer(move |session| switch_off::schedule_disable(session, now, &key)).await
    }

    async fn schedule_delete(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        let key = key.clone();
        self.shared.on_writer(move |session| switch_off::schedule_delete(session, now, &key)).await
    }

    async fn schedule_run_now(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        overlap: Overlap,
        limits: &Limits,
    ) -> Result<RunNow, ScheduleError> {
        let (id, limits) = (id.clone(), limits.clone());
        self.shared.on_writer(move |session| manage::schedule_run_now(session, now, &id, overlap, &limits)).await
    }

    async fn schedule_materialize_due(&self, request: Materialize<'_>) -> Result<Materialized, ScheduleError> {
        let Materialize { now, budget_left, batch, .. } = request;
        let (limits, seen) = (request.limits.clone(), request.seen.to_vec());
        let claim = request.claim.map(OwnedClaim::from);
        // What is made comes again by itself, should a power cut undo it; what is claimed has been sent by then.
        let durability = claim.as_ref().map_or(Durability::Normal, |_| self.shared.durability);
        let work = move |session: &Session<'_>| {
            let claim = claim.as_ref().map(OwnedClaim::claim);
            let request = Materialize { now, limits: &limits, budget_left, batch, seen: &seen, claim: claim.as_ref() };
            Ok(materialize::schedule_materialize_due(session, request)?)
        };
        self.with_others("materialize schedules", durability, work).await
    }

    async fn schedule_realign(&self, now: Timestamp) -> Result<Vec<Realigned>, ScheduleError> {
        self.shared.on_writer(move |session| Ok(realign::schedule_realign(session, now)?)).await
    }

    async fn schedule_rezone(&self, zone_data: &str) -> Result<Vec<Rezoned>, ScheduleError> {
        let zone_data = zone_data.to_owned();
        self.shared.on_writer(move |session| Ok(rezone::schedule_rezone(session, &zone_data)?)).await
    }

    async fn schedule_next_due(&self) -> Result<Option<Timestamp>, ScheduleError> {
        self.shared.on_reader(|session| Ok(realign::schedule_next_due(session)?)).await
    }
}
