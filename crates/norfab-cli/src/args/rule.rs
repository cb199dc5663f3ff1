//! When a schedule runs, as a person types it: an interval, a cron expression, or a time of day on some days.

use clap::Args;
use norfab_client::{Calendar, Cron, Interval, Limits, Trigger};

use crate::failure::Failure;
use crate::given::Given;
use crate::payload;
use crate::signals::Signals;

/// The options of which one says when a schedule runs.
pub(crate) const RULES: [&str; 6] = ["every", "cron", "daily", "weekly", "monthly", "trigger"];

/// When a schedule runs: at most one of these, but for the seconds and the step.
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
    /// On days of the week at a time by the clocks of --timezone: mon,thu@03:00 or mon-fri@03:00
    #[arg(long, value_name = "DAYS@TIME", value_parser = Calendar::weekly, allow_hyphen_values = true)]
    pub(crate) weekly: Option<Calendar>,
    /// On a day of the month, or else its last, at a time by the clocks of --timezone: 31@03:00
    #[arg(long, value_name = "DAY@TIME", value_parser = Calendar::monthly, allow_hyphen_values = true)]
    pub(crate) monthly: Option<Calendar>,
    /// With --daily, --weekly or --monthly: only every so many days, weeks or months (default 1)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) step: Option<u32>,
    /// A rule of any kind as a JSON object, @FILE or -: '{"type":"calendar","every":2,"unit":"day","at":"03:00"}'
    #[arg(long, value_name = "JSON")]
    pub(crate) trigger: Option<Given>,
}

impl RuleArgs {
    /// The rule; None when none was given. Waits for one that comes through standard input.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an expression or an object that is none, and for seconds and a step without their rule.
    pub(crate) async fn read(self, signals: &mut Signals) -> Result<Option<Trigger>, Failure> {
        // clap's own `requires` does not hold beside another option of the group.
        if self.seconds && self.cron.is_none() {
            return Err(Failure::Usage("--seconds belongs to --cron: give a cron expression of six fields".to_owned()));
        }
        let by_days = self.daily.or(self.weekly).or(self.monthly);
        if self.step.is_some() && by_days.is_none() {
            return Err(Failure::Usage(
                "--step belongs to --daily, --weekly or --monthly: give one of them".to_owned(),
            ));
        }
        if let Some(expression) = &self.cron {
            let read = if self.seconds { Cron::with_seconds } else { Cron::new };
            return Ok(Some(read(expression).map_err(|error| unusable("--cron", error))?.into()));
        }
        if let Some(calendar) = by_days {
            let every = self.step.unwrap_or(calendar.every());
            return Ok(Some(calendar.every_nth(every).map_err(|error| unusable("--step", error))?.into()));
        }
        match self.trigger {
            Some(given) => {
                let text = tokio::select! {
                    text = given.text("--trigger", Limits::default().payload_bytes) => text?,
                    signal = signals.next() => return Err(Failure::Interrupted(signal)),
                };
                let object = payload::json("--trigger", &text)?;
                Ok(Some(Trigger::from_json(&object).map_err(|error| unusable("--trigger", error))?))
            }
            None => Ok(self.every.map(Trigger::from)),
        }
    }

    /// The rule, which is there.
    ///
    /// # Errors
    /// As [`read`](Self::read), and for none.
    pub(crate) async fn required(self, signals: &mut Signals) -> Result<Trigger, Failure> {
        let none = "a rule is needed: --every, --cron, --daily, --weekly, --monthly or --trigger";
        self.read(signals).await?.ok_or_else(|| Failure::Usage(none.to_owned()))
    }
}

fn unusable(option: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option} cannot be used: {error}"))
}
