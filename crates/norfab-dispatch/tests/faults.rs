//! What the dispatcher does when the fabric does not do what it should, row by row, in both stores, without waiting for
//! anything.

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Bench, T0, accepted, accepted_by, after, echo, names, not_found, refused, result, result_ready, stored};
use norfab_dispatch::{Config, LinkState, ManualClock};
use norfab_model::{
    Clock, Connection, Context, Inbound, JobId, JobStatus, Json, NewJob, Post, Reply, ReplyKind, Request,
    ScheduleStore, Scope, Store, Timestamp, Uptime, Workers,
};

on_both_stores!(
    any_goes_to_a_live_worker_and_stays_with_it,
    any_goes_to_another_at_once_when_the_first_refuses,
    any_waits_for_a_worker_or_fails,
    any_goes_elsewhere_when_its_worker_is_gone_for_long,
    an_immediate_job_fails_at_the_first_refusal,
    a_scheduled_job_is_tried_again_until_somebody_is_there,
    a_scheduled_job_is_not_tried_beyond_its_start_deadline,
    a_post_without_an_answer_is_sent_again,
    a_worker_missing_from_a_list_is_tried_again,
    a_worker_that_stays_missing_fails_in_the_end,
    a_worker_missing_from_the_list_of_an_immediate_job_fails,
    a_refused_get_is_asked_again,
    a_worker_that_does_not_know_it_is_asked_and_then_given_it,
    a_worker_that_lost_it_fails,
    a_ready_result_is_fetched_at_once,
    a_silent_broker_is_asked_and_the_connection_made_anew,
    a_broker_that_says_anything_is_not_doubted,
    a_connection_that_is_silent_from_the_start_is_made_anew,
    overdue_jobs_are_asked_for_before_they_expire,
    nothing_in_flight_expires_while_the_link_is_down,
    a_leap_of_the_clock_asks_before_it_expires,
    an_overdue_claim_is_asked_for_and_not_sent,
    who_speaks_first_after_a_restart_is_not_all_of_them,
    a_guest_picks_up_what_another_left,
    a_silent_broker_lets_nothing_expire,
    a_leap_of_the_clock_makes_no_worker_gone_for_long,
    small_steps_of_the_clock_make_no_worker_gone_for_long,
    a_step_of_the_clock_is_no_silence,
    who_may_have_it_from_an_earlier_post_does_not_fail,
    who_has_it_is_one_of_all,
    who_registers_later_is_one_of_all,
    a_post_to_all_that_is_repeated_waits_for_who_has_the_first,
    an_old_broker_knows_all_there_are,
    a_new_job_for_all_waits_for_nobody,
    a_job_for_all_ends_by_its_deadline,
    a_guest_is_realigned_when_the_clock_goes_back,
    a_post_that_may_have_arrived_does_not_expire_unasked,
    a_refused_answer_is_no_refused_post,
    everything_unfinished_ends,
);

fn any() -> NewJob {
    NewJob::new("dummy", "echo").workers(Workers::Any)
}

fn one(name: &str) -> Workers {
    Workers::One(name.to_owned())
}

fn list(workers: &[&str]) -> Workers {
    Workers::List(names(workers))
}

/// Adds a job that is due at once, and that nobody waits for.
async fn add_due<S: Store + ScheduleStore>(bench: &Bench<S>, new: NewJob) -> JobId {
    let now = bench.clock.now();
    bench.add(new.at(now)).await
}

async fn any_goes_to_a_live_worker_and_stays_with_it<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.set_workers(&["w7"]);
    let id = bench.add(any()).await;
    assert_eq!(bench.next_post().await.target, one("w7"));
    // The client is killed before it hears anything, and others are there when it is back.
    let store = bench.stop().await;
    let mut bench = Bench::start(store, ManualClock::at(after(1)), Config::default());
    bench.set_workers(&["w8", "w9"]);
    bench.link_up().await;
    let again = bench.next_post().await;
    assert_eq!((&again.job, again.target), (&id, one("w7")));
    bench.silent().await;
}

