//! Folders that must hold the same files: what is generated and what is committed, a folder and its copy in a package.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The files of one folder: name to content.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// How one file of a folder differs from what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    Missing(String),
    Stale(String),
    Changed(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "{name} is missing"),
            Self::Stale(name) => write!(f, "{name} is no longer wanted"),
            Self::Changed(name) => write!(f, "{name} differs"),
        }
    }
}

/// What has to change in `actual` to make it `expected`.
pub(crate) fn differences(expected: &Files, actual: &Files) -> Vec<Difference> {
    let wanted = expected.iter().filter_map(|(name, content)| match actual.get(name) {
        None => Some(Difference::Missing(name.clone())),
        Some(other) if other != content => Some(Difference::Changed(name.clone())),
        Some(_) => None,
    });
    let stale = actual.keys().filter(|name| !expected.contains_key(*name)).cloned().map(Difference::Stale);
    wanted.chain(stale).collect()
}

/// Fails when a folder does not hold exactly the expected files, naming each one and the command that mends it.
pub(crate) fn require_equal(expected: &Files, folder: &Path, extension: &str, remedy: &str) -> Result<()> {
    let found = differences(expected, &read(folder, extension)?);
    if found.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = found.iter().map(|difference| format!("\n  {difference}")).collect();
    bail!("{} is out of date, run `{remedy}`:{}", folder.display(), lines.concat())
}

/// Makes a folder hold exactly the expected files, touching only what differs. Says whether anything did.
pub(crate) fn write(expected: &Files, folder: &Path, extension: &str) -> Result<Outcome> {
    let found = differences(expected, &read(folder, extension)?);
    for difference in &found {
        let (Difference::Missing(name) | Difference::Stale(name) | Difference::Changed(name)) = difference;
        let path = folder.join(name);
        match expected.get(name) {
            Some(content) => {
                println!("Writing {}", path.display());
                std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
                std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => {
                println!("Removing {}", path.display());
                std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
    }
    Ok(if found.is_empty() { Outcome::Unchanged } else { Outcome::Changed })
}

/// Whether writing a folder changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Unchanged,
    Changed,
}

/// The files of a folder with this extension; none when there is no such folder.
pub(crate) fn read(folder: &Path, extension: &str) -> Result<Files> {
    let mut files = Files::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(contents: &[(&str, &str)]) -> Files {
        contents.iter().map(|(name, content)| (name.to_string(), content.as_bytes().to_vec())).collect()
    }

    #[track_caller]
    fn check(expected: &[(&str, &str)], actual: &[(&str, &str)], found: &[Difference]) {
        assert_eq!(differences(&files(expected), &files(actual)), found);
    }

    #[test]
    fn equal_folders_do_not_differ() {
        check(&[("query-1.json", "a"), ("query-2.json", "b")], &[("query-2.json", "b"), ("query-1.json", "a")], &[]);
    }

    #[test]
    fn a_query_that_was_never_prepared_is_missing() {
        check(&[("query-1.json", "a")], &[], &[Difference::Missing("query-1.json".into())]);
    }

    #[test]
    fn a_query_that_nobody_asks_any_more_is_stale() {
        check(&[], &[("query-1.json", "a")], &[Difference::Stale("query-1.json".into())]);
    }

    #[test]
    fn a_query_of_an_older_schema_is_changed() {
        check(&[("query-1.json", "a")], &[("query-1.json", "b")], &[Difference::Changed("query-1.json".into())]);
    }

    #[test]
    fn writing_mends_every_difference_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("stale.sql", "x"), ("changed.sql", "x"), ("same.sql", "s"), ("other.txt", "o")] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let expected = files(&[("changed.sql", "y"), ("missing.sql", "m"), ("same.sql", "s")]);
        assert!(require_equal(&expected, folder.path(), "sql", "mend").is_err());
        assert_eq!(write(&expected, folder.path(), "sql").unwrap(), Outcome::Changed);
        assert_eq!(read(folder.path(), "sql").unwrap(), expected);
        assert!(folder.path().join("other.txt").exists());
        assert_eq!(write(&expected, folder.path(), "sql").unwrap(), Outcome::Unchanged);
        require_equal(&expected, folder.path(), "sql", "mend").unwrap();
    }
}
