//! What is claimed as it is made, beside what is made first and claimed then: nobody can tell the two apart.

mod common;

use common::{Database, START, add, at, every, job};
use norfab_model::{
    Claim, Claimed, Limits, LiveWorkers, Materialize, Materialized, NewSchedule, ScheduleStore, Scope, Store, Workers,
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
    LiveWorkers::from_answer(at(60), &norfab_model::Json::parse(answer.to_owned()).unwrap()).unwrap()
}

/// One line: these schedules are due, beside so many older jobs; so many jobs may be claimed, and these workers are alive.
async fn check(schedules: Vec<NewSchedule>, older: usize, limit: u32, live: Option<&LiveWorkers>) {
    let told = format!("{} schedules, {older} older jobs, at most {limit}", schedules.len());
    let at_once = Database::missing();
    let store = at_once.open().await;
    for new in schedules {
        store.schedule_add(&Limits::default().check_schedule(START, new).unwrap()).await.unwrap();
    }
    for number in 0..older {
        add(&store, START, job(&format!("older-{number}")).timeout(600)).await;
    }
    store.close().await;
    let one_by_one = Database::with_bytes(&std::fs::read(at_once.path()).unwrap());

    let claim = Claim { live, ..Claim::new(at(60), &Scope::All, limit) };
    let store = at_once.open().await;
    let together = pass(&store, 60, Some(&claim)).await;
    store.close().await;
    let store = one_by_one.open().await;
    let made = pass(&store, 60, None).await;
    let claimed = store.job_claim(claim).await.unwrap();
    store.close().await;
    assert_eq!(together, Materialized { claimed: Some(claimed), ..made }, "{told}");
    assert_eq!(content(&at_once).await, content(&one_by_one).await, "{told}");
}

#[tokio::test]
async fn the_same_rows_come_of_it() {
    let json = |text: &str| norfab_model::Json::parse(text.to_owned()).unwrap();
    let usual = || every(60).args(json("[1,2.50]")).kwargs(json(r#"{"k":"v"}"#)).timeout(77);
    check(vec![usual()], 0, 10, None).await;
    check(vec![usual().grace(30), every(30).workers(Workers::All), every(50).grace(2)], 0, 10, None).await;
    let any = || every(60).workers(Workers::Any);
    check(vec![any(), usual(), any()], 0, 10, Some(&alive())).await;
    check(vec![any(), usual()], 0, 10, None).await;
    check(vec![usual(), usual()], 2, 3, None).await;
    check(vec![usual(), usual()], 0, 1, None).await;
    let long = format!("[{:?}]", "long ".repeat(20_000));
    check(vec![usual().args(json(&long))], 0, 10, None).await;
    check((0..40).map(|_| usual()).collect(), 0, 100, None).await;
    check(vec![], 1, 10, None).await;
}

#[tokio::test]
async fn a_claim_that_is_refused_blames_no_schedule() {
    let database = Database::missing();
    let store = database.open().await;
    store.schedule_add(&Limits::default().check_schedule(START, every(60)).unwrap()).await.unwrap();
    add(&store, START, job("older").timeout(600)).await;
    database
        .execute(
            "CREATE TRIGGER planted BEFORE UPDATE ON jobs WHEN new.status = 'SUBMITTING'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .await;
    let claim = Claim::new(at(60), &Scope::All, 10);
    let made = pass(&store, 60, Some(&claim)).await;
    assert_eq!((made.created.len(), made.quarantined.len(), made.claimed), (1, 0, None), "left to a call of its own");
    let error = store.job_claim(claim.clone()).await.unwrap_err();
    assert!(error.to_string().contains("claim jobs"), "which tells of it: {error}");
    assert_eq!(database.rows(&["status"], "FROM jobs").await, [["'NEW'"], ["'NEW'"]]);
    database.execute("DROP TRIGGER planted").await;
    assert_eq!(store.job_claim(claim).await.unwrap().posts.len(), 2);
}

#[tokio::test]
async fn what_cannot_be_made_is_claimed_by_nobody() {
    let database = Database::missing();
    let store = database.open().await;
    store.schedule_add(&Limits::default().check_schedule(START, every(60)).unwrap()).await.unwrap();
    database
        .execute(
            "CREATE TRIGGER planted BEFORE UPDATE OF last_run_at ON job_schedules WHEN new.state = 'ACTIVE'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .await;
    let claim = Claim::new(at(60), &Scope::All, 10);
    let made = pass(&store, 60, Some(&claim)).await;
    assert_eq!((made.created.len(), made.quarantined.len(), made.claimed), (0, 1, None));
    assert_eq!(database.value("count(*)", "FROM jobs").await, "0");
    assert_eq!(store.job_claim(claim).await.unwrap(), Claimed::default());
}
