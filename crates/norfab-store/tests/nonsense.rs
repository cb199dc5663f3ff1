//! Instants that are none, and instants that do not go together, as other hands may leave them in the database: no pass
//! fails by them, none spins on them, and no other job is kept waiting.

mod common;

use common::{Database, START, add, at, id, job};
use norfab_model::{JobFilter, JobId, JobStatus, Link, Scope, Store};
use norfab_store::conformance::pass_ends;
use norfab_store::{Durability, SqliteStore, StoreOptions};
use proptest::prelude::*;

const COLUMNS: [&str; 5] = ["scheduled_for", "start_deadline", "deadline", "next_attempt_at", "last_poll_timestamp"];
/// What sorts before every instant.
const BELOW: [&str; 4] = ["-1e300", "-9e999", "-1e18", "-1795996800000.0"];
/// What sorts behind every instant.
const BEHIND: [&str; 8] = ["1e300", "9e999", "1e18", "1795996800000.0", "253402300800.0", "'soon'", "''", "x'00ff'"];

/// A row as other hands write it: the constraints of the columns do not hold them up.
fn insert(name: &str, status: &str, instants: [&str; 5]) -> String {
    format!(
        "PRAGMA ignore_check_constraints = ON;
         INSERT INTO jobs (uuid, service, task, timeout, status, workers_requested, received_timestamp, {})
         VALUES ('{name}', 'dummy', 'echo', 60, '{status}', '\"w1\"', '', {});\n",
        COLUMNS.join(", "),
        instants.join(", ")
    )
}

/// The instants that a row in this status usually has, none of them due at the start.
fn usual(status: JobStatus) -> [String; 5] {
    let seconds = |after: i64| format!("{:?}", at(after).as_seconds_f64());
    let null = || "NULL".to_owned();
    match status {
        JobStatus::Scheduled => [seconds(3600), seconds(7200), null(), null(), null()],
        _ => [null(), null(), seconds(600), null(), seconds(0)],
    }
}

/// Whether a pass comes upon a row in this status with nonsense in this column.
fn is_seen(status: JobStatus, column: &str, sorts_below: bool, link: Link) -> bool {
    use JobStatus as S;
    match (status, column) {
        (S::Scheduled, "scheduled_for" | "start_deadline") => true,
        (S::New, _) if link == Link::Up => true,
        (S::New | S::Submitting | S::Dispatched | S::Started | S::WaitingClientInput, "deadline") => true,
        (S::New | S::Submitting | S::Dispatched | S::Started | S::WaitingClientInput, "next_attempt_at") => {
            !sorts_below
        }
        (S::Dispatched | S::Started | S::WaitingClientInput, "last_poll_timestamp") => link == Link::Up,
        _ => false,
    }
}

