//! What is claimed as it is made, beside what is made first and claimed then: nobody can tell the two apart.

mod common;

use common::{Database, START, add, at, every, job, random};
use norfab_model::{
    Claim, Claimed, Coalesce, Json, Limits, Link, LiveWorkers, Materialize, Materialized, NewSchedule, OverlapPolicy,
    ScheduleStore, Scope, Store, Workers,
};
use norfab_store::SqliteStore;

async fn pass(store: &SqliteStore, seconds: i64, claim: Option<&Claim<'_>>) -> Materialized {
    let limits = Limits::default();
    let request = Materialize { now: at(seconds), limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim };
    store.schedule_materialize_due(request).await.unwrap()
}

/// All that is in the database of jobs, schedules and events.
async fn content(database: &Database) -> Vec<Vec<String>> {
    let mut content = Vec::new();
    for table in ["jobs", "job_schedules", "events"] {
        let columns = database.rows(&["name"], &format!("FROM pragma_table_info('{table}')")).await;
        let columns: Vec<String> =
            columns.into_iter().flatten().map(|name| format!("\"{}\"", name.trim_matches('\''))).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        content.extend(database.rows(&columns, &format!("FROM {table} ORDER BY rowid")).await);
    }
    content
}

fn alive() -> LiveWorkers {
    let answer = r#"[{"name":"w7","service":"dummy","status":"alive"}]"#;
    LiveWorkers::from_answer(at(60), &Json::parse(answer.to_owned()).unwrap()).unwrap()
}

/// A database, and a copy of it.
async fn twice(schedules: Vec<NewSchedule>, edit: &str) -> [Database; 2] {
    let database = Database::missing();
    let store = database.open().await;
    for new in schedules {
        store.schedule_add(&Limits::default().check_schedule(START, new).unwrap()).await.unwrap();
    }
    store.close().await;
    database.execute(edit).await;
    let copy = Database::with_bytes(&std::fs::read(database.path()).unwrap());
    [database, copy]
}

