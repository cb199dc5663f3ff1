//! Lists, filters, pages, events and counts.

use std::collections::BTreeMap;

use norfab_model::{FabricEventKind, JobFilter, JobStatus, NewJob, ScheduleId, Store, Workers};

use super::Database;
use super::support::{
    START, accepted, add, add_as, at, claim, event, id, in_status, job, json, messages, names, result, tell,
};

/// The jobs that a filter lets through, the newest first.
async fn listed(store: &impl Store, filter: JobFilter) -> Vec<String> {
    let page = store.job_list(&filter).await.expect("the store lists");
    assert!(page.unreadable.is_empty());
    page.jobs.into_iter().map(|job| job.uuid.to_string()).collect()
}

pub(super) async fn the_newest_come_first_page_by_page(database: &impl Database) {
    let store = database.open().await;
    for number in 0..25 {
        add_as(&store, START, &format!("job-{number}"), job()).await;
    }
    let mut filter = JobFilter { limit: 10, ..JobFilter::default() };
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = store.job_list(&filter).await.expect("the store lists");
        sizes.push(page.jobs.len());
        seen.extend(page.jobs.into_iter().map(|job| job.uuid.to_string()));
        // What comes in between belongs to no later page.
        add(&store, START, job()).await;
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [10, 10, 5]);
    assert_eq!(seen, (0..25).rev().map(|number| format!("job-{number}")).collect::<Vec<_>>());
}

pub(super) async fn a_page_has_its_bounds(database: &impl Database) {
    let store = database.open().await;
    assert!(listed(&store, JobFilter::default()).await.is_empty());
    for _ in 0..51 {
        add(&store, START, job()).await;
    }
    let page = store.job_list(&JobFilter::default()).await.expect("the store lists");
    assert_eq!((page.jobs.len(), page.next.is_some()), (50, true));
    let page = store.job_list(&JobFilter { limit: 51, ..JobFilter::default() }).await.expect("the store lists");
    assert_eq!((page.jobs.len(), page.next), (51, None));
    assert_eq!(listed(&store, JobFilter { limit: u32::MAX, ..JobFilter::default() }).await.len(), 51);
}

pub(super) async fn filtered_pages_have_the_newest_first(database: &impl Database) {
    let store = database.open().await;
    for number in 0..5 {
        // The times of the newest lie first.
        add_as(&store, START, &format!("job-{number}"), job().at(at(100 - number))).await;
        add(&store, START, NewJob::new("other", "task")).await;
    }
    for filter in [
        JobFilter { statuses: vec![JobStatus::Scheduled], ..JobFilter::default() },
        JobFilter { statuses: vec![JobStatus::Missed, JobStatus::Scheduled], ..JobFilter::default() },
        JobFilter { service: Some("dummy".to_owned()), ..JobFilter::default() },
        JobFilter { task: Some("echo".to_owned()), ..JobFilter::default() },
        JobFilter { due_from: Some(at(1)), ..JobFilter::default() },
        JobFilter { due_until: Some(at(100)), ..JobFilter::default() },
    ] {
        let mut page = store.job_list(&JobFilter { limit: 2, ..filter.clone() }).await.expect("the store lists");
        let mut seen = Vec::new();
        loop {
            assert!(page.jobs.len() <= 2);
            seen.extend(page.jobs.into_iter().map(|job| job.uuid.to_string()));
            let Some(cursor) = page.next else { break };
            let next = JobFilter { limit: 2, cursor: Some(cursor), ..filter.clone() };
            page = store.job_list(&next).await.expect("the store lists");
        }
        assert_eq!(seen, ["job-4", "job-3", "job-2", "job-1", "job-0"], "{filter:?}");
    }
}

pub(super) async fn filters_by_status(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL {
        in_status(&store, status).await;
    }
    for status in JobStatus::ALL {
        let filter = JobFilter { statuses: vec![status], ..JobFilter::default() };
        assert_eq!(listed(&store, filter).await, [format!("in-{status}")]);
    }
    let ended = [JobStatus::Missed, JobStatus::Completed, JobStatus::Stale, JobStatus::Completed];
    let filter = JobFilter { statuses: ended.to_vec(), limit: 2, ..JobFilter::default() };
    let page = store.job_list(&filter).await.expect("the store lists");
    assert_eq!(page.jobs.iter().map(|job| job.status).collect::<Vec<_>>(), [JobStatus::Missed, JobStatus::Stale]);
    assert_eq!(listed(&store, JobFilter { cursor: page.next, ..filter }).await, ["in-COMPLETED"]);
}

pub(super) async fn filters_by_service_task_and_worker(database: &impl Database) {
    let store = database.open().await;
    for (name, service, task, worker) in
        [("a", "s1", "t1", "w1"), ("b", "s1", "t2", "w2"), ("c", "s2", "t1", "w1"), ("d", "s2", "t2", "w3")]
    {
        let new = NewJob::new(service, task).workers(Workers::One(worker.to_owned()));
        let uuid = add_as(&store, START, name, new).await.uuid;
        if name != "d" {
            claim(&store, START, &uuid).await;
            tell(&store, at(1), &uuid, vec![result(worker, "{}")]).await;
        }
    }
    let check = async |service: Option<&str>, task: Option<&str>, workers: &[&str], expected: &[&str]| {
        let (service, task) = (service.map(str::to_owned), task.map(str::to_owned));
        let filter = JobFilter { service, task, workers: names(workers), ..JobFilter::default() };
        assert_eq!(listed(&store, filter.clone()).await, expected, "{filter:?}");
    };
    check(Some("s1"), None, &[], &["b", "a"]).await;
    check(None, Some("t1"), &[], &["c", "a"]).await;
    check(Some("s2"), Some("t2"), &[], &["d"]).await;
    check(Some("nosuch"), None, &[], &[]).await;
    check(None, None, &["w1"], &["c", "a"]).await;
    check(None, None, &["w1", "w2"], &["c", "b", "a"]).await;
    check(None, None, &["w3"], &[]).await;
    check(Some("s2"), None, &["w1", "w3"], &["c"]).await;
    check(None, None, &["w"], &[]).await;
}