async fn any_goes_to_another_at_once_when_the_first_refuses<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(any()).await;
    assert_eq!(bench.next_post().await.target, one("w1"));
    bench.set_workers(&["w2"]);
    bench.reply(&id, refused());
    assert_eq!(bench.next_post().await.target, one("w2"));
    bench.reply(&id, refused());
    let job = bench.told(&id, JobStatus::Failed).await;
    assert_eq!((job.posts_sent, job.posts_refused), (2, 2));
}

async fn any_waits_for_a_worker_or_fails<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.set_workers(&[]);
    let immediate = bench.add(any()).await;
    assert!(bench.told(&immediate, JobStatus::Failed).await.errors[0].contains("no worker of service"));
    let scheduled = add_due(&bench, any()).await;
    bench.silent().await;
    assert_eq!(bench.job(&scheduled).await.next_attempt_at, Some(after(1)));
    bench.set_workers(&["w3"]);
    bench.clock.advance_to(after(1));
    let post = bench.next_post().await;
    assert_eq!((post.job, post.target), (scheduled, one("w3")));
}

async fn any_goes_elsewhere_when_its_worker_is_gone_for_long<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(any()).await;
    bench.next_post().await;
    bench.reply(&id, accepted());
    bench.told(&id, JobStatus::Dispatched).await;
    bench.set_workers(&["w2"]);
    // A leap of the clock says nothing of the worker: it goes in steps.
    for seconds in [10, 20, 30, 40] {
        bench.clock.advance_to(after(seconds - 5));
        bench.silent().await;
        bench.clock.advance_to(after(seconds));
        assert_eq!(bench.next_get().await.target, list(&["w1"]));
        bench.reply(&id, refused());
        if seconds < 40 {
            bench.silent().await;
        }
    }
    assert_eq!(bench.next_post().await.target, one("w2"));
    bench.reply(&id, accepted_by(&["w2"]));
    bench.reply(&id, ReplyKind::Stored { worker: "w2".into() });
    let job = bench.told(&id, JobStatus::Started).await;
    assert_eq!((job.workers_dispatched, job.dispatch_target), (names(&["w2"]), Some(one("w2"))));
}

async fn an_immediate_job_fails_at_the_first_refusal<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo()).await;
    bench.next_post().await;
    bench.reply(&id, refused());
    assert_eq!(bench.told(&id, JobStatus::Failed).await.errors, ["no worker is registered"]);
    bench.silent().await;
}

async fn a_scheduled_job_is_tried_again_until_somebody_is_there<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = add_due(&bench, echo().timeout(2)).await;
    for (refusals, next) in (1..).zip([1, 3, 7, 15]) {
        bench.next_post().await;
        bench.reply(&id, refused());
        bench.told(&id, JobStatus::New).await;
        bench.silent().await;
        let job = bench.job(&id).await;
        assert_eq!((job.posts_refused, job.next_attempt_at), (refusals, Some(after(next))));
        bench.clock.advance_to(after(next));
    }
    bench.next_post().await;
    assert_eq!(bench.job(&id).await.deadline, Some(after(17)));
    bench.reply(&id, accepted());
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Completed).await;
    bench.silent().await;
}

async fn a_scheduled_job_is_not_tried_beyond_its_start_deadline<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = add_due(&bench, echo()).await;
    let hasty = bench.add(echo().at(T0).grace(2)).await;
    bench.next_post().await;
    bench.next_post().await;
    bench.reply(&id, refused());
    bench.reply(&hasty, refused());
    bench.silent().await;
    // The link is lost meanwhile, and back when it is too late for one of them.
    bench.link_lost().await;
    bench.clock.advance_to(after(3));
    bench.link_up().await;
    assert_eq!(bench.next_post().await.job, id);
    let failed = bench.told(&hasty, JobStatus::Failed).await;
    assert!(failed.errors[0].contains("start deadline"), "{:?}", failed.errors);
    bench.silent().await;
}

async fn a_post_without_an_answer_is_sent_again<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo()).await;
    let first = bench.next_post().await;
    bench.clock.advance_to(after(9));
    bench.silent().await;
    bench.clock.advance_to(after(10));
    // It is there, but has not said anything of this job.
    assert_eq!(bench.next_post().await, first);
    assert_eq!(bench.job(&id).await.posts_sent, 2);
    bench.reply(&id, accepted());
    bench.told(&id, JobStatus::Dispatched).await;
    bench.silent().await;
}

