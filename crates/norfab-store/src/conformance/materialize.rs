//! The pass over due schedules: what becomes of occurrences, in which order, and what is counted.

use std::time::Duration;

use norfab_model::{
    Coalesce, Context, Job, JobFilter, JobId, JobStatus, LastOutcome, Limits, Materialize, Materialized, NewSchedule,
    Origin, Overdue, Overlap, OverlapPolicy, Patch, Registry, Reply, ReplyKind, RetryPolicy, Schedule,
    ScheduleCounters, ScheduleError, ScheduleFilter, ScheduleId, SchedulePatch, ScheduleState, ScheduleStore, Scope,
    Store, Timestamp, Workers,
};

use super::Database;
use super::support::{
    MICRO, START, accepted, add, add_schedule, at, claim, detail, every, find, job, json, limits, messages, pass,
    pass_with, result, schedule, stored, tell,
};

fn allow(seconds: u64, instances: u64) -> NewSchedule {
    every(seconds).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(instances)
}

fn times(jobs: &[Job]) -> Vec<Option<Timestamp>> {
    jobs.iter().map(|job| job.scheduled_for).collect()
}

fn instants(seconds: &[i64]) -> Vec<Option<Timestamp>> {
    seconds.iter().map(|second| Some(at(*second))).collect()
}

/// Created, coalesced, missed, skipped, passed over.
fn counts(outcome: &LastOutcome) -> [u64; 5] {
    [outcome.created, outcome.coalesced, outcome.missed, outcome.skipped, outcome.passed_over]
}

/// All jobs of a schedule, the oldest first.
async fn jobs_of(store: &impl Store, id: &ScheduleId) -> Vec<Job> {
    let filter = JobFilter { schedule: Some(id.clone()), limit: 1000, ..JobFilter::default() };
    let mut jobs = store.job_list(&filter).await.expect("listed").jobs;
    jobs.reverse();
    jobs
}

