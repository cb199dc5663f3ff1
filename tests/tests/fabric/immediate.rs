//! Immediate jobs on the real NorFab: targets, failures, events, questions, and a broker that goes and comes.

use std::collections::BTreeSet;

use crate::common::{W1, W2, completed, executions, fabric, job, outcome, run, to, within, workers_of};
use norfab_client::{ClientError, JobStatus, Json, Outcome, Update, Workers};
use norfab_tests::Security;
use serde_json::json;

with_curve_and_without!(
    every_kind_of_target,
    failures_are_told_apart,
    events_come_as_they_happen,
    questions_are_answered_or_turned_down,
    ten_workers_answer,
    a_restarted_broker_is_found_again,
    the_broker_itself_answers,
);

async fn every_kind_of_target(security: Security) {
    let Some((peer, client)) = fabric(security, 2).await else { return };
    let both = BTreeSet::from([W1.to_owned(), W2.to_owned()]);
    let list = Workers::List(vec![W2.to_owned(), W1.to_owned()]);
    for (workers, expected) in
        [(Workers::All, both.clone()), (to(W2), BTreeSet::from([W2.to_owned()])), (list, both.clone())]
    {
        let mut handle = client.submit_job(job("count").workers(workers)).await.expect("added");
        assert_eq!(workers_of(outcome(&mut handle).await), expected);
        let job = handle.job().await.expect("there");
        assert_eq!(executions(&peer, &job), Vec::from_iter(expected));
    }
    let mut any = client.submit_job(job("count").workers(Workers::Any)).await.expect("added");
    let answered = workers_of(outcome(&mut any).await);
    assert!(answered.len() == 1 && answered.is_subset(&both), "{answered:?}");
    assert_eq!(executions(&peer, &any.job().await.expect("there")), Vec::from_iter(answered));
    client.shutdown().await;
}

async fn failures_are_told_apart(security: Security) {
    let Some((_peer, client)) = fabric(security, 1).await else { return };
    for (task, kwargs, part) in [
        ("fail", json!({"message": "boom"}), "boom"),
        ("fail", json!({"message": "soft boom", "soft": true}), "soft boom"),
        ("nosuchtask", json!({}), "KeyError"),
        ("sleep", json!({"seconds": "no number"}), "seconds"),
    ] {
        let answers = completed(run(&client, job(task).kwargs(kwargs)).await);
        let (_, answer) = &answers[0];
        assert!(answer.failed && answer.errors.concat().contains(part), "{answer:?}");
    }
    let nowhere = run(&client, norfab_client::NewJob::new("nosuch", "echo")).await;
    let Outcome::Failed { errors, .. } = nowhere else { panic!("{nowhere:?}") };
    assert!(errors.concat().contains("nosuch"), "{errors:?}");
    let ghosts = Workers::List(vec![W1.to_owned(), "ghost".to_owned()]);
    let answers = completed(run(&client, job("echo").workers(ghosts)).await);
    let failed: Vec<_> = answers.iter().map(|(worker, answer)| (worker.as_str(), answer.failed)).collect();
    assert_eq!(failed, [(W1, false), ("ghost", true)]);
    client.shutdown().await;
}

async fn events_come_as_they_happen(security: Security) {
    let Some((_peer, client)) = fabric(security, 1).await else { return };
    let mut handle = client.submit_job(job("emit").kwargs(json!({"n": 3, "interval": 0.1}))).await.expect("added");
    let mut statuses = Vec::new();
    let mut messages = Vec::new();
    while let Some(update) = within(handle.next_update()).await.expect("readable") {
        match update {
            Update::Status(job) => statuses.push(job.status),
            Update::Event(event) => messages.push(event.message),
        }
    }
    assert_eq!(messages, ["starting", "step 1 of 3", "step 2 of 3", "step 3 of 3", "completed"]);
    assert_eq!(statuses.last(), Some(&JobStatus::Completed));
    let stored = client.job_events(handle.id(), 0, 100).await.expect("readable");
    assert_eq!(stored.iter().map(|event| event.message.as_str()).collect::<Vec<_>>(), messages);
    let data: serde_json::Value = stored[1].data.to().expect("JSON");
    assert_eq!(data["extras"]["step"], 1);
    client.shutdown().await;
}

