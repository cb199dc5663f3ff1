//! The dialect line by line: what each expression means, and what is refused.

use std::cell::Cell;
use std::collections::BTreeSet;

use croner::{Cron as Other, Weekday};
use time::{Date, Month};

use super::super::civil::first_day;
use super::*;

/// The times of an expression that two spellings share.
#[track_caller]
fn same(one: &str, other: &str) {
    let read = |text| Cron::new(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (one, other) = (read(one), read(other));
    assert_eq!((one.time_bits(), one.pace), (other.time_bits(), other.pace), "{one} {other}");
    for month in 2020 * 12..2048 * 12 {
        let (from, until) = (first_day(month), first_day(month + 1));
        let days = |cron: &Cron| (from..until).filter(|day| cron.days.count(*day, day + 1) == 1).collect::<Vec<_>>();
        assert_eq!(days(&one), days(&other), "{one} {other}");
    }
}

thread_local! {
    static MONTHS: Cell<usize> = const { Cell::new(0) };
    static ENTRIES: Cell<usize> = const { Cell::new(0) };
}

/// The days of a month were looked up.
pub(super) fn count_month() {
    MONTHS.set(MONTHS.get() + 1);
}

/// An entry of a field's list was read.
pub(super) fn count_entry() {
    ENTRIES.set(ENTRIES.get() + 1);
}

/// What is refused is not walked: no month is looked at, and no more entries are read than are written there. One entry is
/// read in one go, and of a range only the values of its field are set, at most 60: numbers that are none of the field are
/// refused before.
#[track_caller]
fn refuses(text: &str, part: &str) {
    MONTHS.set(0);
    ENTRIES.set(0);
    let error = Cron::new(text).expect_err(text).to_string();
    assert!(error.contains(part), "{text}: {error}");
    assert!(error.chars().count() < 800, "{error}");
    let written = if text.len() > Cron::MAX_BYTES { 0 } else { text.split([' ', '\t', '\n', ',']).count() };
    assert!((MONTHS.get(), ENTRIES.get() <= written) == (0, true), "{text}: {} entries", ENTRIES.get());
}

#[test]
fn spellings() {
    same("0 0 * * sun", "0 0 * * 0");
    same("0 0 * * 7", "0 0 * * 0");
    same("0 0 * * 5-7", "0 0 * * 5,6,0");
    same("0 0 * * sat-sun", "0 0 * * 6,0");
    same("0 0 * * MON-fri", "0 0 * * 1-5");
    same("0 0 * * 0-7", "0 0 * * 0-6");
    same("0 0 * * sun-sun", "0 0 * * 0");
    same("0 0 * * sun-sun/2", "0 0 * * 0");
    same("0 0 * * sun-7", "0 0 * * 0-6");
    same("0 0 * * mon-sun", "0 0 * * 0-6");
    same("0 0 * * 7-sun", "0 0 * * 0");
    same("0 0 * * tue-sun/2", "0 0 * * 2,4,6");
    same("0 0 * * sun/2", "0 0 * * 0,2,4,6");
    same("0 0 * * 7#2", "0 0 * * sun#2");
    same("0 0 * * 7L", "0 0 * * SunL");
    same("0 0 * * 1/2", "0 0 * * 1,3,5");
    same("0 0 1 jan,Feb-APR *", "0 0 1 1,2-4 *");
    same("0/15 * * * *", "*/15 * * * *");
    same("5/20 1-9/4 * * *", "5,25,45 1,5,9 * * *");
    same("0 0 ? * 5", "0 0 * * 5");
    same("0 0 13 * ?", "0 0 13 * *");
    same("0 0 l * *", "0 0 L * *");
    same("@yearly", "0 0 1 1 *");
    same("@Annually", "0 0 1 1 *");
    same("@monthly", "0 0 1 * *");
    same("@weekly", "0 0 * * 0");
    same("@daily", "0 0 * * *");
    same("@midnight", "0 0 * * *");
    same("@hourly", "0 * * * *");
    same("  0\t3   * * * ", "0 3 * * *");
    same("0 0 L,LW,1W * *", "0 0 1W,LW,L * *");
}

#[test]
fn refused_shapes() {
    for empty in ["", "   ", "\t\n"] {
        refuses(empty, "has 0 fields; it needs five");
    }
    refuses("* * * *", "has 4 fields");
    refuses(
        "0 0 0 * * *",
        "has 6 fields; it needs five: minute, hour, day of month, month, day of week (six, the second first, only when seconds are asked for)",
    );
    refuses("* * * * * * *", "has 7 fields");
    refuses("@reboot", "\"@reboot\" is no cron expression; the names are @yearly");
    refuses("@every 5m", "is no cron expression");
    refuses("0 0 @daily * *", "the day of month field \"@daily\"");
    refuses(&"*".repeat(1_000_000), "has 1000000 bytes, more than the limit of 1000");
    refuses(&"1,".repeat(499), "has 1 fields");
    refuses(&"* ".repeat(500), "has 500 fields");
    // The length comes before everything else: not even its fields are counted.
    refuses(&"0-99999999,".repeat(100_000), "has 1100000 bytes, more than the limit of 1000");
    refuses(&format!("{}0 3 * * *", " ".repeat(Cron::MAX_BYTES)), "has 1009 bytes");
    refuses("\u{0} \u{7f} * * é", "the minute field \"\u{fffd}\"");
}

#[test]
fn refused_fields() {
    refuses(
        "60 * * * *",
        "the minute field \"60\" of the cron expression is wrong: the number is out of bounds; it takes *, 0 to 59",
    );
    refuses("* 24 * * *", "the hour field \"24\"");
    refuses("* * 0 * *", "the day of month field \"0\"");
    refuses("* * 32 * *", "the day of month field \"32\"");
    refuses("* * * 0 *", "the month field \"0\"");
    refuses("* * * 13 *", "the month field \"13\"");
    refuses("* * * * 8", "the day of week field \"8\"");
    refuses("* * * * 5-8", "the day of week field \"5-8\"");
    refuses("5-1 * * * *", "the range runs backwards");
    refuses("* * * * fri-mon", "the range runs backwards");
    refuses("*/0 * * * *", "step cannot be zero");
    refuses("1-5/0 * * * *", "step cannot be zero");
    refuses("0-100000000 * * * *", "the number is far too large");
    refuses("100000000 * * * *", "the number is far too large");
    refuses("0-65535 * * * *", "the number is far too large");
    refuses("0-65535/1 * * * *", "the number is far too large");
    refuses("* * 1-100000000 * *", "the day of month field \"1-100000000\"");
    refuses("* * * * sun-100000000", "the day of week field \"sun-100000000\"");
    refuses("*/99999999999999999999 * * * *", "the number is far too large");
    refuses("*,5 * * * *", "* stands alone, or before a step as in */5");
    refuses("*,* * * * *", "* stands alone");
    refuses("* * * * mon,*", "* stands alone");
    refuses("*-5 * * * *", "* stands alone");
    refuses("* * * * 7/1", "a step to the end of the week cannot begin at 7; Sunday is 0 there");
    for missing in ["-5", "5-", "1,,2", ",", "/5", "*/"] {
        refuses(&format!("{missing} * * * *"), "a number is missing beside a , - / # L or W");
    }
    for missing in ["* * W * *", "* * * * L", "* * * * 5#", "* * * * #2"] {
        refuses(missing, "a number is missing beside a , - / # L or W");
    }
    refuses("60/5 * * * *", "the number is out of bounds");
    refuses("5-60/5 * * * *", "the number is out of bounds");
    refuses("*/10000 * * * *", "the number is far too large");
    refuses("* * * * 5-0", "the range runs backwards");
    refuses("* * * * 5#0", "a month has a weekday once to five times");
    refuses("* * * * 5#6", "a month has a weekday once to five times");
    for (field, wrong) in [
        ("minute", "1,,2 * * * *"),
        ("minute", ", * * * *"),
        ("minute", "1, * * * *"),
        ("minute", "- * * * *"),
        ("minute", "1- * * * *"),
        ("minute", "-1 * * * *"),
        ("minute", "+1 * * * *"),
        ("minute", "1-2-3 * * * *"),
        ("minute", "/5 * * * *"),
        ("minute", "*/ * * * *"),
        ("minute", "*/5/5 * * * *"),
        ("minute", "*-5 * * * *"),
        ("minute", "1.5 * * * *"),
        ("minute", "** * * * *"),
        ("minute", "*,5 * * * *"),
        ("minute", "? * * * *"),
        ("minute", "L * * * *"),
        ("hour", "* LW * * *"),
        ("hour", "* ٣ * * *"),
        ("day of month", "* * mon * *"),
        ("day of month", "* * 5L * *"),
        ("day of month", "* * W * *"),
        ("day of month", "* * 32W * *"),
        ("day of month", "* * 1WW * *"),
        ("day of month", "* * 1WWW * *"),
        ("day of month", "* * LWW * *"),
        ("day of month", "* * LL * *"),
        ("day of month", "* * W1 * *"),
        ("day of month", "* * 1-5W * *"),
        ("day of month", "* * L-3 * *"),
        ("day of month", "* * 1,? * *"),
        ("month", "* * * mon *"),
        ("month", "* * * L *"),
        ("month", "* * * january *"),
        ("day of week", "* * * * jan"),
        ("day of week", "* * * * L"),
        ("day of week", "* * * * LW"),
        ("day of week", "* * * * +5"),
        ("day of week", "* * * * 5#"),
        ("day of week", "* * * * #2"),
        ("day of week", "* * * * 5#2#3"),
        ("day of week", "* * * * 1-5L"),
        ("day of week", "* * * * 5LL"),
        ("day of week", "* * * * monLL"),
        ("day of week", "* * * * 5L/2"),
        ("day of week", "* * * * L5"),
        ("day of week", "* * * * 5##2"),
        ("day of week", "* * * * 5#2L"),
        ("day of week", "* * * * monday"),
    ] {
        refuses(wrong, &format!("the {field} field"));
    }
}

#[test]
fn six_fields_only_with_seconds() {
    let cron = Cron::with_seconds("*/10 0 3 * * *").expect("valid");
    assert_eq!(cron.time_bits(), [1 | 1 << 10 | 1 << 20 | 1 << 30 | 1 << 40 | 1 << 50, 1, 1 << 3]);
    assert!(Cron::with_seconds("0 3 * * *").is_err() && Cron::new("*/10 0 3 * * *").is_err());
    assert_eq!(
        Cron::with_seconds("@daily").expect("valid").time_bits(),
        Cron::new("@daily").expect("valid").time_bits()
    );
}

#[test]
fn never() {
    for never in ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *", "0 0 30,31 2 *", "0 0 30W 2 *", "0 0 31 2 ?"] {
        refuses(never, "never fires: none of its months has such a day");
    }
    for sometimes in
        ["0 0 29 2 *", "0 0 31 2 1", "0 0 L 2 *", "0 0 31 2,3 *", "0 0 29W 2 *", "0 0 * 2 1#5", "0 0 LW 2 *"]
    {
        assert!(Cron::new(sometimes).is_ok(), "{sometimes}");
    }
}

