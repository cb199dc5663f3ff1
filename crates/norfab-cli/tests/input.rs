//! Bad input: each gets its exit code and a message that says what to do, and changes nothing.

mod common;

use common::{Nobody, Site, at, end, norfab};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

async fn refuses(site: &Site, line: &[&str], part: &str) {
    let human = site.run(line).await;
    assert!(human.code == Some(2) && human.stderr.contains(part) && human.stdout.is_empty(), "{line:?}: {human:?}");
    let json = site.run(&[line, &["--json"]].concat()).await;
    json.fails_in_json(2, "usage", part);
}

#[tokio::test]
async fn times() {
    let site = Site::start().await;
    let schedule = |when: &'static [&'static str]| [&["job", "schedule", "demo", "echo"][..], when].concat();
    refuses(&site, &schedule(&["--at", "2099-01-01T00:00:00Z"]), "days ahead").await;
    refuses(&site, &schedule(&["--in", "5000d"]), "days ahead").await;
    refuses(&site, &schedule(&["--at", "2020-01-01T00:00:00Z"]), "hours in the past").await;
    refuses(&site, &schedule(&["--at", "-1"]), "hours in the past").await;
    refuses(&site, &schedule(&["--at", "2026-11-30 02:00"]), "2026-11-30T02:00:00Z").await;
    refuses(&site, &schedule(&["--at", "1795996800000"]), "as milliseconds it is 2026-11-30T00:00:00Z").await;
    refuses(&site, &schedule(&["--in", "90"]), "write 90s").await;
    refuses(&site, &schedule(&["--in", "-5s"]), "\"-5s\" is negative").await;
    refuses(&site, &schedule(&["--in", "1h", "--grace", "0"]), "misfire_grace_seconds must be 1 to").await;
    refuses(&site, &schedule(&["--in", "1h", "--timeout", "0"]), "timeout must be 1 to").await;
}

#[tokio::test]
async fn arguments() {
    let site = Site::start().await;
    let run = |what: &'static [&'static str]| [&["job", "run", "demo", "echo"][..], what].concat();
    refuses(&site, &run(&["--kwargs", "[1]"]), "--kwargs must be a JSON object").await;
    refuses(&site, &run(&["--args", "{}"]), "--args must be a JSON array").await;
    refuses(&site, &run(&["-k", "a=1", "--kwargs", "{\"a\": 2}"]), "\"a\" is given twice").await;
    refuses(&site, &run(&["-k", "a"]), "KEY=VALUE").await;
    refuses(&site, &run(&["--kwargs", "{\"a\": 1, \"a\": 2}"]), "the same key twice (line 1, column 10)").await;
    refuses(&site, &run(&["--kwargs", "@no/such.json"]), "cannot read the value of --kwargs from no/such.json").await;
    refuses(&site, &run(&["--kwargs", "-", "--args", "@-"]), "standard input can give one value only").await;
    refuses(&site, &run(&["--kwargs", "-"]), "--kwargs is not valid JSON").await;
    refuses(&site, &run(&["--workers", "w1", "--workers", "w1"]), "names \"w1\" twice").await;
    refuses(&site, &run(&["--workers", ""]), "workers must have 1 to 255 bytes").await;
    refuses(&site, &run(&["--workers", "any", "--workers", "w1"]), "stands alone").await;
    refuses(&site, &["job", "run", "", "echo"], "service must have 1 to 255 bytes").await;
    refuses(&site, &["job", "list", "--status", "done"], "is not a job status").await;
    assert!(site.fabric.executions().is_empty());
}

#[tokio::test]
async fn long_arguments_come_from_a_file_or_standard_input() {
    let site = Site::start().await;
    // Longer than one argument of a command may be on any system.
    let text = "x".repeat(300_000);
    let kwargs = serde_json::json!({ "text": text }).to_string();
    let file = site.folder.path().join("arguments.json");
    std::fs::write(&file, &kwargs).expect("writes");
    let from_file = format!("@{}", file.display());
    let line = ["--json", "job", "run", "demo", "echo", "--workers", "any", "--kwargs"];
    let ended = site.run(&[&line[..], &[&from_file]].concat()).await;
    assert_eq!(ended.exits(0).json()["kwargs"]["text"], text);
    let mut command = site.command(&[&line[..], &["-"]].concat());
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(kwargs.as_bytes()).await.expect("writes");
    drop(stdin);
    let ended = common::ended(child).await;
    assert_eq!(ended.exits(0).json()["kwargs"]["text"], text);
}

#[tokio::test]
async fn what_is_not_there() {
    let site = Site::start().await;
    for line in
        [&["job", "list"][..], &["job", "show", "x"], &["job", "cancel", "x"], &["db", "info"], &["db", "migrate"]]
    {
        site.run(line).await.fails(4, "there is no job database");
    }
    assert_eq!(std::fs::read_dir(site.folder.path()).expect("reads").count(), 0);
    site.run(&["--json", "job", "schedule", "demo", "echo", "--in", "1h"]).await.exits(0);
    for line in [&["job", "show"][..], &["job", "cancel"], &["job", "reschedule", "--in", "1h"]] {
        let line = [line, &["0190B1EC-0000-7000-8000-000000000000"]].concat();
        site.run(&line).await.fails(4, "there is no job 0190b1ec000070008000000000000000");
        site.run(&[&line[..], &["--json"]].concat()).await.fails_in_json(4, "not_found", "there is no job");
    }
    assert_eq!(site.run(&["--json", "job", "list", "--status", "failed"]).await.json()["jobs"], serde_json::json!([]));
}

#[tokio::test]
async fn a_folder_that_is_no_norfab_folder_stays_as_it_is() {
    let folder = TempDir::new().expect("temporary folder");
    let commands = [
        &["job", "run", "demo", "echo"][..],
        &["job", "schedule", "demo", "echo", "--in", "1h"],
        &["run"],
        &["workers"],
    ];
    for line in commands {
        let ended = end(norfab().arg("--base-dir").arg(folder.path()).args(line)).await;
        ended.fails(1, "inventory.yaml");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("reads").count(), 0);
}

#[tokio::test]
async fn a_database_that_is_none() {
    let folder = TempDir::new().expect("temporary folder");
    let client = folder.path().join("__norfab__/files/client/norfab");
    std::fs::create_dir_all(&client).expect("folders");
    let file = client.join("norfab.db");
    std::fs::write(&file, "no database at all").expect("writes");
    let nobody = Nobody::listens();
    let endpoint = nobody.endpoint();
    let commands =
        [&["job", "list"][..], &["job", "run", "demo", "echo"], &["run"], &["db", "info"], &["db", "migrate"]];
    for line in commands {
        let ended = end(&mut at(folder.path(), &endpoint, line)).await;
        ended.fails(1, "is not an SQLite database");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("reads"), "no database at all");
}

#[tokio::test]
async fn a_closed_pipe_is_no_error() {
    let site = Site::start().await;
    site.run(&["job", "run", "demo", "echo"]).await.exits(0);
    let mut child = site.command(&["job", "list"]).spawn().expect("starts");
    // Nobody reads any more, before the program has written anything.
    drop(child.stdout.take());
    let ended = common::ended(child).await;
    assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
}
