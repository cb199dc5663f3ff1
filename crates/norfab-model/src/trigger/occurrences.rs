//! A trigger bound to its zone, its anchor, and the first and last instant that count.

use std::fmt;
use std::time::Duration;

use time::{OffsetDateTime, PrimitiveDateTime};

use super::calendar::Phased;
use super::clock::OnClock;
use super::{Cron, Interval, TimeOfDay, Trigger, civil, words};
use crate::{Timestamp, Transition, Zone};

/// The occurrences of a schedule: the instants of its trigger from `start_at` to `end_at`, both included.
#[derive(Debug, Clone, Copy)]
pub struct Occurrences<'a> {
    rule: Rule<'a>,
    from: Timestamp,
    until: Timestamp,
}

/// A trigger with what it needs to yield instants.
#[derive(Debug, Clone, Copy)]
enum Rule<'a> {
    Interval { interval: Interval, anchor: Timestamp },
    Cron(OnClock<'a, &'a Cron>),
    Calendar(OnClock<'a, Phased<'a>>),
}

/// An occurrence that stands for times of day which the clocks of the zone never show: they go forward over them, and it
/// runs as soon as they have, or, with free hours, when it would have run without the change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The times that the rule names, by the wall clock: the first few of them, at least one.
    pub named: Vec<PrimitiveDateTime>,
    /// How many there are.
    pub count: u64,
    /// A time of the rule that the clocks do show then: it has no run of its own.
    pub shared: Option<PrimitiveDateTime>,
    /// The clock change that leaves them out.
    pub gap: Transition,
}

impl fmt::Display for Moved {
    /// `02:30 is left out when the clocks go forward from 02:00 to 03:00`; with what else comes to the same run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |offset| {
            let local = OffsetDateTime::from(self.gap.at).checked_to_offset(offset);
            local.map(|at| PrimitiveDateTime::new(at.date(), at.time()))
        };
        let (from, to) = (clock(self.gap.before), clock(self.gap.after));
        let within_a_day = from.zip(to).is_some_and(|(from, to)| from.date() == to.date());
        let shown = |at: &PrimitiveDateTime| {
            let time = TimeOfDay::from(at.time());
            if within_a_day { time.to_string() } else { format!("{} {time}", at.date()) }
        };
        let change = |at: Option<PrimitiveDateTime>| at.as_ref().map_or_else(String::new, shown);
        let named: Vec<String> = self.named.iter().map(shown).collect();
        let are = if self.count == 1 { "is" } else { "are" };
        let (named, from, to) = (words::some_of(&named, self.count), change(from), change(to));
        write!(f, "{named} {are} left out when the clocks go forward from {from} to {to}")?;
        match (&self.shared, self.count) {
            (Some(shared), 1) => write!(f, ", and comes to one run with {}", shown(shared)),
            (Some(shared), _) => write!(f, ", and come to one run with {}", shown(shared)),
            (None, 1) => Ok(()),
            (None, _) => f.write_str(", and come to one run"),
        }
    }
}

impl<'a> Rule<'a> {
    fn new(trigger: &'a Trigger, zone: &'a Zone, anchor: Timestamp) -> Self {
        match trigger {
            Trigger::Interval(interval) => Self::Interval { interval: *interval, anchor },
            Trigger::Cron(cron) => Self::Cron(OnClock { times: cron, zone }),
            Trigger::Calendar(calendar) => {
                let offset = i64::from(zone.offset_at(anchor).whole_seconds());
                let day = (anchor.as_micros().div_euclid(1_000_000) + offset).div_euclid(civil::DAY);
                Self::Calendar(OnClock { times: calendar.counted_from(day), zone })
            }
        }
    }

    fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Interval { interval, anchor } => interval.next_after(*anchor, instant),
            Self::Cron(cron) => cron.next_after(instant),
            Self::Calendar(calendar) => calendar.next_after(instant),
        }
    }

    fn last_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Interval { interval, anchor } => interval.last_at_or_before(*anchor, instant),
            Self::Cron(cron) => cron.last_at_or_before(instant),
            Self::Calendar(calendar) => calendar.last_at_or_before(instant),
        }
    }

    fn count_between(&self, from: Timestamp, to: Timestamp) -> u64 {
        match self {
            Self::Interval { interval, anchor } => interval.count_between(*anchor, from, to),
            Self::Cron(cron) => cron.count_between(from, to),
            Self::Calendar(calendar) => calendar.count_between(from, to),
        }
    }

    fn moved(&self, occurrence: Timestamp) -> Option<Moved> {
        let (left_out, zone) = match self {
            Self::Interval { .. } => return None,
            Self::Cron(cron) => (cron.left_out(occurrence)?, cron.zone),
            Self::Calendar(calendar) => (calendar.left_out(occurrence)?, calendar.zone),
        };
        let gap = zone.previous_transition(occurrence)?;
        let by_the_clock = |wall: i64| {
            let named = OffsetDateTime::from(Timestamp::from_seconds(wall));
            PrimitiveDateTime::new(named.date(), named.time())
        };
        let named = left_out.first.into_iter().map(by_the_clock).collect();
        Some(Moved { named, count: left_out.count, shared: left_out.shared.map(by_the_clock), gap })
    }
}

