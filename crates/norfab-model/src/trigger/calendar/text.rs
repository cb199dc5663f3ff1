//! Calendar intervals as a person types them.

use std::fmt;
use std::str::FromStr;

use super::{Cadence, Calendar, Weekdays};
use crate::TriggerError;
use crate::text::shown;

const DAILY: &str = "a time of day such as 03:00 or 03:00:30";
const WEEKLY: &str = "weekdays and a time of day such as mon,thu@03:00 or mon-fri@03:00";
const MONTHLY: &str = "a day of the month and a time of day such as 31@03:00";

/// A time of day as a wall clock shows it, in whole seconds: `03:00`, or `03:00:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u32);

impl TimeOfDay {
    /// Its seconds since midnight by the clock.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// A time from its parts. None: there is no such time.
    #[must_use]
    pub const fn new(hour: u32, minute: u32, second: u32) -> Option<Self> {
        if hour < 24 && minute < 60 && second < 60 { Some(Self(hour * 3600 + minute * 60 + second)) } else { None }
    }
}

impl From<time::Time> for TimeOfDay {
    /// The time of day without its fraction of a second.
    fn from(time: time::Time) -> Self {
        let (hour, minute, second) = time.as_hms();
        Self(u32::from(hour) * 3600 + u32::from(minute) * 60 + u32::from(second))
    }
}

impl FromStr for TimeOfDay {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let part = |part: &str| -> Option<u32> {
            let digits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        };
        let parts: Option<Vec<u32>> = text.trim().split(':').map(part).collect();
        let time = match parts.as_deref() {
            Some([hour, minute]) => Self::new(*hour, *minute, 0),
            Some([hour, minute, second]) => Self::new(*hour, *minute, *second),
            _ => None,
        };
        time.ok_or_else(|| TriggerError::CalendarText { given: shown(text), form: DAILY })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        let text =
            if second == 0 { format!("{hour:02}:{minute:02}") } else { format!("{hour:02}:{minute:02}:{second:02}") };
        f.pad(&text)
    }
}

impl Calendar {
    /// Every day: `03:00`.
    ///
    /// # Errors
    /// [`TriggerError::CalendarText`] with the right form.
    pub fn daily(text: &str) -> Result<Self, TriggerError> {
        Self::new(Cadence::Days { every: 1 }, text.parse()?)
    }

    /// Days of every week: `mon,thu@03:00`, `mon-fri@03:00`, `Sunday@03:00`.
    ///
    /// # Errors
    /// [`TriggerError::CalendarText`] with the right form.
    pub fn weekly(text: &str) -> Result<Self, TriggerError> {
        let (days, at) = split(text, WEEKLY)?;
        let weekdays =
            Weekdays::listed(days).ok_or_else(|| TriggerError::CalendarText { given: shown(text), form: WEEKLY })?;
        Self::new(Cadence::Weeks { every: 1, weekdays }, at)
    }

    /// A day of every month: `31@03:00`; a month without it has its last day instead.
    ///
    /// # Errors
    /// [`TriggerError::CalendarText`] with the right form, [`TriggerError::DayOfMonth`] for a day that no month has.
    pub fn monthly(text: &str) -> Result<Self, TriggerError> {
        let (day, at) = split(text, MONTHLY)?;
        let number = day.trim().bytes().all(|byte| byte.is_ascii_digit()).then(|| day.trim().parse().ok()).flatten();
        let day = number.ok_or_else(|| TriggerError::CalendarText { given: shown(text), form: MONTHLY })?;
        Self::new(Cadence::Months { every: 1, day }, at)
    }
}

/// The days before the `@`, and the time behind it.
fn split<'a>(text: &'a str, form: &'static str) -> Result<(&'a str, TimeOfDay), TriggerError> {
    let wrong = || TriggerError::CalendarText { given: shown(text), form };
    let (days, at) = text.split_once('@').ok_or_else(wrong)?;
    Ok((days, at.parse().map_err(|_| wrong())?))
}
