//! Whether JSON is such that the workers of NorFab can read it: their parser is stricter than the grammar, and JSON that
//! it refuses costs a worker the thread by which it takes jobs.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::Json;

/// JSON that a worker's parser refuses, at the cost of the worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("arguments would break a worker: {problem} (line {line}, column {column})")]
pub struct UnsafePayload {
    /// What is wrong there.
    pub problem: &'static str,
    /// Line in the JSON text, from 1.
    pub line: usize,
    /// Column in the JSON text, from 1.
    pub column: usize,
}

/// Whether the workers' JSON parser takes this value. It is stricter than the grammar: numbers must not overflow a
/// double, escapes must not be half of a surrogate pair, and nesting has an end (128 levels here, 1,024 there).
///
/// # Errors
/// [`UnsafePayload`] with the place in the text, never the text.
pub fn check_payload(json: &Json) -> Result<(), UnsafePayload> {
    json.to::<Checked>().map(|_| ()).map_err(|error| UnsafePayload {
        line: error.line(),
        column: error.column(),
        problem: problem_of(&error),
    })
}

/// The parser's own words carry no values for the errors that can happen in text that is JSON already.
fn problem_of(error: &serde_json::Error) -> &'static str {
    let text = error.to_string();
    if text.starts_with("number out of range") {
        "a number is too large"
    } else if text.starts_with("recursion limit") {
        "it is nested too deeply"
    } else if text.contains("surrogate") || text.contains("hex escape") || text.contains("code point") {
        "an escape is half of a surrogate pair"
    } else {
        "it is not valid JSON"
    }
}

/// Visits a whole JSON value, keeps nothing of it.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CheckedVisitor)
    }
}

struct CheckedVisitor;

impl<'de> Visitor<'de> for CheckedVisitor {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Checked, A::Error> {
        while items.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Checked, A::Error> {
        while entries.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(Checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, problem: Option<&str>) {
        let json = Json::parse(text).expect(text);
        assert_eq!(check_payload(&json).err().map(|error| error.problem), problem, "{text}");
    }

    #[test]
    fn what_workers_read() {
        check(r#"{"a": [1, -0.5, 1e300, null, true, "\ud83d\ude80 日本"]}"#, None);
        check("9007199254740993", None);
    }

    #[test]
    fn what_they_refuse() {
        check("[1e400]", Some("a number is too large"));
        check(r#""\ud800""#, Some("an escape is half of a surrogate pair"));
        check(&format!("{}{}", "[".repeat(120), "]".repeat(120)), None);
        let error = check_payload(&Json::parse("[\n 1, 1e999]").expect("JSON")).expect_err("too large");
        assert_eq!(error.line, 2);
        assert!(!error.to_string().contains("999"), "{error}");
    }
}
