//! The command line of `norfab schedule`.

use clap::{ArgGroup, Args, Subcommand};
use norfab_client::{Coalesce, NewSchedule, OverlapPolicy, Patch, ScheduleKey, ScheduleState, Timestamp};

use super::rule::{RULES, RuleArgs};
use super::{AnswerArgs, JobArgs};
use crate::given::Given;
use crate::span;

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Create a schedule: a rule that makes a job again and again
    #[command(after_help = CREATE_HELP)]
    Create(Box<CreateArgs>),
    /// List schedules, in the order of their creation
    List(SchedulesArgs),
    /// Show all that is known of a schedule
    Show(KeyArgs),
    /// Show the next instants of a schedule, or of a rule before it is one
    #[command(after_help = PREVIEW_HELP)]
    Preview(Box<PreviewArgs>),
    /// Let a schedule make no jobs until it is resumed; jobs that are there go on
    Pause(KeyArgs),
    /// Let a paused or disabled schedule go on, from now; what came due meanwhile is not caught up
    Resume(KeyArgs),
    /// Change a schedule for its future occurrences
    #[command(after_help = UPDATE_HELP)]
    Update(Box<UpdateArgs>),
    /// Switch a schedule off until it is resumed
    Disable(KeyArgs),
    /// Delete a schedule; its jobs stay, its name is free at once
    Delete(KeyArgs),
    /// Run a schedule once, now, beside its cadence
    RunNow(RunNowArgs),
}

const CREATE_HELP: &str = "\
Examples:
  norfab schedule create clock nornir cli --every 5m -k commands='[\"show clock\"]'
  norfab schedule create nightly netbox sync --daily 03:00 --timezone Europe/Berlin
  norfab schedule create audit netbox sync --weekly mon-fri@03:00 --step 2
  norfab schedule create report netbox report --cron '30 6 * * mon-fri' --timezone America/New_York
  norfab schedule create poll nornir facts --every 30s --overlap ALLOW --max-instances 3 --grace 2m --jitter 5s

The jobs are made by `norfab run` while it is running. The exit code is 3 when the name is taken.";

const PREVIEW_HELP: &str = "\
Examples:
  norfab schedule preview clock -n 10
  norfab schedule preview --every 1w --start-at 2026-12-01T02:00:00+01:00 --timezone Europe/Berlin
  norfab schedule preview --cron '30 2 * * *' --timezone America/New_York --from 2027-03-13T00:00:00Z";

const UPDATE_HELP: &str = "\
Examples:
  norfab schedule update clock --every 10m --grace 1m
  norfab schedule update clock --grace none --end-at none --workers all

What is not given stays as it is. `-k` and `--kwargs` together replace all keyword arguments.";

/// One schedule.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The schedule: its name or its UUID
    #[arg(value_name = "NAME|UUID", value_parser = key)]
    pub(crate) key: ScheduleKey,
}

/// `schedule create`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rule").args(RULES).required(true)))]
pub(crate) struct CreateArgs {
    /// The schedule's name, unique among those that are not deleted
    pub(crate) name: String,
    /// What each job does.
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// When.
    #[command(flatten)]
    pub(crate) rule: RuleArgs,
    /// Its bounds.
    #[command(flatten)]
    pub(crate) bounds: BoundsArgs,
    /// Which of several occurrences that are due at once become jobs: latest (the default), earliest or all
    #[arg(long, value_name = "POLICY")]
    pub(crate) coalesce: Option<Coalesce>,
    /// Whether a job is made while an earlier one is unfinished: FORBID (the default) or ALLOW
    #[arg(long, value_name = "POLICY")]
    pub(crate) overlap: Option<OverlapPolicy>,
    /// With ALLOW, how many jobs may be unfinished at a time (default 1)
    #[arg(long, value_name = "N")]
    pub(crate) max_instances: Option<u64>,
    /// How late an occurrence may start before it is missed: seconds, or with units; without it, however late
    #[arg(long, value_name = "SECONDS", value_parser = span::seconds, allow_hyphen_values = true)]
    pub(crate) grace: Option<u64>,
    /// Begin paused
    #[arg(long)]
    pub(crate) paused: bool,
    /// Ask the service's workers first whether they have the task
    #[arg(long)]
    pub(crate) verify: bool,
}

/// When a rule begins and ends, and how its instants are shown and spread.
#[derive(Debug, Args)]
pub(crate) struct BoundsArgs {
    /// The first instant that counts, from which the interval is counted: RFC 3339 with an offset, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, allow_negative_numbers = true)]
    pub(crate) start_at: Option<Timestamp>,
    /// The last instant that counts
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, allow_negative_numbers = true)]
    pub(crate) end_at: Option<Timestamp>,
    /// The zone by whose clocks it runs and is shown, such as Europe/Berlin (default UTC); an interval is only shown by it
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) timezone: Option<String>,
    /// Delay each occurrence by its own constant part of this: seconds, or with units (default 0)
    #[arg(long, value_name = "SECONDS", value_parser = span::seconds, allow_hyphen_values = true)]
    pub(crate) jitter: Option<u64>,
}

impl BoundsArgs {
    /// A schedule with these bounds; what is not given stays.
    #[must_use]
    pub(crate) fn onto(self, new: NewSchedule) -> NewSchedule {
        NewSchedule {
            start_at: self.start_at.or(new.start_at),
            end_at: self.end_at.or(new.end_at),
            timezone: self.timezone.unwrap_or(new.timezone),
            jitter_seconds: self.jitter.unwrap_or(new.jitter_seconds),
            ..new
        }
    }

    /// Whether nothing of it was given.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.start_at.is_none() && self.end_at.is_none() && self.timezone.is_none() && self.jitter.is_none()
    }
}

