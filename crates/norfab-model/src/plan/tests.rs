//! The decisions line by line, and the mishaps of other schedulers.

mod clocks;
mod properties;

use super::*;
use crate::schedule::tests::{at, every, noon, saved_at};
use crate::{NewSchedule, OverlapPolicy, ScheduleCounters};

/// A schedule every 60 s whose next occurrence is 12:00:00.
fn minutely(new: impl FnOnce(NewSchedule) -> NewSchedule) -> Schedule {
    saved_at(at("11:59:00"), new(every("60s")))
}

fn allow(max_instances: u64) -> impl Fn(NewSchedule) -> NewSchedule {
    move |new| new.overlap_policy(OverlapPolicy::Allow).max_instances(max_instances)
}

/// Carries a plan out, all of its jobs being new.
fn settled(plan: &Plan, schedule: &Schedule, now: Timestamp) -> Schedule {
    plan.settle(schedule, now, &plan.create.iter().map(|job| job.uuid.clone()).collect())
}

/// One pass at `now` without unfinished jobs and with the default budget.
fn pass(schedule: &Schedule, now: Timestamp) -> (Plan, Schedule) {
    let plan = plan_due(schedule, now, 0, 100);
    let after = settled(&plan, schedule, now);
    (plan, after)
}

fn created(plan: &Plan) -> Vec<Timestamp> {
    plan.create.iter().map(|job| job.occurrence).collect()
}

/// One line of the table: what is made of the six occurrences 12:00 to 12:05 at 12:05:30.
struct Line {
    schedule: Schedule,
    active: u64,
    budget: u32,
    created: &'static [&'static str],
    /// Coalesced, missed, skipped, remaining.
    counts: [u64; 4],
    next: &'static str,
}

#[track_caller]
fn check(line: Line) {
    let now = at("12:05:30");
    let plan = plan_due(&line.schedule, now, line.active, line.budget);
    let times: Vec<_> = line.created.iter().map(|time| at(time)).collect();
    assert_eq!(created(&plan), times);
    let missed = plan.missed.as_ref().map_or(0, |missed| missed.count);
    assert_eq!([plan.coalesced, missed, plan.skipped, plan.remaining], line.counts);
    assert_eq!(plan.due, 6);
    assert_eq!(plan.next, Some(line.schedule.upcoming(at(line.next))));
    assert_eq!(plan.state, ScheduleState::Active);

    let after = settled(&plan, &line.schedule, now);
    let counters = ScheduleCounters {
        total_runs: times.len() as u64,
        missed_runs: line.counts[1],
        overlap_skips: line.counts[2],
        coalesced_runs: line.counts[0],
        ..ScheduleCounters::default()
    };
    assert_eq!((after.counters, after.last_run_at, after.next), (counters, times.last().copied(), plan.next));
}

#[test]
fn table() {
    use Coalesce::{All, Earliest};
    let latest = || minutely(|new| new);
    let latest_20 = || minutely(|new| new.grace(20));
    let earliest = || minutely(|new| new.coalesce(Earliest));
    let earliest_60 = || minutely(|new| new.coalesce(Earliest).grace(60));
    let all = || minutely(|new| new.coalesce(All));
    let all_allow = |n| minutely(|new| allow(n)(new.coalesce(All)));
    let all_allow_120 = |n| minutely(|new| allow(n)(new.coalesce(All).grace(120)));
    let line = |schedule, active, budget, created, counts, next| {
        check(Line { schedule, active, budget, created, counts, next });
    };

    line(latest(), 0, 100, &["12:05:00"], [5, 0, 0, 0], "12:06:00");
    line(latest_20(), 0, 100, &[], [5, 1, 0, 0], "12:06:00");
    line(latest(), 1, 100, &[], [5, 0, 1, 0], "12:06:00");
    line(earliest(), 0, 100, &["12:00:00"], [5, 0, 0, 0], "12:06:00");
    line(earliest_60(), 0, 100, &[], [5, 1, 0, 0], "12:06:00");
    line(all(), 0, 100, &["12:00:00"], [0, 0, 5, 0], "12:06:00");
    line(all_allow(4), 1, 100, &["12:00:00", "12:01:00", "12:02:00"], [0, 0, 3, 0], "12:06:00");
    line(all_allow_120(9), 0, 100, &["12:04:00", "12:05:00"], [0, 4, 0, 0], "12:06:00");
    line(all_allow(9), 0, 2, &["12:00:00", "12:01:00", "12:02:00"], [0, 0, 0, 3], "12:03:00");
    line(all_allow_120(9), 0, 0, &["12:04:00"], [0, 4, 0, 1], "12:05:00");

    // The room ends together with the budget, or before it: what is left is skipped, as there is no room.
    line(all_allow(4), 1, 2, &["12:00:00", "12:01:00", "12:02:00"], [0, 0, 3, 0], "12:06:00");
    line(all_allow(4), 4, 0, &[], [0, 0, 6, 0], "12:06:00");
    // Without budget, FORBID still gets its one, and latest and earliest never need any.
    line(all(), 0, 0, &["12:00:00"], [0, 0, 5, 0], "12:06:00");
    line(latest(), 0, 0, &["12:05:00"], [5, 0, 0, 0], "12:06:00");
    line(earliest(), 0, 0, &["12:00:00"], [5, 0, 0, 0], "12:06:00");
}