#[test]
fn free_and_fixed_hours() {
    for free in ["*", "*/2", "*/5", "*/12", "*/23", "0/3", "0-23", "0-23/4"] {
        assert!(Cron::new(&format!("0 {free} * * *")).expect(free).has_free_hours(), "{free}");
    }
    for fixed in [
        "3",
        "0",
        "23",
        "1,13",
        "0,6,12,18",
        "9-17",
        "9-17/2",
        "22-23",
        "5/2",
        "1/2",
        "2/12",
        "1-23/2",
        "0-22",
        "*/24",
        "0-23/24",
        "0-11/2",
        "*/2,3",
        "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23",
    ] {
        assert!(!Cron::new(&format!("0 {fixed} * * *")).expect(fixed).has_free_hours(), "{fixed}");
    }
}

#[test]
fn uneven() {
    let steps = |text: &str| {
        let cron = Cron::new(text).expect(text);
        cron.uneven_steps().iter().map(|step| (step.field, step.step, step.last)).collect::<Vec<_>>()
    };
    assert_eq!(steps("*/7 * * * *"), [("minute", 7, 56)]);
    assert_eq!(
        steps("*/40 */5 */2 */5 */2"),
        [("minute", 40, 40), ("hour", 5, 20), ("day of month", 2, 31), ("month", 5, 11), ("day of week", 2, 6),]
    );
    assert_eq!(steps("*/15 */6 * */3 *"), []);
    assert_eq!(steps("*/60 1/2 1 * */7"), []);
    assert_eq!(steps("3-50/7 9-17/3 5,7 1 *"), []);
    assert_eq!(steps("@daily"), []);
}

