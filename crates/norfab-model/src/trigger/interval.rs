//! Every so many seconds of elapsed time, counted from an anchor: all of it by division, so that a thousand years cost
//! what a second costs.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::TriggerError;
use crate::Timestamp;
use crate::text::shown;

/// The only mode: occurrences stay on their grid, however long a job takes.
const FIXED_RATE: &str = "fixed_rate";

const KEYS: &[&str] = &["seconds", "mode"];
const MICROS: i64 = 1_000_000;
/// The units of the text form, the largest first.
const UNITS: [(char, u32); 5] = [('w', 604_800), ('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// A positive number of whole seconds, at most ten years. The instants are `anchor + k * seconds` for every whole `k`.
///
/// A clock change of a zone does not matter: two hours are two hours of elapsed time. As text: `90s`, `5m`, `1h30m`,
/// `2d`, `1w`, or plain seconds.
///
/// ```
/// use norfab_model::{Interval, Timestamp};
///
/// let interval: Interval = "5m".parse()?;
/// let anchor = Timestamp::from_seconds(0);
/// assert_eq!(interval.next_after(anchor, Timestamp::from_seconds(300)), Some(Timestamp::from_seconds(600)));
/// # Ok::<(), norfab_model::TriggerError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    seconds: NonZeroU32,
}

impl Interval {
    /// The longest: ten years, that is 3,653 days.
    pub const MAX_SECONDS: u32 = 3653 * 86_400;

    /// An interval of this many seconds.
    ///
    /// # Errors
    /// [`TriggerError::Seconds`] for none, or more than [`MAX_SECONDS`](Self::MAX_SECONDS).
    pub fn new(seconds: u64) -> Result<Self, TriggerError> {
        u32::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds <= Self::MAX_SECONDS)
            .and_then(NonZeroU32::new)
            .map(|seconds| Self { seconds })
            .ok_or_else(|| TriggerError::Seconds { given: seconds.to_string() })
    }

    /// Its seconds.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.seconds.get()
    }

    /// The first instant of the grid after this one.
    #[must_use]
    pub fn next_after(self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        self.at(anchor, self.steps(anchor, instant.as_micros()) + 1)
    }

    /// The last instant of the grid at or before this one.
    #[must_use]
    pub fn last_at_or_before(self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        self.at(anchor, self.steps(anchor, instant.as_micros()))
    }

    /// How many instants of the grid there are from one instant to another, both included.
    #[must_use]
    pub fn count_between(self, anchor: Timestamp, from: Timestamp, to: Timestamp) -> u64 {
        let until = self.steps(anchor, to.as_micros());
        let before = self.steps(anchor, from.as_micros() - 1);
        u64::try_from(until - before).unwrap_or(0)
    }

    pub(super) fn config(self) -> Vec<(&'static str, Value)> {
        vec![("seconds", self.seconds().into()), ("mode", FIXED_RATE.into())]
    }

    pub(super) fn from_config(config: &Map<String, Value>) -> Result<Self, TriggerError> {
        if let Some(key) = config.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(TriggerError::UnknownKey { kind: "interval", given: shown(key), keys: KEYS });
        }
        match config.get("mode") {
            Some(mode) if mode != FIXED_RATE => Err(TriggerError::UnknownMode { given: shown(&mode.to_string()) }),
            _ => {
                let given = config.get("seconds");
                let seconds = given.and_then(Value::as_u64).ok_or_else(|| TriggerError::Seconds {
                    given: given.map_or_else(|| "absent".to_owned(), |given| shown(&given.to_string())),
                })?;
                Self::new(seconds)
            }
        }
    }

    fn step(self) -> i64 {
        i64::from(self.seconds()) * MICROS
    }

    /// How many whole steps an instant lies after the anchor, in microseconds; negative before it. The calendar spans
    /// less than a tenth of an `i64`, so that nothing here overflows.
    fn steps(self, anchor: Timestamp, micros: i64) -> i64 {
        (micros - anchor.as_micros()).div_euclid(self.step())
    }

    /// The instant so many steps after the anchor, when the calendar has it.
    fn at(self, anchor: Timestamp, steps: i64) -> Option<Timestamp> {
        let micros = anchor.as_micros() + steps * self.step();
        (Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros())
            .contains(&micros)
            .then(|| Timestamp::from_micros(micros))
    }
}

impl FromStr for Interval {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let unreadable = || TriggerError::Text { given: shown(text) };
        let trimmed = text.trim();
        if trimmed.parse::<f64>().is_ok() {
            let seconds = trimmed.parse().map_err(|_| TriggerError::Seconds { given: shown(trimmed) })?;
            return Self::new(seconds);
        }
        let mut rest = trimmed;
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (number, unit, after) = split_part(rest).ok_or_else(unreadable)?;
            let part = number.checked_mul(unit).and_then(|part| total.checked_add(part));
            total = part.ok_or_else(|| TriggerError::Seconds { given: shown(trimmed) })?;
            rest = after.trim_start();
        }
        if trimmed.is_empty() {
            return Err(unreadable());
        }
        Self::new(total).map_err(|_| TriggerError::Seconds { given: shown(trimmed) })
    }
}

