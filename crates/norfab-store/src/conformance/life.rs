//! Adding jobs, changing those that wait, and several handles on one database.

use norfab_model::{JobId, JobStatus, Link, NewJob, Origin, Scope, Start, Store, StoreError, Timestamp, Workers};

use super::Database;
use super::support::{START, add, add_as, at, detail, find, id, in_status, job, json, messages, valid};

pub(super) async fn an_immediate_job_is_new_and_its_deadline_runs(database: &impl Database) {
    let store = database.open().await;
    let added = add(&store, START, job()).await;
    assert_eq!((added.status, added.deadline), (JobStatus::New, Some(at(60))));
    assert_eq!((added.created_at, added.released_at, added.scheduled_for), (Some(START), Some(START), None));
    assert_eq!((added.origin, added.posts_sent, added.started_at), (Origin::Direct, 0, None));
    assert_eq!(find(&store, &added.uuid).await, added);
}

pub(super) async fn a_delayed_job_waits_without_a_deadline(database: &impl Database) {
    let store = database.open().await;
    let added = add(&store, START, job().at(at(3600)).grace(300)).await;
    assert_eq!((added.status, added.deadline), (JobStatus::Scheduled, None));
    assert_eq!((added.scheduled_for, added.start_deadline), (Some(at(3600)), Some(at(3900))));
    assert_eq!((added.created_at, added.released_at), (Some(START), None));
    assert_eq!(find(&store, &added.uuid).await, added);
    let patient = add(&store, START, job().at(at(3600))).await;
    assert_eq!(find(&store, &patient.uuid).await.start_deadline, None);
}

pub(super) async fn an_identity_is_taken_once(database: &impl Database) {
    let store = database.open().await;
    add_as(&store, START, "mine", job()).await;
    let again = NewJob { id: Some(id("mine")), ..NewJob::new("other", "task") };
    let refused = store.job_add(at(1), &valid(at(1), again)).await;
    assert!(matches!(refused, Err(StoreError::JobExists(of)) if of == id("mine")));
    assert_eq!(find(&store, &id("mine")).await.service, "dummy");
    assert_eq!(store.stats().await.expect("counted").total_jobs, 1);
}

pub(super) async fn payloads_come_back_to_the_letter(database: &impl Database) {
    let store = database.open().await;
    let large = format!("{{\"text\":\"{}\"}}", "zażółć ☃ \\u0000 ".repeat(50_000));
    for (number, kwargs) in [
        "{}",
        r#"{"n":123456789012345678901234567890.10,"m":-1e-300,"big":9007199254740993}"#,
        r#"{ "blanks" : [ 1 , 2 ], "twice":1, "twice":2, "":null }"#,
        r#"{"args":[],"kwargs":{"kwargs":{}}}"#,
        &large,
    ]
    .into_iter()
    .enumerate()
    {
        let new = job().kwargs(json(kwargs)).args(json("[ -0, 1.0, \"x\\u2603\" ]"));
        let uuid = add_as(&store, START, &format!("payload-{number}"), new).await.uuid;
        let found = detail(&store, &uuid).await;
        assert_eq!(found.kwargs.as_str(), kwargs);
        assert_eq!(found.args.as_str(), "[ -0, 1.0, \"x\\u2603\" ]");
        assert!(found.results.is_empty());
    }
}

pub(super) async fn instants_come_back_to_the_microsecond(database: &impl Database) {
    let store = database.open().await;
    for micros in [1, 999_999, 123_457, 500_000] {
        let scheduled_for = Timestamp::from_micros(START.as_micros() + micros);
        let added = add(&store, scheduled_for, job().at(scheduled_for).grace(7)).await;
        let found = find(&store, &added.uuid).await;
        assert_eq!((found.scheduled_for, found.created_at), (Some(scheduled_for), Some(scheduled_for)));
        assert_eq!(found, added);
    }
}

pub(super) async fn what_is_added_at_once_is_all_there(database: &impl Database) {
    let store = database.open().await;
    let jobs: Vec<_> =
        (0..50).map(|number| valid(START, job().kwargs(json(&format!("{{\"number\":{number}}}"))))).collect();
    let adding: Vec<_> = jobs.iter().map(|job| store.job_add(START, job)).collect();
    let added = join(adding).await;
    for (valid, added) in jobs.iter().zip(added) {
        let added = added.expect("each is added");
        let found = detail(&store, valid.id()).await;
        assert_eq!((&found.kwargs, &found.job), (valid.kwargs(), &added));
    }
}

