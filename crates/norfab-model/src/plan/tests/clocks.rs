//! `plan_due` through clock changes: cron and calendar triggers against a list of their instants that was made by a walk
//! from minute to minute, and long outages of them.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::*;
use super::{allow, created, pass};
use crate::schedule::tests::saved_at;
use crate::{Calendar, Cron, Limits, NewSchedule, OverlapPolicy, Trigger, Zone, jitter};

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

/// A trigger and its times of day, each in minutes, and whether they follow elapsed time.
struct Case {
    trigger: fn() -> Trigger,
    has: fn(i64) -> bool,
    free: bool,
}

fn cron(expression: &str) -> Trigger {
    Cron::new(expression).expect(expression).into()
}

const CASES: [Case; 6] = [
    Case { trigger: || cron("30 2 * * *"), has: |at| at == 150, free: false },
    Case { trigger: || cron("*/20 1-2 * * *"), has: |at| (60..180).contains(&at) && at % 20 == 0, free: false },
    Case { trigger: || Calendar::daily("01:45").expect("valid").into(), has: |at| at == 105, free: false },
    Case { trigger: || cron("7 * * * *"), has: |at| at % 60 == 7, free: true },
    Case {
        trigger: || cron("0,40 */3 * * *"),
        has: |at| at / 60 % 3 == 0 && (at % 60 == 0 || at % 60 == 40),
        free: true,
    },
    Case {
        trigger: || Calendar::weekly("mon,tue,wed,thu,fri,sat,sun@00:00").expect("valid").into(),
        has: |at| at == 0,
        free: false,
    },
];

/// A zone and the day before one of its clock changes.
const CHANGES: [(&str, &str); 6] = [
    ("America/New_York", "2025-03-08T00:00:00Z"),
    ("America/New_York", "2025-11-01T00:00:00Z"),
    ("Europe/Berlin", "2025-10-25T00:00:00Z"),
    ("Australia/Lord_Howe", "2025-04-04T00:00:00Z"),
    ("Africa/Cairo", "2025-04-23T12:00:00Z"),
    ("Pacific/Apia", "2011-12-29T00:00:00Z"),
];

