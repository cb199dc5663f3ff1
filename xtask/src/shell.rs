//! Starting other programs, and saying which one failed.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// `cargo` in the root of the workspace, as if a person had started it.
///
/// `cargo run` tells its program about the package in the environment; build scripts that watch these variables would
/// run again for nothing, and with them all that depends on their crates. And the query macros shall read `.sqlx`,
/// whatever database the person has in the environment.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root());
    command.env("SQLX_OFFLINE", "true").env_remove("SQLX_OFFLINE_DIR");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command with this program's output, and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Runs a command and gives what it printed to its standard output.
pub(crate) fn stdout(command: &mut Command) -> Result<Vec<u8>> {
    let shown = show(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed ({})", output.status);
    }
    Ok(output.stdout)
}

/// Runs a command, keeping all it prints, whether it succeeds or not.
pub(crate) fn capture(command: &mut Command) -> Result<Output> {
    let shown = show(command);
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {shown}"))
}

/// A command as a person would type it.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let cargo = program.file_stem().is_some_and(|stem| stem == "cargo");
    let name = if cargo { "cargo".into() } else { program.to_string_lossy() };
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}
