//! Text of others, made fit to stand in a message of ours.

/// The first 200 characters, control characters replaced.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Any text as one line of at most 500 characters without control characters, as the column `last_error` takes it.
///
/// ```
/// assert_eq!(norfab_model::one_line("no such zone\n  Europa/Berlin"), "no such zone Europa/Berlin");
/// ```
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 500 { line } else { line.chars().take(499).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(one_line("\u{1b}[31m red \r\n\ttext "), "[31m red text");
        assert_eq!(one_line(""), "");
        let long = one_line(&"é ".repeat(400));
        assert!(long.chars().count() == 500 && long.ends_with('…'));
        assert_eq!(one_line(&"x".repeat(500)).len(), 500);
    }
}
