//! Starting the soak test: optimised, for half an hour or as long as is wished.

use anyhow::{Result, bail};

use crate::shell;

/// Runs it: `[--minutes N]`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let minutes: u32 = match arguments {
        [] => 30,
        ["--minutes", minutes] => minutes.parse()?,
        _ => bail!("not understood: {}; it takes --minutes N", arguments.join(" ")),
    };
    let test = ["test", "--locked", "--release", "-p", "norfab-tests", "--test", "loopback", "--"];
    let only = ["soak::five_hundred_a_second", "--exact", "--ignored", "--nocapture"];
    shell::run(shell::cargo().args(test).args(only).env("NORFAB_SOAK_SECONDS", (minutes * 60).to_string()))
}