pub(super) async fn of_two_with_one_identity_one_is_added(database: &impl Database) {
    let store = database.open().await;
    let twins: Vec<_> =
        ["one", "two"].map(|task| valid(START, NewJob { task: task.to_owned(), id: Some(id("twin")), ..job() })).into();
    let outcomes = join(twins.iter().map(|twin| store.job_add(START, twin)).collect()).await;
    let added: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert_eq!(added.len(), 1);
    assert!(outcomes.iter().any(|outcome| matches!(outcome, Err(StoreError::JobExists(of)) if *of == id("twin"))));
    assert_eq!(&find(&store, &id("twin")).await, added[0]);
}

/// Polls futures side by side, as callers of one store do.
async fn join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in running.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        match running.iter().all(|(_, done)| done.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}

pub(super) async fn only_a_waiting_job_is_cancelled(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL {
        let uuid = in_status(&store, status).await;
        let before = find(&store, &uuid).await;
        match store.job_cancel(at(5), &uuid).await {
            Ok(cancelled) => {
                assert_eq!((status, cancelled.status), (JobStatus::Scheduled, JobStatus::Cancelled));
                assert_eq!(cancelled.finished_at, Some(at(5)));
                assert_eq!(find(&store, &uuid).await, cancelled);
            }
            Err(StoreError::NotScheduled { job, status: found, wanted }) => {
                assert_eq!((job, found, wanted), (uuid.clone(), status, "cancelled"));
                assert_ne!(status, JobStatus::Scheduled);
                assert_eq!(find(&store, &uuid).await, before);
            }
            Err(other) => panic!("{status}: {other}"),
        }
    }
}

pub(super) async fn only_a_waiting_job_is_rescheduled(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL {
        let uuid = in_status(&store, status).await;
        let before = find(&store, &uuid).await;
        match store.job_reschedule(at(5), &uuid, at(100)).await {
            Ok(moved) => {
                assert_eq!((status, moved.status), (JobStatus::Scheduled, JobStatus::Scheduled));
                assert_eq!(moved.scheduled_for, Some(at(100)));
                assert_eq!(find(&store, &uuid).await, moved);
            }
            Err(StoreError::NotScheduled { job, status: found, wanted }) => {
                assert_eq!((job, found, wanted), (uuid.clone(), status, "rescheduled"));
                assert_ne!(status, JobStatus::Scheduled);
                assert_eq!(find(&store, &uuid).await, before);
            }
            Err(other) => panic!("{status}: {other}"),
        }
    }
}

/// What may be done to a job that waits for its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Cancel,
    Move,
    Release,
}

/// Does it at the job's time; tells whether it took effect.
async fn act(store: &impl Store, act: Act, uuid: &JobId) -> bool {
    match act {
        Act::Cancel => store.job_cancel(at(60), uuid).await.is_ok(),
        Act::Move => store.job_reschedule(at(60), uuid, at(120)).await.is_ok(),
        Act::Release => {
            let released = store.job_release_due(at(60), &Scope::All, Link::Up).await.expect("looks").released;
            released.iter().any(|job| job.uuid == *uuid)
        }
    }
}

pub(super) async fn of_a_cancellation_and_a_release_one_takes_effect(database: &impl Database) {
    use Act::{Cancel, Move, Release};
    let (ours, theirs) = (database.open().await, database.open().await);
    let rounds = [(Cancel, Release), (Release, Cancel), (Move, Release), (Release, Move), (Cancel, Move)];
    for (number, (one, other)) in rounds.into_iter().cycle().take(25).enumerate() {
        let uuid = add_as(&ours, START, &format!("race-{number}"), job().at(at(60))).await.uuid;
        let took = join(vec![act(&ours, one, &uuid), act(&theirs, other, &uuid)]).await;
        let found = find(&ours, &uuid).await;
        let expected = match (one, other, took.as_slice()) {
            // One that was moved can be cancelled still.
            (Cancel, Move, [true, _]) | (Cancel, _, [true, false]) | (_, Cancel, [false, true]) => {
                (JobStatus::Cancelled, found.scheduled_for)
            }
            (Move, _, [true, false]) | (_, Move, [false, true]) => (JobStatus::Scheduled, Some(at(120))),
            (Release, _, [true, false]) | (_, Release, [false, true]) => (JobStatus::New, Some(at(60))),
            _ => panic!("{one:?} and {other:?}: {took:?}"),
        };
        assert_eq!((found.status, found.scheduled_for), expected, "{one:?} and {other:?}: {took:?}");
    }
}

