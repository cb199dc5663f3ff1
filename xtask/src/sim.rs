//! Starting the simulation: optimised, as its worth is in the number of seeds.

use anyhow::Result;

use crate::shell;

/// Plays seeds; the arguments are the simulation's own.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let start = ["run", "--locked", "--release", "--quiet", "-p", "norfab-sim", "--"];
    shell::run(shell::cargo().args(start).args(arguments))
}
