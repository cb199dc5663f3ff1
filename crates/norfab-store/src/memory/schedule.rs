//! The schedules on plain maps.

use std::collections::HashSet;

use norfab_model::{
    ActiveJob, Effect, JobId, Json, Limits, Listed, Managed, Materialize, Materialized, Overlap, Realigned, Rezoned,
    RunNow, Schedule, ScheduleCursor, ScheduleDetail, ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey,
    SchedulePage, SchedulePatch, ScheduleState, ScheduleStore, ScheduleView, SwitchedOff, Timestamp, ValidSchedule,
};

use super::MemoryStore;
use super::data::{Data, Inserted};
use crate::by_zone::{ByZone, told};
use crate::conformance::LeftCursor;
use crate::materialize::{Batch, Due, PlannedRow, Settled};

#[derive(Debug)]
pub(super) struct ScheduleRow {
    /// As it was written; see [`current`](Self::current).
    pub(super) schedule: Schedule,
    args: Json,
    kwargs: Json,
    pub(super) by_zone: ByZone,
}

impl ScheduleRow {
    /// By the zone data of this process.
    fn current(&self) -> Schedule {
        self.by_zone.current(&self.schedule)
    }

    /// Becomes what a call or a pass has made of it.
    fn put(&mut self, after: Schedule) {
        if ByZone::is_new(&self.schedule, &after) {
            self.by_zone = ByZone::of(&after);
        }
        self.schedule = after;
    }

    /// Whether it runs, or may again, and its cursor was computed by other zone data.
    fn is_by_other_zones(&self, zone_data: &str) -> bool {
        let runs = matches!(self.schedule.state, ScheduleState::Active | ScheduleState::Paused);
        runs && self.by_zone.is_other(&self.schedule, zone_data)
    }
}

impl Data {
    fn schedule_number(&self, id: &ScheduleId) -> Option<i64> {
        self.schedules.iter().find(|(_, row)| row.schedule.uuid == *id).map(|(number, _)| *number)
    }

    fn schedule_mut(&mut self, id: &ScheduleId) -> Result<&mut ScheduleRow, ScheduleError> {
        let row = self.schedules.values_mut().find(|row| row.schedule.uuid == *id);
        row.ok_or_else(|| ScheduleError::Unknown(ScheduleKey::Id(id.clone())))
    }

    fn schedule_by(&self, key: &ScheduleKey) -> Option<&ScheduleRow> {
        self.schedules.values().find(|row| match key {
            ScheduleKey::Id(id) => row.schedule.uuid == *id,
            ScheduleKey::Name(name) => has_name(&row.schedule, name),
        })
    }

    fn view(&self, row: &ScheduleRow) -> ScheduleView {
        ScheduleView { schedule: row.current(), active_jobs: self.active(&row.schedule.uuid).count() as u64 }
    }

    /// The unfinished jobs of a schedule, the oldest first.
    fn active(&self, id: &ScheduleId) -> impl Iterator<Item = ActiveJob> {
        let of_schedule = self.rows.values().map(|row| &row.job).filter(|job| job.schedule_id.as_ref() == Some(id));
        of_schedule.filter(|job| !job.status.is_terminal()).map(|job| ActiveJob {
            uuid: job.uuid.clone(),
            since: job.released_at.or(job.created_at).unwrap_or(Timestamp::EPOCH),
        })
    }

    /// Refuses a schedule whose name another one has.
    fn refuse_taken_name(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let Some(name) = &schedule.name else { return Ok(()) };
        let mut others = self.schedules.values().filter(|other| other.schedule.uuid != schedule.uuid);
        match others.find(|other| has_name(&other.schedule, name)) {
            Some(existing) => Err(ScheduleError::NameTaken { existing: Box::new(existing.current()) }),
            None => Ok(()),
        }
    }

    /// Carries out a call that leaves the rule as it is.
    fn change_schedule(
        &mut self,
        id: &ScheduleId,
        call: impl FnOnce(&Schedule) -> Result<Managed, ScheduleError>,
    ) -> Result<Managed, ScheduleError> {
        let row = self.schedule_mut(id)?;
        let managed = call(&row.current())?;
        if managed.effect == Effect::Changed {
            row.put(managed.schedule.clone());
            self.touched = true;
        }
        Ok(managed)
    }

    fn switch_off(
        &mut self,
        key: &ScheduleKey,
        call: impl FnOnce(&Schedule) -> Result<Managed, ScheduleError>,
    ) -> Result<SwitchedOff, ScheduleError> {
        let row = self.schedule_by(key).ok_or_else(|| ScheduleError::Unknown(key.clone()))?;
        let id = row.schedule.uuid.clone();
        Ok(self.change_schedule(&id, call)?.into())
    }

