//! When a schedule runs, as a rule, and the rule's occurrences within their bounds. All of it is arithmetic on the
//! instants that are handed in.

mod interval;
mod occurrences;

use std::fmt;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

pub use interval::Interval;
pub use occurrences::Occurrences;

use crate::{Timestamp, text::shown};

/// A rule that yields instants, each on a whole second, strictly one after the other.
///
/// As JSON an object whose `type` names the kind: `{"type":"interval","seconds":300,"mode":"fixed_rate"}`. In the
/// database the kind stands in a column of its own, [`kind`](Self::kind), and the rest in another,
/// [`config`](Self::config).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// Every so many seconds of elapsed time.
    Interval(Interval),
}

/// Why something is no trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// Not a JSON object with the right keys.
    #[error("{given} is not a trigger; write {{\"type\":\"interval\",\"seconds\":300}}")]
    Malformed {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A kind that this release does not know.
    #[error("the trigger type {given:?} is unknown; the only one is \"interval\"")]
    UnknownType {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A key that this release does not know: it might change the meaning, so that it cannot be left out.
    #[error("the key {given:?} of an interval trigger is unknown; the keys are \"seconds\" and \"mode\"")]
    UnknownKey {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A mode that this release does not know.
    #[error("the mode {given} of an interval trigger is unknown; the only one is \"fixed_rate\"")]
    UnknownMode {
        /// What was given, as JSON, its first 200 characters.
        given: String,
    },
    /// Not a number of seconds that an interval can have.
    #[error("an interval must be 1 to {limit} whole seconds, but it is {given}", limit = Interval::MAX_SECONDS)]
    Seconds {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A text that is no length of time.
    #[error("{given:?} is not an interval; write seconds, or numbers with units such as 90s, 5m, 1h30m, 2d, 1w")]
    Text {
        /// What was given, its first 200 characters.
        given: String,
    },
}

impl Trigger {
    /// The text of the database's column `trigger_type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Interval(_) => "interval",
        }
    }

    /// The text of the database's column `trigger_config`: a JSON object.
    #[must_use]
    pub fn config(&self) -> String {
        match self {
            Self::Interval(interval) => {
                format!(r#"{{"seconds":{},"mode":"{}"}}"#, interval.seconds(), interval::FIXED_RATE)
            }
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
            _ => Err(TriggerError::UnknownType { given: shown(kind) }),
        }
    }

    /// The first instant of the rule after this one. None when there is none before the end of the calendar.
    #[must_use]
    pub fn next_after(&self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Interval(interval) => interval.next_after(anchor, instant),
        }
    }

    /// The last instant of the rule at or before this one. None when there is none since the start of the calendar.
    #[must_use]
    pub fn last_at_or_before(&self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Interval(interval) => interval.last_at_or_before(anchor, instant),
        }
    }

    /// How many instants of the rule there are from one instant to another, both included.
    #[must_use]
    pub fn count_between(&self, anchor: Timestamp, from: Timestamp, to: Timestamp) -> u64 {
        match self {
            Self::Interval(interval) => interval.count_between(anchor, from, to),
        }
    }
}

impl From<Interval> for Trigger {
    fn from(interval: Interval) -> Self {
        Self::Interval(interval)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval(interval) => write!(f, "every {interval}"),
        }
    }
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("type", self.kind())?;
        match self {
            Self::Interval(interval) => {
                map.serialize_entry("seconds", &interval.seconds())?;
                map.serialize_entry("mode", interval::FIXED_RATE)?;
            }
        }
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
        let trigger = Trigger::from(Interval::new(300).expect("valid"));
        let json = r#"{"type":"interval","seconds":300,"mode":"fixed_rate"}"#;
        assert_eq!(serde_json::to_string(&trigger).expect("serialises"), json);
        assert_eq!(serde_json::from_str::<Trigger>(json).expect("reads"), trigger);
        assert_eq!(Trigger::from_json(&json!({"type": "interval", "seconds": 300})), Ok(trigger.clone()));
        assert_eq!(trigger.config(), r#"{"seconds":300,"mode":"fixed_rate"}"#);
        assert_eq!(Trigger::from_columns(trigger.kind(), &trigger.config()), Ok(trigger.clone()));
        assert_eq!(trigger.to_string(), "every 5m");
    }

    #[test]
    fn refused() {
        refuses(&json!([]), "[] is not a trigger");
        refuses(&json!("5m"), "\"5m\" is not a trigger");
        refuses(&json!({"seconds": 300}), "is not a trigger");
        refuses(&json!({"type": "cron", "seconds": 300}), "the trigger type \"cron\" is unknown");
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
