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

use norfab_store::MemoryStore;

pub use script::{Noise, Script};
pub use shrink::shrink;
pub use violation::Violation;
pub use world::{Keep, Outcome};

/// Which store a run is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The one in memory: every run of a script is the same.
    Memory,
    /// The one in SQLite, on a file of its own.
    Sqlite,
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
