//! The program `norfab`: jobs on a NorFab fabric from the command line. This room starts what the others need and turns
//! their outcome into an exit code.

mod args;
mod commands;
mod failure;
mod given;
mod logging;
mod output;
mod payload;
mod signals;
mod span;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::commands::Verdict;
use crate::failure::{Failure, Kind};
use crate::output::{Format, Output};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let out = Output::new(cli.globals.format());
    logging::start(&cli, &out);
    match serve(cli, &out) {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => out.report(&failure),
    }
}

/// Runs the command to its end.
fn serve(cli: Cli, out: &Output) -> Result<Verdict, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Runtime)?;
    let verdict = runtime.block_on(commands::execute(cli, out));
    // What is still running then is nobody's any more; a blocked thread must not hold the program up.
    runtime.shutdown_background();
    verdict
}

/// Says what is wrong with the command line, in the form that it asks for. Help and version are no errors.
fn refuse(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    if error.use_stderr() && wants_json {
        let message = error.render().to_string();
        let message = message.trim().trim_start_matches("error: ").to_owned();
        return Output::new(Format::Json).report(&Failure::Usage(message));
    }
    // A closed pipe is no reason to complain.
    let _ = error.print();
    if error.use_stderr() { Kind::Usage.exit_code() } else { ExitCode::SUCCESS }
}
