//! Triggers in words.

use super::calendar::{Cadence, Calendar, TimeOfDay};
use super::cron::{Cron, Days};
use super::names::{MONTHS, Name, WEEKDAYS};

const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// How many of an unknown number of times are told one by one.
pub(crate) const FEW: usize = 4;
/// Up to how many times of day are told one by one.
const FEW_TIMES: usize = 6;
/// More values than these are told as a step, when they are one.
const MANY_VALUES: usize = 9;
const EVERY_MONTH: u64 = 0b1_1111_1111_1110;
const EVERY_DAY_OF_MONTH: u64 = 0xffff_fffe;
const EVERY_WEEKDAY: u64 = 0b111_1111;

/// A calendar interval in words.
pub(super) fn of_calendar(calendar: &Calendar) -> String {
    let (every, at) = (calendar.every(), calendar.at());
    match calendar.cadence() {
        Cadence::Days { every: 1 } => format!("at {at} every day"),
        Cadence::Days { .. } => format!("at {at} every {every} days"),
        Cadence::Weeks { weekdays, .. } => {
            let days = weekdays_named(weekdays.bits());
            let weeks = if every == 1 { String::new() } else { format!(" of every {every} weeks") };
            format!("on {days}{weeks} at {at}")
        }
        Cadence::Months { day, .. } => {
            let months = if every == 1 { "every month".to_owned() } else { format!("every {every} months") };
            let rest = if day > 28 { ", or else the last day," } else { "" };
            format!("on the {}{rest} of {months} at {at}", ordinal(day))
        }
    }
}

/// A cron expression in words.
pub(super) fn of_cron(cron: &Cron) -> String {
    let (days, times) = (days_named(cron.days()), times_named(cron));
    match days {
        Some(days) => format!("{days} {times}"),
        None if times.contains("every ") => times,
        None => format!("{times} every day"),
    }
}

/// Of many texts, of which the first are given: these, and how many more.
pub(crate) fn some_of(first: &[String], count: u64) -> String {
    let more = count.saturating_sub(first.len() as u64);
    let more = (more > 0).then(|| format!("{more} more"));
    list(&first.iter().take(FEW).cloned().chain(more).collect::<Vec<_>>())
}

/// Months in words: `January to March and May`.
pub(super) fn months_named(months: u64) -> String {
    list(&runs(months, 1, 12, |n| long(MONTHS, n - 1)))
}

/// Which days, unless it is every day.
fn days_named(days: &Days) -> Option<String> {
    let is_every_day = (days.any_day && days.any_weekday)
        || (!days.any_day && days.days == EVERY_DAY_OF_MONTH)
        || (!days.any_weekday && days.weekdays == EVERY_WEEKDAY);
    let months = (days.months != EVERY_MONTH).then(|| months_named(days.months));
    if is_every_day {
        return months.map(|months| format!("every day in {months}"));
    }
    // `of February` is enough where all of it is some day of the month, and there is but one.
    let is_of_month =
        (days.any_day || days.days == 0) && (days.any_weekday || days.weekdays == 0) && days.months.count_ones() == 1;
    let (of_month, months) = match months {
        Some(month) if is_of_month => (format!("of {month}"), None),
        months => ("of the month".to_owned(), months),
    };
    let by_day = (!days.any_day).then(|| by_day_named(days, &of_month));
    let by_weekday = (!days.any_weekday).then(|| by_weekday_named(days, &of_month));
    let found = [by_day, by_weekday].into_iter().flatten().collect::<Vec<_>>().join(" or ");
    Some(months.map_or_else(|| found.clone(), |months| format!("{found} in {months}")))
}

fn by_day_named(days: &Days, of_month: &str) -> String {
    let mut found = runs(days.days, 1, 31, ordinal);
    if days.last_day {
        found.push(format!("last day {of_month}"));
    }
    if days.last_workday {
        found.push(format!("last Monday to Friday {of_month}"));
    }
    let nearest = bits(days.nearest_workdays, 1, 31);
    found.extend(nearest.into_iter().map(|day| format!("Monday to Friday nearest the {}", ordinal(day))));
    format!("on the {}", list(&found))
}

fn by_weekday_named(days: &Days, of_month: &str) -> String {
    let mut found = Vec::new();
    if days.weekdays != 0 {
        found.push(weekdays_named(days.weekdays));
    }
    let nth = NTH.into_iter().zip(days.nth_weekdays).chain([("last", days.last_weekdays)]);
    for (nth, weekdays) in nth.filter(|(_, weekdays)| *weekdays != 0) {
        let names: Vec<_> = bits(weekdays, 0, 6).into_iter().map(|n| long(WEEKDAYS, n)).collect();
        found.push(format!("the {nth} {} {of_month}", list(&names)));
    }
    format!("on {}", list(&found))
}

