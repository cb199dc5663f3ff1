//! Rows as callers see them, and the helpers of the schedule tests.

use super::*;
use crate::{Interval, Job, JobStatus, Limits, NewSchedule};
use serde_json::{Value, json};

/// 2026-11-30T12:00:00Z.
pub(crate) const NOON: Timestamp = Timestamp::from_seconds(1_796_040_000);

/// An instant so many seconds after noon.
pub(crate) fn noon(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(NOON.as_micros() / 1_000_000 + seconds)
}

/// A time of the day of noon.
pub(crate) fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-11-30T{time}Z")).expect("time")
}

pub(crate) fn every(interval: &str) -> NewSchedule {
    NewSchedule::new("nornir", "cli", interval.parse::<Interval>().expect("interval"))
}

/// The schedule as saved at noon.
pub(crate) fn saved(new: NewSchedule) -> Schedule {
    saved_at(NOON, new)
}

pub(crate) fn saved_at(now: Timestamp, new: NewSchedule) -> Schedule {
    Limits::default().check_schedule(now, new).expect("valid").schedule().clone()
}

#[test]
fn a_row_has_the_names_of_its_columns() {
    let schedule = saved(every("5m").name("collect-clock").timezone("europe/berlin").grace(60));
    let row = serde_json::to_value(&schedule).expect("serialises");
    let mut expected = json!({
        "uuid": schedule.uuid.as_str(), "name": "collect-clock", "service": "nornir", "task": "cli", "workers": "all",
        "timeout": 600, "trigger_type": "interval", "trigger_config": {"seconds": 300, "mode": "fixed_rate"},
        "timezone": "europe/berlin", "start_at": null, "end_at": null, "anchor_at": "2026-11-30T12:00:00Z",
        "jitter_seconds": 0, "next_run_at": "2026-11-30T12:05:00Z", "next_due_at": "2026-11-30T12:05:00Z",
        "decided_until": "2026-11-30T12:00:00Z", "decided_at": "2026-11-30T12:00:00Z", "last_run_at": null, "state": "ACTIVE", "coalesce": "latest", "misfire_grace_seconds": 60,
        "overlap_policy": "FORBID", "max_instances": 1, "created_at": "2026-11-30T12:00:00Z",
        "updated_at": "2026-11-30T12:00:00Z", "deleted_at": null, "revision": 1, "total_runs": 0, "failed_runs": 0,
        "missed_runs": 0, "overlap_skips": 0, "coalesced_runs": 0, "passed_over": 0, "last_error": null,
        "last_outcome": null,
    });
    assert_eq!(row, expected);

    let view = ScheduleView { schedule, active_jobs: 2 };
    let detail = ScheduleDetail { view, args: Json::empty_array(), kwargs: Json::empty_object() };
    let shown: Value = serde_json::from_str(&serde_json::to_string(&detail).expect("serialises")).expect("JSON");
    for (key, value) in [("active_jobs", json!(2)), ("args", json!([])), ("kwargs", json!({}))] {
        expected.as_object_mut().expect("object").insert(key.to_owned(), value);
    }
    assert_eq!(shown, expected);
}

/// The first two occurrences that are shown after an instant, in seconds after noon.
#[track_caller]
fn shows(schedule: &Schedule, now: i64, after: i64, expected: &[i64]) {
    let shown: Vec<_> = schedule.outlook(noon(now), noon(after)).take(2).map(|one| one.occurrence).collect();
    let expected: Vec<_> = expected.iter().map(|second| noon(*second)).collect();
    assert_eq!(shown, expected, "at {now}, after {after}");
}

#[test]
fn an_outlook_shows_what_runs_and_what_ran() {
    let fresh = saved(every("1m"));
    shows(&fresh, 10, 10, &[60, 120]);
    shows(&fresh, 10, 90, &[120, 180]);
    // Nothing ran before the creation.
    shows(&fresh, 10, -86_400, &[60, 120]);
    let plan = crate::plan_due(&fresh, noon(600), 0, 100);
    let ran = plan.settle(&fresh, noon(600), &std::collections::HashSet::new());
    shows(&ran, 610, 610, &[660, 720]);
    shows(&ran, 610, 500, &[540, 600]);
    // The clock was put back, and that is not noticed yet: what is decided does not come again.
    shows(&ran, 300, 300, &[660, 720]);
    let realigned = Schedule { next: ran.realigned(noon(300)), ..ran.clone() };
    shows(&realigned, 300, 300, &[360, 420]);
    // The grid was another one before the change.
    let patch = crate::SchedulePatch { trigger: Some(every("30s").trigger), ..crate::SchedulePatch::default() };
    let changed = ran.update(noon(615), patch, &Limits::default()).expect("updated").managed.schedule;
    shows(&changed, 700, 0, &[630, 660]);
    let ended = saved(every("1m").end_at(noon(90)));
    let plan = crate::plan_due(&ended, noon(60), 0, 100);
    let ended = plan.settle(&ended, noon(60), &std::collections::HashSet::new());
    shows(&ended, 70, 0, &[60]);
    shows(&ended, 70, 70, &[]);
    shows(&ended, 10, 20, &[]);
}

