//! Schedules whose cursor was computed by another release of the zone data than the process has.

mod common;

use common::Database;
use norfab_model::{
    Calendar, Cron, Limits, Materialize, NewSchedule, Schedule, ScheduleStore, Timestamp, Trigger, Zone,
};
use norfab_store::SqliteStore;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

async fn add(store: &SqliteStore, trigger: impl Into<Trigger>) -> Schedule {
    let new = NewSchedule::new("dummy", "echo", trigger.into()).timezone("Europe/Berlin");
    store.schedule_add(&Limits::default().check_schedule(at("2027-07-01T12:00:00Z"), new).unwrap()).await.unwrap()
}

fn daily() -> Cron {
    Cron::new("0 3 * * *").unwrap()
}

async fn found(store: &SqliteStore, schedule: &Schedule) -> Schedule {
    store.schedule_find(&schedule.uuid.clone().into()).await.unwrap().unwrap().schedule
}

/// What stands beside the cursors, in the order of the rows.
async fn by_zone(database: &Database) -> Vec<Vec<String>> {
    database.rows(&["zone_data", "zone_offset"], "FROM job_schedules ORDER BY rowid").await
}

/// As a release with other data left it: the cursor where 03:00 is by an offset of so many seconds.
async fn left_by(database: &Database, data: &str, offset: i64, next: &str, decided_until: &str) {
    let (next, decided_until) = (at(next).as_seconds_f64(), at(decided_until).as_seconds_f64());
    database
        .execute(&format!(
            "UPDATE job_schedules SET zone_data = {data}, zone_offset = {offset}, next_run_at = {next:.1},
                next_due_at = {next:.1}, decided_until = {decided_until:.1}, decided_at = NULL"
        ))
        .await;
}

fn this_data(offset: i64) -> Vec<String> {
    vec![format!("'{}'", Zone::data_version()), offset.to_string()]
}

fn nothing() -> Vec<String> {
    vec!["NULL".to_owned(), "NULL".to_owned()]
}

#[tokio::test]
async fn the_data_is_kept_whenever_a_cursor_is_computed() {
    let database = Database::missing();
    let store = database.open().await;
    let schedule = add(&store, daily()).await;
    add(&store, Calendar::weekly("mon@03:00").unwrap()).await;
    add(&store, norfab_model::Interval::new(60).unwrap()).await;
    assert_eq!(by_zone(&database).await, [this_data(7200), this_data(7200), nothing()]);
    // What does not move the cursor leaves it by the data that it has.
    database.execute("UPDATE job_schedules SET zone_data = '2020a' WHERE rowid = 1").await;
    store.schedule_pause(at("2027-07-01T13:00:00Z"), &schedule.uuid).await.unwrap();
    assert_eq!(by_zone(&database).await[0], ["'2020a'", "7200"]);
    store.schedule_resume(at("2027-12-01T13:00:00Z"), &schedule.uuid, &Limits::default()).await.unwrap();
    assert_eq!(by_zone(&database).await[0], this_data(3600));
    database.execute("UPDATE job_schedules SET zone_data = '2020a', zone_offset = 60 WHERE rowid = 1").await;
    let limits = Limits::default();
    let now = at("2027-12-02T02:00:00Z");
    let request = Materialize { now, limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim: None };
    store.schedule_materialize_due(request).await.unwrap();
    assert_eq!(by_zone(&database).await[0], this_data(3600));
    let patch = norfab_model::SchedulePatch {
        trigger: Some(norfab_model::Interval::new(60).unwrap().into()),
        ..norfab_model::SchedulePatch::default()
    };
    store.schedule_update(now, &schedule.uuid, &patch, &limits).await.unwrap();
    assert_eq!(by_zone(&database).await[0], nothing());
}

#[tokio::test]
async fn a_cursor_keeps_its_time_of_day() {
    let database = Database::missing();
    let store = database.open().await;
    let schedule = add(&store, daily()).await;
    store.schedule_pause(at("2027-07-01T13:00:00Z"), &schedule.uuid).await.unwrap();
    add(&store, daily()).await;
    left_by(&database, "'2020a'", 3600, "2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z").await;
    let moved = store.schedule_rezone(Zone::data_version()).await.unwrap();
    let told: Vec<_> = moved.iter().map(|one| (one.from.occurrence, one.to.map(|to| to.occurrence))).collect();
    assert_eq!(told, [(at("2027-07-02T02:00:00Z"), Some(at("2027-07-02T01:00:00Z"))); 2]);
    assert_eq!(found(&store, &schedule).await.next, Some(schedule.upcoming(at("2027-07-02T01:00:00Z"))));
    assert_eq!(by_zone(&database).await, [this_data(7200), this_data(7200)]);
    assert_eq!(store.schedule_rezone(Zone::data_version()).await.unwrap(), []);
}

/// 03:00 of 2 July ran at 00:00Z by the older data; the newer one puts it at 01:00Z, which is still to come.
#[tokio::test]
async fn what_ran_does_not_run_again() {
    let database = Database::missing();
    let store = database.open().await;
    let schedule = add(&store, daily()).await;
    left_by(&database, "'2020a'", 10_800, "2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z").await;
    assert_eq!(store.schedule_rezone(Zone::data_version()).await.unwrap().len(), 1);
    let after = found(&store, &schedule).await;
    assert_eq!(after.next, Some(schedule.upcoming(at("2027-07-03T01:00:00Z"))));
    assert_eq!(after.decided_until, at("2027-07-02T01:00:00Z"));
    store.schedule_realign(at("2027-07-02T00:30:00Z")).await.unwrap();
    let limits = Limits::default();
    let now = at("2027-07-02T01:00:30Z");
    let request = Materialize { now, limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim: None };
    assert_eq!(store.schedule_materialize_due(request).await.unwrap().created, []);
    assert_eq!(found(&store, &schedule).await.next, Some(schedule.upcoming(at("2027-07-03T01:00:00Z"))));
}

/// A row of another program, and one that was edited: the cursor stays at its instant.
#[tokio::test]
async fn an_offset_that_nobody_knows_is_that_of_today() {
    for offset in ["NULL", "'an hour'", "999999999999", "999999"] {
        let database = Database::missing();
        let store = database.open().await;
        let schedule = add(&store, daily()).await;
        database
            .execute(&format!(
                "PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET zone_data = NULL, zone_offset = {offset}"
            ))
            .await;
        assert_eq!(store.schedule_rezone(Zone::data_version()).await.unwrap(), [], "{offset}");
        assert_eq!(found(&store, &schedule).await, schedule, "{offset}");
        assert_eq!(by_zone(&database).await, [this_data(7200)], "{offset}");
    }
}

/// What cannot be read stays as it is, and stops no other.
#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_alone() {
    let database = Database::missing();
    let store = database.open().await;
    for _ in 0..3 {
        add(&store, daily()).await;
    }
    left_by(&database, "'2020a'", 3600, "2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z").await;
    database.execute("UPDATE job_schedules SET timezone = 'Europe/Gone' WHERE rowid = 2").await;
    assert_eq!(store.schedule_rezone(Zone::data_version()).await.unwrap().len(), 2);
    let older = vec!["'2020a'".to_owned(), "3600".to_owned()];
    assert_eq!(by_zone(&database).await, [this_data(7200), older, this_data(7200)]);
}
