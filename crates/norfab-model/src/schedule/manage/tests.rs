//! Each call in each state, and what becomes of the occurrences on the way.

use std::time::Duration;

use super::*;
use crate::schedule::tests::{NOON, at, every, noon, saved, saved_at};
use crate::{Coalesce, Interval, JobStatus, Origin, ScheduleCounters, Trigger, Workers, plan_due};
use serde_json::json;

fn limits() -> Limits {
    Limits::default()
}

fn trigger(interval: &str) -> Option<Trigger> {
    Some(interval.parse::<Interval>().expect("interval").into())
}

fn in_state(state: ScheduleState) -> Schedule {
    let schedule = saved(every("1h"));
    let next = schedule.next.filter(|_| state != ScheduleState::Completed);
    Schedule { state, next, ..schedule }
}

fn call(schedule: &Schedule, call: ScheduleCall, now: Timestamp) -> Result<Schedule, ScheduleError> {
    Ok(match call {
        ScheduleCall::Pause => schedule.pause(now)?.schedule,
        ScheduleCall::Resume => schedule.resume(now, &limits())?.schedule,
        ScheduleCall::Update => schedule.update(now, SchedulePatch::default(), &limits())?.managed.schedule,
        ScheduleCall::Disable => schedule.disable(now)?.schedule,
        ScheduleCall::RunNow => schedule.run_now(now, &[], Overlap::Respect, &limits())?.schedule,
        ScheduleCall::Delete => schedule.delete(now)?.schedule,
    })
}

#[track_caller]
fn refuses<T: std::fmt::Debug>(result: Result<T, ScheduleError>, part: &str) {
    let error = result.expect_err(part).to_string();
    assert!(error.contains(part), "{error}");
}

/// The state after each call, or None for an error; in the order ACTIVE, PAUSED, COMPLETED, DISABLED.
#[track_caller]
fn check(what: ScheduleCall, expected: [Option<ScheduleState>; 4]) {
    for (state, expected) in ScheduleState::ALL.iter().zip(expected) {
        let before = in_state(*state);
        let after = call(&before, what, noon(60));
        assert_eq!(after.as_ref().ok().map(|schedule| schedule.state), expected, "{what} when {state}");
        match after {
            Ok(after) if state.on(what) == Verdict::NoChange => assert_eq!(after, before),
            Ok(after) => assert_eq!(after.next, before.next),
            Err(error) => assert!(error.to_string().contains(&format!("is {state} and cannot be {what}; ")), "{error}"),
        }
    }
}

#[test]
fn table() {
    use ScheduleState::{Active, Completed, Disabled, Paused};
    check(ScheduleCall::Pause, [Some(Paused), Some(Paused), None, None]);
    check(ScheduleCall::Resume, [Some(Active), Some(Active), None, Some(Active)]);
    check(ScheduleCall::Update, [Some(Active), Some(Paused), Some(Completed), Some(Disabled)]);
    check(ScheduleCall::Disable, [Some(Disabled), Some(Disabled), Some(Disabled), Some(Disabled)]);
    check(ScheduleCall::RunNow, [Some(Active), Some(Paused), None, None]);
    check(ScheduleCall::Delete, [Some(Disabled), Some(Disabled), Some(Disabled), Some(Disabled)]);
}

#[test]
fn a_deleted_schedule_refuses_everything() {
    let deleted = saved(every("1h").name("nightly")).delete(noon(60)).expect("deleted").schedule;
    assert_eq!((deleted.deleted_at, deleted.updated_at), (Some(noon(60)), noon(60)));
    for what in ScheduleCall::ALL {
        refuses(call(&deleted, what, noon(99)), "was deleted at 2026-11-30T12:01:00Z");
    }
}

/// Daily 02:00, paused 01:00, resumed 15:00: tomorrow 02:00, and one occurrence was passed over.
#[test]
fn resume_passes_over_what_came_due_meanwhile() {
    let daily = saved_at(at("00:00:00"), every("1d").start_at(at("02:00:00")));
    let paused = daily.pause(at("01:00:00")).expect("paused").schedule;
    assert_eq!(paused.next, daily.next);
    assert_eq!(plan_due(&paused, at("15:00:00"), 0, 100).due, 0);
    let resumed = paused.resume(at("15:00:00"), &limits()).expect("resumed");
    assert_eq!((resumed.passed_over, resumed.schedule.counters.passed_over, resumed.effect), (1, 1, Effect::Changed));
    assert_eq!(resumed.schedule.next, Some(daily.upcoming(at("02:00:00").plus_seconds(86_400))));
    let again = resumed.schedule.resume(at("15:00:01"), &limits()).expect("no change");
    assert_eq!((again.passed_over, again.effect), (0, Effect::None));
}

