//! Starting the fuzz targets under libFuzzer, which needs nightly and cargo-fuzz; the kept inputs are plain tests.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace;

/// How long each target is run when nobody says.
const SECONDS: u64 = 600;

/// Runs the targets that are named, or all: `[NAME..] [--seconds N]`. What is found stands in `fuzz/artifacts`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let (names, seconds) = wish(arguments)?;
    let known = targets()?;
    if let Some(unknown) = names.iter().find(|name| !known.iter().any(|known| known == *name)) {
        bail!("no target {unknown:?}; there are: {}", known.join(", "));
    }
    let names = if names.is_empty() { known } else { names.into_iter().map(str::to_owned).collect() };
    for name in &names {
        println!("== {name}");
        target(name, seconds).with_context(|| format!("target {name}; is cargo-fuzz installed, and nightly?"))?;
    }
    Ok(())
}

fn wish<'a>(arguments: &[&'a str]) -> Result<(Vec<&'a str>, u64)> {
    match arguments {
        [names @ .., "--seconds", seconds] => Ok((names.to_vec(), seconds.parse().context("--seconds")?)),
        names => Ok((names.to_vec(), SECONDS)),
    }
}

/// The folders of the kept inputs are named like the targets.
fn targets() -> Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/corpus");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// What libFuzzer finds worth going on from is kept beside the build, so that the kept inputs stay few and readable.
fn target(name: &str, seconds: u64) -> Result<()> {
    let root = workspace::root();
    let scratch = workspace::metadata()?.target_directory.join("fuzz").join(name);
    std::fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let mut fuzz = Command::new("cargo");
    // The code that is looked for is not unsafe: overflows and panics are found without a sanitizer, and sooner.
    fuzz.args(["+nightly", "fuzz", "run", "--sanitizer", "none", name]).current_dir(&root).arg(&scratch);
    fuzz.arg(root.join("fuzz/corpus").join(name));
    fuzz.args(["--", "-timeout=10", "-rss_limit_mb=1024", &format!("-max_total_time={seconds}")]);
    // This command runs under the stable toolchain, which its environment would force on the other.
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        fuzz.env_remove(name);
    }
    shell::run(fuzz.env("SQLX_OFFLINE", "true"))
}