async fn a_worker_missing_from_a_list_is_tried_again<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = add_due(&bench, echo().workers(list(&["w1", "w2"]))).await;
    bench.next_post().await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Started).await;
    bench.silent().await;
    bench.clock.advance_to(after(1));
    assert_eq!(bench.next_post().await.target, list(&["w2"]));
    bench.reply(&id, refused());
    bench.silent().await;
    bench.clock.advance_to(after(3));
    assert_eq!(bench.next_post().await.target, list(&["w2"]));
    bench.reply(&id, accepted_by(&["w2"]));
    bench.reply(&id, ReplyKind::Stored { worker: "w2".into() });
    bench.silent().await;
}

/// The next POST; what is asked for on the way is refused, as the broker does for workers that it does not know.
async fn next_post_past_gets<S: Store + ScheduleStore>(bench: &mut Bench<S>) -> Post {
    loop {
        match bench.next().await {
            Request::Post(post) => return post,
            Request::Get(poll) => bench.reply(&poll.job, refused()),
            other => panic!("neither POST nor GET: {other:?}"),
        }
    }
}

async fn a_worker_that_stays_missing_fails_in_the_end<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = add_due(&bench, echo().workers(list(&["w1", "ghost"]))).await;
    bench.next_post().await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Started).await;
    for pause in [1, 2, 4, 8, 10, 10, 10, 10, 5] {
        bench.settle().await;
        bench.clock.advance(Duration::from_secs(pause));
        assert_eq!(next_post_past_gets(&mut bench).await.target, list(&["ghost"]));
        bench.reply(&id, refused());
    }
    let done = bench.told(&id, JobStatus::Completed).await;
    assert!(done.errors[0].contains("\"ghost\" is not registered"), "{:?}", done.errors);
}

async fn a_worker_missing_from_the_list_of_an_immediate_job_fails<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().workers(list(&["w1", "ghost"]))).await;
    bench.next_post().await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    assert_eq!(bench.told(&id, JobStatus::Completed).await.errors.len(), 1);
    bench.silent().await;
}

/// A job that w1 has.
async fn started<S: Store + ScheduleStore>(bench: &mut Bench<S>, timeout: u64) -> JobId {
    let id = bench.add(echo().timeout(timeout)).await;
    bench.next_post().await;
    bench.reply(&id, accepted());
    bench.reply(&id, stored());
    bench.told(&id, JobStatus::Started).await;
    id
}

/// A job that the broker handed to w1, which has not said anything.
async fn dispatched<S: Store + ScheduleStore>(bench: &mut Bench<S>) -> JobId {
    let id = bench.add(echo()).await;
    bench.next_post().await;
    bench.reply(&id, accepted());
    bench.told(&id, JobStatus::Dispatched).await;
    id
}

async fn a_refused_get_is_asked_again<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 600).await;
    for seconds in [10, 20, 30] {
        bench.clock.advance_to(after(seconds));
        bench.next_get().await;
        bench.reply(&id, refused());
        bench.silent().await;
    }
    let job = bench.job(&id).await;
    assert_eq!((job.status, job.posts_refused), (JobStatus::Started, 0));
}

async fn a_worker_that_does_not_know_it_is_asked_and_then_given_it<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = dispatched(&mut bench).await;
    bench.clock.advance_to(after(10));
    bench.next_get().await;
    bench.reply(&id, accepted());
    bench.reply(&id, not_found("w1"));
    bench.silent().await;
    bench.clock.advance_to(after(11));
    assert_eq!(bench.next_get().await.target, list(&["w1"]));
    bench.reply(&id, accepted());
    bench.reply(&id, not_found("w1"));
    assert_eq!(bench.next_post().await.target, list(&["w1"]));
    assert_eq!(bench.job(&id).await.posts_sent, 2);
    bench.reply(&id, accepted());
    bench.reply(&id, stored());
    bench.told(&id, JobStatus::Started).await;
    bench.silent().await;
}

