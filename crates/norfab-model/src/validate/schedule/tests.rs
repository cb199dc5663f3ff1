//! Each limit of a schedule at its edge, and what the error says.

use super::*;
use crate::schedule::tests::{NOON, every, noon, saved, saved_at};
use crate::{Interval, ScheduleState, Timestamp};
use std::time::Duration;

#[track_caller]
fn accepts(new: NewSchedule) -> Schedule {
    saved(new)
}

#[track_caller]
fn refuses(new: NewSchedule, part: &str) {
    let error = Limits::default().check_schedule(NOON, new).expect_err(part).to_string();
    assert!(error.contains(part), "{error}");
}

const DAY: i64 = 86_400;

#[test]
fn defaults() {
    let schedule = accepts(every("5m"));
    assert_eq!((schedule.coalesce, schedule.overlap_policy), (Coalesce::Latest, OverlapPolicy::Forbid));
    assert_eq!((schedule.max_instances, schedule.timeout, schedule.jitter_seconds), (1, 600, 0));
    assert_eq!((schedule.timezone.name(), schedule.misfire_grace_seconds, schedule.name), ("UTC", None, None));
    assert_eq!((schedule.state, schedule.revision), (ScheduleState::Active, 1));
    assert_eq!(accepts(every("5m").paused()).state, ScheduleState::Paused);
}

#[test]
fn the_first_occurrence() {
    let first = |now, new| saved_at(now, new).next.map(|next| next.occurrence);
    // Without a start the grid begins at the creation, cut to the second, and the first is one interval later.
    assert_eq!(first(NOON.saturating_add(Duration::from_micros(999_999)), every("5m")), Some(noon(300)));
    // A start to come is the first occurrence itself, rounded up.
    assert_eq!(first(NOON, every("5m").start_at(noon(60))), Some(noon(60)));
    let fraction = noon(60).saturating_add(Duration::from_micros(1));
    assert_eq!(first(NOON, every("5m").start_at(fraction)), Some(noon(61)));
    // A past start anchors the grid; what lies at the creation or before it never counts.
    assert_eq!(first(NOON, every("5m").start_at(noon(-301))), Some(noon(299)));
    assert_eq!(first(NOON, every("5m").start_at(noon(-300))), Some(noon(300)));
    assert_eq!(first(NOON, every("5m").start_at(NOON)), Some(noon(300)));
    assert_eq!(first(NOON, every("1d").start_at(Timestamp::EPOCH)), Some(noon(DAY / 2)));
}

#[test]
fn bounds() {
    accepts(every("1h").start_at(noon(3653 * DAY)));
    accepts(every("1h").end_at(noon(3600)));
    accepts(every("1h").start_at(noon(9 * 366 * DAY)).end_at(noon(3653 * DAY)));
    refuses(
        every("1h").end_at(noon(3599)),
        "the next occurrence would be at 2026-11-30T13:00:00Z, after end_at (2026-11-30T12:59:59Z)",
    );
    refuses(every("1h").end_at(noon(-DAY)), "nothing is to come");
    refuses(every("1h").start_at(noon(-9000)).end_at(noon(-1)), "nothing is to come");
    refuses(
        every("1h").start_at(noon(60)).end_at(noon(60)),
        "end_at (2026-11-30T12:01:00Z) must be after start_at (2026-11-30T12:01:00Z)",
    );
    let fraction = |micros| noon(60).saturating_add(Duration::from_micros(micros));
    refuses(every("1h").start_at(fraction(1)).end_at(fraction(2)), "must be after start_at");
    refuses(every("1h").start_at(noon(3654 * DAY)), "start_at is 2036-12-01T12:00:00Z, more than 3653 days ahead");
    refuses(every("1h").end_at(noon(3654 * DAY)), "end_at is");
    let milliseconds = Timestamp::from_seconds(179_599_680_000);
    refuses(every("1h").end_at(milliseconds), "more than 3653 days ahead");
}

#[test]
fn numbers() {
    accepts(every("1s"));
    accepts(every("3653d"));
    accepts(every("1h").jitter(3599));
    refuses(every("1h").jitter(3600), "jitter_seconds is 3600, and must be smaller than the interval of 3600 s");
    accepts(every("2d").jitter(86_400));
    refuses(every("2d").jitter(86_401), "jitter_seconds must be 0 to 86400 whole seconds, but it is 86401");
    refuses(every("2d").jitter(u64::MAX), "but it is 18446744073709551615");
    accepts(every("1h").grace(1));
    accepts(every("1h").grace(31_536_000));
    refuses(every("1h").grace(0), "misfire_grace_seconds must be 1 to 31536000 whole seconds, but it is 0");
    refuses(every("1h").grace(31_536_001), "misfire_grace_seconds must be");
    accepts(every("1h").max_instances(1000));
    refuses(every("1h").max_instances(0), "max_instances must be 1 to 1000, but it is 0");
    refuses(every("1h").max_instances(1001), "max_instances must be 1 to 1000");
    refuses(every("1h").timeout(0), "timeout must be 1 to 604800");
    let tight = Limits { interval_seconds: 60, ..Limits::default() };
    let error = tight.check_schedule(NOON, every("61s")).expect_err("too long").to_string();
    assert_eq!(error, "interval must be 1 to 60 whole seconds, but it is 61");
}

