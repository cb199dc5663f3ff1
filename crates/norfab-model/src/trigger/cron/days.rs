//! The days of an expression: which of a month's days they are, as bits, and from there any day, forwards, backwards or
//! by number.

use croner::CronPattern;

use super::super::civil::{MONTHS, first_day, length, month_of, month_of_year, weekday};

/// How `croner` keeps in a component what is no plain value; its release is pinned, and a test compares.
mod croner_bits {
    /// Bit n says: the nth of a month.
    pub(super) const NTH: std::ops::RangeInclusive<u8> = 1..=5;
    pub(super) const LAST: u8 = 1 << 6;
    pub(super) const NEAREST_WEEKDAY: u8 = 1 << 7;
}

/// The days that an expression names. Bit n of a set of days is day n of the month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Days {
    /// Bit n is month n.
    pub(crate) months: u64,
    /// Days of the month.
    pub(crate) days: u64,
    /// Whether the last day of the month is one of them.
    pub(crate) last_day: bool,
    /// Whether the last Monday to Friday is.
    pub(crate) last_workday: bool,
    /// Days of which the nearest Monday to Friday of the month is.
    pub(crate) nearest_workdays: u64,
    /// Weekdays; bit 0 is Sunday.
    pub(crate) weekdays: u64,
    /// Weekdays of which the nth of the month is a day, from the first to the fifth.
    pub(crate) nth_weekdays: [u64; 5],
    /// Weekdays of which the last of the month is one.
    pub(crate) last_weekdays: u64,
    /// Whether the day of month is `*`.
    pub(crate) any_day: bool,
    /// Whether the day of week is `*`.
    pub(crate) any_weekday: bool,
}

impl Days {
    /// The days of a pattern; `day_of_month` and `day_of_week` are the texts of these fields as they were read.
    pub(super) fn new(pattern: &CronPattern, day_of_month: &str, day_of_week: &str) -> Self {
        use croner_bits::{LAST, NEAREST_WEEKDAY, NTH};
        // 7 is Sunday too.
        let weekdays = |bits: u64| bits & 0b111_1111 | bits >> 7;
        let days_of_week = |bit| weekdays(bits_of(pattern.days_of_week.get_set_values(bit)));
        let mut nth_weekdays = [0; 5];
        nth_weekdays.iter_mut().zip(NTH).for_each(|(weekdays, n)| *weekdays = days_of_week(1 << n));
        Self {
            months: bits_of(pattern.months.values()),
            days: bits_of(pattern.days.values()),
            last_day: day_of_month.split(',').any(|entry| entry == "L"),
            last_workday: day_of_month.split(',').any(|entry| entry == "LW"),
            nearest_workdays: bits_of(pattern.days.get_set_values(NEAREST_WEEKDAY)),
            weekdays: weekdays(bits_of(pattern.days_of_week.values())),
            nth_weekdays,
            last_weekdays: days_of_week(LAST),
            any_day: day_of_month == "*",
            any_weekday: day_of_week == "*",
        }
    }

    /// Whether there is such a day in any year.
    pub(super) fn ever(&self) -> bool {
        if self.any_day || !self.any_weekday || self.last_day || self.last_workday {
            // Each weekday comes five times in some month of each length but the shortest, and there in some leap year.
            return true;
        }
        let longest = |month: u32| if month == 2 { 29 } else { length(i64::from(month) - 1) };
        let months = (1..=12).filter(|month| self.months >> month & 1 == 1);
        months.into_iter().any(|month| (self.days | self.nearest_workdays) & up_to(longest(month)) != 0)
    }

    /// The months, of those that are named, in which there is none of the named days of the month, the shortest months
    /// counting as they are in most years; none when other days are named too.
    pub(crate) fn months_without(&self) -> u64 {
        let named = self.days | self.nearest_workdays;
        if self.any_day || !self.any_weekday || self.last_day || self.last_workday {
            return 0;
        }
        let is_without = |month: &u32| {
            // 1970 was no leap year.
            self.months >> month & 1 == 1 && named & up_to(length(1970 * 12 + i64::from(*month) - 1)) == 0
        };
        (1..=12).filter(is_without).fold(0, |months, month| months | 1 << month)
    }

    /// Whether the 29th is named: only February can be without it.
    pub(crate) fn has_29th(&self) -> bool {
        (self.days | self.nearest_workdays) >> 29 & 1 == 1
    }

