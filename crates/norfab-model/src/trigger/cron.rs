//! Cron: the dialect, read with `croner`, and its times on a wall clock.

mod days;
mod field;

use std::fmt;
use std::str::FromStr;

use croner::CronPattern;
use serde_json::{Map, Value};

pub(super) use self::days::Days;
use self::field::Field;
pub use self::field::UnevenStep;
use super::clock::{Pace, WallTimes};
use super::{TriggerError, civil, config, words};
use crate::text::shown;

/// A cron expression: times of a wall clock, by the rules of the schedule's zone.
///
/// Five fields: minute, hour, day of month, month, day of week; with seconds, six, the second first. A field is `*`, a
/// number, a range `a-b`, a step `*/n`, `a-b/n` or `a/n` (from `a` to the end), or a list of these; months and weekdays
/// have names (`jan`, `mon`, in any case), and Sunday is 0 and 7. The day of month also takes `L` (the last day), `LW`
/// (the last Monday to Friday), and `15W` (the one nearest the 15th, in the same month); the day of week `5#2` (the
/// second Friday) and `5L` (the last). When both day fields are restricted, a day need match only one of them; only `*`
/// and `?` do not restrict. `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` and `@hourly` stand for
/// what they say.
///
/// When the clocks change, the hour field decides. It is *free* when it steps over all hours: `*`, `*/n`, `0/n`, `0-23`,
/// `0-23/n`, with an n below 24; then elapsed time counts: it runs in both passes of a repeated hour, and what a gap leaves out runs when it would have
/// run without the change. Otherwise the hours are *fixed*: in a gap such a time runs once, at the first instant after it;
/// in a repeated hour once, in the first pass. Two times that come to one instant are one occurrence.
///
/// ```
/// use norfab_model::{Cron, Occurrences, Timestamp, Trigger, Zone};
///
/// let trigger = Trigger::from("30 2 * * *".parse::<Cron>()?);
/// let zone = Zone::find("America/New_York")?;
/// let days = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
/// let (before, gap) = (Timestamp::parse("2025-03-08T12:00:00Z")?, Timestamp::parse("2025-03-09T07:00:00Z")?);
/// assert_eq!(days.next_after(before), Some(gap));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    expression: String,
    form: Form,
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: Days,
    pace: Pace,
    uneven_steps: Vec<UnevenStep>,
}

/// Which fields an expression has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Those from the minute on.
    Five,
    /// A second before them.
    Six,
}

impl Form {
    const fn fields(self) -> &'static [Field] {
        match self {
            Self::Five => Field::WITHOUT_SECONDS,
            Self::Six => Field::WITH_SECONDS,
        }
    }

    /// What to say of another number of fields.
    const fn needs(self) -> &'static str {
        match self {
            Self::Five => {
                "it needs five: minute, hour, day of month, month, day of week (six, the second first, only when seconds \
                 are asked for)"
            }
            Self::Six => "with seconds it needs six: second, minute, hour, day of month, month, day of week",
        }
    }
}

/// The version of the configuration.
const VERSION: u64 = 1;

impl Cron {
    /// The most bytes of an expression.
    pub const MAX_BYTES: usize = 1000;

    /// An expression of five fields.
    ///
    /// # Errors
    /// [`TriggerError`] that names the field, or says that it never fires.
    pub fn new(expression: &str) -> Result<Self, TriggerError> {
        Self::read(expression, Form::Five)
    }

    /// An expression of six fields, the second first. Names such as `@daily` stand for what they do without seconds.
    ///
    /// # Errors
    /// [`TriggerError`] that names the field, or says that it never fires.
    pub fn with_seconds(expression: &str) -> Result<Self, TriggerError> {
        Self::read(expression, Form::Six)
    }

    /// The expression as it was given, with single blanks between its fields.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether the expression has a field for seconds.
    #[must_use]
    pub const fn has_seconds(&self) -> bool {
        matches!(self.form, Form::Six)
    }

    /// Whether its hours are free: it then follows elapsed time when the clocks change.
    #[must_use]
    pub fn has_free_hours(&self) -> bool {
        self.pace == Pace::Free
    }

