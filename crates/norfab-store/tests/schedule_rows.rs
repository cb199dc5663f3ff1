//! Rows of schedules that were edited into nonsense, and databases that refuse what becomes of a schedule: it is switched
//! off, and the others go on.

mod common;

use common::{Database, START, at, schedules};
use norfab_model::{
    Claim, JobFilter, Limits, Materialize, Materialized, Overdue, Overlap, ScheduleError, ScheduleFilter, ScheduleId,
    ScheduleKey, ScheduleState, ScheduleStore, Store, StoreError, SwitchedOff, UnreadableSchedule,
};
use norfab_store::SqliteStore;

const LIMITS: fn() -> Limits = Limits::default;

async fn pass(store: &SqliteStore, seconds: i64) -> Result<Materialized, ScheduleError> {
    let limits = LIMITS();
    let request =
        Materialize { now: at(seconds), limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim: None };
    store.schedule_materialize_due(request).await
}

fn key(name: &str) -> ScheduleKey {
    ScheduleKey::Name(name.to_owned())
}

/// Of five schedules the third is edited like this. The others run, it is switched off for this reason.
async fn check(edit: &str, reason: &str) {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 5, 60).await;
    database
        .execute(&format!("PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET {edit} WHERE rowid = 3"))
        .await;
    let outcome = pass(&store, 60).await.unwrap();
    assert_eq!((outcome.created.len(), outcome.quarantined.len()), (4, 1), "{edit}");
    let told = &outcome.quarantined[0].reason;
    assert!(told.contains(reason) && told.chars().count() <= 500 && !told.contains(char::is_control), "{edit}: {told}");
    let row = database.rows(&["state", "last_error"], "FROM job_schedules WHERE rowid = 3").await.remove(0);
    assert_eq!(row, ["'DISABLED'".to_owned(), format!("'{}'", told.replace('\'', "''"))], "{edit}");
    let again = pass(&store, 120).await.unwrap();
    assert_eq!((again.outcomes.len(), again.quarantined.len()), (4, 0), "{edit}: it comes up no more");
    let page = store.schedule_list(&ScheduleFilter::default()).await.unwrap();
    // One that counts as deleted is on no list.
    let listed = if edit.starts_with("deleted_at") { 4 } else { 5 };
    assert_eq!(page.schedules.len() + page.unreadable.len(), listed, "{edit}");
    store.close().await;
}

