//! Starting the benchmarks: optimised, one after the other.

use anyhow::Result;

use crate::shell;

/// Measures; the arguments are the benchmarks' own.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let start = ["run", "--locked", "--release", "--quiet", "-p", "norfab-benches", "--"];
    shell::run(shell::cargo().args(start).args(arguments))
}
