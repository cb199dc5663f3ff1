//! The command line.

mod rule;
mod schedule;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};
use norfab_client::{ClientName, DEFAULT_NAME, Endpoint, JobId, JobStatus, ScheduleKey, Timestamp};

pub(crate) use schedule::{
    CreateArgs, KeyArgs, OrNone, PreviewArgs, RunNowArgs, ScheduleCommand, SchedulesArgs, UpdateArgs,
};

use crate::given::Given;
use crate::output::Format;
use crate::span;

/// Run jobs on a NorFab fabric now, later, or again and again.
///
/// A job is kept in the client's own database, sent to the broker at its time, run by workers, and its results are kept
/// in the database again. One process, `norfab run`, does this for all jobs; a command that waits for its own job does
/// it for that job while no such process is there.
#[derive(Debug, Parser)]
#[command(name = "norfab", version, after_help = EXIT_CODES, after_long_help = EXAMPLES)]
#[command(propagate_version = true, arg_required_else_help = true, max_term_width = 120)]
pub(crate) struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the job failed or another error, 2 usage, 3 conflict (wrong status, exists, owned by another \
process), 4 not found, 5 fabric not reached in time, 130 and 143 stopped by ctrl-c and SIGTERM.";

const EXAMPLES: &str = "\
Examples:
  norfab demo
  norfab --base-dir /srv/norfab workers
  norfab job run nornir cli -k commands='[\"show clock\"]' --workers any
  norfab job schedule nornir cli --in 1h30m --grace 10m -k commands='[\"show clock\"]'
  norfab job list --status scheduled,failed
  norfab schedule create clock nornir cli --every 5m -k commands='[\"show clock\"]'
  norfab run

Exit codes:
  0  done
  1  the job failed, or another error
  2  usage: the command line, or a value in it, cannot be used
  3  conflict: the job or schedule is in another state, it exists, or another process owns the database
  4  not found: no such job, schedule or task, or no database
  5  the fabric was not reached in time
  130, 143  stopped by ctrl-c, by SIGTERM

With --json a command prints exactly one JSON value to stdout, an error too: {\"error\": {\"kind\": .., \"message\": ..}}.
Instants in it are RFC 3339 in UTC, keys are named like the database's columns.
Logs go to stderr; NORFAB_LOG takes directives such as info or norfab_dispatch=debug.";

/// What holds for every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The NorFab folder: the one that holds inventory.yaml
    #[arg(long, global = true, env = "NORFAB_BASE_DIR", value_name = "DIR", default_value = ".")]
    pub(crate) base_dir: PathBuf,
    /// The client's name: it names the database below the folder, and the broker knows one connection of a name
    #[arg(long, global = true, value_name = "NAME", default_value = DEFAULT_NAME, value_parser = client_name)]
    pub(crate) client: String,
    /// The broker's endpoint, tcp://HOST:PORT, instead of the inventory's
    #[arg(long, global = true, value_name = "ENDPOINT", value_parser = endpoint)]
    pub(crate) broker: Option<String>,
    /// Print one JSON value instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How long a command tries to reach the fabric before it gives up
    #[arg(long, global = true, value_name = "SECONDS", default_value = "5", value_parser = span::limit,
        allow_hyphen_values = true)]
    pub(crate) connect_timeout: Duration,
    /// Log more; twice and thrice for even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Globals {
    /// For whom the output is.
    #[must_use]
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Human }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show jobs and a schedule from beginning to end, in half a minute; needs no NorFab and leaves nothing behind
    Demo,
    /// Serve all jobs of the database until stopped: send them at their time, collect their results
    #[command(after_help = RUN_HELP)]
    Run,
    /// Add jobs, look at them, change what waits for its time
    #[command(subcommand)]
    Job(JobCommand),
    /// Create schedules, which make jobs again and again; look at them, change them
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Show the workers that are registered with the broker
    Workers(WorkersArgs),
    /// Look at the job database, or bring it up to date
    #[command(subcommand)]
    Db(DbCommand),
}

const RUN_HELP: &str = "\
One process serves a database; a second one ends at once with exit code 3. While the fabric cannot be reached it says so
and goes on trying. Ctrl-c and SIGTERM end it in order; jobs that are under way go on at their workers, and the next start
asks for their results. Never run the Python client under the same name at the same time.";

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Run a job now and wait for its results
    #[command(after_help = RUN_JOB_HELP)]
    Run(RunArgs),
    /// Add a job that starts at a later time
    #[command(after_help = SCHEDULE_HELP)]
    Schedule(ScheduleArgs),
    /// List jobs, the newest first
    List(ListArgs),
    /// Show all that is known of a job
    Show(ShowArgs),
    /// Withdraw a job that waits for its time
    Cancel(CancelArgs),
    /// Give a job that waits for its time another one; its grace goes with it
    Reschedule(RescheduleArgs),
}

