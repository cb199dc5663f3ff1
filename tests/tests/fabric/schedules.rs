//! Interval schedules on the real NorFab: on the grid, without hole, once on each worker, through management and restarts.

use std::time::Duration;

use norfab_client::{
    Client, ClientError, Coalesce, Cron, Interval, Job, JobId, JobStatus, NewSchedule, Overlap, OverlapPolicy,
    ScheduleError, ScheduleId, ScheduleKey, SchedulePatch, ScheduleState, Timestamp, Trigger, Workers,
};
use norfab_tests::{Chance, Peer, Security, eventually};
use serde_json::json;

use crate::audit::{counters, grid, jobs_of, schedule_id, without_double_or_hole};
use crate::common::{W1, fabric, fabric_and_program, now, open, outcome, to, within, workers_of};

with_curve_and_without!(
    a_one_second_schedule_keeps_to_its_grid,
    a_cron_schedule_of_every_second_leaves_none_out,
    a_long_task_forbids_the_next_occurrences,
    management_leaves_running_jobs_alone,
    restarts_leave_neither_doubles_nor_holes,
    kills_leave_neither_doubles_nor_holes,
);

pub(crate) fn every(seconds: u64, task: &str) -> NewSchedule {
    NewSchedule::new("dummy", task, Interval::new(seconds).expect("an interval"))
}

pub(crate) async fn create(client: &Client, new: NewSchedule) -> ScheduleKey {
    ScheduleKey::Id(client.create_job_schedule(new).await.expect("created").schedule.uuid)
}

/// Waits until a schedule has made so many jobs.
pub(crate) async fn until_runs(client: &Client, key: &ScheduleKey, runs: u64) {
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let wait = async {
        while counters(client, key).await.total_runs < runs {
            looks.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(180), wait).await.expect("the schedule makes its jobs");
}

/// Waits until no job of a schedule is unfinished.
async fn until_quiet(client: &Client, key: &ScheduleKey) -> Vec<Job> {
    for job in jobs_of(client, key).await {
        let mut handle = client.job(&job.uuid).await.expect("there");
        within(handle.outcome()).await.expect("ends");
    }
    jobs_of(client, key).await
}

/// Each job is the one of its occurrence, was not sent before it, and ran once on each of so many workers.
#[track_caller]
fn each_once(peer: &Peer, schedule: &ScheduleId, jobs: &[Job], workers: usize) {
    let runs = peer.runs();
    let posts = peer.posts();
    for job in jobs {
        let at = job.scheduled_for.expect("an occurrence");
        assert_eq!(job.uuid, JobId::of_occurrence(schedule, at));
        assert_eq!(job.status, JobStatus::Completed, "{job:?}");
        let ran = &runs[job.uuid.as_str()];
        assert!(ran.len() == workers && ran.values().all(|times| *times == 1), "{}: {ran:?}", job.uuid);
        let posts = &posts[job.uuid.as_str()];
        assert!(posts.iter().all(|time| *time >= at.as_seconds_f64()), "{} before {at}", job.uuid);
    }
}

async fn a_one_second_schedule_keeps_to_its_grid(security: Security) {
    let Some((peer, client)) = fabric(security, 2).await else { return };
    let new = every(1, "count").overlap_policy(OverlapPolicy::Allow).max_instances(10);
    let key = create(&client, new).await;
    until_runs(&client, &key, if security == Security::Curve { 60 } else { 15 }).await;
    client.pause_job_schedule(&key).await.expect("paused");
    let jobs = until_quiet(&client, &key).await;
    let seconds = grid(&jobs);
    let counted = counters(&client, &key).await;
    let first = seconds[0];
    let last = seconds[seconds.len() - 1];
    let walked = u64::try_from(last - first).expect("later") + 1;
    assert_eq!(walked, counted.total_runs + counted.coalesced_runs + counted.overlap_skips, "{counted:?}");
    assert_eq!(counted.total_runs, jobs.len() as u64);
    each_once(&peer, &schedule_id(&key), &jobs, 2);
    client.shutdown().await;
}

async fn a_cron_schedule_of_every_second_leaves_none_out(security: Security) {
    let Some((peer, client)) = fabric(security, 1).await else { return };
    let cron = Cron::with_seconds("* * * * * *").expect("an expression");
    let new = NewSchedule::new("dummy", "count", cron).workers(to(W1)).timezone("Europe/Berlin");
    let new = new.coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(100);
    let key = create(&client, new).await;
    until_runs(&client, &key, 10).await;
    client.pause_job_schedule(&key).await.expect("paused");
    let jobs = until_quiet(&client, &key).await;
    let seconds = grid(&jobs);
    assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] == 1), "{seconds:?}");
    let counted = counters(&client, &key).await;
    assert_eq!((counted.total_runs, counted.overlap_skips), (jobs.len() as u64, 0), "{counted:?}");
    each_once(&peer, &schedule_id(&key), &jobs, 1);
    client.shutdown().await;
}

async fn a_long_task_forbids_the_next_occurrences(security: Security) {
    let Some((peer, client)) = fabric(security, 1).await else { return };
    let key = create(&client, every(1, "sleep").workers(to(W1)).kwargs(json!({"seconds": 3}))).await;
    until_runs(&client, &key, 3).await;
    client.pause_job_schedule(&key).await.expect("paused");
    let jobs = until_quiet(&client, &key).await;
    let seconds = grid(&jobs);
    assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] >= 3), "{seconds:?}");
    let counted = counters(&client, &key).await;
    assert!(counted.overlap_skips >= 4, "{counted:?}");
    each_once(&peer, &schedule_id(&key), &jobs, 1);
    client.shutdown().await;
}