/// `schedule list`.
#[derive(Debug, Args)]
pub(crate) struct SchedulesArgs {
    /// The deleted ones instead, with the UUIDs by which their jobs are listed
    #[arg(long)]
    pub(crate) deleted: bool,
    /// Only schedules in this state; several with commas, or give it again
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<ScheduleState>,
    /// Only schedules of this service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Only schedules of this task
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// How many at the most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Go on where the page ended that told this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<i64>,
}

/// `schedule preview`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rule").args(RULES)))]
#[command(group(ArgGroup::new("of").args(["key"]).args(RULES).required(true)))]
pub(crate) struct PreviewArgs {
    /// The schedule: its name or its UUID
    #[arg(value_name = "NAME|UUID", value_parser = key)]
    pub(crate) key: Option<ScheduleKey>,
    /// Instead of a schedule, a rule.
    #[command(flatten)]
    pub(crate) rule: RuleArgs,
    /// The rule's bounds.
    #[command(flatten)]
    pub(crate) bounds: BoundsArgs,
    /// Only instants after this time, at which a rule counts as created; without it, after now
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, allow_negative_numbers = true)]
    pub(crate) from: Option<Timestamp>,
    /// How many at the most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) count: u32,
}

/// `schedule update`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rule").args(RULES)))]
pub(crate) struct UpdateArgs {
    /// The schedule: its name or its UUID
    #[arg(value_name = "NAME|UUID", value_parser = key)]
    pub(crate) key: ScheduleKey,
    /// Another name
    #[arg(long, value_name = "NAME", conflicts_with = "no_name")]
    pub(crate) name: Option<String>,
    /// No name any more: the UUID alone names it
    #[arg(long)]
    pub(crate) no_name: bool,
    /// Another service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Another task
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Another rule.
    #[command(flatten)]
    pub(crate) rule: RuleArgs,
    /// The first instant that counts, or none
    #[arg(long, value_name = "TIME", value_parser = or_none(Timestamp::parse), allow_negative_numbers = true)]
    pub(crate) start_at: Option<OrNone<Timestamp>>,
    /// The last instant that counts, or none
    #[arg(long, value_name = "TIME", value_parser = or_none(Timestamp::parse), allow_negative_numbers = true)]
    pub(crate) end_at: Option<OrNone<Timestamp>>,
    /// The zone by whose clocks it runs and is shown
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) timezone: Option<String>,
    /// Which of several occurrences that are due at once become jobs: latest, earliest or all
    #[arg(long, value_name = "POLICY")]
    pub(crate) coalesce: Option<Coalesce>,
    /// Whether a job is made while an earlier one is unfinished: FORBID or ALLOW
    #[arg(long, value_name = "POLICY")]
    pub(crate) overlap: Option<OverlapPolicy>,
    /// With ALLOW, how many jobs may be unfinished at a time
    #[arg(long, value_name = "N")]
    pub(crate) max_instances: Option<u64>,
    /// How late an occurrence may start before it is missed, or none for however late
    #[arg(long, value_name = "SECONDS", value_parser = or_none(span::seconds), allow_hyphen_values = true)]
    pub(crate) grace: Option<OrNone<u64>>,
    /// Delay each occurrence by its own constant part of this, or none
    #[arg(long, value_name = "SECONDS", value_parser = or_none(span::seconds), allow_hyphen_values = true)]
    pub(crate) jitter: Option<OrNone<u64>>,
    /// How long each job may take: seconds, or with units
    #[arg(long, value_name = "SECONDS", value_parser = span::seconds, allow_hyphen_values = true)]
    pub(crate) timeout: Option<u64>,
    /// A worker's name, or alone: all or any; give it again for more workers
    #[arg(long, value_name = "WORKER")]
    pub(crate) workers: Vec<String>,
    /// A keyword argument, as with create
    #[arg(short = 'k', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    /// Keyword arguments as a JSON object, @FILE or -
    #[arg(long, value_name = "JSON")]
    pub(crate) kwargs: Option<Given>,
    /// Positional arguments as a JSON array, @FILE or -
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<Given>,
    /// Only if the schedule is at this revision
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<u64>,
}

/// `schedule run-now`.
#[derive(Debug, Args)]
pub(crate) struct RunNowArgs {
    /// The schedule: its name or its UUID
    #[arg(value_name = "NAME|UUID", value_parser = key)]
    pub(crate) key: ScheduleKey,
    /// Also beside unfinished jobs, whatever the overlap policy says
    #[arg(long)]
    pub(crate) force: bool,
    /// Wait for the results, and send the job if no other process does
    #[arg(long)]
    pub(crate) wait: bool,
    /// What to answer, with --wait.
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
}

/// A value, or the word `none`, which takes away what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrNone<T> {
    /// Take it away.
    None,
    /// Have this.
    Some(T),
}

impl<T> OrNone<T> {
    /// What becomes of the field for an option that may not be given.
    #[must_use]
    pub(crate) fn patch(option: Option<Self>) -> Patch<T> {
        match option {
            None => Patch::Keep,
            Some(Self::None) => Patch::Clear,
            Some(Self::Some(value)) => Patch::Set(value),
        }
    }
}

fn or_none<T, E>(parse: fn(&str) -> Result<T, E>) -> impl Fn(&str) -> Result<OrNone<T>, E> + Clone {
    move |text| if text == "none" { Ok(OrNone::None) } else { parse(text).map(OrNone::Some) }
}

/// Any text is a key: a UUID or a name.
#[expect(clippy::unnecessary_wraps, reason = "the form that a parser of values has")]
pub(super) fn key(text: &str) -> Result<ScheduleKey, std::convert::Infallible> {
    Ok(ScheduleKey::parse(text))
}