#[test]
fn what_a_job_gets() {
    let schedule = minutely(|new| new.grace(40));
    let plan = plan_due(&schedule, at("12:05:30"), 0, 100);
    let job = plan.create.first().expect("one job");
    assert_eq!(job.uuid, JobId::of_occurrence(&schedule.uuid, at("12:05:00")));
    assert_eq!((job.due, job.start_deadline), (at("12:05:00"), Some(at("12:05:40"))));
}

#[test]
fn the_missed_row_tells_how_many_from_when_to_when() {
    let schedule = minutely(|new| allow(9)(new.coalesce(Coalesce::All).grace(120)));
    let missed = plan_due(&schedule, at("12:05:30"), 0, 100).missed.expect("some are missed");
    assert_eq!((missed.count, missed.from, missed.newest.occurrence), (4, at("12:00:00"), at("12:03:00")));
    assert_eq!(missed.newest.start_deadline, Some(at("12:05:00")));
}

#[test]
fn the_grace_counts_to_its_last_microsecond() {
    let schedule = minutely(|new| new.grace(20));
    let made = |now| plan_due(&schedule, now, 0, 100).create.len();
    assert_eq!(made(at("12:00:20")), 1);
    assert_eq!(made(at("12:00:20.000001")), 0);
}

#[test]
fn the_outcome_tells_what_was_done() {
    let (_, after) = pass(&minutely(|new| new), at("12:05:30"));
    let outcome = after.last_outcome.expect("an outcome");
    assert_eq!(outcome.to_string(), "6 due: 1 created (latest), 5 coalesced");
    assert_eq!(outcome.when, at("12:05:30"));
}

/// A timer that wakes 1 ms early releases nothing, and nothing moves.
#[test]
fn early_wake() {
    let schedule = minutely(|new| new);
    let (plan, after) = pass(&schedule, at("11:59:59.999"));
    assert_eq!((plan.due, created(&plan)), (0, vec![]));
    assert_eq!(after, schedule);
    // On time it runs once, and the next instant is computed from the occurrence, not from `now`.
    let (plan, after) = pass(&schedule, at("12:00:00.004"));
    assert_eq!((created(&plan), after.next), (vec![at("12:00:00")], Some(schedule.upcoming(at("12:01:00")))));
}

/// The clock steps from 12:00:00 to 13:00:00.
#[test]
fn forward_step() {
    let schedule = saved_at(noon(0), every("5s"));
    let (plan, _) = pass(&schedule, at("13:00:00"));
    assert_eq!((created(&plan), plan.coalesced), (vec![at("13:00:00")], 719));

    let all = saved_at(noon(0), allow(1000)(every("5s").coalesce(Coalesce::All)));
    let plan = plan_due(&all, at("13:00:00"), 0, 100);
    assert_eq!((plan.create.len(), plan.remaining, plan.budget_used), (101, 619, 100));
    assert_eq!(plan.next, Some(all.upcoming(at("12:08:30"))));
}

/// Down for 101 or 100,000 minutes: one catch-up, then normal, and no number of misses switches anything off.
#[test]
fn long_outages() {
    for minutes in [101, 100_000] {
        let schedule = minutely(|new| new.grace(1));
        let (plan, after) = pass(&schedule, noon(minutes * 60 + 30));
        assert_eq!((plan.create.len(), after.counters.missed_runs, after.state), (0, 1, ScheduleState::Active));
        let (plan, _) = pass(&after, noon(minutes * 60 + 60));
        assert_eq!(created(&plan), [noon(minutes * 60 + 60)]);

        let (plan, after) = pass(&minutely(|new| new), noon(minutes * 60 + 30));
        assert_eq!((created(&plan), plan.coalesced), (vec![noon(minutes * 60)], minutes as u64));
        assert_eq!(after.next, Some(after.upcoming(noon(minutes * 60 + 60))));
    }
}

