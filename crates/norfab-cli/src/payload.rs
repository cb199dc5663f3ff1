//! Arguments of a job from what a person typed: `-k key=value`, `--kwargs`, `--args`. No error here repeats a value.

mod twice;

use std::collections::BTreeMap;

use norfab_client::{Json, Workers};

/// What is wrong with the arguments for a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PayloadError {
    /// No equals sign, or nothing before it.
    #[error("-k needs KEY=VALUE, and one was given without a key or without \"=\"")]
    NoKey,
    /// One argument, two values.
    #[error("the keyword argument {0:?} is given twice; give it once")]
    Twice(String),
    /// JSON, but with an object of which only a part would arrive.
    #[error("{option} has an object with the same key twice (line {line}, column {column}); give it once")]
    KeyTwice {
        /// The option.
        option: &'static str,
        /// Where the second one stands: line in its value, from 1.
        line: usize,
        /// Column in its value, from 1.
        column: usize,
    },
    /// No JSON at all.
    #[error("{option} is not valid JSON (line {line}, column {column})")]
    NotJson {
        /// The option.
        option: &'static str,
        /// Line in its value, from 1.
        line: usize,
        /// Column in its value, from 1.
        column: usize,
    },
    /// JSON of another shape.
    #[error("{option} must be {shape}, such as {example}")]
    Shape {
        /// The option.
        option: &'static str,
        /// What it must be.
        shape: &'static str,
        /// An example.
        example: &'static str,
    },
    /// A keyword among names.
    #[error("--workers {0} stands alone; leave the other workers out, or name each of them")]
    NotAlone(String),
}

/// A value as typed: JSON when it is valid JSON, else text. Quotes force text: `'"5"'`.
#[must_use]
pub(crate) fn value(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::from(serde_json::Value::from(text)))
}

/// The keyword arguments: the members of `--kwargs` and all `-k`.
///
/// # Errors
/// [`PayloadError`], also for a key that is given twice.
pub(crate) fn kwargs(pairs: &[String], object: Option<&str>) -> Result<Json, PayloadError> {
    let mut members: BTreeMap<String, Json> = match object {
        Some(text) => parse("--kwargs", text)?.to().map_err(|_| PayloadError::Shape {
            option: "--kwargs",
            shape: "a JSON object",
            example: "'{\"commands\": [\"show clock\"]}'",
        })?,
        None => BTreeMap::new(),
    };
    for pair in pairs {
        let (key, text) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or(PayloadError::NoKey)?;
        let value = value(text);
        refuse_keys_twice("-k", &value)?;
        if members.insert(key.to_owned(), value).is_some() {
            return Err(PayloadError::Twice(key.to_owned()));
        }
    }
    // A map with text keys has a JSON form always.
    Ok(Json::of(&members).unwrap_or_else(|_| Json::empty_object()))
}

/// The positional arguments.
///
/// # Errors
/// [`PayloadError`].
pub(crate) fn args(array: Option<&str>) -> Result<Json, PayloadError> {
    let Some(text) = array else { return Ok(Json::empty_array()) };
    let json = parse("--args", text)?;
    if json.is_array() {
        Ok(json)
    } else {
        Err(PayloadError::Shape { option: "--args", shape: "a JSON array", example: "'[\"show clock\", 5]'" })
    }
}

/// A JSON value of any shape, none of whose objects has a key twice.
///
/// # Errors
/// [`PayloadError`].
pub(crate) fn json(option: &'static str, text: &str) -> Result<serde_json::Value, PayloadError> {
    let not_json =
        |error: serde_json::Error| PayloadError::NotJson { option, line: error.line(), column: error.column() };
    parse(option, text)?.to().map_err(not_json)
}

/// The workers: all if none is given; `all` and `any` stand alone.
///
/// # Errors
/// [`PayloadError::NotAlone`].
pub(crate) fn workers(names: &[String]) -> Result<Workers, PayloadError> {
    match names.iter().find(|name| matches!(name.as_str(), "all" | "any")) {
        Some(word) if names.len() > 1 => Err(PayloadError::NotAlone(word.clone())),
        _ => Ok(Workers::from_names(names.to_vec())),
    }
}

fn parse(option: &'static str, text: &str) -> Result<Json, PayloadError> {
    let json = Json::parse(text).map_err(|error| PayloadError::NotJson {
        option,
        line: error.line(),
        column: error.column(),
    })?;
    refuse_keys_twice(option, &json)?;
    Ok(json)
}

/// Who reads such an object takes one of the two, and says nothing.
fn refuse_keys_twice(option: &'static str, json: &Json) -> Result<(), PayloadError> {
    match twice::find(json) {
        None => Ok(()),
        Some((line, column)) => Err(PayloadError::KeyTwice { option, line, column }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[track_caller]
    fn check(pairs: &[&str], object: Option<&str>, json: &str) {
        assert_eq!(kwargs(&strings(pairs), object).expect("accepted").as_str(), json);
    }

    #[track_caller]
    fn refuses(pairs: &[&str], object: Option<&str>, part: &str) {
        let error = kwargs(&strings(pairs), object).expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn values_are_json_or_text() {
        check(&[], None, "{}");
        check(&["n=5", "t=five", "q=\"5\"", "e="], None, r#"{"e":"","n":5,"q":"5","t":"five"}"#);
        check(&["list=[1, 2]", "eq=a=b", "no=NaN"], None, r#"{"eq":"a=b","list":[1, 2],"no":"NaN"}"#);
        check(&["big=123456789012345678901234567890.10"], None, r#"{"big":123456789012345678901234567890.10}"#);
        check(&["b=1"], Some(r#"{"a": null, "c": true}"#), r#"{"a":null,"b":1,"c":true}"#);
    }

    #[test]
    fn refused_without_the_value() {
        refuses(&["secret"], None, "KEY=VALUE");
        refuses(&["=secret"], None, "KEY=VALUE");
        refuses(&["a=1", "a=secret"], None, "\"a\" is given twice");
        refuses(&["a=secret"], Some(r#"{"a": 1}"#), "\"a\" is given twice");
        refuses(
            &[],
            Some(r#"{"a": 1, "a": "secret"}"#),
            "--kwargs has an object with the same key twice (line 1, column 10)",
        );
        refuses(&[r#"a={"secret": 1, "secret": 2}"#], None, "-k has an object with the same key twice");
        refuses(&[], Some("\"secret\""), "--kwargs must be a JSON object");
        refuses(&[], Some("[1]"), "--kwargs must be a JSON object");
        refuses(&[], Some("{\"a\": secret}"), "--kwargs is not valid JSON (line 1, column 7)");
    }

    #[test]
    fn positional() {
        assert_eq!(args(None).expect("none").as_str(), "[]");
        assert_eq!(args(Some(" [1, \"a\"] ")).expect("an array").as_str(), "[1, \"a\"]");
        assert!(args(Some("{}")).is_err() && args(Some("1,2")).is_err());
    }

    #[test]
    fn workers_words_stand_alone() {
        assert_eq!(workers(&[]), Ok(Workers::All));
        assert_eq!(workers(&strings(&["any"])), Ok(Workers::Any));
        assert_eq!(workers(&strings(&["w1", "w2"])), Ok(Workers::List(strings(&["w1", "w2"]))));
        assert_eq!(workers(&strings(&["w1", "all"])), Err(PayloadError::NotAlone("all".into())));
    }
}