/// The instants of five days in seconds, minute by minute.
fn walked(case: &Case, zone: &Zone, start: i64) -> Vec<i64> {
    let wall = |at: i64| at + i64::from(zone.offset_at(Timestamp::from_seconds(at)).whole_seconds());
    let has = |wall: i64| (case.has)(wall.rem_euclid(DAY) / MINUTE);
    let (mut found, mut shown) = (Vec::new(), wall(start));
    for at in (start..start + 5 * DAY).step_by(60) {
        let (expected, now) = (wall(at - MINUTE) + MINUTE, wall(at));
        if case.free {
            found.extend((expected..now).step_by(60).filter(|wall| has(*wall)).map(|wall| at + wall - expected));
            found.extend(has(now).then_some(at));
        } else {
            found.extend((shown..=now).step_by(60).any(has).then_some(at));
            shown = shown.max(now + MINUTE);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Every occurrence has one fate, in order, at its due time, whatever passes there are.
    #[test]
    fn each_occurrence_has_one_fate(
        case in 0..CASES.len(),
        change in 0..CHANGES.len(),
        policies in (0..3_usize, 1..4_u64, prop::option::of(1..5000_u64), prop_oneof![Just(0), 1..7200_u64]),
        pauses in prop::collection::vec(1..30_000_i64, 5..60),
        (unfinished, budget) in (0..3_u64, 0..3_u32),
    ) {
        let (case, (zone, start)) = (&CASES[case], CHANGES[change]);
        let (coalesce, max_instances, grace, most) = policies;
        let begun = Timestamp::parse(start).expect("time");
        let new = NewSchedule {
            misfire_grace_seconds: grace,
            jitter_seconds: most,
            ..NewSchedule::new("nornir", "cli", (case.trigger)()).timezone(zone).coalesce(Coalesce::ALL[coalesce])
        };
        let mut schedule = saved_at(begun, new.overlap_policy(OverlapPolicy::Allow).max_instances(max_instances));
        let seconds = begun.as_micros() / 1_000_000;
        let all = walked(case, &schedule.timezone, seconds - MINUTE);
        let mut open: Vec<(Timestamp, Timestamp)> = all
            .iter()
            .zip(all.iter().skip(1))
            .filter(|(at, _)| **at > seconds)
            .map(|(at, next)| {
                let (at, next) = (Timestamp::from_seconds(*at), Timestamp::from_seconds(*next));
                let due = at.saturating_add(jitter(&schedule.uuid, at, schedule.jitter_seconds));
                (at, due.min(next.saturating_sub(Duration::from_micros(1))))
            })
            .collect();
        let mut now = begun;
        for pause in pauses {
            let later = now.plus_seconds(u32::try_from(pause).expect("short"));
            // The walk ends somewhere.
            if later >= Timestamp::from_seconds(seconds + 4 * DAY - 90_000) {
                break;
            }
            now = later;
            let due: Vec<_> = open.iter().copied().take_while(|(_, due)| *due <= now).collect();
            let kept = match schedule.coalesce {
                Coalesce::Latest => due.len().saturating_sub(1)..due.len(),
                Coalesce::Earliest => 0..due.len().min(1),
                Coalesce::All => 0..due.len(),
            };
            let late = |due: Timestamp| grace.is_some_and(|grace| due.saturating_add(Duration::from_secs(grace)) < now);
            let on_time: Vec<Timestamp> =
                due[kept.clone()].iter().filter(|(_, due)| !late(*due)).map(|(at, _)| *at).collect();
            let room = max_instances.saturating_sub(unfinished) as usize;
            let allowed = if schedule.coalesce == Coalesce::All { 1 + budget as usize } else { 1 };
            let made = on_time.len().min(room).min(allowed);
            let remaining = if made < room { on_time.len() - made } else { 0 };

            let plan = plan_due(&schedule, now, unfinished, budget);
            prop_assert_eq!(plan.due, due.len() as u64);
            prop_assert_eq!(created(&plan), &on_time[..made]);
            prop_assert_eq!(plan.coalesced, (due.len() - kept.len()) as u64);
            prop_assert_eq!(plan.missed.as_ref().map_or(0, |missed| missed.count), (kept.len() - on_time.len()) as u64);
            prop_assert_eq!(plan.skipped + plan.remaining, (on_time.len() - made) as u64);
            prop_assert_eq!(plan.remaining, remaining as u64);
            let decided = on_time.get(made.wrapping_sub(1)).filter(|_| remaining > 0).or(due.last().map(|(at, _)| at));
            open.retain(|(at, _)| decided.is_none_or(|decided| at > decided));
            prop_assert_eq!(plan.next.map(|next| (next.occurrence, next.due)), open.first().copied());
            schedule = plan.settle(&schedule, now, &HashSet::new());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Through every kind of clock change: the instants of a preview, each once, and no others.
    #[test]
    fn what_a_preview_shows_is_what_runs(
        (case, change) in (0..CASES.len(), 0..CHANGES.len()),
        jitter in prop_oneof![Just(0), 1..7200_u64],
        pauses in prop::collection::vec(1..20_000_u32, 5..60),
    ) {
        let (case, (zone, start)) = (&CASES[case], CHANGES[change]);
        let begun = Timestamp::parse(start).expect("time");
        let new = NewSchedule::new("nornir", "cli", (case.trigger)()).timezone(zone).jitter(jitter);
        let fresh = saved_at(begun, allow(1000)(new.coalesce(Coalesce::All)));
        let (mut running, mut now, mut ran) = (fresh.clone(), begun, Vec::new());
        for pause in pauses {
            now = now.plus_seconds(pause);
            let plan = plan_due(&running, now, 0, 1000);
            ran.extend(plan.create.iter().map(|job| Upcoming { occurrence: job.occurrence, due: job.due }));
            running = plan.settle(&running, now, &HashSet::new());
        }
        let shown: Vec<_> = fresh.preview(begun).take_while(|up| up.due <= now).collect();
        prop_assert_eq!(ran, shown);
    }
}

/// Ten years of missed seconds, through twenty clock changes: counted, never walked.
#[test]
fn an_outage_of_ten_years() {
    let start = Timestamp::parse("2026-01-01T00:00:00Z").expect("time");
    let now = Timestamp::parse("2036-01-01T00:00:00Z").expect("time");
    let seconds = 3652 * DAY as u64;
    let every_second = || {
        NewSchedule::new("nornir", "cli", Cron::with_seconds("* * * * * *").expect("valid")).timezone("Europe/Berlin")
    };
    for coalesce in Coalesce::ALL.iter().copied() {
        let schedule = saved_at(start, allow(1000)(every_second().coalesce(coalesce)));
        let plan = plan_due(&schedule, now, 0, 100);
        assert_eq!((plan.due, plan.coalesced + plan.create.len() as u64 + plan.remaining), (seconds, seconds));
        assert!(plan.create.len() <= 101);
        let graced = Schedule { misfire_grace_seconds: Some(10), ..schedule };
        let plan = plan_due(&graced, now, 0, 100);
        let missed = plan.missed.as_ref().map_or(0, |missed| missed.count);
        assert_eq!(missed + plan.coalesced + plan.create.len() as u64, seconds);
    }
    // Hours 9 to 17, Monday to Friday: 2,609 days.
    let office = NewSchedule::new("nornir", "cli", cron("*/5 9-17 * * 1-5")).timezone("America/New_York");
    let (plan, after) = pass(&saved_at(start, office), now);
    assert_eq!((plan.due, plan.coalesced), (2608 * 108, 2608 * 108 - 1));
    assert!(after.next.is_some_and(|next| next.occurrence > now));
}

/// Daily at 02:30, the process down over the change: what it did not do is one occurrence, not two and not none.
#[test]
fn down_over_a_clock_change() {
    let at = |text: &str| Timestamp::parse(text).expect(text);
    let daily = || NewSchedule::new("nornir", "cli", cron("30 2 * * *")).timezone("America/New_York");
    let schedule = saved_at(at("2025-03-08T12:00:00Z"), daily());
    let (plan, after) = pass(&schedule, at("2025-03-09T20:00:00Z"));
    assert_eq!((plan.due, created(&plan)), (1, vec![at("2025-03-09T07:00:00Z")]));
    assert_eq!(after.next.map(|next| next.occurrence), Some(at("2025-03-10T06:30:00Z")));

    let twice = saved_at(at("2025-11-02T05:00:00Z"), NewSchedule { trigger: cron("30 1 * * *"), ..daily() });
    let (plan, after) = pass(&twice, at("2025-11-02T05:30:00Z"));
    assert_eq!(created(&plan), [at("2025-11-02T05:30:00Z")]);
    let (plan, after) = pass(&after, at("2025-11-02T06:30:00Z"));
    assert_eq!((plan.due, after.next.map(|next| next.occurrence)), (0, Some(at("2025-11-03T06:30:00Z"))));
}

/// Daily at 02:00, paused at 01:00, resumed at 15:00: the next is 02:00 of the day after, and one was passed over.
#[test]
fn paused_over_one_occurrence() {
    let at = |text: &str| Timestamp::parse(text).expect(text);
    let daily = NewSchedule::new("nornir", "cli", Calendar::daily("02:00").expect("valid")).timezone("Europe/Helsinki");
    let schedule = saved_at(at("2026-11-29T12:00:00Z"), daily);
    let paused = schedule.pause(at("2026-11-29T23:00:00Z")).expect("paused").schedule;
    let resumed = paused.resume(at("2026-11-30T13:00:00Z"), &Limits::default()).expect("resumed");
    assert_eq!(
        (resumed.schedule.next.map(|next| next.occurrence), resumed.passed_over),
        (Some(at("2026-12-01T00:00:00Z")), 1)
    );
}

/// Daily with jitter 300 s, over a clock change: ten runs in ten days, each within 300 s of its nominal instant.
#[test]
fn jitter_by_the_clock() {
    let begun = Timestamp::parse("2026-10-20T12:00:00Z").expect("time");
    let daily = NewSchedule::new("nornir", "cli", cron("0 3 * * *")).timezone("Europe/Berlin").jitter(300);
    let schedule = saved_at(begun, daily);
    let ten: Vec<_> = schedule.preview(begun).take(10).collect();
    for up in &ten {
        let local = schedule.timezone.local(up.occurrence);
        assert_eq!((local.hour(), local.minute(), local.second()), (3, 0, 0));
        assert!((up.occurrence..=up.occurrence.plus_seconds(300)).contains(&up.due));
    }
    let (first, last) = (ten[0].occurrence, ten[9].occurrence);
    assert_eq!(last.since(first).as_secs(), 9 * 86_400 + 3600);
}