pub(super) async fn an_occurrence_becomes_a_job_at_its_due_time(database: &impl Database) {
    let store = database.open().await;
    let new = every(60).grace(20).timeout(30).args(json("[1]")).kwargs(json(r#"{"k":"v"}"#));
    let before = add_schedule(&store, START, new).await;
    let early = at(60).saturating_sub(MICRO);
    let nothing_before = |second| Materialized { next_due_at: Some(at(second)), ..Materialized::default() };
    assert_eq!(pass(&store, early).await, nothing_before(60));
    let outcome = pass(&store, at(60)).await;
    let job = &outcome.created[0];
    assert_eq!(job.uuid, JobId::of_occurrence(&before.uuid, at(60)));
    assert_eq!(
        (job.status, job.origin, job.schedule_id.as_ref()),
        (JobStatus::New, Origin::Occurrence, Some(&before.uuid))
    );
    assert_eq!((job.scheduled_for, job.start_deadline), (Some(at(60)), Some(at(80))));
    assert_eq!((job.deadline, job.released_at, job.created_at), (Some(at(90)), Some(at(60)), Some(at(60))));
    let found = detail(&store, &job.uuid).await;
    assert_eq!((&found.job, found.args.as_str(), found.kwargs.as_str()), (job, "[1]", r#"{"k":"v"}"#));
    assert_eq!((outcome.created.len(), outcome.missed.len(), outcome.more), (1, 0, false));
    assert_eq!(outcome.next_due_at, Some(at(120)));
    assert_eq!(counts(&outcome.outcomes[0].outcome), [1, 0, 0, 0, 0]);
    let after = schedule(&store, &before.uuid).await;
    assert_eq!(after.last_outcome.as_ref(), Some(&outcome.outcomes[0].outcome));
    assert_eq!((after.last_run_at, after.next), (Some(at(60)), before.first_after(at(60))));
    assert_eq!((after.revision, after.updated_at), (before.revision, before.updated_at), "no caller changed it");
    assert_eq!(store.schedule_next_due().await.expect("answers"), Some(at(120)));
    assert_eq!(pass(&store, at(60)).await, nothing_before(120), "once");
}

/// One line: six occurrences are due (60 s to 360 s after the start), and a job may be unfinished.
async fn check(
    store: &impl Database,
    (new, busy, budget): (NewSchedule, bool, u32),
    created: &[i64],
    expected: [u64; 5],
    next: i64,
) {
    let store = store.open().await;
    let id = add_schedule(&store, START, new).await.uuid;
    if busy {
        let run = store.schedule_run_now(START, &id, Overlap::Force, &limits()).await;
        run.expect("it is run");
    }
    let outcome = pass_with(&store, at(390), budget, &[]).await;
    assert_eq!(times(&outcome.created), instants(created));
    assert_eq!(counts(&outcome.outcomes[0].outcome), expected);
    assert_eq!(outcome.budget_used, u32::try_from(created.len().saturating_sub(1)).expect("few"));
    let after = schedule(&store, &id).await;
    assert_eq!(after.next.map(|next| next.occurrence), Some(at(next)));
    let counters = ScheduleCounters {
        total_runs: expected[0] + u64::from(busy),
        coalesced_runs: expected[1],
        missed_runs: expected[2],
        overlap_skips: expected[3],
        passed_over: expected[4],
        failed_runs: 0,
    };
    assert_eq!(after.counters, counters);
    // The others must not find it due.
    store.schedule_delete(at(390), &id.clone().into()).await.expect("deleted");
}

pub(super) async fn policies_decide_what_becomes_of_a_heap(database: &impl Database) {
    let all = |instances| allow(60, instances);
    let earliest = || every(60).coalesce(Coalesce::Earliest);
    check(database, (every(60), false, 100), &[360], [1, 5, 0, 0, 0], 420).await;
    check(database, (every(60).grace(20), false, 100), &[], [0, 5, 1, 0, 0], 420).await;
    check(database, (every(60), true, 100), &[], [0, 5, 0, 1, 0], 420).await;
    check(database, (earliest(), false, 100), &[60], [1, 5, 0, 0, 0], 420).await;
    check(database, (earliest().grace(60), false, 100), &[], [0, 5, 1, 0, 0], 420).await;
    check(database, (every(60).coalesce(Coalesce::All), false, 100), &[60], [1, 0, 0, 5, 0], 420).await;
    check(database, (all(4), true, 100), &[60, 120, 180], [3, 0, 0, 3, 0], 420).await;
    check(database, (all(9).grace(120), false, 100), &[300, 360], [2, 0, 4, 0, 0], 420).await;
    check(database, (all(9), false, 2), &[60, 120, 180], [3, 0, 0, 0, 0], 240).await;
    check(database, (all(9).grace(120), false, 0), &[300], [1, 0, 4, 0, 0], 360).await;
}

pub(super) async fn one_missed_job_stands_for_all(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, allow(60, 9).grace(120)).await.uuid;
    let outcome = pass(&store, at(390)).await;
    let missed = &outcome.missed[0];
    assert_eq!((outcome.missed.len(), missed.status, missed.scheduled_for), (1, JobStatus::Missed, Some(at(240))));
    assert_eq!((missed.deadline, missed.released_at, missed.finished_at), (None, None, Some(at(390))));
    assert_eq!(find(&store, &missed.uuid).await, *missed);
    let told = messages(&store, &missed.uuid).await;
    assert_eq!(
        told,
        [format!("missed 4 occurrences from {} to {}: they could not start within their grace", at(60), at(240))]
    );
    assert_eq!(times(&jobs_of(&store, &id).await), instants(&[240, 300, 360]), "in the order of their time");
    let view = store.schedule_find(&id.into()).await.expect("found").expect("it is there");
    assert_eq!((view.active_jobs, view.schedule.counters.failed_runs), (2, 0), "a missed job is no run");
}

pub(super) async fn what_a_pass_missed_is_listed_before_what_it_runs(database: &impl Database) {
    let store = database.open().await;
    for new in [every(40), every(50).grace(1), every(60), every(70).grace(1)] {
        add_schedule(&store, START, new).await;
    }
    // The passes take the schedules in the order 40, 50, 60, 70.
    let outcome = pass(&store, at(79)).await;
    assert_eq!((times(&outcome.created), times(&outcome.missed)), (instants(&[40, 60]), instants(&[50, 70])));
    let filter = JobFilter { limit: 10, ..JobFilter::default() };
    let mut jobs = store.job_list(&filter).await.expect("listed").jobs;
    jobs.reverse();
    assert_eq!(times(&jobs), instants(&[50, 70, 40, 60]));
}

pub(super) async fn a_week_that_was_slept_over_runs_late_or_is_missed(database: &impl Database) {
    const WEEK: i64 = 7 * 86_400;
    let store = database.open().await;
    let patient = add_schedule(&store, START, every(WEEK.unsigned_abs())).await.uuid;
    let hasty = add_schedule(&store, START, every(WEEK.unsigned_abs()).grace(3600)).await.uuid;
    let morning = WEEK + 9 * 3600;
    let outcome = pass(&store, at(morning)).await;
    // It runs once, and the row tells how late.
    let late = &outcome.created[0];
    assert_eq!((outcome.created.len(), late.schedule_id.as_ref()), (1, Some(&patient)));
    assert_eq!((late.scheduled_for, late.released_at), (Some(at(WEEK)), Some(at(morning))));
    // It is there to be seen, with its schedule and its time.
    let missed = JobFilter { statuses: vec![JobStatus::Missed], ..JobFilter::default() };
    let missed = store.job_list(&missed).await.expect("listed").jobs;
    assert_eq!((missed.len(), missed[0].schedule_id.as_ref()), (1, Some(&hasty)));
    assert_eq!((missed[0].scheduled_for, missed[0].start_deadline), (Some(at(WEEK)), Some(at(WEEK + 3600))));
    assert_eq!(schedule(&store, &hasty).await.counters.missed_runs, 1);
    for id in [&patient, &hasty] {
        assert_eq!(schedule(&store, id).await.next.map(|next| next.occurrence), Some(at(2 * WEEK)));
    }
}

pub(super) async fn a_schedule_ends_with_its_last_occurrence(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).end_at(at(120))).await.uuid;
    assert_eq!(times(&pass(&store, at(60)).await.created), instants(&[60]));
    store.job_expire_due(at(119 + 600), &Scope::All, Overdue::All).await.expect("it ends");
    assert_eq!(times(&pass(&store, at(1000)).await.created), instants(&[120]));
    let ended = schedule(&store, &id).await;
    assert_eq!((ended.state, ended.next), (ScheduleState::Completed, None));
    let listed = store.schedule_list(&ScheduleFilter::default()).await.expect("listed").schedules;
    assert_eq!(listed[0].schedule, ended, "it is listed still");
    assert_eq!(store.schedule_next_due().await.expect("answers"), None);
    let later = SchedulePatch { end_at: Patch::Set(at(2000)), ..SchedulePatch::default() };
    let revived = store.schedule_update(at(1001), &id, &later, &limits()).await.expect("updated").schedule;
    assert_eq!((revived.state, revived.next.map(|next| next.due)), (ScheduleState::Active, Some(at(1020))));
    assert_eq!(schedule(&store, &id).await, revived);
}

pub(super) async fn the_earliest_are_looked_at_first_and_each_once(database: &impl Database) {
    let store = database.open().await;
    let mut by_due = Vec::new();
    for seconds in [50, 30, 40, 20, 10] {
        by_due.push((seconds, add_schedule(&store, START, every(seconds)).await.uuid));
    }
    by_due.sort_unstable_by_key(|(seconds, _)| *seconds);
    let by_due: Vec<ScheduleId> = by_due.into_iter().map(|(_, id)| id).collect();
    let (mut looked_at, mut rounds) = (Vec::new(), 0);
    loop {
        let request =
            Materialize { now: at(50), limits: &limits(), budget_left: 100, batch: 2, seen: &[], claim: None };
        let outcome = store.schedule_materialize_due(request).await.expect("materialised");
        looked_at.extend(outcome.outcomes.iter().map(|outcome| outcome.schedule.clone()));
        rounds += 1;
        if !outcome.more {
            break;
        }
    }
    assert_eq!((looked_at, rounds), (by_due, 3));
}

pub(super) async fn what_was_seen_is_left_out(database: &impl Database) {
    let store = database.open().await;
    let mut ids = Vec::new();
    // Few and many, beside a few and a full batch.
    for (round, (count, batch)) in [(1, 10), (9, 3), (7, 100), (2, 100), (30, 100)].into_iter().enumerate() {
        for _ in 0..count {
            ids.push(add_schedule(&store, START, allow(60, 100)).await.uuid);
        }
        let seen: Vec<ScheduleId> = ids.iter().step_by(3).cloned().collect();
        let now = at(60 * (round as i64 + 1));
        let limits = limits();
        let request = Materialize { now, limits: &limits, budget_left: 1000, batch, seen: &seen, claim: None };
        let mut looked_at = Vec::new();
        loop {
            let outcome = store.schedule_materialize_due(request).await.expect("materialised");
            assert!(outcome.outcomes.len() <= batch as usize);
            assert_eq!(outcome.next_due_at, store.schedule_next_due().await.expect("answers"));
            looked_at.extend(outcome.outcomes.into_iter().map(|outcome| outcome.schedule));
            if !outcome.more {
                break;
            }
        }
        let mut expected: Vec<_> = ids.iter().filter(|id| !seen.contains(id)).collect();
        expected.sort();
        looked_at.sort();
        assert_eq!(looked_at.iter().collect::<Vec<_>>(), expected, "{} schedules", ids.len());
        pass(&store, now).await;
    }
}

pub(super) async fn a_long_backlog_starves_no_other(database: &impl Database) {
    let store = database.open().await;
    let long = add_schedule(&store, START, allow(1, 1000)).await.uuid;
    let short = add_schedule(&store, START, every(100)).await.uuid;
    let first = pass_with(&store, at(200), 10, &[]).await;
    assert_eq!((first.created.len(), first.budget_used), (12, 10), "the first of each is free");
    assert_eq!(first.still_due, std::slice::from_ref(&long));
    assert!(first.created.iter().any(|job| job.schedule_id.as_ref() == Some(&short)));
    let rest = pass_with(&store, at(200), 0, &first.still_due).await;
    assert_eq!((rest.created, rest.more), (vec![], false), "it was seen in this pass");
    assert_eq!(store.schedule_next_due().await.expect("answers"), Some(at(12)));
    let mut made = first.created.len();
    while made < 201 {
        let pass = pass_with(&store, at(200), 10, &[]).await;
        assert!((1..=11).contains(&pass.created.len()));
        made += pass.created.len();
    }
    let occurrences: Vec<i64> = (1..=200).collect();
    assert_eq!(times(&jobs_of(&store, &long).await), instants(&occurrences));
}

pub(super) async fn a_clock_that_goes_back_runs_nothing_twice(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, allow(60, 100)).await.uuid;
    assert_eq!(pass(&store, at(600)).await.created.len(), 10);
    let moved = store.schedule_realign(at(100)).await.expect("realigned");
    assert_eq!((moved.len(), &moved[0].schedule), (1, &id));
    assert_eq!((moved[0].from.occurrence, moved[0].to.occurrence), (at(660), at(120)));
    let realigned = schedule(&store, &id).await;
    assert_eq!(realigned.next.map(|next| next.due), Some(at(120)));
    assert_eq!(store.schedule_realign(at(100)).await.expect("realigned"), [], "it stands right");
    assert_eq!(store.schedule_next_due().await.expect("answers"), Some(at(120)));
    let again = pass(&store, at(720)).await;
    assert_eq!(times(&again.created), instants(&[660, 720]));
    assert_eq!(counts(&again.outcomes[0].outcome), [2, 0, 0, 0, 9]);
    let occurrences: Vec<i64> = (1..=12).map(|minute| minute * 60).collect();
    assert_eq!(times(&jobs_of(&store, &id).await), instants(&occurrences));
    let counters = schedule(&store, &id).await.counters;
    assert_eq!((counters.total_runs, counters.passed_over), (12, 9));
}

