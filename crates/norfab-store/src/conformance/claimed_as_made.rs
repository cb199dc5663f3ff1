//! What is made of due schedules can be claimed in the same call: it is as if it had been claimed in the next one.

use norfab_model::{
    Claim, Claimed, JobId, JobStatus, Materialize, Materialized, NewSchedule, Post, ScheduleStore, Scope, Store,
    Timestamp, Workers,
};

use super::Database;
use super::support::{START, add, add_schedule, at, detail, every, find, job, json, limits, live, names};

/// A look at all that is due and a claim behind it, by a second call where the store has left it to one.
async fn pass<S: Store + ScheduleStore>(store: &S, claim: Claim<'_>) -> (Materialized, Claimed) {
    let request = Materialize {
        now: claim.now,
        limits: &limits(),
        budget_left: 100,
        batch: 1000,
        seen: &[],
        claim: Some(&claim),
    };
    let mut made = store.schedule_materialize_due(request).await.expect("the store materialises");
    let claimed = match made.claimed.take() {
        Some(claimed) => claimed,
        None => store.job_claim(claim).await.expect("the store claims"),
    };
    (made, claimed)
}

fn all(now: Timestamp, limit: u32) -> Claim<'static> {
    Claim::new(now, &Scope::All, limit)
}

fn jobs(posts: &[Post]) -> Vec<&JobId> {
    posts.iter().map(|post| &post.job).collect()
}

