//! Schedules that run by the clocks of a zone, through clock changes, on a clock moved by hand and in both stores: jobs at
//! the right instants, once.

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Bench, result};
use norfab_dispatch::{Config, ManualClock};
use norfab_model::{
    Calendar, Clock, Cron, JobId, JobStatus, Limits, NewSchedule, ScheduleError, ScheduleKey, ScheduleStore, Store,
    Timestamp, Trigger, Workers,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection};

on_both_stores!(
    new_york_when_the_clocks_go_forward,
    new_york_when_the_clocks_go_back,
    berlin_without_a_hole,
    berlin_by_the_calendar,
    lord_howe_by_half_an_hour,
    cairo_at_midnight,
    apia_without_a_day,
    a_link_that_was_down_over_a_clock_change,
);

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect(text)
}

fn cron(expression: &str) -> Trigger {
    Cron::new(expression).expect(expression).into()
}

fn daily(time: &str) -> Trigger {
    Calendar::daily(time).expect(time).into()
}

/// A dispatcher at an instant, with its link up, and a schedule that is made there.
async fn bench<S: Store + ScheduleStore>(
    store: Arc<S>,
    start: &str,
    zone: &str,
    trigger: Trigger,
) -> (Bench<S>, ScheduleKey) {
    let mut bench = Bench::start(store, ManualClock::at(at(start)), Config::default());
    bench.link_up().await;
    let new = NewSchedule::new("dummy", "echo", trigger).workers(Workers::List(vec!["w1".into()])).timezone(zone);
    let valid = Limits::default().check_schedule(bench.clock.now(), new).expect("valid");
    let schedule = bench.store.schedule_add(&valid).await.expect("added");
    bench.control.wake();
    (bench, ScheduleKey::Id(schedule.uuid))
}

/// Takes the job that is sent now, which is that of an occurrence, and brings it to its end.
async fn runs<S: Store + ScheduleStore>(bench: &mut Bench<S>, key: &ScheduleKey, occurrence: Timestamp) {
    let id = bench.next_post().await.job;
    bench.reply(&id, result());
    let job = bench.told(&id, JobStatus::Completed).await;
    assert_eq!(job.scheduled_for, Some(occurrence), "expected {occurrence}");
    let ScheduleKey::Id(schedule) = key else { panic!("{key} is a name") };
    assert_eq!(job.uuid, JobId::of_occurrence(schedule, occurrence));
}

/// From `start` on jobs are sent at these instants, to the microsecond, each once, and at no other one between them.
async fn check<S: Store + ScheduleStore>(
    store: Arc<S>,
    (zone, trigger): (&str, Trigger),
    start: &str,
    instants: &[&str],
) {
    let (mut bench, key) = bench(store, start, zone, trigger).await;
    for instant in instants.iter().copied().map(at) {
        bench.clock.advance_to(instant.saturating_sub(Duration::from_micros(1)));
        bench.silent().await;
        bench.clock.advance_to(instant);
        runs(&mut bench, &key, instant).await;
        bench.silent().await;
    }
    let schedule = bench.store.schedule_find(&key).await.expect("readable").expect("there").schedule;
    let made = schedule.counters.total_runs;
    assert_eq!((made, schedule.counters.coalesced_runs), (instants.len() as u64, 0));
    bench.store.schedule_delete(bench.clock.now(), &key).await.expect("deleted");
    bench.stop().await;
}

async fn new_york_when_the_clocks_go_forward<S: Store + ScheduleStore>(store: Arc<S>) {
    let days = ["2025-03-08T07:30:00Z", "2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"];
    check(Arc::clone(&store), ("America/New_York", cron("30 2 * * *")), "2025-03-08T00:00:00Z", &days).await;
    // With free hours, 02:30 is as far from 01:30 as ever.
    let hours = ["2025-03-09T06:30:00Z", "2025-03-09T07:30:00Z", "2025-03-09T08:30:00Z"];
    check(store, ("America/New_York", cron("30 * * * *")), "2025-03-09T06:00:00Z", &hours).await;
}

async fn new_york_when_the_clocks_go_back<S: Store + ScheduleStore>(store: Arc<S>) {
    let days = ["2025-11-01T05:30:00Z", "2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"];
    check(Arc::clone(&store), ("America/New_York", cron("30 1 * * *")), "2025-11-01T00:00:00Z", &days).await;
    let hours = ["2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z", "2025-11-02T07:30:00Z"];
    check(store, ("America/New_York", cron("30 * * * *")), "2025-11-02T05:00:00Z", &hours).await;
}

async fn berlin_without_a_hole<S: Store + ScheduleStore>(store: Arc<S>) {
    let start = at("2025-10-25T23:45:00Z");
    let quarters: Vec<String> = (1..=10).map(|quarter| start.plus_seconds(quarter * 900).to_string()).collect();
    let quarters: Vec<&str> = quarters.iter().map(String::as_str).collect();
    check(store, ("Europe/Berlin", cron("0/15 * * * *")), "2025-10-25T23:45:00Z", &quarters).await;
}

