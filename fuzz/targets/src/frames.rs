//! Messages as they come from the socket: those of a broker to a client, and those of a client to a broker.

use norfab_model::{
    Claim, JobId, Limits, LiveWorkers, NewJob, RetryPolicy, Scope, Store, Timestamp, Workers, check_payload,
};
use norfab_nfp::{BrokerMessage, ClientMessage, Frames, Meaning};
use norfab_store::MemoryStore;

const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);
/// What stands between two frames of an input, so that kept inputs can be read.
const SEPARATOR: u8 = 0x1e;
/// A text of the input as long as this would not be in a `Debug` by chance.
const LONG: usize = 100;

/// Reads a message both ways, writes it again, and lets a job live through what it says.
pub fn frames(data: &[u8]) {
    let frames: Frames = data.split(|byte| *byte == SEPARATOR).map(<[u8]>::to_vec).collect();
    if let Ok(message) = ClientMessage::from_frames(frames.clone()) {
        let again = ClientMessage::from_frames(message.clone().into_frames());
        assert_eq!(again.as_ref(), Ok(&message), "a message of a client reads as it was written");
    }
    let message = match BrokerMessage::from_frames(frames) {
        Ok(message) => message,
        Err(malformed) => return assert!(malformed.to_string().len() < 8 * LONG, "an error stays short"),
    };
    let again = BrokerMessage::from_frames(message.clone().into_frames());
    assert_eq!(again.as_ref(), Ok(&message), "a message of the broker reads as it was written");
    let payload = message.payload.as_str();
    let said_by_others = message.service.contains(payload) || message.uuid.as_str().contains(payload);
    if payload.len() >= LONG && !said_by_others {
        assert!(!format!("{message:?}").contains(payload), "payloads do not show");
    }
    let uuid = message.uuid.clone();
    if let Ok(Meaning::Replies(replies)) = message.meaning() {
        crate::wait(live(&uuid, replies));
    }
}

/// Whatever a fabric says of a job, all that is told later is taken too, and an ended job stays as it ended.
async fn live(uuid: &JobId, replies: Vec<norfab_model::Reply>) {
    let store = MemoryStore::new();
    let new = NewJob::new("dummy", "echo").workers(Workers::Any).timeout(60);
    let Ok(valid) = Limits::default().check_job(NOW, NewJob { id: Some(uuid.clone()), ..new }) else { return };
    store.job_add(NOW, &valid).await.expect("the job is added");
    let answer = serde_json::json!([{ "name": "dummy-worker-1", "service": "dummy", "status": "alive" }]);
    let live = LiveWorkers::from_answer(NOW, &answer.into()).expect("an answer");
    let claim = Claim { live: Some(&live), ..Claim::new(NOW, &Scope::All, 10) };
    store.job_claim(claim).await.expect("the job is claimed");

    let policy = RetryPolicy::default();
    for _ in 0..2 {
        store.job_apply(NOW, policy, replies.clone()).await.expect("replies are taken");
        let before = store.job_find(uuid).await.expect("it is found").expect("it is there");
        store.job_apply(NOW, policy, replies.clone()).await.expect("replies are taken again");
        let after = store.job_find(uuid).await.expect("it is found").expect("it is there");
        if before.status.is_terminal() {
            assert_eq!(before, after, "an ended job stays");
        }
    }
    let detail = store.job_detail(uuid).await.expect("it is read").expect("it is there");
    for result in detail.results.values() {
        // What came over the wire can be written to the wire.
        let _ = check_payload(result);
    }
}