#[test]
fn a_resume_at_the_very_instant_passes_it_over() {
    let paused = saved(every("1h").paused());
    assert_eq!(paused.state, ScheduleState::Paused);
    let resumed = paused.resume(noon(3600), &limits()).expect("resumed");
    assert_eq!((resumed.passed_over, resumed.schedule.next), (1, Some(paused.upcoming(noon(7200)))));
}

#[test]
fn a_resume_too_late_completes() {
    let paused = saved(every("1h").paused().end_at(noon(7200)));
    let resumed = paused.resume(noon(9000), &limits()).expect("resumed");
    assert_eq!(
        (resumed.passed_over, resumed.schedule.next, resumed.schedule.state),
        (2, None, ScheduleState::Completed)
    );
}

/// 12:01 was decided; a call that had read the clock before it had to wait for it.
#[track_caller]
fn late_by(schedule: &Schedule, micros: u64, next: i64, passed_over: u64) {
    let now = noon(60).saturating_sub(Duration::from_micros(micros));
    let plan = plan_due(schedule, noon(60), 1, 100);
    let decided = plan.settle(schedule, noon(60), &std::collections::HashSet::new());
    assert_eq!((decided.decided_until, decided.counters.overlap_skips), (noon(60), 1));
    let patch = SchedulePatch { end_at: Patch::Set(noon(86_400)), ..SchedulePatch::default() };
    let updated = decided.update(now, patch, &limits()).expect("updated").managed;
    let paused = decided.pause(now).expect("paused").schedule;
    let resumed = paused.resume(now, &limits()).expect("resumed");
    for managed in [updated, resumed] {
        let at = managed.schedule.next.map(|next| next.occurrence);
        assert_eq!((at, managed.passed_over), (Some(noon(next)), passed_over), "{micros}");
        assert_eq!(managed.schedule.decided_until, noon(60), "it never goes back");
    }
}

#[test]
fn a_call_that_waited_for_its_turn_moves_nothing_back() {
    let schedule = saved_at(noon(-3600), every("1m"));
    let schedule = Schedule { next: Some(schedule.upcoming(noon(60))), ..schedule };
    late_by(&schedule, 0, 120, 0);
    late_by(&schedule, 1, 120, 0);
    late_by(&schedule, 60_000_000, 120, 0);
    // Then it was the clock that was set back.
    late_by(&schedule, 60_000_001, 0, 0);
    late_by(&schedule, 1_800_000_000, -1680, 0);
}

#[test]
fn a_resume_after_a_backward_step_passes_nothing_over() {
    let paused = saved(every("1h").paused());
    let resumed = paused.resume(noon(-7200), &limits()).expect("resumed");
    assert_eq!((resumed.passed_over, resumed.schedule.next), (0, Some(paused.upcoming(noon(-3600)))));
}

#[test]
fn a_return_from_disabled_is_checked() {
    let off = saved(every("1h")).quarantine(noon(60), "the time zone\n\"Mars\" is unknown");
    assert_eq!(off.state, ScheduleState::Disabled);
    assert_eq!(off.last_error.as_deref(), Some("the time zone \"Mars\" is unknown"));
    let forbidding = Limits { forbidden_tasks: vec!["*:cli".into()], ..limits() };
    refuses(off.resume(noon(120), &forbidding), "forbidden_tasks");
    refuses(Schedule { jitter_seconds: 9999, ..off.clone() }.resume(noon(120), &limits()), "jitter_seconds is 9999");
    let resumed = off.resume(noon(7200), &limits()).expect("resumed");
    assert_eq!((resumed.schedule.last_error, resumed.passed_over), (None, 2));
}

/// Change of timing: the next instant is the new one, at once.
#[test]
fn an_update_of_the_timing_moves_the_cursor() {
    let hourly = saved(every("1h").name("clock"));
    let patch = SchedulePatch { trigger: trigger("5m"), ..SchedulePatch::default() };
    let updated = hourly.update(noon(620), patch, &limits()).expect("updated").managed;
    assert_eq!((updated.schedule.next, updated.passed_over), (Some(updated.schedule.upcoming(noon(900))), 0));
    assert_eq!((updated.schedule.revision, updated.schedule.updated_at), (2, noon(620)));
    assert_eq!((updated.schedule.name, updated.schedule.created_at), (hourly.name, NOON));
}

