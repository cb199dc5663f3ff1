//! When a schedule runs, as a rule, and the rule's occurrences within their bounds. All of it is arithmetic on the
//! instants that are handed in.

mod calendar;
mod civil;
mod clock;
mod config;
mod cron;
mod error;
mod interval;
mod names;
mod occurrences;
mod words;

use std::fmt;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

pub use calendar::{Cadence, Calendar, TimeOfDay, Weekdays};
pub use cron::{Cron, UnevenStep};
pub use error::TriggerError;
pub use interval::Interval;
pub use occurrences::{Moved, Occurrences};
pub(crate) use words::{FEW, some_of};

use crate::text::shown;

/// A rule that yields instants, each on a whole second, strictly one after the other; [`Occurrences`] are they.
///
/// As JSON an object whose `type` names the kind:
///
/// - `{"type":"interval","seconds":300,"mode":"fixed_rate"}`; the mode may be left out;
/// - `{"type":"cron","expression":"0 3 * * *","seconds":false,"version":1}`; `seconds` and `version` may be left out;
/// - `{"type":"calendar","every":1,"unit":"day","at":"03:00","version":1}`, with `"unit":"week"` also
///   `"weekdays":["mon","thu"]`, with `"unit":"month"` also `"day":31`; `every` and `version` may be left out.
///
/// In the database the kind stands in a column of its own, [`kind`](Self::kind), and the rest in another,
/// [`config`](Self::config).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// Every so many seconds of elapsed time.
    Interval(Interval),
    /// The times of a cron expression, by the clocks of the schedule's zone.
    Cron(Cron),
    /// Every so many days, weeks or months at a time of day, by the clocks of the schedule's zone.
    Calendar(Calendar),
}

impl Trigger {
    /// The text of the database's column `trigger_type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Interval(_) => "interval",
            Self::Cron(_) => "cron",
            Self::Calendar(_) => "calendar",
        }
    }

    /// The text of the database's column `trigger_config`: a JSON object.
    #[must_use]
    pub fn config(&self) -> String {
        let entries = self.entries().into_iter().map(|(key, value)| format!(r#""{key}":{value}"#));
        format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
    }

    /// The keys and values of the configuration, in their order.
    fn entries(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Interval(interval) => interval.config(),
            Self::Cron(cron) => cron.config(),
            Self::Calendar(calendar) => calendar.config(),
        }
    }

    /// Reads the two columns of the database.
    ///
    /// # Errors
    /// [`TriggerError`] for a kind or a configuration that is not one of this release's.
    pub fn from_columns(kind: &str, config: &str) -> Result<Self, TriggerError> {
        match serde_json::from_str(config) {
            Ok(Value::Object(config)) => Self::from_parts(kind, &config),
            _ => Err(TriggerError::Malformed { given: shown(config) }),
        }
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`TriggerError`] that names the key and the value.
    pub fn from_json(value: &Value) -> Result<Self, TriggerError> {
        let malformed = || TriggerError::Malformed { given: shown(&value.to_string()) };
        let mut config = value.as_object().ok_or_else(malformed)?.clone();
        match config.remove("type") {
            Some(Value::String(kind)) => Self::from_parts(&kind, &config),
            Some(other) => Err(TriggerError::UnknownType { given: shown(&other.to_string()) }),
            None => Err(malformed()),
        }
    }

    fn from_parts(kind: &str, config: &Map<String, Value>) -> Result<Self, TriggerError> {
        match kind {
            "interval" => Interval::from_config(config).map(Self::Interval),
            "cron" => Cron::from_config(config).map(Self::Cron),
            "calendar" => Calendar::from_config(config).map(Self::Calendar),
            _ => Err(TriggerError::UnknownType { given: shown(kind) }),
        }
    }

    /// Whether the zone of the schedule decides about its instants, and not only about how they are shown.
    #[must_use]
    pub const fn is_zone_bound(&self) -> bool {
        match self {
            Self::Interval(_) => false,
            Self::Cron(_) | Self::Calendar(_) => true,
        }
    }

    /// Whether its times are those of a clock on the wall at a clock change, each once, or else steps through hours that
    /// are not every one: what a change of the clocks does to it is not plain from the rule.
    #[must_use]
    pub fn heeds_clock_changes(&self) -> bool {
        match self {
            Self::Interval(_) => false,
            Self::Cron(cron) => !cron.has_every_hour(),
            Self::Calendar(_) => true,
        }
    }

    /// Whether it is a cron expression of free hours, which follows elapsed time when the clocks change.
    #[must_use]
    pub fn has_free_hours(&self) -> bool {
        matches!(self, Self::Cron(cron) if cron.has_free_hours())
    }

    /// The rule in words: `every 5m`, `at 03:00 every day`, `on the 13th or on Fridays at 00:00`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Interval(_) | Self::Calendar(_) => self.to_string(),
            Self::Cron(cron) => words::of_cron(cron),
        }
    }
}

