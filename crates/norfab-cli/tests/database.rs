//! `norfab db` and `norfab job list` on a database of the Python client, and pages of a list.

mod common;

use common::{Nobody, Site, at, end};
use tempfile::TempDir;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peer/fixtures/python-client-0.25.0.db");

#[tokio::test]
async fn a_database_of_the_python_client_is_taken_over() {
    let folder = TempDir::new().expect("temporary folder");
    let client = folder.path().join("__norfab__/files/client/norfab");
    std::fs::create_dir_all(&client).expect("folders");
    let file = client.join("norfab.db");
    std::fs::copy(RECORDED, &file).expect("copies");
    let nobody = Nobody::listens();
    let run = async |line: &[&str]| end(&mut at(folder.path(), &nobody.endpoint(), line)).await;
    let before = std::fs::read(&file).expect("reads");

    let info = run(&["db", "info"]).await;
    assert!(info.exits(0).stdout.contains("not taken over yet; `norfab db migrate`"), "{info:?}");
    let info = run(&["--json", "db", "info"]).await.exits(0).json();
    assert_eq!(
        (&info["legacy"], &info["jobs"], &info["schema_version"]),
        (&true.into(), &19.into(), &0.into()),
        "{info}"
    );
    run(&["job", "list"]).await.fails(1, "norfab db migrate");
    assert_eq!(std::fs::read(&file).expect("reads"), before);

    let done = run(&["db", "migrate"]).await;
    assert!(done.exits(0).stdout.contains("of the Python client, with 19 jobs"), "{done:?}");
    let again = run(&["--json", "db", "migrate"]).await.exits(0).json();
    assert_eq!((&again["legacy"], &again["applied"]), (&false.into(), &serde_json::json!([])), "{again}");
    let info = run(&["db", "info"]).await;
    assert!(info.exits(0).stdout.contains("up to date"), "{info:?}");
    let list = run(&["--json", "job", "list"]).await.exits(0).json();
    assert_eq!(list["jobs"].as_array().map(Vec::len), Some(19));
    for job in list["jobs"].as_array().expect("jobs") {
        let shown = run(&["job", "show", job["uuid"].as_str().expect("text"), "--events"]).await;
        shown.exits(0);
    }
}

#[tokio::test]
async fn lists_have_pages_and_filters() {
    let site = Site::start().await;
    let mut uuids = Vec::new();
    for task in ["echo", "emit", "echo"] {
        let ended = site.run(&["--json", "job", "schedule", "demo", task, "--in", "1h"]).await;
        uuids.push(ended.exits(0).json()["uuid"].clone());
    }
    uuids.reverse();
    let listed = async |line: &[&str]| {
        let page = site.run(&[&["--json", "job", "list"][..], line].concat()).await.exits(0).json();
        let jobs = page["jobs"].as_array().expect("jobs").iter().map(|job| job["uuid"].clone()).collect::<Vec<_>>();
        (jobs, page["next"].clone())
    };
    let (first, next) = listed(&["-n", "2"]).await;
    assert_eq!(first, uuids[..2]);
    let (second, end) = listed(&["-n", "2", "--cursor", &next.to_string()]).await;
    assert_eq!((second.as_slice(), end), (&uuids[2..], serde_json::Value::Null));
    assert_eq!(listed(&["--task", "emit"]).await.0, uuids[1..2]);
    assert_eq!(listed(&["--service", "other"]).await.0, [] as [serde_json::Value; 0]);
    assert_eq!(listed(&["--status", "new,scheduled"]).await.0, uuids);
    assert_eq!(listed(&["--due-until", "2020-01-01T00:00:00Z"]).await.0, [] as [serde_json::Value; 0]);
    assert_eq!(listed(&["--due-from", "2020-01-01T00:00:00Z"]).await.0.len(), 3);
    let human = site.run(&["job", "list", "-n", "2"]).await;
    assert_eq!(human.exits(0).stdout.lines().count(), 3, "{human:?}");
    assert!(human.stdout.contains("in 1 h") || human.stdout.contains("in 59 min"), "{human:?}");
    assert!(human.stderr.contains("--cursor"), "{human:?}");
}
