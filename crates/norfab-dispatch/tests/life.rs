//! The life of a job under the dispatcher, in both stores, without waiting for anything.

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Bench, T0, accepted, after, echo, result, result_ready, stored};
use norfab_dispatch::{Config, LinkState, ManualClock};
use norfab_model::{
    Clock, Inbound, InputRequest, Interval, Job, JobId, JobStatus, Json, Limits, NewSchedule, ReplyKind, Request,
    Schedule, ScheduleId, ScheduleKey, ScheduleState, ScheduleStore, Scope, Store, Timestamp, Workers,
};
use serde_json::Value;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

on_both_stores!(
    an_immediate_job_runs_to_its_result,
    a_delayed_job_is_sent_at_its_time_once,
    the_deadline_starts_at_release,
    lateness_is_judged_by_the_start_deadline_alone,
    nothing_is_released_while_the_link_is_down,
    a_lost_event_costs_one_poll_interval,
    an_overdue_job_ends_stale,
    a_restart_sends_again_what_was_being_sent,
    a_new_link_asks_for_everything_in_flight,
    the_window_bounds_what_is_under_way,
    a_window_is_filled_by_quarters,
    what_comes_while_much_is_under_way_is_stored_together,
    a_guest_serves_its_own_jobs_only,
    cancelled_in_time_is_never_sent,
    strange_messages_are_counted,
    a_stop_stores_what_has_come,
    a_full_queue_takes_nothing_from_a_job,
    an_ended_transport_is_a_link_that_is_down,
    an_answer_left_in_the_store_is_sent,
    each_occurrence_is_a_job_of_its_own,
    an_outage_is_decided_once_when_the_link_is_up,
    a_guest_makes_no_occurrences,
    a_clock_that_was_ahead_causes_neither_doubles_nor_silence,
    an_unfinished_job_skips_and_its_end_frees,
    what_is_forbidden_by_now_is_switched_off,
);

async fn an_immediate_job_runs_to_its_result<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo()).await;
    let post = bench.next_post().await;
    assert_eq!((&post.job, &post.target), (&id, &Workers::List(vec!["w1".into()])));
    assert_eq!(bench.job(&id).await.status, JobStatus::Submitting);

    bench.reply(&id, accepted());
    bench.told(&id, JobStatus::Dispatched).await;
    bench.reply(&id, stored());
    bench.told(&id, JobStatus::Started).await;
    bench.reply(&id, result_ready());
    assert_eq!(bench.next_get().await.target, Workers::List(vec!["w1".into()]));
    bench.reply(&id, result());
    let job = bench.told(&id, JobStatus::Completed).await;
    assert_eq!((job.posts_sent, job.finished_at), (1, Some(T0)));
    assert_eq!(bench.store.job_detail(&id).await.expect("readable").expect("there").results.len(), 1);
    bench.silent().await;
}

async fn a_delayed_job_is_sent_at_its_time_once<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().at(after(60))).await;
    bench.silent().await;
    bench.clock.advance_to(Timestamp::from_micros(after(60).as_micros() - 1));
    bench.silent().await;
    assert_eq!(bench.job(&id).await.status, JobStatus::Scheduled);
    bench.clock.advance_to(after(60));
    assert_eq!(bench.next_post().await.job, id);
    bench.silent().await;
}

async fn the_deadline_starts_at_release<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().timeout(30).at(after(60))).await;
    bench.settle().await;
    assert_eq!(bench.job(&id).await.deadline, None);
    bench.clock.advance_to(after(100));
    bench.next_post().await;
    let job = bench.job(&id).await;
    assert_eq!((job.deadline, job.released_at), (Some(after(130)), Some(after(100))));
}

async fn lateness_is_judged_by_the_start_deadline_alone<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let patient = bench.add(echo().timeout(1).at(after(60))).await;
    let on_the_edge = bench.add(echo().at(after(70)).grace(30)).await;
    let late = bench.add(echo().at(after(60)).grace(30)).await;
    bench.settle().await;
    bench.clock.advance_to(after(100));
    let posted = [bench.next_post().await.job, bench.next_post().await.job];
    assert!(posted.contains(&patient) && posted.contains(&on_the_edge));
    let missed = bench.job(&late).await;
    assert_eq!((missed.status, missed.posts_sent, missed.deadline), (JobStatus::Missed, 0, None));
    bench.silent().await;
}

