//! Commands that wait for their job: alone, beside an owner, and with no fabric to be reached.

mod common;

#[cfg(unix)]
use common::Owner;
use common::{Nobody, Site, at, end};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::test]
async fn a_job_without_an_owner() {
    let site = Site::start().await;
    let ended = site.run(&["job", "run", "demo", "echo", "-k", "text=hello", "-k", "n=5"]).await;
    ended.exits(0);
    assert!(ended.stdout.contains("demo-worker-1: completed") && ended.stdout.contains("demo-worker-2: completed"));
    assert!(ended.stderr.contains("NEW") && ended.stderr.contains("COMPLETED"), "{ended:?}");
    assert!(ended.stdout.contains("\"text\": \"hello\"") && ended.stdout.contains("\"n\": 5"), "{ended:?}");
    assert_eq!(site.fabric.executions().len(), 2);
}

#[tokio::test]
async fn a_job_in_json_is_one_value_with_its_columns() {
    let site = Site::start().await;
    let ended = site.run(&["--json", "job", "run", "demo", "echo", "--workers", "any"]).await;
    let job = ended.exits(0).json();
    assert_eq!((&job["status"], &job["workers_requested"]), (&"COMPLETED".into(), &"any".into()));
    assert_eq!(job["result_data"].as_object().map(serde_json::Map::len), Some(1), "{job}");
    assert!(job["created_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{job}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}

#[tokio::test]
async fn a_failed_task_is_a_failure() {
    let site = Site::start().await;
    for task in [&["fail"][..], &["fail", "-k", "soft=true"], &["nosuch"]] {
        let line = [&["job", "run", "demo"][..], task].concat();
        let ended = site.run(&line).await;
        ended.exits(1);
        assert!(ended.stderr.contains("COMPLETED") && ended.stdout.contains("demo-worker-1: "), "{ended:?}");
    }
    let ended = site.run(&["job", "run", "nosuch", "echo"]).await;
    ended.exits(1);
    assert!(ended.stderr.contains("FAILED"), "{ended:?}");
    assert_eq!(ended.stderr.matches("failed to target workers").count(), 1, "{ended:?}");
}

#[tokio::test]
async fn a_delayed_job_without_an_owner_is_sent_at_its_time() {
    let site = Site::start().await;
    let ended = site.run(&["--json", "job", "schedule", "demo", "echo", "--in", "1s", "--grace", "5m", "--wait"]).await;
    let job = ended.exits(0).json();
    assert_eq!(job["status"], "COMPLETED");
    assert!(job["released_at"].as_str() >= job["scheduled_for"].as_str() && job["start_deadline"].is_string(), "{job}");
    assert_eq!(site.fabric.executions().len(), 2);
}

#[tokio::test]
async fn questions_are_answered_from_the_command_line() {
    let site = Site::start().await;
    let line = ["job", "run", "demo", "ask", "--workers", "any", "-k", "question=Go on?", "--answer", "yes"];
    let ended = site.run(&line).await;
    ended.exits(0);
    assert!(ended.stderr.contains("Go on?") && ended.stdout.contains("yes"), "{ended:?}");
}

#[tokio::test]
async fn a_question_without_an_answer_is_left_to_run_out() {
    let site = Site::start().await;
    let line = ["job", "run", "demo", "ask", "--workers", "any", "-k", "question=Go on?", "-k", "timeout=1"];
    let ended = site.run(&line).await;
    ended.exits(1);
    assert!(ended.stderr.contains("nobody is here to answer") && ended.stderr.contains("COMPLETED"), "{ended:?}");
    assert!(ended.stdout.contains("Client input timed out"), "{ended:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn beside_an_owner_the_owner_sends() {
    let site = Site::start().await;
    let owner = Owner::start(&site).await;
    let ended = site.run(&["--json", "job", "run", "demo", "echo"]).await;
    assert_eq!(ended.exits(0).json()["status"], "COMPLETED");
    let waited = site.run(&["job", "schedule", "demo", "echo", "--in", "1s", "--wait"]).await;
    waited.exits(0);
    assert!(waited.stderr.contains("SCHEDULED") && waited.stdout.contains("completed"), "{waited:?}");
    owner.stop().await.exits(0);
    let clients: Vec<_> = site.fabric.messages().into_iter().map(|message| message.client).collect();
    assert!(clients.iter().all(|client| client == "norfab"), "{clients:?}");
    assert_eq!(site.fabric.executions().len(), 4);
}

#[tokio::test]
async fn an_unreachable_fabric_fails_the_unsent_job() {
    let folder = TempDir::new().expect("temporary folder");
    let nobody = Nobody::listens();
    let endpoint = nobody.endpoint();
    let limit = ["--connect-timeout", "1"];
    let ended = end(at(folder.path(), &endpoint, &["job", "run", "demo", "echo"]).args(limit)).await;
    ended.fails(5, "the fabric was not reached: ");
    assert_eq!(ended.stderr.matches("the fabric was not reached").count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains("The link to the broker"), "{ended:?}");
    let ended = end(at(folder.path(), &endpoint, &["--json", "job", "run", "demo", "echo"]).args(limit)).await;
    ended.fails_in_json(5, "unreachable", "the fabric was not reached");
    assert_eq!(ended.json()["job"]["status"], "FAILED");
    let list = end(&mut at(folder.path(), &endpoint, &["--json", "job", "list"])).await.exits(0).json();
    let jobs = list["jobs"].as_array().expect("jobs");
    assert!(jobs.len() == 2 && jobs.iter().all(|job| job["status"] == "FAILED" && job["posts_sent"] == 0), "{list}");
}

#[tokio::test]
async fn a_link_that_is_lost_before_the_job_is_sent_fails_it() {
    for _ in 0..10 {
        let Site { folder, fabric } = Site::start().await;
        let line = ["-v", "--connect-timeout", "1", "job", "schedule", "demo", "echo", "--in", "3s", "--wait"];
        let mut child = at(folder.path(), fabric.endpoint(), &line).spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        // It connects a while before the time of the job.
        while !lines.next_line().await.expect("UTF-8").expect("a line").contains("The link to the broker is up") {}
        let endpoint = fabric.endpoint().to_owned();
        fabric.shutdown().await;
        let mut rest = String::new();
        while let Some(line) = lines.next_line().await.expect("UTF-8") {
            rest.push_str(&line);
        }
        let ended = common::ended(child).await;
        let list = end(&mut at(folder.path(), &endpoint, &["--json", "job", "list"])).await.exits(0).json();
        if list["jobs"][0]["posts_sent"] != 0 {
            // The fabric was stopped too late, on a machine that is busy with something else.
            continue;
        }
        ended.exits(5);
        assert!(rest.contains("error: the fabric was not reached: "), "{rest}");
        assert_eq!(list["jobs"][0]["status"], "FAILED", "{list}");
        return;
    }
    panic!("the job was sent every time");
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_leaves_the_job_scheduled() {
    let site = Site::start().await;
    let mut child = site.command(&["job", "schedule", "demo", "echo", "--in", "1h", "--wait"]).spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    while !lines.next_line().await.expect("UTF-8").expect("a line").contains("SCHEDULED") {}
    common::signal("-INT", &child).await;
    let mut rest = String::new();
    while let Some(line) = lines.next_line().await.expect("UTF-8") {
        rest.push_str(&line);
    }
    common::ended(child).await.exits(130);
    assert!(rest.contains("stopped by ctrl-c") && rest.contains("stays scheduled"), "{rest}");
    let list = site.run(&["--json", "job", "list"]).await.exits(0).json();
    assert_eq!(list["jobs"][0]["status"], "SCHEDULED");
}

#[tokio::test]
async fn workers_are_shown_without_a_database() {
    let site = Site::start().await;
    let ended = site.run(&["workers"]).await;
    ended.exits(0);
    assert!(ended.stdout.contains("demo-worker-2") && ended.stdout.contains("alive"), "{ended:?}");
    let rows = site.run(&["--json", "workers"]).await.exits(0).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
    assert_eq!(site.run(&["--json", "workers", "--service", "nosuch"]).await.exits(0).json(), serde_json::json!([]));
    assert_eq!(std::fs::read_dir(site.folder.path()).expect("reads").count(), 0);
    let nobody = Nobody::listens();
    let refused = end(&mut at(site.folder.path(), &nobody.endpoint(), &["workers", "--connect-timeout", "1"])).await;
    refused.fails(5, "the fabric was not reached: ");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
}
