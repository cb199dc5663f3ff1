//! What only a database in a file has: damaged rows, other programs, the disk, and the Python client's gaps.

mod common;

use common::{Database, START, add, at, id, job};
use norfab_model::{
    Claim, FabricEventKind, InputRequest, JobFilter, JobId, JobStatus, Json, Link, NewJob, Overdue, Reply, ReplyKind,
    RetryPolicy, Scope, Store, StoreError, Timestamp, Workers,
};
use norfab_store::{Access, SqliteStore, StoreOptions};
use sqlx::Connection;

async fn claim(store: &SqliteStore, job: &JobId) {
    let claimed = store.job_claim(Claim::new(START, &Scope::Jobs(vec![job.clone()]), 10)).await.unwrap();
    assert_eq!(claimed.posts.len(), 1);
}

fn result(job: &JobId, worker: &str, text: &str) -> Reply {
    Reply::new(job.clone(), ReplyKind::Result { worker: worker.to_owned(), result: Json::parse(text).unwrap() })
}

fn accepted(job: &JobId, workers: &[&str]) -> Reply {
    let workers = workers.iter().map(ToString::to_string).collect();
    Reply::new(job.clone(), ReplyKind::Accepted { workers })
}

fn question(input: &str) -> InputRequest {
    InputRequest {
        id: input.to_owned(),
        question: "Go on?".to_owned(),
        default: serde_json::Value::Null,
        timeout: None,
        metadata: serde_json::Value::Null,
    }
}

#[tokio::test]
async fn a_damaged_payload_fails_its_own_job_only() {
    let database = Database::missing();
    let store = database.open().await;
    for name in ["one", "damaged", "three"] {
        add(&store, START, job(name)).await;
    }
    database.execute("UPDATE jobs SET kwargs = x'04224d18ffffffff' WHERE uuid = 'damaged'").await;
    assert_eq!(store.job_list(&JobFilter::default()).await.unwrap().jobs.len(), 3);
    let error = store.job_detail(&id("damaged")).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreadable { job, reason } if job == "damaged" && reason.contains("kwargs")));
    assert!(store.job_detail(&id("one")).await.unwrap().is_some());
    let claimed = store.job_claim(Claim::new(START, &Scope::All, 10)).await.unwrap();
    assert_eq!(claimed.posts.iter().map(|post| post.job.as_str()).collect::<Vec<_>>(), ["one", "three"]);
    assert_eq!(claimed.failed.len(), 1);
    let failed = store.job_find(&id("damaged")).await.unwrap().unwrap();
    assert_eq!((&failed, failed.status), (&claimed.failed[0], JobStatus::Failed));
    let events = store.event_list(&id("damaged"), 0, 10).await.unwrap();
    assert!(events[0].message.starts_with("failed: the stored arguments cannot be read"));
}

#[tokio::test]
async fn a_step_loads_no_more_than_fits() {
    let database = Database::missing();
    let store = database.open().await;
    for name in ["one", "two", "three"] {
        add(&store, START, job(name)).await;
    }
    database.execute("UPDATE jobs SET args = zeroblob(20 << 20)").await;
    for more in [true, true, false] {
        let claimed = store.job_claim(Claim::new(START, &Scope::All, 10)).await.unwrap();
        assert_eq!((claimed.failed.len(), claimed.more), (1, more));
    }
    database.execute("UPDATE jobs SET status = 'STARTED', result_data = zeroblob(20 << 20)").await;
    for _ in 0..3 {
        assert_eq!(store.job_expire_due(at(60), &Scope::All, Overdue::All).await.unwrap().len(), 1);
    }
    assert!(store.job_expire_due(at(60), &Scope::All, Overdue::All).await.unwrap().is_empty());
}