async fn management_leaves_running_jobs_alone(security: Security) {
    let Some((peer, client)) = fabric(security, 1).await else { return };
    let name = "pause, resume, run";
    let created = client.create_job_schedule(every(3600, "sleep").name(name).kwargs(json!({"seconds": 2}))).await;
    let created = created.expect("created").schedule;
    let key = ScheduleKey::parse(name);
    let taken = client.create_job_schedule(every(5, "echo").name(name)).await;
    let Err(ClientError::Schedule(ScheduleError::NameTaken { existing })) = taken else { panic!("{taken:?}") };
    assert_eq!(existing.uuid, created.uuid);

    let mut run = client.run_job_schedule_now(&key, Overlap::Respect).await.expect("runs");
    let second = client.run_job_schedule_now(&key, Overlap::Respect).await;
    let Err(ClientError::Schedule(ScheduleError::Overlap { job, .. })) = second else { panic!("{second:?}") };
    assert_eq!(&job, run.id());
    client.pause_job_schedule(&key).await.expect("paused");
    let forced = client.run_job_schedule_now(&key, Overlap::Force).await.expect("runs while paused");
    client.resume_job_schedule(&key).await.expect("resumed");
    let trigger = Trigger::Interval(Interval::new(7200).expect("an interval"));
    let patch = SchedulePatch { trigger: Some(trigger), revision: Some(created.revision), ..SchedulePatch::default() };
    let updated = client.update_job_schedule(&key, &patch).await.expect("updated").schedule;
    assert_eq!(updated.next.map(|next| next.occurrence), Some(created.created_at.floor_second().plus_seconds(7200)));
    let stale = client.update_job_schedule(&key, &patch).await;
    assert!(matches!(stale, Err(ClientError::Schedule(ScheduleError::Stale { .. }))), "{stale:?}");
    client.delete_job_schedule(&key).await.expect("deleted");

    // Both runs end well, and their origin can be told.
    workers_of(outcome(&mut run).await);
    let mut forced = client.job(forced.id()).await.expect("there");
    workers_of(outcome(&mut forced).await);
    let gone = client.get_job_schedule(&key).await;
    assert!(matches!(gone, Err(ClientError::Schedule(ScheduleError::Unknown(_)))), "{gone:?}");
    let by_id = ScheduleKey::Id(created.uuid.clone());
    let deleted = client.get_job_schedule(&by_id).await.expect("there").view.schedule;
    assert_eq!((deleted.state, deleted.counters.total_runs), (ScheduleState::Disabled, 2));
    assert_eq!(jobs_of(&client, &by_id).await.len(), 2);
    assert_eq!(peer.executions().len(), 2);
    client.create_job_schedule(every(3600, "echo").name(name)).await.expect("the name is free");
    client.verify_task("dummy", "count", &Workers::All).await.expect("there is such a task");
    let unknown = client.verify_task("dummy", "nosuchtask", &Workers::All).await;
    assert!(matches!(unknown, Err(ClientError::UnknownTask { .. })), "{unknown:?}");
    client.shutdown().await;
}

async fn restarts_leave_neither_doubles_nor_holes(security: Security) {
    let Some((peer, client)) = fabric(security, 1).await else { return };
    let new = every(1, "count").workers(Workers::All).overlap_policy(OverlapPolicy::Allow).max_instances(20);
    let key = create(&client, new.coalesce(Coalesce::All)).await;
    let mut client = client;
    for round in 1..=10 {
        until_runs(&client, &key, round).await;
        client.shutdown().await;
        client = open(&peer).await;
    }
    until_runs(&client, &key, 12).await;
    client.pause_job_schedule(&key).await.expect("paused");
    let jobs = until_quiet(&client, &key).await;
    let seconds = grid(&jobs);
    let counted = counters(&client, &key).await;
    let walked = u64::try_from(seconds[seconds.len() - 1] - seconds[0]).expect("later") + 1;
    assert_eq!(walked, counted.total_runs + counted.overlap_skips, "{counted:?}");
    each_once(&peer, &schedule_id(&key), &jobs, 1);
    client.shutdown().await;
}

async fn kills_leave_neither_doubles_nor_holes(security: Security) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let key = create(&client, every(1, "count").overlap_policy(OverlapPolicy::Allow).max_instances(10)).await;
    let mut chance = Chance::new();
    for _ in 0..10 {
        let owner = program.spawn_owner();
        let moment = chance.moment(Duration::from_millis(2500)).await;
        println!("Killed after {moment:?}");
        owner.kill().await;
    }
    let owner = program.start_owner().await;
    until_runs(&client, &key, counters(&client, &key).await.total_runs + 3).await;
    let jobs = without_double_or_hole(&peer, &client, &key).await;
    assert!(jobs.iter().all(|detail| detail.results.len() == 2), "{jobs:?}");
    owner.stop().await;
    client.shutdown().await;
}

/// A schedule whose end has passed is COMPLETED, on the real clock too.
#[tokio::test]
async fn an_end_completes_it() {
    let Some((_peer, client)) = fabric(Security::Plain, 1).await else { return };
    let start: Timestamp = now().ceil_second().plus_seconds(1);
    let key = create(&client, every(1, "echo").start_at(start).end_at(start.plus_seconds(2))).await;
    let state = eventually("the end of the schedule", async || {
        let schedule = client.get_job_schedule(&key).await.expect("there").view.schedule;
        (schedule.state == ScheduleState::Completed).then_some(schedule)
    });
    let schedule = state.await;
    let counted = schedule.counters;
    assert_eq!(counted.total_runs + counted.coalesced_runs + counted.overlap_skips, 3, "{counted:?}");
    client.shutdown().await;
}