async fn berlin_by_the_calendar<S: Store + ScheduleStore>(store: Arc<S>) {
    let spring = ["2025-03-29T01:30:00Z", "2025-03-30T01:00:00Z", "2025-03-31T00:30:00Z"];
    check(Arc::clone(&store), ("Europe/Berlin", daily("02:30")), "2025-03-28T12:00:00Z", &spring).await;
    let autumn = ["2025-10-25T00:30:00Z", "2025-10-26T00:30:00Z", "2025-10-27T01:30:00Z"];
    check(store, ("Europe/Berlin", daily("02:30")), "2025-10-24T12:00:00Z", &autumn).await;
}

async fn lord_howe_by_half_an_hour<S: Store + ScheduleStore>(store: Arc<S>) {
    let autumn = ["2025-04-05T14:45:00Z", "2025-04-06T15:15:00Z"];
    check(Arc::clone(&store), ("Australia/Lord_Howe", cron("45 1 * * *")), "2025-04-05T00:00:00Z", &autumn).await;
    let spring = ["2025-10-04T15:30:00Z", "2025-10-05T15:15:00Z"];
    check(store, ("Australia/Lord_Howe", cron("15 2 * * *")), "2025-10-04T00:00:00Z", &spring).await;
}

async fn cairo_at_midnight<S: Store + ScheduleStore>(store: Arc<S>) {
    let hours = ["2025-04-24T22:00:00Z", "2025-04-24T23:00:00Z", "2025-04-25T01:00:00Z"];
    check(Arc::clone(&store), ("Africa/Cairo", cron("0 */2 * * *")), "2025-04-24T20:00:00Z", &hours).await;
    let days = ["2025-04-23T22:30:00Z", "2025-04-24T22:00:00Z", "2025-04-25T21:30:00Z"];
    check(store, ("Africa/Cairo", daily("00:30")), "2025-04-23T12:00:00Z", &days).await;
}

/// Samoa has no 30 December 2011.
async fn apia_without_a_day<S: Store + ScheduleStore>(store: Arc<S>) {
    let days = ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"];
    check(store, ("Pacific/Apia", cron("0 9 * * *")), "2011-12-29T00:00:00Z", &days).await;
}

/// The policies decide once about what came due by the clock.
async fn a_link_that_was_down_over_a_clock_change<S: Store + ScheduleStore>(store: Arc<S>) {
    let (mut bench, key) = bench(store, "2025-03-28T12:00:00Z", "Europe/Berlin", daily("02:30")).await;
    bench.settle().await;
    bench.link_lost().await;
    bench.clock.advance_to(at("2025-03-30T01:00:00Z"));
    bench.silent().await;
    bench.link_up().await;
    runs(&mut bench, &key, at("2025-03-30T01:00:00Z")).await;
    bench.silent().await;
    let schedule = bench.store.schedule_find(&key).await.expect("readable").expect("there").schedule;
    assert_eq!((schedule.counters.total_runs, schedule.counters.coalesced_runs), (1, 1));
    assert_eq!(schedule.next.map(|next| next.occurrence), Some(at("2025-03-31T00:30:00Z")));
}