/// Edits that make nonsense of a row, and what is said of it.
const NONSENSE: &[(&str, &str)] = &[
    ("timezone = 'Europe/Berlim'", "the time zone \"Europe/Berlim\" is unknown; did you mean Europe/Berlin?"),
    ("timezone = x'00ff'", "its timezone is no text"),
    ("trigger_config = '{\"seconds\":0}'", "an interval must be 1 to"),
    ("trigger_config = '{\"seconds\":1e999}'", "its trigger_config cannot be used"),
    ("trigger_config = 'not JSON'", "is not a trigger"),
    ("trigger_type = 'solar'", "the trigger type \"solar\" is unknown"),
    ("trigger_type = 'cron'", "the key \"mode\" of the cron trigger is unknown"),
    (
        "trigger_type = 'cron', trigger_config = '{\"expression\":\"61 * * * *\"}'",
        "the minute field \"61\" of the cron expression is wrong",
    ),
    (
        "trigger_type = 'cron', trigger_config = '{\"expression\":\"0 0 31 2 *\"}'",
        "the cron expression \"0 0 31 2 *\" never fires",
    ),
    (
        "trigger_type = 'calendar', trigger_config = '{\"unit\":\"day\",\"at\":\"25:00\"}'",
        "at of the calendar trigger must be a time of day",
    ),
    ("timezone = 'CST'", "\"CST\" is an abbreviation, not a time zone"),
    ("timeout = -5", "its timeout is no whole number from 1 to 4294967295"),
    ("timeout = 'soon'", "its timeout is no whole number"),
    ("jitter_seconds = -1", "its jitter_seconds is no whole number"),
    ("max_instances = 0", "its max_instances is no whole number"),
    ("misfire_grace_seconds = 0", "its misfire_grace_seconds is no whole number"),
    ("\"coalesce\" = 'newest'", "\"newest\" is not a coalesce policy"),
    ("overlap_policy = 'REPLACE'", "\"REPLACE\" is not an overlap policy"),
    ("workers = '[1]'", "its workers names no workers"),
    ("workers = ''", "its workers is NULL"),
    ("anchor_at = 'dawn'", "its anchor_at is no number of seconds"),
    ("anchor_at = 1e300", "its anchor_at is no date of this calendar"),
    ("next_run_at = NULL", "its next_run_at is NULL beside a next_due_at"),
    ("next_due_at = NULL", "its next_due_at is NULL beside a next_run_at"),
    ("next_due_at = 'soon'", "its next_due_at is no number of seconds"),
    ("next_due_at = x'00'", "its next_due_at is no number of seconds"),
    ("next_due_at = next_due_at * 1000", "its next_due_at is no date of this calendar"),
    ("next_due_at = 9e999", "its next_due_at is no "),
    ("decided_until = 'once'", "its decided_until is no number of seconds"),
    ("decided_at = 'once'", "its decided_at is no number of seconds"),
    ("created_at = 'once'", "its created_at is no number of seconds"),
    ("deleted_at = 'once'", "its deleted_at"),
    ("deleted_at = 5.0", "its deleted_at is given while it is ACTIVE"),
    ("revision = 0", "its revision is no whole number"),
    ("total_runs = 'many'", "its total_runs is no whole number"),
    ("missed_runs = -3", "its missed_runs is no whole number"),
    ("uuid = x'00'", "its uuid is no text"),
    ("uuid = char(10)", "its uuid is no identity"),
    ("name = 7, timeout = 0", "its timeout"),
    ("service = x'ff'", "its service is no text"),
];

/// Edits of a row that can be read still, and not be used.
const UNUSABLE: &[(&str, &str)] = &[
    ("service = ''", "service must have 1 to 255 bytes"),
    ("task = replace(hex(zeroblob(200)), '0', 'x')", "task must have 1 to 255 bytes"),
];

#[tokio::test]
async fn what_cannot_be_read_or_used_is_switched_off() {
    for (edit, reason) in NONSENSE.iter().chain(UNUSABLE) {
        check(edit, reason).await;
    }
}

