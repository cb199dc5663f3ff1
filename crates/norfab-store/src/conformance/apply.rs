//! Replies: every kind, in batches, late, repeated, and for nobody.

use norfab_model::{
    Context, FabricEventKind, FollowUp, Ignored, JobStatus, Reply, ReplyKind, RetryPolicy, Store, Workers,
};

use super::Database;
use super::support::{
    START, accepted, add, add_as, at, claim, detail, event, find, id, in_status, job, messages, names, question,
    result, stored, tell,
};

pub(super) async fn a_job_lives_through_its_replies(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::Any)).await.uuid;
    claim(&store, START, &uuid).await;

    let applied = tell(&store, at(1), &uuid, vec![accepted(&["w7"])]).await;
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.started_at), (JobStatus::Dispatched, Some(at(1))));
    assert_eq!(found.workers_dispatched, ["w7"]);
    assert_eq!((&applied.jobs[0].job, applied.jobs[0].changed), (&found, true));

    tell(&store, at(2), &uuid, vec![stored("w7")]).await;
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.started_at), (JobStatus::Started, Some(at(1))));
    assert!(found.workers_started.contains("w7"));

    let ready = event("w7", FabricEventKind::ResultReady, "completed");
    let applied = tell(&store, at(3), &uuid, vec![ready]).await;
    let fetch = FollowUp::Fetch("w7".to_owned());
    assert_eq!((&applied.jobs[0].follow_ups, applied.jobs[0].events.len()), (&vec![fetch], 1));

    assert_eq!(applied.jobs[0].results, None);

    let ended = tell(&store, at(4), &uuid, vec![result("w7", "{\"result\": 1.50}")]).await;
    let found = detail(&store, &uuid).await;
    assert_eq!((found.job.status, found.job.finished_at), (JobStatus::Completed, Some(at(4))));
    assert_eq!(ended.jobs[0].results.as_ref(), Some(&found.results));
    assert!(found.job.workers_completed.contains("w7"));
    assert_eq!(found.results["w7"].as_str(), "{\"result\": 1.50}");
}

pub(super) async fn replies_are_folded_in_their_order(database: &impl Database) {
    let store = database.open().await;
    let (one, two) = (add_as(&store, START, "one", job()).await.uuid, add_as(&store, START, "two", job()).await.uuid);
    claim(&store, START, &one).await;
    claim(&store, START, &two).await;
    let progress = |text| event("w1", FabricEventKind::Progress, text);
    let of = |job: &norfab_model::JobId, kind| Reply::new(job.clone(), kind);
    let replies = vec![
        of(&two, accepted(&["w1"])),
        of(&one, progress("first")),
        of(&two, progress("second")),
        of(&one, result("w1", "1")),
        of(&one, progress("too late")),
        of(&two, progress("third")),
    ];
    let outcome = store.job_apply(at(1), RetryPolicy::default(), replies).await.expect("the replies are applied");
    assert_eq!(outcome.jobs.len(), 2);
    assert_eq!(outcome.ignored, [(one.clone(), Ignored::JobEnded)]);
    assert_eq!(
        (messages(&store, &one).await, messages(&store, &two).await),
        (names(&["first"]), names(&["second", "third"]))
    );
    assert_eq!(find(&store, &one).await.status, JobStatus::Completed);
    assert_eq!(find(&store, &two).await.status, JobStatus::Started);
    for applied in outcome.jobs {
        assert_eq!(find(&store, &applied.job.uuid).await, applied.job);
        let stored = store.event_list(&applied.job.uuid, 0, 10).await.expect("events");
        assert_eq!(stored, applied.events, "events are returned as they are stored");
    }
}

pub(super) async fn results_of_several_workers_are_kept_together(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::All)).await.uuid;
    claim(&store, START, &uuid).await;
    let workers = ["w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10"];
    tell(&store, at(1), &uuid, vec![accepted(&workers)]).await;
    for (number, worker) in workers.into_iter().enumerate() {
        assert_eq!(
            find(&store, &uuid).await.status,
            if number == 0 { JobStatus::Dispatched } else { JobStatus::Started }
        );
        tell(&store, at(2), &uuid, vec![result(worker, &format!("{{\"result\" :{number}.0}}"))]).await;
        let again = tell(&store, at(2), &uuid, vec![result(worker, "\"another\"")]).await;
        assert_eq!(again.ignored.len(), 1);
    }
    let found = detail(&store, &uuid).await;
    assert_eq!((found.job.status, found.results.len()), (JobStatus::Completed, 10));
    for (number, worker) in workers.into_iter().enumerate() {
        assert_eq!(found.results[worker].as_str(), format!("{{\"result\" :{number}.0}}"));
    }
}

pub(super) async fn a_refused_post_fails_the_job(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job()).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, at(1), &uuid, vec![ReplyKind::Refused { errors: names(&["no such service"]) }]).await;
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.posts_refused, found.finished_at), (JobStatus::Failed, 1, Some(at(1))));
    assert_eq!(found.errors, ["no such service"]);
    assert_eq!(messages(&store, &uuid).await, ["failed: no such service"]);
}

pub(super) async fn a_worker_missing_from_a_list_gets_a_failed_result(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::List(names(&["w1", "ghost"])))).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, at(1), &uuid, vec![accepted(&["w1"]), result("w1", "{}")]).await;
    let found = detail(&store, &uuid).await;
    assert_eq!((found.job.status, found.results.len(), found.job.errors.len()), (JobStatus::Completed, 2, 1));
    assert!(found.results["ghost"].as_str().contains("not registered"));
}