/// Every status with every kind of nonsense in every column, and jobs that are none of that.
async fn check(link: Link, scope: impl FnOnce(Vec<JobId>) -> Scope) {
    let database = Database::missing();
    let store = database.open().await;
    let (mut sql, mut bad) = (String::new(), Vec::new());
    for status in JobStatus::ALL {
        for (place, column) in COLUMNS.into_iter().enumerate() {
            for value in BELOW.into_iter().chain(BEHIND) {
                let usual = usual(status);
                let mut instants = usual.each_ref().map(String::as_str);
                instants[place] = value;
                let name = format!("bad-{}", bad.len());
                sql += &insert(&name, status.as_str(), instants);
                bad.push((name, status, column, value));
            }
        }
    }
    add(&store, START, job("immediate")).await;
    add(&store, START, job("delayed").at(START)).await;
    database.execute(&sql).await;
    let all = bad.iter().map(|(name, ..)| id(name)).chain([id("immediate"), id("delayed")]).collect();
    let scope = scope(all);

    store.job_next_due(&scope).await.expect("what is no instant is no error");
    pass_ends(&store, &scope, START, link).await;

    let rows = database.rows(&["uuid", "status", "ifnull(errors, '')"], "FROM jobs WHERE uuid LIKE 'bad-%'").await;
    assert_eq!(rows.len(), bad.len());
    for (row, (name, status, column, value)) in rows.iter().zip(&bad) {
        let case = format!("{status} with {column} = {value}, link {link:?}");
        assert_eq!(row[0], format!("'{name}'"));
        if is_seen(*status, column, BELOW.contains(value), link) {
            assert_eq!(row[1], "'FAILED'", "{case}");
            assert!(row[2].contains(&format!("the job cannot be read: its {column} is no ")), "{case}: {}", row[2]);
        } else {
            assert_eq!((row[1].as_str(), row[2].as_str()), (format!("'{status}'").as_str(), "''"), "{case}");
        }
    }
    let expected = if link == Link::Up { [JobStatus::Submitting; 2] } else { [JobStatus::New, JobStatus::Scheduled] };
    for (name, expected) in ["immediate", "delayed"].into_iter().zip(expected) {
        assert_eq!(store.job_find(&id(name)).await.unwrap().unwrap().status, expected, "{name}");
    }
    let page = store.job_list(&JobFilter { limit: 1000, ..JobFilter::default() }).await.unwrap();
    assert_eq!((page.jobs.len(), page.unreadable.len()), (2, bad.len()));
    assert_eq!(store.job_unfinished().await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_no_instant_stops_nobody() {
    for link in [Link::Up, Link::Down] {
        check(link, |_| Scope::All).await;
        check(link, Scope::Jobs).await;
    }
}

#[tokio::test]
async fn a_start_deadline_decides_without_a_time_and_before_it() {
    for (link, scheduled_for) in
        [(Link::Up, "NULL"), (Link::Up, "2e9"), (Link::Down, "NULL"), (Link::Down, "2e9"), (Link::Up, "1.0")]
    {
        let database = Database::missing();
        let store = database.open().await;
        let passed = format!("{:?}", at(-1).as_seconds_f64());
        database.execute(&insert("late", "SCHEDULED", [scheduled_for, &passed, "NULL", "NULL", "NULL"])).await;
        assert_eq!(store.job_next_due(&Scope::All).await.unwrap().miss, Some(at(-1)));
        let outcome = store.job_release_due(START, &Scope::All, link).await.unwrap();
        assert_eq!((outcome.released.len(), outcome.missed.len()), (0, 1), "{scheduled_for}");
        assert_eq!(store.job_find(&id("late")).await.unwrap().unwrap(), outcome.missed[0]);
        assert_eq!(outcome.missed[0].status, JobStatus::Missed);
    }
}

/// An instant of a column: none, near the start (also between two microseconds), far away, or nonsense.
fn instant() -> impl Strategy<Value = String> {
    let near = (-4_i64..4, prop::sample::select(vec![-1e-6, -3e-7, 0.0, 3e-7, 1e-6]))
        .prop_map(|(seconds, off)| format!("{:?}", at(seconds * 5).as_seconds_f64() + off));
    let nonsense = prop::sample::select([&BELOW[..], &BEHIND[..]].concat()).prop_map(str::to_owned);
    let far = prop::sample::select(vec!["0", "-86400.5", "4e9", "253402300799.5"]).prop_map(str::to_owned);
    prop_oneof![3 => Just("NULL".to_owned()), 6 => near, 1 => far, 1 => nonsense]
}

fn status() -> impl Strategy<Value = &'static str> {
    let unfinished = JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()).map(JobStatus::as_str);
    prop_oneof![8 => prop::sample::select(unfinished.collect::<Vec<_>>()), 1 => Just("COMPLETED"), 1 => Just("PAUSED")]
}

/// Passes over any table of jobs, as time goes on, by an owner and by a guest of every other job.
async fn passes_end(rows: Vec<(&'static str, [String; 5])>, links: Vec<Link>) {
    let database = Database::missing();
    let options = StoreOptions { durability: Durability::Normal, ..StoreOptions::default() };
    let store: SqliteStore = database.open_with(options).await;
    let rows = rows.iter().enumerate().map(|(number, (status, instants))| {
        insert(&format!("job-{number}"), status, instants.each_ref().map(String::as_str))
    });
    database.execute(&rows.collect::<String>()).await;
    let guest = Scope::Jobs((0..30).step_by(2).map(|number| id(&format!("job-{number}"))).collect());
    for (link, seconds) in links.into_iter().zip([-12, 0, 0, 4, 11, 30, 100]) {
        pass_ends(&store, &guest, at(seconds), link).await;
        pass_ends(&store, &Scope::All, at(seconds), link).await;
    }
    store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn passes_end_on_any_table(
        rows in prop::collection::vec((status(), prop::array::uniform5(instant())), 1..30),
        links in prop::collection::vec(prop::sample::select(vec![Link::Up, Link::Down]), 7),
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(passes_end(rows, links));
    }
}