/// Every 5 s, down for 14 days: latest and earliest take one pass, `all` makes no more in a pass than its budget allows.
#[test]
fn a_fortnight_of_five_seconds() {
    const DUE: u64 = 14 * 86_400 / 5;
    let now = noon(14 * 86_400);
    for (coalesce, run) in [(Coalesce::Latest, now), (Coalesce::Earliest, noon(5))] {
        let (plan, after) = pass(&saved_at(noon(0), every("5s").coalesce(coalesce)), now);
        assert_eq!((created(&plan), plan.coalesced, plan.remaining), (vec![run], DUE - 1, 0));
        assert_eq!(after.next, Some(after.upcoming(noon(14 * 86_400 + 5))));
    }
    let mut schedule = saved_at(noon(0), allow(1000)(every("5s").coalesce(Coalesce::All)));
    let mut passes = 0;
    while schedule.next.is_some_and(|next| next.due <= now) {
        let (plan, after) = pass(&schedule, now);
        assert!(plan.create.len() <= 101 && plan.budget_used <= 100);
        (schedule, passes) = (after, passes + 1);
    }
    assert_eq!((schedule.counters.total_runs, passes), (DUE, DUE.div_ceil(101)));
}

/// Whatever was missed is never walked: with a step for each occurrence, 250,000,000,000 of them would not end.
#[test]
fn a_calendar_of_missed_seconds_costs_what_a_year_costs() {
    const YEAR: i64 = 365 * 86_400;
    let now = Timestamp::from_seconds(253_402_300_000);
    for (coalesce, first) in [(Coalesce::Latest, now), (Coalesce::Earliest, noon(1)), (Coalesce::All, noon(1))] {
        let schedule = saved_at(noon(0), allow(1000)(every("1s").coalesce(coalesce)));
        let plan = plan_due(&schedule, noon(YEAR), 0, 100);
        assert_eq!((plan.due, plan.coalesced + plan.create.len() as u64 + plan.remaining), (YEAR as u64, YEAR as u64));
        let plan = plan_due(&schedule, now, 0, 100);
        assert_eq!(plan.due, 251_606_260_000);
        assert_eq!(created(&plan).first(), Some(&first));
        assert!(plan.create.len() <= 101);

        let graced = Schedule { misfire_grace_seconds: Some(10), ..schedule };
        let plan = plan_due(&graced, now, 0, 100);
        let missed = plan.missed.as_ref().map_or(0, |missed| missed.count);
        assert_eq!(missed + plan.coalesced + plan.create.len() as u64, 251_606_260_000);
    }
}

/// Every 900 s with jobs of 92 s: 96 a day, on the grid.
#[test]
fn ninety_six_a_day() {
    let mut schedule = saved_at(at("00:00:00"), every("900s").timeout(92));
    let mut runs = Vec::new();
    for second in 0..86_400 {
        let now = at("00:00:01.25").plus_seconds(second);
        let active = runs.last().is_some_and(|last: &Timestamp| now <= last.plus_seconds(92));
        let plan = plan_due(&schedule, now, u64::from(active), 100);
        runs.extend(created(&plan));
        schedule = settled(&plan, &schedule, now);
    }
    assert_eq!(runs.len(), 96);
    assert!(runs.iter().enumerate().all(|(k, at)| *at == noon(-43_200 + 900 * (k as i64 + 1))));
    assert_eq!(schedule.counters.overlap_skips, 0);
}

/// Every 7 days, the process restarted daily: it runs on its anchor.
#[test]
fn weekly_with_daily_restarts() {
    let mut schedule = saved_at(noon(0), every("7d"));
    let mut runs = Vec::new();
    for day in 1..=28 {
        let now = noon(day * 86_400 + 100);
        schedule.next = schedule.realigned(now).or(schedule.next);
        let (plan, after) = pass(&schedule, now);
        runs.extend(created(&plan));
        schedule = after;
    }
    assert_eq!(runs, [7, 14, 21, 28].map(|day| noon(day * 86_400)));
}

/// Jitter 60 s, grace 5 s: a start 50 s after the nominal instant is no misfire when it is due then.
#[test]
fn the_grace_counts_from_the_due_time() {
    let schedule = saved_at(noon(0), every("1h").jitter(60).grace(5));
    let late = schedule.preview(noon(0)).find(|up| up.due.since(up.occurrence).as_secs() >= 50).expect("spread");
    let cursor = Schedule { next: Some(late), ..schedule };
    let made = |now| plan_due(&cursor, now, 0, 100).create.len();
    assert_eq!(made(late.due.saturating_sub(Duration::from_micros(1))), 0);
    assert_eq!((made(late.due), made(late.due.plus_seconds(5)), made(late.due.plus_seconds(6))), (1, 1, 0));
}