    fn read(given: &str, form: Form) -> Result<Self, TriggerError> {
        if given.len() > Self::MAX_BYTES {
            return Err(TriggerError::CronLength { bytes: given.len() });
        }
        let expression = given.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut pattern = CronPattern::new("");
        let texts: Vec<(Field, String)> = fields(&expression, form)?
            .into_iter()
            .map(|(field, text)| Ok((field, field.read(text, &mut pattern)?)))
            .collect::<Result<_, TriggerError>>()?;
        let text_of = |wanted| texts.iter().find(|(field, _)| *field == wanted).map_or("*", |(_, text)| text.as_str());
        let days = Days::new(&pattern, text_of(Field::DayOfMonth), text_of(Field::DayOfWeek));
        if !days.ever() {
            return Err(TriggerError::NeverFires { given: shown(&expression) });
        }
        Ok(Self {
            form,
            seconds: if form == Form::Six { field::bits(&pattern.seconds) } else { 1 },
            minutes: field::bits(&pattern.minutes),
            hours: field::bits(&pattern.hours),
            days,
            pace: if field::steps_over_all_hours(text_of(Field::Hour)) { Pace::Free } else { Pace::Fixed },
            uneven_steps: texts.iter().flat_map(|(field, text)| field.uneven_steps(text)).collect(),
            expression,
        })
    }

    /// Whether both day fields are restricted, so that a day need match only one of them.
    #[must_use]
    pub fn has_either_day(&self) -> bool {
        !self.days.any_day && !self.days.any_weekday
    }

    /// Whether it runs in every hour of its days, following elapsed time.
    #[must_use]
    pub fn has_every_hour(&self) -> bool {
        self.has_free_hours() && self.hours.count_ones() == 24
    }

    /// The months, in words, in which it does not run for want of its days of the month: those without a 31st. None:
    /// there are none, or it runs in no other months.
    #[must_use]
    pub fn months_without_its_days(&self) -> Option<String> {
        let without = self.days.months_without();
        let name =
            || if self.days.has_29th() { "February of most years".to_owned() } else { words::months_named(without) };
        (without != 0 && without != self.days.months).then(name)
    }

    /// The steps of its fields that do not come out even.
    #[must_use]
    pub fn uneven_steps(&self) -> &[UnevenStep] {
        &self.uneven_steps
    }

    pub(super) fn days(&self) -> &Days {
        &self.days
    }

    /// The seconds, minutes and hours of its times, each as bits.
    pub(super) fn time_bits(&self) -> [u64; 3] {
        [self.seconds, self.minutes, self.hours]
    }

    pub(super) fn config(&self) -> Vec<(&'static str, Value)> {
        let expression = self.expression.as_str().into();
        vec![("expression", expression), ("seconds", self.has_seconds().into()), ("version", VERSION.into())]
    }

    pub(super) fn from_config(config: &Map<String, Value>) -> Result<Self, TriggerError> {
        config::check("cron", config, &["expression", "seconds", "version"], VERSION)?;
        let wrong = |key, wanted| TriggerError::Value { kind: "cron", key, given: config::given(config, key), wanted };
        let form = match config.get("seconds") {
            None | Some(Value::Bool(false)) => Form::Five,
            Some(Value::Bool(true)) => Form::Six,
            Some(_) => return Err(wrong("seconds", "true or false")),
        };
        match config.get("expression") {
            Some(Value::String(expression)) => Self::read(expression, form),
            _ => Err(wrong("expression", "a text such as \"0 3 * * *\"")),
        }
    }
}

impl FromStr for Cron {
    type Err = TriggerError;

    /// Five fields, as [`Cron::new`] reads them.
    fn from_str(expression: &str) -> Result<Self, TriggerError> {
        Self::new(expression)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.expression)
    }
}

impl WallTimes for &Cron {
    fn first_from(&self, wall: i64) -> Option<i64> {
        let (day, second) = day_and_second(wall);
        let today = self.days.first_from(day)?;
        if today == day
            && let Some(second) = self.second_from(second)
        {
            return Some(day * civil::DAY + second);
        }
        let day = if today == day { self.days.first_from(day + 1)? } else { today };
        Some(day * civil::DAY + self.second_from(0)?)
    }

    fn last_before(&self, wall: i64) -> Option<i64> {
        let (day, second) = day_and_second(wall);
        let today = self.days.last_until(day)?;
        if today == day
            && let Some(second) = self.second_before(second)
        {
            return Some(day * civil::DAY + second);
        }
        let day = if today == day { self.days.last_until(day - 1)? } else { today };
        Some(day * civil::DAY + self.second_before(civil::DAY)?)
    }

