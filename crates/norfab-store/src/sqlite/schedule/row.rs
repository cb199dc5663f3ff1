//! A schedule as SQLite holds it, and the schedule that it stands for. A row that was edited into nonsense is told apart
//! and stops no other.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use norfab_model::{
    LastOutcome, Schedule, ScheduleCounters, ScheduleError, ScheduleId, ScheduleState, Timestamp, Trigger,
    UnreadableSchedule, Upcoming, Zone, one_line,
};

use crate::by_zone::ByZone;
use crate::sqlite::row::{Cell, Seen};
use crate::sqlite::statement::row;

row! {
    /// What `sql/schedule/load.sql` returns of a schedule.
    #[derive(Debug)]
    pub(super) struct Row {
        pub(super) row: i64,
        pub(super) uuid: Cell,
        pub(super) name: Cell,
        pub(super) service: Cell,
        pub(super) task: Cell,
        pub(super) args: Cell,
        pub(super) kwargs: Cell,
        pub(super) workers: Cell,
        pub(super) timeout: Cell,
        pub(super) trigger_type: Cell,
        pub(super) trigger_config: Cell,
        pub(super) timezone: Cell,
        pub(super) start_at: Cell,
        pub(super) end_at: Cell,
        pub(super) anchor_at: Cell,
        pub(super) jitter_seconds: Cell,
        pub(super) next_run_at: Cell,
        pub(super) next_due_at: Cell,
        pub(super) decided_until: Cell,
        pub(super) decided_at: Cell,
        pub(super) last_run_at: Cell,
        pub(super) zone_data: Cell,
        pub(super) zone_offset: Cell,
        pub(super) state: Cell,
        pub(super) coalesce: Cell,
        pub(super) misfire_grace_seconds: Cell,
        pub(super) overlap_policy: Cell,
        pub(super) max_instances: Cell,
        pub(super) created_at: Cell,
        pub(super) updated_at: Cell,
        pub(super) deleted_at: Cell,
        pub(super) revision: Cell,
        pub(super) total_runs: Cell,
        pub(super) failed_runs: Cell,
        pub(super) missed_runs: Cell,
        pub(super) overlap_skips: Cell,
        pub(super) coalesced_runs: Cell,
        pub(super) passed_over: Cell,
        pub(super) last_error: Cell,
        pub(super) last_outcome: Cell,
        pub(super) unfinished: Cell,
    }
}

/// A row that is no schedule.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// Its number.
    pub(super) row: i64,
    /// What stands in it, and why it is no schedule.
    pub(super) what: Box<UnreadableSchedule>,
}

impl From<Unreadable> for ScheduleError {
    fn from(Unreadable { what, .. }: Unreadable) -> Self {
        Self::Unreadable(what)
    }
}

