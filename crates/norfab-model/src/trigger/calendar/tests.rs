//! Calendar intervals line by line, and against a walk over the days.

use proptest::prelude::*;
use time::{Date, Weekday};

use super::*;

#[track_caller]
fn refuses(result: Result<Calendar, TriggerError>, part: &str) {
    let error = result.expect_err(part).to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn texts() {
    let at = |text: &str| text.parse::<TimeOfDay>().map(|at| at.to_string()).ok();
    assert_eq!(at("3:00").as_deref(), Some("03:00"));
    assert_eq!(at(" 23:59:59 ").as_deref(), Some("23:59:59"));
    for wrong in [
        "",
        "3",
        "24:00",
        "03:60",
        "03:00:60",
        "003:00",
        "03:00:00:00",
        "3:",
        ":3",
        "-1:00",
        "+3:00",
        "03.00",
        "3am",
        "٣:00",
    ] {
        assert_eq!(at(wrong), None, "{wrong}");
        refuses(Calendar::daily(wrong), "cannot be read; write a time of day such as 03:00");
    }
    for wrong in [
        "",
        "mon",
        "@03:00",
        "mon@",
        "mo@03:00",
        "mon,@03:00",
        "1@03:00",
        "mon@03:00@04:00",
        "-@03:00",
        "mon-@03:00",
        "mon-tue-wed@03:00",
        "mondays@03:00",
        "m-f@03:00",
    ] {
        refuses(Calendar::weekly(wrong), "cannot be read; write weekdays and a time of day such as mon,thu@03:00");
    }
    for wrong in ["", "31", "@03:00", "31@", "L@03:00", "+1@03:00", "99999999999@03:00", "1,2@03:00"] {
        refuses(
            Calendar::monthly(wrong),
            "cannot be read; write a day of the month and a time of day such as 31@03:00",
        );
    }
    for wrong in ["0@03:00", "32@03:00"] {
        refuses(Calendar::monthly(wrong), "the day of the month must be 1 to 31, but it is ");
    }
    let same = |one: &str, other: &str| {
        let read = |text| Calendar::weekly(&format!("{text}@03:00")).expect(text);
        assert_eq!(read(one), read(other));
    };
    same("MON, Thu ", "thu,mon");
    same("Monday,THURSDAY", "mon,thu");
    same("mon-fri", "mon,tue,wed,thu,fri");
    same("mon - wed, sunday", "sun,mon,tue,wed");
    same("monday-sunday", "mon,tue,wed,thu,fri,sat,sun");
    same("sun-thu", "sun,mon,tue,wed,thu");
    same("fri-mon", "fri,sat,sun,mon");
    same("tue-tue", "tue");
    assert_eq!(Calendar::weekly("mon@3:00"), Calendar::weekly("mon @ 03:00 "));
}

#[test]
fn every_nth() {
    let nth = |calendar: Result<Calendar, TriggerError>, every| calendar.expect("valid").every_nth(every);
    let shown = |calendar: Result<Calendar, TriggerError>| nth(calendar, 2).expect("valid").to_string();
    assert_eq!(shown(Calendar::daily("03:00")), "at 03:00 every 2 days");
    assert_eq!(shown(Calendar::weekly("mon@03:00")), "on Mondays of every 2 weeks at 03:00");
    assert_eq!(shown(Calendar::monthly("1@03:00")), "on the 1st of every 2 months at 03:00");
    refuses(nth(Calendar::daily("03:00"), 0), "of 1 to 3653 days, but it is of 0");
    refuses(nth(Calendar::weekly("mon@03:00"), 522), "of 1 to 521 weeks, but it is of 522");
}

#[test]
fn bounds() {
    let at = TimeOfDay::new(3, 0, 0).expect("time");
    let weekdays = Weekdays::named(["mon"]).expect("weekday");
    let days = |every| Calendar::new(Cadence::Days { every }, at);
    let weeks = |every| Calendar::new(Cadence::Weeks { every, weekdays }, at);
    let months = |every| Calendar::new(Cadence::Months { every, day: 1 }, at);
    assert!(days(3653).is_ok() && weeks(521).is_ok() && months(120).is_ok());
    refuses(days(0), "of 1 to 3653 days, but it is of 0");
    refuses(days(3654), "of 1 to 3653 days, but it is of 3654");
    refuses(weeks(522), "of 1 to 521 weeks, but it is of 522");
    refuses(months(121), "of 1 to 120 months, but it is of 121");
    assert_eq!(Weekdays::named([]), None);
}

/// The dates from one day on; days are those since 1970-01-01.
#[track_caller]
fn runs(cadence: Cadence, anchor: &str, from: &str, expected: &[&str]) {
    let day = |text: &str| {
        let format = time::macros::format_description!("[year]-[month]-[day]");
        i64::from(Date::parse(text, format).expect(text).to_julian_day()) - 2_440_588
    };
    let calendar = Calendar::new(cadence, TimeOfDay::new(0, 0, 0).expect("time")).expect("valid");
    let times = calendar.counted_from(day(anchor));
    let found = std::iter::successors(times.first_from(day(from) * DAY), |wall| times.first_from(wall + 1));
    let found: Vec<String> = found
        .take(expected.len())
        .map(|wall| Date::from_julian_day((wall / DAY + 2_440_588) as i32).expect("date").to_string())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_31st_falls_to_the_last_day() {
    let month = |every, day| Cadence::Months { every, day };
    runs(
        month(1, 31),
        "2027-01-01",
        "2027-01-31",
        &["2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31"],
    );
    runs(month(1, 30), "2028-01-01", "2028-02-01", &["2028-02-29", "2028-03-30"]);
    // The phase counts from the month of the anchor, whatever its day.
    runs(month(3, 15), "2026-11-30", "2026-11-01", &["2026-11-15", "2027-02-15", "2027-05-15"]);
    runs(month(12, 29), "2024-02-01", "2024-01-01", &["2024-02-29", "2025-02-28", "2026-02-28"]);
}

#[test]
fn weeks_begin_on_monday() {
    let weekdays = Weekdays::named(["mon", "sun"]).expect("weekdays");
    let week = |every| Cadence::Weeks { every, weekdays };
    // 2026-11-29 is a Sunday, of the week of the 23rd.
    runs(week(1), "2026-11-29", "2026-11-29", &["2026-11-29", "2026-11-30", "2026-12-06"]);
    runs(week(2), "2026-11-29", "2026-11-24", &["2026-11-29", "2026-12-07", "2026-12-13", "2026-12-21"]);
}

#[test]
fn days_count_from_the_anchor() {
    runs(Cadence::Days { every: 2 }, "2026-11-30", "2026-11-30", &["2026-11-30", "2026-12-02", "2026-12-04"]);
    runs(Cadence::Days { every: 7 }, "2026-11-30", "2026-11-01", &["2026-11-02", "2026-11-09"]);
}

fn cadence() -> impl Strategy<Value = Cadence> {
    prop_oneof![
        (1..12_u32).prop_map(|every| Cadence::Days { every }),
        (1..5_u32, 1..128_u8).prop_map(|(every, bits)| Cadence::Weeks { every, weekdays: Weekdays(bits) }),
        (1..15_u32, 1..=31_u32).prop_map(|(every, day)| Cadence::Months { every, day }),
    ]
}

/// Whether a day counts, by the words of the rule alone.
fn counts(cadence: Cadence, anchor: Date, date: Date) -> bool {
    let days = |from: Date, to: Date| i64::from(to.to_julian_day()) - i64::from(from.to_julian_day());
    let monday =
        |date: Date| if date.weekday() == Weekday::Monday { date } else { date.prev_occurrence(Weekday::Monday) };
    let months = |date: Date| i64::from(date.year()) * 12 + i64::from(u8::from(date.month()));
    match cadence {
        Cadence::Days { every } => days(anchor, date) % i64::from(every) == 0,
        Cadence::Weeks { every, weekdays } => {
            let name = date.weekday().to_string().to_lowercase();
            days(monday(anchor), monday(date)) % (7 * i64::from(every)) == 0
                && weekdays.names().any(|short| name.starts_with(short))
        }
        Cadence::Months { every, day } => {
            let last = date.month().length(date.year());
            (months(date) - months(anchor)) % i64::from(every) == 0 && u32::from(date.day()) == day.min(last.into())
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_walking(
        cadence in cadence(),
        anchor in 15_000..25_000_i64,
        from in 18_000..22_000_i64,
        second in 0..DAY,
    ) {
        let at = TimeOfDay::new(12, 0, 0).expect("time");
        let calendar = Calendar::new(cadence, at).expect("valid");
        let times = calendar.counted_from(anchor);
        let date = |day: i64| Date::from_julian_day((day + 2_440_588) as i32).expect("date");
        let walls: Vec<i64> = (from - 500..from + 500)
            .filter(|day| counts(cadence, date(anchor), date(*day)))
            .map(|day| day * DAY + i64::from(at.seconds()))
            .collect();
        let wall = from * DAY + second;
        prop_assert_eq!(times.first_from(wall), walls.iter().find(|w| **w >= wall).copied());
        prop_assert_eq!(times.last_before(wall), walls.iter().rfind(|w| **w < wall).copied());
        for length in [0, 1, second, 40 * DAY, 400 * DAY + second] {
            let within = walls.iter().filter(|w| (wall..wall + length).contains(*w)).count();
            prop_assert_eq!(times.count(wall, wall + length), within as u64);
        }
    }
}

#[test]
fn ends_of_the_calendar() {
    for cadence in [
        Cadence::Days { every: 3653 },
        Cadence::Weeks { every: 521, weekdays: Weekdays(1) },
        Cadence::Months { every: 120, day: 31 },
    ] {
        let calendar = Calendar::new(cadence, TimeOfDay::new(23, 59, 59).expect("time")).expect("valid");
        let times = calendar.counted_from(20_000);
        assert_eq!((times.first_from(i64::MAX), times.last_before(i64::MIN)), (None, None));
        let (first, last) = (times.first_from(i64::MIN).expect("one"), times.last_before(i64::MAX).expect("one"));
        assert!(first < last && times.count(i64::MIN, i64::MAX) > 700);
    }
}