#[tokio::test]
async fn damaged_results_are_asked_for_again() {
    let database = Database::missing();
    let store = database.open().await;
    let both = || Workers::List(vec!["w1".to_owned(), "w2".to_owned()]);
    let (damaged, healthy) =
        (add(&store, START, job("damaged").workers(both())).await.uuid, add(&store, START, job("healthy")).await.uuid);
    claim(&store, &damaged).await;
    claim(&store, &healthy).await;
    store
        .job_apply(at(1), RetryPolicy::default(), vec![accepted(&damaged, &["w1", "w2"]), result(&damaged, "w1", "1")])
        .await
        .unwrap();
    database.execute("UPDATE jobs SET result_data = x'7801ffff' WHERE uuid = 'damaged'").await;

    store
        .job_apply(at(2), RetryPolicy::default(), vec![result(&damaged, "w2", "2"), result(&healthy, "w1", "3")])
        .await
        .unwrap();
    let detail = store.job_detail(&damaged).await.unwrap().unwrap();
    assert_eq!((detail.job.status, detail.results.len(), detail.job.errors.len()), (JobStatus::Started, 1, 1));
    assert_eq!(detail.job.outstanding_workers(), Workers::List(vec!["w1".to_owned()]));
    assert_eq!(store.job_find(&healthy).await.unwrap().unwrap().status, JobStatus::Completed);

    store.job_apply(at(3), RetryPolicy::default(), vec![result(&damaged, "w1", "1")]).await.unwrap();
    let detail = store.job_detail(&damaged).await.unwrap().unwrap();
    assert_eq!((detail.job.status, detail.results.len()), (JobStatus::Completed, 2));
}

#[tokio::test]
async fn a_job_with_damaged_results_expires_like_others() {
    let database = Database::missing();
    let store = database.open().await;
    let uuid = add(&store, START, job("damaged")).await.uuid;
    claim(&store, &uuid).await;
    database.execute("UPDATE jobs SET result_data = 'nonsense'").await;
    assert_eq!(store.job_expire_due(at(60), &Scope::All, Overdue::All).await.unwrap().len(), 1);
    let detail = store.job_detail(&uuid).await.unwrap().unwrap();
    assert_eq!((detail.job.status, detail.results.len(), detail.job.errors.len()), (JobStatus::Stale, 1, 2));
}

/// A row with this change cannot be read, is said to be so for this reason, and stops nobody else.
async fn is_unreadable(change: &str, reason: &str) {
    let database = Database::missing();
    let store = database.open().await;
    add(&store, START, job("wrong")).await;
    add(&store, START, job("right")).await;
    database.execute(&format!("UPDATE jobs SET {change} WHERE uuid = 'wrong'")).await;
    let page = store.job_list(&JobFilter::default()).await.unwrap();
    assert_eq!((page.jobs.len(), page.unreadable.len()), (1, 1), "{change}");
    assert_eq!(page.unreadable[0].reason, reason);
    assert_eq!(store.job_unfinished().await.unwrap().len(), 1);
    let claimed = store.job_claim(Claim::new(START, &Scope::All, 10)).await.unwrap();
    assert_eq!((claimed.posts.len(), claimed.posts[0].job.as_str()), (1, "right"), "{change}");
    assert!(store.job_claim(Claim::new(START, &Scope::All, 10)).await.unwrap().posts.is_empty());
    assert_eq!(store.job_next_due(&Scope::All).await.unwrap().send, None, "{change}");
    assert_eq!(store.stats().await.unwrap().total_jobs, 2);
}

#[tokio::test]
async fn rows_that_are_no_jobs_stop_nobody() {
    is_unreadable("workers_requested = '{'", "its workers_requested names no workers").await;
    is_unreadable("workers_dispatched = '[1]'", "its workers_dispatched is no JSON of the expected shape").await;
    is_unreadable("uuid = NULL", "its uuid is NULL").await;
    is_unreadable("uuid = 'a' || char(10)", "its uuid is no identity").await;
    is_unreadable("service = CAST(x'ff00' AS TEXT)", "its service is no text").await;
    is_unreadable("task = x'6162'", "its task is no text").await;
    is_unreadable("status = 'PAUSED'", "its status is unknown to this release").await;
    is_unreadable("deadline = 'soon'", "its deadline is no number of seconds").await;
    is_unreadable("released_at = 9e99", "its released_at is no date of this calendar").await;
    is_unreadable("pending_inputs = '[]'", "its pending_inputs is no JSON of the expected shape").await;
}

