//! Wrong keys and mechanisms against the real broker: noticed, and said in words that help.

use std::time::Duration;

use crate::common::{builder, within};
use norfab_client::{ClientError, Health, Json, LinkState, Role, Security};
use norfab_tests::Peer;

/// The public half of a pair that nobody has.
const STRANGER: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";

async fn check(broker: norfab_tests::Security, client: Security, part: &str) {
    let Some(peer) = Peer::builder().security(broker).start().await else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    let client = norfab_client::Client::builder()
        .database(folder.path().join("jobs.db"))
        .endpoint(peer.about().endpoint.clone())
        .security(client)
        .build()
        .await
        .expect("opens");
    let mut health = client.watch_health().expect("an owner dispatches");
    let is_said = |health: &Health| matches!(&health.link, LinkState::Down { reason } if reason.contains(part));
    within(health.wait_for(is_said)).await.expect("goes on");
    // Whoever asks something is told the same.
    let answer = within(client.mmi("show_workers", Json::empty_object(), Duration::from_millis(100))).await;
    let Err(ClientError::Unreachable { reason }) = answer else { panic!("{answer:?}") };
    assert!(reason.contains(part), "{reason}");
    client.shutdown().await;
}

fn curve(key: &str) -> Security {
    Security::Curve { shared_key: Some(key.to_owned()) }
}

#[tokio::test]
async fn another_key() {
    check(norfab_tests::Security::Curve, curve(STRANGER), "another key").await;
}

#[tokio::test]
async fn no_curve_towards_a_curve_broker() {
    check(norfab_tests::Security::Curve, Security::Plain, "demands CURVE").await;
}

#[tokio::test]
async fn curve_towards_a_plain_broker() {
    check(norfab_tests::Security::Plain, curve(STRANGER), "has no CURVE").await;
}

#[tokio::test]
async fn a_dead_broker_is_named_by_a_guest_and_its_job_fails() {
    let Some(peer) = Peer::builder().start().await else { return };
    peer.kill_broker().await;
    let client = builder(&peer).role(Role::Guest).connect_timeout(Duration::from_secs(1)).build().await.expect("opens");
    let mut handle = client.submit_job(crate::common::job("echo")).await.expect("added");
    let outcome = crate::common::outcome(&mut handle).await;
    let norfab_client::Outcome::Failed { errors, .. } = outcome else { panic!("{outcome:?}") };
    assert!(errors.concat().contains("cannot be reached"), "{errors:?}");
    assert!(within(client.unreachable()).await.contains("cannot be reached"));
    assert_eq!(handle.job().await.expect("there").posts_sent, 0);
    client.shutdown().await;
}
