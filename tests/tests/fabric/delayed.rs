//! Delayed jobs on the real NorFab: nothing before the time, once at it, and what a restart, a cancellation or a new time
//! make of it.

use crate::common::{
    W1, W2, builder, completed, executions, fabric, in_seconds, job, open, outcome, run, to, within, workers_of,
};
use norfab_client::{ClientError, Job, JobFilter, JobStatus, Outcome, Role, StoreError, Timestamp};
use norfab_tests::{ClientMessage, Peer, Security};
use serde_json::json;

with_curve_and_without!(
    a_delayed_job_runs_once_at_its_time,
    cancelled_and_moved_before_the_time,
    a_restart_releases_the_overdue_job_once,
    a_job_of_another_process_runs_at_the_owner,
);

fn messages_of(peer: &Peer, job: &Job) -> Vec<ClientMessage> {
    peer.client_messages().into_iter().filter(|message| message.uuid == job.uuid.as_str()).collect()
}

fn posts_of(peer: &Peer, job: &Job) -> usize {
    messages_of(peer, job).iter().filter(|message| message.command == ClientMessage::POST).count()
}

#[track_caller]
fn nothing_before(peer: &Peer, job: &Job, at: Timestamp) {
    let messages = messages_of(peer, job);
    assert!(!messages.is_empty());
    for message in messages {
        assert!(message.time >= at.as_seconds_f64(), "{message:?} before {at}");
    }
}

async fn a_delayed_job_runs_once_at_its_time(security: Security) {
    let Some((peer, client)) = fabric(security, 2).await else { return };
    // Some traffic, so that there is a link long before the time.
    workers_of(run(&client, job("echo")).await);
    let at = in_seconds(2);
    let mut handle = client.schedule_job(job("count").timeout(60).at(at)).await.expect("added");
    let waiting = handle.job().await.expect("there");
    assert_eq!((waiting.status, waiting.deadline, waiting.scheduled_for), (JobStatus::Scheduled, None, Some(at)));
    assert_eq!(workers_of(outcome(&mut handle).await).len(), 2);
    let job = handle.job().await.expect("there");
    nothing_before(&peer, &job, at);
    assert_eq!(executions(&peer, &job), [W1, W2]);
    assert_eq!(posts_of(&peer, &job), 1);
    let released = job.released_at.expect("released");
    assert!(released >= at && job.deadline == Some(released.plus_seconds(60)));
    client.shutdown().await;
}

async fn cancelled_and_moved_before_the_time(security: Security) {
    let Some((peer, client)) = fabric(security, 1).await else { return };
    let mut cancelled = client.schedule_job(job("count").at(in_seconds(5))).await.expect("added");
    let mut moved = client.schedule_job(job("count").at(in_seconds(5)).grace(60)).await.expect("added");
    client.cancel_scheduled_job(cancelled.id()).await.expect("cancelled");
    assert_eq!(outcome(&mut cancelled).await, Outcome::Cancelled);
    let later = in_seconds(7);
    let job_moved = client.reschedule_job(moved.id(), later).await.expect("moved");
    assert_eq!(job_moved.start_deadline, Some(later.plus_seconds(60)));
    workers_of(outcome(&mut moved).await);
    nothing_before(&peer, &moved.job().await.expect("there"), later);
    assert_eq!(messages_of(&peer, &cancelled.job().await.expect("there")), []);

    for id in [cancelled.id(), moved.id()] {
        let again = client.cancel_scheduled_job(id).await;
        assert!(matches!(again, Err(ClientError::Store(StoreError::NotScheduled { .. }))), "{again:?}");
        let again = client.reschedule_job(id, in_seconds(60)).await;
        assert!(matches!(again, Err(ClientError::Store(StoreError::NotScheduled { .. }))), "{again:?}");
    }
    client.shutdown().await;
}

async fn a_restart_releases_the_overdue_job_once(security: Security) {
    let Some((peer, client)) = fabric(security, 1).await else { return };
    let patient = client.schedule_job(job("count").at(in_seconds(5))).await.expect("added").id().clone();
    let hasty = client.schedule_job(job("count").at(in_seconds(5)).grace(1)).await.expect("added").id().clone();
    client.shutdown().await;

    // The time passes while nobody dispatches: a client beside it only looks on.
    let onlooker = builder(&peer).role(Role::Beside).build().await.expect("opens");
    let over = in_seconds(7);
    norfab_tests::eventually("the grace to be over", async || (crate::common::now() > over).then_some(())).await;
    let filter = JobFilter { statuses: vec![JobStatus::Scheduled], ..JobFilter::default() };
    assert_eq!(onlooker.list_jobs(&filter).await.expect("lists").jobs.len(), 2);
    onlooker.shutdown().await;

    let client = open(&peer).await;
    let mut patient = client.job(&patient).await.expect("there");
    workers_of(outcome(&mut patient).await);
    let mut hasty = client.job(&hasty).await.expect("there");
    assert_eq!(outcome(&mut hasty).await, Outcome::Missed);
    assert_eq!(messages_of(&peer, &hasty.job().await.expect("there")), []);
    client.shutdown().await;

    let client = open(&peer).await;
    workers_of(run(&client, job("echo")).await);
    let job = patient.job().await.expect_err("its client is closed");
    assert!(matches!(job, ClientError::Store(_)), "{job:?}");
    let job = client.find_job(patient.id()).await.expect("there");
    assert_eq!((executions(&peer, &job), posts_of(&peer, &job)), (vec![W1.to_owned()], 1));
    client.shutdown().await;
}

async fn a_job_of_another_process_runs_at_the_owner(security: Security) {
    let Some((_peer, client)) = fabric(security, 1).await else { return };
    let beside = builder(&_peer).role(Role::Guest).build().await.expect("opens");
    let refused = builder(&_peer).build().await;
    assert!(matches!(refused, Err(ClientError::Owned { .. })), "{refused:?}");
    let mut handle = beside.submit_job(job("echo").workers(to(W1)).kwargs(json!({"n": 1}))).await.expect("added");
    let answers = completed(outcome(&mut handle).await);
    assert!(!answers[0].1.failed);
    beside.shutdown().await;
    client.shutdown().await;

    // Nobody owns it any more: the guest serves its own job itself.
    let guest = builder(&_peer).role(Role::Guest).build().await.expect("opens");
    let mut handle = guest.submit_job(job("echo").workers(to(W1))).await.expect("added");
    workers_of(within(handle.outcome()).await.expect("ends"));
    guest.shutdown().await;
}
