//! Instants for a person: local date and time with the offset, and how far away that is.

use std::time::Duration;

use norfab_client::{Clock, SystemClock, Timestamp};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// Shows instants as seen from one instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    now: Timestamp,
    zone: Zone,
}

#[derive(Debug, Clone, Copy)]
enum Zone {
    /// The system's, or what `TZ` says.
    Local,
    /// Always this one.
    #[cfg(test)]
    Fixed(UtcOffset),
}

const DATE_TIME: &[BorrowedFormatItem<'static>] = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
const OFFSET: &[BorrowedFormatItem<'static>] = format_description!("[offset_hour sign:mandatory]:[offset_minute]");

impl Moments {
    /// As seen from now, in the local zone; in UTC where that is not known.
    #[must_use]
    pub(crate) fn now() -> Self {
        Self { now: SystemClock.now(), zone: Zone::Local }
    }

    /// As seen from an instant, in UTC.
    #[cfg(test)]
    pub(crate) fn at(now: Timestamp) -> Self {
        Self { now, zone: Zone::Fixed(UtcOffset::UTC) }
    }

    /// An instant with its offset, in a form that `--at` takes again, and how far away it is.
    #[must_use]
    pub(crate) fn show(&self, at: Timestamp) -> String {
        format!("{} ({})", self.absolute(at), self.relative(at))
    }

    /// The same, then only how far away it is, then only about that: for places of different width.
    #[must_use]
    pub(crate) fn forms(&self, at: Timestamp) -> [String; 3] {
        [self.show(at), self.relative(at), self.distance(at, 1)]
    }

    /// An instant with its offset, to the second.
    #[must_use]
    pub(crate) fn absolute(&self, at: Timestamp) -> String {
        let utc = OffsetDateTime::from(at);
        let offset = match self.zone {
            Zone::Local => UtcOffset::local_offset_at(utc).unwrap_or(UtcOffset::UTC),
            #[cfg(test)]
            Zone::Fixed(offset) => offset,
        };
        with_offset(at, offset)
    }

    /// How far away an instant is: `in 5 min`, `3 h 20 min ago`, `now`.
    #[must_use]
    pub(crate) fn relative(&self, at: Timestamp) -> String {
        self.distance(at, 2)
    }

    fn distance(&self, at: Timestamp, units: usize) -> String {
        match (rounded(at.since(self.now)), rounded(self.now.since(at))) {
            (0, 0) => "now".to_owned(),
            (0, past) => format!("{} ago", length(past, units)),
            (future, _) => format!("in {}", length(future, units)),
        }
    }
}

/// An instant in UTC, to the second.
#[must_use]
pub(crate) fn in_utc(at: Timestamp) -> String {
    with_offset(at, UtcOffset::UTC)
}

/// An instant as the clocks of a zone show it, with their offset, to the second.
#[must_use]
pub(crate) fn in_zone(at: Timestamp, zone: &norfab_client::Zone) -> String {
    with_offset(at, zone.offset_at(at))
}

fn with_offset(at: Timestamp, offset: UtcOffset) -> String {
    let utc = OffsetDateTime::from(at);
    // At the end of the calendar the local date may not exist.
    let (local, offset) = utc.checked_to_offset(offset).map_or((utc, UtcOffset::UTC), |local| (local, offset));
    let offset = if offset.is_utc() { Ok("Z".to_owned()) } else { local.format(OFFSET) };
    match (local.format(DATE_TIME), offset) {
        (Ok(date_time), Ok(offset)) => format!("{date_time}{offset}"),
        _ => at.to_string(),
    }
}

/// A span since the start of something, to the millisecond: `+0.012 s`.
#[must_use]
pub(crate) fn elapsed(span: Duration) -> String {
    format!("+{}.{:03} s", span.as_secs(), span.subsec_millis())
}

/// To the nearest second.
fn rounded(span: Duration) -> u64 {
    span.saturating_add(Duration::from_millis(500)).as_secs()
}

/// A length of time in its largest units, so many of them.
fn length(seconds: u64, units: usize) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let largest = UNITS.iter().position(|(_, size)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (name, size) in UNITS.iter().skip(largest).take(units) {
        if rest / size > 0 {
            parts.push(format!("{} {name}", rest / size));
        }
        rest %= size;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::offset;

    const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn moments(zone: UtcOffset) -> Moments {
        Moments { now: NOW, zone: Zone::Fixed(zone) }
    }

    #[track_caller]
    fn check(seconds: i64, shown: &str) {
        assert_eq!(moments(UtcOffset::UTC).relative(Timestamp::from_seconds(1_795_996_800 + seconds)), shown);
    }

    #[test]
    fn distances() {
        check(0, "now");
        check(1, "in 1 s");
        check(-59, "59 s ago");
        check(300, "in 5 min");
        check(330, "in 5 min 30 s");
        check(-12_000, "3 h 20 min ago");
        check(86_400, "in 1 d");
        check(90_061, "in 1 d 1 h");
        check(86_401, "in 1 d");
        check(-400 * 86_400, "400 d ago");
    }

    #[test]
    fn forms_for_places_of_different_width() {
        let at = NOW.plus_seconds(5400);
        let forms = ["2026-11-30 01:30:00Z (in 1 h 30 min)", "in 1 h 30 min", "in 1 h"];
        assert_eq!(moments(UtcOffset::UTC).forms(at), forms);
    }

    #[test]
    fn fractions_round() {
        let near = Moments { now: NOW, zone: Zone::Fixed(UtcOffset::UTC) };
        assert_eq!(near.relative(Timestamp::from_micros(NOW.as_micros() + 2_999_000)), "in 3 s");
        assert_eq!(near.relative(Timestamp::from_micros(NOW.as_micros() - 400_000)), "now");
        assert_eq!(elapsed(Duration::from_micros(12_999)), "+0.012 s");
    }

    #[test]
    fn offsets_are_shown_and_read_again() {
        for (zone, shown) in [
            (offset!(UTC), "2026-11-30 00:05:00Z"),
            (offset!(+5:30), "2026-11-30 05:35:00+05:30"),
            (offset!(-3), "2026-11-29 21:05:00-03:00"),
        ] {
            let at = NOW.plus_seconds(300);
            assert_eq!(moments(zone).show(at), format!("{shown} (in 5 min)"));
            assert_eq!(Timestamp::parse(&moments(zone).absolute(at)), Ok(at));
        }
    }

    #[test]
    fn the_end_of_the_calendar() {
        assert_eq!(moments(offset!(+14)).absolute(Timestamp::MAX), "9999-12-31 23:59:59Z");
    }
}