async fn a_worker_that_lost_it_fails<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 600).await;
    // These may have left before the job was stored.
    for seconds in 1..3 {
        bench.reply(&id, not_found("w1"));
        bench.silent().await;
        bench.clock.advance_to(after(seconds));
        assert_eq!(bench.next_get().await.target, list(&["w1"]));
        bench.reply(&id, accepted());
    }
    bench.reply(&id, not_found("w1"));
    assert!(bench.told(&id, JobStatus::Completed).await.errors[0].contains("lost the job"));
    bench.silent().await;
}

async fn a_ready_result_is_fetched_at_once<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = dispatched(&mut bench).await;
    bench.reply(&id, result_ready());
    assert_eq!(bench.next_get().await.target, list(&["w1"]));
    bench.silent().await;
}

async fn a_silent_broker_is_asked_and_the_connection_made_anew<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let lost = bench.add(echo()).await;
    bench.next_post().await;
    bench.clock.advance_to(after(10));
    bench.next_probe().await;
    assert_eq!(bench.control.health().borrow().link, LinkState::Up);
    bench.clock.advance_to(after(15));
    bench.rebuilt().await;
    let mut health = bench.control.health();
    let silent = |link: &LinkState| matches!(link, LinkState::Down { reason } if reason.contains("does not answer"));
    health.wait_for(|health| silent(&health.link)).await.expect("the dispatcher runs");
    bench.link_up().await;
    let again = bench.next_post().await;
    assert_eq!((again.job, bench.job(&lost).await.posts_sent), (lost, 2));
    bench.silent().await;
}

async fn a_broker_that_says_anything_is_not_doubted<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    bench.add(echo()).await;
    let first = bench.next_post().await;
    bench.clock.advance_to(after(5));
    bench.say(Inbound::Stray("something".into()));
    bench.silent().await;
    bench.clock.advance_to(after(10));
    // No question in between.
    assert_eq!(bench.next_unanswered().await, Request::Post(first));
}

async fn a_connection_that_is_silent_from_the_start_is_made_anew<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::start(store, ManualClock::at(T0), Config::default());
    for seconds in [5, 10, 15] {
        bench.say(Inbound::Connection(Connection::Connected));
        bench.next_probe().await;
        bench.clock.advance_to(after(seconds));
        bench.rebuilt().await;
    }
    bench.link_up().await;
    bench.silent().await;
}

async fn overdue_jobs_are_asked_for_before_they_expire<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let (done, lost) = (started(&mut bench, 60).await, started(&mut bench, 60).await);
    let store = bench.stop().await;

    let mut bench = Bench::start(store, ManualClock::at(after(3600)), Config::default());
    bench.silent().await;
    bench.link_up().await;
    let asked = [bench.next_get().await.job, bench.next_get().await.job];
    assert!(asked.contains(&done) && asked.contains(&lost));
    bench.silent().await;
    bench.reply(&done, result());
    bench.told(&done, JobStatus::Completed).await;
    bench.clock.advance_to(after(3604));
    bench.silent().await;
    assert_eq!(bench.job(&lost).await.status, JobStatus::Started);
    bench.clock.advance_to(after(3605));
    bench.told(&lost, JobStatus::Stale).await;
}

async fn nothing_in_flight_expires_while_the_link_is_down<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let sent = started(&mut bench, 60).await;
    bench.link_lost().await;
    let unsent = bench.add(echo().timeout(60)).await;
    bench.settle().await;
    bench.clock.advance_to(after(3600));
    bench.told(&unsent, JobStatus::Stale).await;
    bench.silent().await;
    assert_eq!(bench.job(&sent).await.status, JobStatus::Started);
    bench.link_up().await;
    assert_eq!(bench.next_get().await.job, sent);
    bench.clock.advance_to(after(3605));
    bench.told(&sent, JobStatus::Stale).await;
}

/// How a clock comes to show much more than at the last look.
type Leap = fn(&ManualClock, Timestamp);

/// It was set, or it went on while nobody looked.
const LEAPS: [Leap; 2] = [ManualClock::set, ManualClock::advance_to];

