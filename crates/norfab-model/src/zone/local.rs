//! From what a wall clock shows to the instants at which it does, and the seam to programs that use `time-tz`.

use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};
use time_tz::OffsetResult;

use super::{Transition, WIDEST_SECONDS, Zone, in_jiff};
use crate::Timestamp;

/// The instants at which the clocks of a zone show a time of day on a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalInstants {
    /// Never: the clocks go forward over it.
    None {
        /// The change that leaves it out.
        gap: Transition,
    },
    /// Once.
    One(Timestamp),
    /// Twice: the clocks go back over it.
    Two {
        /// The first pass.
        first: Timestamp,
        /// The second pass.
        second: Timestamp,
        /// The change in between.
        fold: Transition,
    },
}

impl Zone {
    /// When the clocks show this. Beyond the years 1 to 9999 the nearer end counts.
    ///
    /// It rests on the offsets of instants alone: the changes nearby, and whether the clocks did show the time on either
    /// side of them. Were it shown three times, the first two count.
    #[must_use]
    pub fn instants_of(&self, local: PrimitiveDateTime) -> LocalInstants {
        let wall = Timestamp::from(local.assume_utc());
        let (from, until) = (shifted(wall, -WIDEST_SECONDS), shifted(wall, WIDEST_SECONDS));
        let mut stretch = self.stretch(from);
        let (mut shown, mut gap) = (None, None);
        loop {
            let at = shifted(wall, -stretch.offset);
            if stretch.start.is_none_or(|start| start.at <= at) && stretch.end.is_none_or(|end| at < end.at) {
                match (shown, stretch.start) {
                    (Some(first), Some(fold)) => return LocalInstants::Two { first, second: at, fold },
                    _ => shown = Some(at),
                }
            }
            let Some(end) = stretch.end.filter(|end| end.at <= until) else { break };
            if (end.wall_before()..end.wall_after()).contains(&wall.as_micros().div_euclid(1_000_000)) {
                gap = Some(end);
            }
            stretch = self.stretch(end.at);
        }
        match (shown, gap) {
            (None, Some(gap)) => LocalInstants::None { gap },
            // Without either it lies at an end of the calendar.
            _ => LocalInstants::One(shown.unwrap_or_else(|| shifted(wall, -stretch.offset))),
        }
    }
}

fn shifted(at: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_micros(at.as_micros() + seconds * 1_000_000)
}

/// An offset of a zone, as `time-tz` sees one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneOffset {
    offset: UtcOffset,
    name: String,
    is_dst: bool,
}

impl time_tz::Offset for ZoneOffset {
    fn to_utc(&self) -> UtcOffset {
        self.offset
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_dst(&self) -> bool {
        self.is_dst
    }
}

impl Zone {
    fn offset_of(&self, at: Timestamp) -> ZoneOffset {
        let info = self.data.to_offset_info(in_jiff(at));
        ZoneOffset { offset: self.offset_at(at), name: info.abbreviation().to_owned(), is_dst: info.dst().is_dst() }
    }
}

/// So that programs which hold their times in `time` can convert them by this zone with the extension traits of
/// `time-tz`, on the data that is compiled in here.
impl time_tz::TimeZone for Zone {
    type Offset = ZoneOffset;

    fn get_offset_utc(&self, date_time: &OffsetDateTime) -> ZoneOffset {
        self.offset_of(Timestamp::from(*date_time))
    }

    fn get_offset_local(&self, date_time: &OffsetDateTime) -> OffsetResult<ZoneOffset> {
        match self.instants_of(PrimitiveDateTime::new(date_time.date(), date_time.time())) {
            LocalInstants::None { .. } => OffsetResult::None,
            LocalInstants::One(at) => OffsetResult::Some(self.offset_of(at)),
            LocalInstants::Two { first, second, .. } => {
                OffsetResult::Ambiguous(self.offset_of(first), self.offset_of(second))
            }
        }
    }

    /// The offset of the present rule outside daylight saving, as of 2026.
    fn get_offset_primary(&self) -> ZoneOffset {
        const MONTHS: std::ops::Range<i64> = 0..12;
        let (start_of_2026, month) = (1_767_225_600, 2_629_746);
        let offsets = MONTHS.map(|n| self.offset_of(Timestamp::from_seconds(start_of_2026 + n * month)));
        offsets.min_by_key(|found| found.is_dst).unwrap_or_else(|| self.offset_of(Timestamp::EPOCH))
    }