pub(super) async fn rescheduling_keeps_the_grace(database: &impl Database) {
    let store = database.open().await;
    let strict = add(&store, START, job().at(at(100)).grace(30)).await.uuid;
    let patient = add(
        &store,
        START,
        NewJob { start: Start::At { scheduled_for: at(100), misfire_grace_seconds: None }, ..job() },
    )
    .await
    .uuid;
    for to in [at(500), at(50)] {
        store.job_reschedule(at(1), &strict, to).await.expect("it waits");
        store.job_reschedule(at(1), &patient, to).await.expect("it waits");
        let strict = find(&store, &strict).await;
        assert_eq!((strict.scheduled_for, strict.start_deadline), (Some(to), Some(to.plus_seconds(30))));
        let patient = find(&store, &patient).await;
        assert_eq!((patient.scheduled_for, patient.start_deadline), (Some(to), None));
    }
    let told = messages(&store, &strict).await;
    assert_eq!(told[1], format!("rescheduled from {} to {}", at(100), at(500)));
}

pub(super) async fn an_unknown_job_is_none_or_an_error(database: &impl Database) {
    let store = database.open().await;
    let nobody: JobId = id("nobody");
    assert_eq!(store.job_find(&nobody).await.expect("answers"), None);
    assert_eq!(store.job_detail(&nobody).await.expect("answers"), None);
    assert!(store.event_list(&nobody, 0, 10).await.expect("answers").is_empty());
    assert!(matches!(store.job_cancel(START, &nobody).await, Err(StoreError::NoSuchJob(of)) if of == nobody));
    assert!(
        matches!(store.job_reschedule(START, &nobody, START).await, Err(StoreError::NoSuchJob(of)) if of == nobody)
    );
    assert!(store.job_give_up(START, &[nobody], "no reason").await.expect("answers").is_empty());
}

pub(super) async fn all_is_there_after_a_restart(database: &impl Database) {
    let store = database.open().await;
    let mut before = Vec::new();
    for status in JobStatus::ALL {
        let uuid = in_status(&store, status).await;
        before.push((detail(&store, &uuid).await, store.event_list(&uuid, 0, 100).await.expect("events")));
    }
    let everyone = add(&store, START, job().workers(Workers::All)).await.uuid;
    before.push((detail(&store, &everyone).await, Vec::new()));
    store.close().await;
    let again = database.open().await;
    for (job, events) in before {
        assert_eq!(detail(&again, &job.job.uuid).await, job);
        assert_eq!(again.event_list(&job.job.uuid, 0, 100).await.expect("events"), events);
    }
}

pub(super) async fn only_what_others_change_shows(database: &impl Database) {
    let (ours, theirs) = (database.open().await, database.open().await);
    let mark = ours.change_mark().await.expect("a mark");
    let uuid = add(&ours, START, job().at(at(10))).await.uuid;
    assert_eq!(ours.change_mark().await.expect("a mark"), mark, "an own change is no news");
    find(&theirs, &uuid).await;
    assert_eq!(ours.change_mark().await.expect("a mark"), mark, "reading is no change");
    theirs.job_cancel(at(1), &uuid).await.expect("it waits");
    let moved = ours.change_mark().await.expect("a mark");
    assert_ne!(moved, mark, "the other handle changed a job");
    assert_eq!(ours.change_mark().await.expect("a mark"), moved, "nothing happened since");
}

pub(super) async fn a_change_of_another_handle_is_seen(database: &impl Database) {
    let (ours, theirs) = (database.open().await, database.open().await);
    let uuid = add(&ours, START, job().at(at(10))).await.uuid;
    theirs.job_reschedule(at(1), &uuid, at(20)).await.expect("it waits");
    assert_eq!(find(&ours, &uuid).await.scheduled_for, Some(at(20)));
    ours.job_cancel(at(2), &uuid).await.expect("it waits");
    assert!(matches!(
        theirs.job_cancel(at(3), &uuid).await,
        Err(StoreError::NotScheduled { status: JobStatus::Cancelled, .. })
    ));
    assert_eq!(messages(&theirs, &uuid).await, messages(&ours, &uuid).await);
}