async fn a_leap_of_the_clock_asks_before_it_expires<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    for leap in LEAPS {
        let begin = bench.clock.now();
        let id = started(&mut bench, 8).await;
        bench.settle().await;
        bench.clock.advance(Duration::from_secs(5));
        bench.settle().await;
        leap(&bench.clock, begin.plus_seconds(600));
        assert_eq!(bench.next_get().await.job, id);
        bench.silent().await;
        assert_eq!(bench.job(&id).await.status, JobStatus::Started);
        bench.clock.advance(Duration::from_secs(5));
        bench.told(&id, JobStatus::Stale).await;
    }
}

async fn an_overdue_claim_is_asked_for_and_not_sent<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().timeout(60)).await;
    bench.next_post().await;
    let store = bench.stop().await;
    let mut bench = Bench::start(store, ManualClock::at(after(3600)), Config::default());
    bench.link_up().await;
    assert_eq!(bench.next_get().await.job, id);
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Completed).await;
    bench.silent().await;
}

async fn who_speaks_first_after_a_restart_is_not_all_of_them<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().workers(Workers::All)).await;
    bench.next_post().await;
    let store = bench.stop().await;

    // One of two workers has finished before the link counts as up.
    let mut bench = Bench::start(store, ManualClock::at(after(1)), Config::default());
    bench.reply(&id, result_ready());
    assert_eq!(bench.next_get().await.target, list(&["w1"]));
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    assert!(bench.told(&id, JobStatus::Started).await.workers_dispatched.is_empty());
    bench.set_age(3600);
    bench.link_up().await;
    for _ in 0..2 {
        assert_eq!(bench.next_get().await.target, Workers::All);
        bench.reply(&id, accepted_by(&["w1", "w2"]));
    }
    bench.silent().await;
    bench.reply(&id, ReplyKind::Result { worker: "w2".into(), result: Json::empty_object() });
    assert_eq!(bench.told(&id, JobStatus::Completed).await.workers_dispatched, names(&["w1", "w2"]));
}

async fn a_guest_picks_up_what_another_left<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let done = started(&mut bench, 60).await;
    let unanswered = bench.add(echo()).await;
    bench.next_post().await;
    let store = bench.stop().await;

    let config = Config { scope: Scope::Jobs(Vec::new()), ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(after(90)), config);
    bench.link_up().await;
    bench.settle().await;
    bench.clock.advance(Duration::from_secs(5));
    bench.settle().await;
    bench.control.serve(unanswered.clone());
    assert_eq!(bench.next_post().await.job, unanswered);
    // Its deadline is over, and its result may be there.
    bench.control.serve(done.clone());
    assert_eq!(bench.next_get().await.job, done);
    bench.reply(&done, result());
    bench.told(&done, JobStatus::Completed).await;
    bench.silent().await;
}

/// Lets the clock run for so many seconds without a leap.
async fn run_for<S: Store + ScheduleStore>(bench: &mut Bench<S>, seconds: u64) -> Vec<Request> {
    let mut sent = Vec::new();
    for _ in 0..seconds {
        bench.clock.advance(Duration::from_secs(1));
        sent.extend(bench.pump().await);
    }
    sent
}

async fn a_silent_broker_lets_nothing_expire<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = started(&mut bench, 22).await;
    run_for(&mut bench, 9).await;
    // From here on nothing comes any more.
    bench.clock.advance_to(after(10));
    bench.next_get().await;
    bench.clock.advance_to(after(14));
    bench.clock.advance_to(after(18));
    bench.clock.advance_to(after(20));
    while !matches!(bench.next_unanswered().await, Request::Mmi { .. }) {}
    bench.clock.advance_to(after(22));
    bench.clock.advance_to(after(25));
    bench.rebuilt().await;
    assert_eq!(bench.job(&id).await.status, JobStatus::Started);
    bench.forget_sent();
    bench.link_up().await;
    bench.next_get().await;
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Completed).await;
}

/// A job to any worker, at one that the broker does not name any more.
async fn given_to_who_is_gone<S: Store + ScheduleStore>(bench: &mut Bench<S>) -> JobId {
    bench.set_workers(&["w1"]);
    let id = bench.add(any()).await;
    bench.next_post().await;
    bench.reply(&id, accepted());
    bench.told(&id, JobStatus::Dispatched).await;
    bench.set_workers(&["w2"]);
    id
}