async fn questions_are_answered_or_turned_down(security: Security) {
    let Some((_peer, client)) = fabric(security, 1).await else { return };
    let ask = || job("ask").workers(to(W1)).kwargs(json!({"question": "Go on?"}));
    let mut answered = client.submit_job(ask()).await.expect("added");
    let wrong_worker = answered.send_response("ghost", Json::from(json!("yes"))).await;
    assert!(matches!(wrong_worker, Err(ClientError::NoQuestion { .. })), "{wrong_worker:?}");
    assert_eq!(question(&mut answered).await, "Go on?");
    answered.send_response(W1, Json::from(json!("yes"))).await.expect("sent");
    let answers = completed(outcome(&mut answered).await);
    assert!(answers[0].1.result.as_str().contains("yes"), "{}", answers[0].1.result.as_str());

    let mut refused = client.submit_job(ask()).await.expect("added");
    question(&mut refused).await;
    refused.cancel_request(W1).await.expect("sent");
    let answers = completed(outcome(&mut refused).await);
    assert!(!answers[0].1.result.as_str().contains("yes"));
    client.shutdown().await;
}

/// Waits until the job waits for an answer, and tells the question.
async fn question(handle: &mut crate::common::Handle) -> String {
    loop {
        let update = within(handle.next_update()).await.expect("readable").expect("not ended");
        if let Update::Status(job) = update
            && job.status == JobStatus::WaitingClientInput
        {
            return job.pending_inputs[W1].question.clone();
        }
    }
}

async fn ten_workers_answer(security: Security) {
    let Some((peer, client)) = fabric(security, 10).await else { return };
    let mut handle = client
        .submit_job(job("echo").kwargs(json!({"text": "zażółć", "n": 9_007_199_254_740_993_u64})))
        .await
        .expect("added");
    let results = completed(outcome(&mut handle).await);
    assert_eq!(results.len(), 10);
    for (worker, result) in results {
        assert!(peer.about().workers.contains(&worker));
        assert!(result.result.as_str().contains("9007199254740993") && result.result.as_str().contains("zażółć"));
    }
    client.shutdown().await;
}

async fn a_restarted_broker_is_found_again(security: Security) {
    let Some((peer, client)) = fabric(security, 2).await else { return };
    workers_of(run(&client, job("echo")).await);
    peer.kill_broker().await;
    peer.start_broker_with_workers().await;
    let mut handle = client.submit_job(job("count")).await.expect("added");
    assert_eq!(workers_of(outcome(&mut handle).await).len(), 2);
    assert_eq!(executions(&peer, &handle.job().await.expect("there")), [W1, W2]);
    client.shutdown().await;
}

async fn the_broker_itself_answers(security: Security) {
    let Some((_peer, client)) = fabric(security, 2).await else { return };
    let timeout = std::time::Duration::from_secs(10);
    let workers = within(client.mmi("show_workers", Json::empty_object(), timeout)).await.expect("answers");
    let workers: Vec<serde_json::Value> = workers.to().expect("a list");
    let mut names: Vec<_> = workers.iter().filter_map(|worker| worker["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [W1, W2]);
    for task in ["show_broker_version", "get_stats", "get_status", "get_logs", "show_broker_inventory"] {
        within(client.mmi(task, Json::empty_object(), timeout)).await.expect(task);
    }
    let unknown = within(client.mmi("nosuch", Json::empty_object(), timeout)).await.expect("answers");
    assert!(unknown.as_str().contains("Unsupported task"), "{}", unknown.as_str());
    client.shutdown().await;
}
