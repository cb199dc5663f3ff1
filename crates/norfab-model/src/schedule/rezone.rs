//! What becomes of a cursor when the data of the time zones has changed since it was computed.

use std::time::Duration;

use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

use super::{Schedule, ScheduleState};
use crate::{LocalInstants, Occurrences, Timestamp};

/// The most wall-clock time that a zone has left out at once: a day, where the date line moved.
const LONGEST_GAP: Duration = Duration::from_hours(24);

impl Schedule {
    /// The row once the zone data has changed since its cursor was computed; `offset` is the one that the zone had at
    /// [`next`](Self::next)'s occurrence then. None: nothing changes.
    ///
    /// The cursor stays at its wall-clock time, which may be another instant now, and all that lies before it counts as
    /// decided: an occurrence that ran by the old data does not run again when the new data puts it later. A cron
    /// expression of free hours follows elapsed time here too: it goes on with the first occurrence after what is
    /// decided. An ACTIVE schedule with nothing left is COMPLETED.
    #[must_use]
    pub fn rezoned(&self, offset: UtcOffset) -> Option<Self> {
        let cursor = self.next.filter(|_| self.trigger.is_zone_bound())?;
        let (next, decided_until) = if self.trigger.has_free_hours() {
            (self.by_elapsed_time(cursor.occurrence), self.decided_until)
        } else {
            self.by_wall_clock(cursor.occurrence, offset)
        };
        let next = next.map(|at| self.upcoming(at));
        let ended = next.is_none() && self.state == ScheduleState::Active;
        let state = if ended { ScheduleState::Completed } else { self.state };
        let changes = next != self.next || decided_until != self.decided_until;
        // The clock need not come to what the new data puts later: that `decided_at` stays says so.
        changes.then(|| Self { next, decided_until, state, ..self.clone() })
    }

    /// Where the cursor goes on, and up to when everything is decided then.
    fn by_wall_clock(&self, cursor: Timestamp, offset: UtcOffset) -> (Option<Timestamp>, Timestamp) {
        let occurrences = self.occurrences();
        let kept = self.timezone.offset_at(cursor) == offset;
        let wanted = self.named(if kept { cursor } else { self.instant_of(cursor, offset) });
        let next = occurrences.first_at_or_after(wanted);
        let before = next.map_or(occurrences.last_at_or_before(Timestamp::MAX), |next| occurrences.last_before(next));
        (next, before.map_or(self.decided_until, |before| before.max(self.decided_until)))
    }

    /// The occurrence that stood at this time of day. One that is none by the new data was moved there by a gap of the
    /// old: the time that the rule names is the last one before it, by no more than a gap leaves out.
    fn named(&self, at: Timestamp) -> Timestamp {
        let rule = Occurrences::new(&self.trigger, &self.timezone, self.anchor_at, None, None);
        rule.last_at_or_before(at).filter(|named| at.since(*named) <= LONGEST_GAP).unwrap_or(at)
    }

    fn by_elapsed_time(&self, cursor: Timestamp) -> Option<Timestamp> {
        if self.decided_until < cursor {
            self.occurrences().next_after(self.decided_until)
        } else {
            // The clock was set back, and what was decided lies ahead.
            self.occurrences().first_at_or_after(cursor)
        }
    }

    /// The instant of the wall-clock time that an instant had at another offset.
    fn instant_of(&self, at: Timestamp, offset: UtcOffset) -> Timestamp {
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
    use crate::{Cron, Limits, NewSchedule, Overlap, Patch, Plan, SchedulePatch, plan_due};
    use std::collections::HashSet;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect(text)
    }

    fn hours(hours: i8) -> UtcOffset {
        UtcOffset::from_hms(hours, 0, 0).expect("an offset")
    }

    fn by(expression: &str, now: &str) -> Schedule {
        let cron = Cron::new(expression).expect("valid");
        saved_at(at(now), NewSchedule::new("nornir", "cli", cron).timezone("Europe/Berlin"))
    }

    /// As older data left it: a cursor at a time of day of another offset, all before it decided.
    fn left(expression: &str, next: &str, decided: &str) -> Schedule {
        let schedule = by(expression, "2027-07-01T12:00:00Z");
        let next = Some(schedule.upcoming(at(next)));
        Schedule { next, decided_until: at(decided), decided_at: at(decided), ..schedule }
    }

    /// A cursor at 03:00 of another offset.
    fn by_old_data(next: &str, decided: &str) -> Schedule {
        left("0 3 * * *", next, decided)
    }