#[tokio::test]
async fn unreadable_rows_that_are_due_end() {
    let database = Database::missing();
    let store = database.open().await;
    add(&store, START, job("delayed").at(at(10))).await;
    add(&store, START, job("late").at(at(10)).grace(1)).await;
    let running = add(&store, START, job("running")).await.uuid;
    claim(&store, &running).await;
    database.execute("UPDATE jobs SET workers_requested = '{'").await;
    assert!(store.job_release_due(at(12), &Scope::All, Link::Down).await.unwrap().missed.is_empty());
    assert!(store.job_release_due(at(12), &Scope::All, Link::Up).await.unwrap().released.is_empty());
    assert!(store.job_expire_due(at(60), &Scope::All, Overdue::All).await.unwrap().is_empty());
    assert_eq!(store.job_next_due(&Scope::All).await.unwrap(), norfab_model::NextDue::default());
    let rows = database.rows(&["status", "errors", "finished_at"], "FROM jobs ORDER BY rowid").await;
    let error = "'[\"the job cannot be read: its workers_requested names no workers\"]'";
    assert_eq!(rows[0], ["'FAILED'", error, &format!("{}.0", START.as_micros() / 1_000_000 + 12)]);
    assert!(rows.iter().all(|row| row[0] == "'FAILED'"));
}

/// The timeouts of other programs count as they are understood when a delayed job is released, beside one of ours.
#[tokio::test]
async fn a_release_understands_every_timeout() {
    let database = Database::missing();
    let store = database.open().await;
    let written = [("ours", "30"), ("no", "NULL"), ("nothing", "0"), ("fraction", "1.5"), ("endless", "4294967296")];
    for (name, timeout) in written {
        add(&store, START, job(name).at(at(10))).await;
        database.execute(&format!("UPDATE jobs SET timeout = {timeout} WHERE uuid = '{name}'")).await;
    }
    let released = store.job_release_due(at(10), &Scope::All, Link::Up).await.unwrap().released;
    let deadlines: Vec<_> = released.iter().map(|job| job.deadline).collect();
    assert_eq!(deadlines, [30, 600, 600, 2, i64::from(u32::MAX)].map(|seconds| Some(at(10 + seconds))));
    for job in released {
        let stored = store.job_find(&job.uuid).await.unwrap().unwrap();
        assert_eq!((stored.status, stored.deadline, stored.released_at), (JobStatus::New, job.deadline, Some(at(10))));
    }
}