impl<'a> Occurrences<'a> {
    /// The instants of a trigger in a zone, within bounds that both count. None bounds nothing. An interval lies on the
    /// grid of `anchor`, a calendar interval of more than one day, week or month counts from its date.
    #[must_use]
    pub fn new(
        trigger: &'a Trigger,
        zone: &'a Zone,
        anchor: Timestamp,
        start_at: Option<Timestamp>,
        end_at: Option<Timestamp>,
    ) -> Self {
        let rule = Rule::new(trigger, zone, anchor);
        Self { rule, from: start_at.unwrap_or(Timestamp::MIN), until: end_at.unwrap_or(Timestamp::MAX) }
    }

    /// The first occurrence after this instant.
    #[must_use]
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        if instant < self.from {
            return self.first_at_or_after(self.from);
        }
        self.rule.next_after(instant).filter(|at| *at <= self.until)
    }

    /// The first occurrence at or after this instant.
    #[must_use]
    pub fn first_at_or_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let instant = instant.max(self.from);
        match self.last_at_or_before(instant) {
            Some(at) if at == instant => Some(at),
            _ => self.rule.next_after(instant).filter(|at| *at <= self.until),
        }
    }

    /// The last occurrence at or before this instant.
    #[must_use]
    pub fn last_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.rule.last_at_or_before(instant.min(self.until)).filter(|at| *at >= self.from)
    }

    /// The last occurrence before this instant.
    #[must_use]
    pub fn last_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.last_at_or_before(instant.saturating_sub(Duration::from_micros(1))).filter(|at| *at < instant)
    }

    /// How many occurrences there are from one instant to another, both included.
    #[must_use]
    pub fn count_in(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.rule.count_between(from.max(self.from), to.min(self.until))
    }

    /// Whether a clock change moved this occurrence, or made one of several: it has times of day that the clocks go forward
    /// over.
    #[must_use]
    pub fn moved(&self, occurrence: Timestamp) -> Option<Moved> {
        self.rule.moved(occurrence)
    }

    /// The occurrences after this instant, in order.
    pub fn after(self, instant: Timestamp) -> impl Iterator<Item = Timestamp> + 'a {
        std::iter::successors(self.next_after(instant), move |at| self.next_after(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    static UTC: std::sync::LazyLock<Zone> = std::sync::LazyLock::new(Zone::utc);

    fn every(seconds: u64) -> Trigger {
        Interval::new(seconds).expect("valid").into()
    }

    #[test]
    fn both_bounds_count() {
        let trigger = every(86_400);
        let start = Timestamp::parse("2027-01-01T09:00:00Z").expect("time");
        let end = Timestamp::parse("2027-01-04T09:00:00Z").expect("time");
        let days = Occurrences::new(&trigger, &UTC, start, Some(start), Some(end));
        assert_eq!(days.after(at(0)).count(), 4);
        assert_eq!(days.count_in(Timestamp::MIN, Timestamp::MAX), 4);
        assert_eq!((days.next_after(at(0)), days.next_after(end)), (Some(start), None));
        assert_eq!((days.last_at_or_before(Timestamp::MAX), days.last_before(start)), (Some(end), None));
    }

    #[test]
    fn a_grid_at_the_ends_of_the_calendar() {
        let trigger = every(1);
        let all = Occurrences::new(&trigger, &UTC, Timestamp::MIN, None, None);
        assert_eq!(all.first_at_or_after(Timestamp::MIN), Some(Timestamp::MIN));
        assert_eq!(all.last_before(Timestamp::MIN), None);
        assert_eq!(all.next_after(Timestamp::MAX), None);
        assert_eq!(all.count_in(Timestamp::MIN, Timestamp::MAX), 315_537_897_600);
    }

    proptest! {
        #[test]
        fn agrees_with_walking(
            seconds in 1..20_u64,
            anchor in -30..30_i64,
            start in prop::option::of(-50..50_i64),
            end in prop::option::of(-50..50_i64),
            instant in -60..60_i64,
            length in 0..60_i64,
        ) {
            let trigger = every(seconds);
            let occurrences = Occurrences::new(&trigger, &UTC, at(anchor), start.map(at), end.map(at));
            let all: Vec<i64> = (-200..200)
                .filter(|s| (s - anchor).rem_euclid(seconds as i64) == 0)
                .filter(|s| start.is_none_or(|start| *s >= start) && end.is_none_or(|end| *s <= end))
                .collect();
            let find = |found: Option<&i64>| found.map(|s| at(*s));
            prop_assert_eq!(occurrences.next_after(at(instant)), find(all.iter().find(|s| **s > instant)));
            prop_assert_eq!(occurrences.first_at_or_after(at(instant)), find(all.iter().find(|s| **s >= instant)));
            prop_assert_eq!(occurrences.last_at_or_before(at(instant)), find(all.iter().rfind(|s| **s <= instant)));
            prop_assert_eq!(occurrences.last_before(at(instant)), find(all.iter().rfind(|s| **s < instant)));
            let within = all.iter().filter(|s| (instant..=instant + length).contains(*s)).count();
            prop_assert_eq!(occurrences.count_in(at(instant), at(instant + length)), within as u64);
            let walked: Vec<_> = occurrences.after(at(instant)).take(5).collect();
            let expected: Vec<_> = all.iter().filter(|s| **s > instant).map(|s| at(*s)).take(5).collect();
            prop_assert_eq!(walked, expected);
        }
    }
}
