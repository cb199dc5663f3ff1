//! Calendar intervals: every so many days, weeks or months at a time of day.

mod text;

use std::fmt;

use serde_json::{Map, Value};

pub use text::TimeOfDay;

use super::civil::{DAY, MONTHS, first_day, length, month_of, weekday};
use super::clock::{Pace, WallTimes};
use super::names::WEEKDAYS;
use super::{TriggerError, config};

/// Every so many days, weeks or months at a time of day, by the clocks of the schedule's zone.
///
/// With more than one, the day, week or month in which the schedule's anchor lies is one that counts: every two weeks
/// from the week of the anchor, which begins on Monday. When the clocks change, it is a fixed time: in a gap it runs once,
/// at the first instant after it; in a repeated hour once, in the first pass.
///
/// ```
/// use norfab_model::Calendar;
///
/// assert_eq!(Calendar::daily("03:00")?.to_string(), "at 03:00 every day");
/// assert_eq!(Calendar::weekly("mon,thu@03:00")?.to_string(), "on Mondays and Thursdays at 03:00");
/// assert_eq!(Calendar::monthly("31@03:00")?.to_string(), "on the 31st, or else the last day, of every month at 03:00");
/// # Ok::<(), norfab_model::TriggerError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Calendar {
    cadence: Cadence,
    at: TimeOfDay,
}

/// Which days of a calendar interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cadence {
    /// Every so many days.
    Days {
        /// How many, 1 to [`Calendar::MAX_DAYS`].
        every: u32,
    },
    /// These weekdays of every so many weeks.
    Weeks {
        /// How many, 1 to [`Calendar::MAX_WEEKS`].
        every: u32,
        /// The days of such a week.
        weekdays: Weekdays,
    },
    /// A day of every so many months.
    Months {
        /// How many, 1 to [`Calendar::MAX_MONTHS`].
        every: u32,
        /// The day of such a month, 1 to 31; in a month without it, the last.
        day: u32,
    },
}

/// Days of the week, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weekdays(u8);

/// The version of the configuration.
const VERSION: u64 = 1;
/// The days that some month has.
const DAYS: std::ops::RangeInclusive<u32> = 1..=31;
const KEYS: [&str; 6] = ["every", "unit", "at", "weekdays", "day", "version"];

impl Weekdays {
    /// The days of these names, `mon` to `sun` or `monday` to `sunday` in any case. None: there are none, or one is no
    /// name.
    #[must_use]
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let found = names.into_iter().try_fold(0, |bits, name| Some(bits | 1 << number(name)?))?;
        (found != 0).then_some(Self(found))
    }

    /// A list of names and of ranges of them, as a person types it: `mon,thu`, `mon-fri`, `fri-sun`. A range goes on
    /// through the end of the week: `sun-thu`.
    pub(super) fn listed(text: &str) -> Option<Self> {
        let found = text.split(',').try_fold(0, |bits, entry| {
            let (from, to) = entry.split_once('-').unwrap_or((entry, entry));
            let (from, to) = (number(from.trim())?, number(to.trim())?);
            let length = (to + 7 - from) % 7;
            Some((from..=from + length).fold(bits, |bits, day| bits | 1 << (day % 7)))
        })?;
        (found != 0).then_some(Self(found))
    }

    /// Their names, `mon` to `sun`, Monday first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let monday_first = WEEKDAYS.iter().enumerate().cycle().skip(1).take(7);
        monday_first.filter(move |(number, _)| self.0 >> number & 1 == 1).map(|(_, name)| name.short)
    }

    /// As bits, Sunday being the lowest.
    pub(super) const fn bits(self) -> u64 {
        self.0 as u64
    }
}

/// The number of a weekday, Sunday being 0.
fn number(name: &str) -> Option<usize> {
    WEEKDAYS.iter().position(|known| known.is(name))
}

impl Calendar {
    /// The most days: ten years.
    pub const MAX_DAYS: u64 = 3653;
    /// The most weeks: ten years.
    pub const MAX_WEEKS: u64 = 521;
    /// The most months: ten years.
    pub const MAX_MONTHS: u64 = 120;

    /// A calendar interval.
    ///
    /// # Errors
    /// [`TriggerError::Every`] for none or too many; [`TriggerError::DayOfMonth`] for a day that no month has.
    pub fn new(cadence: Cadence, at: TimeOfDay) -> Result<Self, TriggerError> {
        let calendar = Self { cadence, at };
        let (unit, limit) = (calendar.unit(), calendar.most());
        if u64::from(calendar.every()) > limit || calendar.every() == 0 {
            return Err(TriggerError::Every { unit, given: calendar.every().into(), limit });
        }
        match cadence {
            Cadence::Months { day, .. } if !DAYS.contains(&day) => Err(TriggerError::DayOfMonth { given: day.into() }),
            _ => Ok(calendar),
        }
    }

