//! What a pass does: release, miss, claim, expire, ask; and what it is told of what comes next.

use norfab_model::{
    Claim, Job, JobStatus, Json, Link, NextDue, Overdue, Post, Recovered, Scope, Store, Timestamp, Workers,
};

use super::Database;
use super::support::{
    MICRO, START, accepted, add, add_as, at, claim, detail, find, id, in_status, job, json, messages, names, only,
    pass_ends, result, stored, tell,
};

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.uuid.as_str()).collect()
}

async fn release(store: &impl Store, now: Timestamp) -> (Vec<Job>, Vec<Job>) {
    let outcome = store.job_release_due(now, &Scope::All, Link::Up).await.expect("the store looks");
    (outcome.released, outcome.missed)
}

pub(super) async fn a_job_is_released_at_its_time_and_no_earlier(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().at(at(100))).await.uuid;
    let early = at(100).saturating_sub(MICRO);
    assert_eq!(release(&store, early).await, (vec![], vec![]));
    assert_eq!(find(&store, &uuid).await.status, JobStatus::Scheduled);
    let (released, missed) = release(&store, at(100)).await;
    assert_eq!((released.len(), missed.len()), (1, 0));
    assert_eq!((released[0].status, released[0].released_at), (JobStatus::New, Some(at(100))));
    assert_eq!(find(&store, &uuid).await, released[0]);
}

pub(super) async fn the_completion_deadline_starts_at_release(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().at(at(100)).timeout(60)).await.uuid;
    // A day late, and nobody minds.
    let late = at(86_400).saturating_add(MICRO);
    let (released, _) = release(&store, late).await;
    assert_eq!(released[0].deadline, Some(late.plus_seconds(60)));
    assert_eq!(find(&store, &uuid).await.deadline, Some(late.plus_seconds(60)));
    assert!(messages(&store, &uuid).await[1].starts_with("released 86300 s after its time"));
}

pub(super) async fn the_start_deadline_alone_decides_lateness(database: &impl Database) {
    let store = database.open().await;
    let last = add_as(&store, START, "just-in-time", job().at(at(100)).grace(50).timeout(1)).await.uuid;
    let (released, missed) = release(&store, at(150)).await;
    assert_eq!((ids(&released), missed.len()), (vec!["just-in-time"], 0));
    assert_eq!(find(&store, &last).await.deadline, Some(at(151)));
    let gone = add_as(&store, START, "too-late", job().at(at(100)).grace(50).timeout(604_800)).await.uuid;
    let late = at(150).saturating_add(MICRO);
    let (released, missed) = release(&store, late).await;
    assert_eq!((released.len(), ids(&missed)), (0, vec!["too-late"]));
    let gone = find(&store, &gone).await;
    assert_eq!((gone.status, gone.finished_at, gone.deadline), (JobStatus::Missed, Some(late), None));
    assert_eq!(gone, missed[0]);
    assert!(messages(&store, &gone.uuid).await[1].starts_with("missed: the start deadline"));
}

pub(super) async fn without_a_link_nothing_is_released_but_jobs_are_missed(database: &impl Database) {
    let store = database.open().await;
    let patient = add_as(&store, START, "patient", job().at(at(10))).await.uuid;
    let strict = add_as(&store, START, "strict", job().at(at(10)).grace(5)).await.uuid;
    let down = async |now| store.job_release_due(now, &Scope::All, Link::Down).await.expect("the store looks");
    let outcome = down(at(15)).await;
    assert_eq!((outcome.released.len(), outcome.missed.len()), (0, 0));
    let outcome = down(at(16)).await;
    assert_eq!((outcome.released.len(), ids(&outcome.missed)), (0, vec!["strict"]));
    assert_eq!(find(&store, &patient).await.status, JobStatus::Scheduled);
    assert_eq!(find(&store, &strict).await.status, JobStatus::Missed);
    let (released, _) = release(&store, at(17)).await;
    assert_eq!(ids(&released), ["patient"]);
}

pub(super) async fn a_job_is_released_once(database: &impl Database) {
    let (store, other) = (database.open().await, database.open().await);
    add(&store, START, job().at(at(10))).await;
    assert_eq!(release(&other, at(10)).await.0.len(), 1);
    assert_eq!(release(&store, at(10)).await, (vec![], vec![]));
    assert_eq!(release(&store, at(100)).await, (vec![], vec![]));
}

