//! A trigger bound to its anchor and to the first and last instant that count.

use std::time::Duration;

use super::Trigger;
use crate::Timestamp;

/// The occurrences of a schedule: the instants of its trigger from `start_at` to `end_at`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrences<'a> {
    trigger: &'a Trigger,
    anchor: Timestamp,
    from: Timestamp,
    until: Timestamp,
}

impl<'a> Occurrences<'a> {
    /// The instants of a trigger on the grid of `anchor`, within bounds that both count. None bounds nothing.
    #[must_use]
    pub fn new(
        trigger: &'a Trigger,
        anchor: Timestamp,
        start_at: Option<Timestamp>,
        end_at: Option<Timestamp>,
    ) -> Self {
        Self { trigger, anchor, from: start_at.unwrap_or(Timestamp::MIN), until: end_at.unwrap_or(Timestamp::MAX) }
    }

    /// The first occurrence after this instant.
    #[must_use]
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        if instant < self.from {
            return self.first_at_or_after(self.from);
        }
        self.trigger.next_after(self.anchor, instant).filter(|at| *at <= self.until)
    }

    /// The first occurrence at or after this instant.
    #[must_use]
    pub fn first_at_or_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let instant = instant.max(self.from);
        match self.last_at_or_before(instant) {
            Some(at) if at == instant => Some(at),
            _ => self.trigger.next_after(self.anchor, instant).filter(|at| *at <= self.until),
        }
    }

    /// The last occurrence at or before this instant.
    #[must_use]
    pub fn last_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.trigger.last_at_or_before(self.anchor, instant.min(self.until)).filter(|at| *at >= self.from)
    }

    /// The last occurrence before this instant.
    #[must_use]
    pub fn last_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.last_at_or_before(instant.saturating_sub(Duration::from_micros(1))).filter(|at| *at < instant)
    }

    /// How many occurrences there are from one instant to another, both included.
    #[must_use]
    pub fn count_in(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.trigger.count_between(self.anchor, from.max(self.from), to.min(self.until))
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

    fn every(seconds: u64) -> Trigger {
        Interval::new(seconds).expect("valid").into()
    }

    #[test]
    fn both_bounds_count() {
        let trigger = every(86_400);
        let start = Timestamp::parse("2027-01-01T09:00:00Z").expect("time");
        let end = Timestamp::parse("2027-01-04T09:00:00Z").expect("time");
        let days = Occurrences::new(&trigger, start, Some(start), Some(end));
        assert_eq!(days.after(at(0)).count(), 4);
        assert_eq!(days.count_in(Timestamp::MIN, Timestamp::MAX), 4);
        assert_eq!((days.next_after(at(0)), days.next_after(end)), (Some(start), None));
        assert_eq!((days.last_at_or_before(Timestamp::MAX), days.last_before(start)), (Some(end), None));
    }

    #[test]
    fn a_grid_at_the_ends_of_the_calendar() {
        let trigger = every(1);
        let all = Occurrences::new(&trigger, Timestamp::MIN, None, None);
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
            let occurrences = Occurrences::new(&trigger, at(anchor), start.map(at), end.map(at));
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