    fn count(&self, from: i64, until: i64) -> u64 {
        if from >= until {
            return 0;
        }
        let ((first, from), (last, until)) = (day_and_second(from), day_and_second(until));
        let of_day = |day| self.days.count(day, day + 1);
        if first == last {
            return of_day(first) * (self.count_of_day(until) - self.count_of_day(from));
        }
        let whole_day = self.count_of_day(civil::DAY);
        of_day(first) * (whole_day - self.count_of_day(from))
            + self.days.count(first + 1, last) * whole_day
            + of_day(last) * self.count_of_day(until)
    }

    fn pace(&self) -> Pace {
        self.pace
    }
}

impl Cron {
    /// The first time of a day from this second on.
    fn second_from(&self, second: i64) -> Option<i64> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if let Some(found) = first_bit(self.hours, hour).filter(|found| *found == hour) {
            if let Some(found_minute) = first_bit(self.minutes, minute).filter(|found| *found == minute)
                && let Some(second) = first_bit(self.seconds, second)
            {
                return Some(found * 3600 + found_minute * 60 + second);
            }
            if let Some(minute) = first_bit(self.minutes, minute + 1) {
                return Some(found * 3600 + minute * 60 + first_bit(self.seconds, 0)?);
            }
        }
        let hour = first_bit(self.hours, hour + 1)?;
        Some(hour * 3600 + first_bit(self.minutes, 0)? * 60 + first_bit(self.seconds, 0)?)
    }

    /// The last time of a day before this second.
    fn second_before(&self, second: i64) -> Option<i64> {
        let at = second - 1;
        if at < 0 {
            return None;
        }
        let (hour, minute, second) = (at / 3600, at / 60 % 60, at % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = last_bit(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = last_bit(self.minutes, minute - 1) {
                return Some(hour * 3600 + minute * 60 + last_bit(self.seconds, 59)?);
            }
        }
        let hour = last_bit(self.hours, hour - 1)?;
        Some(hour * 3600 + last_bit(self.minutes, 59)? * 60 + last_bit(self.seconds, 59)?)
    }

    /// How many times of a day there are before this second.
    fn count_of_day(&self, second: i64) -> u64 {
        let count = |bits: u64, below: i64| u64::from((bits & ((1 << below) - 1)).count_ones());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let (of_minute, of_hour) = (count(self.seconds, 60), count(self.minutes, 60));
        let in_minute = (self.minutes >> minute & 1) * count(self.seconds, second);
        let in_hour = (self.hours >> hour & 1) * (count(self.minutes, minute) * of_minute + in_minute);
        count(self.hours, hour) * of_hour * of_minute + in_hour
    }
}

fn day_and_second(wall: i64) -> (i64, i64) {
    (wall.div_euclid(civil::DAY), wall.rem_euclid(civil::DAY))
}

/// The lowest bit from this one on; bits are below 60.
fn first_bit(bits: u64, from: i64) -> Option<i64> {
    let rest = bits >> from << from;
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}

/// The highest bit up to this one, which may be -1.
fn last_bit(bits: u64, until: i64) -> Option<i64> {
    let rest = bits & ((1 << (until + 1)) - 1);
    (rest != 0).then(|| i64::from(rest.ilog2()))
}

/// The fields of an expression, the second first when it has one.
fn fields(expression: &str, form: Form) -> Result<Vec<(Field, &str)>, TriggerError> {
    let (second, five) = match expression.strip_prefix('@') {
        Some(name) => {
            let five = nickname(name).ok_or_else(|| TriggerError::CronName { given: shown(expression) })?;
            ((form == Form::Six).then_some("0"), five)
        }
        None => (None, expression),
    };
    let (fields, texts) = (form.fields(), second.into_iter().chain(five.split_whitespace()).collect::<Vec<_>>());
    if texts.len() != fields.len() {
        return Err(TriggerError::CronFields { given: shown(expression), found: texts.len(), needs: form.needs() });
    }
    Ok(fields.iter().copied().zip(texts).collect())
}

fn nickname(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "yearly" | "annually" => Some("0 0 1 1 *"),
        "monthly" => Some("0 0 1 * *"),
        "weekly" => Some("0 0 * * 0"),
        "daily" | "midnight" => Some("0 0 * * *"),
        "hourly" => Some("0 * * * *"),
        _ => None,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