async fn a_leap_of_the_clock_makes_no_worker_gone_for_long<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    for leap in LEAPS {
        let id = given_to_who_is_gone(&mut bench).await;
        run_for(&mut bench, 9).await;
        bench.clock.advance(Duration::from_secs(1));
        bench.next_get().await;
        bench.reply(&id, refused());
        bench.settle().await;
        leap(&bench.clock, bench.clock.now().plus_seconds(61));
        bench.next_get().await;
        bench.reply(&id, refused());
        bench.silent().await;
        bench.reply(&id, result());
        bench.told(&id, JobStatus::Completed).await;
        // What was known of the workers is no longer asked for.
        bench.clock.advance(Duration::from_secs(4));
        bench.settle().await;
    }
}

/// Steps too small for a leap: it is gone for as long as time passes.
async fn small_steps_of_the_clock_make_no_worker_gone_for_long<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    for back in [0, 6] {
        let id = given_to_who_is_gone(&mut bench).await;
        let mut refused_at = None;
        let moved = loop {
            bench.clock.advance(Duration::from_secs(1));
            let up = bench.clock.uptime();
            assert!(up < Uptime::from_start(Duration::from_secs(900)), "it goes nowhere else");
            if up.since(Uptime::START).as_secs() % 3 == 0 {
                bench.clock.set(bench.clock.now().plus_seconds(4).saturating_sub(Duration::from_secs(back)));
            }
            let mut sent = bench.pump().await;
            if matches!(sent.as_slice(), [Request::Get(_)]) {
                refused_at.get_or_insert(up);
                bench.reply(&id, refused());
                sent = bench.pump().await;
            }
            if let [Request::Post(post)] = sent.as_slice() {
                assert_eq!(post.target, one("w2"));
                break up;
            }
            assert!(sent.is_empty(), "sent: {sent:?}");
        };
        let waited = moved.since(refused_at.expect("the broker refused it")).as_secs();
        assert!((30..300).contains(&waited), "after {waited} s");
        bench.reply(&id, accepted_by(&["w2"]));
        bench.reply(&id, ReplyKind::Result { worker: "w2".into(), result: Json::empty_object() });
        bench.told(&id, JobStatus::Completed).await;
        bench.clock.advance(Duration::from_secs(4));
        bench.settle().await;
    }
}

/// However the clock is set, a broker has its ten seconds to answer, and no more.
async fn a_step_of_the_clock_is_no_silence<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    for step in [after(4), after(3600), T0, T0.saturating_sub(Duration::from_secs(86_400))] {
        let add = async |bench: &mut Bench<S>| {
            let id = bench.add(echo().timeout(86_400)).await;
            let Request::Post(post) = bench.next_unanswered().await else { panic!("the broker is doubted") };
            assert_eq!(post.job, id);
            id
        };
        let mut jobs = vec![add(&mut bench).await];
        bench.clock.set(step);
        jobs.push(add(&mut bench).await);
        for _ in 0..3 {
            bench.clock.advance(Duration::from_secs(3));
            jobs.push(add(&mut bench).await);
        }
        bench.clock.advance(Duration::from_secs(1));
        let id = bench.next_probe().await;
        for job in jobs {
            bench.reply(&job, accepted());
            bench.reply(&job, result());
            bench.told(&job, JobStatus::Completed).await;
        }
        bench.say(Inbound::Mmi { id, answer: Json::empty_array() });
        bench.settle().await;
    }
}

async fn who_may_have_it_from_an_earlier_post_does_not_fail<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().workers(list(&["w1", "w2"]))).await;
    bench.next_post().await;
    // Both have it; the client is killed, and w2 registers anew at that moment.
    let store = bench.stop().await;
    let mut bench = Bench::start(store, ManualClock::at(after(1)), Config::default());
    bench.link_up().await;
    bench.next_post().await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Started).await;
    bench.reply(&id, ReplyKind::Result { worker: "w2".into(), result: Json::empty_object() });
    assert!(bench.told(&id, JobStatus::Completed).await.errors.is_empty());
}

async fn who_has_it_is_one_of_all<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().workers(Workers::All)).await;
    bench.next_post().await;
    bench.reply(&id, ReplyKind::Stored { worker: "w2".into() });
    bench.told(&id, JobStatus::Started).await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, ReplyKind::Stored { worker: "w3".into() });
    bench.reply(&id, result());
    bench.settle().await;
    let job = bench.job(&id).await;
    assert_eq!((job.status, job.workers_dispatched), (JobStatus::Started, names(&["w1", "w2", "w3"])));
}