async fn nothing_is_released_while_the_link_is_down<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.link_lost().await;
    let patient = bench.add(echo().at(after(60))).await;
    let hasty = bench.add(echo().at(after(60)).grace(30)).await;
    let immediate = bench.add(echo()).await;
    bench.settle().await;
    bench.clock.advance_to(after(91));
    bench.told(&hasty, JobStatus::Missed).await;
    assert_eq!(bench.job(&patient).await.status, JobStatus::Scheduled);
    assert_eq!(bench.job(&immediate).await.status, JobStatus::New);
    bench.silent().await;
    bench.link_up().await;
    let posted = [bench.next_post().await.job, bench.next_post().await.job];
    assert!(posted.contains(&patient) && posted.contains(&immediate));
    bench.silent().await;
}

/// Adds a job and brings it to STARTED.
async fn started<S: Store + ScheduleStore>(bench: &mut Bench<S>, timeout: u64) -> JobId {
    let id = bench.add(echo().timeout(timeout)).await;
    bench.next_post().await;
    bench.reply(&id, accepted());
    bench.reply(&id, stored());
    bench.told(&id, JobStatus::Started).await;
    id
}

async fn a_lost_event_costs_one_poll_interval<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 600).await;
    // In small steps: a leap of the clock would have it asked for at once.
    bench.clock.advance_to(after(5));
    bench.silent().await;
    bench.clock.advance_to(Timestamp::from_micros(after(10).as_micros() - 1));
    bench.silent().await;
    bench.clock.advance_to(after(10));
    assert_eq!(bench.next_get().await.job, id);
    bench.silent().await;
    bench.clock.advance_to(after(20));
    assert_eq!(bench.next_get().await.job, id);
}

async fn an_overdue_job_ends_stale<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 5).await;
    bench.clock.advance_to(after(5));
    let job = bench.told(&id, JobStatus::Stale).await;
    assert!(job.errors[0].contains("5 s after the release"), "{:?}", job.errors);
    bench.reply(&id, result());
    bench.silent().await;
    assert_eq!(bench.job(&id).await.status, JobStatus::Stale);
}

async fn a_restart_sends_again_what_was_being_sent<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let in_flight = started(&mut bench, 600).await;
    let unanswered = bench.add(echo()).await;
    bench.next_post().await;
    let overdue = bench.add(echo().at(after(3600))).await;
    bench.settle().await;
    let store = bench.stop().await;

    let mut bench = Bench::start(store, ManualClock::at(after(60)), Config::default());
    bench.silent().await;
    bench.link_up().await;
    let post = bench.next_post().await;
    assert_eq!(post.job, unanswered);
    assert_eq!(bench.job(&unanswered).await.posts_sent, 2);
    assert_eq!(bench.next_get().await.job, in_flight);
    bench.silent().await;
    assert_eq!(bench.job(&overdue).await.status, JobStatus::Scheduled);
}

async fn a_new_link_asks_for_everything_in_flight<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 600).await;
    bench.link_lost().await;
    bench.silent().await;
    bench.link_up().await;
    assert_eq!(bench.next_get().await.job, id);
    bench.silent().await;
}

async fn the_window_bounds_what_is_under_way<S: Store + ScheduleStore>(store: Arc<S>) {
    let config = Config { window: 2, ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(T0), config);
    bench.link_up().await;
    for _ in 0..3 {
        bench.add(echo()).await;
    }
    let first = bench.next_post().await.job;
    bench.next_post().await;
    bench.silent().await;
    bench.reply(&first, accepted());
    bench.next_post().await;
    bench.silent().await;
}

async fn a_window_is_filled_by_quarters<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::start(store, ManualClock::at(T0), Config { window: 8, ..Config::default() });
    for _ in 0..10 {
        bench.add(echo()).await;
    }
    bench.link_up().await;
    let mut sent = Vec::new();
    for _ in 0..8 {
        sent.push(bench.next_post().await.job);
    }
    bench.reply(&sent[0], accepted());
    bench.silent().await;
    bench.reply(&sent[1], accepted());
    bench.next_post().await;
    bench.next_post().await;
    bench.silent().await;
}

