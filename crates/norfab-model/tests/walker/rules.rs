//! The rules that are walked: each a trigger, and beside it what it means, without a parser.

use norfab_model::{Cadence, Calendar, Cron, Trigger, Weekdays};
use time::{Date, Weekday};

use super::{DAY, Pace, cron};

/// A trigger and what it means: dates, hours, minutes and seconds of a wall clock.
pub(crate) struct Rule {
    /// The trigger in words.
    pub(crate) name: String,
    /// What is looked at.
    pub(crate) trigger: Trigger,
    /// How it takes clock changes.
    pub(crate) pace: Pace,
    dates: fn(Date) -> bool,
    hours: fn(i64) -> bool,
    minutes: fn(i64) -> bool,
    seconds: Seconds,
}

/// Which seconds of its minutes a rule has.
#[derive(Clone, Copy)]
enum Seconds {
    /// The first.
    Full,
    /// These.
    Of(fn(i64) -> bool),
}

impl Rule {
    /// Whether a time of the wall clock is one of the rule, in seconds since 1970-01-01T00:00 of it.
    pub(crate) fn has(&self, wall: i64) -> bool {
        let has_second = match self.seconds {
            Seconds::Full => wall % 60 == 0,
            Seconds::Of(has) => has(wall.rem_euclid(60)),
        };
        has_second
            && (self.minutes)(wall.div_euclid(60).rem_euclid(60))
            && (self.hours)(wall.rem_euclid(DAY) / 3600)
            && self.has_date(wall.div_euclid(DAY))
    }

    /// How many seconds lie between the times that may be its.
    pub(crate) fn grain(&self) -> i64 {
        match self.seconds {
            Seconds::Full => 60,
            Seconds::Of(_) => 1,
        }
    }

    /// The same rule in these seconds of its minutes.
    fn seconds(self, seconds: fn(i64) -> bool) -> Self {
        Self { seconds: Seconds::Of(seconds), ..self }
    }

    /// Whether a day is one of the rule, in days since 1970-01-01.
    pub(crate) fn has_date(&self, day: i64) -> bool {
        (self.dates)(Date::from_julian_day(i32::try_from(day).expect("a day") + 2_440_588).expect("a date"))
    }
}

fn rule(
    trigger: Trigger,
    pace: Pace,
    dates: fn(Date) -> bool,
    hours: fn(i64) -> bool,
    minutes: fn(i64) -> bool,
) -> Rule {
    Rule { name: trigger.to_string(), trigger, pace, dates, hours, minutes, seconds: Seconds::Full }
}

fn any(_: Date) -> bool {
    true
}

fn every(_: i64) -> bool {
    true
}

fn days(date: Date) -> i64 {
    i64::from(date.to_julian_day()) - 2_440_588
}

fn last_of_month(date: Date) -> u8 {
    date.month().length(date.year())
}

