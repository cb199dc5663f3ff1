//! What must hold of jobs and schedules whatever died meanwhile, looked at in the database and in the peer's own records.

use std::collections::{BTreeMap, BTreeSet};

use norfab_client::{
    Client, Job, JobDetail, JobFilter, JobId, JobStatus, ScheduleCounters, ScheduleId, ScheduleKey, WorkerResult,
    Workers,
};
use norfab_tests::{Peer, Tally};

use crate::common::PATIENCE;

/// The records of a peer, read once.
struct Records {
    began: Tally,
    ended: Tally,
    posts: BTreeMap<String, Vec<f64>>,
}

/// Waits until all of these jobs have ended, and looks at each: it ran once at the most on each worker, on one only if any
/// would do, nothing was sent before its time, and every result that a worker has is there. Gives the jobs.
pub(crate) async fn all_in_order(peer: &Peer, client: &Client, jobs: &[JobId]) -> Vec<JobDetail> {
    let mut details = Vec::new();
    for id in jobs {
        let mut handle = client.job(id).await.expect("there");
        match tokio::time::timeout(PATIENCE, handle.outcome()).await {
            Ok(outcome) => _ = outcome.expect("ends"),
            Err(_) => panic!("a job does not end: {}", story(peer, client, id).await),
        }
        details.push(client.get_job(id).await.expect("readable"));
    }
    let records = Records { began: peer.runs(), ended: peer.finished_runs(), posts: peer.posts() };
    for detail in &details {
        if let Some(complaint) = records.complaint(detail) {
            panic!("{complaint}: {}", story(peer, client, &detail.job.uuid).await);
        }
    }
    details
}

/// All that is known of a job, for a failure to tell: its row, its events, what the broker got and who executed it when.
async fn story(peer: &Peer, client: &Client, id: &JobId) -> String {
    let job = client.find_job(id).await.expect("there");
    let mut told = vec![format!("{job:#?}")];
    for event in client.job_events(id, 0, 1000).await.expect("readable") {
        told.push(format!("event {:?}", event.message));
    }
    let sent = peer.client_messages().into_iter().filter(|message| message.uuid == id.as_str());
    let sent: Vec<_> =
        sent.map(|message| (message.time, format!("{} to {}", message.command, message.target))).collect();
    for alike in sent.chunk_by(|(_, one), (_, other)| one == other) {
        // It may have been asked for very often.
        let (first, last) = (alike[0].0, alike[alike.len() - 1].0);
        told.push(format!("{first:.3} to {last:.3}: {}, {} times", alike[0].1, alike.len()));
    }
    let ran = peer.executions().into_iter().filter(|run| run.juuid == id.as_str());
    told.extend(ran.map(|run| format!("{:.3} executed by {}", run.time, run.worker)));
    told.join("\n")
}

/// Jobs by their status, for what a test expects and for what it says when it fails.
pub(crate) fn statuses(details: &[JobDetail]) -> BTreeMap<String, usize> {
    let mut statuses = BTreeMap::new();
    for detail in details {
        *statuses.entry(detail.job.status.to_string()).or_default() += 1;
    }
    statuses
}

/// Every one of these jobs is COMPLETED and no task failed.
#[track_caller]
pub(crate) fn all_completed(details: &[JobDetail]) {
    for detail in details {
        assert_eq!(detail.job.status, JobStatus::Completed, "{:?}, of {:?}", detail.job, statuses(details));
        for (worker, raw) in &detail.results {
            let result = WorkerResult::read(raw).expect("a result of NorFab's shape");
            assert!(!result.failed, "{} at {worker}: {result:?}", detail.job.uuid);
        }
    }
}