const RUN_JOB_HELP: &str = "\
Examples:
  norfab job run nornir cli -k commands='[\"show clock\"]'
  norfab job run nornir cli --workers core-1 --workers core-2 --kwargs '{\"commands\": [\"show clock\"]}' --timeout 5m
  norfab job run nornir cfg --kwargs @arguments.json
  norfab job run netbox sync --answer yes

The exit code is 1 when the job does not end COMPLETED, or when the task failed at a worker.";

const SCHEDULE_HELP: &str = "\
Examples:
  norfab job schedule nornir cli --in 90s -k commands='[\"show clock\"]'
  norfab job schedule nornir cli --at 2026-11-30T02:00:00+02:00 --grace 10m --workers any
  norfab job schedule nornir cli --in 1d12h --wait

Without --wait the job is sent by `norfab run`, which must be running at its time or be started later.";

/// A job, as `run` and `schedule` have it in common.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The service whose workers run it
    pub(crate) service: String,
    /// The task that they run
    pub(crate) task: String,
    /// A worker's name, or alone: all (the default) or any; give it again for more workers
    #[arg(long, value_name = "WORKER")]
    pub(crate) workers: Vec<String>,
    /// A keyword argument; the value is taken as JSON if it is valid JSON, else as text (quote to force text: '"5"')
    #[arg(short = 'k', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Keyword arguments as a JSON object; @FILE reads it from a file, - from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) kwargs: Option<Given>,
    /// Positional arguments as a JSON array, @FILE or -; tasks that name `job` first take none
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<Given>,
    /// How long it may take once it is released: seconds, or with units as in 10m
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = span::seconds, allow_hyphen_values = true)]
    pub(crate) timeout: u64,
}

/// Answers to what a job may ask.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The answer to the next question of the job, as JSON or text; give it again for further questions.
    /// Without it a terminal is asked, and elsewhere a question is left to time out
    #[arg(long = "answer", value_name = "VALUE")]
    pub(crate) answers: Vec<String>,
}

/// `job run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The job.
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// What to answer.
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
}

/// `job schedule`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// The job.
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// When.
    #[command(flatten)]
    pub(crate) when: WhenArgs,
    /// How late it may start before it counts as missed: seconds, or with units; without it, however late
    #[arg(long, value_name = "SECONDS", value_parser = span::seconds, allow_hyphen_values = true)]
    pub(crate) grace: Option<u64>,
    /// Wait for the job's time and its results, and send it if no other process does
    #[arg(long)]
    pub(crate) wait: bool,
    /// What to answer, with --wait.
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
}

/// A time to come.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhenArgs {
    /// The time: RFC 3339 with an offset, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, allow_negative_numbers = true)]
    pub(crate) at: Option<Timestamp>,
    /// The time from now on: 90s, 5m, 2h, 1d12h
    #[arg(long = "in", value_name = "DURATION", value_parser = span::span, allow_hyphen_values = true)]
    pub(crate) after: Option<Duration>,
}

impl WhenArgs {
    /// The instant, as seen at `now`.
    #[must_use]
    pub(crate) fn instant(&self, now: Timestamp) -> Timestamp {
        match (self.at, self.after) {
            (Some(at), _) => at,
            (None, Some(after)) => now.saturating_add(after),
            // The command line does not allow it.
            (None, None) => now,
        }
    }
}

/// `job list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only jobs in this status; several with commas, or give it again
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub(crate) status: Vec<JobStatus>,
    /// Only jobs of this service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Only jobs of this task
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Only jobs that this worker has completed; give it again for any of several
    #[arg(long = "worker", value_name = "NAME")]
    pub(crate) workers: Vec<String>,
    /// Only jobs of this schedule: its name or its UUID
    #[arg(long, value_name = "NAME|UUID", value_parser = schedule::key)]
    pub(crate) schedule: Option<ScheduleKey>,
    /// Only delayed jobs that are due at this time or later
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, allow_negative_numbers = true)]
    pub(crate) due_from: Option<Timestamp>,
    /// Only delayed jobs that are due at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, allow_negative_numbers = true)]
    pub(crate) due_until: Option<Timestamp>,
    /// How many at the most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) last: u32,
    /// Go on where the page ended that told this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<i64>,
}