/// What the Python client leaves out or writes otherwise is understood so.
async fn reads(change: &str, check: impl FnOnce(norfab_model::Job) -> bool) {
    let database = Database::missing();
    let store = database.open().await;
    add(&store, START, job("legacy")).await;
    database.execute(&format!("UPDATE jobs SET {change}")).await;
    assert!(check(store.job_find(&id("legacy")).await.unwrap().unwrap()), "{change}");
    assert_eq!(store.job_list(&JobFilter::default()).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn gaps_of_the_python_client_are_filled() {
    for (timeout, seconds) in
        [("NULL", 600), ("0", 600), ("2.5", 3), ("-1", 600), ("'soon'", 600), ("60.0", 60), ("9e99", u32::MAX)]
    {
        reads(&format!("timeout = {timeout}"), |job| job.timeout == seconds).await;
    }
    let nobody = |job: norfab_model::Job| job.workers_requested == Workers::List(Vec::new());
    reads("workers_requested = NULL", nobody).await;
    reads("workers_requested = ''", nobody).await;
    reads("workers_requested = 'all'", |job| job.workers_requested == Workers::All).await;
    reads("workers_started = '', workers_completed = NULL", |job| job.workers_started.is_empty()).await;
    reads("errors = 'no list'", |job| job.errors == ["no list"]).await;
    reads("errors = '[\"one\", 2]'", |job| job.errors == ["one", "2"]).await;
    reads("last_poll_timestamp = NULL", |job| job.last_poll.is_none()).await;
    reads("last_poll_timestamp = 0", |job| job.last_poll.is_none()).await;
    reads("added_at = NULL, created_at = 'yesterday'", |job| job.created_at.is_none()).await;
    reads("origin = 'elsewhere'", |job| job.origin == norfab_model::Origin::Direct).await;
}

#[tokio::test]
async fn payloads_of_every_age_are_read() {
    let database = Database::missing();
    let store = database.open().await;
    for (number, blob) in [
        // JSON as it is, as text and as bytes; base64 of zlib, as older releases of NorFab wrote it.
        "'{\"kwargs\": {\"a\": 1}}'",
        "CAST('{\"kwargs\": {\"a\": 1}}' AS BLOB)",
        "x'789cab56ca2e4f2c4a2f56b252a8564a049286b5b50045b2064f'",
        "'eJyrVsouTyxKL1ayUqhWSgSShrW1AEWyBk4='",
        "NULL",
        "''",
    ]
    .into_iter()
    .enumerate()
    {
        add(&store, START, job(&number.to_string())).await;
        database.execute(&format!("UPDATE jobs SET kwargs = {blob} WHERE uuid = '{number}'")).await;
    }
    let kwargs = async |name: &str| store.job_detail(&id(name)).await.map(|found| found.unwrap().kwargs);
    for name in ["0", "1", "3"] {
        assert_eq!(kwargs(name).await.unwrap().as_str(), "{\"a\": 1}", "{name}");
    }
    assert!(kwargs("2").await.is_err(), "damaged zlib");
    for name in ["4", "5"] {
        assert_eq!(kwargs(name).await.unwrap().as_str(), "{}", "{name}");
    }
}

#[tokio::test]
async fn a_job_that_waits_for_another_attempt_is_left_alone_until_then() {
    let database = Database::missing();
    let store = database.open().await;
    add(&store, START, job("again")).await;
    add(&store, START, job("first")).await;
    let attempt = at(100).as_seconds_f64();
    database.execute(&format!("UPDATE jobs SET next_attempt_at = {attempt}, posts_sent = 1, posts_refused = 1, dispatch_target = '\"w1\"' WHERE uuid = 'again'")).await;
    let claimed = store.job_claim(Claim::new(at(99), &Scope::All, 10)).await.unwrap();
    assert_eq!((claimed.posts.len(), claimed.posts[0].job.as_str()), (1, "first"));
    let expired = store.job_expire_due(at(99), &Scope::All, Overdue::All).await.unwrap();
    assert_eq!((expired.len(), expired[0].uuid.as_str()), (1, "first"));
    let next = store.job_next_due(&Scope::All).await.unwrap();
    assert_eq!((next.send, next.expire_unsent, next.expire), (Some(at(100)), Some(at(100)), None));
    // It has its full time again.
    assert_eq!(store.job_claim(Claim::new(at(100), &Scope::All, 10)).await.unwrap().posts.len(), 1);
    let again = store.job_find(&id("again")).await.unwrap().unwrap();
    assert_eq!((again.deadline, again.posts_sent, again.next_attempt_at), (Some(at(160)), 2, None));
}

#[tokio::test]
async fn a_result_beyond_the_bound_is_that_workers_failure() {
    let database = Database::missing();
    let store = database.open_with(StoreOptions { most_payload_bytes: 2000, ..StoreOptions::default() }).await;
    let uuid = add(&store, START, job("large").workers(Workers::All)).await.uuid;
    claim(&store, &uuid).await;
    let large = format!("\"{}\"", "x".repeat(3000));
    let replies = vec![accepted(&uuid, &["w1", "w2"]), result(&uuid, "w1", &large), result(&uuid, "w2", "\"small\"")];
    store.job_apply(at(1), RetryPolicy::default(), replies).await.unwrap();
    let detail = store.job_detail(&uuid).await.unwrap().unwrap();
    assert_eq!((detail.job.status, detail.results["w2"].as_str()), (JobStatus::Completed, "\"small\""));
    let failure: serde_json::Value = detail.results["w1"].to().unwrap();
    assert_eq!(failure["failed"], true);
    assert!(failure["errors"][0].as_str().unwrap().contains("3012 bytes"), "{}", failure["errors"]);
}

#[tokio::test]
async fn a_payload_that_unpacks_beyond_the_bound_is_not_read() {
    let database = Database::missing();
    let store = database.open().await;
    let kwargs = Json::of(&serde_json::json!({ "zeros": "0".repeat(1 << 20) })).unwrap();
    add(&store, START, job("bomb").kwargs(kwargs)).await;
    store.close().await;
    let store = database.open_with(StoreOptions { most_payload_bytes: 1 << 20, ..StoreOptions::default() }).await;
    let error = store.job_detail(&id("bomb")).await.unwrap_err().to_string();
    assert!(error.ends_with("its kwargs cannot be read: it has more than 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn a_reader_changes_nothing_and_sees_everything() {
    let database = Database::missing();
    let writer = database.open().await;
    let uuid = add(&writer, START, job("one").at(at(10))).await.uuid;
    let reader = database.open_with(StoreOptions { access: Access::ReadOnly, ..StoreOptions::default() }).await;
    let mark = reader.change_mark().await.unwrap();
    assert_eq!(reader.job_find(&uuid).await.unwrap().unwrap().status, JobStatus::Scheduled);
    assert_eq!(reader.change_mark().await.unwrap(), mark);

    let refused = |error: StoreError| matches!(error, StoreError::ReadOnly(_));
    let new = norfab_model::Limits::default().check_job(START, job("two")).unwrap();
    assert!(refused(reader.job_add(START, &new).await.unwrap_err()));
    assert!(refused(reader.job_cancel(START, &uuid).await.unwrap_err()));
    assert!(refused(reader.job_reschedule(START, &uuid, START).await.unwrap_err()));
    assert!(refused(reader.job_release_due(START, &Scope::All, Link::Up).await.unwrap_err()));
    assert!(refused(reader.job_expire_due(START, &Scope::All, Overdue::All).await.unwrap_err()));
    assert!(refused(reader.job_claim(Claim::new(START, &Scope::All, 1)).await.unwrap_err()));
    assert!(refused(reader.job_take_polls(START, &Scope::All, START, 1).await.unwrap_err()));
    assert!(refused(
        reader.job_apply(START, RetryPolicy::default(), vec![accepted(&uuid, &["w1"])]).await.unwrap_err()
    ));
    assert!(refused(reader.job_recover(START, &Scope::All).await.unwrap_err()));
    assert!(refused(reader.job_give_up(START, std::slice::from_ref(&uuid), "").await.unwrap_err()));
    assert!(refused(reader.job_unclaim(START, std::slice::from_ref(&uuid)).await.unwrap_err()));
    let answer = question("q1").answer(Json::empty_object());
    assert!(refused(reader.answer_add(START, &uuid, "w1", &answer).await.unwrap_err()));
    assert!(reader.answer_take(&Scope::All, 1).await.unwrap().is_empty());

    writer.job_cancel(at(1), &uuid).await.unwrap();
    assert_ne!(reader.change_mark().await.unwrap(), mark);
    assert_eq!(reader.job_find(&uuid).await.unwrap().unwrap().status, JobStatus::Cancelled);
    assert_eq!(reader.info().await.unwrap().jobs, 1);
}

#[tokio::test]
async fn another_programs_lock_is_waited_for() {
    let database = Database::missing();
    let store = database.open().await;
    let mut other = database.connect().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let adding: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { add(&store, START, job(&format!("job-{number}"))).await })
        })
        .collect();
    // Reading goes on meanwhile.
    assert_eq!(store.stats().await.unwrap().total_jobs, 0);
    lock.commit().await.unwrap();
    for job in adding {
        job.await.unwrap();
    }
    assert_eq!(store.stats().await.unwrap().total_jobs, 20);
}

#[tokio::test]
async fn a_lock_that_stays_is_an_error_and_nothing_is_lost() {
    let database = Database::missing();
    let options = StoreOptions { busy_timeout: std::time::Duration::from_millis(50), ..StoreOptions::default() };
    let store = database.open_with(options).await;
    let uuid = add(&store, START, job("one").at(at(10))).await.uuid;
    let mut other = database.connect().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let jobs = ["two", "three"].map(|name| norfab_model::Limits::default().check_job(START, job(name)).unwrap());
    let (two, three) = tokio::join!(store.job_add(START, &jobs[0]), store.job_add(START, &jobs[1]));
    for error in [two.unwrap_err(), three.unwrap_err(), store.job_cancel(START, &uuid).await.unwrap_err()] {
        let StoreError::Storage { source, .. } = &error else { panic!("{error}") };
        assert!(source.to_string().contains("locked"), "{source}");
        assert_eq!(chain(&error).matches("locked").count(), 1, "{}", chain(&error));
    }
    lock.commit().await.unwrap();
    assert_eq!(store.job_cancel(START, &uuid).await.unwrap().status, JobStatus::Cancelled);
    assert_eq!(store.job_add(START, &jobs[0]).await.unwrap().status, JobStatus::New);
}

/// An error and its causes, as a person is told.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told += &format!(": {error}");
        cause = error.source();
    }
    told
}

