//! Jobs that the fabric does not take at once: where they go, when they are tried again, and when that ends.

use norfab_model::{
    Claim, Context, JobStatus, Link, LiveWorkers, NewJob, Overdue, Registry, Reply, ReplyKind, Resend, RetryPolicy,
    Scope, SendAgain, SentAgain, Store, Timestamp, Workers,
};

use super::Database;
use super::support::{
    START, accepted, add, add_as, at, claim, find, id, job, live, messages, names, only, stored, tell,
};

fn any() -> NewJob {
    job().workers(Workers::Any)
}

fn one(name: &str) -> Option<Workers> {
    Some(Workers::One(name.to_owned()))
}

async fn claim_with(store: &impl Store, now: Timestamp, live: Option<&LiveWorkers>) -> norfab_model::Claimed {
    store.job_claim(Claim { live, ..Claim::new(now, &Scope::All, 10) }).await.expect("the store claims")
}

async fn refuse(store: &impl Store, now: Timestamp, job: &norfab_model::JobId) {
    tell(store, now, job, vec![ReplyKind::Refused { errors: names(&["nobody there"]) }]).await;
}

async fn again(
    store: &impl Store,
    now: Timestamp,
    job: &norfab_model::JobId,
    why: Resend,
    live: Option<&LiveWorkers>,
) -> SentAgain {
    let jobs = vec![SendAgain { job: job.clone(), why }];
    store.job_send_again(now, jobs, live).await.expect("the store looks")
}

pub(super) async fn any_goes_to_a_live_worker_and_again_to_the_same(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, any()).await.uuid;
    let unplaced = claim_with(&store, START, None).await;
    assert_eq!((unplaced.posts.len(), unplaced.unplaced), (0, 1));
    assert_eq!(find(&store, &uuid).await.status, JobStatus::New);

    let claimed = claim_with(&store, at(1), Some(&live(at(1), &["w3"]))).await;
    assert_eq!((claimed.posts.len(), claimed.unplaced), (1, 0));
    assert_eq!((Some(&claimed.posts[0].target), &claimed.posts[0].job), (one("w3").as_ref(), &uuid));
    assert_eq!(find(&store, &uuid).await.dispatch_target, one("w3"));

    // After a crash it goes to the same one, whoever is there.
    store.job_recover(at(2), &Scope::All).await.expect("recovers");
    let claimed = claim_with(&store, at(2), Some(&live(at(2), &["w4"]))).await;
    assert_eq!((Some(&claimed.posts[0].target), find(&store, &uuid).await.posts_sent), (one("w3").as_ref(), 2));
}

pub(super) async fn a_job_for_nobody_waits_or_fails(database: &impl Database) {
    let store = database.open().await;
    let immediate = add(&store, START, any()).await.uuid;
    let delayed = add(&store, START, any().at(START).timeout(5)).await.uuid;
    store.job_release_due(START, &Scope::All, Link::Up).await.expect("released");
    let nobody = claim_with(&store, START, Some(&live(START, &[]))).await;
    assert_eq!((nobody.posts.len(), nobody.failed.len(), nobody.postponed.len()), (0, 1, 1));

    let failed = find(&store, &immediate).await;
    assert_eq!((failed.status, failed.finished_at), (JobStatus::Failed, Some(START)));
    assert_eq!(failed.errors, ["no worker of service \"dummy\" is registered with the broker"]);
    let waits = find(&store, &delayed).await;
    assert_eq!((waits.status, waits.next_attempt_at, waits.deadline), (JobStatus::New, Some(at(1)), Some(at(6))));
    assert_eq!((waits.posts_sent, waits.posts_refused), (1, 1));
    assert!(messages(&store, &delayed).await.last().is_some_and(|text| text.starts_with("not delivered, tried again")));

    // Not before its time, and not by a list that is older than that.
    assert_eq!(claim_with(&store, START, Some(&live(START, &["w1"]))).await, norfab_model::Claimed::default());
    assert_eq!(claim_with(&store, at(1), Some(&live(START, &["w1"]))).await.unplaced, 1);
    assert_eq!(claim_with(&store, at(1), Some(&live(at(1), &["w1"]))).await.posts.len(), 1);
}

