//! Everything that must hold, in one run: what the build server and a person start.

use anyhow::{Context, Result};

use crate::peer::Wish;
use crate::{acceptance, layers, migrations, operations, package, shell, sqlx, test};

/// One thing that must hold: its name, and what finds out.
type Step = (&'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("format", || shell::run(shell::cargo().args(["fmt", "--all", "--check"]))),
    ("clippy", clippy),
    ("layers", layers::check),
    ("sqlx", sqlx::check),
    ("migrations", migrations::check),
    ("docs", docs),
    ("acceptance", acceptance::check),
    ("operations", operations::check),
    ("package", package::check),
];

/// Runs every step up to the first that fails, the tests last.
pub(crate) fn run(wish: Wish) -> Result<()> {
    for (name, step) in STEPS {
        announce(name);
        step().with_context(|| format!("step {name}"))?;
    }
    announce("test");
    test::run(wish, &[]).context("step test")
}

fn announce(name: &str) {
    println!("== {name}");
}

fn clippy() -> Result<()> {
    let arguments = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    shell::run(shell::cargo().args(arguments))
}

fn docs() -> Result<()> {
    let arguments = ["doc", "--locked", "--workspace", "--no-deps"];
    shell::run(shell::cargo().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
}
