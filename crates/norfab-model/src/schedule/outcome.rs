//! What the last look at a due schedule came to: kept on its row, shown to people.

use std::fmt;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};

use super::Coalesce;
use crate::Timestamp;

/// What became of the occurrences that were due when a schedule was last looked at. As a JSON array it stands in the column
/// `last_outcome`. Each of them is in exactly one of the counts below `due`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOutcome {
    /// When it was looked at.
    pub when: Timestamp,
    /// The policy by which it was decided.
    pub coalesce: Coalesce,
    /// Occurrences that were due.
    pub due: u64,
    /// Those that became NEW jobs.
    #[serde(default)]
    pub created: u64,
    /// Those that another of them stands for.
    #[serde(default)]
    pub coalesced: u64,
    /// Those beyond their grace.
    #[serde(default)]
    pub missed: u64,
    /// Those that found no room beside unfinished jobs.
    #[serde(default)]
    pub skipped: u64,
    /// Those that were decided before: the clock had gone back over them.
    #[serde(default)]
    pub passed_over: u64,
    /// Those that stay due for the next pass, since the budget of this one was spent.
    #[serde(default)]
    pub remaining: u64,
}

impl LastOutcome {
    /// Reads the column. It only informs: what cannot be read is as good as nothing.
    #[must_use]
    pub fn from_column(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The text of the column: the fields in their order, without zeros at the end. It is written with each occurrence, and
    /// a row that grows by little mostly stays on its page.
    #[must_use]
    pub fn to_column(&self) -> String {
        // Numbers, a word and a time: it has a JSON form always.
        serde_json::to_string(&Fields(self)).unwrap_or_default()
    }
}

/// The fields without their names.
struct Fields<'a>(&'a LastOutcome);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LastOutcome { when, coalesce, due, created, coalesced, missed, skipped, passed_over, remaining } = self.0;
        let counts = [due, created, coalesced, missed, skipped, passed_over, remaining];
        // The first stands there always.
        let last = counts.iter().rposition(|count| **count > 0).unwrap_or(0);
        let mut fields = serializer.serialize_seq(None)?;
        fields.serialize_element(when)?;
        fields.serialize_element(coalesce)?;
        for count in counts.iter().take(last + 1) {
            fields.serialize_element(count)?;
        }
        fields.end()
    }
}

impl fmt::Display for LastOutcome {
    /// `6 due: 1 created (latest), 5 coalesced`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let created = if self.coalesced > 0 { format!("created ({})", self.coalesce) } else { "created".to_owned() };
        let counts = [
            (self.created, created.as_str()),
            (self.coalesced, "coalesced"),
            (self.missed, "missed (beyond the grace)"),
            (self.skipped, "skipped (an earlier job was unfinished)"),
            (self.passed_over, "passed over (decided before the clock went back)"),
            (self.remaining, "left for the next pass"),
        ];
        let parts: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        write!(f, "{} due: {}", self.due, parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(coalesce: Coalesce, due: u64, created: u64) -> LastOutcome {
        let when = Timestamp::from_seconds(1_795_996_800);
        LastOutcome { when, coalesce, due, created, coalesced: 0, missed: 0, skipped: 0, passed_over: 0, remaining: 0 }
    }

    #[track_caller]
    fn check(outcome: LastOutcome, shown: &str) {
        assert_eq!(outcome.to_string(), shown);
        assert_eq!(LastOutcome::from_column(&outcome.to_column()), Some(outcome));
    }

    /// As it was stored first.
    #[test]
    fn one_with_named_fields_is_read() {
        let named = r#"{"when":"2026-11-30T00:00:00Z","coalesce":"latest","due":1,"created":1}"#;
        assert_eq!(LastOutcome::from_column(named), Some(outcome(Coalesce::Latest, 1, 1)));
    }

    #[test]
    fn shown() {
        use Coalesce::{All, Earliest, Latest};
        check(LastOutcome { coalesced: 5, ..outcome(Latest, 6, 1) }, "6 due: 1 created (latest), 5 coalesced");
        check(LastOutcome { coalesced: 5, ..outcome(Earliest, 6, 1) }, "6 due: 1 created (earliest), 5 coalesced");
        check(outcome(Latest, 1, 1), "1 due: 1 created");
        check(
            LastOutcome { coalesced: 5, missed: 1, ..outcome(Latest, 6, 0) },
            "6 due: 5 coalesced, 1 missed (beyond the grace)",
        );
        check(
            LastOutcome { skipped: 5, ..outcome(All, 6, 1) },
            "6 due: 1 created, 5 skipped (an earlier job was unfinished)",
        );
        check(LastOutcome { remaining: 3, ..outcome(All, 6, 3) }, "6 due: 3 created, 3 left for the next pass");
        check(
            LastOutcome { passed_over: 1, ..outcome(All, 1, 0) },
            "1 due: 1 passed over (decided before the clock went back)",
        );
    }

    #[test]
    fn column() {
        let text = outcome(Coalesce::Latest, 1, 1).to_column();
        assert_eq!(text, r#"["2026-11-30T00:00:00Z","latest",1,1]"#);
        let text = LastOutcome { remaining: 3, ..outcome(Coalesce::All, 6, 3) }.to_column();
        assert_eq!(text, r#"["2026-11-30T00:00:00Z","all",6,3,0,0,0,0,3]"#);
        check(outcome(Coalesce::All, 0, 0), "0 due: ");
        for unreadable in ["", "{}", "[]", "null", r#"{"when":7}"#, r#"["2026-11-30T00:00:00Z","latest"]"#] {
            assert_eq!(LastOutcome::from_column(unreadable), None);
        }
    }
}
