//! Finds an object that has one key twice. JSON parsers take the last of the two and say nothing, so that a slip of who
//! typed it would change what a job does.

use std::collections::HashSet;

use norfab_client::Json;

/// Where in a value a key stands that its object has had before: line and column, from 1. One walk over the text,
/// however deep it is.
#[must_use]
pub(super) fn find(json: &Json) -> Option<(usize, usize)> {
    let text = json.as_str();
    // For each open object its keys so far; nothing for an array.
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let token = if first == '"' { string(rest) } else { first.len_utf8() };
        let (here, behind) = rest.split_at(token);
        match first {
            '{' => open.push(Some(HashSet::new())),
            '[' => open.push(None),
            '}' | ']' => drop(open.pop()),
            '"' if behind.trim_start().starts_with(':') => {
                // Written in another way it is the same key: "\u0061" is "a".
                let key: String = serde_json::from_str(here).unwrap_or_else(|_| here.to_owned());
                if open.last_mut().and_then(Option::as_mut).is_some_and(|keys| !keys.insert(key)) {
                    return Some(position(text, text.len() - rest.len()));
                }
            }
            _ => {}
        }
        rest = behind;
    }
    None
}

/// The length of the JSON string that a text begins with, in bytes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, quote)| at + quote.len_utf8())
}

fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or_default();
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (before.matches('\n').count() + 1, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, found: Option<(usize, usize)>) {
        assert_eq!(find(&Json::parse(text).expect("valid")), found, "{text}");
    }

    #[test]
    fn keys_once() {
        for text in ["1", "\"a\"", "[]", "{}", r#"{"a": "a", "b": ["a", "b"]}"#, r#"[{"a": 1}, {"a": 2}]"#] {
            check(text, None);
        }
        check(r#"{"a": {"a": {"a": 1}}, "b": "\"a\": {", "\\": 1, "\"": 2}"#, None);
        check(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), None);
    }

    #[test]
    fn keys_twice() {
        check(r#"{"a":1,"a":1}"#, Some((1, 8)));
        check("{\"a\": 1,\n \"b\": {\"a\": 1}, \"a\" : 2}", Some((2, 17)));
        check(r#"[0, {"x": {"é": 1, "é": 2}}]"#, Some((1, 20)));
        check(r#"{"a": 1, "\u0061": 2}"#, Some((1, 10)));
        check(r#"{"a\\": 1, "b": "\\\"", "a\\": 2}"#, Some((1, 25)));
    }
}