pub(super) async fn a_clock_that_goes_back_and_forward_runs_nothing_that_was_decided(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60)).await.uuid;
    // One runs, nine are coalesced.
    assert_eq!(times(&pass(&store, at(600)).await.created), instants(&[600]));
    store.job_expire_due(at(1200), &Scope::All, Overdue::All).await.expect("it ends");
    assert_eq!(schedule(&store, &id).await.decided_until, at(600));
    let year = 365 * 86_400;
    assert_eq!(store.schedule_realign(at(600 - year)).await.expect("realigned").len(), 1);
    assert_eq!(schedule(&store, &id).await.decided_until, at(600), "it never goes back");
    let again = pass(&store, at(650)).await;
    assert_eq!((again.created, counts(&again.outcomes[0].outcome)), (vec![], [0, 0, 0, 0, 10]));
    assert_eq!(times(&pass(&store, at(660)).await.created), instants(&[660]));
    assert_eq!(times(&jobs_of(&store, &id).await), instants(&[600, 660]));
    let counters = schedule(&store, &id).await.counters;
    assert_eq!((counters.total_runs, counters.coalesced_runs, counters.passed_over), (2, 9, 10));
}

pub(super) async fn what_stands_right_is_not_realigned(database: &impl Database) {
    let store = database.open().await;
    let mut before = Vec::new();
    for new in [every(60), every(60).start_at(at(5000)), every(3600).jitter(600), every(60).paused()] {
        before.push(add_schedule(&store, START, new).await);
    }
    assert_eq!(store.schedule_realign(at(1)).await.expect("realigned"), []);
    assert_eq!(store.schedule_realign(at(-100_000)).await.expect("realigned").len(), 2, "but for its start_at");
    for schedule_before in before.into_iter().filter(|one| one.start_at.is_some() || one.state == ScheduleState::Paused)
    {
        assert_eq!(schedule(&store, &schedule_before.uuid).await, schedule_before);
    }
}