#[tokio::test]
async fn what_went_wrong_is_told_once() {
    let database = Database::missing();
    let store = database.open().await;
    let uuid = add(&store, START, job("one")).await.uuid;
    database.execute("ALTER TABLE jobs RENAME TO work").await;
    let error = store.job_find(&uuid).await.unwrap_err();
    assert_eq!(chain(&error), "the job database failed to look a job up: (code: 1) no such table: jobs");
    store.close().await;
    let error = store.job_find(&uuid).await.unwrap_err();
    let closed = "the job database failed to answer: it is closed";
    assert_eq!(chain(&error), closed);
    let folder = SqliteStore::open(database.folder(), &StoreOptions::default()).await.unwrap_err();
    assert_eq!(chain(&folder).matches("directory").count(), 1, "{}", chain(&folder));
}

#[tokio::test]
async fn nobody_waits_for_a_lock_to_learn_that_there_is_no_answer() {
    let database = Database::missing();
    let options = StoreOptions { busy_timeout: std::time::Duration::from_millis(50), ..StoreOptions::default() };
    let store = database.open_with(options).await;
    let uuid = add(&store, START, job("one")).await.uuid;
    let mut other = database.connect().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    assert!(store.answer_take(&Scope::All, 10).await.unwrap().is_empty());
    assert!(store.answer_take(&Scope::Jobs(vec![uuid]), 10).await.unwrap().is_empty());
    lock.rollback().await.unwrap();
}

