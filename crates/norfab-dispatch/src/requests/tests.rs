//! What answers belong to, what is late, and what is asked or sent again.

use norfab_model::{Json, Limits, NewJob, Timestamp};

use super::*;

const T0: Uptime = Uptime::START;

const WALL: Timestamp = Timestamp::from_seconds(1_795_996_800);

fn requests() -> Requests {
    Requests::new(Patience { answer: Duration::from_secs(10), gone: Duration::from_secs(30) })
}

fn after(seconds: u32) -> Uptime {
    T0.saturating_add(Duration::from_secs(seconds.into()))
}

/// So many seconds later, the wall clock never having been set.
fn at(seconds: u32) -> Moment {
    Moment { wall: WALL.plus_seconds(seconds), up: after(seconds) }
}

fn id() -> JobId {
    JobId::new("job").expect("valid")
}

fn job() -> Job {
    let new = NewJob { id: Some(id()), ..NewJob::new("dummy", "echo") };
    Limits::default().check_job(WALL, new).expect("valid").row(WALL)
}

fn list(names: &[&str]) -> Workers {
    Workers::List(names.iter().map(|name| (*name).to_owned()).collect())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn post(target: Workers) -> Post {
    let (args, kwargs) = (Json::empty_array(), Json::empty_object());
    Post {
        job: id(),
        service: "dummy".into(),
        target,
        task: "echo".into(),
        args,
        kwargs,
        timeout: 1,
        schedule_id: None,
        scheduled_for: None,
    }
}

fn poll() -> Poll {
    Poll { job: id(), service: "dummy".into(), target: list(&["w1"]) }
}

fn got() -> Context {
    Context::Get { target: list(&["w1"]), registry: Registry::Settled }
}

fn posted(target: Workers, failed_before: u32) -> Context {
    Context::Post { target, failed_before, registry: Registry::Settled }
}

#[track_caller]
fn check(requests: &mut Requests, kind: ReplyKind, context: Context) {
    check_at(requests, T0, kind, context);
}

#[track_caller]
fn check_at(requests: &mut Requests, now: Uptime, kind: ReplyKind, context: Context) {
    assert_eq!(requests.context_of(now, Reply::new(id(), kind)).context, context);
}

fn accepted(workers: &[&str]) -> ReplyKind {
    ReplyKind::Accepted { workers: names(workers) }
}

fn ready(worker: &str) -> Reply {
    let event = FabricEvent {
        worker: worker.to_owned(),
        kind: FabricEventKind::ResultReady,
        message: String::new(),
        severity: "INFO".to_owned(),
        task: None,
        data: Json::empty_object(),
    };
    Reply::new(id(), ReplyKind::Event(event))
}

#[test]
fn a_result_is_fetched_at_once_when_the_broker_has_taken_the_post() {
    let mut requests = requests();
    assert_eq!(requests.fetch(&ready("w1")), None);
    requests.posted(T0, &post(list(&["w1"])));
    assert_eq!(requests.fetch(&ready("w1")), None);
    check(&mut requests, accepted(&["w1"]), posted(list(&["w1"]), 0));
    assert!(requests.is_under_way(&id()));
    assert_eq!(requests.fetch(&ready("w1")), Some(poll()));
    // One for each announcement that is stored, and none twice.
    assert_eq!(requests.fetch(&ready("w1")), None);
    assert!(!requests.was_fetched(&id(), "w2"));
    assert!(requests.was_fetched(&id(), "w1") && !requests.was_fetched(&id(), "w1"));
    requests.ended(&id());
    assert!(!requests.is_under_way(&id()));
    assert_eq!(requests.fetch(&ready("w1")), None);
}

#[test]
fn nothing_is_fetched_at_once_on_a_new_connection() {
    let mut requests = requests();
    requests.posted(T0, &post(list(&["w1"])));
    check(&mut requests, accepted(&["w1"]), posted(list(&["w1"]), 0));
    requests.link_lost();
    assert_eq!(requests.fetch(&ready("w1")), None);
    assert!(!requests.is_under_way(&id()));
}

fn refused() -> ReplyKind {
    ReplyKind::Refused { errors: Vec::new() }
}

fn not_found() -> ReplyKind {
    ReplyKind::NotFound { worker: "w1".into() }
}

fn send(why: Resend) -> Vec<SendAgain> {
    vec![SendAgain { job: id(), why }]
}

#[test]
fn answers_belong_to_the_requests_in_their_order() {
    let mut requests = requests();
    check(&mut requests, accepted(&["w1"]), Context::Unknown);
    requests.posted(T0, &post(Workers::All));
    requests.posted(T0, &post(Workers::All));
    requests.asked(T0, &poll());
    assert_eq!(requests.posts_out(), 2);
    // The answers to both POSTs may have been lost.
    check(&mut requests, accepted(&["w1"]), Context::Unknown);
    let to_all = Reply { context: Context::Answer { target: Workers::All }, ..Reply::new(id(), accepted(&["w1"])) };
    for posts_out in [1, 0] {
        let reply = requests.context_of(T0, to_all.clone());
        assert_eq!(reply.context, posted(Workers::All, 0));
        assert_eq!(requests.posts_out(), posts_out);
    }
    check(&mut requests, refused(), got());
    check(&mut requests, refused(), Context::Unknown);
    assert!(requests.owed_since().is_none() && requests.sent.is_empty());
    requests.ended(&id());
    assert!(requests.jobs.is_empty());
}

#[test]
fn a_large_job_may_take_its_time_on_the_way() {
    let mut requests = requests();
    let kwargs = Json::of(&"x".repeat(40 * SLOWEST)).expect("valid");
    requests.posted(T0, &Post { kwargs, ..post(list(&["w1"])) });
    assert_eq!((requests.answer_time(), requests.next()), (Duration::from_secs(50), Some(after(50))));
    assert_eq!(requests.due(after(49)), Due::default());
    check(&mut requests, accepted(&["w1"]), posted(list(&["w1"]), 0));
    assert_eq!(requests.answer_time(), Duration::from_secs(10));
    requests.posted(T0, &post(list(&["w1"])));
    assert_eq!(requests.next(), Some(after(10)));
}

#[test]
fn failed_attempts_are_counted_by_worker() {
    let mut requests = requests();
    let posted = |target: &Workers, failed_before| posted(target.clone(), failed_before);
    let (both, second) = (list(&["w1", "w2"]), list(&["w2"]));
    requests.posted(T0, &post(both.clone()));
    check(&mut requests, accepted(&["w1"]), posted(&both, 0));
    for failed_before in 1..4 {
        requests.posted(T0, &post(second.clone()));
        check(&mut requests, refused(), posted(&second, failed_before));
    }
    requests.posted(T0, &post(second.clone()));
    check(&mut requests, accepted(&["w2"]), posted(&second, 4));
    requests.posted(T0, &post(second.clone()));
    check(&mut requests, refused(), posted(&second, 0));
}

#[test]
fn what_is_not_answered_is_late_after_its_time() {
    let mut requests = requests();
    requests.posted(T0, &post(Workers::All));
    requests.asked(after(1), &poll());
    assert_eq!((requests.owed_since(), requests.next()), (Some(T0), Some(after(10))));
    assert_eq!(requests.due(after(9)), Due::default());
    assert_eq!(requests.due(after(10)).send, send(Resend::Unanswered));
    assert_eq!((requests.owed_since(), requests.posts_out()), (Some(after(1)), 0));
    assert_eq!(requests.due(after(11)), Due::default());
    assert_eq!(requests.next(), None);
}

#[test]
fn what_did_not_get_away_is_owed_no_answer() {
    let mut requests = requests();
    requests.asked(T0, &poll());
    requests.posted(T0, &post(Workers::All));
    requests.never_left(&id());
    assert_eq!(requests.posts_out(), 0);
    check(&mut requests, refused(), got());
    requests.post_later(T0, &id());
    assert_eq!(requests.due(T0), Due::default());
    assert_eq!(requests.due(after(1)).send, send(Resend::Unanswered));
    assert!(requests.jobs.is_empty());
}

#[test]
fn what_stays_unanswered_is_sent_again_after_longer_and_longer() {
    let mut requests = requests();
    let mut sent_at = Vec::new();
    requests.posted(T0, &post(Workers::All));
    for seconds in 1..=160 {
        if !requests.due(after(seconds)).send.is_empty() {
            sent_at.push(seconds);
            requests.posted(after(seconds), &post(Workers::All));
        }
    }
    assert_eq!((sent_at, requests.posts_out()), (vec![10, 20, 40, 80, 160], 1));
}

#[test]
fn a_worker_that_does_not_know_the_job_is_asked_and_then_given_it() {
    let mut requests = requests();
    requests.asked(T0, &poll());
    check(&mut requests, accepted(&["w1"]), got());
    check(&mut requests, not_found(), Context::Repeated(0));
    requests.follow(at(0), &job(), FollowUp::AskAgain("w1".into()));
    assert_eq!((requests.next(), requests.due(T0)), (Some(after(1)), Due::default()));
    assert_eq!(requests.due(after(1)).ask, [poll()]);
    // One that left with the first says no more than that, however late it comes: the broker's word comes before an answer.
    requests.asked(after(1), &poll());
    for seconds in [0, 1, 2] {
        check_at(&mut requests, after(seconds), not_found(), Context::Repeated(0));
    }
    check(&mut requests, accepted(&["w2"]), got());
    check_at(&mut requests, after(2), not_found(), Context::Repeated(0));
    requests.asked(after(2), &poll());
    check(&mut requests, accepted(&["w1"]), got());
    check_at(&mut requests, after(2), not_found(), Context::Repeated(1));
    check_at(&mut requests, after(2), not_found(), Context::Repeated(1));
    let workers = names(&["w1"]);
    requests.follow(at(1), &job(), FollowUp::SendAgain { workers: workers.clone(), at: at(2).wall });
    assert_eq!(requests.due(after(2)).send, send(Resend::Lost(workers)));
    requests.posted(after(2), &post(list(&["w1"])));
    check(&mut requests, not_found(), Context::Repeated(0));
}

#[test]
fn a_sign_of_the_worker_ends_all_doubt() {
    let mut requests = requests();
    check(&mut requests, not_found(), Context::Repeated(0));
    requests.follow(at(0), &job(), FollowUp::AskAgain("w1".into()));
    requests.follow(at(0), &job(), FollowUp::Gone);
    check(&mut requests, ReplyKind::Stored { worker: "w1".into() }, Context::Unknown);
    assert_eq!((requests.next(), requests.jobs.len()), (None, 0));
}

#[test]
fn a_leap_of_the_clock_makes_no_worker_gone_for_long() {
    let mut requests = requests();
    requests.follow(at(0), &job(), FollowUp::Gone);
    requests.leapt();
    assert_eq!(requests.jobs.len(), 0);
    requests.follow(at(3600), &job(), FollowUp::Gone);
    requests.follow(at(3629), &job(), FollowUp::Gone);
    assert_eq!(requests.next(), None);
}

/// Whatever the wall clock is set to, forward or back: what is waited for takes the time that passes.
#[test]
fn a_step_of_the_wall_clock_is_no_time_that_passed() {
    for wall in [WALL.plus_seconds(4), WALL.plus_seconds(86_400), Timestamp::EPOCH] {
        let set = |seconds| Moment { wall: wall.plus_seconds(seconds), ..at(seconds) };
        let mut requests = requests();
        requests.follow(at(0), &job(), FollowUp::Gone);
        requests.follow(set(29), &job(), FollowUp::Gone);
        assert_eq!(requests.due(after(29)), Due::default());
        requests.follow(set(30), &job(), FollowUp::Gone);
        assert_eq!(requests.due(after(30)).send, send(Resend::Elsewhere));
        let workers = names(&["w1"]);
        requests.follow(set(30), &job(), FollowUp::SendAgain { workers: workers.clone(), at: set(32).wall });
        assert_eq!(requests.due(after(31)), Due::default());
        assert_eq!(requests.due(after(32)).send, send(Resend::Lost(workers)));
    }
}

#[test]
fn another_worker_only_after_it_was_gone_for_long() {
    let mut requests = requests();
    for seconds in [0, 10, 29] {
        requests.follow(at(seconds), &job(), FollowUp::Gone);
        assert_eq!(requests.due(after(seconds)), Due::default());
    }
    requests.follow(at(30), &job(), FollowUp::Gone);
    assert_eq!(requests.due(after(30)).send, send(Resend::Elsewhere));
    // Back for a moment, and gone again: it counts from then.
    requests.follow(at(40), &job(), FollowUp::Gone);
    check(&mut requests, accepted(&["w1"]), Context::Unknown);
    requests.follow(at(60), &job(), FollowUp::Gone);
    requests.follow(at(80), &job(), FollowUp::Gone);
    assert_eq!(requests.due(after(80)), Due::default());
}

#[test]
fn what_ends_is_forgotten() {
    let mut requests = requests();
    requests.posted(T0, &post(Workers::All));
    requests.follow(at(0), &job(), FollowUp::AskAgain("w1".into()));
    requests.ended(&id());
    assert_eq!((requests.posts_out(), requests.next(), requests.timers.len()), (0, None, 0));
    requests.posted(T0, &post(Workers::All));
    requests.link_lost();
    assert_eq!((requests.posts_out(), requests.next()), (0, None));
}

#[test]
fn an_answer_is_told_apart_by_whom_it_is_for() {
    let mut requests = requests();
    let (second, other) = (list(&["w2"]), Workers::One("w1".into()));
    requests.posted(T0, &post(second.clone()));
    let of =
        |target: &Workers| Reply { context: Context::Answer { target: target.clone() }, ..Reply::new(id(), refused()) };
    // A refused answer to a question of w1.
    assert_eq!(requests.context_of(T0, of(&other)).context, Context::Unknown);
    assert_eq!(requests.posts_out(), 1);
    requests.asked(T0, &poll());
    assert_eq!(requests.context_of(T0, of(&list(&["w1"]))).context, got());
    assert_eq!(requests.context_of(T0, of(&second)).context, posted(second, 0));
}

/// What leaves on a new link is answered out of a registry that may be filling still; all are asked again when it is not.
#[test]
fn all_are_asked_once_they_had_the_time_to_register() {
    let all = Poll { target: Workers::All, ..poll() };
    let named = |requests: &mut Requests, now, registry| {
        requests.asked(now, &all);
        check_at(requests, after(60), accepted(&["w1"]), Context::Get { target: Workers::All, registry });
    };
    for (age, until) in [(29, 35), (30, 6)] {
        let mut requests = requests();
        requests.link_up(after(5));
        named(&mut requests, after(5), Registry::Filling);
        requests.follow(at(5), &job(), FollowUp::AskAll);
        assert!(requests.take_unsure() && !requests.take_unsure());
        assert_eq!(requests.next(), Some(after(35)));
        requests.broker_is_as_old_as(after(6), Duration::from_secs(age));
        assert_eq!((requests.next(), requests.due(after(until - 1))), (Some(after(until)), Due::default()));
        // It need not be asked again what another question was answered.
        let mut asked = requests.due(after(until)).ask;
        assert_eq!(asked.pop(), Some(all.clone()));
        named(&mut requests, after(until), Registry::Settled);
        requests.follow(at(until), &job(), FollowUp::AskAll);
        named(&mut requests, after(until), Registry::Settled);
        assert_eq!((requests.next(), requests.jobs.len()), (None, 0));
    }
}

#[test]
fn a_lost_link_ends_no_attempt_to_reach_a_missing_worker() {
    let mut requests = requests();
    requests.posted(T0, &post(list(&["w1", "w2"])));
    requests.follow(at(0), &job(), FollowUp::SendAgain { workers: names(&["w2"]), at: at(1).wall });
    requests.link_lost();
    assert_eq!((requests.posts_out(), requests.owed_since()), (0, None));
    assert_eq!(requests.due(after(1)).send, send(Resend::Lost(names(&["w2"]))));
}

/// A GET to all.
fn poll_all() -> Poll {
    Poll { target: Workers::All, ..poll() }
}

/// The answer to a request that was late may be taken for that to a later one: it must not be believed to name all workers.
#[test]
fn a_late_answer_names_not_all() {
    let get = |registry| Context::Get { target: Workers::All, registry };
    let mut requests = requests();
    requests.link_up(T0);
    requests.asked(after(25), &poll_all());
    assert_eq!(requests.due(after(35)), Due::default());
    requests.asked(after(36), &poll_all());
    check_at(&mut requests, after(37), accepted(&["w1"]), get(Registry::Filling));
    requests.follow(at(37), &job(), FollowUp::AskAll);
    assert_eq!(requests.due(after(64)), Due::default(), "not again and again");
    assert_eq!(requests.due(after(65)).ask, [poll_all()]);
    requests.asked(after(65), &poll_all());
    check_at(&mut requests, after(66), accepted(&["w1"]), get(Registry::Settled));
    assert!(requests.jobs.is_empty());
}

/// Answers come in order, each a moment too late: the last of them, to a POST, would be taken for that to a GET.
#[test]
fn late_answers_that_follow_each_other_name_not_all() {
    let mut requests = requests();
    requests.link_up(T0);
    requests.posted(after(10), &post(Workers::All));
    assert_eq!(requests.due(after(20)).send, send(Resend::Unanswered));
    requests.posted(after(20), &post(Workers::All));
    let context = Context::Post { target: Workers::All, failed_before: 0, registry: Registry::Filling };
    check_at(&mut requests, after(21), accepted(&["w1"]), context);
    requests.asked(after(30), &poll_all());
    let context = Context::Get { target: Workers::All, registry: Registry::Filling };
    check_at(&mut requests, after(31), accepted(&["w1"]), context);
}

/// A POST that is waited for longer left when it left.
#[test]
fn a_post_that_is_waited_for_is_as_old_as_it_is() {
    let mut requests = requests();
    requests.link_up(T0);
    for seconds in [5, 15, 25] {
        requests.posted(after(seconds), &post(Workers::All));
        assert_eq!(requests.due(after(seconds + 10)).send.is_empty(), seconds == 25);
    }
    assert_eq!(requests.due(after(45)).send, send(Resend::Unanswered));
    requests.posted(after(45), &post(Workers::All));
    let context = Context::Post { target: Workers::All, failed_before: 0, registry: Registry::Filling };
    check_at(&mut requests, after(70), accepted(&["w1"]), context);
}

/// With a broker that has known its workers for long, a late answer is an answer.
#[test]
fn a_late_answer_of_a_settled_broker_names_all() {
    let mut requests = requests();
    requests.link_up(T0);
    requests.asked(after(30), &poll_all());
    assert_eq!(requests.due(after(40)), Due::default());
    assert!(requests.jobs.is_empty());
    requests.asked(after(41), &poll_all());
    let context = Context::Get { target: Workers::All, registry: Registry::Settled };
    check_at(&mut requests, after(42), accepted(&["w1"]), context);
}

/// Who was not looked for in time may have come all the same: the doubt does not end by the clock.
#[test]
fn a_doubt_outlasts_a_pass_that_hangs() {
    let mut requests = requests();
    requests.link_up(T0);
    requests.asked(after(25), &poll_all());
    requests.due(after(35));
    requests.asked(after(35), &poll_all());
    let context = Context::Get { target: Workers::All, registry: Registry::Filling };
    check_at(&mut requests, after(70), accepted(&["w1"]), context);
}

/// A late answer takes the place of one that is owed still: that comes a while after.
#[test]
fn a_doubt_is_as_long_as_the_last_answer_that_is_owed() {
    let get = |registry| Context::Get { target: Workers::All, registry };
    let mut requests = requests();
    requests.link_up(after(10));
    requests.asked(after(15), &poll_all());
    requests.due(after(25));
    requests.asked(after(25), &poll_all());
    check_at(&mut requests, after(34), accepted(&["w1"]), get(Registry::Filling));
    requests.follow(at(34), &job(), FollowUp::AskAll);
    requests.broker_is_as_old_as(after(36), Duration::from_secs(30));
    assert_eq!(requests.due(after(63)), Due::default());
    assert_eq!(requests.due(after(64)).ask, [poll_all()]);
    requests.asked(after(64), &poll_all());
    check_at(&mut requests, after(65), accepted(&["w1"]), get(Registry::Settled));
}

#[test]
fn a_doubt_ends() {
    let mut requests = requests();
    requests.link_up(T0);
    requests.asked(after(5), &poll());
    requests.due(after(15));
    assert_eq!((requests.next(), requests.jobs.len()), (Some(after(45)), 1));
    assert_eq!(requests.due(after(45)), Due::default());
    assert_eq!((requests.next(), requests.jobs.len()), (None, 0));
}