/// Saving the same schedule again neither loses a due occurrence nor causes an extra one.
#[test]
fn an_update_that_changes_no_timing_keeps_what_is_due() {
    let start = NOON.saturating_sub(std::time::Duration::from_micros(500_000));
    let schedule = saved_at(noon(-60), every("1m").start_at(start).jitter(5).timezone("Asia/Calcutta"));
    let same = SchedulePatch {
        trigger: trigger("60s"),
        // Rounded up it is the second that was saved, and the zone has two names.
        start_at: Patch::Set(start),
        timezone: Patch::Set("asia/kolkata".into()),
        jitter_seconds: Patch::Set(5),
        timeout: Patch::Set(30),
        ..SchedulePatch::default()
    };
    let updated = schedule.update(noon(150), same, &limits()).expect("updated").managed;
    assert_eq!((updated.schedule.next, updated.passed_over), (schedule.next, 0));
    assert_eq!((updated.schedule.timeout, updated.schedule.timezone.name()), (30, "asia/kolkata"));
    assert_eq!(plan_due(&updated.schedule, noon(150), 0, 100).due, plan_due(&schedule, noon(150), 0, 100).due);
}

#[test]
fn each_change_of_timing_moves_the_cursor() {
    let schedule = saved(every("1m").end_at(noon(86_400)));
    let patches = [
        SchedulePatch { trigger: trigger("2m"), ..SchedulePatch::default() },
        SchedulePatch { start_at: Patch::Set(noon(60)), ..SchedulePatch::default() },
        SchedulePatch { end_at: Patch::Set(noon(7200)), ..SchedulePatch::default() },
        SchedulePatch { end_at: Patch::Clear, ..SchedulePatch::default() },
        SchedulePatch { jitter_seconds: Patch::Set(3), ..SchedulePatch::default() },
        SchedulePatch { timezone: Patch::Set("Europe/Paris".into()), ..SchedulePatch::default() },
    ];
    for patch in patches {
        for state in [ScheduleState::Active, ScheduleState::Paused, ScheduleState::Disabled] {
            let before = Schedule { state, ..schedule.clone() };
            let updated = before.update(noon(330), patch.clone(), &limits()).expect("updated").managed;
            // 12:01 to 12:05 were due by the old rule.
            assert_eq!((updated.passed_over, updated.schedule.counters.passed_over), (5, 5), "{patch:?}");
            assert_eq!(updated.schedule.next, updated.schedule.first_after(noon(330)));
            assert_eq!(updated.schedule.state, state);
        }
    }
}

#[test]
fn a_new_start_is_a_new_anchor() {
    let schedule = saved(every("1h"));
    let patch = SchedulePatch { start_at: Patch::Set(noon(1234)), ..SchedulePatch::default() };
    let moved = schedule.update(noon(60), patch, &limits()).expect("updated").managed.schedule;
    assert_eq!((moved.anchor_at, moved.next), (noon(1234), Some(moved.upcoming(noon(1234)))));
    let patch = SchedulePatch { start_at: Patch::Clear, ..SchedulePatch::default() };
    let cleared = moved.update(noon(120), patch, &limits()).expect("updated").managed.schedule;
    assert_eq!((cleared.anchor_at, cleared.next), (NOON, schedule.next));
}

/// `end_at` passed: COMPLETED; a later one, or none, revives it.
#[test]
fn a_later_end_revives() {
    let schedule = saved(every("1h").end_at(noon(3600)));
    let plan = plan_due(&schedule, noon(3600), 0, 100);
    let done = plan.settle(&schedule, noon(3600), &plan.create.iter().map(|job| job.uuid.clone()).collect());
    assert_eq!(done.state, ScheduleState::Completed);
    for (end_at, count) in [(Patch::Set(noon(10_800)), 1), (Patch::Clear, usize::MAX)] {
        let patch = SchedulePatch { end_at, ..SchedulePatch::default() };
        let revived = done.update(noon(9000), patch, &limits()).expect("updated").managed;
        assert_eq!((revived.schedule.state, revived.passed_over), (ScheduleState::Active, 0));
        assert_eq!(revived.schedule.next, Some(done.upcoming(noon(10_800))));
        assert_eq!(revived.schedule.preview(noon(9000)).take(2).count(), count.min(2));
        assert_eq!(revived.schedule.counters, ScheduleCounters { total_runs: 1, ..ScheduleCounters::default() });
    }
    let renamed = SchedulePatch { name: Patch::Set("done".into()), ..SchedulePatch::default() };
    let renamed = done.update(noon(9000), renamed, &limits()).expect("updated").managed.schedule;
    assert_eq!((renamed.state, renamed.next), (ScheduleState::Completed, None));
    let too_early = SchedulePatch { end_at: Patch::Set(noon(8000)), ..SchedulePatch::default() };
    refuses(done.update(noon(9000), too_early, &limits()), "nothing is to come: the next occurrence would be at");
}