impl Records {
    /// What is wrong with a job that has ended.
    fn complaint(&self, detail: &JobDetail) -> Option<String> {
        let job = &detail.job;
        let id = job.uuid.as_str();
        let began = self.began.get(id).cloned().unwrap_or_default();
        if began.values().any(|times| *times != 1) {
            return Some(format!("a worker executed a job again: {began:?}"));
        }
        let ran: BTreeSet<&String> = began.keys().collect();
        let is_asked = match &job.workers_requested {
            Workers::All => true,
            Workers::Any => ran.len() <= 1,
            Workers::One(worker) => ran.iter().all(|ran| *ran == worker),
            Workers::List(list) => ran.iter().all(|ran| list.contains(ran)),
        };
        if !is_asked {
            return Some(format!("a job for {:?} was executed by {ran:?}", job.workers_requested));
        }
        let answered: BTreeSet<&String> = detail.results.keys().collect();
        if job.status == JobStatus::Completed && answered != ran {
            return Some(format!("a job was executed by {ran:?} and has the results of {answered:?}"));
        }
        let ended = self.ended.get(id).into_iter().flat_map(BTreeMap::keys);
        let missing: Vec<_> = ended.filter(|worker| !answered.contains(worker)).collect();
        if !missing.is_empty() {
            return Some(format!("a job lacks the results of {missing:?}"));
        }
        let due = job.scheduled_for.map_or(f64::MIN, |at| at.as_seconds_f64());
        let early = self.posts.get(id).into_iter().flatten().find(|time| **time < due);
        early.map(|time| format!("a job was sent before its time, at {time}"))
    }
}

/// All jobs of a schedule, the oldest first.
pub(crate) async fn jobs_of(client: &Client, key: &ScheduleKey) -> Vec<Job> {
    let filter = JobFilter { schedule: Some(schedule_id(key)), limit: 1000, ..JobFilter::default() };
    let mut jobs = client.list_jobs(&filter).await.expect("lists").jobs;
    jobs.reverse();
    jobs
}

pub(crate) async fn counters(client: &Client, key: &ScheduleKey) -> ScheduleCounters {
    client.get_job_schedule(key).await.expect("there").view.schedule.counters
}

pub(crate) fn schedule_id(key: &ScheduleKey) -> ScheduleId {
    let ScheduleKey::Id(id) = key else { panic!("no id: {key}") };
    id.clone()
}

/// The occurrences of jobs, which must be distinct and on the grid of whole seconds.
#[track_caller]
pub(crate) fn grid(jobs: &[Job]) -> Vec<i64> {
    let seconds: Vec<i64> =
        jobs.iter().filter_map(|job| job.scheduled_for).map(|at| at.as_micros() / 1_000_000).collect();
    assert!(seconds.is_sorted_by(|a, b| a < b), "{seconds:?}");
    seconds
}

/// Pauses a schedule of every second and looks at its jobs: each is the one of its own occurrence, all are in order and
/// COMPLETED, and every second up to the cursor is in exactly one of the counters. Gives the jobs.
pub(crate) async fn without_double_or_hole(peer: &Peer, client: &Client, key: &ScheduleKey) -> Vec<JobDetail> {
    client.pause_job_schedule(key).await.expect("paused");
    let schedule = client.get_job_schedule(key).await.expect("there").view.schedule;
    let jobs = jobs_of(client, key).await;
    grid(&jobs);
    let made = jobs.iter().filter(|job| job.status != JobStatus::Missed).count() as u64;
    let counted = schedule.counters;
    assert_eq!(made, counted.total_runs, "{counted:?}");
    let walked = schedule.next.expect("it has no end").occurrence.since(schedule.anchor_at).as_secs() - 1;
    let explained =
        counted.total_runs + counted.missed_runs + counted.overlap_skips + counted.coalesced_runs + counted.passed_over;
    assert_eq!(walked, explained, "{counted:?}");
    let ids: Vec<JobId> = jobs.iter().map(|job| job.uuid.clone()).collect();
    for (id, job) in ids.iter().zip(&jobs) {
        assert_eq!(*id, JobId::of_occurrence(&schedule.uuid, job.scheduled_for.expect("an occurrence")));
    }
    let details = all_in_order(peer, client, &ids).await;
    all_completed(&details);
    details
}
