//! An instant in UTC, in whole microseconds. Everything that is stored or compared is one of these; a local time, or
//! one without a zone, cannot be expressed.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// An instant in UTC, in whole microseconds since 1970-01-01T00:00:00Z.
///
/// The range is 0001-01-01 to 9999-12-31; arithmetic stops at its ends instead of overflowing. Serialised as RFC 3339
/// text in UTC; read from such text (any offset) or from epoch seconds.
///
/// ```
/// use norfab_model::Timestamp;
///
/// let at = Timestamp::parse("2026-11-30T02:00:00+02:00")?;
/// assert_eq!(at.to_string(), "2026-11-30T00:00:00Z");
/// assert_eq!(Timestamp::parse("1795996800")?, at);
/// # Ok::<(), norfab_model::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why a text or a number is not an instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// A date and time without an offset: it could mean any of 38 instants.
    #[error("the time {text:?} has no offset; write {corrected:?} for UTC, or end it with an offset such as +02:00")]
    NoOffset {
        /// What was given.
        text: String,
        /// The same time in UTC, in the accepted form.
        corrected: String,
    },
    /// Neither RFC 3339 nor a number of epoch seconds.
    #[error("{text:?} is not a time; write RFC 3339 such as 2026-11-30T02:00:00Z, or epoch seconds")]
    Malformed {
        /// What was given.
        text: String,
    },
    /// Outside the years 1 to 9999.
    #[error("{text} epoch seconds is no date of this calendar (years 1 to 9999){}", milliseconds_hint(.as_milliseconds.as_ref()))]
    OutOfRange {
        /// What was given.
        text: String,
        /// The same number read as milliseconds, when that is a date.
        as_milliseconds: Option<Timestamp>,
    },
}

fn milliseconds_hint(reading: Option<&Timestamp>) -> String {
    reading.map(|at| format!("; read as milliseconds it is {at}: give seconds")).unwrap_or_default()
}

