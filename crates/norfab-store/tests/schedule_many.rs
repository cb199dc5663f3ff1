//! A pass over more schedules than are held in memory at once: its parts share the budget in the order of the schedules,
//! whatever is computed beside the thread that writes.

mod common;

use common::{Database, START, at, every};
use norfab_model::{
    Coalesce, JobId, Limits, Materialize, Materialized, OverlapPolicy, ScheduleId, ScheduleStore, ValidSchedule,
};
use norfab_store::{Durability, MemoryStore, StoreOptions};

const SCHEDULES: u32 = 2500;
const BUDGET: u32 = 4000;

async fn pass(store: &impl ScheduleStore, now: i64) -> Materialized {
    let limits = Limits::default();
    let request =
        Materialize { now: at(now), limits: &limits, budget_left: BUDGET, batch: 10_000, seen: &[], claim: None };
    store.schedule_materialize_due(request).await.unwrap()
}

/// Which jobs were made, how much of the budget that took, and which schedules are still due.
fn told(outcome: &Materialized) -> (Vec<&JobId>, u32, &[ScheduleId], usize) {
    let jobs = outcome.created.iter().map(|job| &job.uuid).collect();
    (jobs, outcome.budget_used, &outcome.still_due, outcome.outcomes.len())
}

#[tokio::test]
async fn parts_share_the_budget() {
    let (database, memory) = (Database::missing(), MemoryStore::default());
    let options = StoreOptions { durability: Durability::Normal, ..StoreOptions::default() };
    let store = database.open_with(options).await;
    let valid = |_| -> ValidSchedule {
        let new = every(60).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000);
        Limits::default().check_schedule(START, new).unwrap()
    };
    for valid in (0..SCHEDULES).map(valid) {
        store.schedule_add(&valid).await.unwrap();
        memory.schedule_add(&valid).await.unwrap();
    }
    let four_due = pass(&store, 240).await;
    // One each, three more of as many as the budget lasts for.
    assert_eq!(four_due.created.len(), (SCHEDULES + BUDGET) as usize);
    assert_eq!(four_due.still_due.len(), SCHEDULES as usize - 4000 / 3);
    assert_eq!(told(&four_due), told(&pass(&memory, 240).await));
    let rest = pass(&store, 240).await;
    assert_eq!(told(&rest), told(&pass(&memory, 240).await));
    assert_eq!(database.value("sum(total_runs)", "FROM job_schedules").await, (rest.created.len() + 6500).to_string());
}
