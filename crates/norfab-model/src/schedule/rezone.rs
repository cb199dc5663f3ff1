//! What becomes of a cursor when the data of the time zones has changed since it was computed.

use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

use super::{Schedule, ScheduleState};
use crate::{LocalInstants, Timestamp};

impl Schedule {
    /// The row once the zone data has changed since its cursor was computed; `offset` is the one that the zone had at
    /// [`next`](Self::next)'s occurrence then. The cursor stays at its wall-clock time, which may be another instant
    /// now, and all that lies before it counts as decided: an occurrence that ran by the old data does not run again when
    /// the new data puts it later. An ACTIVE schedule with nothing left is COMPLETED. None: nothing changes.
    #[must_use]
    pub fn rezoned(&self, offset: UtcOffset) -> Option<Self> {
        let cursor = self.next.filter(|_| self.trigger.is_zone_bound())?;
        let occurrences = self.occurrences();
        let wanted = if self.timezone.offset_at(cursor.occurrence) == offset {
            cursor.occurrence
        } else {
            self.by_the_clock(cursor.occurrence, offset)
        };
        let next = occurrences.first_at_or_after(wanted).map(|at| self.upcoming(at));
        let before =
            next.map_or(occurrences.last_at_or_before(Timestamp::MAX), |next| occurrences.last_before(next.occurrence));
        let decided_until = before.map_or(self.decided_until, |before| before.max(self.decided_until));
        let ended = next.is_none() && self.state == ScheduleState::Active;
        let state = if ended { ScheduleState::Completed } else { self.state };
        let changes = next != self.next || decided_until != self.decided_until;
        changes.then(|| Self { next, decided_until, state, ..self.clone() })
    }

    /// The instant of the wall-clock time that an instant had at another offset.
    fn by_the_clock(&self, at: Timestamp, offset: UtcOffset) -> Timestamp {
        let local = OffsetDateTime::from(at).checked_to_offset(offset);
        match local.map(|local| self.timezone.instants_of(PrimitiveDateTime::new(local.date(), local.time()))) {
            Some(LocalInstants::One(at) | LocalInstants::Two { first: at, .. }) => at,
            Some(LocalInstants::None { gap }) => gap.at,
            // Only at the ends of the calendar.
            None => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tests::{every, saved_at};
    use crate::{Cron, NewSchedule, plan_due};
    use std::collections::HashSet;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect(text)
    }

    fn hours(hours: i8) -> UtcOffset {
        UtcOffset::from_hms(hours, 0, 0).expect("an offset")
    }

    fn daily(now: &str) -> Schedule {
        let cron = Cron::new("0 3 * * *").expect("valid");
        saved_at(at(now), NewSchedule::new("nornir", "cli", cron).timezone("Europe/Berlin"))
    }

    /// As older data would have left it: a cursor at 03:00 of another offset, all before it decided.
    fn by_old_data(next: &str, decided: &str) -> Schedule {
        let schedule = daily("2027-07-01T12:00:00Z");
        Schedule { next: Some(schedule.upcoming(at(next))), decided_until: at(decided), ..schedule }
    }

    #[test]
    fn the_same_data_changes_nothing() {
        let schedule = daily("2027-07-01T12:00:00Z");
        assert_eq!(schedule.rezoned(hours(2)), None);
        let interval = saved_at(at("2027-07-01T12:00:00Z"), every("1h").timezone("Europe/Berlin"));
        assert_eq!(interval.rezoned(hours(5)), None);
        assert_eq!(Schedule { next: None, ..schedule }.rezoned(hours(5)), None);
    }

    #[test]
    fn the_cursor_keeps_its_time_of_day() {
        // Without daylight saving, 03:00 was an hour later.
        let old = by_old_data("2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z");
        let new = old.rezoned(hours(1)).expect("a change");
        assert_eq!(new.next, Some(old.upcoming(at("2027-07-02T01:00:00Z"))));
        // With twice as much of it, an hour earlier.
        let old = by_old_data("2027-07-02T00:00:00Z", "2027-07-01T12:00:00Z");
        assert_eq!(old.rezoned(hours(3)).expect("a change").next, Some(old.upcoming(at("2027-07-02T01:00:00Z"))));
    }

    /// 03:00 of 2 July ran at 00:00Z by the old data; the new data puts it at 01:00Z, which is still to come.
    #[test]
    fn what_ran_does_not_run_again() {
        let old = by_old_data("2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z");
        let new = old.rezoned(hours(3)).expect("a change");
        assert_eq!(new.next, Some(old.upcoming(at("2027-07-03T01:00:00Z"))));
        assert_eq!(new.decided_until, at("2027-07-02T01:00:00Z"));
        // Nor when the cursor is put right at a start.
        let realigned = Schedule { next: new.realigned(at("2027-07-02T00:30:00Z")).or(new.next), ..new };
        let plan = plan_due(&realigned, at("2027-07-02T01:00:30Z"), 0, 100);
        assert_eq!((plan.create.len(), plan.passed_over), (0, 1));
        let after = plan.settle(&realigned, at("2027-07-02T01:00:30Z"), &HashSet::new());
        assert_eq!(after.next, Some(old.upcoming(at("2027-07-03T01:00:00Z"))));
    }

    /// The clock change was put off by a day: 03:00 of 28 March ran at 01:00Z, which is 02:00 by the new data.
    #[test]
    fn what_ran_does_not_run_again_before_a_cursor_that_stays() {
        let schedule = by_old_data("2027-07-03T01:00:00Z", "2027-07-02T00:00:00Z");
        let new = schedule.rezoned(hours(2)).expect("a change");
        assert_eq!((new.next, new.decided_until), (schedule.next, at("2027-07-02T01:00:00Z")));
    }

    #[test]
    fn nothing_may_be_left() {
        let old = by_old_data("2027-07-02T00:00:00Z", "2027-07-01T12:00:00Z");
        let ended = Schedule { end_at: Some(at("2027-07-02T00:30:00Z")), ..old };
        let ended = ended.rezoned(hours(3)).expect("a change");
        assert_eq!((ended.next, ended.state), (None, ScheduleState::Completed));
    }
}