    /// The same for every so many days, weeks or months, counted from the one of the schedule's anchor.
    ///
    /// # Errors
    /// [`TriggerError::Every`] for none or too many.
    pub fn every_nth(self, every: u32) -> Result<Self, TriggerError> {
        let cadence = match self.cadence {
            Cadence::Days { .. } => Cadence::Days { every },
            Cadence::Weeks { weekdays, .. } => Cadence::Weeks { every, weekdays },
            Cadence::Months { day, .. } => Cadence::Months { every, day },
        };
        Self::new(cadence, self.at)
    }

    /// Which days.
    #[must_use]
    pub const fn cadence(&self) -> Cadence {
        self.cadence
    }

    /// At which time of day.
    #[must_use]
    pub const fn at(&self) -> TimeOfDay {
        self.at
    }

    /// How many days, weeks or months lie from one to the next that counts.
    #[must_use]
    pub const fn every(&self) -> u32 {
        match self.cadence {
            Cadence::Days { every } | Cadence::Weeks { every, .. } | Cadence::Months { every, .. } => every,
        }
    }

    /// `day`, `week` or `month`.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.cadence {
            Cadence::Days { .. } => "day",
            Cadence::Weeks { .. } => "week",
            Cadence::Months { .. } => "month",
        }
    }

    const fn most(&self) -> u64 {
        match self.cadence {
            Cadence::Days { .. } => Self::MAX_DAYS,
            Cadence::Weeks { .. } => Self::MAX_WEEKS,
            Cadence::Months { .. } => Self::MAX_MONTHS,
        }
    }

    pub(super) fn config(&self) -> Vec<(&'static str, Value)> {
        let own = match self.cadence {
            Cadence::Days { .. } => None,
            Cadence::Weeks { weekdays, .. } => Some(("weekdays", weekdays.names().collect::<Vec<_>>().into())),
            Cadence::Months { day, .. } => Some(("day", day.into())),
        };
        let common = [("every", self.every().into()), ("unit", self.unit().into()), ("at", self.at.to_string().into())];
        common.into_iter().chain(own).chain([("version", VERSION.into())]).collect()
    }

    pub(super) fn from_config(config: &Map<String, Value>) -> Result<Self, TriggerError> {
        config::check("calendar", config, &KEYS, VERSION)?;
        let at = match config.get("at") {
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        let at = at.ok_or_else(|| wrong(config, "at", "a time of day such as \"03:00\" or \"03:00:30\""))?;
        let every = match config.get("every") {
            None => Some(1),
            Some(given) => given.as_u64().and_then(|every| u32::try_from(every).ok()),
        };
        let every = every.ok_or_else(|| wrong(config, "every", "a whole number of at most ten years"))?;
        let cadence = match config.get("unit").and_then(Value::as_str) {
            Some("day") => Cadence::Days { every },
            Some("week") => Cadence::Weeks { every, weekdays: weekdays_of(config)? },
            Some("month") => Cadence::Months { every, day: day_of(config)? },
            _ => return Err(wrong(config, "unit", "\"day\", \"week\" or \"month\"")),
        };
        for (key, belongs) in
            [("weekdays", matches!(cadence, Cadence::Weeks { .. })), ("day", matches!(cadence, Cadence::Months { .. }))]
        {
            if config.contains_key(key) && !belongs {
                return Err(wrong(config, key, "absent with this unit"));
            }
        }
        Self::new(cadence, at)
    }

    /// The calendar interval with its phase, counted from a local day.
    pub(super) const fn counted_from(&self, anchor: i64) -> Phased<'_> {
        Phased { calendar: self, anchor }
    }
}

fn wrong(config: &Map<String, Value>, key: &'static str, wanted: &'static str) -> TriggerError {
    TriggerError::Value { kind: "calendar", key, given: config::given(config, key), wanted }
}

fn weekdays_of(config: &Map<String, Value>) -> Result<Weekdays, TriggerError> {
    let names = config.get("weekdays").and_then(Value::as_array);
    let names = names.and_then(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let wanted = "a list of weekdays such as [\"mon\", \"thu\"]";
    names.and_then(Weekdays::named).ok_or_else(|| wrong(config, "weekdays", wanted))
}

fn day_of(config: &Map<String, Value>) -> Result<u32, TriggerError> {
    let day = config.get("day").and_then(Value::as_u64).and_then(|day| u32::try_from(day).ok());
    day.filter(|day| DAYS.contains(day)).ok_or_else(|| wrong(config, "day", "a day of the month, 1 to 31"))
}

/// A calendar interval and the local day from which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phased<'a> {
    calendar: &'a Calendar,
    anchor: i64,
}