/// A store in a file, and SQL beside it as of another program.
async fn edit(folder: &std::path::Path, sql: &str) {
    let options = SqliteConnectOptions::new().filename(folder.join("jobs.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.expect("connects");
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.expect("runs");
    connection.close().await.expect("closes");
}

/// By the data of the process that ran before, Berlin was three hours ahead: 03:00 of 2 July was at 00:00Z and has run. By
/// today's it is at 01:00Z.
#[tokio::test]
async fn a_start_with_other_zone_data_runs_no_wall_clock_time_twice() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Arc::new(common::open(folder.path()).await);
    let (bench, key) = bench(store, "2027-07-01T12:00:00Z", "Europe/Berlin", daily("03:00")).await;
    let store = bench.stop().await;
    let (ran, next) = (at("2027-07-02T00:00:00Z").as_seconds_f64(), at("2027-07-03T00:00:00Z").as_seconds_f64());
    let older = format!(
        "UPDATE job_schedules SET zone_data = '2020a', zone_offset = 10800, next_run_at = {next:.1}, next_due_at = {next:.1},
            decided_until = {ran:.1}, decided_at = NULL, last_run_at = {ran:.1}"
    );
    edit(folder.path(), &older).await;
    let mut bench = Bench::start(store, ManualClock::at(at("2027-07-02T00:30:00Z")), Config::default());
    bench.link_up().await;
    for passed in ["2027-07-02T01:00:00Z", "2027-07-03T00:00:00Z", "2027-07-03T00:59:59.999999Z"] {
        bench.clock.advance_to(at(passed));
        bench.silent().await;
    }
    bench.clock.advance_to(at("2027-07-03T01:00:00Z"));
    runs(&mut bench, &key, at("2027-07-03T01:00:00Z")).await;
    bench.silent().await;
}

/// A program of an older release writes while this one serves: by its data 03:00 of 2 July is at 02:00Z, by today's at
/// 01:00Z.
#[tokio::test]
async fn what_a_program_with_other_zone_data_writes_is_put_right_at_once() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Arc::new(common::open(folder.path()).await);
    let (mut bench, key) = bench(store, "2027-07-01T12:00:00Z", "Europe/Berlin", daily("03:00")).await;
    bench.settle().await;
    let next = at("2027-07-02T02:00:00Z").as_seconds_f64();
    let older = format!(
        "UPDATE job_schedules SET zone_data = '2020a', zone_offset = 3600, next_run_at = {next:.1}, next_due_at = {next:.1}"
    );
    edit(folder.path(), &older).await;
    bench.clock.advance_to(at("2027-07-01T12:01:00Z"));
    bench.silent().await;
    bench.clock.advance_to(at("2027-07-02T00:59:59.999999Z"));
    bench.silent().await;
    bench.clock.advance_to(at("2027-07-02T01:00:00Z"));
    runs(&mut bench, &key, at("2027-07-02T01:00:00Z")).await;
    bench.clock.advance_to(at("2027-07-02T02:00:00Z"));
    bench.silent().await;
    bench.stop().await;
}

/// All of 09:00 to 09:55 ran by the data of the process that ran before; by today's it is to come.
#[tokio::test]
async fn a_start_with_other_zone_data_runs_none_of_an_hour_twice() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Arc::new(common::open(folder.path()).await);
    let (bench, key) = bench(store, "2027-07-01T12:00:00Z", "Europe/Berlin", cron("*/5 9 * * *")).await;
    let store = bench.stop().await;
    let (ran, next) = (at("2027-07-02T04:55:00Z").as_seconds_f64(), at("2027-07-03T04:00:00Z").as_seconds_f64());
    let older = format!(
        "UPDATE job_schedules SET zone_data = '2020a', zone_offset = 18000, next_run_at = {next:.1}, next_due_at = {next:.1},
            decided_until = {ran:.1}, decided_at = NULL, last_run_at = {ran:.1}"
    );
    edit(folder.path(), &older).await;
    let mut bench = Bench::start(store, ManualClock::at(at("2027-07-02T05:00:00Z")), Config::default());
    bench.link_up().await;
    for passed in ["2027-07-02T07:00:00Z", "2027-07-02T07:30:00Z", "2027-07-03T06:59:59.999999Z"] {
        bench.clock.advance_to(at(passed));
        bench.silent().await;
    }
    for minute in [0, 5] {
        let due = at("2027-07-03T07:00:00Z").plus_seconds(minute * 60);
        bench.clock.advance_to(due);
        runs(&mut bench, &key, due).await;
    }
    bench.stop().await;
}

/// What another hand made of a rule switches its schedule off; the others run.
#[tokio::test]
async fn a_bad_expression_and_a_zone_that_is_gone_stop_their_schedule_alone() {
    for (bad, part) in [
        ("trigger_config = '{\"expression\":\"99 * * * *\"}'", "minute field"),
        ("trigger_config = '{\"expression\":\"0 0 31 2 *\"}'", "never fires"),
        ("trigger_config = '{\"expression\":\"* * * * *\",\"version\":2}'", "version 2 of the cron trigger"),
        ("timezone = 'Europe/Atlantis'", "the time zone \"Europe/Atlantis\" is unknown"),
    ] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Arc::new(common::open(folder.path()).await);
        let (first, broken) = bench(store, "2027-07-01T12:00:30Z", "Europe/Berlin", cron("* * * * *")).await;
        let store = first.stop().await;
        let (mut bench, good) = bench(store, "2027-07-01T12:00:30Z", "Europe/Berlin", cron("* * * * *")).await;
        edit(folder.path(), &format!("UPDATE job_schedules SET {bad} WHERE rowid = 1")).await;
        bench.clock.advance_to(at("2027-07-01T12:01:00Z"));
        runs(&mut bench, &good, at("2027-07-01T12:01:00Z")).await;
        bench.silent().await;
        let (state, reason) = match bench.store.schedule_find(&broken).await {
            Err(ScheduleError::Unreadable(row)) => (row.state, row.last_error),
            other => panic!("{bad}: {other:?}"),
        };
        assert_eq!(state, "DISABLED");
        assert!(reason.as_ref().is_some_and(|reason| reason.contains(part)), "{bad}: {reason:?}");
        bench.stop().await;
    }
}
