//! When a schedule runs, as a person types it: an interval, a cron expression, or a time of day on some days.

use clap::Args;
use norfab_client::{Calendar, Cron, Interval, Trigger};

use crate::failure::Failure;

/// The options of which one says when a schedule runs.
pub(crate) const RULES: [&str; 5] = ["every", "cron", "daily", "weekly", "monthly"];

/// When a schedule runs: at most one of these, but for the seconds.
#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// Every so many seconds of elapsed time: 30s, 5m, 1h30m, 1d, 1w, or whole seconds
    #[arg(long, value_name = "INTERVAL", allow_hyphen_values = true)]
    pub(crate) every: Option<Interval>,
    /// At the times of a cron expression, by the clocks of --timezone: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) cron: Option<String>,
    /// The expression of --cron has six fields, the second first
    #[arg(long)]
    pub(crate) seconds: bool,
    /// Every day at a time by the clocks of --timezone: 03:00
    #[arg(long, value_name = "TIME", value_parser = Calendar::daily, allow_hyphen_values = true)]
    pub(crate) daily: Option<Calendar>,
    /// On days of the week at a time by the clocks of --timezone: mon,thu@03:00
    #[arg(long, value_name = "DAYS@TIME", value_parser = Calendar::weekly, allow_hyphen_values = true)]
    pub(crate) weekly: Option<Calendar>,
    /// On a day of the month, or else its last, at a time by the clocks of --timezone: 31@03:00
    #[arg(long, value_name = "DAY@TIME", value_parser = Calendar::monthly, allow_hyphen_values = true)]
    pub(crate) monthly: Option<Calendar>,
}

impl RuleArgs {
    /// The rule; None when none was given.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an expression that is none, and for seconds without one.
    pub(crate) fn trigger(self) -> Result<Option<Trigger>, Failure> {
        if let Some(expression) = &self.cron {
            let read = if self.seconds { Cron::with_seconds } else { Cron::new };
            let cron = read(expression).map_err(|error| Failure::Usage(format!("--cron cannot be used: {error}")))?;
            return Ok(Some(cron.into()));
        }
        // clap's own `requires` does not hold beside another option of the group.
        if self.seconds {
            return Err(Failure::Usage("--seconds belongs to --cron: give a cron expression of six fields".to_owned()));
        }
        let by_days = self.daily.or(self.weekly).or(self.monthly);
        Ok(self.every.map(Trigger::from).or(by_days.map(Trigger::from)))
    }

    /// The rule, which is there.
    ///
    /// # Errors
    /// As [`trigger`](Self::trigger), and for none.
    pub(crate) fn required(self) -> Result<Trigger, Failure> {
        let none = || Failure::Usage("a rule is needed: --every, --cron, --daily, --weekly or --monthly".to_owned());
        self.trigger()?.ok_or_else(none)
    }
}
