//! The crash sweep, as often as asked for: `tests/tests/loopback/crash.rs` without its small number for every day.

use anyhow::{Context, Result, bail};

use crate::shell;

/// Kills so many times; with a seed as an earlier run did, as far as chance goes.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let mut test = shell::cargo();
    test.args(["test", "--locked", "-p", "norfab-tests", "--test", "loopback", "crash::", "--", "--nocapture"]);
    for pair in arguments.chunks(2) {
        let (variable, value) = match pair {
            ["--times", value] => ("NORFAB_CRASHES", value),
            ["--seed", value] => ("NORFAB_CRASH_SEED", value),
            _ => bail!("crash takes --times N and --seed S"),
        };
        value.parse::<u64>().with_context(|| format!("{value} is no number"))?;
        test.env(variable, value);
    }
    shell::run(&mut test)
}
