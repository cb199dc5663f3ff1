//! A deterministic simulation: the dispatcher and its store on one thread, a broker, workers and a network that behave as
//! the real ones do, a clock that is set to anything, and everything that can go wrong, all of it from one seed.
//!
//! The rooms: `script`, what happens; `fabric`, broker, network and workers; `clock`, the true time and the shown one;
//! `gate`, `port` and `store`, where the client is hurt; `ops`, the calls of people; `ledger`, `witness`
//! and `watch`, the rules; `world`,
//! which plays a script; `shrink`, which makes it shorter.

mod clock;
mod fabric;
#[cfg(test)]
mod found;
mod gate;
mod ledger;
mod ops;
mod port;
mod rng;
mod script;
mod shelf;
mod shrink;
mod store;
mod violation;
mod watch;
mod witness;
mod world;

use std::fmt;

use norfab_store::MemoryStore;

pub use script::{Noise, Script};
pub use shrink::shrink;
pub use violation::Violation;
pub use world::{Keep, Outcome};

/// Which store a run is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The one in memory: every run of a script is the same, to the letter.
    Memory,
    /// The one in SQLite, on a file of its own. Runs of a script are the same but for the identities of jobs that are run by
    /// hand: a thread of the store makes them, which knows no seed, and the workers for any of whom such a job is follow from
    /// its identity.
    Sqlite,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        })
    }
}

/// The command that plays the script of a seed, and shows the shortest one should it break a rule.
#[must_use]
pub fn command(kind: Kind, seed: u64, steps: usize) -> String {
    format!("cargo xtask sim --seeds {seed} --steps {steps} --store {kind}")
}

/// Plays a script from the start.
///
/// # Panics
/// When this machine has no room for a thread or a temporary file.
#[must_use]
pub fn play(kind: Kind, script: &Script, keep: Keep) -> Outcome {
    // The runtime's time stands still: what happens must not hang on how fast this machine is.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    match kind {
        Kind::Memory => runtime.block_on(world::run(shelf::InMemory(MemoryStore::new()), script, keep)),
        Kind::Sqlite => {
            let folder = tempfile::tempdir().expect("a temporary folder");
            runtime.block_on(world::run(shelf::InFile(folder.path().join("jobs.db")), script, keep))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_again(kind: Kind, script: &Script) {
        let (one, two) = (play(kind, script, Keep::Lines), play(kind, script, Keep::Lines));
        assert_eq!(one.lines, two.lines, "{script}");
        assert!(one.hash == two.hash && one.violation == two.violation && one.lines.len() > 30, "{script}");
    }

    #[test]
    fn a_script_plays_the_same_again() {
        for seed in 0..10 {
            check_again(Kind::Memory, &Script::of_seed(seed, 60));
        }
    }

    #[test]
    fn a_script_without_runs_by_hand_plays_the_same_again_on_sqlite() {
        for seed in 0..10 {
            let script = Script::of_seed(seed, 40);
            let by_hand = |step: &script::Step| format!("{step:?}").contains("RunNow");
            let others = script.steps.iter().filter(|(_, step)| !by_hand(step)).map(|(place, _)| *place);
            check_again(Kind::Sqlite, &script.only(&others.collect::<Vec<_>>(), script.noise));
        }
    }
}