pub(super) async fn the_oldest_are_claimed_first(database: &impl Database) {
    let store = database.open().await;
    for number in 0..5 {
        add_as(&store, at(number), &format!("job-{number}"), job()).await;
    }
    let claimed = store.job_claim(Claim::new(at(5), &Scope::All, 3)).await.expect("the store claims");
    let order: Vec<_> = claimed.posts.iter().map(|post| post.job.to_string()).collect();
    assert_eq!((order, claimed.more), (names(&["job-0", "job-1", "job-2"]), true));
    let claimed = store.job_claim(Claim::new(at(5), &Scope::All, 2)).await.expect("the store claims");
    let order: Vec<_> = claimed.posts.iter().map(|post| post.job.to_string()).collect();
    assert_eq!((order, claimed.more), (names(&["job-3", "job-4"]), false));
}

pub(super) async fn a_claim_records_target_and_count(database: &impl Database) {
    let store = database.open().await;
    let new = job().workers(Workers::List(names(&["w2", "w1"]))).args(json("[1]")).kwargs(json("{\"a\":1.50}"));
    let uuid = add(&store, START, new).await.uuid;
    let claimed = store.job_claim(Claim::new(at(1), &Scope::All, 10)).await.expect("the store claims");
    assert_eq!(
        claimed.posts,
        [Post {
            job: uuid.clone(),
            service: "dummy".to_owned(),
            target: Workers::List(names(&["w2", "w1"])),
            task: "echo".to_owned(),
            args: json("[1]"),
            kwargs: json("{\"a\":1.50}"),
            timeout: 60,
            schedule_id: None,
            scheduled_for: None,
        }]
    );
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.posts_sent, found.deadline), (JobStatus::Submitting, 1, Some(at(60))));
    assert_eq!(found.dispatch_target, Some(Workers::List(names(&["w2", "w1"]))));
    assert_eq!((found.last_poll, found.started_at), (Some(at(1)), None));
}

pub(super) async fn claimed_jobs_are_not_claimed_again(database: &impl Database) {
    let (store, other) = (database.open().await, database.open().await);
    add(&store, START, job()).await;
    add(&store, START, job().at(at(60))).await;
    assert_eq!(store.job_claim(Claim::new(START, &Scope::All, 10)).await.expect("claims").posts.len(), 1);
    assert_eq!(
        other.job_claim(Claim::new(START, &Scope::All, 10)).await.expect("claims"),
        norfab_model::Claimed::default()
    );
}

pub(super) async fn a_claim_that_was_taken_back_is_as_if_never_made(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::Any)).await.uuid;
    let before = find(&store, &uuid).await;
    claim(&store, at(1), &uuid).await;
    store.job_unclaim(at(2), std::slice::from_ref(&uuid)).await.expect("the claim is taken back");
    assert_eq!(find(&store, &uuid).await, before);
    // One that may have been sent before keeps its target, and what is known of the earlier POST.
    claim(&store, at(3), &uuid).await;
    store.job_recover(at(4), &Scope::All).await.expect("it recovers");
    claim(&store, at(5), &uuid).await;
    store.job_unclaim(at(6), std::slice::from_ref(&uuid)).await.expect("the claim is taken back");
    let again = find(&store, &uuid).await;
    assert_eq!(
        (again.status, again.posts_sent, again.dispatch_target),
        (JobStatus::New, 1, Some(Workers::One("w7".to_owned())))
    );
    claim(&store, at(7), &uuid).await;
}

pub(super) async fn only_claims_are_taken_back(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::Submitting) {
        let uuid = in_status(&store, status).await;
        let before = find(&store, &uuid).await;
        store.job_unclaim(at(5), &[uuid.clone(), id("nobody")]).await.expect("answers");
        assert_eq!(find(&store, &uuid).await, before);
    }
    store.job_unclaim(at(5), &[]).await.expect("answers");
}