impl Phased<'_> {
    fn every(&self) -> i64 {
        self.calendar.every().into()
    }

    /// The first day that counts from this one on.
    fn first_day_from(&self, day: i64) -> i64 {
        let every = self.every();
        match self.calendar.cadence {
            Cadence::Days { .. } => day + (self.anchor - day).rem_euclid(every),
            Cadence::Weeks { weekdays, .. } => {
                let week = week_of(day);
                let current = week + (week_of(self.anchor) - week).rem_euclid(every);
                let find = |week, from| (from..monday(week) + 7).find(|day| weekdays.bits() >> weekday(*day) & 1 == 1);
                let next = current + every;
                find(current, day.max(monday(current))).or_else(|| find(next, monday(next))).unwrap_or(day)
            }
            Cadence::Months { day: wanted, .. } => {
                let (month, _) = month_of(day);
                let current = month + (month_of(self.anchor).0 - month).rem_euclid(every);
                let found = day_in_month(current, wanted);
                if found >= day { found } else { day_in_month(current + every, wanted) }
            }
        }
    }

    /// The last day that counts up to this one, it included.
    fn last_day_until(&self, day: i64) -> i64 {
        let every = self.every();
        match self.calendar.cadence {
            Cadence::Days { .. } => day - (day - self.anchor).rem_euclid(every),
            Cadence::Weeks { weekdays, .. } => {
                let week = week_of(day);
                let current = week - (week - week_of(self.anchor)).rem_euclid(every);
                let find =
                    |week, until| (monday(week)..=until).rev().find(|day| weekdays.bits() >> weekday(*day) & 1 == 1);
                let previous = current - every;
                find(current, day.min(monday(current) + 6))
                    .or_else(|| find(previous, monday(previous) + 6))
                    .unwrap_or(day)
            }
            Cadence::Months { day: wanted, .. } => {
                let (month, _) = month_of(day);
                let current = month - (month - month_of(self.anchor).0).rem_euclid(every);
                let found = day_in_month(current, wanted);
                if found <= day { found } else { day_in_month(current - every, wanted) }
            }
        }
    }

    /// How many days count up to this one, it included, from one far before; only differences have a meaning.
    fn days_until(&self, day: i64) -> i64 {
        let last = self.last_day_until(day);
        match self.calendar.cadence {
            Cadence::Days { .. } => (last - self.anchor).div_euclid(self.every()),
            Cadence::Weeks { weekdays, .. } => {
                let (week, a_week) = (week_of(last), i64::from(weekdays.bits().count_ones()));
                let weeks = (week - week_of(self.anchor)).div_euclid(self.every());
                let begun = (monday(week)..=last).filter(|day| weekdays.bits() >> weekday(*day) & 1 == 1);
                weeks * a_week + i64::try_from(begun.count()).unwrap_or(a_week)
            }
            Cadence::Months { .. } => (month_of(last).0 - month_of(self.anchor).0).div_euclid(self.every()),
        }
    }

    fn at(&self) -> i64 {
        self.calendar.at.seconds().into()
    }

    /// Whether a day lies in the calendar: years 1 to 9999.
    fn has(day: i64) -> bool {
        MONTHS.contains(&month_of(day).0)
    }

    /// The day with its time, within the calendar and a little beyond: so that nothing overflows.
    fn day_at_or_after(wall: i64, at: i64) -> i64 {
        let day = wall.div_euclid(DAY).clamp(first_day(*MONTHS.start()) - 1, first_day(*MONTHS.end() + 1));
        if wall.rem_euclid(DAY) <= at { day } else { day + 1 }
    }
}

impl WallTimes for Phased<'_> {
    fn first_from(&self, wall: i64) -> Option<i64> {
        let day = self.first_day_from(Self::day_at_or_after(wall, self.at()));
        Self::has(day).then(|| day * DAY + self.at())
    }

    fn last_before(&self, wall: i64) -> Option<i64> {
        let day = self.last_day_until(Self::day_at_or_after(wall, self.at()) - 1);
        Self::has(day).then(|| day * DAY + self.at())
    }

    fn count(&self, from: i64, until: i64) -> u64 {
        let (first, end) = (Self::day_at_or_after(from, self.at()), Self::day_at_or_after(until, self.at()));
        u64::try_from(self.days_until(end - 1) - self.days_until(first - 1)).unwrap_or(0)
    }

    fn pace(&self) -> Pace {
        Pace::Fixed
    }
}

/// The number of a week that begins on Monday.
fn week_of(day: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (day + 3).div_euclid(7)
}

fn monday(week: i64) -> i64 {
    week * 7 - 3
}

/// The day of a month, or its last one.
fn day_in_month(month: i64, day: u32) -> i64 {
    first_day(month) + i64::from(day.min(length(month))) - 1
}

impl fmt::Display for Calendar {
    /// In words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&super::words::of_calendar(self))
    }
}

#[cfg(test)]
mod tests;
