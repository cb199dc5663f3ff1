//! The tests, and what they need besides Cargo.

use anyhow::Result;

use crate::peer::{self, Wish};
use crate::shell;

/// What sets how many tests run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// Tests at once, at the least: those on the real NorFab wait for other processes most of the time.
const AT_ONCE: usize = 4;

/// Runs the tests of all crates; `arguments` go to `cargo test`.
pub(crate) fn run(wish: Wish, arguments: &[&str]) -> Result<()> {
    let mut test = shell::cargo();
    test.args(["test", "--workspace"]).args(arguments);
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        test.env(THREADS, cores.max(AT_ONCE).to_string());
    }
    match wish {
        Wish::Peer => test.env("NORFAB_PEER_PYTHON", peer::make()?).env_remove("NORFAB_NO_PEER"),
        Wish::NoPeer => test.env("NORFAB_NO_PEER", "1").env_remove("NORFAB_PEER_PYTHON"),
    };
    shell::run(&mut test)
}
