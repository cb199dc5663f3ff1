//! Every figure of the store is measured, at a tiny size. How good it is then says nothing, and is not looked at.

use std::process::Command;

use serde_json::Value;

/// Measures a group once; these figures come out, each whole.
#[track_caller]
fn check(group: &str, figures: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_norfab-benches"));
    let output = command.args([group, "--json", "--runs", "1", "--scale", "0.0001"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // 1 says that one misses its bound.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let measured: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = measured.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    assert_eq!(names, figures);
    for figure in &measured {
        for number in ["ratio", "bound", "ours", "limit"] {
            assert!(figure[number].as_f64().is_some_and(f64::is_finite), "{number} of {figure}");
        }
    }
}

#[test]
fn add() {
    check("add", &["add"]);
}

#[cfg(target_os = "linux")]
#[test]
fn catch_up() {
    check("catch-up", &["catch-up latest", "catch-up earliest", "catch-up all, memory"]);
}

#[test]
fn growth() {
    check("growth", &["growth of a pass", "growth of the last 20", "growth of a history"]);
}

#[cfg(target_os = "linux")]
#[test]
fn idle() {
    check("idle", &["idle, processor", "idle, memory", "idle, change seen"]);
}

#[test]
fn materialize() {
    check("materialize", &["materialize"]);
}

#[test]
fn open() {
    check("open", &["open"]);
}

#[test]
fn release() {
    check("release", &["release"]);
}