pub(super) async fn a_refused_job_is_tried_again_with_its_full_time(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().at(START).timeout(5)).await.uuid;
    store.job_release_due(START, &Scope::All, Link::Up).await.expect("released");
    let (mut now, mut pauses) = (START, Vec::new());
    loop {
        claim(&store, now, &uuid).await;
        refuse(&store, now, &uuid).await;
        let found = find(&store, &uuid).await;
        if found.status != JobStatus::New {
            assert_eq!((found.status, found.errors), (JobStatus::Failed, names(&["nobody there"])));
            assert_eq!((found.posts_sent, found.posts_refused, found.next_attempt_at), (10, 10, None));
            break;
        }
        let next = found.next_attempt_at.expect("another attempt");
        assert_eq!(found.deadline, Some(next.plus_seconds(5)));
        // Its deadline does not run while it waits.
        let expired = store.job_expire_due(next, &Scope::All, Overdue::All).await.expect("the store looks");
        assert!(expired.is_empty());
        pauses.push(next.since(now).as_secs());
        now = next;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 10, 10, 10, 10, 5]);
    assert_eq!(messages(&store, &uuid).await[1], "not delivered, tried again in 1.0 s: nobody there");
}

pub(super) async fn what_the_broker_does_not_confirm_is_sent_again(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, any()).await.uuid;
    claim(&store, START, &uuid).await;
    let sent = again(&store, at(10), &uuid, Resend::Unanswered, None).await;
    assert_eq!((sent.posts.len(), sent.jobs.len(), sent.left.len()), (1, 1, 0));
    assert_eq!(Some(&sent.posts[0].target), one("w7").as_ref());
    let found = find(&store, &uuid).await;
    assert_eq!((&found, found.posts_sent, found.last_poll), (&sent.jobs[0], 2, Some(at(10))));
    assert!(messages(&store, &uuid).await[0].starts_with("sent again to w7"));

    tell(&store, at(11), &uuid, vec![accepted(&["w7"])]).await;
    assert_eq!(again(&store, at(20), &uuid, Resend::Unanswered, None).await, SentAgain::default());
    assert_eq!(again(&store, at(20), &id("nobody"), Resend::Unanswered, None).await, SentAgain::default());

    // Two reasons at once: the one that is none does not hide the other.
    let list = add(&store, START, job().workers(Workers::List(names(&["w1", "w2"]))).at(START)).await.uuid;
    store.job_release_due(START, &Scope::All, Link::Up).await.expect("released");
    claim(&store, START, &list).await;
    tell(&store, at(1), &list, vec![accepted(&["w1"])]).await;
    let reasons = [Resend::Unanswered, Resend::Lost(names(&["w2"]))];
    let both = reasons.into_iter().map(|why| SendAgain { job: list.clone(), why }).collect();
    let sent = store.job_send_again(at(2), both, None).await.expect("the store looks");
    assert_eq!((sent.posts.len(), sent.jobs.len()), (1, 1));

    let overdue = add_as(&store, START, "overdue", job().timeout(5)).await.uuid;
    claim(&store, START, &overdue).await;
    let asked = again(&store, at(10), &overdue, Resend::Unanswered, None).await;
    assert_eq!((asked.posts.len(), asked.jobs[0].status), (0, JobStatus::Dispatched));
    assert_eq!(find(&store, &overdue).await, asked.jobs[0]);
}

pub(super) async fn a_worker_that_does_not_have_it_gets_it_again(database: &impl Database) {
    let store = database.open().await;
    let list = Workers::List(names(&["w1", "w2", "w3"]));
    let uuid = add(&store, START, job().workers(list)).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, at(1), &uuid, vec![accepted(&["w1", "w2", "w3"]), stored("w1")]).await;
    let sent = again(&store, at(12), &uuid, Resend::Lost(names(&["w1", "w2", "w9"])), None).await;
    assert_eq!(sent.posts[0].target, Workers::List(names(&["w2"])));
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.posts_sent, found.workers_dispatched.len()), (JobStatus::Started, 2, 3));
    assert_eq!(again(&store, at(12), &uuid, Resend::Lost(names(&["w1"])), None).await, SentAgain::default());
}

