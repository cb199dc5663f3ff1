//! The migrations of the job database: beginning one, and the rules that all of them keep.
//!
//! A migration is *released* once its checksum stands in `migrations/released.sha256`. Databases out there have run it,
//! and refuse to open when the file is another.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::mirror::Files;
use crate::workspace;
use crate::{sqlx, statement};

/// The checksums of the released migrations, as `sha256sum` prints and checks them.
const RELEASED: &str = "released.sha256";

/// Makes an empty migration with the next number.
pub(crate) fn new(name: &str) -> Result<()> {
    ensure!(is_name(name), "not a name for a migration: {name:?}; use lower-case words joined by _");
    let files = files()?;
    let number = files.keys().filter(|file| file.ends_with(".sql")).count() + 1;
    let path = folder().join(format!("{number:04}_{name}.sql"));
    ensure!(!path.exists(), "{} is there already", path.display());
    std::fs::create_dir_all(folder())?;
    std::fs::write(&path, "-- What this adds, and why.\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}\nOnce it is written, run `cargo xtask sqlx`.", path.display());
    Ok(())
}

/// Fails when a migration breaks a rule, or when the store's package has other ones.
pub(crate) fn check() -> Result<()> {
    let found = violations(&files()?);
    if !found.is_empty() {
        bail!("migrations:{}", found.iter().map(|line| format!("\n  {line}")).collect::<String>());
    }
    sqlx::check_migrations_copy()
}

/// Notes the checksums of all migrations.
pub(crate) fn release() -> Result<()> {
    check()?;
    let files = files()?;
    let migrations = files.iter().filter(|(name, _)| name.ends_with(".sql"));
    let lines = migrations.map(|(name, content)| format!("{}  {name}\n", checksum(content)));
    std::fs::write(folder().join(RELEASED), lines.collect::<String>())?;
    Ok(())
}

/// The rules that these files break, a line for each.
fn violations(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    let migrations: Vec<_> = files.iter().filter(|(name, _)| *name != RELEASED).collect();
    for (index, (name, content)) in migrations.iter().enumerate() {
        found.extend(name_violation(name, index + 1));
        found.extend(content_violations(content).into_iter().map(|line| format!("{name}: {line}")));
    }
    if let Some(list) = files.get(RELEASED) {
        found.extend(release_violations(files, &String::from_utf8_lossy(list)));
    }
    found
}

fn name_violation(name: &str, number: usize) -> Option<String> {
    let expected = format!("{number:04}");
    match name.strip_suffix(".sql").and_then(|stem| stem.split_once('_')) {
        Some((found, words))
            if found.len() == 4 && found.bytes().all(|byte| byte.is_ascii_digit()) && is_name(words) =>
        {
            (found != expected).then(|| format!("{name}: its number should be {expected}"))
        }
        _ => Some(format!("{name}: is not named like {expected}_what_it_adds.sql")),
    }
}

fn content_violations(content: &[u8]) -> Vec<String> {
    let Ok(sql) = std::str::from_utf8(content) else {
        return vec!["is not UTF-8".into()];
    };
    let mut found = Vec::new();
    if sql.contains('\r') {
        found.push("has a line that ends in CR".into());
    }
    if !sql.ends_with('\n') {
        found.push("does not end with a line feed".into());
    }
    if sql.starts_with("-- no-transaction") {
        found.push("asks to run outside the transaction that all migrations share".into());
    }
    let statements = statement::parse(sql);
    if statements.is_empty() {
        found.push("has no statement".into());
    }
    found.extend(statements.iter().flat_map(|statement| statement::objections(statement)));
    found
}

fn release_violations(files: &Files, list: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut released = BTreeMap::new();
    for line in list.lines() {
        match line.split_once("  ") {
            Some((checksum, name)) => _ = released.insert(name, checksum),
            None => found.push(format!("{RELEASED}: not a checksum and a name: {line:?}")),
        }
    }
    for (name, expected) in &released {
        match files.get(*name) {
            None => found.push(format!("{name}: was released and is gone")),
            Some(content) if checksum(content) != *expected => {
                found.push(format!("{name}: was released and is another now; write a new migration instead"));
            }
            Some(_) => {}
        }
    }
    let newest = released.last_key_value().map(|(name, _)| *name).unwrap_or_default();
    let unlisted = files.keys().filter(|name| *name != RELEASED && name.as_str() < newest);
    let unlisted = unlisted.filter(|name| !released.contains_key(name.as_str()));
    found.extend(unlisted.map(|name| format!("{name}: comes before a released one, and is not released itself")));
    found
}