#[test]
fn what_jobs_must_keep_to_as_well() {
    let named = |service: &str, task: &str| NewSchedule::new(service, task, Interval::new(60).expect("valid"));
    refuses(named("", "cli"), "service must have 1 to 255 bytes");
    refuses(named("nornir", "a\nb"), "task must have");
    refuses(every("1h").workers(Workers::List(vec![])), "workers is an empty list");
    refuses(every("1h").args(serde_json::json!({})), "args must be a JSON array");
    refuses(every("1h").kwargs(Json::parse("{\"a\":1e999}").expect("JSON")), "kwargs cannot be sent");
    let forbidding = Limits { forbidden_tasks: vec!["nornir:cli".into()], ..Limits::default() };
    assert!(forbidding.check_schedule(NOON, every("1h")).is_err());
    assert!(forbidding.check_runnable(&saved(every("1h"))).is_err());
    assert!(Limits::default().check_runnable(&saved(every("1h"))).is_ok());
}

#[test]
fn names_and_zones() {
    assert_eq!(accepts(every("1h").name("cafe\u{301}")).name.as_deref(), Some("caf\u{e9}"));
    refuses(every("1h").name(""), "name must have 1 to 255 bytes");
    refuses(every("1h").name("b91ffcf2-623a-43f4-a28e-478b65c0647a"), "looks like a UUID");
    assert_eq!(accepts(every("1h").timezone("us/pacific")).timezone.name(), "us/pacific");
    refuses(every("1h").timezone("America/New_Yrok"), "did you mean America/New_York?");
    refuses(every("1h").timezone("+05:30"), "is an offset");
}

fn by_the_clock(trigger: impl Into<crate::Trigger>) -> NewSchedule {
    NewSchedule::new("nornir", "cli", trigger).timezone("America/New_York")
}

#[test]
fn cron_and_calendar_triggers() {
    let cron = |expression: &str| by_the_clock(crate::Cron::new(expression).expect(expression));
    let first = |new| accepts(new).next.map(|next| next.occurrence);
    // It is 07:00 in New York.
    assert_eq!(first(cron("0 8 * * *")), Some(noon(3600)));
    assert_eq!(first(cron("0 7 * * *")), Some(noon(DAY)));
    assert_eq!(first(cron("0 7 * * *").start_at(noon(3 * DAY))), Some(noon(3 * DAY)));
    assert_eq!(first(by_the_clock(crate::Calendar::daily("08:00").expect("valid"))), Some(noon(3600)));
    // How near its occurrences come to each other is not known; the jitter is cut at the next one.
    let minutely = accepts(cron("* * * * *").jitter(86_400));
    let due: Vec<_> = minutely.preview(NOON).take(100).collect();
    assert!(due.iter().zip(due.iter().skip(1)).all(|(one, next)| one.due < next.occurrence));
    refuses(cron("* * * * *").jitter(86_401), "jitter_seconds must be 0 to 86400");
    // Something must be to come.
    refuses(
        cron("0 0 29 2 *").end_at(noon(300 * DAY)),
        "the next occurrence would be at 2028-02-29T05:00:00Z, after end_at",
    );
    refuses(cron("0 8 * * *").timezone("CST"), "is an abbreviation");
    refuses(cron("0 8 * * *").timezone("+05:30"), "is an offset");
}

#[test]
fn another_zone_is_another_timing() {
    let schedule = accepts(by_the_clock(crate::Cron::new("0 8 * * *").expect("valid")));
    let patch = |zone: &str| crate::SchedulePatch { timezone: crate::Patch::Set(zone.into()), ..Default::default() };
    let limits = Limits::default();
    let updated = |zone| schedule.update(noon(10), patch(zone), &limits).expect("valid").managed.schedule;
    assert_eq!(updated("Europe/Berlin").next.map(|next| next.occurrence), Some(noon(19 * 3600)));
    // The same one by another name.
    assert_eq!(updated("us/eastern").next, schedule.next);
}