pub(super) async fn filters_by_due_time(database: &impl Database) {
    let store = database.open().await;
    for seconds in [30, 10, 20] {
        add_as(&store, START, &format!("due-{seconds}"), job().at(at(seconds))).await;
    }
    add(&store, START, job()).await;
    let check = async |from: Option<i64>, until: Option<i64>, expected: &[&str]| {
        let filter = JobFilter { due_from: from.map(at), due_until: until.map(at), ..JobFilter::default() };
        assert_eq!(listed(&store, filter).await, expected, "{from:?} to {until:?}");
    };
    check(Some(20), None, &["due-20", "due-30"]).await;
    check(None, Some(20), &["due-20", "due-10"]).await;
    check(Some(10), Some(30), &["due-20", "due-10", "due-30"]).await;
    check(Some(11), Some(19), &[]).await;
    check(Some(30), Some(10), &[]).await;
}

pub(super) async fn filters_together(database: &impl Database) {
    let store = database.open().await;
    add_as(&store, START, "waits", job().at(at(10))).await;
    add_as(&store, START, "elsewhere", NewJob::new("other", "echo").at(at(10))).await;
    let cancelled = add_as(&store, START, "cancelled", job().at(at(10))).await.uuid;
    store.job_cancel(START, &cancelled).await.expect("it waits");
    let filter = JobFilter {
        statuses: vec![JobStatus::Scheduled],
        service: Some("dummy".to_owned()),
        due_from: Some(at(10)),
        ..JobFilter::default()
    };
    assert_eq!(listed(&store, filter.clone()).await, ["waits"]);
    let of_schedule = ScheduleId::new("nightly").expect("an identity");
    assert!(listed(&store, JobFilter { schedule: Some(of_schedule), ..filter }).await.is_empty());
}

pub(super) async fn unfinished_jobs_come_in_their_order(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL {
        in_status(&store, status).await;
    }
    let unfinished = store.job_unfinished().await.expect("the store lists");
    let statuses: Vec<_> = unfinished.iter().map(|job| job.status).collect();
    assert_eq!(statuses, JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()).collect::<Vec<_>>());
}

pub(super) async fn events_come_in_their_order(database: &impl Database) {
    let store = database.open().await;
    let (uuid, other) = (add(&store, START, job()).await.uuid, add(&store, START, job()).await.uuid);
    for job in [&uuid, &other] {
        claim(&store, START, job).await;
        tell(&store, START, job, vec![accepted(&["w1"])]).await;
    }
    for step in ["one", "two", "three"] {
        tell(
            &store,
            at(1).saturating_add(super::support::MICRO),
            &uuid,
            vec![event("w1", FabricEventKind::Progress, step)],
        )
        .await;
        tell(&store, at(1), &other, vec![event("w1", FabricEventKind::Progress, "another job's")]).await;
    }
    let all = store.event_list(&uuid, 0, 10).await.expect("events");
    assert_eq!(all.iter().map(|event| event.message.as_str()).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!((all[0].severity.as_str(), all[0].task.as_deref()), ("INFO", Some("echo")));
    assert_eq!((all[0].created_at, &all[0].job_uuid), (Some(at(1)), &uuid));
    assert_eq!(all[0].data, json("{\"worker\":\"w1\",\"message\":\"one\"}"));
    assert_eq!(store.event_list(&uuid, all[0].id, 10).await.expect("events"), all[1..]);
    assert_eq!(store.event_list(&uuid, 0, 2).await.expect("events"), all[..2]);
    assert!(store.event_list(&uuid, all[2].id, 10).await.expect("events").is_empty());
}

pub(super) async fn own_events_tell_of_delayed_jobs_only(database: &impl Database) {
    let store = database.open().await;
    let immediate = in_status(&store, JobStatus::Completed).await;
    assert!(messages(&store, &immediate).await.is_empty());
    let delayed = in_status(&store, JobStatus::Cancelled).await;
    let told = messages(&store, &delayed).await;
    assert_eq!(
        told,
        [format!("scheduled for {}, to start at {} at the latest", at(-10), at(10)), "cancelled".to_owned()]
    );
    let events = store.event_list(&delayed, 0, 10).await.expect("events");
    assert!(events.iter().all(|event| event.data.as_str() == "{}" && event.job_uuid == delayed));
}

pub(super) async fn everything_is_counted(database: &impl Database) {
    let store = database.open().await;
    assert_eq!(store.stats().await.expect("counted"), norfab_model::JobStats::default());
    add_as(&store, START, "one", job()).await;
    add_as(&store, START, "two", job().at(at(10))).await;
    add_as(&store, START, "three", NewJob::new("other", "task").at(at(10))).await;
    store.job_cancel(START, &id("three")).await.expect("it waits");
    let stats = store.stats().await.expect("counted");
    assert_eq!((stats.total_jobs, stats.total_events), (3, 3));
    let counts = |counts: &[(&str, u64)]| {
        counts.iter().map(|(name, count)| (name.to_string(), *count)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(stats.jobs_by_status, counts(&[("NEW", 1), ("SCHEDULED", 1), ("CANCELLED", 1)]));
    assert_eq!(stats.jobs_by_service, counts(&[("dummy", 2), ("other", 1)]));
}