/// Fixed, listed, ranged, stepped, free and day-restricted rules.
pub(crate) fn all() -> Vec<Rule> {
    use Pace::{Fixed, Free};
    let weekday = |date: Date| date.weekday().number_from_monday() <= 5;
    let mut rules = vec![
        rule(cron("30 2 * * *"), Fixed, any, |h| h == 2, |m| m == 30),
        rule(cron("0 0 * * *"), Fixed, any, |h| h == 0, |m| m == 0),
        rule(cron("59 23 * * *"), Fixed, any, |h| h == 23, |m| m == 59),
        rule(cron("15,45 0,1,2,3 * * *"), Fixed, any, |h| h <= 3, |m| m == 15 || m == 45),
        rule(cron("*/20 22-23 * * *"), Fixed, any, |h| h >= 22, |m| m % 20 == 0),
        rule(cron("0 0-4/2 * * *"), Fixed, any, |h| h <= 4 && h % 2 == 0, |m| m == 0),
        rule(
            cron("10-50/10 9-17 * * 1-5"),
            Fixed,
            weekday,
            |h| (9..=17).contains(&h),
            |m| (10..=50).contains(&m) && m % 10 == 0,
        ),
        rule(cron("*/15 * * * *"), Free, any, every, |m| m % 15 == 0),
        rule(cron("7 * * * *"), Free, any, every, |m| m == 7),
        rule(cron("0 */2 * * *"), Free, any, |h| h % 2 == 0, |m| m == 0),
        rule(cron("40 1/3 * * *"), Fixed, any, |h| h % 3 == 1, |m| m == 40),
        rule(cron("30 2/12 * * *"), Fixed, any, |h| h == 2 || h == 14, |m| m == 30),
        rule(cron("0 */12 * * *"), Free, any, |h| h % 12 == 0, |m| m == 0),
        rule(cron("5 0-23/7 * * *"), Free, any, |h| h % 7 == 0, |m| m == 5),
        rule(cron("*/10 * * * 0"), Free, |date| date.weekday() == Weekday::Sunday, every, |m| m % 10 == 0),
        rule(
            cron("30 1-3 * * sat-sun"),
            Fixed,
            |date| date.weekday().number_from_monday() > 5,
            |h| (1..=3).contains(&h),
            |m| m == 30,
        ),
        rule(cron("0 1,2 L * *"), Fixed, |date| date.day() == last_of_month(date), |h| h == 1 || h == 2, |m| m == 0),
        rule(
            cron("30 0-3 1,31 * 0"),
            Fixed,
            |date| matches!(date.day(), 1 | 31) || date.weekday() == Weekday::Sunday,
            |h| h <= 3,
            |m| m == 30,
        ),
        rule(cron("30 2 * * 0#2,0L"), Fixed, second_or_last_sunday, |h| h == 2, |m| m == 30),
        rule(cron("0 2 LW,1W * *"), Fixed, first_or_last_workday, |h| h == 2, |m| m == 0),
    ];
    let at = |text: &str| text.parse().expect("time");
    let calendar = |cadence, time| Trigger::from(Calendar::new(cadence, at(time)).expect("valid"));
    let weekdays = Weekdays::named(["sun", "thu"]).expect("weekdays");
    rules.extend([
        rule(calendar(Cadence::Days { every: 1 }, "02:15"), Fixed, any, |h| h == 2, |m| m == 15),
        rule(calendar(Cadence::Days { every: 2 }, "00:30"), Fixed, |date| days(date) % 2 == 0, |h| h == 0, |m| m == 30),
        rule(
            calendar(Cadence::Weeks { every: 1, weekdays }, "01:30"),
            Fixed,
            |date| matches!(date.weekday(), Weekday::Sunday | Weekday::Thursday),
            |h| h == 1,
            |m| m == 30,
        ),
        rule(
            calendar(Cadence::Months { every: 1, day: 31 }, "02:00"),
            Fixed,
            |date| date.day() == last_of_month(date),
            |h| h == 2,
            |m| m == 0,
        ),
    ]);
    rules
}

/// Rules with seconds: fixed and free, in the middle of a minute, often and once a day.
pub(crate) fn with_seconds() -> Vec<Rule> {
    use Pace::{Fixed, Free};
    let six = |expression: &str| Trigger::from(Cron::with_seconds(expression).expect(expression));
    let daily = Calendar::daily("02:15:30").expect("valid").into();
    vec![
        rule(six("*/20 30 0-3 * * *"), Fixed, any, |h| h <= 3, |m| m == 30).seconds(|s| s % 20 == 0),
        rule(six("59 59 1,2 * * *"), Fixed, any, |h| h == 1 || h == 2, |m| m == 59).seconds(|s| s == 59),
        rule(six("30 */10 * * * *"), Free, any, every, |m| m % 10 == 0).seconds(|s| s == 30),
        rule(six("1,31 0 */2 * * *"), Free, any, |h| h % 2 == 0, |m| m == 0).seconds(|s| s % 30 == 1),
        rule(daily, Fixed, any, |h| h == 2, |m| m == 15).seconds(|s| s == 30),
    ]
}

/// Rules whose dates are years apart.
pub(crate) fn rare() -> Vec<Rule> {
    use Pace::{Fixed, Free};
    let leap_day = |date: Date| date.ordinal() == 60 && date.day() == 29;
    vec![
        rule(cron("30 2 29 2 *"), Fixed, leap_day, |h| h == 2, |m| m == 30),
        rule(cron("0 */6 29 2 *"), Free, leap_day, |h| h % 6 == 0, |m| m == 0),
        rule(
            cron("0 0 * 2 1#5"),
            Fixed,
            |date| date.ordinal() == 60 && date.day() == 29 && date.weekday() == Weekday::Monday,
            |h| h == 0,
            |m| m == 0,
        ),
        rule(cron("30 23 31 12 *"), Fixed, |date| date.ordinal() >= 365 && date.day() == 31, |h| h == 23, |m| m == 30),
    ]
}

fn second_or_last_sunday(date: Date) -> bool {
    let second = (8..=14).contains(&date.day());
    let last = date.day() + 7 > last_of_month(date);
    date.weekday() == Weekday::Sunday && (second || last)
}

fn first_or_last_workday(date: Date) -> bool {
    let workday = |day: u8| {
        let date = Date::from_calendar_date(date.year(), date.month(), day).expect("a date");
        date.weekday().number_from_monday() <= 5
    };
    let first = (1..=31).find(|day| workday(*day));
    let last = (1..=last_of_month(date)).rev().find(|day| workday(*day));
    [first, last].contains(&Some(date.day()))
}