#[tokio::test]
async fn answers_that_are_none_are_dropped_and_values_are_told_to_nobody() {
    let database = Database::missing();
    let store = database.open().await;
    let uuid = add(&store, START, job("asks")).await.uuid;
    claim(&store, &uuid).await;
    let asks = ReplyKind::WaitingInput { worker: "w1".to_owned(), request: question("q1") };
    store.job_apply(at(1), RetryPolicy::default(), vec![Reply::new(uuid.clone(), asks)]).await.unwrap();
    database
        .execute(
            "INSERT INTO input_answers (job_uuid, worker, answer, created_at)
             VALUES ('asks', 'w1', 'yes', 0), ('asks', 'w1', x'ff', 0), ('nobody', 'w1', '{}', 0), ('asks', x'00', '{}', 0)",
        )
        .await;
    let answer = question("q1").answer(Json::parse("\"hunter2\"").unwrap());
    store.answer_add(START, &uuid, "w1", &answer).await.unwrap();
    assert_eq!(
        database.value("answer", "FROM input_answers ORDER BY id DESC").await,
        r#"'{"input_id":"q1","value":"hunter2","verdict":"answered","metadata":{}}'"#
    );
    let taken = store.answer_take(&Scope::All, 10).await.unwrap();
    assert_eq!((taken.len(), &taken[0].answer), (1, &answer));
    assert!(!format!("{taken:?}").contains("hunter2"));
    assert_eq!(database.value("count(*)", "FROM input_answers").await, "0");
}

#[tokio::test]
async fn answers_go_with_their_job() {
    let database = Database::missing();
    let store = database.open().await;
    let uuid = add(&store, START, job("one")).await.uuid;
    store.answer_add(START, &uuid, "w1", &question("q1").cancel()).await.unwrap();
    database.execute("PRAGMA foreign_keys = ON; DELETE FROM jobs").await;
    assert_eq!(database.value("count(*)", "FROM input_answers").await, "0");
}

#[tokio::test]
async fn callers_that_go_away_take_nobody_with_them() {
    let database = Database::missing();
    let store = database.open().await;
    let mut other = database.connect().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { add(&store, START, job("first")).await }
    });
    let second = tokio::spawn({
        let store = store.clone();
        async move { add(&store, START, job("second")).await }
    });
    // Both have joined the queue by now: the runtime has one thread.
    tokio::task::yield_now().await;
    first.abort();
    lock.commit().await.unwrap();
    assert_eq!(second.await.unwrap().status, JobStatus::New);
}