fn result_of(worker: &str) -> ReplyKind {
    ReplyKind::Result { worker: worker.into(), result: Json::empty_object() }
}

/// A job for all that w1 and w2 have got from a broker which then died, before its word came here. Its successor has not
/// said what it knows. Jobs are asked for every twenty seconds.
async fn sent_to_a_dying_broker<S: Store + ScheduleStore>(store: Arc<S>, timeout: u64) -> (Bench<S>, JobId) {
    let config = Config { poll_interval: Duration::from_secs(20), ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(T0), config);
    bench.link_up().await;
    let id = bench.add(echo().workers(Workers::All).timeout(timeout)).await;
    bench.next_post().await;
    bench.link_lost().await;
    bench.set_workers(&[]);
    bench.link_up().await;
    assert_eq!(bench.next_post().await.target, Workers::All);
    (bench, id)
}

async fn who_registers_later_is_one_of_all<S: Store + ScheduleStore>(store: Arc<S>) {
    let (mut bench, id) = sent_to_a_dying_broker(store, 600).await;
    bench.reply(&id, refused());
    bench.told(&id, JobStatus::Dispatched).await;
    assert_eq!(run_for(&mut bench, 20).await.len(), 1);
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Started).await;
    // The one that is there has answered, and the other registers now.
    assert_eq!(run_for(&mut bench, 9).await, []);
    assert_eq!(bench.job(&id).await.status, JobStatus::Started);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.next_get().await.target, Workers::All);
    bench.reply(&id, accepted_by(&["w1", "w2"]));
    bench.reply(&id, result_of("w2"));
    let job = bench.told(&id, JobStatus::Completed).await;
    assert_eq!((job.workers_dispatched, job.posts_sent), (names(&["w1", "w2"]), 2));
    bench.silent().await;
}

async fn a_post_to_all_that_is_repeated_waits_for_who_has_the_first<S: Store + ScheduleStore>(store: Arc<S>) {
    let (mut bench, id) = sent_to_a_dying_broker(store, 600).await;
    // One has registered already, and has the job since before.
    bench.reply(&id, accepted_by(&["w1"]));
    bench.told(&id, JobStatus::Dispatched).await;
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Started).await;
    // The link is lost once more: from then on they have their time anew.
    run_for(&mut bench, 5).await;
    bench.link_lost().await;
    bench.link_up().await;
    assert_eq!(bench.next_get().await.target, Workers::All);
    bench.reply(&id, refused());
    // The other one is gone for good.
    for seconds in [20, 10] {
        assert_eq!(run_for(&mut bench, seconds - 1).await, []);
        assert_eq!(bench.job(&id).await.status, JobStatus::Started);
        bench.clock.advance(Duration::from_secs(1));
        assert_eq!(bench.next_get().await.target, Workers::All);
        bench.reply(&id, accepted_by(&["w1"]));
    }
    assert_eq!(bench.told(&id, JobStatus::Completed).await.workers_dispatched, names(&["w1"]));
    bench.silent().await;
}

async fn an_old_broker_knows_all_there_are<S: Store + ScheduleStore>(store: Arc<S>) {
    let (mut bench, id) = sent_to_a_dying_broker(store, 600).await;
    // It was the connection alone that broke.
    bench.set_workers(&["w1"]);
    bench.set_age(30);
    bench.reply(&id, accepted_by(&["w1"]));
    assert_eq!(bench.next_get().await.target, Workers::All);
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Completed).await;
    bench.silent().await;
}

/// Nobody can have it but who is named: the link has just come up, and one POST was refused.
async fn a_new_job_for_all_waits_for_nobody<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = add_due(&bench, echo().workers(Workers::All)).await;
    bench.next_post().await;
    bench.reply(&id, refused());
    bench.silent().await;
    bench.clock.advance(Duration::from_secs(1));
    bench.next_post().await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    assert_eq!(bench.told(&id, JobStatus::Completed).await.workers_dispatched, names(&["w1"]));
    bench.silent().await;
}