pub(super) async fn a_missed_occurrence_is_written_once(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).grace(1)).await.uuid;
    assert_eq!(pass(&store, at(110)).await.missed.len(), 1);
    store.schedule_realign(at(-30)).await.expect("realigned");
    let again = pass(&store, at(110)).await;
    assert_eq!((again.missed.len(), counts(&again.outcomes[0].outcome)), (0, [0, 0, 0, 0, 1]));
    let jobs = jobs_of(&store, &id).await;
    assert_eq!((jobs.len(), messages(&store, &jobs[0].uuid).await.len()), (1, 1));
}

pub(super) async fn a_forbidden_task_switches_only_its_schedule_off(database: &impl Database) {
    let store = database.open().await;
    let mut ids = Vec::new();
    for task in ["echo", "reboot", "echo"] {
        let new = NewSchedule { task: task.to_owned(), ..every(60) };
        ids.push(add_schedule(&store, START, new.name(format!("{task}-{}", ids.len()))).await.uuid);
    }
    let limits = Limits { forbidden_tasks: vec!["dummy:reboot".to_owned()], ..limits() };
    let request = Materialize { now: at(60), limits: &limits, budget_left: 100, batch: 1000, seen: &[], claim: None };
    let outcome = store.schedule_materialize_due(request).await.expect("materialised");
    assert_eq!(outcome.created.len(), 2);
    assert_eq!((outcome.quarantined.len(), outcome.quarantined[0].uuid.as_str()), (1, ids[1].as_str()));
    let off = schedule(&store, &ids[1]).await;
    assert_eq!((off.state, off.last_error.as_ref()), (ScheduleState::Disabled, Some(&outcome.quarantined[0].reason)));
    assert!(outcome.quarantined[0].reason.contains("forbidden"), "{:?}", off.last_error);
    assert_eq!((outcome.quarantined[0].name.as_deref(), jobs_of(&store, &ids[1]).await), (Some("reboot-1"), vec![]));
    let refused = store.schedule_resume(at(61), &ids[1], &limits).await;
    assert!(matches!(refused, Err(ScheduleError::Invalid(_))));
    let resumed = store.schedule_resume(at(61), &ids[1], &Limits::default()).await.expect("it is allowed");
    assert_eq!((resumed.schedule.state, resumed.schedule.last_error), (ScheduleState::Active, None));
}

