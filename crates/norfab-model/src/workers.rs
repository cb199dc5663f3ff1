//! Which workers a job is for.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The workers that a caller asks for. As JSON: `"all"`, `"any"`, `"name"`, or an array of names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Workers {
    /// Every worker of the service.
    All,
    /// One worker of the service, whichever.
    Any,
    /// This one.
    One(String),
    /// Each of these.
    List(Vec<String>),
}

/// Why a value names no workers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workers must be \"all\", \"any\", a name or a list of names, but they are {given}")]
pub struct WorkersError {
    /// The JSON that was given, its first 200 characters.
    pub given: String,
}

impl Workers {
    /// The workers of a list as a person gives it: one word `all` or `any` is the keyword, else they are names.
    #[must_use]
    pub fn from_names(names: Vec<String>) -> Self {
        match names.as_slice() {
            [] => Self::All,
            [one] => Self::from_word(one),
            _ => Self::List(names),
        }
    }

    fn from_word(word: &str) -> Self {
        match word {
            "all" => Self::All,
            "any" => Self::Any,
            name => Self::One(name.to_owned()),
        }
    }

    /// The names, where they are named.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::All | Self::Any => None,
            Self::One(name) => Some(std::slice::from_ref(name)),
            Self::List(names) => Some(names),
        }
    }
}

impl From<Workers> for Value {
    fn from(workers: Workers) -> Value {
        match workers {
            Workers::All => "all".into(),
            Workers::Any => "any".into(),
            Workers::One(name) => name.into(),
            Workers::List(names) => names.into(),
        }
    }
}

impl TryFrom<Value> for Workers {
    type Error = WorkersError;
    fn try_from(value: Value) -> Result<Self, WorkersError> {
        let error = || WorkersError { given: value.to_string().chars().take(200).collect() };
        match &value {
            Value::String(word) => Ok(Self::from_word(word)),
            Value::Array(names) => {
                let names: Option<Vec<_>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
                Ok(Self::List(names.ok_or_else(error)?))
            }
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Any => f.write_str("any"),
            Self::One(name) => f.write_str(name),
            Self::List(names) => f.write_str(&names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, workers: Workers) {
        let read: Workers = serde_json::from_str(json).expect(json);
        assert_eq!(read, workers);
        assert_eq!(serde_json::to_string(&workers).expect("serialises"), json);
    }

    #[test]
    fn forms() {
        check("\"all\"", Workers::All);
        check("\"any\"", Workers::Any);
        check("\"w1\"", Workers::One("w1".into()));
        check("[\"w1\"]", Workers::List(vec!["w1".into()]));
        check("[\"w1\",\"w2\"]", Workers::List(vec!["w1".into(), "w2".into()]));
        for wrong in ["1", "null", "{}", "[1]"] {
            assert!(serde_json::from_str::<Workers>(wrong).is_err(), "{wrong}");
        }
    }
}
