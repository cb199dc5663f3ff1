//! Many seeds break no rule, on both stores.

use norfab_sim::{Keep, Kind, Script, command, play};

#[track_caller]
fn check(kind: Kind, seeds: std::ops::Range<u64>, steps: usize) {
    for seed in seeds {
        let outcome = play(kind, &Script::of_seed(seed, steps), Keep::Hash);
        if let Some(violation) = outcome.violation {
            panic!("{} shows how it comes to this: {violation}", command(kind, seed, steps));
        }
    }
}

#[test]
fn memory_0_to_150() {
    check(Kind::Memory, 0..150, 40);
}

#[test]
fn memory_150_to_300() {
    check(Kind::Memory, 150..300, 40);
}

#[test]
fn sqlite_0_to_10() {
    check(Kind::Sqlite, 0..10, 25);
}

#[test]
fn sqlite_10_to_20() {
    check(Kind::Sqlite, 10..20, 25);
}
