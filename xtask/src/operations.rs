//! The page for operators that lists every warning and error of the log: what the crates say is on it, word by word.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace;

const PAGE: &str = "docs/operations.md";

/// Fails when a warning or an error that a crate logs is not on the page.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root();
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let mut messages = Vec::new();
    read_folder(&root.join("crates"), &mut messages)?;
    if messages.is_empty() {
        bail!("no crate logs a warning: they are not where they were looked for");
    }
    let missing = missing(&page, &messages);
    if !missing.is_empty() {
        bail!("{PAGE} lacks{}", missing.iter().map(|text| format!("\n  {text:?}")).collect::<String>());
    }
    Ok(())
}

/// Collects the messages of all sources below a folder, tests of their own left out.
fn read_folder(folder: &Path, messages: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("tests") {
            read_folder(&path, messages)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            messages.extend(logged(&source));
        }
    }
    Ok(())
}

/// The messages of a source's warnings and errors, each the first literal of its call. What a `Trouble` says before the
/// cause is one too.
fn logged(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or(source);
    let calls = ["warn!(", "error!(", "Trouble::new("].into_iter().flat_map(|call| source.split(call).skip(1));
    calls.filter_map(|arguments| arguments.split('"').nth(1)).map(str::to_owned).collect()
}

/// Those that the page does not show, line breaks apart. A value in a message stands for any text.
fn missing(page: &str, messages: &[String]) -> Vec<String> {
    let words: String = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |message: &&String| words_between_values(message).all(|part| words.contains(part));
    messages.iter().filter(|message| !shown(message)).cloned().collect()
}

/// What a message says besides its values.
fn words_between_values(message: &str) -> impl Iterator<Item = &str> {
    message
        .split('{')
        .map(|part| part.split_once('}').map_or(part, |(_, rest)| rest).trim())
        .filter(|part| part.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, page: &str, expected: &[&str]) {
        assert_eq!(missing(page, &logged(source)), expected);
    }

    #[test]
    fn the_page_itself_holds() {
        super::check().unwrap();
    }

    #[test]
    fn what_is_on_the_page() {
        check("tracing::warn!(job = %id, \"Lost {}: {why}\", job);", "| `Lost JOB: WHY` |", &[]);
        check("error!(\n    %error,\n    \"Cannot go on\"\n);", "`Cannot go\non`", &[]);
        check("Trouble::new(\n \"Cannot look\", pause); error!(\"{}: {text}\", self.says);", "`Cannot look: WHY`", &[]);
        check("info!(\"Nothing to do\");\n#[cfg(test)]\nmod tests { warn!(\"Hm\"); }", "", &[]);
    }

    #[test]
    fn what_is_not() {
        check("warn!(\"Lost {}\", job);", "`Found JOB`", &["Lost {}"]);
        check("warn!(\"Went back from {a} to {b}\")", "`Went back from A`", &["Went back from {a} to {b}"]);
    }
}