pub(super) async fn a_job_of_a_worker_that_is_gone_goes_elsewhere(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, any()).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, at(1), &uuid, vec![accepted(&["w7"])]).await;
    for nobody in [None, Some(&live(at(40), &["w7"]))] {
        assert_eq!(again(&store, at(40), &uuid, Resend::Elsewhere, nobody).await, SentAgain::default());
    }
    let sent = again(&store, at(40), &uuid, Resend::Elsewhere, Some(&live(at(40), &["w7", "w8"]))).await;
    assert_eq!(Some(&sent.posts[0].target), one("w8").as_ref());
    let found = find(&store, &uuid).await;
    assert_eq!((found.dispatch_target, found.workers_dispatched), (one("w8"), names(&["w8"])));
    // Who has it keeps it.
    tell(&store, at(41), &uuid, vec![stored("w8")]).await;
    let elsewhere = again(&store, at(80), &uuid, Resend::Elsewhere, Some(&live(at(80), &["w9"]))).await;
    assert_eq!(elsewhere, SentAgain::default());
}

pub(super) async fn what_a_list_lacks_is_tried_for_its_time(database: &impl Database) {
    let store = database.open().await;
    let list = Workers::List(names(&["w1", "ghost"]));
    let uuid = add(&store, START, job().workers(list.clone()).at(START)).await.uuid;
    store.job_release_due(START, &Scope::All, Link::Up).await.expect("released");
    claim(&store, START, &uuid).await;
    let posted = |target: &Workers, failed_before| {
        let registry = Registry::Settled;
        Context::Post { target: target.clone(), failed_before, registry }
    };
    let reply = |kind, context| vec![Reply { context, ..Reply::new(uuid.clone(), kind) }];
    let apply = async |replies| store.job_apply(at(1), RetryPolicy::default(), replies).await.expect("applied");
    let first = apply(reply(accepted(&["w1"]), posted(&list, 0))).await;
    assert_eq!(first.jobs[0].follow_ups.len(), 1);
    assert_eq!(find(&store, &uuid).await.status, JobStatus::Dispatched);
    let refused = ReplyKind::Refused { errors: Vec::new() };
    let last = apply(reply(refused, posted(&Workers::List(names(&["ghost"])), 9))).await;
    assert!(last.jobs[0].follow_ups.is_empty() && last.jobs[0].job.workers_completed.contains("ghost"));
}

pub(super) async fn a_restart_asks_for_what_may_not_start_any_more(database: &impl Database) {
    let store = database.open().await;
    for (name, new) in [("late", job().at(START).grace(10)), ("overdue", job().at(START).timeout(5)), ("fine", job())] {
        let uuid = add_as(&store, START, name, new).await.uuid;
        store.job_release_due(START, &only(&uuid), Link::Up).await.expect("released");
        claim(&store, START, &uuid).await;
    }
    let found = store.job_recover(at(20), &Scope::All).await.expect("recovers");
    assert_eq!((found.requeued, found.in_flight), (1, 2));
    for (name, status) in
        [("late", JobStatus::Dispatched), ("overdue", JobStatus::Dispatched), ("fine", JobStatus::New)]
    {
        assert_eq!(find(&store, &id(name)).await.status, status, "{name}");
    }
    let polls = store.job_take_polls(at(20), &Scope::All, at(20), 10).await.expect("the store looks");
    assert_eq!(polls.len(), 2);
}

pub(super) async fn unsent_jobs_expire_apart_from_those_in_flight(database: &impl Database) {
    let store = database.open().await;
    let (unsent, sent) =
        (add_as(&store, START, "unsent", job()).await.uuid, add_as(&store, START, "sent", job()).await.uuid);
    claim(&store, START, &sent).await;
    for scope in [only(&sent), Scope::All] {
        let due = store.job_next_due(&scope).await.expect("the store answers");
        let expected = (scope == Scope::All).then_some(at(60));
        assert_eq!((due.expire_unsent, due.expire), (expected, Some(at(60))));
    }
    assert!(store.job_expire_due(at(60), &only(&sent), Overdue::Unsent).await.expect("the store looks").is_empty());
    let first = store.job_expire_due(at(60), &Scope::All, Overdue::Unsent).await.expect("the store looks");
    assert_eq!(first.iter().map(|job| &job.uuid).collect::<Vec<_>>(), [&unsent]);
    let rest = store.job_expire_due(at(60), &Scope::All, Overdue::All).await.expect("the store looks");
    assert_eq!(rest.iter().map(|job| &job.uuid).collect::<Vec<_>>(), [&sent]);
}