#[tokio::test]
async fn a_closed_store_says_so_and_leaves_one_file() {
    let database = Database::missing();
    let store = database.open().await;
    add(&store, START, job("one")).await;
    store.close().await;
    assert!(matches!(store.job_find(&id("one")).await, Err(StoreError::Storage { .. })));
    let new = norfab_model::Limits::default().check_job(START, job("two")).unwrap();
    assert!(matches!(store.job_add(START, &new).await, Err(StoreError::Storage { .. })));
    let files: Vec<_> = std::fs::read_dir(database.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["jobs.db"]);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;

    let database = Database::missing();
    let store = database.open().await;
    add(&store, START, job("one")).await;
    let mut seen = 0;
    for entry in std::fs::read_dir(database.folder()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
        seen += 1;
    }
    assert_eq!(seen, 3, "the database, its log and its index");
}

#[tokio::test]
async fn a_damaged_event_is_shown_without_its_data() {
    let database = Database::missing();
    let store = database.open().await;
    let uuid = add(&store, START, job("one").at(at(10))).await.uuid;
    store.job_reschedule(START, &uuid, at(20)).await.unwrap();
    database.execute("UPDATE events SET event_data = x'ff', message = NULL || 'x' WHERE id = 99; UPDATE events SET event_data = x'ff' WHERE id = 1").await;
    let events = store.event_list(&uuid, 0, 10).await.unwrap();
    assert_eq!((events.len(), events[0].data.as_str()), (2, "{}"));
    assert!(events[0].message.starts_with("scheduled for"));
}

#[tokio::test]
async fn the_instants_of_both_ways_into_the_database_are_one() {
    let database = Database::missing();
    database.open().await.close().await;
    let mut connection = database.connect().await;
    let mut micros = START.as_micros();
    let mut instants = Vec::new();
    for step in 0..20_000_i64 {
        // Over some sixty years, with every kind of fraction.
        micros += 100_000_000_000 + (step * 7919) % 1_000_003;
        instants.push(Timestamp::from_micros(micros));
    }
    let rows: Vec<(i64, f64)> = instants.iter().map(|at| (at.as_micros(), at.as_seconds_f64())).collect();
    for (micros, seconds) in rows {
        let same: bool = sqlx::query_scalar("SELECT ?1 / 1000000.0 = ?2")
            .bind(micros)
            .bind(seconds)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert!(same, "{micros}");
    }
}

#[tokio::test]
async fn constraints_hold_against_other_hands() {
    let database = Database::missing();
    database.open().await.close().await;
    let mut connection = database.connect().await;
    let mut refused = async |sql: &str| {
        let outcome = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
        outcome.is_err_and(|error| error.to_string().contains("constraint failed"))
    };
    let schedule = |columns: &str, values: &str| {
        format!(
            "INSERT INTO job_schedules (uuid, service, task, workers, timeout, trigger_type, trigger_config, anchor_at,
                 created_at, updated_at, state, next_run_at, next_due_at{columns})
             VALUES (hex(randomblob(16)), 'dummy', 'echo', '\"all\"', 60, 'interval', '{{\"seconds\": 60}}', 0.0, 0.0, 0.0,
                 'ACTIVE', 60.0, 60.0{values})"
        )
    };
    let good = schedule(", name", ", 'nightly'");
    assert!(!refused(&good).await);
    assert!(refused(&good).await, "a name is taken once");
    assert!(!refused("UPDATE job_schedules SET state = 'DISABLED', deleted_at = 1.0").await);
    assert!(!refused(&good).await, "and free again");
    for change in [
        "timeout = 0",
        "timeout = 1.5",
        "trigger_config = '{\"seconds\": 0}'",
        "trigger_config = '{\"seconds\": -5}'",
        "trigger_config = '{\"seconds\": 0.001}'",
        "trigger_config = '{\"seconds\": \"60\"}'",
        "trigger_config = '{}'",
        "trigger_config = 'every minute'",
        "state = 'SLEEPING'",
        "next_run_at = NULL, next_due_at = NULL",
        "next_due_at = 59.0",
        "decided_until = 'once'",
        "zone_data = x'00'",
        "zone_offset = 'an hour'",
        "next_run_at = 'tomorrow'",
        "start_at = 10.0, end_at = 10.0",
        "max_instances = 0",
        "jitter_seconds = -1",
        "misfire_grace_seconds = 0",
        "total_runs = -1",
        "deleted_at = 2.0",
        "last_error = hex(zeroblob(251))",
    ] {
        assert!(refused(&format!("UPDATE job_schedules SET {change} WHERE state = 'ACTIVE'")).await, "{change}");
    }
    let job = "INSERT INTO jobs (uuid, service, task, received_timestamp, schedule_id, scheduled_for) VALUES";
    assert!(!refused(&format!("{job} ('one', 's', 't', '', 'nightly', 60.0)")).await);
    assert!(refused(&format!("{job} ('two', 's', 't', '', 'nightly', 60.0)")).await, "no occurrence twice");
    assert!(
        !refused(&format!("{job} ('three', 's', 't', '', 'nightly', NULL), ('four', 's', 't', '', 'nightly', NULL)"))
            .await
    );
    assert!(refused(&format!("{job} ('five', 's', 't', '', NULL, 'soon')")).await);
}