/// Rules that are none, as another hand may have written them, and what is said of each.
const BROKEN: &[(&str, &str, &str)] = &[
    ("cron", r#"{"expression":""}"#, "has 0 fields"),
    ("cron", r#"{"expression":"* * * *"}"#, "has 4 fields"),
    ("cron", r#"{"expression":"0 * * * * *"}"#, "has 6 fields"),
    ("cron", r#"{"expression":"* * * * *","seconds":true}"#, "has 5 fields"),
    ("cron", r#"{"expression":"60 * * * *"}"#, "the minute field \"60\""),
    ("cron", r#"{"expression":"0 24 * * *"}"#, "the hour field \"24\""),
    ("cron", r#"{"expression":"0 0 32 * *"}"#, "the day of month field \"32\""),
    ("cron", r#"{"expression":"0 0 * 13 *"}"#, "the month field \"13\""),
    ("cron", r#"{"expression":"0 0 * * 8"}"#, "the day of week field \"8\""),
    (
        "cron",
        r#"{"expression":"5-1 * * * *"}"#,
        "the minute field \"5-1\" of the cron expression is wrong: the range runs",
    ),
    ("cron", r#"{"expression":"*/0 * * * *"}"#, "step cannot be zero"),
    ("cron", r#"{"expression":"0-100000000 * * * *"}"#, "the number is far too large"),
    ("cron", r#"{"expression":"0 0 31 4,6,9,11 *"}"#, "never fires"),
    ("cron", r#"{"expression":7}"#, "expression of the cron trigger must be a text"),
    ("cron", r#"{"expression":"* * * * *","seconds":1}"#, "seconds of the cron trigger must be true or false"),
    ("cron", r#"{"expression":"* * * * *","zone":"UTC"}"#, "the key \"zone\" of the cron trigger is unknown"),
    ("cron", r#"{"expression":"* * * * *","version":2}"#, "version 2 of the cron trigger is unknown"),
    ("cron", "[]", "is not a trigger"),
    ("calendar", r#"{"unit":"day","at":"3 am"}"#, "at of the calendar trigger"),
    ("calendar", r#"{"unit":"year","at":"03:00"}"#, "unit of the calendar trigger"),
    ("calendar", r#"{"unit":"day","at":"03:00","every":0}"#, "a calendar interval must be of 1 to"),
    ("calendar", r#"{"unit":"week","at":"03:00","weekdays":[]}"#, "weekdays of the calendar trigger"),
    ("calendar", r#"{"unit":"month","at":"03:00","day":32}"#, "day of the calendar trigger"),
];

/// Each with its reason in one pass, and the one beside them runs.
#[tokio::test]
async fn broken_rules_are_switched_off_and_no_other_is() {
    let database = Database::missing();
    let store = database.open().await;
    let long = format!(r#"{{"expression":"{}"}}"#, "*".repeat(1_000_000));
    let long = ("cron", long.as_str(), "the cron expression has 1000000 bytes, more than the limit of 1000");
    let broken: Vec<_> = BROKEN.iter().copied().chain([long]).collect();
    let ids = schedules(&store, START, broken.len() + 1, 60).await;
    for (row, (kind, config, _)) in (1..).zip(&broken) {
        let edit = format!("trigger_type = '{kind}', trigger_config = '{config}'");
        database.execute(&format!("UPDATE job_schedules SET {edit} WHERE rowid = {row}")).await;
    }
    let outcome = pass(&store, 60).await.unwrap();
    assert_eq!(outcome.created.len(), 1);
    assert_eq!(outcome.created[0].schedule_id.as_ref(), ids.last().map(|last| &last.uuid));
    let reasons: Vec<_> = outcome.quarantined.iter().map(|quarantined| quarantined.reason.as_str()).collect();
    assert_eq!(reasons.len(), broken.len());
    for ((_, config, part), reason) in broken.iter().zip(reasons) {
        assert!(reason.contains(part) && reason.chars().count() <= 500, "{config:.100}: {reason}");
    }
    assert_eq!(
        database.value("count(*)", "FROM job_schedules WHERE state = 'DISABLED'").await,
        broken.len().to_string()
    );
    assert_eq!(pass(&store, 120).await.unwrap().quarantined, [], "they come up no more");
}

/// The third of three schedules is edited like this. Whether a pass has come upon it or not, it is shown for what it is,
/// and can be disabled and deleted; the others go on.
async fn check_removal(edit: &str, reason: &str, passes: usize) {
    let database = Database::missing();
    let store = database.open().await;
    let id = schedules(&store, START, 3, 60).await.remove(2).uuid;
    database
        .execute(&format!("PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET {edit} WHERE rowid = 3"))
        .await;
    // A row without an identity has its name still.
    let key = if edit.starts_with("uuid") { key("schedule-2") } else { ScheduleKey::Id(id) };
    for _ in 0..passes {
        pass(&store, 60).await.unwrap();
    }
    let is_deletion = edit.starts_with("deleted_at");
    if is_deletion && passes > 0 {
        // What the pass made of it is one that was deleted.
        assert!(matches!(store.schedule_delete(at(70), &key).await, Err(ScheduleError::Deleted { .. })), "{edit}");
        return store.close().await;
    }
    let row = match store.schedule_find(&key).await {
        Err(ScheduleError::Unreadable(row)) => row,
        other => panic!("{edit}: {other:?}"),
    };
    let state = if passes == 0 { "ACTIVE" } else { "DISABLED" };
    assert!(row.reason.contains(reason) && row.state == state, "{edit}: {row:?}");
    assert_eq!(row.last_error.is_some(), passes > 0, "{edit}: {row:?}");
    if !is_deletion {
        let page = store.schedule_list(&ScheduleFilter::default()).await.unwrap();
        assert_eq!((page.schedules.len(), &page.unreadable), (2, &vec![(*row).clone()]), "{edit}");
        let off = store.schedule_disable(at(69), &key).await.unwrap();
        let expected = SwitchedOff::Unreadable(UnreadableSchedule { state: "DISABLED".to_owned(), ..*row });
        assert_eq!(off, expected, "{edit}");
        assert_eq!(store.schedule_disable(at(69), &key).await.unwrap(), expected, "{edit}: again");
    }
    store.schedule_delete(at(70), &key).await.unwrap();
    let row = database.rows(&["state", "deleted_at"], "FROM job_schedules WHERE rowid = 3").await.remove(0);
    assert_eq!(row, ["'DISABLED'".to_owned(), format!("{:?}", at(70).as_seconds_f64())], "{edit}");
    if matches!(key, ScheduleKey::Id(_)) {
        assert!(matches!(store.schedule_delete(at(71), &key).await, Err(ScheduleError::Deleted { .. })), "{edit}");
        assert!(matches!(store.schedule_disable(at(71), &key).await, Err(ScheduleError::Deleted { .. })), "{edit}");
    }
    let page = store.schedule_list(&ScheduleFilter::default()).await.unwrap();
    assert_eq!((page.schedules.len(), page.unreadable.len()), (2, 0), "{edit}");
    let again = common::every(60).name("schedule-2");
    store.schedule_add(&Limits::default().check_schedule(at(72), again).unwrap()).await.unwrap();
    let outcome = pass(&store, 132).await.unwrap();
    assert_eq!((outcome.outcomes.len(), outcome.quarantined.len()), (3, 0), "{edit}: the others, and who has its name");
    store.close().await;
}

#[tokio::test]
async fn what_cannot_be_read_can_be_got_rid_of() {
    for (edit, reason) in NONSENSE {
        for passes in [0, 1] {
            check_removal(edit, reason, passes).await;
        }
    }
}

#[tokio::test]
async fn what_its_removal_puts_right_can_be_read_again() {
    let database = Database::missing();
    let store = database.open().await;
    let id: ScheduleKey = schedules(&store, START, 1, 60).await.remove(0).uuid.into();
    database.execute("PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET state = 'Paused'").await;
    match store.schedule_find(&id).await {
        Err(ScheduleError::Unreadable(row)) => assert_eq!(row.state, "Paused"),
        other => panic!("{other:?}"),
    }
    let off = store.schedule_disable(at(1), &id).await.unwrap();
    assert_eq!(off.managed().map(|managed| managed.schedule.state), Some(ScheduleState::Disabled));
    assert_eq!(
        store.schedule_resume(at(2), &id_of(&id), &LIMITS()).await.unwrap().schedule.state,
        ScheduleState::Active
    );
}

fn id_of(key: &ScheduleKey) -> ScheduleId {
    let ScheduleKey::Id(id) = key else { panic!("no identity: {key}") };
    id.clone()
}

/// The due time of the only schedule is edited like this: a pass is wanted at once, switches it off, and wants no other.
async fn check_alone(due: &str, reason: &str) {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 1, 60).await;
    database
        .execute(&format!(
            "PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET next_due_at = {due}, next_run_at = {due}"
        ))
        .await;
    assert_eq!(store.schedule_realign(at(1)).await.unwrap(), [], "{due}");
    let wanted = store.schedule_next_due().await.unwrap();
    assert!(wanted.is_some_and(|wanted| wanted <= at(1)), "{due}: {wanted:?}");
    let outcome = pass(&store, 1).await.unwrap();
    assert_eq!((outcome.quarantined.len(), outcome.created.len(), outcome.more), (1, 0, false), "{due}");
    assert!(outcome.quarantined[0].reason.contains(reason), "{due}: {}", outcome.quarantined[0].reason);
    assert_eq!(store.schedule_next_due().await.unwrap(), None, "{due}");
    assert_eq!(pass(&store, 2).await.unwrap(), Materialized::default(), "{due}");
    assert_eq!(database.value("state", "FROM job_schedules").await, "'DISABLED'", "{due}");
    store.close().await;
}

#[tokio::test]
async fn a_due_time_that_is_no_instant_is_looked_at_at_once() {
    for beyond in ["1795996860000.0", "253402300800.0", "1e18", "1e300", "-1795996860000.0", "-1e300"] {
        check_alone(beyond, "its next_run_at is no date of this calendar").await;
    }
    for number in ["9e999", "-9e999", "'soon'", "''", "x'00'"] {
        check_alone(number, "its next_run_at is no ").await;
    }
}

/// Of one that has no cursor at all it is not known what was decided: it goes on behind now.
#[tokio::test]
async fn no_due_time_at_all_is_looked_at_at_once() {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 1, 60).await;
    let edit = |sets: &str| format!("PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET {sets}");
    database.execute(&edit("next_due_at = NULL")).await;
    assert!(store.schedule_next_due().await.unwrap().is_some_and(|due| due <= at(1)));
    assert_eq!(pass(&store, 1).await.unwrap().quarantined.len(), 1);
    assert_eq!(store.schedule_next_due().await.unwrap(), None);
    database.execute(&edit("state = 'ACTIVE', next_run_at = NULL, next_due_at = NULL")).await;
    assert!(store.schedule_next_due().await.unwrap().is_some_and(|due| due <= at(2)));
    assert_eq!(pass(&store, 2).await.unwrap().quarantined.len(), 0);
    assert_eq!(store.schedule_next_due().await.unwrap(), Some(at(60)), "it stands on its grid again");
}

#[tokio::test]
async fn of_a_hundred_and_one_the_bad_one_stops_none() {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 101, 60).await;
    database.execute("UPDATE job_schedules SET timezone = 'Mars/Olympus' WHERE name = 'schedule-50'").await;
    let outcome = pass(&store, 60).await.unwrap();
    assert_eq!((outcome.created.len(), outcome.quarantined.len()), (100, 1));
    assert_eq!(outcome.quarantined[0].name.as_deref(), Some("schedule-50"));
    match store.schedule_find(&key("schedule-50")).await {
        Err(ScheduleError::Unreadable(row)) => {
            assert!(row.reason.starts_with("its timezone cannot be used"), "{row:?}");
            assert_eq!((row.name.as_deref(), row.state.as_str()), (Some("schedule-50"), "DISABLED"));
            assert!(row.last_error.is_some_and(|error| error.contains("the time zone \"Mars/Olympus\" is unknown")));
        }
        other => panic!("{other:?}"),
    }
}

/// A trigger of the database refuses something of the schedules whose names match.
async fn refusing(database: &Database, event: &str, condition: &str) {
    let sql = format!(
        "CREATE TRIGGER planted BEFORE {event} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    );
    database.execute(&sql).await;
}

#[tokio::test]
async fn who_is_refused_by_the_database_is_found_by_halving() {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 50, 60).await;
    refusing(
        &database,
        "INSERT ON jobs",
        "new.schedule_id IN (SELECT uuid FROM job_schedules WHERE name IN ('schedule-7', 'schedule-31'))",
    )
    .await;
    let outcome = pass(&store, 60).await.unwrap();
    let mut names: Vec<_> = outcome.quarantined.iter().map(|one| one.name.clone().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["schedule-31", "schedule-7"]);
    assert_eq!((outcome.created.len(), outcome.outcomes.len(), outcome.more), (48, 48, false));
    let off = store.schedule_find(&key("schedule-7")).await.unwrap().unwrap().schedule;
    assert_eq!(off.state, ScheduleState::Disabled);
    assert_eq!(off.last_error.as_deref(), Some("the database refuses what becomes of it: not this one"));
    assert_eq!((off.counters.total_runs, off.last_outcome), (0, None), "nothing of it happened");
    assert_eq!(database.value("count(*)", "FROM jobs").await, "48");
    assert_eq!(database.value("sum(total_runs)", "FROM job_schedules").await, "48");
}

#[tokio::test]
async fn the_budget_holds_over_the_parts_of_a_batch() {
    let database = Database::missing();
    let store = database.open().await;
    for number in 0..4 {
        let new = common::every(60)
            .name(format!("schedule-{number}"))
            .coalesce(norfab_model::Coalesce::All)
            .overlap_policy(norfab_model::OverlapPolicy::Allow)
            .max_instances(100);
        store.schedule_add(&Limits::default().check_schedule(START, new).unwrap()).await.unwrap();
    }
    refusing(&database, "UPDATE OF last_run_at ON job_schedules", "new.name = 'schedule-2'").await;
    let limits = LIMITS();
    let request = Materialize { now: at(600), limits: &limits, budget_left: 12, batch: 1000, seen: &[], claim: None };
    let outcome = store.schedule_materialize_due(request).await.unwrap();
    // Ten and ten and one: the first of each is free.
    assert_eq!((outcome.created.len(), outcome.budget_used), (15, 12));
    assert_eq!((outcome.still_due.len(), outcome.quarantined.len()), (2, 1));
}

#[tokio::test]
async fn a_cursor_that_cannot_advance_leaves_no_job_behind() {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 1, 60).await;
    // Refuses the cursor, and then the switching off too.
    refusing(&database, "UPDATE ON job_schedules", "true").await;
    for _ in 0..2 {
        let error = pass(&store, 60).await.unwrap_err();
        assert!(matches!(error, ScheduleError::Store(StoreError::Storage { .. })), "{error}");
        assert_eq!(database.value("count(*)", "FROM jobs").await, "0", "one transaction");
    }
    database.execute("DROP TRIGGER planted").await;
    assert_eq!(pass(&store, 60).await.unwrap().created.len(), 1);
    assert_eq!(database.value("count(*)", "FROM jobs").await, "1");
}

#[tokio::test]
async fn who_cannot_even_be_switched_off_stops_no_other() {
    let database = Database::missing();
    let store = database.open().await;
    schedules(&store, START, 9, 60).await;
    refusing(&database, "UPDATE ON job_schedules", "new.name = 'schedule-4'").await;
    let outcome = pass(&store, 60).await.unwrap();
    assert_eq!((outcome.created.len(), outcome.quarantined.len(), outcome.more), (8, 0, true));
    assert!(pass(&store, 60).await.is_err(), "alone, it is an error");
    assert_eq!(pass(&store, 120).await.unwrap().outcomes.len(), 8, "and the others go on");
}

#[tokio::test]
async fn a_counter_that_is_none_stops_no_job_from_ending() {
    for counter in ["'many'", "-1", "9223372036854775807", "1.5"] {
        let database = Database::missing();
        let store = database.open().await;
        let added = schedules(&store, START, 1, 60).await.remove(0);
        let job = pass(&store, 60).await.unwrap().created.remove(0);
        database
            .execute(&format!("PRAGMA ignore_check_constraints = ON; UPDATE job_schedules SET failed_runs = {counter}"))
            .await;
        let expired = store.job_expire_due(at(100_000), &norfab_model::Scope::All, Overdue::All).await.unwrap();
        assert_eq!(
            (expired.len(), &expired[0].uuid, expired[0].schedule_id.as_ref()),
            (1, &job.uuid, Some(&added.uuid))
        );
        store.close().await;
    }
}

#[tokio::test]
async fn counters_end_where_numbers_do() {
    let database = Database::missing();
    let store = database.open().await;
    let id = schedules(&store, START, 1, 1).await.remove(0).uuid;
    database
        .execute("UPDATE job_schedules SET coalesced_runs = 9223372036854775806, total_runs = 9223372036854775807")
        .await;
    assert_eq!(pass(&store, 10).await.unwrap().created.len(), 1);
    let counters = store.schedule_find(&id.into()).await.unwrap().unwrap().schedule.counters;
    assert_eq!((counters.coalesced_runs, counters.total_runs), (i64::MAX.unsigned_abs(), i64::MAX.unsigned_abs()));
}

#[tokio::test]
async fn a_job_of_a_schedule_that_cannot_be_read_is_a_failed_run() {
    let database = Database::missing();
    let store = database.open().await;
    let id = schedules(&store, START, 1, 60).await.remove(0).uuid;
    pass(&store, 60).await.unwrap();
    database.execute("UPDATE jobs SET workers_requested = '{'").await;
    store.job_claim(Claim::new(at(61), &norfab_model::Scope::All, 10)).await.unwrap();
    assert_eq!(database.value("status", "FROM jobs").await, "'FAILED'");
    let view = store.schedule_find(&id.clone().into()).await.unwrap().unwrap();
    assert_eq!((view.schedule.counters.failed_runs, view.active_jobs), (1, 0));
    // Arguments that cannot be read come to light when the job is claimed.
    pass(&store, 120).await.unwrap();
    database.execute("UPDATE jobs SET kwargs = x'00' WHERE status = 'NEW'").await;
    assert_eq!(store.job_claim(Claim::new(at(121), &norfab_model::Scope::All, 10)).await.unwrap().failed.len(), 1);
    assert_eq!(store.schedule_find(&id.into()).await.unwrap().unwrap().schedule.counters.failed_runs, 2);
}

#[tokio::test]
async fn a_job_of_a_schedule_that_cannot_be_read_is_in_the_way() {
    for (uuid, shown) in [("x'00ff'", "(\u{fffd})"), ("''", "()"), ("'a' || char(10) || 'b'", "(a b)"), ("NULL", "()")]
    {
        let database = Database::missing();
        let store = database.open().await;
        let id = schedules(&store, START, 1, 60).await.remove(0).uuid;
        database
            .execute(&format!(
                "INSERT INTO jobs (uuid, service, task, status, received_timestamp, schedule_id)
                 VALUES ({uuid}, 'dummy', 'echo', 'STARTED', '', '{id}')"
            ))
            .await;
        match store.schedule_run_now(at(1), &id, Overlap::Respect, &LIMITS()).await {
            Err(ScheduleError::Overlap { job, since, .. }) => {
                assert_eq!((job.as_str(), since), (shown, START), "{uuid}");
            }
            other => panic!("{uuid}: {other:?}"),
        }
        let looked_at = pass(&store, 60).await.unwrap().outcomes.remove(0).outcome;
        assert_eq!((looked_at.created, looked_at.skipped), (0, 1), "{uuid}: as a pass finds it");
        store.close().await;
    }
}

#[tokio::test]
async fn corrupt_arguments_are_an_error_of_their_own() {
    let database = Database::missing();
    let store = database.open().await;
    let id = schedules(&store, START, 1, 60).await.remove(0).uuid;
    database.execute("UPDATE job_schedules SET kwargs = CAST('[\"secret\"]' AS BLOB)").await;
    let error = store.schedule_detail(&id.clone().into()).await.unwrap_err().to_string();
    assert!(error.contains("its kwargs cannot be read") && !error.contains("secret"), "{error}");
    assert!(store.schedule_find(&id.into()).await.unwrap().is_some(), "the rest is usable");
}

#[tokio::test]
async fn a_read_only_store_refuses_every_change() {
    let database = Database::missing();
    let store = database.open().await;
    let id = schedules(&store, START, 1, 60).await.remove(0).uuid;
    store.close().await;
    let options = norfab_store::StoreOptions { access: norfab_store::Access::ReadOnly, ..Default::default() };
    let reader = database.open_with(options).await;
    let read_only = |error: ScheduleError| matches!(error, ScheduleError::Store(StoreError::ReadOnly(_)));
    assert!(read_only(reader.schedule_pause(at(1), &id).await.unwrap_err()));
    assert!(read_only(reader.schedule_delete(at(1), &id.clone().into()).await.unwrap_err()));
    assert!(read_only(reader.schedule_disable(at(1), &id.clone().into()).await.unwrap_err()));
    assert!(read_only(reader.schedule_run_now(at(1), &id, Overlap::Force, &LIMITS()).await.unwrap_err()));
    assert!(read_only(pass(&reader, 60).await.unwrap_err()));
    assert!(read_only(reader.schedule_realign(at(1)).await.unwrap_err()));
    assert_eq!(reader.schedule_next_due().await.unwrap(), Some(at(60)));
    assert_eq!(reader.job_list(&JobFilter::default()).await.unwrap().jobs, []);
}