    /// The active schedules whose due time a condition accepts, the earliest first.
    fn active_schedules(&self, accepts: impl Fn(Timestamp) -> bool) -> Vec<i64> {
        let due = self.schedules.iter().filter_map(|(number, row)| {
            let next = row.schedule.next.filter(|_| row.schedule.state == ScheduleState::Active)?;
            accepts(next.due).then_some((next.due, next.occurrence, *number))
        });
        let mut due: Vec<_> = due.collect();
        due.sort_unstable();
        due.into_iter().map(|(.., number)| number).collect()
    }

    /// When an active schedule is due next.
    fn next_due(&self) -> Option<Timestamp> {
        let active = self.schedules.values().filter(|row| row.schedule.state == ScheduleState::Active);
        active.filter_map(|row| row.schedule.next).map(|next| next.due).min()
    }

    fn materialize(&mut self, request: &Materialize<'_>) -> Materialized {
        let mut numbers = self.active_schedules(|due| due <= request.now);
        let seen =
            |number: &i64| self.schedules.get(number).is_some_and(|row| request.seen.contains(&row.schedule.uuid));
        numbers.retain(|number| !seen(number));
        let more = numbers.len() > request.batch as usize;
        numbers.truncate(request.batch as usize);
        let due = numbers.into_iter().filter_map(|number| {
            let row = self.schedules.get(&number)?;
            let unfinished = self.active(&row.schedule.uuid).count() as u64;
            Some(Due::new(number, row.schedule.clone(), Some(row.current()), unfinished))
        });
        let batch = Batch::decide(request, due.collect());
        let jobs = batch.jobs();
        let made = self.add_planned(&jobs);
        let Settled { changed, events, outcome } = batch.settle(jobs, &made);
        for change in changed {
            if let Some(row) = self.schedules.get_mut(&change.number) {
                row.put(change.after);
                self.touched = true;
            }
        }
        self.log(events);
        let claimed = request.claim.map(|claim| self.claim(claim));
        Materialized { more, next_due_at: self.next_due(), claimed, ..outcome }
    }

    /// Adds jobs; returns those that were not there already.
    fn add_planned(&mut self, jobs: &[PlannedRow]) -> HashSet<JobId> {
        let mut made = HashSet::new();
        for PlannedRow { schedule, job, .. } in jobs {
            let Some(row) = self.schedules.get(schedule) else { continue };
            let (args, kwargs) = (row.args.clone(), row.kwargs.clone());
            if self.insert(job.clone(), args, kwargs) == Inserted::Yes {
                made.insert(job.uuid.clone());
            }
        }
        made
    }

    fn list_schedules(&self, filter: &ScheduleFilter) -> SchedulePage {
        let behind = filter.cursor.map_or(i64::MIN, |ScheduleCursor(number)| number);
        let page = filter.page_size() as usize;
        let found = self.schedules.iter().filter(|(number, row)| **number > behind && matches(filter, &row.schedule));
        let mut found: Vec<(i64, &ScheduleRow)> = found.take(page + 1).map(|(number, row)| (*number, row)).collect();
        let more = found.len() > page;
        found.truncate(page);
        SchedulePage {
            next: found.last().filter(|_| more).map(|(number, _)| ScheduleCursor(*number)),
            schedules: found.into_iter().map(|(_, row)| self.view(row)).collect(),
            unreadable: Vec::new(),
        }
    }
}

impl MemoryStore {
    /// Makes the cursor of a schedule what a release of the program with other zone data has left, for
    /// [`conformance`](crate::conformance): in memory there is no other release. Without such a schedule nothing happens.
    pub fn schedule_leave(&self, id: &ScheduleId, cursor: LeftCursor) {
        let mut data = self.read();
        let Ok(row) = data.schedule_mut(id) else { return };
        let LeftCursor { zone_data, zone_offset, next, decided_until } = cursor;
        row.by_zone = ByZone { zone_data, zone_offset };
        row.schedule = Schedule { next: Some(next), decided_until, decided_at: decided_until, ..row.schedule.clone() };
    }
}

/// Whether a schedule has a name still.
fn has_name(schedule: &Schedule, name: &str) -> bool {
    schedule.deleted_at.is_none() && schedule.name.as_deref() == Some(name)
}

fn matches(filter: &ScheduleFilter, schedule: &Schedule) -> bool {
    let wanted = |wanted: &Option<String>, given: &str| wanted.as_ref().is_none_or(|wanted| wanted == given);
    schedule.deleted_at.is_some() == (filter.listed == Listed::Deleted)
        && (filter.states.is_empty() || filter.states.contains(&schedule.state))
        && wanted(&filter.service, &schedule.service)
        && wanted(&filter.task, &schedule.task)
}