pub(super) async fn what_is_made_is_claimed_with_it(database: &impl Database) {
    let store = database.open().await;
    let new = every(60).grace(20).timeout(30).args(json("[1]")).kwargs(json(r#"{"k":"v"}"#));
    let schedule = add_schedule(&store, START, new).await;
    let (made, claimed) = pass(&store, all(at(60), 10)).await;
    assert_eq!((made.created.len(), made.created[0].status), (1, JobStatus::New), "as it was made");
    let uuid = made.created[0].uuid.clone();
    let post = Post {
        job: uuid.clone(),
        service: "dummy".to_owned(),
        target: Workers::One("w1".to_owned()),
        task: "echo".to_owned(),
        args: json("[1]"),
        kwargs: json(r#"{"k":"v"}"#),
        timeout: 30,
        schedule_id: Some(schedule.uuid.clone()),
        scheduled_for: Some(at(60)),
    };
    assert_eq!(claimed, Claimed { posts: vec![post], ..Claimed::default() });
    let found = detail(&store, &uuid).await;
    assert_eq!((found.args, found.kwargs), (json("[1]"), json(r#"{"k":"v"}"#)));
    let job = found.job;
    assert_eq!((job.status, job.posts_sent, job.posts_refused), (JobStatus::Submitting, 1, 0));
    assert_eq!((job.dispatch_target, job.last_poll), (Some(Workers::One("w1".to_owned())), Some(at(60))));
    assert_eq!((job.deadline, job.released_at, job.started_at), (Some(at(90)), Some(at(60)), None));
    let again = store.job_claim(all(at(60), 10)).await.expect("the store claims");
    assert_eq!(again, Claimed::default(), "once");
}

pub(super) async fn what_was_new_before_is_claimed_before_it(database: &impl Database) {
    let store = database.open().await;
    add_schedule(&store, START, every(60)).await;
    let older = add(&store, at(60), job()).await.uuid;
    let (made, claimed) = pass(&store, all(at(60), 1)).await;
    assert_eq!((jobs(&claimed.posts), claimed.more), (vec![&older], true));
    let first = &made.created[0].uuid;
    assert_eq!(find(&store, first).await.status, JobStatus::New);
    let (made, claimed) = pass(&store, all(at(120), 10)).await;
    assert!(made.created.is_empty(), "the first of its jobs is unfinished");
    assert_eq!((jobs(&claimed.posts), claimed.more), (vec![first], false));
}

pub(super) async fn as_many_are_claimed_as_may_be(database: &impl Database) {
    let store = database.open().await;
    for _ in 0..3 {
        add_schedule(&store, START, every(60)).await;
    }
    let (made, claimed) = pass(&store, all(at(60), 2)).await;
    let made: Vec<_> = made.created.iter().map(|job| &job.uuid).collect();
    assert_eq!((jobs(&claimed.posts), claimed.more), (made[..2].to_vec(), true));
    let rest = store.job_claim(all(at(60), 2)).await.expect("the store claims");
    assert_eq!((jobs(&rest.posts), rest.more), (made[2..].to_vec(), false));
}

/// A schedule for any worker, and one for a certain one.
async fn for_any_and_one(store: &impl ScheduleStore) {
    add_schedule(store, START, every(60).workers(Workers::Any)).await;
    add_schedule(store, START, every(60)).await;
}

pub(super) async fn what_cannot_be_sent_is_made_all_the_same(database: &impl Database) {
    let store = database.open().await;
    for_any_and_one(&store).await;
    let (made, claimed) = pass(&store, all(at(60), 10)).await;
    assert_eq!((made.created.len(), claimed.posts.len(), claimed.unplaced), (2, 1, 1), "who is alive is not known");
    let of_any = find(&store, &made.created[0].uuid).await;
    assert_eq!((of_any.status, of_any.posts_sent, of_any.dispatch_target), (JobStatus::New, 0, None));

    let (_, claimed) = pass(&store, Claim { live: Some(&live(at(60), &[])), ..all(at(60), 10) }).await;
    assert_eq!((claimed.posts.len(), claimed.postponed.len()), (0, 1), "nobody is there");
    assert_eq!((claimed.postponed[0].status, claimed.postponed[0].posts_refused), (JobStatus::New, 1));
}

pub(super) async fn a_worker_is_chosen_for_what_is_made(database: &impl Database) {
    let store = database.open().await;
    for_any_and_one(&store).await;
    let (made, claimed) = pass(&store, Claim { live: Some(&live(at(60), &["w7"])), ..all(at(60), 10) }).await;
    let targets: Vec<_> = claimed.posts.iter().map(|post| post.target.clone()).collect();
    assert_eq!(targets, ["w7", "w1"].map(|name| Workers::One(name.to_owned())));
    for (job, target) in made.created.iter().zip(targets) {
        assert_eq!(find(&store, &job.uuid).await.dispatch_target, Some(target));
    }
    let several = Workers::List(names(&["w2", "w3"]));
    add_schedule(&store, at(60), every(60).workers(several.clone())).await;
    let (made, claimed) = pass(&store, all(at(120), 10)).await;
    assert_eq!((made.created.len(), &claimed.posts[0].target), (1, &several));
}

pub(super) async fn what_is_missed_is_not_claimed(database: &impl Database) {
    let store = database.open().await;
    let late: NewSchedule = every(60).grace(5);
    add_schedule(&store, START, late).await;
    add_schedule(&store, START, every(100)).await;
    let (made, claimed) = pass(&store, all(at(110), 10)).await;
    assert_eq!((made.missed.len(), made.created.len()), (1, 1));
    assert_eq!(jobs(&claimed.posts), [&made.created[0].uuid]);
    let nothing_new = pass(&store, all(at(130), 10)).await;
    assert_eq!((nothing_new.0.missed.len(), nothing_new.1), (1, Claimed::default()));
}

pub(super) async fn a_claim_without_a_due_schedule_is_a_claim(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job()).await.uuid;
    let (made, claimed) = pass(&store, all(at(1), 10)).await;
    assert_eq!((made, jobs(&claimed.posts)), (Materialized::default(), vec![&uuid]));
}

pub(super) async fn many_and_large_ones_are_claimed_too(database: &impl Database) {
    let store = database.open().await;
    // Each number is another, so that it stays large however it is stored.
    let numbers = |count: u64| (0..count).map(|n| n.wrapping_mul(6_364_136_223_846_793_005).to_string());
    let large = numbers(10_000).collect::<Vec<_>>().join(",");
    let (args, kwargs) = (json(&format!("[{large}]")), json(&format!("{{\"k\":[{large}]}}")));
    add_schedule(&store, START, every(60).args(args.clone())).await;
    add_schedule(&store, START, every(60).kwargs(kwargs.clone())).await;
    let (_, claimed) = pass(&store, all(at(60), 10)).await;
    let [first, second] = &claimed.posts[..] else { panic!("{} posts", claimed.posts.len()) };
    assert_eq!((&first.args, second.args.as_str()), (&args, "[]"));
    assert_eq!((first.kwargs.as_str(), &second.kwargs), ("{}", &kwargs));
    for _ in 0..20 {
        add_schedule(&store, at(60), every(10)).await;
    }
    let (made, claimed) = pass(&store, all(at(70), 100)).await;
    assert_eq!((made.created.len(), claimed.posts.len(), claimed.more), (20, 20, false));
}