async fn what_comes_while_much_is_under_way_is_stored_together<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let mut jobs = Vec::new();
    for _ in 0..40 {
        jobs.push(bench.add(echo()).await);
    }
    for _ in &jobs {
        bench.next_post().await;
    }
    for job in &jobs {
        bench.reply(job, accepted());
    }
    bench.settle().await;
    // What came since waits; the result is asked for all the same.
    let last = &jobs[39];
    bench.reply(last, result_ready());
    assert_eq!(bench.next_get().await.job, *last);
    bench.settle().await;
    assert!(bench.store.event_list(last, 0, 10).await.expect("readable").is_empty());
    bench.clock.advance(Duration::from_millis(10));
    bench.told(last, JobStatus::Started).await;
    assert_eq!(bench.store.event_list(last, 0, 10).await.expect("readable").len(), 1);
    bench.settle().await;
    // What is large waits for no more.
    let large = format!("{{\"result\":\"{}\",\"failed\":false}}", "x".repeat(4 << 20));
    let large = Json::parse(&large).expect("valid");
    bench.reply(last, ReplyKind::Result { worker: "w1".into(), result: large });
    bench.told(last, JobStatus::Completed).await;
}

async fn a_guest_serves_its_own_jobs_only<S: Store + ScheduleStore>(store: Arc<S>) {
    let config = Config { scope: Scope::Jobs(Vec::new()), ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(T0), config);
    bench.link_up().await;
    bench.add(echo()).await;
    let own = bench.add(echo()).await;
    bench.silent().await;
    bench.control.serve(own.clone());
    assert_eq!(bench.next_post().await.job, own);
    bench.silent().await;
}

async fn cancelled_in_time_is_never_sent<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().at(after(60))).await;
    let moved = bench.add(echo().at(after(60))).await;
    bench.store.job_cancel(T0, &id).await.expect("cancelled");
    bench.store.job_reschedule(T0, &moved, after(120)).await.expect("moved");
    bench.control.wake();
    bench.clock.advance_to(after(60));
    bench.silent().await;
    bench.clock.advance_to(after(120));
    assert_eq!(bench.next_post().await.job, moved);
    bench.silent().await;
    assert_eq!(bench.job(&id).await.status, JobStatus::Cancelled);
}

async fn strange_messages_are_counted<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.say(Inbound::Stray("garbage".into()));
    bench.reply(&JobId::generate(T0), stored());
    let id = started(&mut bench, 600).await;
    bench.reply(&id, stored());
    bench.silent().await;
    let health = bench.control.health().borrow().clone();
    assert_eq!((health.strays, health.ignored), (2, 1));
}

async fn a_stop_stores_what_has_come<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 600).await;
    // The order to stop goes before what has come.
    bench.reply(&id, result());
    let store = bench.stop().await;
    assert_eq!(store.job_find(&id).await.expect("readable").expect("there").status, JobStatus::Completed);
}

async fn a_full_queue_takes_nothing_from_a_job<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.set_full(true);
    let (first, second) = (bench.add(echo()).await, bench.add(echo()).await);
    bench.silent().await;
    for id in [&first, &second] {
        let job = bench.job(id).await;
        assert_eq!((job.status, job.posts_sent), (JobStatus::New, 0));
    }
    bench.set_full(false);
    bench.clock.advance(Duration::from_millis(100));
    assert_eq!([bench.next_post().await.job, bench.next_post().await.job], [first, second]);
    bench.silent().await;
}

async fn an_ended_transport_is_a_link_that_is_down<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.end_transport();
    let mut health = bench.control.health();
    health.wait_for(|health| matches!(health.link, LinkState::Down { .. })).await.expect("the dispatcher runs");
    let id = bench.add(echo()).await;
    let store = bench.stop().await;
    assert_eq!(store.job_find(&id).await.expect("readable").expect("there").status, JobStatus::New);
}