/// One line: these schedules are due after an edit; so many jobs may be claimed, and these workers are alive. So many are
/// claimed.
async fn check(schedules: Vec<NewSchedule>, edit: &str, limit: u32, live: Option<&LiveWorkers>, expected: usize) {
    let told = format!("{} schedules, at most {limit}, {edit}", schedules.len());
    let [along, one_by_one] = twice(schedules, edit).await;
    let claim = Claim { live, ..Claim::new(at(60), &Scope::All, limit) };
    let store = along.open().await;
    let together = pass(&store, 60, Some(&claim)).await;
    store.close().await;
    let store = one_by_one.open().await;
    let made = pass(&store, 60, None).await;
    let claimed = store.job_claim(claim).await.unwrap();
    store.close().await;
    assert_eq!(claimed.posts.len(), expected, "{told}");
    // They may be large.
    assert!(together == Materialized { claimed: Some(claimed), ..made }, "{told}");
    assert!(content(&along).await == content(&one_by_one).await, "{told}");
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn usual() -> NewSchedule {
    every(60).args(json("[1,2.50]")).kwargs(json(r#"{"k":"v"}"#)).timeout(77)
}

fn any() -> NewSchedule {
    every(60).workers(Workers::Any)
}

/// Each occurrence of a day becomes a job.
fn many(seconds: u64) -> NewSchedule {
    every(seconds).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000)
}

#[tokio::test]
async fn the_same_rows_come_of_it() {
    check(vec![usual()], "", 10, None, 1).await;
    check(vec![usual().grace(30), every(30).workers(Workers::All), every(50).grace(2)], "", 10, None, 2).await;
    check(vec![any(), usual(), any()], "", 10, Some(&alive()), 3).await;
    check(vec![usual(), usual()], "", 2, None, 2).await;
    check((0..16).map(|_| usual()).collect(), "", 100, None, 16).await;
    check(vec![many(4), usual()], "", 100, None, 16).await;
}

#[tokio::test]
async fn the_same_rows_come_of_what_is_claimed_then() {
    check(vec![], "", 10, None, 0).await;
    check(vec![any(), usual()], "", 10, None, 1).await;
    check(vec![usual(), usual()], "", 1, None, 1).await;
    check(vec![usual()], "", 0, None, 0).await;
    check((0..17).map(|_| usual()).collect(), "", 100, None, 17).await;
    check(vec![many(3)], "", 100, None, 20).await;
    let older =
        "INSERT INTO jobs (uuid, service, task, status, received_timestamp, workers_requested, timeout, deadline)
        VALUES ('older', 'dummy', 'echo', 'NEW', '', '\"all\"', 600, 1e10)";
    check(vec![usual(), usual()], older, 2, None, 2).await;
    check(vec![usual(), usual()], "UPDATE job_schedules SET args = x'00' WHERE rowid = 1", 10, None, 1).await;
}

#[tokio::test]
async fn large_arguments_are_claimed_then() {
    let large = random(100_000);
    check(vec![usual().args(json(&format!("[{large:?}]")))], "", 10, None, 1).await;
    check(vec![usual().kwargs(json(&format!("{{\"k\":{large:?}}}")))], "", 10, None, 1).await;
    // It is small as it is stored only.
    let long = format!("[{:?}]", "long ".repeat(60_000));
    check(vec![many(4).args(json(&long))], "", 100, None, 15).await;
}

/// An occurrence whose row is there already is not made, and not sent.
#[tokio::test]
async fn what_is_there_already_is_not_claimed() {
    let done = "INSERT INTO jobs (uuid, service, task, status, received_timestamp, schedule_id, scheduled_for, origin)
        SELECT 'done', service, task, 'COMPLETED', '', uuid, next_run_at, 'occurrence' FROM job_schedules WHERE rowid = 1";
    check(vec![usual(), usual()], done, 10, None, 1).await;
    check(vec![usual()], done, 10, None, 0).await;
}

/// A trigger of the database refuses what it says.
async fn refusing(database: &Database, event: &str, outcome: &str) {
    database.execute(&format!("CREATE TRIGGER planted BEFORE {event} BEGIN SELECT RAISE({outcome}); END")).await;
}

/// So many schedules are due beside an older job, and the database refuses the claim of one: all are made, none is to blame,
/// and who claims then is told.
async fn check_refused(schedules: usize, older: usize, event: &str, outcome: &str) {
    let database = Database::missing();
    let store = database.open().await;
    for _ in 0..schedules {
        store.schedule_add(&Limits::default().check_schedule(START, every(60)).unwrap()).await.unwrap();
    }
    for number in 0..older {
        add(&store, START, job(&format!("older-{number}")).timeout(600)).await;
    }
    refusing(&database, event, outcome).await;
    let claim = Claim::new(at(60), &Scope::All, 10);
    let made = pass(&store, 60, Some(&claim)).await;
    let told = format!("{schedules} schedules, {older} older jobs, {event}, {outcome}");
    assert_eq!((made.created.len(), made.quarantined.len(), made.claimed), (schedules, 0, None), "{told}");
    let status = database.rows(&["status"], "FROM jobs").await;
    assert_eq!(status, vec![["'NEW'"]; schedules + older], "{told}");
    if event.contains("UPDATE") {
        let error = store.job_claim(claim.clone()).await.unwrap_err();
        assert!(error.to_string().contains("claim jobs"), "{told}: {error}");
    }
    database.execute("DROP TRIGGER planted").await;
    assert_eq!(store.job_claim(claim).await.unwrap().posts.len(), schedules + older, "{told}");
}

#[tokio::test]
async fn a_claim_that_is_refused_blames_no_schedule() {
    let update = "UPDATE ON jobs WHEN new.status = 'SUBMITTING'";
    let insert = "INSERT ON jobs WHEN new.status = 'SUBMITTING'";
    for schedules in [1, 2] {
        check_refused(schedules, 1, update, "ABORT, 'not this one'").await;
        check_refused(schedules, 1, update, "ROLLBACK, 'not this one'").await;
        check_refused(schedules, 1, update, "IGNORE").await;
        check_refused(schedules, 0, insert, "ABORT, 'not this one'").await;
        check_refused(schedules, 0, insert, "ROLLBACK, 'not this one'").await;
    }
}

/// What SQLite undoes with all that was done along with it is told to those too.
#[tokio::test]
async fn who_is_undone_along_hears_why() {
    // Whether the two share a transaction hangs on whether the connection is free.
    for _ in 0..100 {
        let told = undone_along().await;
        if !told.is_empty() {
            assert!(told.len() == 2 && told.iter().all(|told| told.contains("not this one")), "{told:?}");
            return;
        }
    }
    panic!("they never shared a transaction");
}

/// A release, and occurrences whose claim has the database undo all: what is told to those that failed.
async fn undone_along() -> Vec<String> {
    let database = Database::missing();
    let store = database.open().await.working_here();
    store.schedule_add(&Limits::default().check_schedule(START, every(60)).unwrap()).await.unwrap();
    add(&store, START, job("delayed").at(at(60))).await;
    refusing(&database, "UPDATE ON jobs WHEN new.status = 'SUBMITTING'", "ROLLBACK, 'not this one'").await;
    let (limits, claim) = (Limits::default(), Claim::new(at(60), &Scope::All, 10));
    let claim = Some(&claim);
    let request = Materialize { now: at(60), limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim };
    let release = store.job_release_due(at(60), &Scope::All, Link::Up);
    let (released, made) = tokio::join!(biased; release, store.schedule_materialize_due(request));
    released.err().map(|error| chain(&error)).into_iter().chain(made.err().map(|error| chain(&error))).collect()
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[tokio::test]
async fn what_cannot_be_made_is_claimed_by_nobody() {
    let database = Database::missing();
    let store = database.open().await;
    store.schedule_add(&Limits::default().check_schedule(START, every(60)).unwrap()).await.unwrap();
    refusing(&database, "UPDATE OF last_run_at ON job_schedules WHEN new.state = 'ACTIVE'", "ABORT, 'not this one'")
        .await;
    let claim = Claim::new(at(60), &Scope::All, 10);
    let made = pass(&store, 60, Some(&claim)).await;
    assert_eq!((made.created.len(), made.quarantined.len(), made.claimed), (0, 1, None));
    assert_eq!(database.value("count(*)", "FROM jobs").await, "0");
    assert_eq!(store.job_claim(claim).await.unwrap(), Claimed::default());
}
