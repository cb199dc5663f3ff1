//! Every kept input, as a plain test: what a fuzzer once found stays mended.

use std::path::{Path, PathBuf};

use norfab_fuzz_targets::TARGETS;

/// Feeds a target all that is kept for it, and says which input broke it.
#[track_caller]
fn check(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    let inputs = inputs(name);
    assert!(!inputs.is_empty(), "nothing is kept for {name}");
    for path in inputs {
        let data = std::fs::read(&path).expect("it can be read");
        let outcome = std::panic::catch_unwind(|| target(&data));
        assert!(outcome.is_ok(), "{} breaks a rule", path.display());
    }
}

fn inputs(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_target_has_its_test() {
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")).expect("the corpora");
    let mut names: Vec<String> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, TARGETS.map(|(name, _)| name));
}

#[test]
fn frames() {
    check("frames");
}

#[test]
fn inventory() {
    check("inventory");
}

#[test]
fn keys() {
    check("keys");
}

#[test]
fn payloads() {
    check("payloads");
}

#[test]
fn rows() {
    check("rows");
}

#[test]
fn times() {
    check("times");
}

#[test]
fn triggers() {
    check("triggers");
}