async fn an_answer_left_in_the_store_is_sent<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 600).await;
    let asked = InputRequest {
        id: "q1".into(),
        question: "Go on?".into(),
        default: Value::Null,
        timeout: None,
        metadata: Value::Null,
    };
    bench.reply(&id, ReplyKind::WaitingInput { worker: "w1".into(), request: asked.clone() });
    bench.told(&id, JobStatus::WaitingClientInput).await;
    let answer = asked.answer(Json::from(Value::from("yes")));
    bench.store.answer_add(T0, &id, "w1", &answer).await.expect("added");
    let store = bench.stop().await;

    // Whoever dispatches next sends it, once.
    let mut bench = Bench::start(store, ManualClock::at(after(1)), Config::default());
    bench.link_up().await;
    let mut sent = [bench.next().await, bench.next().await];
    sent.sort_by_key(|request| matches!(request, Request::Put { .. }));
    let [Request::Get(_), Request::Put { job, worker, answer: put, .. }] = sent else { panic!("{sent:?}") };
    assert_eq!((job, worker.as_str(), put), (id, "w1", answer));
    bench.silent().await;
}

/// What one process adds, the owner's process sends: it sees the change without being told.
#[tokio::test]
async fn a_job_of_another_process_is_seen() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(Arc::new(common::open(folder.path()).await)).await;
    bench.silent().await;
    let other = common::open(folder.path()).await;
    let job = norfab_model::Limits::default().check_job(T0, echo()).expect("valid");
    other.job_add(T0, &job).await.expect("added");
    bench.clock.advance(norfab_dispatch::Config::default().watch_interval);
    assert_eq!(&bench.next_post().await.job, job.id());
}

/// Adds a schedule of `echo` with this interval that begins at the start time.
async fn every<S: Store + ScheduleStore>(bench: &Bench<S>, seconds: u64) -> ScheduleId {
    let interval = Interval::new(seconds).expect("an interval");
    let new = NewSchedule::new("dummy", "echo", interval).workers(Workers::List(vec!["w1".into()]));
    let valid = Limits::default().check_schedule(bench.clock.now(), new).expect("valid");
    let schedule = bench.store.schedule_add(&valid).await.expect("added");
    bench.control.wake();
    schedule.uuid
}

/// The database refuses what becomes of a schedule in the pass in which a delayed job is due.
#[tokio::test]
async fn a_schedule_that_is_refused_keeps_no_job_waiting() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut bench = Bench::up(Arc::new(common::open(folder.path()).await)).await;
    let (bad, good) = (every(&bench, 60).await, every(&bench, 60).await);
    let delayed = bench.add(echo().at(after(60))).await;
    let sql = format!(
        "CREATE TRIGGER planted BEFORE INSERT ON jobs WHEN new.schedule_id = '{bad}'
         BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    );
    let options = SqliteConnectOptions::new().filename(folder.path().join("jobs.db"));
    let mut other = SqliteConnection::connect_with(&options).await.expect("opens");
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut other).await.expect("planted");
    bench.clock.advance_to(after(60));
    let mut sent = [bench.next_post().await.job, bench.next_post().await.job];
    sent.sort_by_key(|job| *job != delayed);
    assert_eq!(sent, [delayed, JobId::of_occurrence(&good, after(60))]);
    assert_eq!(schedule(&bench, &bad).await.state, ScheduleState::Disabled);
}

async fn schedule<S: Store + ScheduleStore>(bench: &Bench<S>, id: &ScheduleId) -> Schedule {
    let key = ScheduleKey::Id(id.clone());
    bench.store.schedule_find(&key).await.expect("readable").expect("there").schedule
}

/// Takes the next POST and brings its job to COMPLETED.
async fn complete_next<S: Store + ScheduleStore>(bench: &mut Bench<S>) -> Job {
    let id = bench.next_post().await.job;
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Completed).await
}

