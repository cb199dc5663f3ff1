//! The figures of the dispatcher are measured at all, at a tiny size: how good they are is not looked at here.

use std::process::Command;

use serde_json::Value;

/// Runs groups of figures, and gives their names.
#[track_caller]
fn measure(groups: &[&str]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_norfab-benches"));
    command.args(["--json", "--runs", "1", "--scale", "0.001"]).args(groups);
    let output = command.output().expect("starts");
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    // 1 says that a figure misses its bound.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}: {complaints}", output.status);
    String::from_utf8_lossy(&output.stdout).lines().map(name).collect()
}

#[track_caller]
fn name(line: &str) -> String {
    let figure: Value = serde_json::from_str(line).expect("is JSON");
    assert!(figure["ours"].as_f64().is_some_and(|ours| ours > 0.0), "{line}");
    assert!(figure["limit"].as_f64().is_some_and(|limit| limit > 0.0), "{line}");
    assert_eq!(figure["runs"], 1, "{line}");
    figure["name"].as_str().expect("has a name").to_owned()
}

#[test]
fn jobs_that_start_at_once() {
    let expected = ["end to end", "latency p50", "latency p99 to p50"];
    assert_eq!(measure(&["end-to-end", "latency"]), expected);
}

#[test]
fn jobs_that_start_at_their_time() {
    assert_eq!(measure(&["burst", "lateness"]), ["burst p99", "lateness p50", "lateness p99"]);
}

#[cfg(target_os = "linux")]
#[test]
fn large_results() {
    assert_eq!(measure(&["results"]), ["results peak memory"]);
}

#[cfg(target_os = "linux")]
#[test]
fn jobs_on_the_real_fabric() {
    if norfab_tests::interpreter().is_none() {
        return;
    }
    let expected = [
        "real fabric, one worker",
        "real fabric CPU beside Python, one worker",
        "real fabric, two workers",
        "real fabric CPU beside Python, two workers",
    ];
    assert_eq!(measure(&["real-fabric"]), expected);
}

#[test]
fn a_group_that_there_is_not() {
    let output = Command::new(env!("CARGO_BIN_EXE_norfab-benches")).arg("speed").output().expect("starts");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && complaints.contains("latency"), "{complaints}");
}