#[test]
fn both_bounds_count() {
    let start = Timestamp::parse("2027-01-01T09:00:00Z").expect("time");
    let end = Timestamp::parse("2027-01-04T09:00:00Z").expect("time");
    let mut schedule = saved_at(noon(0), every("1d").start_at(start).end_at(end));
    let mut runs = Vec::new();
    for day in 0..40 {
        let (plan, after) =
            pass(&schedule, start.saturating_sub(Duration::from_secs(86_400)).plus_seconds(day * 86_400));
        runs.extend(created(&plan));
        schedule = after;
    }
    assert_eq!(runs.len(), 4);
    assert_eq!((runs.first(), runs.last()), (Some(&start), Some(&end)));
    assert_eq!((schedule.state, schedule.next, schedule.last_run_at), (ScheduleState::Completed, None, Some(end)));
}

#[test]
fn completed_with_the_last_one_and_not_before() {
    let schedule = minutely(|new| new.end_at(at("12:02:30")));
    let (_, after) = pass(&schedule, at("12:01:59"));
    assert_eq!((after.state, after.next), (ScheduleState::Active, Some(schedule.upcoming(at("12:02:00")))));
    let (plan, after) = pass(&after, at("12:02:00"));
    assert_eq!((created(&plan), after.state, after.next), (vec![at("12:02:00")], ScheduleState::Completed, None));

    // The budget leaves the last ones due: it is not over yet.
    let all = minutely(|new| allow(9)(new.coalesce(Coalesce::All).end_at(at("12:02:30"))));
    let plan = plan_due(&all, at("18:00:00"), 0, 1);
    assert_eq!((created(&plan).len(), plan.remaining, plan.state), (2, 1, ScheduleState::Active));
    let (plan, after) = pass(&settled(&plan, &all, at("18:00:00")), at("18:00:00"));
    assert_eq!((created(&plan), after.state), (vec![at("12:02:00")], ScheduleState::Completed));
}

#[test]
fn only_active_schedules_are_planned() {
    for state in [ScheduleState::Paused, ScheduleState::Completed, ScheduleState::Disabled] {
        let schedule = Schedule { state, ..minutely(|new| new) };
        let (plan, after) = pass(&schedule, at("18:00:00"));
        assert_eq!((plan.due, plan.create.len()), (0, 0));
        assert_eq!(after, schedule);
    }
}

/// At 12:10 the clock goes back, far before the creation, and then forward again: what was decided is not run, whatever
/// had become of it, and what lies up to the creation is none of the schedule's.
#[track_caller]
fn there_and_back(back: i64, forward: i64, due: &str, created: &[&str]) {
    let new = |new: NewSchedule| allow(1000)(new).coalesce(Coalesce::All).grace(60);
    let (_, before) = pass(&minutely(new), at("12:10:00"));
    assert_eq!((before.counters.total_runs, before.counters.missed_runs), (2, 9));
    let realigned = Schedule { next: before.realigned(noon(600 - back)).or(before.next), ..before };
    let (plan, after) = pass(&realigned, noon(600 - back + forward));
    let outcome = after.last_outcome.as_ref().filter(|outcome| outcome.when == noon(600 - back + forward));
    assert_eq!(outcome.map(ToString::to_string).as_deref(), Some(due).filter(|due| !due.is_empty()));
    assert_eq!(
        plan.create.iter().map(|job| job.occurrence).collect::<Vec<_>>(),
        created.iter().map(|time| at(time)).collect::<Vec<_>>()
    );
    let counted = after.counters.passed_over + plan.create.len() as u64;
    assert_eq!(counted, outcome.map_or(0, |outcome| outcome.due - outcome.missed), "one counter each");
    assert!(after.next.is_some_and(|next| next.occurrence > noon(600 - back + forward)));
}

