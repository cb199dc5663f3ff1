//! Schedules that run by the clocks of a zone, and the release of the zone data by which their cursor was computed.

use norfab_model::{
    Calendar, Cron, Limits, NewSchedule, Overlap, OverlapPolicy, Patch, Schedule, SchedulePatch, ScheduleState,
    ScheduleStore, Timestamp, Trigger, Workers, Zone,
};

use super::support::{START, add_schedule, at, every, pass, schedule};
use super::{Database, LeftCursor};

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

const HOUR: i32 = 3600;

/// A schedule of Berlin that was made at noon of 1 July 2027, where the zone is two hours ahead of UTC; and as a release left
/// it by whose data it is so many hours ahead.
async fn left_by(
    database: &impl Database,
    trigger: impl Into<Trigger>,
    hours: i32,
    next: &str,
    decided_until: &str,
) -> Schedule {
    let store = database.open().await;
    let new = by_clock(trigger, "Europe/Berlin").overlap_policy(OverlapPolicy::Allow).max_instances(99);
    let added = add_schedule(&store, instant("2027-07-01T12:00:00Z"), new).await;
    leave(database, &added, hours, next, decided_until).await;
    added
}

async fn leave(database: &impl Database, added: &Schedule, hours: i32, next: &str, decided_until: &str) {
    let cursor = LeftCursor {
        zone_data: Some("2020a".to_owned()),
        zone_offset: Some(hours * HOUR),
        next: added.upcoming(instant(next)),
        decided_until: instant(decided_until),
    };
    database.leave(&added.uuid, cursor).await;
}

/// 03:00 of 2 July ran at 00:00Z by data that had the zone an hour further ahead; by today's it is at 01:00Z.
async fn ran_before_its_time(database: &impl Database) -> Schedule {
    left_by(database, daily("03:00"), 3, "2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z").await
}

const BETWEEN: &str = "2027-07-02T00:30:00Z";
const THIRD_OF_JULY: &str = "2027-07-03T01:00:00Z";

/// The start of a dispatcher: how many cursors moved by their zone.
async fn start(store: &impl ScheduleStore, now: &str) -> usize {
    let moved = store.schedule_rezone(Zone::data_version()).await.expect("looked at");
    assert_eq!(store.schedule_rezone(Zone::data_version()).await.expect("looked at"), [], "it is noticed once");
    assert_eq!(store.schedule_realign(instant(now)).await.expect("looked at"), [], "nothing moves again");
    moved.len()
}

/// What becomes of the schedules in passes, one every five minutes of so many hours: the occurrences that get a job.
async fn passes<D: Database>(database: &D, from: &str, hours: i64) -> Vec<String> {
    let (store, from) = (database.open().await, instant(from));
    let mut ran = Vec::new();
    for step in 0..=hours * 12 {
        let now = Timestamp::from_micros(from.as_micros() + step * 300_000_000);
        let made = pass(&store, now).await.created;
        ran.extend(made.iter().filter_map(|job| job.scheduled_for).map(|at| at.to_string()));
    }
    ran
}

async fn next(database: &impl Database, of: &Schedule) -> Option<Timestamp> {
    schedule(&database.open().await, &of.uuid).await.next.map(|next| next.occurrence)
}

/// The clocks go further ahead than was known, or less far.
pub(super) async fn a_cursor_keeps_its_time_of_day(database: &impl Database) {
    let later = left_by(database, daily("03:00"), 1, "2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z").await;
    let earlier = left_by(database, cron("0 3 * * *"), 3, "2027-07-02T00:00:00Z", "2027-07-01T12:00:00Z").await;
    let store = database.open().await;
    let paused = add_schedule(&store, START, by_clock(daily("03:00"), "Europe/Berlin").paused()).await;
    leave(database, &paused, 1, "2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z").await;
    assert_eq!(start(&store, "2027-07-01T13:00:00Z").await, 3);
    for moved in [&later, &earlier, &paused] {
        assert_eq!(next(database, moved).await, Some(instant("2027-07-02T01:00:00Z")));
    }
    let ran = passes(database, "2027-07-01T13:00:00Z", 24).await;
    assert_eq!(ran, ["2027-07-02T01:00:00Z"; 2]);
}

