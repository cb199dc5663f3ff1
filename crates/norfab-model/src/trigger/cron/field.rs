//! One field of an expression: its shape is checked here, its numbers by `croner`.

use std::fmt;

use croner::{CronComponent, CronPattern};

use crate::TriggerError;
use crate::text::shown;

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A field of an expression, in the order of six fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

/// A step over a whole field that does not come out even: behind the last value it begins anew after a shorter rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnevenStep {
    /// The name of the field.
    pub field: &'static str,
    /// The step.
    pub step: u16,
    /// The first value.
    pub first: u16,
    /// The last value.
    pub last: u16,
}

impl Field {
    pub(super) const WITHOUT_SECONDS: &[Field] =
        &[Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];
    pub(super) const WITH_SECONDS: &[Field] =
        &[Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];

    const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        }
    }

    /// The least and the greatest number of a step to the end.
    const fn bounds(self) -> (u16, u16) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 6),
        }
    }

    const fn takes(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "*, 0 to 59, ranges a-b, steps */n and lists",
            Self::Hour => "*, 0 to 23, ranges a-b, steps */n and lists",
            Self::DayOfMonth => "*, 1 to 31, L, LW, 15W, ranges a-b, steps */n and lists",
            Self::Month => "*, 1 to 12 or jan to dec, ranges a-b, steps */n and lists",
            Self::DayOfWeek => "*, 0 to 7 or sun to sat (0 and 7 are Sunday), 5#2, 5L, ranges a-b, steps */n and lists",
        }
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => MONTHS,
            Self::DayOfWeek => WEEKDAYS,
            _ => &[],
        }
    }

    /// Reads the text of this field into the pattern; returns it as it was read.
    pub(super) fn read(self, text: &str, pattern: &mut CronPattern) -> Result<String, TriggerError> {
        let wrong = |reason: String| TriggerError::CronField {
            field: self.name(),
            given: shown(text),
            reason,
            takes: self.takes(),
        };
        let plain = self.plain(text).map_err(|reason| wrong(reason.to_owned()))?;
        let component = match self {
            Self::Second => &mut pattern.seconds,
            Self::Minute => &mut pattern.minutes,
            Self::Hour => &mut pattern.hours,
            Self::DayOfMonth => &mut pattern.days,
            Self::Month => &mut pattern.months,
            Self::DayOfWeek => &mut pattern.days_of_week,
        };
        component.parse(&plain).map_err(|error| wrong(reason(&error)))?;
        Ok(plain)
    }

    /// The text with numbers for names, and steps with their ends.
    fn plain(self, text: &str) -> Result<String, &'static str> {
        if text == "?" && matches!(self, Self::DayOfMonth | Self::DayOfWeek) {
            return Ok("*".to_owned());
        }
        let entries: Result<Vec<_>, _> =
            text.to_ascii_uppercase().split(',').map(|entry| self.plain_entry(entry)).collect();
        Ok(entries?.join(","))
    }

    fn plain_entry(self, entry: &str) -> Result<String, &'static str> {
        #[cfg(test)]
        super::tests::count_entry();
        let (base, step) = match entry.split_once('/') {
            Some((base, step)) => (base, Some(step)),
            None => (entry, None),
        };
        match (base.split_once('-'), step) {
            (None, None) => self.plain_value(base),
            (None, Some(step)) if base == "*" => Ok(format!("*/{}", number(step)?)),
            (None, Some(step)) => Ok(format!("{}-{}/{}", self.number(base)?, self.bounds().1, number(step)?)),
            (Some((from, to)), step) => {
                let from = self.number(from)?;
                // The week of a range may end with its Sunday.
                let to = if to == "SUN" && self == Self::DayOfWeek { 7 } else { self.number(to)? };
                if from > to {
                    return Err("the range runs backwards");
                }
                let step = step.map(number).transpose()?;
                Ok(step.map_or_else(|| format!("{from}-{to}"), |step| format!("{from}-{to}/{step}")))
            }
        }
    }

    /// A single value, with what only the day fields take.
    fn plain_value(self, value: &str) -> Result<String, &'static str> {
        match self {
            _ if value == "*" => Ok(value.to_owned()),
            Self::DayOfMonth if value == "L" || value == "LW" => Ok(value.to_owned()),
            Self::DayOfMonth if value.ends_with('W') => Ok(format!("{}W", self.number(value.trim_end_matches('W'))?)),
            Self::DayOfWeek if value.contains('#') => {
                let (weekday, nth) = value.split_once('#').unwrap_or_default();
                let nth = number(nth)?;
                if (1..=5).contains(&nth) {
                    Ok(format!("{}#{nth}", self.number(weekday)?))
                } else {
                    Err("a month has a weekday once to five times")
                }
            }
            Self::DayOfWeek if value.len() > 1 && value.ends_with('L') => {
                Ok(format!("{}#L", self.number(value.trim_end_matches('L'))?))
            }
            _ => self.number(value).map(|number| number.to_string()),
        }
    }

    fn number(self, text: &str) -> Result<u16, &'static str> {
        match self.names().iter().zip(self.bounds().0..).find(|(name, _)| **name == text) {
            Some((_, number)) => Ok(number),
            None => number(text),
        }
    }

    /// The steps of a text that was read before which begin anew after a shorter rest.
    pub(super) fn uneven_steps(self, text: &str) -> Vec<UnevenStep> {
        let (least, greatest) = self.bounds();
        let step_of = |entry: &str| -> Option<UnevenStep> {
            let (base, step) = entry.split_once('/')?;
            let step: u16 = step.parse().ok().filter(|step| *step > 1)?;
            let (from, to) = match base.split_once('-') {
                None if base == "*" => (least, greatest),
                None => return None,
                Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
            };
            // Months are of unequal length: a step over their days never comes out even.
            let even = self != Self::DayOfMonth && (greatest - least + 1).is_multiple_of(step);
            let whole = from < least.saturating_add(step) && to == greatest;
            (whole && !even).then(|| UnevenStep {
                field: self.name(),
                step,
                first: from,
                last: from + (to - from) / step * step,
            })
        };
        self.plain(text).unwrap_or_default().split(',').filter_map(step_of).collect()
    }
}

/// A number without sign, of so few digits that it fits.
fn number(text: &str) -> Result<u16, &'static str> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ if digits => Err("the number is far too large"),
        _ if text.is_empty() => Err("something is missing"),
        _ => Err("it cannot be read"),
    }
}

/// What croner finds wrong, as part of our message.
fn reason(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("Component error: ").unwrap_or(&text).trim_end_matches('.');
    text.to_lowercase()
}

/// Whether the text of an hour field, as it was read, steps over all hours evenly up to the end of the day.
pub(super) fn steps_over_all_hours(text: &str) -> bool {
    let (base, step) = text.split_once('/').unwrap_or((text, "1"));
    let (from, to) = if base == "*" { ("0", "23") } else { base.split_once('-').unwrap_or((base, base)) };
    match (from.parse::<u16>(), to.parse::<u16>(), step.parse::<u16>()) {
        (Ok(from), Ok(to), Ok(step)) => to == 23 && from < step && from.saturating_add(step) <= 23,
        _ => false,
    }
}

/// The values that a component holds, as bits.
pub(super) fn bits(component: &CronComponent) -> u64 {
    component.values().into_iter().fold(0, |bits, value| bits | 1 << value)
}