#[test]
fn a_clock_that_goes_back_and_forward_runs_nothing_that_was_decided() {
    const YEAR: i64 = 365 * 86_400;
    there_and_back(3600, 3600, "11 due: 11 passed over (decided before the clock went back)", &[]);
    there_and_back(YEAR, YEAR, "11 due: 11 passed over (decided before the clock went back)", &[]);
    there_and_back(YEAR, YEAR + 30, "11 due: 11 passed over (decided before the clock went back)", &[]);
    let one_more = "12 due: 1 created, 11 passed over (decided before the clock went back)";
    there_and_back(YEAR, YEAR + 60, one_more, &["12:11:00"]);
    there_and_back(120, 120, "2 due: 2 passed over (decided before the clock went back)", &[]);
    // The clock is behind what was decided still: only the creation counts.
    there_and_back(YEAR, YEAR - 300, "6 due: 2 created, 4 missed (beyond the grace)", &["12:04:00", "12:05:00"]);
    there_and_back(YEAR, YEAR - 630, "", &[]);
}

/// The clock is at 17:00 by mistake and runs 17:00, then is put right to 15:01: no hours of silence, and nothing runs
/// twice.
#[test]
fn backward_step() {
    let (plan, ahead) = pass(&minutely(|new| new), at("17:00:00"));
    let first = plan.create.first().expect("17:00 runs").uuid.clone();
    assert_eq!(ahead.next, Some(ahead.upcoming(at("17:01:00"))));

    let mut schedule = Schedule { next: ahead.realigned(at("15:01:00")), ..ahead };
    assert_eq!(schedule.next, Some(schedule.upcoming(at("15:02:00"))));
    let (before, mut runs) = (schedule.counters, Vec::new());
    for minute in 2..=120 {
        let now = at("15:00:00").plus_seconds(minute * 60);
        let plan = plan_due(&schedule, now, 0, 100);
        // The store finds that the job of 17:00 is there already.
        let made: HashSet<_> = plan.create.iter().map(|job| job.uuid.clone()).filter(|id| *id != first).collect();
        runs.extend(plan.create.iter().filter(|job| made.contains(&job.uuid)).map(|job| job.occurrence));
        schedule = plan.settle(&schedule, now, &made);
    }
    assert_eq!(runs.len(), 118);
    assert!(runs.iter().zip(2..).all(|(at_minute, minute)| *at_minute == at("15:00:00").plus_seconds(minute * 60)));
    assert_eq!(schedule.counters.passed_over, 1);
    assert_eq!(schedule.counters.total_runs, before.total_runs + 118);
    assert_eq!(schedule.last_run_at, Some(at("16:59:00")));
    assert_eq!(
        schedule.last_outcome.map(|outcome| outcome.to_string()).as_deref(),
        Some("1 due: 1 passed over (decided before the clock went back)")
    );
}

/// A cursor that a hand has moved beside the grid, before the start or behind the end is put right; nothing is lost
/// by it.
#[test]
fn cursors_edited_by_hand() {
    let schedule = minutely(|new| new.start_at(at("12:00:00")).end_at(at("12:09:00")));
    let with = |occurrence, due| Schedule { next: Some(Upcoming { occurrence, due }), ..schedule.clone() };
    let (plan, after) = pass(&with(at("12:03:07"), at("12:03:07")), at("12:03:30"));
    assert_eq!((plan.due, after.next, after.last_outcome), (0, Some(schedule.upcoming(at("12:04:00"))), None));
    let plan = plan_due(&with(at("00:00:00"), at("00:00:00")), at("12:01:30"), 0, 100);
    assert_eq!((created(&plan), plan.coalesced), (vec![at("12:01:00")], 1));
    let plan = plan_due(&with(at("12:10:00"), at("12:10:00")), at("12:10:30"), 0, 100);
    assert_eq!((plan.due, plan.next, plan.state), (0, None, ScheduleState::Completed));
    let plan = plan_due(&Schedule { next: None, ..schedule.clone() }, at("12:03:30"), 0, 100);
    assert_eq!((plan.due, plan.next), (0, Some(schedule.upcoming(at("12:04:00")))));
    // A due time that is too late is put right too.
    let late = with(at("12:04:00"), at("12:08:00"));
    assert_eq!(late.realigned(at("12:01:00")), Some(schedule.upcoming(at("12:02:00"))));
    assert_eq!(late.realigned(at("12:05:00")), Some(schedule.upcoming(at("12:04:00"))));
}

#[test]
fn an_occurrence_that_is_not_due_yet_waits_for_its_jitter() {
    let schedule = saved_at(noon(0), every("60s").jitter(59));
    let waits = schedule.preview(noon(0)).find(|up| up.due.since(up.occurrence).as_secs() >= 30).expect("spread");
    let now = waits.occurrence.plus_seconds(10);
    let plan = plan_due(&schedule, now, 0, 100);
    assert_eq!(plan.next, Some(waits));
    assert_eq!(plan.due, schedule.occurrences().count_in(noon(1), now) - 1);
}
