//! Logs go to stderr: what is going on for `norfab run`, for other commands only what they do not tell themselves, more with
//! `-v`, anything with `NORFAB_LOG`.

use tracing_subscriber::EnvFilter;

use crate::args::{Cli, Command};
use crate::output::Output;

/// The variable that says what to log, in the form of `tracing` directives such as `info` or `norfab_dispatch=debug`.
pub(crate) const VARIABLE: &str = "NORFAB_LOG";

/// Begins to log.
pub(crate) fn start(cli: &Cli, out: &Output) {
    let (filter, problem) = match std::env::var(VARIABLE).ok().filter(|directives| !directives.trim().is_empty()) {
        Some(directives) => match EnvFilter::try_new(&directives) {
            Ok(filter) => (filter, None),
            Err(error) => (EnvFilter::new(default_directives(cli)), Some(error)),
        },
        None => (EnvFilter::new(default_directives(cli)), None),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(console::colors_enabled_stderr())
        .with_writer(out.clone());
    // A service's log is read later, a command's now.
    if matches!(cli.command, Command::Run) {
        builder.init();
    } else {
        builder.without_time().init();
    }
    if let Some(error) = problem {
        tracing::warn!("Ignored {VARIABLE}: {error}");
    }
}

/// Our own crates speak as much as is asked for; of others only warnings are of interest.
fn default_directives(cli: &Cli) -> &'static str {
    let quiet = u8::from(matches!(cli.command, Command::Run));
    match cli.globals.verbose.saturating_add(quiet) {
        // What the dispatcher warns of, such as a link that is down, the command tells in its own words.
        0 => "warn,norfab_dispatch=error",
        1 => "warn,norfab=info",
        2 => "warn,norfab=debug",
        _ => "info,norfab=trace",
    }
}
