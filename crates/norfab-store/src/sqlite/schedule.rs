//! Schedules: rows of `job_schedules` beside their jobs. A call is one transaction that reads the row, decides by the
//! model's functions, and writes what they say.

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
use super::{SqliteStore, storage};

pub(super) use failed::{count_failed_in_tx, schedule_of};

/// Wraps what went wrong in the storage.
fn failed<E: Into<EncodeError>>(doing: &'static str) -> impl Fn(E) -> ScheduleError + Copy {
    move |source| ScheduleError::Store(storage(doing)(source))
}

/// A statement must have changed so many rows. In a transaction that began with the rows read, it has; had it not,
/// nothing of the transaction may stay.
fn all_written(
    outcome: &sqlx::sqlite::SqliteQueryResult,
    expected: usize,
    doing: &'static str,
) -> Result<(), StoreError> {
    let written = outcome.rows_affected();
    if usize::try_from(written) == Ok(expected) {
        return Ok(());
    }
    Err(storage(doing)(format!("{written} schedules changed, not {expected}: they are not as they were read")))
}

impl ScheduleStore for SqliteStore {
    async fn schedule_add(&self, schedule: &ValidSchedule) -> Result<Schedule, ScheduleError> {
        manage::schedule_add(&self.shared, schedule).await
    }

    async fn schedule_find(&self, key: &ScheduleKey) -> Result<Option<ScheduleView>, ScheduleError> {
        find::schedule_find(&self.shared, key).await
    }

    async fn schedule_detail(&self, key: &ScheduleKey) -> Result<Option<ScheduleDetail>, ScheduleError> {
        find::schedule_detail(&self.shared, key).await
    }

    async fn schedule_list(&self, filter: &ScheduleFilter) -> Result<SchedulePage, ScheduleError> {
        find::schedule_list(&self.shared, filter).await
    }

    async fn schedule_pause(&self, now: Timestamp, id: &ScheduleId) -> Result<Managed, ScheduleError> {
        manage::change(&self.shared, id, "pause a schedule", |schedule| schedule.pause(now)).await
    }

    async fn schedule_resume(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        limits: &Limits,
    ) -> Result<Managed, ScheduleError> {
        manage::change(&self.shared, id, "resume a schedule", |schedule| schedule.resume(now, limits)).await
    }

    async fn schedule_update(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        patch: &SchedulePatch,
        limits: &Limits,
    ) -> Result<Managed, ScheduleError> {
        manage::schedule_update(&self.shared, now, id, patch, limits).await
    }

    async fn schedule_disable(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        switch_off::schedule_disable(&self.shared, now, key).await
    }

    async fn schedule_delete(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        switch_off::schedule_delete(&self.shared, now, key).await
    }

    async fn schedule_run_now(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        overlap: Overlap,
        limits: &Limits,
    ) -> Result<RunNow, ScheduleError> {
        manage::schedule_run_now(&self.shared, now, id, overlap, limits).await
    }

    async fn schedule_materialize_due(&self, request: Materialize<'_>) -> Result<Materialized, ScheduleError> {
        Ok(materialize::schedule_materialize_due(&self.shared, request).await?)
    }

    async fn schedule_realign(&self, now: Timestamp) -> Result<Vec<Realigned>, ScheduleError> {
        Ok(realign::schedule_realign(&self.shared, now).await?)
    }

    async fn schedule_rezone(&self, zone_data: &str) -> Result<Vec<Rezoned>, ScheduleError> {
        Ok(rezone::schedule_rezone(&self.shared, zone_data).await?)
    }

    async fn schedule_next_due(&self) -> Result<Option<Timestamp>, ScheduleError> {
        Ok(realign::schedule_next_due(&self.shared).await?)
    }
}