impl From<Interval> for Trigger {
    fn from(interval: Interval) -> Self {
        Self::Interval(interval)
    }
}

impl From<Cron> for Trigger {
    fn from(cron: Cron) -> Self {
        Self::Cron(cron)
    }
}

impl From<Calendar> for Trigger {
    fn from(calendar: Calendar) -> Self {
        Self::Calendar(calendar)
    }
}

impl fmt::Display for Trigger {
    /// `every 5m`; a cron expression as it is written; a calendar interval in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval(interval) => write!(f, "every {interval}"),
            Self::Cron(cron) => cron.fmt(f),
            Self::Calendar(calendar) => calendar.fmt(f),
        }
    }
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        self.entries().iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn refuses(value: &Value, part: &str) {
        let error = Trigger::from_json(value).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn forms() {
        let five = Trigger::from(Interval::new(300).expect("valid"));
        is(&five, r#"{"type":"interval","seconds":300,"mode":"fixed_rate"}"#, "every 5m");
        assert_eq!(Trigger::from_json(&json!({"type": "interval", "seconds": 300})), Ok(five));

        let cron = Trigger::from(Cron::new(" 0  3 * * * ").expect("valid"));
        is(&cron, r#"{"type":"cron","expression":"0 3 * * *","seconds":false,"version":1}"#, "0 3 * * *");
        assert_eq!(Trigger::from_json(&json!({"type": "cron", "expression": "0 3 * * *"})), Ok(cron));
        let cron = Trigger::from(Cron::with_seconds("*/5 * * * * *").expect("valid"));
        is(&cron, r#"{"type":"cron","expression":"*/5 * * * * *","seconds":true,"version":1}"#, "*/5 * * * * *");

        let daily = Trigger::from(Calendar::daily("3:00:30").expect("valid"));
        let json = r#"{"type":"calendar","every":1,"unit":"day","at":"03:00:30","version":1}"#;
        is(&daily, json, "at 03:00:30 every day");
        assert_eq!(Trigger::from_json(&json!({"type": "calendar", "unit": "day", "at": "03:00:30"})), Ok(daily));
        let weekly = Trigger::from(Calendar::weekly("SUN, thu,mon@03:00").expect("valid"));
        let json =
            r#"{"type":"calendar","every":1,"unit":"week","at":"03:00","weekdays":["mon","thu","sun"],"version":1}"#;
        is(&weekly, json, "on Mondays, Thursdays and Sundays at 03:00");
        let monthly = Trigger::from(Calendar::monthly("31@03:00").expect("valid"));
        let json = r#"{"type":"calendar","every":1,"unit":"month","at":"03:00","day":31,"version":1}"#;
        is(&monthly, json, "on the 31st, or else the last day, of every month at 03:00");
    }

    /// One trigger in all its forms.
    #[track_caller]
    fn is(trigger: &Trigger, json: &str, text: &str) {
        assert_eq!(serde_json::to_string(trigger).expect("serialises"), json);
        assert_eq!(serde_json::from_str::<Trigger>(json).expect("reads"), *trigger);
        assert_eq!(Trigger::from_columns(trigger.kind(), &trigger.config()), Ok(trigger.clone()));
        assert!(json.ends_with(&trigger.config()[1..]), "{}", trigger.config());
        assert_eq!(trigger.to_string(), text);
    }

    #[test]
    fn refused_configurations() {
        let cron = |key: &str, value: Value| {
            let mut config = json!({"type": "cron", "expression": "0 3 * * *"});
            config[key] = value;
            config
        };
        refuses(
            &cron("zone", json!("UTC")),
            "the key \"zone\" of the cron trigger is unknown; its keys are expression",
        );
        refuses(&cron("version", json!(2)), "version 2 of the cron trigger is unknown; this release knows version 1");
        refuses(&cron("version", json!("1")), "version \"1\" of the cron trigger");
        refuses(&cron("seconds", json!(1)), "seconds of the cron trigger must be true or false, but it is 1");
        refuses(&cron("expression", json!(5)), "expression of the cron trigger must be a text");
        refuses(&json!({"type": "cron"}), "but it is absent");
        refuses(&cron("expression", json!("")), "has 0 fields; it needs five");
        refuses(&cron("seconds", json!(true)), "has 5 fields; with seconds it needs six");

        let calendar = |key: &str, value: Value| {
            let mut config = json!({"type": "calendar", "unit": "month", "at": "03:00", "day": 31});
            config[key] = value;
            config
        };
        refuses(&calendar("at", json!("24:00")), "at of the calendar trigger must be a time of day");
        refuses(&calendar("at", json!(3)), "but it is 3");
        refuses(
            &calendar("day", json!(0)),
            "day of the calendar trigger must be a day of the month, 1 to 31, but it is 0",
        );
        refuses(&calendar("day", json!(32)), "a day of the month, 1 to 31, but it is 32");
        refuses(&calendar("day", json!("31")), "but it is \"31\"");
        refuses(&calendar("every", json!(0)), "must be of 1 to 120 months, but it is of 0");
        refuses(&calendar("every", json!(121)), "but it is of 121");
        refuses(&calendar("every", json!(u64::MAX)), "every of the calendar trigger must be a whole number");
        refuses(&calendar("every", json!(1.5)), "but it is 1.5");
        refuses(
            &calendar("unit", json!("year")),
            "unit of the calendar trigger must be \"day\", \"week\" or \"month\"",
        );
        refuses(&calendar("unit", json!("day")), "day of the calendar trigger must be absent with this unit");
        refuses(
            &calendar("weekdays", json!(["mon"])),
            "weekdays of the calendar trigger must be absent with this unit",
        );
        refuses(&calendar("version", json!(0)), "version 0 of the calendar trigger");
        refuses(&calendar("zone", json!("UTC")), "the key \"zone\"");
        for weekdays in [json!([]), json!(["mo"]), json!("mon"), json!([1]), json!(null)] {
            let config = json!({"type": "calendar", "unit": "week", "at": "03:00", "weekdays": weekdays});
            refuses(&config, "weekdays of the calendar trigger must be a list of weekdays");
        }
    }

    #[test]
    fn refused() {
        refuses(&json!([]), "[] is not a trigger");
        refuses(&json!("5m"), "\"5m\" is not a trigger");
        refuses(&json!({"seconds": 300}), "is not a trigger");
        refuses(&json!({"type": "solar", "seconds": 300}), "the trigger type \"solar\" is unknown");
        refuses(&json!({"type": 7}), "the trigger type \"7\" is unknown");
        refuses(&json!({"type": "interval"}), "but it is absent");
        refuses(&json!({"type": "interval", "seconds": 300, "mode": "fixed_delay"}), "the mode \"fixed_delay\"");
        refuses(&json!({"type": "interval", "seconds": 300, "mode": null}), "the mode null");
        refuses(&json!({"type": "interval", "minutes": 5}), "the key \"minutes\"");
        for seconds in [json!(0), json!(-5), json!(0.001), json!(300.0), json!("300"), json!("NaN"), json!(null)] {
            let given = seconds.to_string();
            refuses(&json!({"type": "interval", "seconds": seconds}), &format!("but it is {given}"));
        }
        refuses(&json!({"type": "interval", "seconds": 315_619_201}), "must be 1 to 315619200 whole seconds");
        refuses(&json!({"type": "interval", "seconds": u64::MAX}), "but it is 18446744073709551615");
    }

    #[test]
    fn columns_edited_by_hand() {
        for (kind, config) in [
            ("interval", ""),
            ("interval", "5m"),
            ("interval", "[300]"),
            ("interval", r#"{"seconds":NaN}"#),
            ("interval", r#"{"seconds":0}"#),
            ("Interval", r#"{"seconds":300}"#),
            ("", r#"{"seconds":300}"#),
        ] {
            assert!(Trigger::from_columns(kind, config).is_err(), "{kind} {config}");
        }
    }
}
