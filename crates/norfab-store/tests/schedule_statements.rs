//! How many statements a pass takes: as many for a thousand schedules as for one, and as many over a long history.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Database, START, at, every, schedules};
use norfab_model::{
    Claim, Coalesce, Limits, Materialize, Materialized, NewSchedule, OverlapPolicy, Schedule, ScheduleFilter,
    ScheduleStore, Scope,
};
use norfab_store::{SqliteStore, StoreOptions};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};

static STATEMENTS: AtomicUsize = AtomicUsize::new(0);

/// Counts what the store tells of: one event for each statement.
struct Counter;

impl tracing::Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "norfab_store::sqlite::statement"
    }

    fn event(&self, _: &Event<'_>) {
        STATEMENTS.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

async fn pass(store: &SqliteStore, seconds: i64) -> (usize, Materialized) {
    pass_with(store, seconds, None).await
}

async fn pass_with(store: &SqliteStore, seconds: i64, claim: Option<&Claim<'_>>) -> (usize, Materialized) {
    let limits = Limits::default();
    let request = Materialize { now: at(seconds), limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim };
    let before = STATEMENTS.load(Ordering::Relaxed);
    let outcome = store.schedule_materialize_due(request).await.unwrap();
    (STATEMENTS.load(Ordering::Relaxed) - before, outcome)
}

/// One pass over so many schedules; what it makes may be claimed with it.
async fn of(count: usize, claim: Option<&Claim<'_>>) -> (usize, Materialized) {
    let database = Database::missing();
    let options = StoreOptions { durability: norfab_store::Durability::Normal, ..StoreOptions::default() };
    let store = database.open_with(options).await;
    schedules(&store, START, count, 60).await;
    pass_with(&store, 60, claim).await
}

async fn add(store: &SqliteStore, new: NewSchedule) -> Schedule {
    store.schedule_add(&Limits::default().check_schedule(START, new).unwrap()).await.unwrap()
}

/// The statements of one look at everything that concerns a schedule: a pass, a list, a look-up, its deletion.
async fn of_a_round(store: &SqliteStore, id: &norfab_model::ScheduleId, seconds: i64) -> usize {
    let (mut statements, _) = pass(store, seconds).await;
    let before = STATEMENTS.load(Ordering::Relaxed);
    let page = store.schedule_list(&ScheduleFilter::default()).await.unwrap();
    assert_eq!(page.schedules[0].active_jobs, 1);
    store.schedule_find(&id.clone().into()).await.unwrap();
    store.schedule_delete(at(seconds), &id.clone().into()).await.unwrap();
    statements += STATEMENTS.load(Ordering::Relaxed) - before;
    statements
}

/// The statements that bring so many schedules to other zone data.
async fn of_a_rezoning(count: usize) -> usize {
    let database = Database::missing();
    let store = database.open().await;
    for _ in 0..count {
        let cron = norfab_model::Cron::new("0 3 * * *").unwrap();
        add(&store, NewSchedule::new("dummy", "echo", cron).timezone("Europe/Berlin")).await;
    }
    // By the older data, the zone was an hour further east.
    database
        .execute(
            "UPDATE job_schedules SET zone_data = '2020a', zone_offset = 7200,
                next_run_at = next_run_at - 3600, next_due_at = next_due_at - 3600",
        )
        .await;
    let before = STATEMENTS.load(Ordering::Relaxed);
    assert_eq!(store.schedule_rezone(norfab_model::Zone::data_version()).await.unwrap().len(), count);
    STATEMENTS.load(Ordering::Relaxed) - before
}

/// All in one test: the counter is one for the process.
#[tokio::test]
async fn a_pass_takes_the_same_statements_whatever_it_finds() {
    tracing::subscriber::set_global_default(Counter).unwrap();
    let (for_one, outcome) = of(1, None).await;
    assert_eq!(outcome.created.len(), 1);
    let (for_many, outcome) = of(1000, None).await;
    assert_eq!((outcome.created.len(), outcome.more), (1000, false));
    assert_eq!(for_many, for_one);
    assert!((4..=12).contains(&for_one), "{for_one} statements");

    let claim = Claim::new(at(60), &Scope::All, 1000);
    let mut with_claim = Vec::new();
    for count in [1, 16, 17, 1000] {
        let (statements, outcome) = of(count, Some(&claim)).await;
        assert_eq!(outcome.claimed.map(|claimed| claimed.posts.len()), Some(count));
        with_claim.push(statements);
    }
    let [one, few, more, many] = with_claim[..] else { panic!("{with_claim:?}") };
    assert!(few == one && one == for_one + 1, "it looks whether others come first: {with_claim:?}");
    assert!(more == many && (few + 1..few + 6).contains(&many), "{with_claim:?}");

    // What is large as it is stored, or as it is sent, is made first and claimed then, as many are.
    let json = |text: String| norfab_model::Json::parse(text).unwrap();
    let (large, long) = (common::random(100_000), "long ".repeat(1 << 18));
    for new in [
        every(60).args(json(format!("[{large:?}]"))),
        every(60).kwargs(json(format!("{{\"k\":{large:?}}}"))),
        every(60).args(json(format!("[{long:?}]"))),
    ] {
        let database = Database::missing();
        let store = database.open().await;
        add(&store, new).await;
        assert_eq!(pass_with(&store, 60, Some(&claim)).await.0, many);
    }

    assert_eq!(of_a_rezoning(1).await, of_a_rezoning(100).await);

    // An endless history, of which one job is unfinished.
    let mut rounds = Vec::new();
    for history in [1, 10_000] {
        let database = Database::missing();
        let store = database.open().await;
        let new = every(60).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000);
        let added = add(&store, new).await;
        database
            .execute(&format!(
                "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {history})
                 INSERT INTO jobs (uuid, service, task, status, received_timestamp, schedule_id, scheduled_for, origin)
                 SELECT 'old-' || n, 'dummy', 'echo', 'COMPLETED', '', '{}', -60.0 * n, 'occurrence' FROM numbers",
                added.uuid
            ))
            .await;
        rounds.push(of_a_round(&store, &added.uuid, 60).await);
        assert_eq!(
            database.value("count(*)", "FROM jobs WHERE schedule_id IS NOT NULL").await,
            (history + 1).to_string()
        );
    }
    assert_eq!(rounds[0], rounds[1], "deletion touches no job");
}
