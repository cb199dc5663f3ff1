//! JSON and texts of strangers for a person: indented, every digit kept, and nothing in it that could steer a terminal.

use norfab_client::Json;

use super::Room;

/// A text with its control characters made visible; line ends and tabs stay.
#[must_use]
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => plain.push(c),
            '\r' => {}
            c if c.is_control() => plain.extend(c.escape_unicode()),
            c => plain.push(c),
        }
    }
    plain
}

/// A JSON value for a person: a text as it is, anything else indented by two blanks a level.
#[must_use]
pub(crate) fn json(value: &Json) -> String {
    match value.to::<String>() {
        Ok(text) => plain(&text),
        Err(_) => plain(&indented(value.as_str())),
    }
}

/// Each line of a text, moved to the right.
#[must_use]
pub(crate) fn indent(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}

/// A text behind a label, broken between words to fit; its further lines begin below its first.
#[must_use]
pub(crate) fn hanging(label: &str, text: &str, room: Room) -> String {
    /// With less than this a text is better broken by the terminal.
    const LEAST: usize = 20;
    let margin = console::measure_text_width(label);
    let left = room.behind(margin);
    let room = if left.holds(LEAST) { left } else { Room::Endless };
    let lines: Vec<String> = text.lines().flat_map(|line| wrapped(line, room)).collect();
    format!("{label}{}", lines.join(&format!("\n{}", " ".repeat(margin))))
}

/// Names and texts, a line each, the texts below each other.
#[must_use]
pub(crate) fn fields(fields: &[(&str, String)], room: Room) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<_> = fields.iter().map(|(name, text)| hanging(&format!("{name:width$}  "), text, room)).collect();
    lines.join("\n")
}

/// A line in pieces that fit; a word that does not stays whole. What fits is left as it is.
fn wrapped(line: &str, room: Room) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut filled = 0;
    for word in line.split_inclusive(' ') {
        let width = console::measure_text_width(word.trim_end());
        if filled > 0 && !room.holds(filled + width) {
            pieces.push(String::new());
            filled = 0;
        }
        filled += console::measure_text_width(word);
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(word);
        }
    }
    pieces.iter().map(|piece| piece.trim_end().to_owned()).collect()
}

/// Lays valid JSON out anew, token by token, so that no number is read and written again.
fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            match c {
                '\\' => out.extend(chars.next()),
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                // An empty one stays in its line.
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(json(&Json::parse(text).expect("valid")), shown);
    }

    #[test]
    fn laid_out() {
        check("null", "null");
        check("[]", "[]");
        check("{ }", "{}");
        check(
            r#"{"a":[1,2],"b":{"c":null}}"#,
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {\n    \"c\": null\n  }\n}",
        );
        check(r#"["a:b,{\"c\"}"]"#, "[\n  \"a:b,{\\\"c\\\"}\"\n]");
        check("123456789012345678901234567890.10", "123456789012345678901234567890.10");
    }

    #[test]
    fn texts_are_shown_as_they_are_but_steer_nothing() {
        check(r#""one\ntwo""#, "one\ntwo");
        check(r#""\u001b[31mred\r\u0007""#, "\\u{1b}[31mred\\u{7}");
        assert_eq!(indent("a\nb", "  "), "  a\n  b");
    }

    #[test]
    fn long_texts_break_between_words_below_their_beginning() {
        let text = "one two three four five\nsix";
        assert_eq!(hanging("at  ", text, Room::Endless), "at  one two three four five\n    six");
        assert_eq!(hanging("at  ", text, Room::Characters(24)), "at  one two three four\n    five\n    six");
        assert_eq!(hanging("at  ", text, Room::Characters(10)), "at  one two three four five\n    six");
        let word = "x".repeat(30);
        assert_eq!(hanging("", &format!("a {word} b"), Room::Characters(20)), format!("a\n{word}\nb"));
        assert_eq!(hanging("at  ", "", Room::Endless), "at  ");
    }
}
