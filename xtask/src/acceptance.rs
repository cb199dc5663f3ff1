//! The page that says by which test each promise is shown: every test that it names is there, and every promise names one.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace;

const PAGE: &str = "docs/acceptance.md";

/// Fails when the page names a test or a file that is not there, or has a line without any.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root();
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let found = objections(&page, |path| source(&root, path));
    if !found.is_empty() {
        bail!("{PAGE}:{}", found.iter().map(|line| format!("\n  {line}")).collect::<String>());
    }
    Ok(())
}

/// A file of the repository. The page leaves out `crates/`.
fn source(root: &Path, path: &str) -> Option<String> {
    [root.join(path), root.join("crates").join(path)].iter().find_map(|path| std::fs::read_to_string(path).ok())
}

/// What is wrong with a page, a line for each.
fn objections(page: &str, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let promises = promises(page);
    if promises.is_empty() {
        return vec!["there is nothing in it".to_owned()];
    }
    promises.iter().flat_map(|promise| of_promise(promise, &source)).collect()
}

fn of_promise(promise: &str, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let proofs: Vec<Proof<'_>> = code_spans(promise).filter_map(Proof::read).collect();
    if proofs.is_empty() {
        return vec![format!("nothing is named that shows {:?}", promise.chars().take(60).collect::<String>())];
    }
    proofs.iter().filter_map(|proof| proof.objection(&source)).collect()
}

/// What shows a promise.
struct Proof<'a> {
    file: &'a str,
    test: Option<&'a str>,
}

impl<'a> Proof<'a> {
    /// Reads `FILE::TEST` or a file's path; other code is none.
    fn read(span: &'a str) -> Option<Self> {
        match span.split_once("::") {
            Some((file, test)) if file.contains('/') => Some(Self { file, test: Some(test) }),
            None if span.contains('/') && !span.contains(' ') => Some(Self { file: span, test: None }),
            _ => None,
        }
    }

    fn objection(&self, source: impl Fn(&str) -> Option<String>) -> Option<String> {
        let Some(text) = source(self.file) else { return Some(format!("there is no file {}", self.file)) };
        let test = self.test.filter(|test| !has_function(&text, test))?;
        Some(format!("there is no test {test} in {}", self.file))
    }
}

fn has_function(source: &str, name: &str) -> bool {
    source.match_indices("fn ").any(|(at, word)| {
        let rest = source.get(at + word.len()..).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    })
}

/// The texts between single backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The items of the page's lists and the rows of its tables, without their heads.
fn promises(page: &str) -> Vec<String> {
    let (mut found, mut lines) = (Vec::<String>::new(), page.lines().peekable());
    let mut is_in_item = false;
    while let Some(line) = lines.next() {
        let is_rule = |line: &str| line.starts_with("| -") || line.starts_with("|-");
        let is_head = line.starts_with('|') && (is_rule(line) || lines.peek().is_some_and(|next| is_rule(next)));
        match found.last_mut() {
            Some(item) if is_in_item && line.starts_with("  ") => item.push_str(line),
            _ => {
                is_in_item = line.starts_with("- ");
                if is_in_item || (line.starts_with('|') && !is_head) {
                    found.push(line.to_owned());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "async fn it_holds() {}\nfn on_any_store<S>(store: S) {}\n// fn spoken_of\n";

    #[track_caller]
    fn check(page: &str, expected: &[&str]) {
        assert_eq!(objections(page, |path| (path == "a/b.rs").then(|| SOURCE.to_owned())), expected);
    }

    #[test]
    fn the_page_itself_holds() {
        super::check().unwrap();
    }

    #[test]
    fn what_is_there() {
        check("- it holds: `a/b.rs::it_holds`,\n  `a/b.rs::on_any_store`\n\nand `anything` else\n", &[]);
        check("| what | by |\n| --- | --- |\n| it holds | `a/b.rs::it_holds` |\n", &[]);
        check("- `x` runs everywhere: `a/b.rs`", &[]);
    }

    #[test]
    fn what_is_not() {
        check("- it holds:\n  `a/b.rs::it_hold`", &["there is no test it_hold in a/b.rs"]);
        check("- it holds: `a/b.rs::spoken_of`", &["there is no test spoken_of in a/b.rs"]);
        check("| a | b |\n|---|---|\n| c | `a/c.rs::it_holds` |\n", &["there is no file a/c.rs"]);
    }

    #[test]
    fn promises_that_nothing_shows() {
        check(
            "- it holds\n- so does `this`",
            &["nothing is named that shows \"- it holds\"", "nothing is named that shows \"- so does `this`\""],
        );
        check("# Title\n", &["there is nothing in it"]);
    }
}