    fn name(&self) -> &str {
        Zone::name(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::{datetime, offset};
    use time_tz::{Offset, OffsetDateTimeExt, PrimitiveDateTimeExt, TimeZone};

    const ZONES: [&str; 6] =
        ["Europe/Berlin", "Africa/Monrovia", "Pacific/Apia", "Asia/Manila", "Africa/Casablanca", "UTC"];

    fn zone(name: &str) -> Zone {
        Zone::find(name).expect(name)
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect(text)
    }

    #[track_caller]
    fn check(name: &str, local: PrimitiveDateTime, expected: &[&str], change: Option<&str>) {
        let (instants, found) = match zone(name).instants_of(local) {
            LocalInstants::None { gap } => (vec![], Some(gap.at)),
            LocalInstants::One(one) => (vec![one], None),
            LocalInstants::Two { first, second, fold } => (vec![first, second], Some(fold.at)),
        };
        assert_eq!(instants, expected.iter().map(|text| at(text)).collect::<Vec<_>>());
        assert_eq!(found, change.map(at));
    }

    #[test]
    fn gaps_and_folds() {
        let new_york = "America/New_York";
        check(new_york, datetime!(2025-03-09 01:59:59), &["2025-03-09T06:59:59Z"], None);
        check(new_york, datetime!(2025-03-09 02:00), &[], Some("2025-03-09T07:00:00Z"));
        check(new_york, datetime!(2025-03-09 02:59:59.999), &[], Some("2025-03-09T07:00:00Z"));
        check(new_york, datetime!(2025-03-09 03:00), &["2025-03-09T07:00:00Z"], None);
        let both = ["2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z"];
        check(new_york, datetime!(2025-11-02 01:30), &both, Some("2025-11-02T06:00:00Z"));
        check(new_york, datetime!(2025-11-02 02:00), &["2025-11-02T07:00:00Z"], None);
        check("Pacific/Apia", datetime!(2011-12-30 12:00), &[], Some("2011-12-30T10:00:00Z"));
        check("UTC", datetime!(2026-11-30 12:00), &["2026-11-30T12:00:00Z"], None);
        let both = ["2025-04-05T14:45:00Z", "2025-04-05T15:15:00Z"];
        check("Australia/Lord_Howe", datetime!(2025-04-06 01:45), &both, Some("2025-04-05T15:00:00Z"));
    }

    #[test]
    fn as_a_zone_of_time_tz() {
        let berlin = zone("europe/berlin");
        assert_eq!(TimeZone::name(&berlin), "europe/berlin");
        let local = datetime!(2026-07-01 12:00 UTC).to_timezone(&berlin);
        assert_eq!(local, datetime!(2026-07-01 14:00 +2));
        let summer = berlin.get_offset_utc(&local);
        assert_eq!((summer.to_utc(), summer.name(), summer.is_dst()), (offset!(+2), "CEST", true));
        let primary = berlin.get_offset_primary();
        assert_eq!((primary.to_utc(), primary.name(), primary.is_dst()), (offset!(+1), "CET", false));
        assert_eq!(zone("America/Santiago").get_offset_primary().to_utc(), offset!(-4));
        let assumed = |local: PrimitiveDateTime| local.assume_timezone(&berlin);
        assert_eq!(assumed(datetime!(2026-01-01 12:00)).take(), Some(datetime!(2026-01-01 12:00 +1)));
        assert!(assumed(datetime!(2026-03-29 02:30)).is_none());
        let twice = assumed(datetime!(2026-10-25 02:30));
        assert_eq!(twice.take_first(), Some(datetime!(2026-10-25 02:30 +2)));
        assert_eq!(twice.take_second(), Some(datetime!(2026-10-25 02:30 +1)));
    }

    proptest! {
        /// There and back; and what is said never to be shown is not shown on any side.
        #[test]
        fn round_trip(
            name in prop::sample::select(&ZONES),
            seconds in -3_000_000_000..6_000_000_000_i64,
            near in -100_000..100_000_i64,
        ) {
            let zone = zone(name);
            let change = zone.next_transition(Timestamp::from_seconds(seconds));
            let at = change.map_or(seconds, |change| change.seconds()) + near;
            let local = zone.local(Timestamp::from_seconds(at));
            let local = PrimitiveDateTime::new(local.date(), local.time());
            let found = match zone.instants_of(local) {
                LocalInstants::None { .. } => vec![],
                LocalInstants::One(one) => vec![one],
                LocalInstants::Two { first, second, .. } => vec![first, second],
            };
            prop_assert!(found.contains(&Timestamp::from_seconds(at)), "{}", local);
            let shown = |at: Timestamp| zone.local(at).replace_offset(UtcOffset::UTC);
            prop_assert!(found.iter().all(|at| shown(*at) == local.assume_utc()) && found.is_sorted());
        }
    }
}