fn is_name(words: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !words.is_empty() && words.split('_').all(|word| !word.is_empty() && word.bytes().all(allowed))
}

fn checksum(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn folder() -> PathBuf {
    workspace::root().join("migrations")
}

/// Every file in the folder, so that a stray one is noticed.
fn files() -> Result<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder()).context("cannot read the folder migrations")? {
        let entry = entry?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: (&str, &str) = ("0001_jobs.sql", "CREATE TABLE jobs (uuid TEXT PRIMARY KEY);\n");
    const ORIGIN: (&str, &str) = ("0002_job_origin.sql", "ALTER TABLE jobs ADD COLUMN origin TEXT;\n");

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files = files.iter().map(|(name, content)| (name.to_string(), content.as_bytes().to_vec())).collect();
        let found = violations(&files);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found:?}");
        }
    }

    fn released(files: &[(&str, &str)]) -> String {
        files.iter().map(|(name, content)| format!("{}  {name}\n", checksum(content.as_bytes()))).collect()
    }

    #[test]
    fn good_ones_pass() {
        check(&[JOBS, ORIGIN], &[]);
        check(&[JOBS, ORIGIN, (RELEASED, &released(&[JOBS]))], &[]);
        check(&[JOBS, ORIGIN, (RELEASED, &released(&[JOBS, ORIGIN]))], &[]);
    }

    #[test]
    fn a_gap_in_the_numbers() {
        check(&[JOBS, ("0003_more.sql", "SELECT 1;\n")], &["0003_more.sql: its number should be 0002"]);
    }

    #[test]
    fn a_number_twice() {
        check(&[JOBS, ("0001_other.sql", "SELECT 1;\n")], &["0001_other.sql: its number should be 0002"]);
    }

    #[test]
    fn names_that_nobody_can_sort() {
        for name in [
            "1_jobs.sql",
            "0001-jobs.sql",
            "0001_Jobs.sql",
            "0001_.sql",
            "0001_a__b.sql",
            "0001_jobs.up.sql",
            "notes.txt",
        ] {
            check(&[(name, "SELECT 1;\n")], &[&format!("{name}: is not named like 0001_")]);
        }
    }

    #[test]
    fn lines_that_end_otherwise_elsewhere() {
        check(&[("0001_jobs.sql", "SELECT 1;\r\n")], &["0001_jobs.sql: has a line that ends in CR"]);
        check(&[("0001_jobs.sql", "SELECT 1;")], &["0001_jobs.sql: does not end"]);
    }

    #[test]
    fn a_file_that_does_nothing() {
        check(&[("0001_jobs.sql", "-- What this adds, and why.\n")], &["0001_jobs.sql: has no statement"]);
    }

    #[test]
    fn a_statement_that_loses_data() {
        check(
            &[JOBS, ("0002_tidy.sql", "DELETE FROM jobs;\nDROP TABLE jobs;\n")],
            &["0002_tidy.sql: DELETE", "0002_tidy.sql: DROP"],
        );
    }

    #[test]
    fn a_migration_outside_the_transaction() {
        check(&[("0001_jobs.sql", "-- no-transaction\nSELECT 1;\n")], &["0001_jobs.sql: asks to run outside"]);
    }

    #[test]
    fn a_released_file_that_changed() {
        let changed = (JOBS.0, "CREATE TABLE jobs (uuid TEXT PRIMARY KEY, more TEXT);\n");
        check(&[changed, ORIGIN, (RELEASED, &released(&[JOBS]))], &["0001_jobs.sql: was released and is another now"]);
    }

    #[test]
    fn a_released_file_that_is_gone() {
        check(&[JOBS, (RELEASED, &released(&[JOBS, ORIGIN]))], &["0002_job_origin.sql: was released and is gone"]);
    }

    #[test]
    fn a_file_slipped_in_before_a_released_one() {
        let list = released(&[ORIGIN]);
        check(&[JOBS, ORIGIN, (RELEASED, &list)], &["0001_jobs.sql: comes before a released one"]);
    }

    #[test]
    fn a_list_that_nobody_can_read() {
        check(&[JOBS, (RELEASED, "0001_jobs.sql\n")], &["released.sha256: not a checksum"]);
    }
}
