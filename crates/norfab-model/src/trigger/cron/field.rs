//! One field of an expression: its shape is checked here, its numbers by `croner`.

use std::fmt;

use croner::{CronComponent, CronPattern};

use super::super::names::{MONTHS, Name, WEEKDAYS};
use crate::TriggerError;
use crate::text::shown;

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

    const fn names(self) -> &'static [Name] {
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
        let is_day = matches!(self, Self::DayOfMonth | Self::DayOfWeek);
        if text == "*" || text == "?" && is_day {
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
        let step = match step.map(number).transpose()? {
            Some(0) => return Err("a step cannot be zero"),
            Some(step) => format!("/{step}"),
            None => String::new(),
        };
        match base.split_once('-') {
            None if step.is_empty() => self.plain_value(base),
            None if base == "*" => Ok(format!("*{step}")),
            None => {
                let (from, end) = (self.number(base)?, self.bounds().1);
                let sunday = "a step to the end of the week cannot begin at 7; Sunday is 0 there";
                if from <= end { Ok(format!("{from}-{end}{step}")) } else { Err(sunday) }
            }
            Some((from, to)) => {
                let from = self.number(from)?;
                // What begins behind a Sunday may end with the next one.
                let to = if self == Self::DayOfWeek && to == "SUN" && from > 0 { 7 } else { self.number(to)? };
                if from <= to { Ok(format!("{from}-{to}{step}")) } else { Err("the range runs backwards") }
            }
        }
    }

    /// A single value, with what only the day fields take.
    fn plain_value(self, value: &str) -> Result<String, &'static str> {
        match self {
            Self::DayOfMonth if value == "L" || value == "LW" => return Ok(value.to_owned()),
            Self::DayOfMonth => {
                if let Some(day) = value.strip_suffix('W') {
                    return Ok(format!("{}W", self.number(day)?));
                }
            }
            Self::DayOfWeek => {
                if let Some((weekday, nth)) = value.split_once('#') {
                    let (weekday, nth) = (self.number(weekday)?, number(nth)?);
                    let is_there = (1..=5).contains(&nth);
                    return if is_there { Ok(format!("{weekday}#{nth}")) } else { Err(NTH) };
                }
                if let Some(weekday) = value.strip_suffix('L') {
                    return Ok(format!("{}#L", self.number(weekday)?));
                }
            }
            _ => {}
        }
        self.number(value).map(|number| number.to_string())
    }

    /// A number within the bounds, or the name of one.
    fn number(self, text: &str) -> Result<u16, &'static str> {
        let (least, last) = self.bounds();
        if let Some((_, number)) = self.names().iter().zip(least..).find(|(name, _)| name.is_short(text)) {
            return Ok(number);
        }
        // Sunday has two numbers.
        let greatest = if self == Self::DayOfWeek { last + 1 } else { last };
        let number = number(text)?;
        if (least..=greatest).contains(&number) { Ok(number) } else { Err("the number is out of bounds") }
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
        text.split(',').filter_map(step_of).collect()
    }
}

/// What is wrong with the sixth Friday of a month.
const NTH: &str = "a month has a weekday once to five times";

/// A number without sign, of so few digits that it fits.
fn number(text: &str) -> Result<u16, &'static str> {
    /// Far beyond any value, and so small that no step behind a value overflows.
    const MOST: u16 = 9999;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits && number <= MOST => Ok(number),
        _ if digits => Err("the number is far too large"),
        _ if text.is_empty() => Err("a number is missing beside a , - / # L or W"),
        _ if text.contains('*') => Err("* stands alone, or before a step as in */5"),
        _ => Err("it cannot be read"),
    }
}

/// What croner finds wrong, as part of our message.
fn reason(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("Component error: ").unwrap_or(&text).trim_end_matches('.');
    text.to_lowercase()
}

/// Whether the text of an hour field, as it was read, is every hour or a step over all of them: `*`, `*/n`, `0-23/n`.
pub(super) fn steps_over_all_hours(text: &str) -> bool {
    let (base, step) = text.split_once('/').unwrap_or((text, "1"));
    // A step of a day or more leaves one hour: a time of day.
    matches!(base, "*" | "0-23") && step.parse::<u16>().is_ok_and(|step| step <= 23)
}

/// The values that a component holds, as bits.
pub(super) fn bits(component: &CronComponent) -> u64 {
    component.values().into_iter().fold(0, |bits, value| bits | 1 << value)
}
