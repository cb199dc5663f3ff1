//! Where the workspace is, and what `cargo metadata` says of its packages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}

/// The members of the workspace, dependencies as their manifests state them.
pub(crate) fn metadata() -> Result<Metadata> {
    let json = shell::stdout(shell::cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    Metadata::parse(&json)
}

/// What `cargo metadata --no-deps` prints, as far as it is of use here.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// A member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    /// The registries it may go to; none at all with `publish = false`.
    publish: Option<Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One line of a package's dependencies. `name` is the package's own, whatever it is renamed to.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "kind")]
    pub(crate) kind: Kind,
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Normal,
    Build,
    Dev,
}

/// A library, binary, test or example.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) src_path: PathBuf,
}

impl Metadata {
    /// Reads what `cargo metadata` printed.
    pub(crate) fn parse(json: &[u8]) -> Result<Self> {
        serde_json::from_slice(json).context("cannot read what cargo metadata printed")
    }

    /// The packages that can be published.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_published())
    }
}

impl Package {
    /// Whether it may go to any registry.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    /// The folder of its manifest.
    pub(crate) fn folder(&self) -> PathBuf {
        self.manifest_path.parent().map_or_else(root, PathBuf::from)
    }
}

fn kind<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    Ok(match Option::<String>::deserialize(deserializer)?.as_deref() {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal,
    })
}