pub(super) async fn jobs_expire_at_their_deadline(database: &impl Database) {
    for status in [
        JobStatus::New,
        JobStatus::Submitting,
        JobStatus::Dispatched,
        JobStatus::Started,
        JobStatus::WaitingClientInput,
    ] {
        let store = database.open().await;
        // Added 20 s before the start, with 60 s.
        let uuid = in_status(&store, status).await;
        let early = at(40).saturating_sub(MICRO);
        assert!(store.job_expire_due(early, &Scope::All, Overdue::All).await.expect("looks").is_empty(), "{status}");
        let expired = store.job_expire_due(at(40), &Scope::All, Overdue::All).await.expect("looks");
        assert_eq!(ids(&expired), [uuid.as_str()], "{status}");
        let found = detail(&store, &uuid).await;
        assert_eq!((found.job.status, found.job.finished_at), (JobStatus::Stale, Some(at(40))));
        assert_eq!(found.job, expired[0]);
        assert!(found.job.pending_inputs.is_empty() && found.job.errors.len() == 1);
        let result: serde_json::Value = found.results["w1"].to().expect("JSON");
        assert_eq!((&result["status"], &result["failed"]), (&"timeout".into(), &true.into()));
        assert!(messages(&store, &uuid).await.last().expect("an event").starts_with("the deadline passed"));
        assert!(store.job_expire_due(at(41), &Scope::All, Overdue::All).await.expect("looks").is_empty());
    }
}

pub(super) async fn an_expired_job_keeps_the_results_that_came(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::All)).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, at(1), &uuid, vec![accepted(&["w1", "w2"]), result("w1", "{\"result\":1.0}")]).await;
    store.job_expire_due(at(60), &Scope::All, Overdue::All).await.expect("looks");
    let found = detail(&store, &uuid).await;
    assert_eq!(found.results["w1"].as_str(), "{\"result\":1.0}");
    assert!(found.results["w2"].as_str().contains("timeout") && found.results.len() == 2);
}

pub(super) async fn waiting_jobs_do_not_expire(database: &impl Database) {
    let store = database.open().await;
    add(&store, START, job().at(at(10)).timeout(1)).await;
    assert!(store.job_expire_due(at(1_000_000), &Scope::All, Overdue::All).await.expect("looks").is_empty());
}

/// A job that the broker handed to `w1`, asked for last at `polled`.
async fn dispatched(store: &impl Store, name: &str, polled: Timestamp) {
    let uuid = add_as(store, START, name, job()).await.uuid;
    claim(store, polled, &uuid).await;
    tell(store, polled, &uuid, vec![accepted(&["w1"])]).await;
}

pub(super) async fn the_longest_ago_are_asked_for_first(database: &impl Database) {
    let store = database.open().await;
    for (name, polled) in [("b", 2), ("a", 1), ("d", 4), ("c", 3)] {
        dispatched(&store, name, at(polled)).await;
    }
    add(&store, START, job()).await;
    let submitting = add_as(&store, START, "submitting", job()).await.uuid;
    claim(&store, START, &submitting).await;
    let take = async |now, before, limit| {
        let polls = store.job_take_polls(now, &Scope::All, before, limit).await.expect("the store looks");
        polls.into_iter().map(|poll| poll.job.to_string()).collect::<Vec<_>>()
    };
    assert!(take(at(5), at(1).saturating_sub(MICRO), 10).await.is_empty());
    assert_eq!(take(at(5), at(3), 2).await, ["a", "b"]);
    assert_eq!(take(at(5), at(3), 10).await, ["c"]);
    assert_eq!(find(&store, &id("c")).await.last_poll, Some(at(5)));
    assert_eq!(take(at(6), at(5), 10).await, ["d", "b", "a", "c"]);
}

pub(super) async fn only_outstanding_workers_are_asked(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::All)).await.uuid;
    claim(&store, START, &uuid).await;
    tell(&store, START, &uuid, vec![accepted(&["w1", "w2", "w3"]), result("w2", "{}")]).await;
    let polls = store.job_take_polls(at(9), &Scope::All, at(8), 10).await.expect("the store looks");
    assert_eq!(polls[0].target, Workers::List(names(&["w1", "w3"])));
    assert_eq!((polls[0].service.as_str(), &polls[0].job), ("dummy", &uuid));
}

pub(super) async fn a_clock_set_back_brings_instants_back(database: &impl Database) {
    let store = database.open().await;
    let unsent = add(&store, at(7200), job()).await.uuid;
    let sent = add(&store, at(7200), job()).await.uuid;
    claim(&store, at(7200), &sent).await;
    dispatched(&store, "running", at(7200)).await;
    let delayed = add(&store, at(7200), job().at(at(9000))).await;
    assert_eq!(store.job_realign(at(7201)).await.expect("it looks"), 0);
    assert_eq!(store.job_realign(START).await.expect("it looks"), 3);
    for uuid in [&unsent, &sent, &id("running")] {
        let found = find(&store, uuid).await;
        assert_eq!(found.deadline, Some(at(60)), "{uuid}");
        assert!(found.last_poll.is_none_or(|at| at <= START), "{uuid}");
    }
    assert_eq!(find(&store, &delayed.uuid).await, delayed);
    assert_eq!(store.job_realign(START).await.expect("it looks"), 0);
}