/// A column and what is wrong with it.
struct Wrong(&'static str, String);

/// Says which column it is that cannot be read.
fn of<T>(column: &'static str, read: Result<T, impl Display>) -> Result<T, Wrong> {
    read.map_err(|wrong| Wrong(column, wrong.to_string()))
}

/// What must be there.
fn given<T>(column: &'static str, read: Result<Option<T>, impl Display>) -> Result<T, Wrong> {
    of(column, read)?.ok_or_else(|| Wrong(column, "is NULL".to_owned()))
}

fn whole(column: &'static str, cell: Seen<'_>, range: RangeInclusive<u64>) -> Result<u64, Wrong> {
    let number = cell.integer().and_then(|number| u64::try_from(number).ok()).filter(|number| range.contains(number));
    number.ok_or_else(|| Wrong(column, format!("is no whole number from {} to {}", range.start(), range.end())))
}

fn small(column: &'static str, cell: Seen<'_>, least: u32) -> Result<u32, Wrong> {
    let number = whole(column, cell, u64::from(least)..=u64::from(u32::MAX))?;
    u32::try_from(number).map_err(|_| Wrong(column, "is too large".to_owned()))
}

fn word<T: FromStr>(column: &'static str, cell: Seen<'_>) -> Result<T, Wrong>
where
    T::Err: Display,
{
    of(column, of(column, cell.text())?.parse().map_err(named))
}

impl Row {
    /// The schedule, by the zone data of this process.
    pub(super) fn schedule(&self) -> Result<Schedule, Unreadable> {
        Ok(self.by_zone().current(&self.stored()?))
    }

    /// The schedule as it stands there and as it is by the zone data of this process, for who is to write it.
    pub(super) fn to_write(&self) -> Result<(Schedule, Schedule), Unreadable> {
        let (stored, moved) = self.moved()?;
        let current = moved.unwrap_or_else(|| stored.clone());
        Ok((stored, current))
    }

    /// The schedule as it stands there, and what it is by the zone data of this process where that may be another.
    pub(super) fn moved(&self) -> Result<(Schedule, Option<Schedule>), Unreadable> {
        let stored = self.stored()?;
        let moved = stored.trigger.is_zone_bound().then(|| self.by_zone().current(&stored));
        Ok((stored, moved))
    }

    /// How many unfinished jobs it has, where they were counted.
    pub(super) fn unfinished(&self) -> u64 {
        self.unfinished.seen().integer().and_then(|jobs| u64::try_from(jobs).ok()).unwrap_or(0)
    }

    /// By which zone data its cursor was computed; what cannot be read is nothing.
    pub(super) fn by_zone(&self) -> ByZone {
        ByZone {
            zone_data: self.zone_data.seen().text().ok().map(str::to_owned),
            zone_offset: self.zone_offset.seen().integer().and_then(|seconds| i32::try_from(seconds).ok()),
        }
    }

    /// The schedule as it stands there.
    pub(super) fn stored(&self) -> Result<Schedule, Unreadable> {
        self.read().map_err(|Wrong(column, wrong)| self.unreadable(&format!("its {column} {wrong}")))
    }

    /// The same row as one that cannot be read or used, for this reason.
    pub(super) fn unreadable(&self, reason: &str) -> Unreadable {
        let shown = |cell: &Cell| one_line(&cell.seen().shown()).chars().take(255).collect::<String>();
        let given = |cell: &Cell| Some(shown(cell)).filter(|_| !cell.seen().is_null());
        Unreadable {
            row: self.row,
            what: Box::new(UnreadableSchedule {
                uuid: shown(&self.uuid),
                name: given(&self.name),
                state: shown(&self.state),
                last_error: self.last_error.seen().optional_text().ok().flatten().map(one_line),
                reason: one_line(reason),
            }),
        }
    }

    fn read(&self) -> Result<Schedule, Wrong> {
        let uuid = of("uuid", self.uuid.seen().text())?;
        let start_at = of("start_at", self.start_at.seen().instant())?;
        let last_run_at = of("last_run_at", self.last_run_at.seen().instant())?;
        let created_at = given("created_at", self.created_at.seen().instant())?;
        let decided_until = self.decided_until(created_at, last_run_at)?;
        Ok(Schedule {
            uuid: of("uuid", ScheduleId::new(uuid).map_err(|_| "is no identity"))?,
            name: of("name", self.name.seen().optional_text())?.map(str::to_owned),
            service: of("service", self.service.seen().text())?.to_owned(),
            task: of("task", self.task.seen().text())?.to_owned(),
            workers: given("workers", self.workers.seen().workers())?,
            timeout: small("timeout", self.timeout.seen(), 1)?,
            trigger: self.trigger()?,
            timezone: of("timezone", Zone::find(of("timezone", self.timezone.seen().text())?).map_err(named))?,
            start_at,
            end_at: of("end_at", self.end_at.seen().instant())?,
            anchor_at: given("anchor_at", self.anchor_at.seen().instant())?,
            jitter_seconds: small("jitter_seconds", self.jitter_seconds.seen(), 0)?,
            next: self.next()?,
            decided_until,
            decided_at: self.decided_at(decided_until)?,
            last_run_at,
            state: self.state()?,
            coalesce: word("coalesce", self.coalesce.seen())?,
            misfire_grace_seconds: match self.misfire_grace_seconds.seen() {
                grace if grace.is_null() => None,
                grace => Some(small("misfire_grace_seconds", grace, 1)?),
            },
            overlap_policy: word("overlap_policy", self.overlap_policy.seen())?,
            max_instances: small("max_instances", self.max_instances.seen(), 1)?,
            created_at,
            updated_at: given("updated_at", self.updated_at.seen().instant())?,
            deleted_at: of("deleted_at", self.deleted_at.seen().instant())?,
            revision: whole("revision", self.revision.seen(), 1..=MOST)?,
            counters: self.counters()?,
            last_error: self.last_error.seen().optional_text().ok().flatten().map(one_line),
            // They only inform: what cannot be read is as good as nothing.
            last_outcome: self.last_outcome.seen().text().ok().and_then(LastOutcome::from_column),
        })
    }

    fn trigger(&self) -> Result<Trigger, Wrong> {
        let kind = of("trigger_type", self.trigger_type.seen().text())?;
        let config = of("trigger_config", self.trigger_config.seen().text())?;
        of("trigger_config", Trigger::from_columns(kind, config).map_err(named))
    }

    fn next(&self) -> Result<Option<Upcoming>, Wrong> {
        let occurrence = of("next_run_at", self.next_run_at.seen().instant())?;
        let due: Option<Timestamp> = of("next_due_at", self.next_due_at.seen().instant())?;
        match (occurrence, due) {
            (Some(occurrence), Some(due)) => Ok(Some(Upcoming { occurrence, due })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Wrong("next_due_at", "is NULL beside a next_run_at".to_owned())),
            (None, Some(_)) => Err(Wrong("next_run_at", "is NULL beside a next_due_at".to_owned())),
        }
    }

    /// Rows of other programs may not have it; what ran is decided in any case.
    fn decided_until(&self, created_at: Timestamp, last_run_at: Option<Timestamp>) -> Result<Timestamp, Wrong> {
        let decided_until = of("decided_until", self.decided_until.seen().instant())?;
        Ok([decided_until, last_run_at].into_iter().flatten().fold(created_at, Timestamp::max))
    }

    /// Where it is given it is no later.
    fn decided_at(&self, decided_until: Timestamp) -> Result<Timestamp, Wrong> {
        let decided_at: Option<Timestamp> = of("decided_at", self.decided_at.seen().instant())?;
        Ok(decided_at.map_or(decided_until, |at| at.min(decided_until)))
    }

    fn state(&self) -> Result<ScheduleState, Wrong> {
        let state: ScheduleState = word("state", self.state.seen())?;
        if self.state.seen().text() != Ok(state.as_str()) {
            return Err(Wrong("state", format!("is not spelled {state}")));
        }
        if !self.deleted_at.seen().is_null() && state != ScheduleState::Disabled {
            return Err(Wrong("deleted_at", format!("is given while it is {state}")));
        }
        Ok(state)
    }

    fn counters(&self) -> Result<ScheduleCounters, Wrong> {
        Ok(ScheduleCounters {
            total_runs: whole("total_runs", self.total_runs.seen(), 0..=MOST)?,
            failed_runs: whole("failed_runs", self.failed_runs.seen(), 0..=MOST)?,
            missed_runs: whole("missed_runs", self.missed_runs.seen(), 0..=MOST)?,
            overlap_skips: whole("overlap_skips", self.overlap_skips.seen(), 0..=MOST)?,
            coalesced_runs: whole("coalesced_runs", self.coalesced_runs.seen(), 0..=MOST)?,
            passed_over: whole("passed_over", self.passed_over.seen(), 0..=MOST)?,
        })
    }
}

/// The largest number of SQLite.
pub(super) const MOST: u64 = i64::MAX.unsigned_abs();

/// Makes a sentence of the model about a column part of ours.
fn named(wrong: impl Display) -> String {
    format!("cannot be used: {wrong}")
}