/// The stored instant shows another time of day now, and 02:30 of that day is none.
pub(super) async fn a_time_of_day_that_is_left_out_now_runs_after_the_gap(database: &impl Database) {
    let store = database.open().await;
    let new = by_clock(daily("02:30"), "Europe/Berlin").overlap_policy(OverlapPolicy::Allow).max_instances(99);
    let added = add_schedule(&store, instant("2027-03-27T12:00:00Z"), new).await;
    leave(database, &added, 1, "2027-03-28T01:30:00Z", "2027-03-27T12:00:00Z").await;
    assert_eq!(start(&store, "2027-03-27T13:00:00Z").await, 1);
    let ran = passes(database, "2027-03-27T13:00:00Z", 36).await;
    assert_eq!(ran, ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"]);
}

pub(super) async fn what_ran_by_other_zone_data_does_not_run_again(database: &impl Database) {
    let once = ran_before_its_time(database).await;
    // All of an hour's; by today's data they are at 07:00Z to 07:50Z.
    left_by(database, cron("*/10 9 * * *"), 9, "2027-07-03T00:00:00Z", "2027-07-02T00:50:00Z").await;
    assert_eq!(start(&database.open().await, "2027-07-02T00:55:00Z").await, 2);
    assert_eq!(passes(database, "2027-07-02T00:55:00Z", 24).await, ["2027-07-03T00:55:00Z"; 0]);
    assert_eq!(next(database, &once).await, Some(instant(THIRD_OF_JULY)));
    assert_eq!(passes(database, "2027-07-03T01:00:00Z", 7).await.len(), 7);
}

/// Half-hourly is half-hourly, whatever the clocks are said to show: neither a heap nor a silence.
pub(super) async fn free_hours_go_on_by_elapsed_time(database: &impl Database) {
    for hours in [-3, 1, 3, 9] {
        left_by(database, cron("*/30 * * * *"), hours, "2027-07-02T09:00:00Z", "2027-07-02T08:30:00Z").await;
    }
    assert_eq!(start(&database.open().await, "2027-07-02T08:40:00Z").await, 0);
    let ran = passes(database, "2027-07-02T08:40:00Z", 1).await;
    assert_eq!(ran, [["2027-07-02T09:00:00Z"; 4], ["2027-07-02T09:30:00Z"; 4]].concat());
}

/// The data agree about the next occurrence; from then on it goes by today's.
pub(super) async fn a_rule_that_differs_later_moves_no_cursor(database: &impl Database) {
    let store = database.open().await;
    let summer = left_by(database, daily("03:00"), 2, "2027-07-02T01:00:00Z", "2027-07-01T12:00:00Z").await;
    assert_eq!(start(&store, "2027-07-01T13:00:00Z").await, 0);
    assert_eq!(passes(database, "2027-07-02T00:30:00Z", 1).await, ["2027-07-02T01:00:00Z"]);
    // The clocks go back before the next one, as today's data has it.
    let new = by_clock(daily("03:00"), "Europe/Berlin");
    let autumn = add_schedule(&store, instant("2027-10-30T12:00:00Z"), new).await;
    leave(database, &autumn, 1, "2027-10-31T02:00:00Z", "2027-10-30T12:00:00Z").await;
    assert_eq!(start(&store, "2027-10-30T13:00:00Z").await, 0);
    assert_eq!(schedule(&store, &autumn.uuid).await, autumn);
    pass(&store, instant("2027-12-01T01:00:00Z")).await;
    for moved in [summer, autumn] {
        assert_eq!(next(database, &moved).await, Some(instant("2027-12-01T02:00:00Z")));
    }
}

/// A row of another program: its cursor stays at its instant.
pub(super) async fn what_nobody_knows_is_taken_for_todays(database: &impl Database) {
    let store = database.open().await;
    let added = add_schedule(&store, START, by_clock(daily("03:00"), "Europe/Berlin")).await;
    let next = added.next.expect("a cursor");
    for zone_offset in [None, Some(999_999)] {
        let cursor = LeftCursor { zone_data: None, zone_offset, next, decided_until: added.decided_until };
        database.leave(&added.uuid, cursor).await;
        assert_eq!(schedule(&store, &added.uuid).await, added);
        assert_eq!(store.schedule_rezone(Zone::data_version()).await.expect("looked at"), []);
        assert_eq!(schedule(&store, &added.uuid).await, added);
    }
}

pub(super) async fn nothing_may_be_left_by_other_zone_data(database: &impl Database) {
    let store = database.open().await;
    let new = by_clock(daily("03:00"), "Europe/Berlin").end_at(instant("2027-07-02T01:30:00Z"));
    let added = add_schedule(&store, instant("2027-07-01T12:00:00Z"), new).await;
    leave(database, &added, 3, "2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z").await;
    assert_eq!(start(&store, BETWEEN).await, 1);
    let ended = schedule(&store, &added.uuid).await;
    assert_eq!((ended.next, ended.state), (None, ScheduleState::Completed));
}

/// Before anybody has written anything.
pub(super) async fn readers_see_the_cursor_by_their_own_data(database: &impl Database) {
    let added = ran_before_its_time(database).await;
    let store = database.open().await;
    assert_eq!(next(database, &added).await, Some(instant(THIRD_OF_JULY)));
    let listed = store.schedule_list(&norfab_model::ScheduleFilter::default()).await.expect("is listed");
    assert_eq!(listed.schedules[0].schedule, schedule(&store, &added.uuid).await);
    let detail = store.schedule_detail(&added.uuid.clone().into()).await.expect("is readable").expect("is there");
    let preview: Vec<_> = detail.view.schedule.outlook(instant(BETWEEN), instant(BETWEEN)).take(1).collect();
    assert_eq!(preview, [added.upcoming(instant(THIRD_OF_JULY))]);
    assert_eq!(start(&store, BETWEEN).await, 1, "reading wrote nothing");
}

/// What is left when a call was made between the two times: nothing before 3 July, with a dispatcher or before one starts.
async fn repeats_nothing(database: &impl Database, added: &Schedule) {
    assert_eq!(next(database, added).await, Some(instant(THIRD_OF_JULY)));
    assert_eq!(start(&database.open().await, BETWEEN).await, 0, "the call has brought it to this data");
    assert_eq!(passes(database, BETWEEN, 24).await, ["-"; 0]);
    assert_eq!(passes(database, THIRD_OF_JULY, 0).await, [THIRD_OF_JULY]);
}

pub(super) async fn a_pause_that_ends_under_other_zone_data_repeats_nothing(database: &impl Database) {
    let (added, store, now) = (ran_before_its_time(database).await, database.open().await, instant(BETWEEN));
    // Paused by the older program.
    store.schedule_pause(now, &added.uuid).await.expect("is paused");
    leave(database, &added, 3, "2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z").await;
    let resumed = store.schedule_resume(now, &added.uuid, &Limits::default()).await.expect("is resumed");
    assert_eq!((resumed.passed_over, resumed.schedule.state), (0, ScheduleState::Active));
    repeats_nothing(database, &added).await;
}

pub(super) async fn what_was_off_repeats_nothing_under_other_zone_data(database: &impl Database) {
    let (added, store, now) = (ran_before_its_time(database).await, database.open().await, instant(BETWEEN));
    store.schedule_disable(now, &added.uuid.clone().into()).await.expect("is disabled");
    leave(database, &added, 3, "2027-07-03T00:00:00Z", "2027-07-02T00:00:00Z").await;
    let resumed = store.schedule_resume(now, &added.uuid, &Limits::default()).await.expect("is enabled");
    assert_eq!(resumed.passed_over, 0);
    repeats_nothing(database, &added).await;
}

pub(super) async fn an_update_under_other_zone_data_repeats_nothing(database: &impl Database) {
    let limits = Limits::default();
    // One moves the cursor, one does not.
    for patch in [
        SchedulePatch { end_at: Patch::Set(instant("2027-08-01T00:00:00Z")), ..SchedulePatch::default() },
        SchedulePatch { timeout: Patch::Set(77), ..SchedulePatch::default() },
    ] {
        let (added, store, now) = (ran_before_its_time(database).await, database.open().await, instant(BETWEEN));
        let updated = store.schedule_update(now, &added.uuid, &patch, &limits).await.expect("is updated");
        assert_eq!((updated.passed_over, updated.schedule.revision), (0, 2));
        repeats_nothing(database, &added).await;
        store.schedule_delete(instant(THIRD_OF_JULY), &added.uuid.into()).await.expect("is deleted");
    }
}

pub(super) async fn a_run_by_hand_under_other_zone_data_moves_the_cursor_with_it(database: &impl Database) {
    let (added, store, now) = (ran_before_its_time(database).await, database.open().await, instant(BETWEEN));
    let run = store.schedule_run_now(now, &added.uuid, Overlap::Force, &Limits::default()).await.expect("runs");
    assert_eq!(run.schedule, schedule(&store, &added.uuid).await);
    repeats_nothing(database, &added).await;
}

/// A program of an older release has written while this one makes the jobs.
pub(super) async fn a_pass_under_other_zone_data_repeats_nothing_and_leaves_none_out(database: &impl Database) {
    let earlier = ran_before_its_time(database).await;
    assert_eq!(passes(database, BETWEEN, 24).await, ["-"; 0]);
    assert_eq!(next(database, &earlier).await, Some(instant(THIRD_OF_JULY)));
    // It is due at 02:00Z by the older data, at 01:00Z by today's.
    let later = left_by(database, daily("03:00"), 1, "2027-07-02T02:00:00Z", "2027-07-01T12:00:00Z").await;
    assert_eq!(passes(database, "2027-07-02T02:00:00Z", 0).await, ["2027-07-02T01:00:00Z"]);
    assert_eq!(next(database, &later).await, Some(instant(THIRD_OF_JULY)));
}

/// The clock is set back to before what was decided.
pub(super) async fn a_clock_set_back_under_other_zone_data_keeps_nothing_silent(database: &impl Database) {
    let added = ran_before_its_time(database).await;
    let store = database.open().await;
    assert_eq!(store.schedule_rezone(Zone::data_version()).await.expect("looked at").len(), 1);
    let back = store.schedule_realign(instant("2027-07-01T12:30:00Z")).await.expect("looked at");
    assert_eq!(back[0].to, added.upcoming(instant("2027-07-02T01:00:00Z")));
    assert_eq!(passes(database, "2027-07-02T00:55:00Z", 1).await, ["-"; 0], "it has come to what was decided");
    assert_eq!(next(database, &added).await, Some(instant(THIRD_OF_JULY)));
}
