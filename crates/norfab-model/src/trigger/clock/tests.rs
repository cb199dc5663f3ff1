//! Clock changes by date, each line with what must happen.

use crate::{Calendar, Cron, Occurrences, Timestamp, Trigger, Zone};

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect(text)
}

fn cron(expression: &str) -> Trigger {
    Cron::new(expression).expect(expression).into()
}

/// The instants after one, and that they are found backwards and counted as well.
#[track_caller]
fn check(trigger: &Trigger, zone: &str, after: &str, expected: &[&str]) {
    let zone = Zone::find(zone).expect(zone);
    let occurrences = Occurrences::new(trigger, &zone, Timestamp::EPOCH, None, None);
    let (after, expected): (_, Vec<_>) = (at(after), expected.iter().map(|text| at(text)).collect());
    let found: Vec<_> = occurrences.after(after).take(expected.len()).collect();
    assert_eq!(found, expected, "{trigger} in {zone}");
    let last = *expected.last().expect("at least one");
    let behind = |at: Timestamp| Timestamp::from_micros(at.as_micros() + 1);
    let back = std::iter::successors(Some(last), |at| occurrences.last_before(*at)).take_while(|at| *at > after);
    let back: Vec<_> = back.collect();
    assert_eq!(back.into_iter().rev().collect::<Vec<_>>(), expected, "backwards");
    assert_eq!(occurrences.last_at_or_before(behind(last)), Some(last));
    assert_eq!(occurrences.count_in(behind(after), last), expected.len() as u64, "number");
}

#[test]
fn fixed_times() {
    // 2025-03-09: 02:00 to 03:00 is left out; the first instant after it is 07:00Z.
    let expected = ["2025-03-08T07:30:00Z", "2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"];
    check(&cron("30 2 * * *"), "America/New_York", "2025-03-08T00:00:00Z", &expected);
    // 2025-11-02: 01:00 to 02:00 comes twice; the first pass is 05:30Z.
    let expected = ["2025-11-01T05:30:00Z", "2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"];
    check(&cron("30 1 * * *"), "America/New_York", "2025-11-01T00:00:00Z", &expected);
    // Half an hour comes twice.
    let expected = ["2025-04-05T14:45:00Z", "2025-04-06T15:15:00Z"];
    check(&cron("45 1 * * *"), "Australia/Lord_Howe", "2025-04-05T00:00:00Z", &expected);
    // The day begins at 01:00.
    let expected = ["2025-04-23T22:00:00Z", "2025-04-24T22:00:00Z", "2025-04-25T21:00:00Z"];
    check(&cron("0 0 * * *"), "Africa/Cairo", "2025-04-23T00:00:00Z", &expected);
    let expected = ["2025-03-08T14:00:00Z", "2025-03-09T13:00:00Z", "2025-03-10T13:00:00Z", "2025-03-11T13:00:00Z"];
    check(&cron("0 9 * * *"), "America/Toronto", "2025-03-08T13:00:00Z", &expected);
    check(&cron("0 0 * * 0-4"), "America/Chicago", "2021-03-14T06:00:00Z", &["2021-03-15T05:00:00Z"]);
    // 2011-12-30 is left out: what it had runs when the 31st begins, and then the 31st runs.
    let expected = ["2011-12-29T13:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T13:00:00Z", "2011-12-31T13:00:00Z"];
    check(&cron("0 3 * * *"), "Pacific/Apia", "2011-12-29T00:00:00Z", &expected);
    check(&Calendar::daily("03:00").expect("valid").into(), "Pacific/Apia", "2011-12-29T00:00:00Z", &expected);
}

#[test]
fn lists_and_ranges_are_fixed() {
    // All three times in the gap come to one instant, and 03:00 to the same.
    let expected = ["2025-03-09T06:40:00Z", "2025-03-09T07:00:00Z", "2025-03-09T07:20:00Z", "2025-03-09T07:40:00Z"];
    check(&cron("0,20,40 1-3 * * *"), "America/New_York", "2025-03-09T06:20:00Z", &expected);
    // Nothing in the second pass, 06:00Z to 07:00Z.
    let expected = ["2025-11-02T05:00:00Z", "2025-11-02T05:30:00Z", "2025-11-02T07:00:00Z", "2025-11-02T07:30:00Z"];
    check(&cron("0,30 1,2 * * *"), "America/New_York", "2025-11-02T04:30:00Z", &expected);
}

#[test]
fn free_hours() {
    let quarters: Vec<String> = (0..=9).map(|n| format!("2025-10-26T{:02}:{:02}:00Z", n / 4, n % 4 * 15)).collect();
    let quarters: Vec<&str> = quarters.iter().map(String::as_str).collect();
    check(&cron("0/15 * * * *"), "Europe/Berlin", "2025-10-25T23:45:00Z", &quarters);
    let expected = ["2017-10-29T00:30:00Z", "2017-10-29T01:30:00Z", "2017-10-29T02:30:00Z", "2017-10-29T03:30:00Z"];
    check(&cron("30 * * * *"), "Europe/Helsinki", "2017-10-29T00:00:00Z", &expected);
    let expected = ["2025-04-24T22:00:00Z", "2025-04-24T23:00:00Z", "2025-04-25T01:00:00Z"];
    check(&cron("0 */2 * * *"), "Africa/Cairo", "2025-04-24T20:00:00Z", &expected);
    // Over the gap: 02:30 is 07:30Z, as is 03:30.
    let expected = ["2025-03-09T06:30:00Z", "2025-03-09T07:30:00Z", "2025-03-09T08:30:00Z"];
    check(&cron("30 * * * *"), "America/New_York", "2025-03-09T06:00:00Z", &expected);
    // 02:15 and 02:45 of the gap of half an hour: the second is shown, the first comes a quarter past the change.
    let expected = ["2025-10-04T14:45:00Z", "2025-10-04T15:15:00Z", "2025-10-04T15:45:00Z", "2025-10-04T16:15:00Z"];
    check(&cron("15,45 * * * *"), "Australia/Lord_Howe", "2025-10-04T14:30:00Z", &expected);
    // The whole day that is left out falls on the next one, hour by hour.
    let expected = ["2011-12-30T09:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T11:00:00Z"];
    check(&cron("0 * * * *"), "Pacific/Apia", "2011-12-30T08:00:00Z", &expected);
}