#[test]
fn keep_clear_and_set() {
    let full = every("1h")
        .name("full")
        .workers(Workers::Any)
        .timeout(30)
        .timezone("Europe/Berlin")
        .start_at(noon(60))
        .end_at(noon(86_400))
        .coalesce(Coalesce::All)
        .overlap_policy(OverlapPolicy::Allow)
        .max_instances(7)
        .grace(90)
        .jitter(5);
    let schedule = saved(full);
    let update = |patch| schedule.update(noon(1), patch, &limits()).expect("updated");

    let kept = update(SchedulePatch::default());
    let same = Schedule { revision: 2, updated_at: noon(1), ..schedule.clone() };
    assert_eq!((kept.managed.schedule, kept.args, kept.kwargs), (same, None, None));
    assert!(SchedulePatch { revision: Some(1), ..SchedulePatch::default() }.is_empty());

    let clear = SchedulePatch {
        name: Patch::Clear,
        workers: Patch::Clear,
        args: Patch::Clear,
        kwargs: Patch::Clear,
        timeout: Patch::Clear,
        timezone: Patch::Clear,
        start_at: Patch::Clear,
        end_at: Patch::Clear,
        coalesce: Patch::Clear,
        overlap_policy: Patch::Clear,
        max_instances: Patch::Clear,
        misfire_grace_seconds: Patch::Clear,
        jitter_seconds: Patch::Clear,
        ..SchedulePatch::default()
    };
    let cleared = update(clear);
    assert_eq!((cleared.args, cleared.kwargs), (Some(Json::empty_array()), Some(Json::empty_object())));
    let plain = saved(every("1h"));
    let plain = Schedule {
        uuid: schedule.uuid.clone(),
        revision: 2,
        updated_at: noon(1),
        decided_until: noon(1),
        decided_at: noon(1),
        ..plain
    };
    assert_eq!(cleared.managed.schedule, plain);

    let set = update(SchedulePatch {
        service: Some("netbox".into()),
        task: Some("sync".into()),
        kwargs: Patch::Set(json!({"devices": ["r1"]}).into()),
        name: Patch::set_some(Some("cafe\u{301}".into())),
        ..SchedulePatch::default()
    });
    let after = set.managed.schedule;
    assert_eq!((after.service.as_str(), after.task.as_str(), after.name.as_deref()), ("netbox", "sync", Some("café")));
    assert_eq!((set.args, set.kwargs), (None, Some(json!({"devices": ["r1"]}).into())));
}

#[test]
fn updates_are_checked_as_a_whole() {
    let schedule = saved(every("1h").jitter(600));
    let refuse = |patch, part| refuses(schedule.update(noon(1), patch, &limits()), part);
    let keep = SchedulePatch::default;
    refuse(SchedulePatch { trigger: trigger("10m"), ..keep() }, "jitter_seconds is 600, and must be smaller");
    refuse(SchedulePatch { timezone: Patch::Set("Mars".into()), ..keep() }, "the time zone \"Mars\" is unknown");
    refuse(SchedulePatch { end_at: Patch::Set(noon(-1)), ..keep() }, "nothing is to come");
    refuse(
        SchedulePatch { start_at: Patch::Set(noon(9)), end_at: Patch::Set(noon(9)), ..keep() },
        "must be after start_at",
    );
    refuse(SchedulePatch { kwargs: Patch::Set(json!([]).into()), ..keep() }, "kwargs must be a JSON object");
    refuse(SchedulePatch { name: Patch::Set(String::new()), ..keep() }, "name must have 1 to 255 bytes");
    let forbidding = Limits { forbidden_tasks: vec!["*:reload".into()], ..limits() };
    let reload = SchedulePatch { task: Some("reload".into()), ..keep() };
    refuses(schedule.update(noon(1), reload, &forbidding), "is forbidden by the pattern");
}

