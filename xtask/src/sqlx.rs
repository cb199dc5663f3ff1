//! `.sqlx`: what the query macros have to know of the schema when no database is at hand.
//!
//! The macros write it themselves while they are compiled against a database; this command makes that database from
//! the migrations, has the queries compiled, and keeps or compares what came out. The store's package carries copies of
//! `.sqlx` and of the migrations, because a package cannot reach outside its folder.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::mirror::{self, Files, Outcome};
use crate::shell;
use crate::workspace::{self, Metadata, Package};

/// The folder that the macros read, in the root and in the store's package.
const CACHE: &str = ".sqlx";
/// The package that carries copies.
const STORE: &str = "crates/norfab-store";
const REMEDY: &str = "cargo xtask sqlx";

/// Brings `.sqlx`, its copy and the copy of the migrations up to date.
pub(crate) fn write() -> Result<()> {
    let root = workspace::root();
    let metadata = workspace::metadata()?;
    copy_migrations()?;
    let prepared = prepare(&metadata)?;
    let written =
        [mirror::write(&prepared, &root.join(CACHE), "json")?, mirror::write(&prepared, &store(CACHE), "json")?];
    if written.contains(&Outcome::Changed) {
        touch(&with_queries(&metadata)?)?;
    }
    println!("{} queries", prepared.len());
    Ok(())
}

/// Fails when `.sqlx` or its copy is not what the queries and the migrations give.
pub(crate) fn check() -> Result<()> {
    let prepared = prepare(&workspace::metadata()?)?;
    mirror::require_equal(&prepared, &workspace::root().join(CACHE), "json", REMEDY)?;
    mirror::require_equal(&prepared, &store(CACHE), "json", REMEDY)
}

/// Copies the migrations into the store's package.
pub(crate) fn copy_migrations() -> Result<Outcome> {
    mirror::write(&migrations()?, &store("migrations"), "sql")
}

/// Fails when the store's package carries other migrations than the root.
pub(crate) fn check_migrations_copy() -> Result<()> {
    mirror::require_equal(&migrations()?, &store("migrations"), "sql", REMEDY)
}

fn migrations() -> Result<Files> {
    mirror::read(&workspace::root().join("migrations"), "sql")
}

fn store(folder: &str) -> PathBuf {
    workspace::root().join(STORE).join(folder)
}

/// Compiles every query against a database made from the migrations, and gives what the macros wrote.
fn prepare(metadata: &Metadata) -> Result<Files> {
    let packages = with_queries(metadata)?;
    if packages.is_empty() {
        return Ok(Files::new());
    }
    let scratch = tempfile::tempdir()?;
    let (database, cache) = (scratch.path().join("schema.db"), scratch.path().join("cache"));
    std::fs::create_dir(&cache)?;
    migrate(&database, metadata)?;

    let names: Vec<&str> = packages.iter().flat_map(|package| ["--package", &package.name]).collect();
    // Cargo does not know that the macros read the environment, so it has to be made to compile them.
    shell::run(shell::cargo().args(["clean", "--quiet"]).args(&names))?;
    shell::run(
        shell::cargo()
            .args(["check", "--quiet", "--all-targets"])
            .args(&names)
            .env("DATABASE_URL", database_url(&database))
            .env("SQLX_OFFLINE", "false")
            .env("SQLX_OFFLINE_DIR", &cache),
    )?;
    mirror::read(&cache, "json")
}

/// Makes a database with every migration applied.
fn migrate(database: &Path, metadata: &Metadata) -> Result<()> {
    // Built for the whole workspace, which selects the features that the tests need as well: nothing compiles twice.
    shell::run(shell::cargo().args(["build", "--quiet", "--workspace", "--example", "migrate"]))?;
    let mut program = metadata.target_directory.join("debug").join("examples").join("migrate");
    program.set_extension(std::env::consts::EXE_EXTENSION);
    shell::run(std::process::Command::new(program).arg(database).arg(workspace::root().join("migrations")))
}

/// The packages that have queries for the macros to check.
fn with_queries(metadata: &Metadata) -> Result<Vec<&Package>> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        if package.dependencies.iter().any(|dependency| dependency.name == "sqlx") && any_query(&package.folder())? {
            found.push(package);
        }
    }
    Ok(found)
}

fn any_query(folder: &Path) -> Result<bool> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let found = if path.is_dir() {
            any_query(&path)?
        } else {
            path.extension().is_some_and(|extension| extension == "rs") && has_query(&std::fs::read_to_string(&path)?)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a source calls one of the macros: `query`, `query_as`, `query_file`, `query_file_scalar` ..
fn has_query(source: &str) -> bool {
    source.match_indices("query").any(|(at, _)| {
        let rest = source[at..].trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
        rest.starts_with("!(")
    })
}

/// An URL of this file that both readers of it take: a general parser of URLs, and SQLite's driver.
fn database_url(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.:~".contains(&byte);
    let path = path.to_string_lossy().replace('\\', "/");
    let encoded = path.bytes().map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") });
    format!("sqlite:{}", encoded.collect::<String>())
}

/// Marks the sources as changed, so that other builds notice the new `.sqlx`.
fn touch(packages: &[&Package]) -> Result<()> {
    for target in packages.iter().flat_map(|package| &package.targets) {
        let file = std::fs::File::options().append(true).open(&target.src_path)?;
        // The time of a file is the computer's, whatever clock the product is given.
        #[expect(clippy::disallowed_methods, reason = "a file's time, not the product's")]
        file.set_modified(SystemTime::now())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_macro_of_the_family_is_seen() {
        for name in ["query", "query_as", "query_scalar", "query_file", "query_file_as", "query_file_scalar_unchecked"]
        {
            assert!(has_query(&format!("let row = sqlx::{name}!(\"..\")")), "{name}");
        }
    }

    #[test]
    fn functions_and_other_macros_are_not_queries() {
        for source in ["sqlx::query(\"..\")", "query_as::<_, Row>(\"..\")", "println!(\"query {query}\")", "// query"] {
            assert!(!has_query(source), "{source}");
        }
    }

    #[test]
    fn a_path_survives_its_url() {
        assert_eq!(database_url(Path::new("/tmp/a b/100%/x.db")), "sqlite:/tmp/a%20b/100%25/x.db");
        assert_eq!(database_url(Path::new(r"C:\Temp\x.db")), "sqlite:C:/Temp/x.db");
    }
}