async fn each_occurrence_is_a_job_of_its_own<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = every(&bench, 60).await;
    bench.clock.advance_to(Timestamp::from_micros(after(60).as_micros() - 1));
    bench.silent().await;
    for minute in 1..=3 {
        bench.clock.advance_to(after(60 * minute));
        let job = complete_next(&mut bench).await;
        assert_eq!((job.scheduled_for, job.schedule_id), (Some(after(60 * minute)), Some(id.clone())));
        assert_eq!(job.uuid, JobId::of_occurrence(&id, after(60 * minute)));
        bench.silent().await;
    }
    let schedule = schedule(&bench, &id).await;
    assert_eq!((schedule.counters.total_runs, schedule.last_run_at), (3, Some(after(180))));
}

async fn an_outage_is_decided_once_when_the_link_is_up<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = every(&bench, 60).await;
    bench.settle().await;
    bench.link_lost().await;
    bench.clock.advance_to(after(330));
    bench.silent().await;
    assert_eq!(schedule(&bench, &id).await.counters.total_runs, 0);
    bench.link_up().await;
    assert_eq!(complete_next(&mut bench).await.scheduled_for, Some(after(300)));
    bench.silent().await;
    let schedule = schedule(&bench, &id).await;
    assert_eq!((schedule.counters.total_runs, schedule.counters.coalesced_runs), (1, 4));
    let outcome = schedule.last_outcome.expect("decided").to_string();
    assert!(outcome.contains("5 due") && outcome.contains("1 created (latest)"), "{outcome}");
}

async fn a_guest_makes_no_occurrences<S: Store + ScheduleStore>(store: Arc<S>) {
    let config = Config { scope: Scope::Jobs(Vec::new()), ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(T0), config);
    bench.link_up().await;
    let id = every(&bench, 60).await;
    bench.clock.advance_to(after(600));
    bench.silent().await;
    assert_eq!(schedule(&bench, &id).await.next.map(|next| next.occurrence), Some(after(60)));
}

async fn a_clock_that_was_ahead_causes_neither_doubles_nor_silence<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    every(&bench, 60).await;
    bench.settle().await;
    // By mistake two hours ahead: that occurrence runs.
    bench.clock.set(after(7200));
    assert_eq!(complete_next(&mut bench).await.scheduled_for, Some(after(7200)));
    bench.clock.set(after(90));
    bench.silent().await;
    for minute in 2..=4 {
        bench.clock.advance_to(after(60 * minute));
        assert_eq!(complete_next(&mut bench).await.scheduled_for, Some(after(60 * minute)));
    }
    // When that time truly comes, it does not run again.
    bench.clock.advance_to(after(7140));
    assert_eq!(complete_next(&mut bench).await.scheduled_for, Some(after(7140)));
    bench.clock.advance_to(after(7200));
    bench.silent().await;
    bench.clock.advance_to(after(7260));
    assert_eq!(complete_next(&mut bench).await.scheduled_for, Some(after(7260)));
}

async fn an_unfinished_job_skips_and_its_end_frees<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = every(&bench, 60).await;
    bench.settle().await;
    bench.clock.advance_to(after(60));
    let running = bench.next_post().await.job;
    bench.reply(&running, stored());
    bench.told(&running, JobStatus::Started).await;
    bench.clock.advance_to(after(120));
    // It is asked for, as nothing was heard of it; nothing is sent.
    assert_eq!(bench.next_get().await.job, running);
    bench.silent().await;
    assert_eq!(schedule(&bench, &id).await.counters.overlap_skips, 1);
    bench.reply(&running, result());
    bench.told(&running, JobStatus::Completed).await;
    bench.clock.advance_to(after(180));
    assert_eq!(bench.next_post().await.job, JobId::of_occurrence(&id, after(180)));
}

async fn what_is_forbidden_by_now_is_switched_off<S: Store + ScheduleStore>(store: Arc<S>) {
    let limits = Limits { forbidden_tasks: vec!["dummy:echo".into()], ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(T0), config);
    bench.link_up().await;
    let id = every(&bench, 60).await;
    bench.clock.advance_to(after(60));
    bench.silent().await;
    let schedule = schedule(&bench, &id).await;
    assert_eq!(schedule.state, ScheduleState::Disabled);
    assert!(schedule.last_error.expect("a reason").contains("forbidden"));
}
