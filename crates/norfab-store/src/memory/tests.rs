//! Jobs in memory whose instants do not go together, as no caller makes them.

use std::time::Duration;

use norfab_model::{JobId, Json, Limits, NewJob};
use proptest::prelude::*;

use norfab_model::Results;

use super::data::Row;
use super::*;
use crate::conformance::pass_ends;

const START: Timestamp = Timestamp::from_seconds(1_795_996_800);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(START.as_micros() + seconds * 1_000_000)
}

fn store_of(jobs: impl IntoIterator<Item = Job>) -> MemoryStore {
    let store = MemoryStore::new();
    let mut data = store.read();
    for (number, job) in (1..).zip(jobs) {
        data.numbers.insert(job.uuid.clone(), number);
        let (args, kwargs) = (Json::empty_array(), Json::empty_object());
        data.rows.insert(number, Row { job, args, kwargs, results: Results::new() });
    }
    drop(data);
    store
}

fn job(name: &str) -> Job {
    let new = NewJob { id: Some(JobId::new(name).unwrap()), ..NewJob::new("dummy", "echo").timeout(7) };
    Limits::default().check_job(START, new).unwrap().row(START)
}

#[tokio::test]
async fn a_start_deadline_decides_without_a_time_and_before_it() {
    for (link, scheduled_for) in
        [(Link::Up, None), (Link::Up, Some(at(60))), (Link::Down, None), (Link::Up, Some(at(-60)))]
    {
        let late = Job { status: JobStatus::Scheduled, scheduled_for, start_deadline: Some(at(-1)), ..job("late") };
        let store = store_of([late]);
        let outcome = store.job_release_due(START, &Scope::All, link).await.unwrap();
        assert_eq!((outcome.released.len(), outcome.missed.len()), (0, 1), "{scheduled_for:?}");
    }
}

fn instant() -> impl Strategy<Value = Option<Timestamp>> {
    let near = (-4_i64..4, -1_i64..=1).prop_map(|(seconds, off)| at(seconds * 5).as_micros() + off);
    prop::option::of(prop_oneof![8 => near, 1 => Just(0), 1 => Just(i64::MAX)].prop_map(Timestamp::from_micros))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn passes_end_on_any_table(
        jobs in prop::collection::vec((prop::sample::select(&JobStatus::ALL[..]), prop::array::uniform5(instant())), 1..30),
        links in prop::collection::vec(prop::sample::select(vec![Link::Up, Link::Down]), 7),
    ) {
        let jobs = jobs.into_iter().enumerate().map(|(number, (status, instants))| {
            let [scheduled_for, start_deadline, deadline, next_attempt_at, last_poll] = instants;
            Job {
                status, scheduled_for, start_deadline, deadline, next_attempt_at, last_poll,
                ..job(&format!("job-{number}"))
            }
        });
        let store = store_of(jobs);
        let guest = Scope::Jobs((0..30).step_by(2).map(|number| JobId::new(format!("job-{number}")).unwrap()).collect());
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            for (link, seconds) in links.into_iter().zip([-12, 0, 0, 4, 11, 30, 100]) {
                let now = at(seconds).saturating_add(Duration::from_micros(1));
                pass_ends(&store, &guest, now, link).await;
                pass_ends(&store, &Scope::All, now, link).await;
            }
        });
    }
}
