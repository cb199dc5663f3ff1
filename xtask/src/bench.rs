//! Starting the benchmarks: optimised, one after the other.

use anyhow::Result;

use crate::{peer, shell};

/// What leaves the real NorFab out.
const NO_PEER: &str = "NORFAB_NO_PEER";

/// Measures; the arguments are the benchmarks' own.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let start = ["run", "--locked", "--release", "--quiet", "-p", "norfab-benches", "--"];
    let mut bench = shell::cargo();
    bench.args(start).args(arguments);
    if std::env::var_os(NO_PEER).is_none() {
        bench.env("NORFAB_PEER_PYTHON", peer::make()?);
    }
    shell::run(&mut bench)
}
