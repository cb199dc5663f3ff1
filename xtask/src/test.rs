//! The tests, and what they need besides Cargo.

use anyhow::Result;

use crate::peer::{self, Wish};
use crate::shell;

/// Runs the tests of all crates; `arguments` go to `cargo test`.
pub(crate) fn run(wish: Wish, arguments: &[&str]) -> Result<()> {
    let mut test = shell::cargo();
    test.args(["test", "--workspace"]).args(arguments);
    match wish {
        Wish::Peer => test.env("NORFAB_PEER_PYTHON", peer::make()?).env_remove("NORFAB_NO_PEER"),
        Wish::NoPeer => test.env("NORFAB_NO_PEER", "1").env_remove("NORFAB_PEER_PYTHON"),
    };
    shell::run(&mut test)
}
