//! The demonstration ends by itself, well, and leaves nothing behind.

mod common;

use common::{end, norfab};
use tempfile::TempDir;

/// The demonstration with its temporary files in a folder of their own, on any system.
fn demo_in(folder: &TempDir) -> tokio::process::Command {
    let mut command = norfab();
    command.arg("demo");
    for variable in ["TMPDIR", "TMP", "TEMP"] {
        command.env(variable, folder.path());
    }
    command
}

fn files(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path()).expect("reads").count()
}

#[tokio::test]
async fn both_jobs_complete_and_nothing_is_left() {
    let temporary = TempDir::new().expect("temporary folder");
    let ended = end(&mut demo_in(&temporary)).await;
    ended.exits(0);
    assert_eq!(ended.stdout.matches("COMPLETED by").count(), 2, "{ended:?}");
    assert!(ended.stdout.contains("starts in 1 s") && ended.stderr.is_empty(), "{ended:?}");
    for part in ["PAUSED", "occurrences were passed over", "missed (beyond the grace)", "DELETED"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    assert_eq!(files(&temporary), 0);
}

#[tokio::test]
async fn in_json_it_is_one_value() {
    let ended = end(norfab().args(["demo", "--json"])).await;
    let both = ended.exits(0).json();
    for name in ["immediate", "delayed"] {
        assert_eq!(both[name]["status"], "COMPLETED", "{both}");
    }
    let schedule = &both["schedule"];
    for counter in ["total_runs", "passed_over", "missed_runs"] {
        assert!(schedule[counter].as_u64() > Some(0), "{counter}: {schedule}");
    }
    assert!(both["delayed"]["released_at"].as_str() >= both["delayed"]["scheduled_for"].as_str());
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_leaves_nothing_either() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let temporary = TempDir::new().expect("temporary folder");
    let mut child = demo_in(&temporary).spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    while !lines.next_line().await.expect("UTF-8").expect("a line").contains("SCHEDULED") {}
    assert_eq!(files(&temporary), 1);
    common::signal("-INT", &child).await;
    common::ended(child).await.exits(130);
    assert_eq!(files(&temporary), 0);
}
