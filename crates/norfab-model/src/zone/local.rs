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