#[test]
fn a_zone_converts_and_never_relabels() {
    check(&cron("0 8 * * *"), "Asia/Shanghai", "2026-11-29T23:59:59Z", &["2026-11-30T00:00:00Z"]);
}

#[test]
fn rare_days() {
    check(&cron("0 0 29 2 *"), "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"]);
    let expected = ["2104-02-28T23:00:00Z", "2108-02-28T23:00:00Z"];
    check(&cron("0 0 29 2 *"), "Europe/Berlin", "2096-03-01T00:00:00Z", &expected);
    check(&cron("0 12 * 2 1#5"), "America/New_York", "2026-01-01T00:00:00Z", &["2044-02-29T17:00:00Z"]);
}

/// What the rule names and the clocks never show.
#[track_caller]
fn moved(expression: &str, zone: &str, occurrence: &str, text: Option<&str>) {
    let (trigger, zone) = (cron(expression), Zone::find(zone).expect(zone));
    let moved = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None).moved(at(occurrence));
    assert_eq!(moved.map(|moved| moved.to_string()).as_deref(), text);
}

#[test]
fn what_a_clock_change_moved() {
    let text = "02:30 is left out when the clocks go forward from 02:00 to 03:00";
    moved("30 2 * * *", "America/New_York", "2025-03-09T07:00:00Z", Some(text));
    moved("30 2 * * *", "America/New_York", "2025-03-10T06:30:00Z", None);
    // 03:00 is meant in any case.
    moved("30 2 * * *", "America/New_York", "2025-03-08T07:30:00Z", None);
    // What the clocks do show then has no run of its own.
    let change = "left out when the clocks go forward from 02:00 to 03:00";
    let one = |text: &str| format!("{text} {change}");
    let text = one("02:00 is") + ", and comes to one run with 03:00";
    moved("0 2,3 * * *", "America/New_York", "2025-03-09T07:00:00Z", Some(&text));
    moved("0 1-5 * * *", "America/New_York", "2027-03-14T07:00:00Z", Some(&text));
    moved("0 1-5 * * *", "America/New_York", "2027-03-14T08:00:00Z", None);
    let text = one("02:00 and 02:30 are") + ", and come to one run with 03:00";
    moved("0,30 2,3 * * *", "America/New_York", "2025-03-09T07:00:00Z", Some(&text));
    moved("0,30 2,3 * * *", "America/New_York", "2025-03-09T07:30:00Z", None);
    let text = one("02:00, 02:15, 02:30 and 02:45 are") + ", and come to one run";
    moved("*/15 2 * * *", "America/New_York", "2025-03-09T07:00:00Z", Some(&text));
    let text = one("02:00, 02:01, 02:02, 02:03 and 56 more are") + ", and come to one run";
    moved("* 2 * * *", "America/New_York", "2025-03-09T07:00:00Z", Some(&text));
    // Free hours follow elapsed time: they are marked where nothing of them is shown.
    moved("*/15 * * * *", "America/New_York", "2025-03-09T07:15:00Z", None);
    moved("15 */2 * * *", "America/New_York", "2025-03-09T07:15:00Z", Some(&one("02:15 is")));
    moved("15 */2 * * *", "America/New_York", "2025-03-09T08:15:00Z", None);
    let text = "00:00 is left out when the clocks go forward from 00:00 to 01:00";
    moved("0 */2 * * *", "Africa/Cairo", "2025-04-24T22:00:00Z", Some(text));
    moved("0 * * * *", "Africa/Cairo", "2025-04-24T22:00:00Z", None);
    // A change over midnight is told with its dates.
    let change = "is left out when the clocks go forward from 2011-12-30 00:00 to 2011-12-31 00:00";
    let text = format!("2011-12-30 03:00 {change}");
    moved("0 3 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", Some(&text));
    let text = format!("2011-12-30 00:00 {change}, and comes to one run with 2011-12-31 00:00");
    moved("0 0 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", Some(&text));
    let text = "00:00 is left out when the clocks go forward from 00:00 to 01:00";
    moved("0 0 * * *", "Africa/Cairo", "2025-04-24T22:00:00Z", Some(text));
    let text = "2025-03-29 23:30 is left out when the clocks go forward from 2025-03-29 23:00 to 2025-03-30 00:00";
    moved("30 23 * * *", "America/Scoresbysund", "2025-03-30T01:00:00Z", Some(text));
}

/// However rare the days, a look at a clock change costs what its own days cost.
#[test]
fn rare_days_are_counted_through_the_whole_calendar() {
    for (expression, zone, expected) in
        [("0 0 * 2 1#5", "Europe/Berlin", 375), ("30 2 29 2 *", "America/New_York", 2424)]
    {
        let (trigger, zone) = (cron(expression), Zone::find(zone).expect(zone));
        let all = Occurrences::new(&trigger, &zone, Timestamp::EPOCH, None, None);
        assert_eq!(all.count_in(Timestamp::MIN, Timestamp::MAX), expected, "{expression}");
        assert_eq!(all.after(Timestamp::MIN).count() as u64, expected, "{expression}");
    }
}