    /// The first such day from this one on.
    pub(super) fn first_from(&self, day: i64) -> Option<i64> {
        let day = day.max(first_day(*MONTHS.start()));
        let (this_month, day_of_month) = month_of(day);
        let rest = self.in_month(this_month) & !up_to(day_of_month - 1);
        let later = || (this_month + 1..=*MONTHS.end()).map(|month| (month, self.in_month(month)));
        let (month, days) = std::iter::once((this_month, rest)).chain(later()).find(|(_, days)| *days != 0)?;
        MONTHS.contains(&month).then(|| first_day(month) + i64::from(days.trailing_zeros()) - 1)
    }

    /// The last such day up to this one, it included.
    pub(super) fn last_until(&self, day: i64) -> Option<i64> {
        let day = day.min(first_day(*MONTHS.end() + 1) - 1);
        let (this_month, day_of_month) = month_of(day);
        let start = self.in_month(this_month) & up_to(day_of_month);
        let earlier = || (*MONTHS.start()..this_month).rev().map(|month| (month, self.in_month(month)));
        let (month, days) = std::iter::once((this_month, start)).chain(earlier()).find(|(_, days)| *days != 0)?;
        MONTHS.contains(&month).then(|| first_day(month) + i64::from(days.ilog2()) - 1)
    }

    /// How many such days there are from one, it included, to another, which is not.
    pub(super) fn count(&self, from: i64, until: i64) -> u64 {
        let (from, until) = (from.max(first_day(*MONTHS.start())), until.min(first_day(*MONTHS.end() + 1)));
        if from >= until {
            return 0;
        }
        let ((first, from_day), (last, until_day)) = (month_of(from), month_of(until));
        let days = (first..=last).map(|month| {
            let not_before = if month == first { !up_to(from_day - 1) } else { u64::MAX };
            let not_behind = if month == last { up_to(until_day - 1) } else { u64::MAX };
            u64::from((self.in_month(month) & not_before & not_behind).count_ones())
        });
        days.sum()
    }

    /// The days of a month.
    fn in_month(&self, month: i64) -> u64 {
        #[cfg(test)]
        super::tests::count_month();
        if self.months >> month_of_year(month) & 1 == 0 {
            return 0;
        }
        let (length, first_weekday) = (length(month), weekday(first_day(month)));
        let all = up_to(length);
        match (self.any_day, self.any_weekday) {
            (true, true) => all,
            (false, true) => self.by_day(length, first_weekday) & all,
            (true, false) => self.by_weekday(length, first_weekday) & all,
            (false, false) => (self.by_day(length, first_weekday) | self.by_weekday(length, first_weekday)) & all,
        }
    }

    fn by_day(&self, length: u32, first_weekday: u32) -> u64 {
        let mut days = self.days;
        if self.last_day {
            days |= 1 << length;
        }
        if self.last_workday {
            days |= 1 << nearest_workday(length, length, first_weekday);
        }
        let nearest = (1..=length).filter(|day| self.nearest_workdays >> day & 1 == 1);
        nearest.fold(days, |days, day| days | 1 << nearest_workday(day, length, first_weekday))
    }

    fn by_weekday(&self, length: u32, first_weekday: u32) -> u64 {
        /// The first of a weekday and all that follow it, were it the first of the month.
        const WEEKLY: u64 = 1 << 1 | 1 << 8 | 1 << 15 | 1 << 22 | 1 << 29;
        let mut days = 0;
        for weekday in 0..7 {
            let first = (weekday + 7 - first_weekday) % 7;
            let all = WEEKLY << first & up_to(length);
            if self.weekdays >> weekday & 1 == 1 {
                days |= all;
            }
            if self.last_weekdays >> weekday & 1 == 1 {
                days |= 1 << all.ilog2();
            }
            for (before, weekdays) in (0..).zip(self.nth_weekdays) {
                days |= (weekdays >> weekday & 1) << (first + 1 + 7 * before);
            }
        }
        days
    }
}

/// Monday to Friday nearest a day, in the same month.
fn nearest_workday(day: u32, length: u32, first_weekday: u32) -> u32 {
    match (first_weekday + day - 1) % 7 {
        // A Sunday at the end, a Saturday at the beginning: the nearest one is in another month.
        0 if day == length => day - 2,
        0 => day + 1,
        6 if day == 1 => day + 2,
        6 => day - 1,
        _ => day,
    }
}

/// The days up to this one, of at most 31.
const fn up_to(day: u32) -> u64 {
    (1 << (day + 1)) - 2
}

fn bits_of(values: Vec<u16>) -> u64 {
    values.into_iter().fold(0, |bits, value| bits | 1 << value)
}