async fn a_job_for_all_ends_by_its_deadline<S: Store + ScheduleStore>(store: Arc<S>) {
    let (mut bench, id) = sent_to_a_dying_broker(store, 15).await;
    bench.reply(&id, accepted_by(&["w1"]));
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Started).await;
    run_for(&mut bench, 15).await;
    let job = bench.told(&id, JobStatus::Stale).await;
    assert!(job.errors[0].contains("whether further workers have the job"), "{:?}", job.errors);
    let results = bench.store.job_detail(&id).await.expect("readable").expect("there").results;
    assert_eq!(results.keys().collect::<Vec<_>>(), ["all", "w1"]);
}

async fn a_guest_is_realigned_when_the_clock_goes_back<S: Store + ScheduleStore>(store: Arc<S>) {
    let config = Config { scope: Scope::Jobs(Vec::new()), ..Config::default() };
    let mut bench = Bench::start(store, ManualClock::at(after(3600)), config);
    bench.link_up().await;
    let id = bench.add(echo()).await;
    bench.control.serve(id.clone());
    bench.next_post().await;
    bench.reply(&id, accepted());
    bench.told(&id, JobStatus::Dispatched).await;
    bench.settle().await;
    bench.clock.set(T0);
    bench.settle().await;
    assert_eq!(run_for(&mut bench, 10).await.len(), 1);
}

async fn a_post_that_may_have_arrived_does_not_expire_unasked<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().timeout(60)).await;
    bench.next_post().await;
    let store = bench.stop().await;
    let mut bench = Bench::start(store, ManualClock::at(after(30)), Config::default());
    bench.set_full(true);
    bench.link_up().await;
    bench.settle().await;
    assert_eq!(bench.job(&id).await.status, JobStatus::New);
    bench.link_lost().await;
    bench.clock.advance_to(after(61));
    bench.told(&id, JobStatus::Dispatched).await;
    bench.set_full(false);
    bench.link_up().await;
    assert_eq!(bench.next_get().await.job, id);
    bench.reply(&id, result());
    bench.told(&id, JobStatus::Completed).await;
}

async fn a_refused_answer_is_no_refused_post<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    let id = bench.add(echo().workers(list(&["w1", "w2"]))).await;
    bench.next_post().await;
    bench.reply(&id, accepted_by(&["w1", "w2"]));
    bench.reply(&id, stored());
    bench.told(&id, JobStatus::Started).await;
    bench.reply(&id, not_found("w2"));
    bench.settle().await;
    bench.clock.advance(Duration::from_secs(1));
    bench.next_get().await;
    bench.reply(&id, accepted_by(&["w2"]));
    bench.reply(&id, not_found("w2"));
    let again = next_post_past_gets(&mut bench).await;
    assert_eq!(again.target, list(&["w2"]));
    // An answer to w1 is refused, which is away for a moment.
    let put = Context::Answer { target: one("w1") };
    bench.say(Inbound::Reply(Reply { context: put, ..Reply::new(id.clone(), refused()) }));
    bench.reply(&id, accepted_by(&["w2"]));
    bench.reply(&id, ReplyKind::Stored { worker: "w2".into() });
    bench.settle().await;
    let job = bench.job(&id).await;
    assert_eq!((job.errors, job.posts_refused), (Vec::new(), 0));
}

/// Whatever is said or kept silent, in the end every job is terminal and the loop is at rest.
async fn everything_unfinished_ends<S: Store + ScheduleStore>(store: Arc<S>) {
    let mut bench = Bench::up(store).await;
    for workers in [Workers::All, Workers::Any, one("w1"), list(&["w1", "w2"])] {
        bench.add(echo().workers(workers.clone()).timeout(90)).await;
        add_due(&bench, echo().workers(workers.clone()).timeout(90)).await;
        bench.add(echo().workers(workers).at(T0).grace(20).timeout(90)).await;
    }
    let mut seconds = 0;
    while !bench.store.job_unfinished().await.expect("readable").is_empty() {
        seconds += 1;
        assert!(seconds < 300, "some job never ends");
        bench.pump().await;
        bench.clock.advance_to(after(seconds));
    }
    bench.silent().await;
}