pub(super) async fn a_restart_sends_claims_again(database: &impl Database) {
    let store = database.open().await;
    let uuid = add(&store, START, job().workers(Workers::Any)).await.uuid;
    claim(&store, START, &uuid).await;
    dispatched(&store, "running", START).await;
    store.close().await;
    let store = database.open().await;
    let recovered = store.job_recover(at(1), &Scope::All).await.expect("it recovers");
    assert_eq!(recovered, Recovered { requeued: 1, in_flight: 1 });
    let found = find(&store, &uuid).await;
    assert_eq!((found.status, found.posts_sent, found.deadline), (JobStatus::New, 1, Some(at(60))));
    let chosen = Workers::One("w7".to_owned());
    assert_eq!(found.dispatch_target.as_ref(), Some(&chosen));
    assert_eq!(find(&store, &id("running")).await.last_poll, None);
    assert_eq!(store.job_next_due(&Scope::All).await.expect("answers").polled, Some(Timestamp::EPOCH));
    let claimed = store.job_claim(Claim::new(at(2), &Scope::All, 10)).await.expect("the store claims");
    assert_eq!((claimed.posts.len(), &claimed.posts[0].target), (1, &chosen));
    assert_eq!(find(&store, &uuid).await.posts_sent, 2);
    assert_eq!(store.job_recover(at(3), &Scope::Jobs(vec![])).await.expect("it recovers"), Recovered::default());
}

pub(super) async fn only_what_no_worker_can_have_is_given_up(database: &impl Database) {
    let store = database.open().await;
    let mut all = Vec::new();
    for status in JobStatus::ALL {
        all.push(in_status(&store, status).await);
    }
    all.push(add_as(&store, START, "not-due", job().at(at(100))).await.uuid);
    let sent = add_as(&store, START, "sent-before", job()).await.uuid;
    claim(&store, START, &sent).await;
    store.job_recover(START, &only(&sent)).await.expect("it recovers");
    all.push(sent);
    let given_up = store.job_give_up(START, &all, "the fabric was not reached").await.expect("answers");
    assert_eq!(ids(&given_up), ["in-SCHEDULED", "in-NEW"]);
    for job in given_up {
        assert_eq!((job.status, job.finished_at), (JobStatus::Failed, Some(START)));
        assert_eq!(job.errors, ["the fabric was not reached"]);
        assert_eq!(find(&store, &job.uuid).await, job);
        let told = messages(&store, &job.uuid).await;
        assert_eq!(told.last().expect("an event"), "gave up: the fabric was not reached");
    }
}

pub(super) async fn next_due_tells_the_nearest_of_each_kind(database: &impl Database) {
    let store = database.open().await;
    let next = async || store.job_next_due(&Scope::All).await.expect("answers");
    assert_eq!(next().await, NextDue::default());
    add(&store, START, job().at(at(200)).grace(10)).await;
    add(&store, START, job().at(at(100))).await;
    let waiting = NextDue { release: Some(at(100)), miss: Some(at(210)), ..NextDue::default() };
    assert_eq!(next().await, waiting);
    let uuid = add(&store, START, job().timeout(50)).await.uuid;
    assert_eq!(next().await, NextDue { expire_unsent: Some(at(50)), send: Some(Timestamp::EPOCH), ..waiting });
    claim(&store, at(1), &uuid).await;
    assert_eq!(next().await, NextDue { expire: Some(at(50)), ..waiting }, "a claim that is under way");
    tell(&store, at(2), &uuid, vec![accepted(&["w1"])]).await;
    assert_eq!(next().await, NextDue { expire: Some(at(50)), polled: Some(at(1)), ..waiting });
    store.job_take_polls(at(9), &Scope::All, at(9), 10).await.expect("the store looks");
    assert_eq!(next().await.polled, Some(at(9)));
    tell(&store, at(10), &uuid, vec![result("w1", "{}")]).await;
    assert_eq!(next().await, waiting);
}