/// The number, the seconds of the unit behind it, and what follows.
fn split_part(text: &str) -> Option<(u64, u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(digits);
    let mut chars = rest.chars();
    let letter = chars.next()?.to_ascii_lowercase();
    let (_, seconds) = UNITS.iter().find(|(unit, _)| *unit == letter)?;
    Some((number.parse().ok()?, u64::from(*seconds), chars.as_str()))
}

impl fmt::Display for Interval {
    /// The text form with the fewest numbers: `90s` is `1m30s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.seconds();
        let mut text = String::new();
        for (unit, seconds) in UNITS {
            if rest >= seconds {
                text.push_str(&(rest / seconds).to_string());
                text.push(unit);
                rest %= seconds;
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn every(seconds: u64) -> Interval {
        Interval::new(seconds).expect("valid")
    }

    #[track_caller]
    fn reads(text: &str, seconds: u32, shown: &str) {
        let interval: Interval = text.parse().expect(text);
        assert_eq!((interval.seconds(), interval.to_string()), (seconds, shown.to_owned()));
    }

    #[track_caller]
    fn refuses(text: &str, part: &str) {
        let error = text.parse::<Interval>().expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn text() {
        reads("300", 300, "5m");
        reads("90s", 90, "1m30s");
        reads("1h30m", 5400, "1h30m");
        reads(" 1H 30M ", 5400, "1h30m");
        reads("2d", 172_800, "2d");
        reads("7d", 604_800, "1w");
        reads("3653d", Interval::MAX_SECONDS, "521w6d");
    }

    #[test]
    fn refused_text() {
        for zero in ["0", "-5", "0.001", "NaN", "0m", "0h0s", "inf", "1e3"] {
            refuses(zero, &format!("must be 1 to 315619200 whole seconds, but it is {zero}"));
        }
        refuses("3654d", "but it is 3654d");
        refuses("99999999999999999999", "but it is 99999999999999999999");
        refuses("9999999999999999999w", "but it is 9999999999999999999w");
        for unreadable in ["", " ", "m", "5 minutes", "5x", "m5", "5m3", "1.5h", "-5m", "5é"] {
            refuses(unreadable, "is not an interval; write");
        }
    }

    #[test]
    fn around_the_anchor() {
        let (five, anchor) = (every(5), at(100));
        assert_eq!(five.next_after(anchor, at(99)), Some(at(100)));
        assert_eq!(five.next_after(anchor, at(100)), Some(at(105)));
        assert_eq!(five.next_after(anchor, at(3)), Some(at(5)));
        assert_eq!(five.last_at_or_before(anchor, at(104)), Some(at(100)));
        assert_eq!(five.last_at_or_before(anchor, at(105)), Some(at(105)));
        assert_eq!(five.last_at_or_before(anchor, at(99)), Some(at(95)));
        assert_eq!(five.count_between(anchor, at(100), at(110)), 3);
        assert_eq!(five.count_between(anchor, at(101), at(104)), 0);
        assert_eq!(five.count_between(anchor, at(110), at(100)), 0);
    }

    #[test]
    fn ends_of_the_calendar() {
        for seconds in [1, u64::from(Interval::MAX_SECONDS)] {
            for anchor in [Timestamp::MIN, at(0), Timestamp::MAX] {
                assert_eq!(every(seconds).next_after(anchor, Timestamp::MAX), None);
                assert!(every(seconds).next_after(anchor, Timestamp::MIN).is_some());
                assert!(every(seconds).last_at_or_before(anchor, Timestamp::MAX).is_some());
                let count = every(seconds).count_between(anchor, Timestamp::MIN, Timestamp::MAX);
                assert!(count.abs_diff(315_537_897_600 / seconds) <= 1);
            }
        }
        assert_eq!(every(7).last_at_or_before(at(0), Timestamp::MIN), None);
    }

    proptest! {
        #[test]
        fn agrees_with_walking(seconds in 1..50_u64, anchor in -200..200_i64, from in -200..200_i64, length in 0..200_i64) {
            let (interval, to) = (every(seconds), from + length);
            let grid: Vec<i64> = (-500..500).filter(|s| (s - anchor).rem_euclid(seconds as i64) == 0).collect();
            let within = grid.iter().filter(|s| (from..=to).contains(*s)).count();
            prop_assert_eq!(interval.count_between(at(anchor), at(from), at(to)), within as u64);
            let next = grid.iter().find(|s| **s > from).map(|s| at(*s));
            prop_assert_eq!(interval.next_after(at(anchor), at(from)), next);
            let last = grid.iter().rfind(|s| **s <= from).map(|s| at(*s));
            prop_assert_eq!(interval.last_at_or_before(at(anchor), at(from)), last);
        }

        #[test]
        fn text_round_trip(seconds in 1..=u64::from(Interval::MAX_SECONDS)) {
            prop_assert_eq!(every(seconds).to_string().parse(), Ok(every(seconds)));
        }
    }
}