const MICROS: i64 = 1_000_000;
const MIN_MICROS: i64 = -62_135_596_800 * MICROS;
const MAX_MICROS: i64 = 253_402_300_800 * MICROS - 1;

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The first instant of the year 1.
    pub const MIN: Timestamp = Timestamp(MIN_MICROS);
    /// The last microsecond of the year 9999.
    pub const MAX: Timestamp = Timestamp(MAX_MICROS);

    /// The instant this many microseconds after the epoch; outside the range, the nearer end of it.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        if micros < MIN_MICROS {
            Self::MIN
        } else if micros > MAX_MICROS {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The instant this many whole seconds after the epoch; outside the range, the nearer end of it.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_micros(seconds.saturating_mul(MICROS))
    }

    /// Seconds since the epoch as the database stores them (REAL). Exact to the microsecond until the year 2242.
    #[must_use]
    pub fn as_seconds_f64(self) -> f64 {
        // Whole and fraction are each exact; their sum is rounded once.
        self.0.div_euclid(MICROS) as f64 + self.0.rem_euclid(MICROS) as f64 / MICROS as f64
    }

    /// The instant nearest to a number of epoch seconds.
    ///
    /// # Errors
    /// [`TimestampError::OutOfRange`] for what is no date, NaN and infinities included.
    pub fn from_seconds_f64(seconds: f64) -> Result<Self, TimestampError> {
        let whole = seconds.floor();
        if !(whole >= (MIN_MICROS / MICROS) as f64 && whole <= (MAX_MICROS / MICROS) as f64) {
            let as_milliseconds = if seconds.is_finite() && (seconds / 1000.0).abs() < 2.5e11 {
                Self::from_seconds_f64(seconds / 1000.0).ok()
            } else {
                None
            };
            return Err(TimestampError::OutOfRange { text: seconds.to_string(), as_milliseconds });
        }
        let fraction = ((seconds - whole) * MICROS as f64).round() as i64;
        Ok(Self::from_micros(whole as i64 * MICROS + fraction))
    }

    /// Reads what a person gives: RFC 3339 with an offset (seconds may be left out, a blank may stand for the `T`), or
    /// a number of epoch seconds.
    ///
    /// # Errors
    /// [`TimestampError`]: a time without offset is refused with the corrected form.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let text = text.trim();
        if let Some(number) =
            text.parse::<f64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit() || b"+-.".contains(&b)))
        {
            return Self::from_seconds_f64(number);
        }
        let (date_time, offset) = split_offset(text);
        let Ok(utc) = OffsetDateTime::parse(&format!("{date_time}Z"), &Rfc3339) else {
            return Err(TimestampError::Malformed { text: text.to_owned() });
        };
        match offset {
            None => Err(TimestampError::NoOffset { text: text.to_owned(), corrected: Self::from(utc).to_string() }),
            Some(offset) => OffsetDateTime::parse(&format!("{date_time}{offset}"), &Rfc3339)
                .map(Self::from)
                .map_err(|_| TimestampError::Malformed { text: text.to_owned() }),
        }
    }

    /// This instant cut to whole seconds (towards the past).
    #[must_use]
    pub const fn floor_second(self) -> Self {
        Self(self.0.div_euclid(MICROS) * MICROS)
    }

    /// This instant, or the next whole second if it has a fraction.
    #[must_use]
    pub const fn ceil_second(self) -> Self {
        Self::from_micros(self.0.saturating_add(MICROS - 1).div_euclid(MICROS) * MICROS)
    }

    /// Later by this much; stops at [`Timestamp::MAX`].
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Earlier by this much; stops at [`Timestamp::MIN`].
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Later by whole seconds; stops at [`Timestamp::MAX`].
    #[must_use]
    pub fn plus_seconds(self, seconds: u32) -> Self {
        self.saturating_add(Duration::from_secs(u64::from(seconds)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Cuts a time into date with time of day, completed to whole seconds, and offset.
fn split_offset(text: &str) -> (String, Option<String>) {
    let text = text.replacen(' ', "T", 1).to_ascii_uppercase();
    let Some((date, rest)) = text.split_once('T') else { return (format!("{text}T00:00:00"), None) };
    let (time, offset) = match rest.find(['Z', '+', '-']) {
        Some(at) => (&rest[..at], Some(rest[at..].trim_start().to_owned())),
        None => (rest, None),
    };
    let seconds = if time.trim_end().len() == "02:00".len() { ":00" } else { "" };
    (format!("{date}T{}{seconds}", time.trim_end()), offset)
}

impl From<OffsetDateTime> for Timestamp {
    /// The same instant, a fraction of a microsecond cut off.
    fn from(at: OffsetDateTime) -> Self {
        Self::from_micros(i64::try_from(at.unix_timestamp_nanos().div_euclid(1000)).unwrap_or(i64::MAX))
    }
}

impl From<Timestamp> for OffsetDateTime {
    /// The same instant at offset UTC.
    fn from(at: Timestamp) -> Self {
        // The range of a Timestamp lies within that of an OffsetDateTime.
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.0) * 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&OffsetDateTime::from(*self).format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in RFC 3339 with an offset, or epoch seconds")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Timestamp, E> {
                Timestamp::from_seconds_f64(seconds as f64).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Timestamp, E> {
                Timestamp::from_seconds_f64(seconds as f64).map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Timestamp, E> {
                Timestamp::from_seconds_f64(seconds).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn reads(text: &str, shown: &str) {
        assert_eq!(Timestamp::parse(text).map(|at| at.to_string()), Ok(shown.to_owned()), "{text}");
    }

    #[track_caller]
    fn refuses(text: &str, part: &str) {
        let error = Timestamp::parse(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn accepted() {
        reads("2026-11-30T02:00:00Z", "2026-11-30T02:00:00Z");
        reads("2026-11-30T02:00:00.123456+02:00", "2026-11-30T00:00:00.123456Z");
        reads("2026-11-30t02:00:00z", "2026-11-30T02:00:00Z");
        reads("2026-11-30 02:00+02:00", "2026-11-30T00:00:00Z");
        reads("2026-11-30T02:00Z", "2026-11-30T02:00:00Z");
        reads(" 1795996800 ", "2026-11-30T00:00:00Z");
        reads("1795996800.5", "2026-11-30T00:00:00.5Z");
        reads("-1", "1969-12-31T23:59:59Z");
        reads("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn refused() {
        refuses("2026-11-30T02:00:00", "\"2026-11-30T02:00:00Z\"");
        refuses("2026-11-30 02:00", "\"2026-11-30T02:00:00Z\"");
        refuses("2026-11-30", "\"2026-11-30T00:00:00Z\"");
        refuses("1795996800000", "read as milliseconds it is 2026-11-30T00:00:00Z");
        refuses("tomorrow", "\"tomorrow\" is not a time");
        refuses("", "is not a time");
        refuses("nan", "is not a time");
        refuses("1e400", "is not a time");
        refuses("2026-02-30T00:00:00Z", "is not a time");
        refuses(&"9".repeat(400), "no date");
    }

    #[test]
    fn whole_seconds() {
        let at = Timestamp::from_micros(-1_500_000);
        assert_eq!((at.floor_second().as_micros(), at.ceil_second().as_micros()), (-2_000_000, -1_000_000));
        assert_eq!(Timestamp::from_seconds(7).ceil_second(), Timestamp::from_seconds(7));
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.saturating_sub(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn seconds_of_the_database_are_exact(micros in 0..7_258_118_400_000_000_i64) {
            let at = Timestamp::from_micros(micros);
            prop_assert_eq!(Timestamp::from_seconds_f64(at.as_seconds_f64()), Ok(at));
        }

        #[test]
        fn text_is_exact(micros in MIN_MICROS..=MAX_MICROS) {
            let at = Timestamp::from_micros(micros);
            prop_assert_eq!(Timestamp::parse(&at.to_string()), Ok(at));
            prop_assert_eq!(Timestamp::from(OffsetDateTime::from(at)), at);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = Timestamp::parse(&text);
        }
    }
}