/// The days of the pinned release of croner, for every kind of month: lengths 28 to 31, each beginning on each weekday.
#[test]
fn days_agree_with_croner() {
    const FIELDS: [(&str, &str); 16] = [
        ("*", "*"),
        ("13", "*"),
        ("13", "5"),
        ("L", "*"),
        ("LW", "*"),
        ("1W,15W,31W", "*"),
        ("30W", "*"),
        ("29W", "1#2"),
        ("*", "5L"),
        ("*", "0L,3#5"),
        ("*", "7#1,1-5"),
        ("*/2", "*/2"),
        ("L", "5#3"),
        ("2W", "6"),
        ("28W", "*"),
        ("29,30,31", "0"),
    ];
    for (days, weekdays) in FIELDS {
        let text = format!("0 0 {days} * {weekdays}");
        let (ours, other) = (Cron::new(&text).expect("valid"), text.parse::<Other>().expect("valid"));
        let mut kinds = BTreeSet::new();
        for month in 2000 * 12..2028 * 12 {
            let first = first_day(month);
            for day in first..first_day(month + 1) {
                let (number, weekday) = ((day - first + 1) as u32, civil::weekday(day));
                let weekday = Weekday::from_days_from_sunday(weekday);
                let expected = other.pattern.day_match((month / 12) as i32, (month % 12 + 1) as u32, number, weekday);
                assert_eq!(ours.days.count(day, day + 1) == 1, expected.expect("a day"), "{text}: {month} {number}");
            }
            kinds.insert((first_day(month + 1) - first, civil::weekday(first)));
        }
        assert_eq!(kinds.len(), 28);
    }
}

/// The nearest Monday to Friday never leaves the month.
#[test]
fn nearest_weekdays_at_the_edges() {
    let day = |text: &str, year, month| {
        let cron = Cron::new(text).expect(text);
        let first = Date::from_calendar_date(year, month, 1).expect("date").to_julian_day() - 2_440_588;
        let found = cron.days.first_from(first.into()).expect("a day");
        Date::from_julian_day((found + 2_440_588) as i32).expect("date").to_string()
    };
    // Saturday 1 August 2026; Sunday 31 May 2026.
    assert_eq!(day("0 0 1W * *", 2026, Month::August), "2026-08-03");
    assert_eq!(day("0 0 31W * *", 2026, Month::May), "2026-05-29");
    assert_eq!(day("0 0 LW * *", 2026, Month::May), "2026-05-29");
}