/// `job show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The job
    #[arg(value_name = "UUID", value_parser = JobId::parse)]
    pub(crate) job: JobId,
    /// Its events, too
    #[arg(long)]
    pub(crate) events: bool,
}

/// `job cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The job
    #[arg(value_name = "UUID", value_parser = JobId::parse)]
    pub(crate) job: JobId,
}

/// `job reschedule`.
#[derive(Debug, Args)]
pub(crate) struct RescheduleArgs {
    /// The job
    #[arg(value_name = "UUID", value_parser = JobId::parse)]
    pub(crate) job: JobId,
    /// When.
    #[command(flatten)]
    pub(crate) when: WhenArgs,
}

/// `workers`.
#[derive(Debug, Args)]
pub(crate) struct WorkersArgs {
    /// Only workers of this service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
}

/// What to do with the database.
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Show what the database holds, without changing it
    Info,
    /// Bring the database to the schema of this release; nothing in it is lost
    Migrate,
}

fn client_name(text: &str) -> Result<String, norfab_client::NfpError> {
    ClientName::new(text).map(|name| name.to_string())
}

fn endpoint(text: &str) -> Result<String, norfab_client::NfpError> {
    Endpoint::parse(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("norfab").chain(line.split_whitespace()))
    }

    #[track_caller]
    fn check(line: &str) -> Command {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).command
    }

    #[track_caller]
    fn refuses(line: &str, part: &str) {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(part), "{line}: {error}");
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_stand_anywhere() {
        let cli =
            parse("job list --json --base-dir /srv --client c1 --broker tcp://h:1 --connect-timeout 2").expect("ok");
        assert_eq!(cli.globals.format(), Format::Json);
        assert_eq!((cli.globals.base_dir.as_path(), cli.globals.client.as_str()), (std::path::Path::new("/srv"), "c1"));
        assert_eq!(cli.globals.connect_timeout, Duration::from_secs(2));
        refuses("--client a/b run", "client name \"a/b\" cannot be used");
        refuses("--broker h:1 run", "does not begin with tcp://");
        refuses("--connect-timeout 0 run", "at least 1 second");
    }

    #[test]
    fn a_delayed_job_has_one_time() {
        let now = Timestamp::from_seconds(1_795_996_800);
        for (when, shown) in [
            ("--in 1d12h", "2026-12-01T12:00:00Z"),
            ("--at 2026-11-30T03:00:00+02:00", "2026-11-30T01:00:00Z"),
            ("--at 1795996860", "2026-11-30T00:01:00Z"),
            ("--at -1", "1969-12-31T23:59:59Z"),
        ] {
            let Command::Job(JobCommand::Schedule(args)) = check(&format!("job schedule s t {when}")) else {
                panic!("another command")
            };
            assert_eq!(args.when.instant(now).to_string(), shown);
        }
        refuses("job schedule s t", "required");
        refuses("job schedule s t --in 5m --at 1795996800", "cannot be used with");
        refuses("job schedule s t --in 90", "write 90s for seconds");
        refuses("job schedule s t --in -5s", "\"-5s\" is negative");
        refuses("job schedule s t --in -5", "\"-5\" is negative");
        refuses("job schedule s t --in 5m --grace -1", "\"-1\" is negative");
        refuses("job run s t --timeout -5m", "\"-5m\" is negative");
        refuses("job schedule s t --at 2026-11-30T02:00:00", "write \"2026-11-30T02:00:00Z\" for UTC");
        refuses("job schedule s t --at 1795996800000", "read as milliseconds it is 2026-11-30T00:00:00Z");
        refuses("job schedule s t --in 99999999999999999999d", "longer than can be counted");
        refuses("job run s t --in 5m", "unexpected argument");
        refuses("job schedule s t --in 5m --grace soon", "not a span of time");
    }

    #[test]
    fn filters() {
        let Command::Job(JobCommand::List(args)) =
            check("job list --status new,FAILED --status stale -n 3 --worker w1")
        else {
            panic!("another command")
        };
        assert_eq!(args.status, [JobStatus::New, JobStatus::Failed, JobStatus::Stale]);
        assert_eq!((args.last, args.workers), (3, vec!["w1".to_owned()]));
        refuses("job list --status done", "is not a job status");
        refuses("job list -n 0", "not in 1..=1000");
        refuses("job show", "required");
    }
}
