//! Schedules that run by the clocks of a zone, and the release of the zone data by which their cursor was computed.

use norfab_model::{Calendar, Cron, NewSchedule, OverlapPolicy, ScheduleStore, Timestamp, Trigger, Workers, Zone};

use super::Database;
use super::support::{START, add_schedule, at, every, pass, schedule};

fn by_clock(trigger: impl Into<Trigger>, zone: &str) -> NewSchedule {
    NewSchedule::new("dummy", "echo", trigger.into()).workers(Workers::One("w1".to_owned())).timezone(zone)
}

fn daily(time: &str) -> Calendar {
    Calendar::daily(time).expect("a time of day")
}

fn cron(expression: &str) -> Cron {
    Cron::new(expression).expect("an expression")
}

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("an instant")
}

pub(super) async fn rules_by_the_clock_come_back_to_the_letter(database: &impl Database) {
    let seconds = Cron::with_seconds("*/5 * * * * *").expect("an expression");
    let triggers: [Trigger; 5] = [
        cron("30 2 * * mon-fri").into(),
        seconds.into(),
        daily("03:00").into(),
        Calendar::weekly("mon,thu@03:00").expect("days and a time").into(),
        Calendar::monthly("31@03:00").expect("a day and a time").into(),
    ];
    for trigger in triggers {
        let store = database.open().await;
        let added = add_schedule(&store, START, by_clock(trigger.clone(), "america/new_york")).await;
        let found = schedule(&database.open().await, &added.uuid).await;
        assert_eq!((&found.trigger, found.timezone.name()), (&trigger, "america/new_york"));
        assert_eq!(found, added);
    }
}

/// Around a day of 25 hours, and around one of 23, on which 02:30 is left out.
pub(super) async fn an_occurrence_follows_the_clocks_of_its_zone(database: &impl Database) {
    let store = database.open().await;
    for (start, days) in [
        ("2026-10-31T00:00:00Z", ["2026-10-31T06:30:00Z", "2026-11-01T07:30:00Z", "2026-11-02T07:30:00Z"]),
        ("2027-03-13T00:00:00Z", ["2027-03-13T07:30:00Z", "2027-03-14T07:00:00Z", "2027-03-15T06:30:00Z"]),
    ] {
        let new = by_clock(cron("30 2 * * *"), "America/New_York");
        let new = new.overlap_policy(OverlapPolicy::Allow).max_instances(9);
        let added = add_schedule(&store, instant(start), new).await;
        for day in days.map(instant) {
            assert_eq!(store.schedule_next_due().await.expect("answers"), Some(day));
            let made = pass(&store, day).await.created;
            assert_eq!(made.iter().map(|job| job.scheduled_for).collect::<Vec<_>>(), [Some(day)]);
        }
        store.schedule_delete(instant(days[2]), &added.uuid.into()).await.expect("is deleted");
    }
}

pub(super) async fn the_same_zone_data_moves_nothing(database: &impl Database) {
    let store = database.open().await;
    let added = add_schedule(&store, START, by_clock(daily("03:00"), "Europe/Berlin")).await;
    assert_eq!(store.schedule_rezone(Zone::data_version()).await.expect("looked at"), []);
    assert_eq!(schedule(&store, &added.uuid).await, added);
}

/// Another release that tells the same of a zone moves no cursor of it.
pub(super) async fn other_zone_data_is_noticed_once(database: &impl Database) {
    let store = database.open().await;
    let mut before = Vec::new();
    for new in [
        by_clock(daily("03:00"), "Europe/Berlin"),
        by_clock(cron("0 * * * *"), "America/New_York").paused(),
        by_clock(every(60).trigger, "Europe/Berlin"),
    ] {
        before.push(add_schedule(&store, START, new).await);
    }
    assert_eq!(store.schedule_rezone("0000").await.expect("looked at"), []);
    assert_eq!(store.schedule_rezone("9999").await.expect("looked at"), []);
    for added in before {
        assert_eq!(schedule(&store, &added.uuid).await, added);
    }
    assert_eq!(pass(&store, at(60)).await.created.len(), 1);
}
