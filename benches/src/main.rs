//! Measures what the client does beside what the machine can do at most, both in the same run: `cargo xtask bench`.
//! docs/performance.md says how each figure is measured.

mod add;
mod burst;
mod catch_up;
mod database;
mod dealer;
mod end_to_end;
mod fabric;
mod figure;
mod fixture;
mod growth;
mod idle;
mod latency;
mod lateness;
mod materialize;
mod open;
mod place;
mod process;
mod raw_jobs;
mod real_fabric;
mod release;
mod results;
mod setting;
mod stopwatch;
mod times;

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::Parser;

use crate::figure::Figure;
use crate::setting::Setting;

/// One group of figures that share their preparation: its name, and what measures it.
struct Group {
    name: &'static str,
    measure: fn(&Setting) -> Result<Vec<Figure>>,
}

/// Every group, in the order of docs/performance.md.
const GROUPS: &[Group] = &[
    Group { name: "add", measure: add::measure },
    Group { name: "burst", measure: burst::measure },
    Group { name: "catch-up", measure: catch_up::measure },
    Group { name: "end-to-end", measure: end_to_end::measure },
    Group { name: "growth", measure: growth::measure },
    Group { name: "idle", measure: idle::measure },
    Group { name: "latency", measure: latency::measure },
    Group { name: "lateness", measure: lateness::measure },
    Group { name: "materialize", measure: materialize::measure },
    Group { name: "open", measure: open::measure },
    Group { name: "real-fabric", measure: real_fabric::measure },
    Group { name: "release", measure: release::measure },
    Group { name: "results", measure: results::measure },
];

/// Measures beside the limit of the machine.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// Which groups of figures; all of them when none is named.
    names: Vec<String>,
    /// One JSON object a line, for programs.
    #[arg(long)]
    json: bool,
    /// How often each figure is measured.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// The share of the full size at which to measure: 0.01 is a hundredth of the rows, for a quick look; 10 are ten times
    /// as many, for the growth of long histories.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Serves a loopback fabric instead, for another process that measures.
    #[arg(long, hide = true)]
    serve_loopback: bool,
    /// Collects so many large results instead, and prints what memory that took.
    #[arg(long, hide = true)]
    collect_results: Option<usize>,
    /// Serves this database at the endpoint that follows instead, for another process that measures.
    #[arg(long, hide = true, num_args = 2)]
    serve_database: Vec<String>,
}

fn main() -> ExitCode {
    match work(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every figure that was measured holds.
fn work(arguments: &Arguments) -> Result<bool> {
    if arguments.serve_loopback {
        return fabric::serve().map(|()| true);
    }
    if let Some(count) = arguments.collect_results {
        return results::collect(count).map(|()| true);
    }
    if let [database, endpoint] = arguments.serve_database.as_slice() {
        return idle::serve(database.as_ref(), endpoint).map(|()| true);
    }
    let setting = Setting::new(arguments.runs, arguments.scale)?;
    let mut all_hold = true;
    let mut failed = Vec::new();
    for group in chosen(&arguments.names)? {
        let figures = match (group.measure)(&setting) {
            Ok(figures) => figures,
            Err(error) => {
                eprintln!("error: cannot measure {}: {error:#}", group.name);
                failed.push(group.name);
                continue;
            }
        };
        for figure in figures {
            println!("{}", if arguments.json { figure.to_json() } else { figure.to_line() });
            all_hold &= figure.holds();
        }
    }
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(all_hold)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Group>> {
    if names.is_empty() {
        return Ok(GROUPS.iter().collect());
    }
    names.iter().map(|name| group(name)).collect()
}

fn group(name: &str) -> Result<&'static Group> {
    let Some(group) = GROUPS.iter().find(|group| group.name == name) else {
        let known: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
        bail!("no figure {name:?}; there are: {}", known.join(", "));
    };
    Ok(group)
}