    fn next(schedule: &Schedule) -> Option<Timestamp> {
        schedule.next.map(|next| next.occurrence)
    }

    /// What a start does, and then a pass at each of these minutes: the occurrences that become jobs.
    fn runs(old: &Schedule, offset: UtcOffset, from: &str, minutes: u32) -> Vec<String> {
        let start = at(from);
        let mut schedule = old.rezoned(offset).unwrap_or_else(|| old.clone());
        schedule.next = schedule.realigned(start).or(schedule.next);
        let mut ran = Vec::new();
        for minute in 0..minutes {
            let now = start.plus_seconds(minute * 60);
            let plan: Plan = plan_due(&schedule, now, 0, 100);
            ran.extend(plan.create.iter().map(|job| job.occurrence.to_string()));
            let made: HashSet<_> = plan.create.iter().map(|job| job.uuid.clone()).collect();
            schedule = plan.settle(&schedule, now, &made);
        }
        ran
    }

    #[test]
    fn the_same_data_changes_nothing() {
        let schedule = by("0 3 * * *", "2027-07-01T12:00:00Z");
        assert_eq!(schedule.rezoned(hours(2)), None);
        let interval = saved_at(at("2027-07-01T12:00:00Z"), every("1h").timezone("Europe/Berlin"));
        assert_eq!(interval.rezoned(hours(5)), None);
        assert_eq!(Schedule { next: None, ..schedule }.rezoned(hours(5)), None);
    }

    #[test]
    fn the_cursor_keeps_its_time_of_day() {
        // Without daylight saving, 03:00 was an hour later.
        let old = by_old_data("2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z");
        assert_eq!(next(&old.rezoned(hours(1)).expect("a change")), Some(at("2027-07-02T01:00:00Z")));
        // With twice as much of it, an hour earlier.
        let old = by_old_data("2027-07-02T00:00:00Z", "2027-07-01T12:00:00Z");
        assert_eq!(next(&old.rezoned(hours(3)).expect("a change")), Some(at("2027-07-02T01:00:00Z")));
    }

    /// A new clock change leaves 02:30 of 28 March out: it is at the first instant after the gap.
    #[test]
    fn the_time_of_day_may_be_gone() {
        let old = left("30 2 * * *", "2027-03-28T01:30:00Z", "2027-03-27T01:30:00Z");
        assert_eq!(next(&old.rezoned(hours(1)).expect("a change")), Some(at("2027-03-28T01:00:00Z")));
    }

    /// The old data had the gap on 27 March, the new has it on the 28th, or a day before: 02:30 of the 27th is there again.
    #[test]
    fn a_time_of_day_that_was_left_out_may_come_back() {
        let old = left("30 2 * * *", "2027-03-27T01:00:00Z", "2027-03-26T01:30:00Z");
        assert_eq!(next(&old.rezoned(hours(2)).expect("a change")), Some(at("2027-03-27T01:30:00Z")));
        let old = left("30 2 * * *", "2027-03-29T01:00:00Z", "2027-03-28T01:30:00Z");
        assert_eq!(next(&old.rezoned(hours(2)).expect("a change")), Some(at("2027-03-29T00:30:00Z")));
    }

    /// No gap of a clock explains a cursor that is days or months off, and none of what is past comes again for it.
    #[test]
    fn what_no_gap_explains_is_not_looked_for_before() {
        let old = left("30 2 1 1 *", "2027-03-27T01:00:00Z", "2027-03-26T01:30:00Z");
        assert_eq!(next(&old.rezoned(hours(2)).expect("a change")), Some(at("2028-01-01T01:30:00Z")));
    }

    /// 03:00 of 2 July ran at 00:00Z by the old data; the new data puts it at 01:00Z, which is still to come.
    #[test]
    fn what_ran_does_not_run_again() {
        let old = by_old_data("2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z");
        let new = old.rezoned(hours(3)).expect("a change");
        assert_eq!(next(&new), Some(at("2027-07-03T01:00:00Z")));
        assert_eq!((new.decided_until, new.decided_at), (at("2027-07-02T01:00:00Z"), at("2027-07-02T00:00:00Z")));
        assert_eq!(new.realigned(at("2027-07-02T00:30:00Z")), None);
        assert_eq!(runs(&old, hours(3), "2027-07-02T00:30:00Z", 24 * 60 + 31), ["2027-07-03T01:00:00Z"]);
    }

