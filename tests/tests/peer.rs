//! The peer itself: it starts, says what it is, does as it is told, and leaves nothing behind.

use norfab_tests::{ClientMessage, Peer, PythonClient, Security, Stats, eventually};
use serde_json::json;

/// Starts a peer, looks at what it says of itself, and at what is left of it afterwards.
async fn check(security: Security) {
    let Some(peer) = Peer::builder().workers(2).security(security).start().await else { return };
    let about = peer.about().clone();
    assert!(about.endpoint.starts_with("tcp://127.0.0.1:"), "{}", about.endpoint);
    assert_eq!(about.public_key.as_ref().map(String::len), (security == Security::Curve).then_some(40));
    assert_eq!(about.workers, ["dummy-worker-1", "dummy-worker-2"]);
    assert!(about.base_dir.join("inventory.yaml").exists());

    let stats = peer.stats().await;
    assert_eq!(registered(&stats), about.workers);
    assert_eq!((stats.executions, stats.client_messages), (0, 0));
    let processes: Vec<u32> = [about.pid, stats.broker.pid].into_iter().chain(pids(&stats)).collect();
    assert_eq!(processes.len(), 4);
    assert!(processes.iter().all(|pid| alive(*pid)));

    // One that is held cannot end by itself.
    peer.pause_worker("dummy-worker-2").await;
    drop(peer);
    let left: Vec<u32> = processes.into_iter().filter(|pid| alive(*pid)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!about.base_dir.exists());
}

#[tokio::test]
async fn with_curve() {
    check(Security::Curve).await;
}

#[tokio::test]
async fn in_the_clear() {
    check(Security::Plain).await;
}

#[tokio::test]
async fn the_broker_and_the_workers_do_as_they_are_told() {
    let Some(peer) = Peer::builder().keepalive(std::time::Duration::from_millis(500)).multiplier(3).start().await
    else {
        return;
    };
    peer.pause_broker().await;
    let stats = peer.stats().await;
    assert!(stats.broker.running);
    assert_eq!(stats.registered, None);
    peer.resume_broker().await;
    assert!(peer.stats().await.registered.is_some());

    peer.stop_broker().await;
    let stats = peer.stats().await;
    assert!(!stats.broker.running);
    assert_eq!(stats.registered, None);

    peer.start_broker_with_workers().await;
    let other = peer.add_worker("other").await;
    assert_eq!(registered(&peer.stats().await), ["dummy-worker-1", "other-worker-1"]);

    peer.kill_worker(&other.name).await;
    assert!(!peer.stats().await.workers[&other.name].running);
    let again = peer.restart_worker(&other.name).await;
    assert_eq!(again.name, other.name);
    assert_ne!(again.pid, other.pid);
}

#[tokio::test]
async fn a_worker_that_is_held_is_given_up_and_taken_back() {
    let Some(peer) = Peer::builder().keepalive(std::time::Duration::from_millis(500)).multiplier(3).start().await
    else {
        return;
    };
    let known = async || Some(registered(&peer.stats().await).len());
    peer.pause_worker("dummy-worker-1").await;
    eventually("the broker to give it up", async || (known().await? == 0).then_some(())).await;
    assert!(peer.stats().await.workers["dummy-worker-1"].running);
    peer.resume_worker("dummy-worker-1").await;
    eventually("the broker to take it back", async || (known().await? == 1).then_some(())).await;
}

async fn check_visit(security: Security) {
    let Some(peer) = Peer::builder().security(security).start().await else { return };
    peer.visit_as("somebody").await;
    let messages = peer.client_messages();
    let seen: Vec<_> = messages.iter().map(|message| (message.client.as_str(), message.command.as_str())).collect();
    assert_eq!(seen, [("somebody", ClientMessage::MMI)]);
    assert!(peer.posts().is_empty());
}

#[tokio::test]
async fn a_visitor_takes_any_name_with_curve() {
    check_visit(Security::Curve).await;
}

#[tokio::test]
async fn a_visitor_takes_any_name_in_the_clear() {
    check_visit(Security::Plain).await;
}

#[tokio::test]
async fn the_python_client_leaves_its_traces() {
    let Some(peer) = Peer::builder().start().await else { return };
    let client = PythonClient::new(peer.base_dir(), "python").expect("the peer has a Python");
    let first = client.run("dummy", "count", &json!({})).report().await;
    assert_eq!(first.jobs, []);
    assert_eq!(first.result["dummy-worker-1"]["failed"], false);

    let finished = eventually("the end of the task", async || peer.finished().pop()).await;
    assert_eq!(peer.executions().len(), 1);
    for runs in [peer.runs(), peer.finished_runs()] {
        assert_eq!(
            runs.into_iter().map(|(job, runs)| (job, runs.len())).collect::<Vec<_>>(),
            [(finished.juuid.clone(), 1)]
        );
    }
    assert_eq!((finished.task.as_str(), finished.worker.as_str()), ("count", "dummy-worker-1"));
    assert!(peer.client_messages().iter().all(|message| message.client == "python"));
    let posts = peer.posts();
    assert_eq!(posts.keys().collect::<Vec<_>>(), [&finished.juuid]);
    assert!(posts[&finished.juuid].iter().all(|time| *time <= finished.time));

    let second = PythonClient::new(peer.base_dir(), "python").expect("the peer has a Python").report().await;
    assert_eq!(second.jobs.len(), 1);
    assert_eq!((&second.jobs[0].uuid, second.jobs[0].status.as_str()), (&finished.juuid, "COMPLETED"));
}

fn registered(stats: &Stats) -> Vec<&str> {
    let mut names: Vec<&str> = stats.registered.iter().flatten().map(|worker| worker.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn pids(stats: &Stats) -> impl Iterator<Item = u32> {
    stats.workers.values().map(|worker| worker.pid)
}

/// Whether there is a process of this number; signal 0 asks just that.
fn alive(pid: u32) -> bool {
    let kill = std::process::Command::new("kill").args(["-0", &pid.to_string()]).output();
    kill.is_ok_and(|output| output.status.success())
}
