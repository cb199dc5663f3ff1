//! Wrong keys and mechanisms against the real broker: noticed, and said in words that help.

use std::time::Duration;

use norfab_client::{ClientError, Health, Json, LinkState, Role, Security};
use norfab_tests::{Peer, Program, Relay};

use crate::common::{builder, now, within};

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
async fn the_program_and_another_key() {
    check_program(norfab_tests::Security::Curve, norfab_tests::Security::Curve, "another key").await;
}

#[tokio::test]
async fn the_program_without_curve_towards_a_curve_broker() {
    check_program(norfab_tests::Security::Curve, norfab_tests::Security::Plain, "demands CURVE").await;
}

#[tokio::test]
async fn the_program_with_curve_towards_a_plain_broker() {
    check_program(norfab_tests::Security::Plain, norfab_tests::Security::Curve, "has no CURVE").await;
}

/// What is wrong is said in time, by a command and by the owner. The owner goes on trying, without haste, until the broker
/// that it was told of is there.
async fn check_program(wrong: norfab_tests::Security, right: norfab_tests::Security, part: &str) {
    let Some(wrong) = Peer::builder().security(wrong).start().await else { return };
    let Some(right) = Peer::builder().security(right).start().await else { return };
    let relay = Relay::to(&wrong.about().endpoint).await;
    let folder = tempfile::tempdir().expect("temporary folder");
    let inventory = inventory(relay.endpoint(), right.about().public_key.as_deref());
    std::fs::write(folder.path().join("inventory.yaml"), inventory).expect("written");
    let program = Program::new(env!("CARGO_BIN_EXE_norfab-under-test"), folder.path(), "rust");

    let begin = now();
    let workers = program.run(&["workers", "--json"]).await;
    let took = now().since(begin);
    println!("Said after {took:?}: {}", workers.stdout);
    assert!(took < SAID_WITHIN, "said too late");
    let error = &workers.json()["error"];
    assert_eq!((workers.code, error["kind"].as_str()), (Some(5), Some("unreachable")), "{workers:?}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{workers:?}");

    let begin = now();
    let mut owner = program.spawn_owner();
    let said = owner.logged(part).await;
    let took = now().since(begin);
    println!("Logged after {took:?}: {said}");
    assert!(said.contains("The link to the broker is down"), "{said}");
    assert!(took < SAID_WITHIN, "said too late");
    does_not_spin(owner.pid().expect("it goes on")).await;
    let mut log = owner.log();
    let told = log.len();
    log.dedup_by_key(|line| line.split_once(' ').map(|(_, said)| said.to_owned()));
    assert!(told < 10 && log.len() == told, "it says the same again and again: {log:?}");

    relay.turn_to(&right.about().endpoint);
    owner.ready().await;
    let ended = program.run(&["job", "run", "dummy", "count", "--json"]).await;
    assert_eq!((ended.code, ended.json()["status"].as_str()), (Some(0), Some("COMPLETED")), "{ended:?}");
    owner.stop().await;
}

const SAID_WITHIN: Duration = Duration::from_secs(5);

fn inventory(endpoint: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!("  shared_key: '{{% raw %}}{key}{{% endraw %}}'\n")).unwrap_or_default();
    format!("broker:\n  endpoint: '{endpoint}'\n  zmq_auth: {}\n{key}", !key.is_empty())
}

/// A process that waits uses next to nothing; one that tries again at once uses a whole core.
#[cfg(target_os = "linux")]
async fn does_not_spin(pid: u32) {
    const SPAN: Duration = Duration::from_secs(5);
    let (begin, before) = (now(), processor_time(pid));
    // What it uses in a span of time can only be measured over one.
    tokio::time::sleep(SPAN).await;
    let (span, used) = (now().since(begin), processor_time(pid).saturating_sub(before));
    println!("Used {used:?} in {span:?}");
    assert!(used < span / 5, "it used {used:?} in {span:?}");
}

#[cfg(not(target_os = "linux"))]
async fn does_not_spin(_pid: u32) {
    eprintln!("Left out: how much a process has used is read from /proc, which only Linux has");
}

/// What a process has used so far, in its own code and in the system's.
#[cfg(target_os = "linux")]
fn processor_time(pid: u32) -> Duration {
    /// The unit of the file, on every Linux.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    // The name in parentheses may have spaces; behind it, the times are the 12th and 13th field.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u32>().expect("a number"));
    TICK * ticks.sum::<u32>()
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