#[test]
fn a_stale_revision_is_refused() {
    let schedule = saved(every("1h"));
    let patch =
        |revision| SchedulePatch { revision: Some(revision), timeout: Patch::Set(5), ..SchedulePatch::default() };
    let updated = schedule.update(noon(1), patch(1), &limits()).expect("updated").managed.schedule;
    let error = updated.update(noon(2), patch(1), &limits()).expect_err("stale");
    assert!(matches!(error, ScheduleError::Stale { expected: 1, actual: 2, .. }), "{error}");
    // What does not touch the rule does not make a revision.
    let paused = updated.pause(noon(3)).expect("paused").schedule;
    assert!(paused.update(noon(4), patch(2), &limits()).is_ok());
}

/// Run now at 10:20 and 10:25 on an hourly schedule: two extra jobs, 11:00 still runs, later run-nows still work.
#[test]
fn run_now_leaves_the_cadence_alone() {
    let hourly = saved_at(at("10:00:00"), every("1h").timeout(60).grace(5));
    let first = hourly.run_now(at("10:20:00"), &[], Overlap::Respect, &limits()).expect("runs");
    let second = first.schedule.run_now(at("10:25:00"), &[], Overlap::Respect, &limits()).expect("runs");
    assert_ne!(first.job.uuid, second.job.uuid);
    let after = second.schedule;
    assert_eq!((after.next, after.last_run_at, after.counters.total_runs), (hourly.next, None, 2));
    let plan = plan_due(&after, at("11:00:00"), 0, 100);
    assert_eq!(plan.create.iter().map(|job| job.occurrence).collect::<Vec<_>>(), [at("11:00:00")]);
    assert!(after.run_now(at("11:01:00"), &[], Overlap::Respect, &limits()).is_ok());

    let job = first.job;
    assert_eq!(
        (job.status, job.origin, job.scheduled_for, job.start_deadline),
        (JobStatus::New, Origin::RunNow, None, None)
    );
    assert_eq!((job.schedule_id, job.deadline), (Some(hourly.uuid), Some(at("10:21:00"))));
}

#[test]
fn run_now_respects_overlap_unless_forced() {
    let job = |name: &str, since| ActiveJob { uuid: JobId::new(name).expect("valid"), since };
    let active = [job("a", noon(5)), job("b", noon(6))];
    let forbid = saved(every("1h").name("clock"));
    let refused = forbid.run_now(noon(60), &active, Overlap::Respect, &limits());
    refuses(refused, "has job a unfinished since 2026-11-30T12:00:05Z, and its overlap policy (FORBID) has no room");
    assert!(forbid.run_now(noon(60), &active, Overlap::Force, &limits()).is_ok());

    let allow = saved(every("1h").overlap_policy(OverlapPolicy::Allow).max_instances(2));
    refuses(allow.run_now(noon(60), &active, Overlap::Respect, &limits()), "(ALLOW 2) has no room");
    assert!(allow.run_now(noon(60), &active[..1], Overlap::Respect, &limits()).is_ok());
    let forbidding = Limits { forbidden_tasks: vec!["nornir:*".into()], ..limits() };
    refuses(allow.run_now(noon(60), &[], Overlap::Force, &forbidding), "is forbidden by the pattern");
}

#[test]
fn realigned_only_when_it_stands_wrong() {
    let schedule = saved(every("1h"));
    assert_eq!(schedule.realigned(noon(60)), None);
    assert_eq!(schedule.realigned(noon(90_000)), None);
    // Two minutes back: 12:00 comes before the cursor, though it is the anchor itself.
    assert_eq!(schedule.realigned(noon(-120)), Some(schedule.upcoming(NOON)));
    // Who read the clock a moment before it was decided has not seen it go back.
    assert_eq!(schedule.realigned(noon(-60)), None);
    // `start_at` is respected.
    let starting = saved(every("1h").start_at(noon(1800)));
    assert_eq!(starting.realigned(noon(-86_400)), None);
    for state in [ScheduleState::Paused, ScheduleState::Disabled] {
        assert_eq!(Schedule { state, ..schedule.clone() }.realigned(noon(-120)), None);
    }
    assert_eq!(Schedule { next: None, ..schedule }.realigned(noon(-120)), None);
}

/// The error of a taken name carries the schedule that has it.
#[test]
fn a_taken_name_shows_the_other_one() {
    let existing = Box::new(saved(every("1h").name("nightly")));
    let id = existing.uuid.clone();
    let error = ScheduleError::NameTaken { existing };
    assert!(error.to_string().contains(&format!("named \"nightly\" exists already: {id} (ACTIVE)")), "{error}");
}
