//! Answers to workers' questions, left by a handle that does not dispatch for the one that does.

use norfab_model::{InputAnswer, JobId, JobStatus, Scope, Store, StoreError, StoredAnswer, Timestamp};

use super::Database;
use super::support::{START, add_as, at, claim, find, id, in_status, job, json, only, question, result, tell};

async fn asking(store: &impl Store, name: &str, input: &str) -> JobId {
    let uuid = add_as(store, START, name, job()).await.uuid;
    claim(store, START, &uuid).await;
    ask(store, &uuid, input).await;
    uuid
}

async fn ask(store: &impl Store, job: &JobId, input: &str) {
    let asks = norfab_model::ReplyKind::WaitingInput { worker: "w1".to_owned(), request: question(input) };
    tell(store, START, job, vec![asks]).await;
}

async fn leave(store: &impl Store, now: Timestamp, job: &JobId, answer: &InputAnswer) {
    store.answer_add(now, job, "w1", answer).await.expect("the answer is stored");
}

async fn take(store: &impl Store, scope: &Scope, limit: u32) -> Vec<StoredAnswer> {
    store.answer_take(scope, limit).await.expect("the store answers")
}

fn stored(job: &JobId, answer: &InputAnswer) -> StoredAnswer {
    StoredAnswer { job: job.clone(), service: "dummy".to_owned(), worker: "w1".to_owned(), answer: answer.clone() }
}

pub(super) async fn answers_are_taken_once_in_their_order(database: &impl Database) {
    let (ours, theirs) = (database.open().await, database.open().await);
    assert!(take(&ours, &Scope::All, 10).await.is_empty());
    let (one, two) = (asking(&ours, "one", "q1").await, asking(&ours, "two", "q2").await);
    let yes = question("q2").answer(json(r#"{"n":1.50,"text":"zażółć ☃"}"#));
    let no = InputAnswer { metadata: json(r#"{"why":"late"}"#), ..question("q1").cancel() };
    let mark = ours.change_mark().await.expect("a mark");
    leave(&theirs, at(1), &two, &yes).await;
    assert_ne!(ours.change_mark().await.expect("a mark"), mark, "an answer is news");
    leave(&theirs, at(2), &one, &no).await;
    leave(&theirs, at(3), &two, &yes).await;
    assert!(take(&ours, &Scope::All, 0).await.is_empty());
    assert_eq!(take(&ours, &Scope::All, 2).await, [stored(&two, &yes), stored(&one, &no)]);
    assert_eq!(take(&ours, &Scope::All, 2).await, [stored(&two, &yes)]);
    assert!(take(&theirs, &Scope::All, 2).await.is_empty());
    assert_eq!(find(&ours, &one).await.status, JobStatus::WaitingClientInput, "the worker says when it has it");
}

pub(super) async fn answers_to_closed_questions_are_dropped(database: &impl Database) {
    let store = database.open().await;
    let answer = question("q1").answer(json("true"));
    for status in JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::WaitingClientInput) {
        let uuid = in_status(&store, status).await;
        leave(&store, at(1), &uuid, &answer).await;
    }
    let ended = asking(&store, "ended", "q1").await;
    leave(&store, at(1), &ended, &answer).await;
    tell(&store, at(2), &ended, vec![result("w1", "{}")]).await;
    let moved_on = asking(&store, "moved-on", "q2").await;
    leave(&store, at(1), &moved_on, &answer).await;
    let open = asking(&store, "open", "q1").await;
    store.answer_add(at(1), &open, "w2", &answer).await.expect("the answer is stored");
    leave(&store, at(1), &open, &answer).await;
    assert_eq!(take(&store, &Scope::All, 100).await, [stored(&open, &answer)]);
    // What was dropped does not come back when the same question is asked once more.
    ask(&store, &moved_on, "q1").await;
    assert!(take(&store, &Scope::All, 100).await.is_empty());
}

pub(super) async fn answers_need_a_job(database: &impl Database) {
    let store = database.open().await;
    let refused = store.answer_add(START, &id("nobody"), "w1", &question("q1").cancel()).await;
    assert!(matches!(refused, Err(StoreError::NoSuchJob(of)) if of == id("nobody")));
}

pub(super) async fn a_guest_takes_its_own_answers_only(database: &impl Database) {
    let store = database.open().await;
    let (ours, theirs) = (asking(&store, "ours", "q1").await, asking(&store, "theirs", "q1").await);
    let answer = question("q1").answer(json("true"));
    for uuid in [&theirs, &ours, &theirs, &ours] {
        leave(&store, at(1), uuid, &answer).await;
    }
    assert!(take(&store, &only(&id("nobody")), 10).await.is_empty());
    assert_eq!(take(&store, &only(&ours), 10).await, [stored(&ours, &answer), stored(&ours, &answer)]);
    let all = Scope::Jobs(vec![ours, theirs.clone(), theirs.clone()]);
    assert_eq!(take(&store, &all, 10).await, [stored(&theirs, &answer), stored(&theirs, &answer)]);
}

pub(super) async fn what_is_dropped_makes_room(database: &impl Database) {
    let store = database.open().await;
    let open = asking(&store, "open", "q2").await;
    let (old, new) = (question("q1").answer(json("1")), question("q2").answer(json("2")));
    for answer in [&old, &old, &old, &new, &old, &new, &new] {
        leave(&store, at(1), &open, answer).await;
    }
    assert_eq!(take(&store, &Scope::All, 2).await, [stored(&open, &new), stored(&open, &new)]);
    assert_eq!(take(&store, &Scope::All, 2).await, [stored(&open, &new)]);
}