pub(super) async fn nothing_is_due_after_a_pass(database: &impl Database) {
    let store = database.open().await;
    for status in JobStatus::ALL {
        in_status(&store, status).await;
    }
    for number in 0..12_i64 {
        let new = add_as(&store, START, &format!("new-{number}"), job().timeout(30 + number.unsigned_abs())).await;
        let delayed = job().at(at(number * 10)).timeout(20);
        let delayed = if number % 2 == 0 { delayed.grace(1 + number.unsigned_abs()) } else { delayed };
        add_as(&store, START, &format!("delayed-{number}"), delayed).await;
        if number % 3 == 0 {
            claim(&store, START, &new.uuid).await;
            tell(&store, START, &new.uuid, vec![stored("w1")]).await;
        }
    }
    let guest = Scope::Jobs((0..4).map(|number| id(&format!("delayed-{number}"))).collect());
    for second in 0..150 {
        let now = if second % 2 == 0 { at(second) } else { at(second).saturating_add(MICRO) };
        let link = if second % 7 < 3 { Link::Up } else { Link::Down };
        pass_ends(&store, &guest, now, link).await;
        pass_ends(&store, &Scope::All, now, link).await;
    }
}

pub(super) async fn a_claim_is_bounded_by_its_payloads(database: &impl Database) {
    let store = database.open().await;
    let large = json(&format!("{{\"text\":\"{}\"}}", "x".repeat(15 << 20)));
    for number in 0..6 {
        add_as(&store, START, &format!("large-{number}"), job().kwargs(large.clone())).await;
    }
    let (mut claimed, mut calls) = (Vec::new(), 0);
    loop {
        let batch = store.job_claim(Claim::new(at(1), &Scope::All, 100)).await.expect("the store claims");
        let bytes: usize = batch.posts.iter().map(|post| post.kwargs.as_str().len()).sum();
        assert!(!batch.posts.is_empty() && bytes < (64 << 20) + (16 << 20), "{bytes}");
        claimed.extend(batch.posts.into_iter().map(|post| post.job.to_string()));
        calls += 1;
        if !batch.more {
            break;
        }
    }
    assert_eq!(claimed, (0..6).map(|number| format!("large-{number}")).collect::<Vec<_>>());
    assert!(calls > 1, "all of it came at once");
}

pub(super) async fn a_guest_serves_its_own_jobs_only(database: &impl Database) {
    let store = database.open().await;
    add_as(&store, START, "theirs", job()).await;
    add_as(&store, START, "their-delayed", job().at(at(1)).grace(1)).await;
    dispatched(&store, "their-running", START).await;
    let ours = add_as(&store, START, "ours", job().at(at(1)).grace(1)).await.uuid;
    let scope = only(&ours);
    let nobody = Scope::Jobs(vec![id("nobody")]);

    assert_eq!(store.job_next_due(&nobody).await.expect("answers"), NextDue::default());
    let next = store.job_next_due(&scope).await.expect("answers");
    assert_eq!(next, NextDue { release: Some(at(1)), miss: Some(at(2)), ..NextDue::default() });
    assert!(store.job_release_due(at(1), &nobody, Link::Up).await.expect("looks").released.is_empty());
    assert!(store.job_release_due(at(9), &nobody, Link::Down).await.expect("looks").missed.is_empty());
    let released = store.job_release_due(at(1), &scope, Link::Up).await.expect("looks").released;
    assert_eq!(ids(&released), ["ours"]);
    let claimed = store.job_claim(Claim::new(at(1), &scope, 10)).await.expect("the store claims");
    assert_eq!((claimed.posts.len(), &claimed.posts[0].job, claimed.more), (1, &ours, false));
    assert_eq!(store.job_recover(at(1), &nobody).await.expect("it recovers"), Recovered::default());
    tell(&store, at(1), &ours, vec![stored("w1")]).await;
    let polls = store.job_take_polls(at(20), &scope, at(20), 10).await.expect("looks");
    assert_eq!((polls.len(), &polls[0].job), (1, &ours));
    assert_eq!(ids(&store.job_expire_due(at(500), &scope, Overdue::All).await.expect("looks")), ["ours"]);
    for theirs in ["theirs", "their-delayed", "their-running"] {
        assert!(!find(&store, &id(theirs)).await.status.is_terminal(), "{theirs}");
    }
    assert_eq!(detail(&store, &id("theirs")).await.kwargs, Json::empty_object());
}