#[tokio::test]
async fn listing_by_schedule_finds_its_jobs() {
    let database = Database::missing();
    let store = database.open().await;
    for name in ["one", "two", "three"] {
        add(&store, START, NewJob { service: name.to_owned(), ..job(name) }.at(at(10))).await;
    }
    database.execute("UPDATE jobs SET scheduled_for = scheduled_for + 5 WHERE uuid = 'three'; UPDATE jobs SET schedule_id = 'nightly' WHERE uuid <> 'two'").await;
    let listed = async |filter: JobFilter| {
        let schedule = Some(norfab_model::ScheduleId::new("nightly").unwrap());
        let page = store.job_list(&JobFilter { schedule, ..filter }).await.unwrap();
        page.jobs.into_iter().map(|job| job.uuid.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(JobFilter::default()).await, ["three", "one"]);
    assert_eq!(listed(JobFilter { due_from: Some(at(11)), ..JobFilter::default() }).await, ["three"]);
    assert_eq!(listed(JobFilter { service: Some("one".to_owned()), ..JobFilter::default() }).await, ["one"]);
    assert!(listed(JobFilter { statuses: vec![JobStatus::New], ..JobFilter::default() }).await.is_empty());
}

#[tokio::test]
async fn questions_of_a_worker_are_in_the_row() {
    let database = Database::missing();
    let store = database.open().await;
    let uuid = add(&store, START, job("asks")).await.uuid;
    claim(&store, &uuid).await;
    let event = norfab_model::FabricEvent {
        worker: "w1".to_owned(),
        kind: FabricEventKind::InputRequest(question("q1")),
        message: "waits".to_owned(),
        severity: "INFO".to_owned(),
        task: None,
        data: Json::empty_object(),
    };
    store.job_apply(at(1), RetryPolicy::default(), vec![Reply::new(uuid, ReplyKind::Event(event))]).await.unwrap();
    let asked = database.value("json_extract(pending_inputs, '$.w1.question')", "FROM jobs").await;
    assert_eq!(asked, "'Go on?'");
}

/// Failures that stand for results that are too large do not make the others unreadable.
#[tokio::test]
async fn results_at_the_limit_stay_readable() {
    let database = Database::missing();
    let store = database.open_with(StoreOptions { most_payload_bytes: 2000, ..StoreOptions::default() }).await;
    let new = NewJob { workers: Workers::All, ..job("full") };
    add(&store, START, new).await;
    claim(&store, &id("full")).await;
    let workers: Vec<String> = (0..50).map(|number| format!("w{number}")).collect();
    let text = format!("\"{}\"", "x".repeat(1900));
    let result = |worker: &String| result(&id("full"), worker, &text);
    let accepted = Reply::new(id("full"), ReplyKind::Accepted { workers: workers.clone() });
    for reply in std::iter::once(accepted).chain(workers.iter().map(result)) {
        store.job_apply(START, RetryPolicy::default(), vec![reply]).await.unwrap();
    }
    let detail = store.job_detail(&id("full")).await.unwrap().unwrap();
    assert_eq!((detail.job.status, detail.results.len()), (JobStatus::Completed, 50));
    assert!(detail.results["w0"].as_str().contains("xxx") && detail.results["w49"].as_str().contains("is the most"));
    store.close().await;
}