/// `Mondays and Thursdays`, `Mondays to Fridays`.
fn weekdays_named(weekdays: u64) -> String {
    // Monday first: Sunday is the seventh.
    let from_monday = weekdays >> 1 | (weekdays & 1) << 6;
    list(&runs(from_monday, 0, 6, |n| format!("{}s", long(WEEKDAYS, (n + 1) % 7))))
}

fn times_named(cron: &Cron) -> String {
    let [seconds, minutes, hours] = cron.time_bits();
    let (second, minute, hour) = (bits(seconds, 0, 59), bits(minutes, 0, 59), bits(hours, 0, 23));
    if second.len() * minute.len() * hour.len() <= FEW_TIMES && !cron.has_free_hours() {
        return format!("at {}", list(&one_by_one(&hour, &minute, &second)));
    }
    let of_hours = hours_named(cron, &hour);
    let of_which = if of_hours.is_empty() { " of every hour" } else { &of_hours };
    let numbers = |set| list(&runs(set, 0, 59, |n| n.to_string()));
    let step = steps(&minute, 60);
    if second == [0] {
        return match step {
            Some(1) => format!("every minute{of_hours}"),
            Some(step) => format!("every {step} minutes{of_hours}"),
            None => of_every_hour(&minute, &hour)
                .filter(|_| cron.has_free_hours())
                .unwrap_or_else(|| format!("at minute {}{of_which}", numbers(minutes))),
        };
    }
    let seconds = match steps(&second, 60) {
        Some(1) => "every second".to_owned(),
        Some(step) => format!("every {step} seconds"),
        None => format!("at second {}", numbers(seconds)),
    };
    match step {
        Some(1) if seconds.starts_with("every") => format!("{seconds}{of_hours}"),
        Some(1) => format!("{seconds} of every minute{of_hours}"),
        Some(step) => format!("{seconds} of every {} minute{of_hours}", ordinal(step)),
        None => format!("{seconds} of minute {}{of_which}", numbers(minutes)),
    }
}

fn one_by_one(hours: &[u32], minutes: &[u32], seconds: &[u32]) -> Vec<String> {
    let mut found = Vec::new();
    for hour in hours {
        for minute in minutes {
            let times = seconds.iter().filter_map(|second| TimeOfDay::new(*hour, *minute, *second));
            found.extend(times.map(|time| time.to_string()));
        }
    }
    found
}

/// ` of hours 9 to 17`; nothing when they are free and it is every hour. A list of all of them is not free, and named.
fn hours_named(cron: &Cron, hours: &[u32]) -> String {
    match steps(hours, 24).filter(|_| cron.has_free_hours()) {
        Some(1) => String::new(),
        Some(step) => format!(" of every {} hour", ordinal(step)),
        None => {
            let set = hours.iter().fold(0, |set, hour| set | 1_u64 << hour);
            let what = if hours.len() == 1 { "hour" } else { "hours" };
            format!(" of {what} {}", list(&runs(set, 0, 23, |n| n.to_string())))
        }
    }
}

/// `every 2 hours`, when it is on the hour.
fn of_every_hour(minutes: &[u32], hours: &[u32]) -> Option<String> {
    let step = steps(hours, 24).filter(|_| minutes == [0])?;
    Some(if step == 1 { "every hour".to_owned() } else { format!("every {step} hours") })
}

/// The step when the values begin with 0 and come round evenly.
fn steps(values: &[u32], whole: u32) -> Option<u32> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 1 && whole.is_multiple_of(*count))?;
    let step = whole / count;
    values.iter().zip(0..).all(|(value, n)| *value == n * step).then_some(step)
}

/// The values of a set, three or more in a row as one, and many at the same distance as one too.
fn runs(set: u64, least: u32, greatest: u32, named: impl Fn(u32) -> String) -> Vec<String> {
    let values = bits(set, least, greatest);
    if let [first, second, .., last] = values.as_slice()
        && values.len() > MANY_VALUES
    {
        let step = second - first;
        if step > 1 && values.iter().zip(values.iter().skip(1)).all(|(one, next)| next - one == step) {
            return vec![format!("{} to {} in steps of {step}", named(*first), named(*last))];
        }
    }
    let mut found = Vec::new();
    let mut n = least;
    while n <= greatest {
        let end = (n..=greatest).take_while(|n| set >> n & 1 == 1).last();
        match end {
            Some(end) if end >= n + 2 => found.push(format!("{} to {}", named(n), named(end))),
            Some(end) => found.extend((n..=end).map(&named)),
            None => {}
        }
        n = end.unwrap_or(n) + 1;
    }
    found
}

fn bits(set: u64, least: u32, greatest: u32) -> Vec<u32> {
    (least..=greatest).filter(|n| set >> n & 1 == 1).collect()
}

fn long(names: &[Name], n: u32) -> String {
    usize::try_from(n).ok().and_then(|n| names.get(n)).map_or_else(String::new, |name| name.long.to_owned())
}

/// `a, b and c`.
fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests;