/// Makes a job of the schedule that is claimed.
async fn running(store: &(impl Store + ScheduleStore), schedule: &Schedule, now: Timestamp) -> JobId {
    let run = store.schedule_run_now(now, &schedule.uuid, Overlap::Force, &limits()).await;
    let uuid = run.expect("it is run").job.uuid;
    claim(store, now, &uuid).await;
    uuid
}

pub(super) async fn failed_runs_are_counted_as_they_end(database: &impl Database) {
    let store = database.open().await;
    let added = add_schedule(&store, START, every(3600).timeout(60)).await;
    let failed = async || schedule(&store, &added.uuid).await.counters.failed_runs;
    let refused = running(&store, &added, at(1)).await;
    let hasty = RetryPolicy { give_up_after: Duration::ZERO };
    let reply = Reply::new(refused.clone(), ReplyKind::Refused { errors: vec![] });
    store.job_apply(at(1), hasty, vec![reply]).await.expect("the reply is applied");
    assert_eq!((find(&store, &refused).await.status, failed().await), (JobStatus::Failed, 1));
    let well = running(&store, &added, at(2)).await;
    tell(&store, at(2), &well, vec![stored("w1"), result("w1", r#"{"failed":false}"#)]).await;
    assert_eq!(failed().await, 1);
    let badly = running(&store, &added, at(3)).await;
    tell(&store, at(3), &badly, vec![result("w1", r#"{"failed":true,"errors":["no"]}"#)]).await;
    assert_eq!((find(&store, &badly).await.status, failed().await), (JobStatus::Completed, 2));
    tell(&store, at(4), &badly, vec![result("w1", r#"{"failed":true}"#)]).await;
    assert_eq!(failed().await, 2, "a late reply changes nothing");
    running(&store, &added, at(5)).await;
    running(&store, &added, at(5)).await;
    assert_eq!(store.job_expire_due(at(65), &Scope::All, Overdue::All).await.expect("they expire").len(), 2);
    assert_eq!(failed().await, 4);
    let run = store.schedule_run_now(at(70), &added.uuid, Overlap::Force, &limits()).await;
    store.job_give_up(at(71), &[run.expect("it is run").job.uuid], "no link").await.expect("given up");
    assert_eq!(failed().await, 5);
    assert_eq!(schedule(&store, &added.uuid).await.counters.total_runs, 6);
}

/// The results of all have come before it is known who all are.
pub(super) async fn a_failed_run_is_counted_whatever_ends_it(database: &impl Database) {
    let store = database.open().await;
    let added = add_schedule(&store, START, every(3600).workers(Workers::All)).await;
    let job = running(&store, &added, at(1)).await;
    tell(&store, at(2), &job, vec![result("w1", r#"{"failed":true}"#)]).await;
    assert!(!find(&store, &job).await.status.is_terminal());
    let context = Context::Get { target: Workers::All, registry: Registry::Settled };
    let known = Reply { context, ..Reply::new(job.clone(), accepted(&["w1"])) };
    store.job_apply(at(3), RetryPolicy::default(), vec![known]).await.expect("the reply is applied");
    assert_eq!(find(&store, &job).await.status, JobStatus::Completed);
    assert_eq!(schedule(&store, &added.uuid).await.counters.failed_runs, 1);
}

pub(super) async fn only_schedules_of_jobs_count_them(database: &impl Database) {
    let store = database.open().await;
    let added = add_schedule(&store, START, every(3600)).await;
    let direct = add(&store, START, job()).await.uuid;
    claim(&store, START, &direct).await;
    tell(&store, at(1), &direct, vec![result("w1", r#"{"failed":true}"#)]).await;
    assert_eq!(schedule(&store, &added.uuid).await, added);
}

pub(super) async fn a_year_of_missed_seconds_is_one_job(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(1)).await.uuid;
    let year = 365 * 86_400;
    let outcome = pass(&store, at(year)).await;
    assert_eq!(times(&outcome.created), instants(&[year]));
    assert_eq!(schedule(&store, &id).await.counters.coalesced_runs, year.unsigned_abs() - 1);
}

pub(super) async fn two_handles_make_each_occurrence_once(database: &impl Database) {
    let (ours, theirs) = (database.open().await, database.open().await);
    let id = add_schedule(&ours, START, allow(1, 1000)).await.uuid;
    for second in 1..=20 {
        let (one, other) = if second % 2 == 0 { (&ours, &theirs) } else { (&theirs, &ours) };
        assert_eq!(times(&pass(one, at(second)).await.created), instants(&[second]));
        let nothing = Materialized { next_due_at: Some(at(second + 1)), ..Materialized::default() };
        assert_eq!(pass(other, at(second)).await, nothing);
    }
    assert_eq!(schedule(&theirs, &id).await.counters.total_runs, 20);
}

pub(super) async fn a_worker_that_dies_blocks_no_schedule_for_ever(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).timeout(90)).await.uuid;
    let lost = pass(&store, at(60)).await.created.remove(0).uuid;
    claim(&store, at(60), &lost).await;
    tell(&store, at(61), &lost, vec![stored("w1")]).await;
    assert_eq!(counts(&pass(&store, at(120)).await.outcomes[0].outcome), [0, 0, 0, 1, 0]);
    store.job_expire_due(at(150), &Scope::All, Overdue::All).await.expect("it expires");
    assert_eq!(times(&pass(&store, at(180)).await.created), instants(&[180]));
    let counters = schedule(&store, &id).await.counters;
    assert_eq!((counters.total_runs, counters.failed_runs, counters.overlap_skips), (2, 1, 1));
}