    /// All of 09:00 to 09:55 ran by the old data, from 04:00Z on.
    #[test]
    fn none_of_many_that_ran_runs_again() {
        let old = left("*/5 9 * * *", "2027-07-03T04:00:00Z", "2027-07-02T04:55:00Z");
        let ran = runs(&old, hours(5), "2027-07-02T05:00:00Z", 26 * 60 + 6);
        assert_eq!(ran, ["2027-07-03T07:00:00Z", "2027-07-03T07:05:00Z"]);
        // In the midst of it, the later half runs still.
        let old = left("*/5 9 * * *", "2027-07-02T04:30:00Z", "2027-07-02T04:25:00Z");
        let ran = runs(&old, hours(5), "2027-07-02T04:26:00Z", 4 * 60);
        assert_eq!((ran.len(), ran[0].as_str(), ran[5].as_str()), (6, "2027-07-02T07:30:00Z", "2027-07-02T07:55:00Z"));
    }

    /// The clock change was put off by a day: 03:00 of 28 March ran at 01:00Z, which is 02:00 by the new data.
    #[test]
    fn what_ran_does_not_run_again_before_a_cursor_that_stays() {
        let schedule = by_old_data("2027-07-03T01:00:00Z", "2027-07-02T00:00:00Z");
        let new = schedule.rezoned(hours(2)).expect("a change");
        assert_eq!((new.next, new.decided_until), (schedule.next, at("2027-07-02T01:00:00Z")));
    }

    /// Elapsed time knows neither a second pass nor a gap: half an hour after the last is the next.
    #[test]
    fn free_hours_follow_elapsed_time() {
        let every_half = ["2027-07-02T09:30:00Z", "2027-07-02T10:00:00Z", "2027-07-02T10:30:00Z"];
        for offset in [0, 1, 2, 3, 5] {
            let old = left("*/30 * * * *", "2027-07-02T09:30:00Z", "2027-07-02T09:00:00Z");
            assert_eq!(runs(&old, hours(offset), "2027-07-02T09:10:00Z", 90), every_half);
        }
        // Where the offset moves by a part of an hour, so do the minutes.
        let old = left("0 * * * *", "2027-07-02T09:30:00Z", "2027-07-02T08:30:00Z");
        assert_eq!(runs(&old, hours(2), "2027-07-02T08:40:00Z", 30), ["2027-07-02T09:00:00Z"]);
        // What was decided by a clock that was ahead keeps nothing back.
        let old = left("0 * * * *", "2027-07-02T09:00:00Z", "2028-01-01T00:00:00Z");
        assert_eq!(runs(&old, hours(3), "2027-07-02T08:40:00Z", 30), ["2027-07-02T09:00:00Z"]);
    }

    /// Who set the clock back means what lies before: nothing is held back there.
    #[test]
    fn a_clock_that_is_set_back_is_not_kept_silent() {
        let old = by_old_data("2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z");
        assert_eq!(runs(&old, hours(3), "2027-07-01T00:30:00Z", 31), ["2027-07-01T01:00:00Z"]);
    }

    /// 03:00 of 2 July has run, and is to come by the new data: whatever is called meanwhile, 3 July is next.
    #[test]
    fn calls_move_nothing_to_what_ran() {
        let (old, now) = (by_old_data("2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z"), at("2027-07-02T00:30:00Z"));
        let new = old.rezoned(hours(3)).expect("a change");
        let limits = Limits::default();
        let third = Some(at("2027-07-03T01:00:00Z"));
        for off in [new.pause(now).expect("paused").schedule, new.disable(now).expect("disabled").schedule] {
            let resumed = off.resume(now, &limits).expect("resumed");
            assert_eq!((next(&resumed.schedule), resumed.passed_over), (third, 0));
        }
        let patch = SchedulePatch { jitter_seconds: Patch::Set(1), ..SchedulePatch::default() };
        let updated = new.update(now, patch, &limits).expect("updated").managed;
        assert_eq!((next(&updated.schedule), updated.passed_over), (third, 0));
        let run = new.run_now(now, &[], Overlap::Respect, &limits).expect("runs");
        assert_eq!(next(&run.schedule), third);
    }

    #[test]
    fn nothing_may_be_left() {
        let old = by_old_data("2027-07-02T00:00:00Z", "2027-07-01T12:00:00Z");
        let ended = Schedule { end_at: Some(at("2027-07-02T00:30:00Z")), ..old };
        let ended = ended.rezoned(hours(3)).expect("a change");
        assert_eq!((ended.next, ended.state), (None, ScheduleState::Completed));
    }
}
