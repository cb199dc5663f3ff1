//! Where a client under measurement keeps its jobs, and the client itself.

use std::path::PathBuf;

use anyhow::{Context, Result};
use norfab_client::{Client, NewJob, Security, Workers};
use serde_json::json;
use tempfile::TempDir;

use crate::fabric::{Fabric, SERVICE, WORKER};

/// A folder of its own, gone when this is dropped.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Result<Self> {
        tempfile::Builder::new().prefix("norfab-bench-").tempdir().map(Self).context("no temporary folder")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.path().join("jobs.db")
    }

    /// A client that owns the database here and speaks to this fabric.
    pub(crate) async fn client(&self, fabric: &Fabric) -> Result<Client> {
        let builder = Client::builder().database(self.database()).name("bench");
        Ok(builder.endpoint(fabric.endpoint()).security(Security::Plain).build().await?)
    }
}

/// An `echo` on the first worker of the loopback.
pub(crate) fn echo() -> NewJob {
    NewJob::new(SERVICE, "echo").workers(Workers::One(WORKER.to_owned())).kwargs(json!({"n": 1}))
}
