//! Spans of time as a person types them: `90s`, `5m`, `1d12h`.

use std::time::Duration;

/// Why a text is no span of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpanError {
    /// Something else than numbers with units.
    #[error(
        "{text:?} is not a span of time; write whole numbers with units, largest first, such as 90s, 5m, 2h or 1d12h"
    )]
    Malformed {
        /// What was given.
        text: String,
    },
    /// A number alone.
    #[error("{text:?} has no unit; write {text}s for seconds, or use m, h or d")]
    NoUnit {
        /// What was given.
        text: String,
    },
    /// Less than nothing.
    #[error("{text:?} is negative; a span of time is at least 0, such as 90s, 5m, 2h or 1d12h")]
    Negative {
        /// What was given.
        text: String,
    },
    /// More than a number of seconds can hold.
    #[error("{text:?} is longer than can be counted")]
    TooLong {
        /// What was given.
        text: String,
    },
    /// Nothing at all, where something is needed.
    #[error("give at least 1 second")]
    Zero,
}

/// The units, the largest first, and their seconds.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// Reads a span that must have a unit.
///
/// # Errors
/// [`SpanError`].
pub(crate) fn span(text: &str) -> Result<Duration, SpanError> {
    not_negative(text)?;
    if is_number(text) {
        return Err(SpanError::NoUnit { text: text.to_owned() });
    }
    units(text).map(Duration::from_secs)
}

/// Reads whole seconds: a number alone, or a span with units.
///
/// # Errors
/// [`SpanError`].
pub(crate) fn seconds(text: &str) -> Result<u64, SpanError> {
    not_negative(text)?;
    if is_number(text) {
        return text.parse().map_err(|_| SpanError::TooLong { text: text.to_owned() });
    }
    units(text)
}

/// Reads a limit for waiting: as [`seconds`], but not nothing.
///
/// # Errors
/// [`SpanError`].
pub(crate) fn limit(text: &str) -> Result<Duration, SpanError> {
    match seconds(text)? {
        0 => Err(SpanError::Zero),
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

/// Refuses what would be a span without its sign.
fn not_negative(text: &str) -> Result<(), SpanError> {
    match text.strip_prefix('-') {
        Some(rest) if is_number(rest) || units(rest).is_ok() => Err(SpanError::Negative { text: text.to_owned() }),
        _ => Ok(()),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Adds up numbers with units. Each unit comes once at most, the larger before the smaller.
fn units(text: &str) -> Result<u64, SpanError> {
    let malformed = || SpanError::Malformed { text: text.to_owned() };
    let too_long = || SpanError::TooLong { text: text.to_owned() };
    let mut rest = text;
    let mut total = 0_u64;
    let mut units = UNITS.iter();
    if rest.is_empty() {
        return Err(malformed());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0).ok_or_else(malformed)?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.chars().next().ok_or_else(malformed)?;
        let (_, factor) = units.find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        let number: u64 = number.parse().map_err(|_| too_long())?;
        total = number.checked_mul(*factor).and_then(|part| total.checked_add(part)).ok_or_else(too_long)?;
        rest = tail.strip_prefix(unit).unwrap_or_default();
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: u64) {
        assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
    }

    #[track_caller]
    fn refuses(text: &str, part: &str) {
        let error = span(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn accepted() {
        check("90s", 90);
        check("0s", 0);
        check("5m", 300);
        check("2h", 7200);
        check("1d12h", 129_600);
        check("1d2h3m4s", 93_784);
        check("400d", 34_560_000);
    }

    #[test]
    fn refused() {
        refuses("90", "write 90s for seconds");
        for text in ["", "s", "5", "-5s", "1.5h", "5 m", "5x", "1h1d", "1h2h", "5sm", "1d 12h", "५s", "é"] {
            assert!(span(text).is_err(), "{text}");
        }
        refuses("1.5h", "not a span of time");
        refuses("-5s", "\"-5s\" is negative");
        refuses("-1d12h", "is negative");
        refuses("-5", "is negative");
        refuses("--wait", "not a span of time");
        refuses("99999999999999999999s", "longer than can be counted");
        refuses("18446744073709551615d", "longer than can be counted");
        refuses("18446744073709551615m1s", "longer than can be counted");
    }

    #[test]
    fn seconds_need_no_unit() {
        assert_eq!((seconds("600"), seconds("10m"), seconds("0")), (Ok(600), Ok(600), Ok(0)));
        assert!(seconds("99999999999999999999").is_err() && seconds("ten").is_err());
        assert_eq!(seconds("-5"), Err(SpanError::Negative { text: "-5".into() }));
    }

    #[test]
    fn limits_are_something() {
        assert_eq!(limit("5"), Ok(Duration::from_secs(5)));
        assert_eq!((limit("0"), limit("0s")), (Err(SpanError::Zero), Err(SpanError::Zero)));
    }
}
