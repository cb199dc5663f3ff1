//! When the clocks of a zone change, and the stretches of one offset in between.

use time::UtcOffset;

use super::{Zone, in_jiff};
use crate::Timestamp;

/// More than any zone is away from UTC, or its clocks move at a change, in seconds: two days. Clock changes further
/// apart have nothing to do with each other.
pub(crate) const WIDEST_SECONDS: i64 = 2 * 86_400;

const MICROS: i64 = 1_000_000;

/// A clock change: the instant from which another offset holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The first instant with the new offset, a whole second.
    pub at: Timestamp,
    /// The offset until then.
    pub before: UtcOffset,
    /// The offset from then on, another one.
    pub after: UtcOffset,
}

impl Transition {
    /// By how many seconds the clocks go forward, leaving a gap; negative when they go back, and repeat as much.
    #[must_use]
    pub const fn forward_seconds(&self) -> i32 {
        self.after.whole_seconds() - self.before.whole_seconds()
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.at.as_micros().div_euclid(MICROS)
    }

    /// What the clocks would show at the change without it, in seconds since 1970-01-01T00:00 of the wall clock.
    pub(crate) fn wall_before(&self) -> i64 {
        self.seconds() + i64::from(self.before.whole_seconds())
    }

    /// What they show instead.
    pub(crate) fn wall_after(&self) -> i64 {
        self.seconds() + i64::from(self.after.whole_seconds())
    }
}

/// The longest time around an instant without a clock change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The change that begins it. None: it has no beginning.
    pub(crate) start: Option<Transition>,
    /// The change that ends it. None: it has no end.
    pub(crate) end: Option<Transition>,
    /// The offset in it, in seconds.
    pub(crate) offset: i64,
}

impl Zone {
    /// The first clock change after an instant. Changes of the name or of daylight saving alone are none.
    #[must_use]
    pub fn next_transition(&self, after: Timestamp) -> Option<Transition> {
        self.data.following(in_jiff(after)).find_map(|found| self.change_at(found.timestamp()))
    }

    /// The last clock change at or before an instant.
    #[must_use]
    pub fn previous_transition(&self, at: Timestamp) -> Option<Transition> {
        let behind = Timestamp::from_micros(at.as_micros().saturating_add(1));
        self.data.preceding(in_jiff(behind)).find_map(|found| self.change_at(found.timestamp()))
    }

    /// The stretch of one offset that an instant lies in.
    pub(crate) fn stretch(&self, at: Timestamp) -> Stretch {
        let offset = i64::from(self.offset_at(at).whole_seconds());
        Stretch { start: self.previous_transition(at), end: self.next_transition(at), offset }
    }

    /// The change at an instant of the data, when the offset is another one before it. Only the offsets of instants are
    /// asked for: what the data says of a change besides is not relied on.
    fn change_at(&self, at: jiff::Timestamp) -> Option<Transition> {
        let at = Timestamp::from_micros(at.as_microsecond());
        let before = self.offset_at(Timestamp::from_micros(at.as_micros() - 1));
        let after = self.offset_at(at);
        (before != after).then_some(Transition { at, before, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zone: &str, after: &str, at: &str, forward: i32) {
        let (zone, after) = (Zone::find(zone).expect(zone), Timestamp::parse(after).expect("time"));
        let next = zone.next_transition(after).expect("a change");
        assert_eq!((next.at, next.forward_seconds()), (Timestamp::parse(at).expect("time"), forward));
        assert_eq!(zone.previous_transition(next.at), Some(next));
        assert_ne!(zone.previous_transition(Timestamp::from_micros(next.at.as_micros() - 1)), Some(next));
        assert_eq!(zone.stretch(next.at).start, Some(next));
        assert_eq!(zone.stretch(after).end, Some(next));
    }

    #[test]
    fn clock_changes() {
        check("America/New_York", "2025-01-01T00:00:00Z", "2025-03-09T07:00:00Z", 3600);
        check("America/New_York", "2025-03-09T07:00:00Z", "2025-11-02T06:00:00Z", -3600);
        check("Europe/Berlin", "2090-01-01T00:00:00Z", "2090-03-26T01:00:00Z", 3600);
        check("Australia/Lord_Howe", "2025-01-01T00:00:00Z", "2025-04-05T15:00:00Z", -1800);
        check("Pacific/Apia", "2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z", 86_400);
        check("Africa/Cairo", "2025-01-01T00:00:00Z", "2025-04-24T22:00:00Z", 3600);
    }

    #[test]
    fn zones_without_clock_changes() {
        let utc = Zone::utc();
        assert_eq!(utc.stretch(Timestamp::EPOCH), Stretch { start: None, end: None, offset: 0 });
        let kolkata = Zone::find("Asia/Kolkata").expect("zone");
        assert_eq!(kolkata.next_transition(Timestamp::from_seconds(0)), None);
        for at in [Timestamp::MIN, Timestamp::MAX] {
            let berlin = Zone::find("Europe/Berlin").expect("zone").stretch(at);
            assert!(berlin.start.is_none() || berlin.end.is_none(), "{berlin:?}");
        }
    }
}