#[test]
fn a_schedule_without_a_cursor_shows_null() {
    let done = Schedule { next: None, state: ScheduleState::Completed, ..saved(every("5m")) };
    let row = serde_json::to_value(&done).expect("serialises");
    assert_eq!((&row["next_run_at"], &row["next_due_at"]), (&Value::Null, &Value::Null));
}

#[test]
fn labels() {
    let schedule = saved(every("5m"));
    assert_eq!(schedule.label(), schedule.uuid.as_str());
    let named = Schedule { name: Some("nightly".into()), ..schedule };
    assert_eq!(named.label(), format!("\"nightly\" ({})", named.uuid));
}

/// Daily with jitter 300 s: ten days, ten runs, each within 300 s of its nominal instant, and the cadence does not
/// drift.
#[test]
fn jitter_delays_and_never_drifts() {
    let daily = saved(every("1d").jitter(300));
    let ten: Vec<Upcoming> = daily.preview(NOON).take(10).collect();
    for (day, upcoming) in (1..).zip(&ten) {
        assert_eq!(upcoming.occurrence, noon(day * 86_400));
        assert!((upcoming.occurrence..=noon(day * 86_400 + 300)).contains(&upcoming.due));
    }
    let delays: std::collections::BTreeSet<_> = ten.iter().map(|up| up.due.since(up.occurrence)).collect();
    assert_eq!(delays.len(), 10);
}

/// Jitter 120 s, end at 18:00:00: the 18:00 occurrence runs then, not after the end.
#[test]
fn jitter_never_passes_the_end() {
    let hourly = saved(every("1h").jitter(120).end_at(at("18:00:00")));
    let last = hourly.preview(NOON).last().expect("occurrences");
    assert_eq!((last.occurrence, last.due), (at("18:00:00"), at("18:00:00")));
    let between = Schedule { end_at: Some(at("18:00:01.5")), ..hourly };
    assert!(between.due_time(at("18:00:00")) <= at("18:00:01.5"));
}

/// A row edited by hand may have more jitter than its interval.
#[test]
fn jitter_never_reaches_the_next_occurrence() {
    let edited = Schedule { jitter_seconds: 86_400, ..saved(every("2s")) };
    let due: Vec<Upcoming> = edited.preview(NOON).take(1000).collect();
    assert!(due.iter().zip(due.iter().skip(1)).all(|(one, next)| one.due < next.occurrence));
}

/// Two hours are two hours of elapsed time, whatever the clocks of the zone do.
#[test]
fn an_interval_is_elapsed_time_through_a_clock_change() {
    let start = Timestamp::parse("2026-10-24T22:00:00Z").expect("time");
    let berlin = saved_at(start, every("2h").start_at(start.plus_seconds(7200)).timezone("Europe/Berlin"));
    let local: Vec<String> =
        berlin.preview(start).take(3).map(|up| berlin.timezone.local(up.occurrence).to_string()).collect();
    assert_eq!(
        local,
        ["2026-10-25 2:00:00.0 +02:00:00", "2026-10-25 3:00:00.0 +01:00:00", "2026-10-25 5:00:00.0 +01:00:00"]
    );
}

#[test]
fn jobs_of_a_schedule() {
    let schedule = saved(every("1m").grace(20).timeout(30));
    let planned = schedule.planned_job(schedule.upcoming(noon(60)));
    let job = schedule.new_job(noon(61), &planned);
    assert_eq!(job.uuid, crate::JobId::of_occurrence(&schedule.uuid, noon(60)));
    assert_eq!((job.status, job.origin), (JobStatus::New, crate::Origin::Occurrence));
    assert_eq!((job.scheduled_for, job.start_deadline), (Some(noon(60)), Some(noon(80))));
    assert_eq!((job.released_at, job.deadline), (Some(noon(61)), Some(noon(91))));
    assert_eq!(job.schedule_id.as_ref(), Some(&schedule.uuid));

    let missed = MissedJobs { newest: planned, from: noon(-60), count: 3 };
    let row = schedule.missed_job(noon(99), &missed);
    let expected = Job {
        status: JobStatus::Missed,
        deadline: None,
        released_at: None,
        created_at: Some(noon(99)),
        finished_at: Some(noon(99)),
        ..job
    };
    assert_eq!(row, expected);
    assert_eq!(
        missed.to_string(),
        "missed 3 occurrences from 2026-11-30T11:59:00Z to 2026-11-30T12:01:00Z: they could not start within their grace"
    );
    let one = MissedJobs { count: 1, ..missed };
    assert_eq!(one.to_string(), "missed the occurrence of 2026-11-30T12:01:00Z: it could not start within its grace");
}

#[test]
fn failed_runs() {
    let results = |json: &[&str]| json.iter().map(|json| Json::parse(*json).expect("JSON")).collect::<Vec<_>>();
    let failed = |status, json: &[&str]| run_failed(status, &results(json));
    assert!(failed(JobStatus::Failed, &[]) && failed(JobStatus::Stale, &[r#"{"failed":false}"#]));
    assert!(failed(JobStatus::Completed, &[r#"{"failed":false}"#, r#"{"result":1,"failed":true}"#]));
    assert!(!failed(
        JobStatus::Completed,
        &[r#"{"failed":false}"#, r#"{"result":1}"#, "7", "null", r#"{"failed":"true"}"#]
    ));
    assert!(!failed(JobStatus::Cancelled, &[]) && !failed(JobStatus::Missed, &[]));
}
