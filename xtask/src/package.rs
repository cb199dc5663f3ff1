//! Whether each crate compiles from its package alone, as somebody gets it from a registry.
//!
//! `cargo package` can find that out itself, but builds every dependency anew for each crate. Here the packages are
//! unpacked into a workspace of their own, in which each is checked with its own features and nothing of the repository
//! around it.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{self, Package};
use crate::{shell, sqlx};

/// Packages every crate that is published, and checks that it compiles from the packages only.
pub(crate) fn check() -> Result<()> {
    sqlx::check_migrations_copy()?;
    let metadata = workspace::metadata()?;
    let packages: Vec<&Package> = metadata.published().collect();
    let names = packages.iter().flat_map(|package| ["--package", &package.name]);
    shell::run(shell::cargo().args(["package", "--quiet", "--locked", "--allow-dirty", "--no-verify"]).args(names))?;

    let target = &metadata.target_directory;
    let alone = target.join("package-alone");
    unpack(&packages, &alone)?;
    for package in &packages {
        println!("{}", package.name);
        let mut check = shell::cargo();
        check.args(["check", "--quiet", "--package", &package.name]).current_dir(&alone);
        shell::run(check.env("CARGO_TARGET_DIR", target))
            .with_context(|| format!("{} does not compile from its package", package.name))?;
    }
    Ok(())
}

/// Makes the workspace of the unpacked packages.
fn unpack(packages: &[&Package], alone: &Path) -> Result<()> {
    if alone.exists() {
        std::fs::remove_dir_all(alone).with_context(|| format!("cannot clear {}", alone.display()))?;
    }
    std::fs::create_dir_all(alone).with_context(|| format!("cannot make {}", alone.display()))?;
    for package in packages {
        // Relative paths: some versions of tar take `C:` for the name of a computer.
        let archive = format!("../package/{}.crate", stem(package));
        shell::run(Command::new("tar").args(["-xzf", &archive]).current_dir(alone))?;
    }
    let root = workspace::root();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    std::fs::write(alone.join("Cargo.toml"), workspace_of(packages, &manifest))?;
    std::fs::copy(root.join("Cargo.lock"), alone.join("Cargo.lock"))?;
    Ok(())
}

/// The manifest of that workspace. The profiles are those of the repository, so that dependencies which are compiled
/// already can be used again.
fn workspace_of(packages: &[&Package], root_manifest: &str) -> String {
    let mut manifest = String::from("[workspace]\nresolver = \"3\"\nmembers = [");
    for package in packages {
        _ = write!(manifest, "\"{}\", ", stem(package));
    }
    manifest.push_str("]\n\n[patch.crates-io]\n");
    for package in packages {
        _ = writeln!(manifest, "{} = {{ path = \"{}\" }}", package.name, stem(package));
    }
    manifest.push('\n');
    manifest.push_str(&profiles(root_manifest));
    manifest
}

/// The `[profile..]` sections of a manifest.
fn profiles(manifest: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[profile");
        }
        if inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// A package's file and folder are named like this.
fn stem(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Metadata;

    #[test]
    fn the_workspace_knows_nothing_but_the_packages() {
        let json = r#"{"target_directory": "/t", "packages": [
            {"name": "a", "version": "1.0.0", "manifest_path": "/a/Cargo.toml", "publish": null, "dependencies": [], "targets": []},
            {"name": "b", "version": "2.0.0", "manifest_path": "/b/Cargo.toml", "publish": [], "dependencies": [], "targets": []}
        ]}"#;
        let metadata = Metadata::parse(json.as_bytes()).unwrap();
        let packages: Vec<&Package> = metadata.published().collect();
        let root = "[workspace]\nmembers = [\"x\"]\n\n[profile.dev]\ndebug = false\n\n[lints]\nx = 1\n";
        assert_eq!(
            workspace_of(&packages, root),
            "[workspace]\nresolver = \"3\"\nmembers = [\"a-1.0.0\", ]\n\n\
             [patch.crates-io]\na = { path = \"a-1.0.0\" }\n\n\
             [profile.dev]\ndebug = false\n\n"
        );
    }
}
