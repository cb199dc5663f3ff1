//! Names of schedules, and what a caller finds a schedule by: a name never looks like a UUID, so that a text is one or
//! the other.

use std::fmt;

use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use crate::{ScheduleId, ValidationError};

/// What a schedule is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ScheduleKey {
    /// Its identity. Finds deleted schedules too.
    Id(ScheduleId),
    /// Its name, NFC-normalised. Finds no deleted schedule: the name may be another's by now.
    Name(String),
}

impl ScheduleKey {
    /// Reads what a person gives: a UUID in any of its usual spellings, else a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match ScheduleId::parse(text) {
            Ok(id) if Uuid::try_parse(text.trim()).is_ok() => Self::Id(id),
            _ => Self::Name(text.nfc().collect()),
        }
    }
}

impl From<ScheduleId> for ScheduleKey {
    fn from(id: ScheduleId) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for ScheduleKey {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl fmt::Display for ScheduleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// The name as it is stored: NFC-normalised, whole, or refused.
pub(crate) fn checked_name(given: &str, limit: usize) -> Result<String, ValidationError> {
    let shown = || given.chars().take(300).collect();
    let name: String = given.nfc().collect();
    if name.is_empty() || name.len() > limit || name.chars().any(char::is_control) {
        Err(ValidationError::Name { field: "name", given: shown(), limit })
    } else if name.trim() != name {
        Err(ValidationError::NameEdges { given: shown() })
    } else if Uuid::try_parse(&name).is_ok() {
        Err(ValidationError::NameLikeUuid { given: shown() })
    } else {
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn accepts(given: &str, stored: &str) {
        assert_eq!(checked_name(given, 255), Ok(stored.to_owned()));
        assert_eq!(ScheduleKey::parse(given), ScheduleKey::Name(stored.to_owned()));
    }

    #[track_caller]
    fn refuses(given: &str, part: &str) {
        let error = checked_name(given, 255).expect_err(given).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn accepted() {
        accepts("collect-clock", "collect-clock");
        accepts("日本語-🚀", "日本語-🚀");
        accepts("a/b.c?d#e", "a/b.c?d#e");
        accepts("nightly  backup", "nightly  backup");
        accepts("'; DROP TABLE jobs; --", "'; DROP TABLE jobs; --");
        accepts(&"x".repeat(255), &"x".repeat(255));
        // The same name in two normal forms is one name.
        accepts("caf\u{e9}", "café");
        accepts("cafe\u{301}", "caf\u{e9}");
        // Longer than the limit as given, not as stored.
        accepts(&"e\u{301}".repeat(127), &"é".repeat(127));
    }

    #[test]
    fn refused() {
        refuses("", "name must have 1 to 255 bytes");
        refuses(&"x".repeat(256), "name must have 1 to 255 bytes");
        refuses(&"語".repeat(100), "name must have 1 to 255 bytes");
        refuses("a\nb", "no control characters");
        refuses("a\u{7f}", "no control characters");
        refuses(" leading", "must not begin or end with a blank");
        refuses("trailing\u{a0}", "must not begin or end with a blank");
        for uuid in [
            "b91ffcf2623a43f4a28e478b65c0647a",
            "B91FFCF2-623A-43F4-A28E-478B65C0647A",
            "{b91ffcf2-623a-43f4-a28e-478b65c0647a}",
            "urn:uuid:b91ffcf2-623a-43f4-a28e-478b65c0647a",
        ] {
            refuses(uuid, "looks like a UUID");
            let id = ScheduleId::new("b91ffcf2623a43f4a28e478b65c0647a").expect("valid");
            assert_eq!(ScheduleKey::parse(uuid), ScheduleKey::Id(id));
        }
    }

    #[test]
    fn shown() {
        assert_eq!(ScheduleKey::from("nightly").to_string(), "\"nightly\"");
        let id = "b91ffcf2623a43f4a28e478b65c0647a";
        assert_eq!(ScheduleKey::from(id).to_string(), id);
    }
}
