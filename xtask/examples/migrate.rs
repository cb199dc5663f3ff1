//! Makes an SQLite database with every migration of a folder applied: `migrate DATABASE MIGRATIONS`.
//!
//! `cargo xtask sqlx` starts this, to have a schema that the query macros can be checked against. It is no part of
//! `xtask` itself so that the other commands need not wait until SQLite is compiled.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

fn main() -> Result<()> {
    let [database, migrations] = &std::env::args_os().skip(1).map(PathBuf::from).collect::<Vec<_>>()[..] else {
        bail!("usage: migrate DATABASE MIGRATIONS");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(database).create_if_missing(true);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let migrator = Migrator::new(migrations.as_path()).await?;
        migrator.run(&mut connection).await.context("a migration does not run on an empty database")?;
        connection.close().await?;
        Ok(())
    })
}
