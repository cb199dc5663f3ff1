//! The project's own commands: what must hold is a program. `cargo xtask` lists them.

mod acceptance;
mod bench;
mod ci;
mod crash;
mod fuzz;
mod layers;
mod migrations;
mod mirror;
mod operations;
mod oracle;
mod package;
mod peer;
mod shell;
mod sim;
mod soak;
mod sqlx;
mod statement;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  ci [--no-peer]            everything that must hold, then the tests
  test [--no-peer] [ARGS]   the tests; ARGS go to `cargo test`. --no-peer leaves out those that need the real NorFab
  peer                      makes .venv-peer, the Python environment of the real NorFab ($PYTHON: the interpreter)
  sqlx [--check]            writes .sqlx from the queries and the migrations, or says where it is out of date
  migrations new NAME       begins the next migration
  migrations check          numbers, names, released files, and that no statement loses data
  migrations release        notes the checksums of all migrations: from then on they must not change
  layers                    which crate may depend on which
  acceptance                every test that docs/acceptance.md names is there
  operations                every warning and error that the crates log is in docs/operations.md
  sim --seeds A..B [ARGS]   the simulation of these seeds: --steps N, --store memory|sqlite
  crash [--times N] [--seed S]  kills a busy client so many times, and looks at what it leaves
  bench [NAME..] [--json]   figures beside the limits of this machine (docs/performance.md): --runs N, --scale SHARE
  fuzz [NAME..] [--seconds N]  feeds invented bytes to all that reads wire, disk and user (nightly, cargo-fuzz)
  oracle                    compares triggers and zones with a walk by the minute and with Python's zoneinfo (minutes)
  soak [--minutes N]        500 occurrences a second beside a broker that goes and comes back: nothing lost, nothing grows
  package                   each crate that is published builds from its package alone
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result<()> {
    match args {
        [] | ["help" | "--help" | "-h"] => print!("{HELP}"),
        ["ci"] => ci::run(peer::Wish::Peer)?,
        ["ci", "--no-peer"] => ci::run(peer::Wish::NoPeer)?,
        ["test", "--no-peer", rest @ ..] => test::run(peer::Wish::NoPeer, rest)?,
        ["test", rest @ ..] => test::run(peer::Wish::Peer, rest)?,
        ["peer"] => println!("{}", peer::make()?.display()),
        ["sqlx"] => sqlx::write()?,
        ["sqlx", "--check"] => sqlx::check()?,
        ["migrations", "new", name] => migrations::new(name)?,
        ["migrations", "check"] => migrations::check()?,
        ["migrations", "release"] => migrations::release()?,
        ["layers"] => layers::check()?,
        ["acceptance"] => acceptance::check()?,
        ["operations"] => operations::check()?,
        ["sim", rest @ ..] => sim::run(rest)?,
        ["crash", rest @ ..] => crash::run(rest)?,
        ["bench", rest @ ..] => bench::run(rest)?,
        ["fuzz", rest @ ..] => fuzz::run(rest)?,
        ["oracle"] => oracle::run()?,
        ["soak", rest @ ..] => soak::run(rest)?,
        ["package"] => package::check()?,
        _ => bail!("not a command: {}\n\n{HELP}", args.join(" ")),
    }
    Ok(())
}