pub(super) async fn a_lost_job_gets_a_failed_result(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job()).await.uuid;
    claim(&store, START, &uuid).await;
    let lost = || ReplyKind::NotFound { worker: "w1".to_owned() };
    let outcome = tell(&store, at(1), &uuid, vec![accepted(&["w1"]), lost()]).await;
    assert_eq!(outcome.jobs[0].follow_ups, [FollowUp::AskAgain("w1".to_owned())]);
    tell(&store, at(2), &uuid, vec![stored("w1"), lost()]).await;
    assert_eq!(find(&store, &uuid).await.status, JobStatus::Started, "it may have overtaken the 201");
    let again = |times| Reply { context: Context::Repeated(times), ..Reply::new(uuid.clone(), lost()) };
    store.job_apply(at(3), RetryPolicy::default(), vec![again(1)]).await.expect("the reply is applied");
    assert_eq!(find(&store, &uuid).await.status, JobStatus::Started, "it may have been under way for long");
    store.job_apply(at(4), RetryPolicy::default(), vec![again(2)]).await.expect("the reply is applied");
    let found = detail(&store, &uuid).await;
    assert_eq!((found.job.status, found.job.errors.len()), (JobStatus::Completed, 1));
    assert!(found.results["w1"].as_str().contains("lost the job"));
}

pub(super) async fn ended_jobs_are_immutable(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
        let uuid = in_status(&store, status).await;
        let (before, events) = (detail(&store, &uuid).await, messages(&store, &uuid).await);
        let late = vec![
            accepted(&["w1"]),
            stored("w1"),
            result("w1", "\"late\""),
            event("w1", FabricEventKind::Progress, "late"),
            ReplyKind::Refused { errors: Vec::new() },
        ];
        let outcome = tell(&store, at(9), &uuid, late).await;
        assert!(outcome.ignored.iter().all(|(_, why)| *why == Ignored::JobEnded) && outcome.ignored.len() == 5);
        assert!(!outcome.jobs[0].changed && outcome.jobs[0].events.is_empty());
        assert_eq!((detail(&store, &uuid).await, messages(&store, &uuid).await), (before, events), "{status}");
    }
}

pub(super) async fn replies_for_nobody_are_told_apart(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job()).await.uuid;
    let replies = vec![Reply::new(id("nobody"), stored("w1")), Reply::new(uuid.clone(), stored("w1"))];
    let outcome = store.job_apply(at(1), RetryPolicy::default(), replies).await.expect("the replies are applied");
    assert_eq!((outcome.unknown, outcome.ignored), (vec![id("nobody")], vec![(uuid.clone(), Ignored::NotSent)]));
    claim(&store, at(2), &uuid).await;
    let outcome = tell(&store, at(2), &uuid, vec![stored("somebody else")]).await;
    assert_eq!(outcome.ignored, [(uuid, Ignored::UnknownWorker)]);
    let none = store.job_apply(at(1), RetryPolicy::default(), Vec::new()).await.expect("nothing is applied");
    assert_eq!(none, norfab_model::AppliedReplies::default());
}

pub(super) async fn questions_are_kept_until_answered(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::All)).await.uuid;
    claim(&store, START, &uuid).await;
    let asks = |worker: &str, input: &str| event(worker, FabricEventKind::InputRequest(question(input)), "asks");
    tell(&store, at(1), &uuid, vec![accepted(&["w1", "w2"]), asks("w1", "q1"), asks("w2", "q2")]).await;
    store.close().await;
    let store = database.open().await;
    let found = find(&store, &uuid).await;
    assert_eq!(found.status, JobStatus::WaitingClientInput);
    assert_eq!((&found.pending_inputs["w1"], &found.pending_inputs["w2"]), (&question("q1"), &question("q2")));
    let answered = FabricEventKind::InputResponse { input_id: Some("q1".to_owned()) };
    tell(&store, at(2), &uuid, vec![event("w1", answered, "received")]).await;
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.pending_inputs.len()), (JobStatus::WaitingClientInput, 1));
    tell(&store, at(3), &uuid, vec![result("w2", "{}")]).await;
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.pending_inputs.len()), (JobStatus::Started, 0));
}

pub(super) async fn repeated_events_are_stored_once(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job()).await.uuid;
    claim(&store, START, &uuid).await;
    let asks = || event("w1", FabricEventKind::InputRequest(question("q1")), "asks");
    tell(&store, at(1), &uuid, vec![asks(), asks()]).await;
    let outcome = tell(&store, at(2), &uuid, vec![asks()]).await;
    assert_eq!(outcome.ignored, [(uuid.clone(), Ignored::Repeated)]);
    assert_eq!(messages(&store, &uuid).await, ["asks"]);
}

pub(super) async fn progress_changes_no_row(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job()).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, at(1), &uuid, vec![stored("w1")]).await;
    let before = find(&store, &uuid).await;
    let outcome = tell(&store, at(2), &uuid, vec![event("w1", FabricEventKind::Progress, "half way")]).await;
    assert!(!outcome.jobs[0].changed);
    assert_eq!((outcome.jobs[0].events.len(), find(&store, &uuid).await), (1, before));
}