impl ScheduleStore for MemoryStore {
    async fn schedule_add(&self, valid: &ValidSchedule) -> Result<Schedule, ScheduleError> {
        let mut data = self.write();
        let schedule = valid.schedule();
        if data.schedule_number(&schedule.uuid).is_some() {
            return Err(ScheduleError::Exists(schedule.uuid.clone()));
        }
        data.refuse_taken_name(schedule)?;
        let number = data.schedules.last_key_value().map_or(1, |(last, _)| last + 1);
        let (args, kwargs, by_zone) = (valid.args().clone(), valid.kwargs().clone(), ByZone::of(schedule));
        data.schedules.insert(number, ScheduleRow { schedule: schedule.clone(), args, kwargs, by_zone });
        data.touched = true;
        Ok(schedule.clone())
    }

    async fn schedule_find(&self, key: &ScheduleKey) -> Result<Option<ScheduleView>, ScheduleError> {
        let data = self.read();
        Ok(data.schedule_by(key).map(|row| data.view(row)))
    }

    async fn schedule_detail(&self, key: &ScheduleKey) -> Result<Option<ScheduleDetail>, ScheduleError> {
        let data = self.read();
        Ok(data.schedule_by(key).map(|row| ScheduleDetail {
            view: data.view(row),
            args: row.args.clone(),
            kwargs: row.kwargs.clone(),
        }))
    }

    async fn schedule_list(&self, filter: &ScheduleFilter) -> Result<SchedulePage, ScheduleError> {
        Ok(self.read().list_schedules(filter))
    }

    async fn schedule_pause(&self, now: Timestamp, id: &ScheduleId) -> Result<Managed, ScheduleError> {
        self.write().change_schedule(id, |schedule| schedule.pause(now))
    }

    async fn schedule_resume(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        limits: &Limits,
    ) -> Result<Managed, ScheduleError> {
        self.write().change_schedule(id, |schedule| schedule.resume(now, limits))
    }

    async fn schedule_update(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        patch: &SchedulePatch,
        limits: &Limits,
    ) -> Result<Managed, ScheduleError> {
        let mut data = self.write();
        let updated = data.schedule_mut(id)?.current().update(now, patch.clone(), limits)?;
        data.refuse_taken_name(&updated.managed.schedule)?;
        let row = data.schedule_mut(id)?;
        row.put(updated.managed.schedule.clone());
        updated.args.into_iter().for_each(|args| row.args = args);
        updated.kwargs.into_iter().for_each(|kwargs| row.kwargs = kwargs);
        data.touched = true;
        Ok(updated.managed)
    }

    async fn schedule_disable(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        self.write().switch_off(key, |schedule| schedule.disable(now))
    }

    async fn schedule_delete(&self, now: Timestamp, key: &ScheduleKey) -> Result<SwitchedOff, ScheduleError> {
        self.write().switch_off(key, |schedule| schedule.delete(now))
    }

    async fn schedule_run_now(
        &self,
        now: Timestamp,
        id: &ScheduleId,
        overlap: Overlap,
        limits: &Limits,
    ) -> Result<RunNow, ScheduleError> {
        let mut data = self.write();
        let active: Vec<ActiveJob> = data.active(id).collect();
        let row = data.schedule_mut(id)?;
        let most = row.schedule.max_instances as usize;
        let run = row.current().run_now(now, active.get(..most).unwrap_or(&active), overlap, limits)?;
        row.put(run.schedule.clone());
        let (args, kwargs) = (row.args.clone(), row.kwargs.clone());
        data.insert(run.job.clone(), args, kwargs);
        Ok(run)
    }

    async fn schedule_materialize_due(&self, request: Materialize<'_>) -> Result<Materialized, ScheduleError> {
        Ok(self.write().materialize(&request))
    }

    async fn schedule_realign(&self, now: Timestamp) -> Result<Vec<Realigned>, ScheduleError> {
        let mut data = self.write();
        let mut realigned = Vec::new();
        for number in data.active_schedules(|due| due > now) {
            let Some(row) = data.schedules.get_mut(&number) else { continue };
            let current = row.current();
            let (Some(from), Some(to)) = (current.next, current.realigned(now)) else { continue };
            row.put(Schedule { next: Some(to), ..current });
            let schedule = &row.schedule;
            realigned.push(Realigned { schedule: schedule.uuid.clone(), name: schedule.name.clone(), from, to });
        }
        data.touched |= !realigned.is_empty();
        Ok(realigned)
    }

    async fn schedule_rezone(&self, zone_data: &str) -> Result<Vec<Rezoned>, ScheduleError> {
        let mut data = self.write();
        let (mut moved, mut touched) = (Vec::new(), false);
        for row in data.schedules.values_mut().filter(|row| row.is_by_other_zones(zone_data)) {
            let after = row.by_zone.rezoned(&row.schedule);
            moved.extend(told(&row.schedule, &after));
            row.by_zone = ByZone::of(&after);
            row.schedule = after;
            touched = true;
        }
        data.touched |= touched;
        Ok(moved)
    }

    async fn schedule_next_due(&self) -> Result<Option<Timestamp>, ScheduleError> {
        Ok(self.read().next_due())
    }
}
