//! Databases to measure with: the product's own schema, filled by SQL as fast as SQLite can, opened by the product or, for
//! the limits, by rusqlite with the same settings.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use norfab_store::{SqliteStore, StoreOptions};
use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::stopwatch::now;

/// A database in a folder of its own, which goes with it.
pub(crate) struct Database {
    folder: TempDir,
}

impl Database {
    /// An empty one, as the product makes it.
    pub(crate) fn new() -> Result<Self> {
        let database = Self { folder: tempfile::tempdir()? };
        runtime()?.block_on(async {
            database.open().await?.shut().await;
            anyhow::Ok(())
        })?;
        Ok(database)
    }

    /// The same content in another file. No program may have this one open.
    pub(crate) fn copy(&self) -> Result<Self> {
        let copy = Self { folder: tempfile::tempdir()? };
        ensure!(!self.path().with_extension("db-wal").exists(), "the database that is to be copied is in use");
        std::fs::copy(self.path(), copy.path())?;
        // What is measured is not to wait until the copy is on the disk.
        std::fs::File::open(copy.path())?.sync_all()?;
        Ok(copy)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }

    /// Opened by the product with its default settings.
    pub(crate) async fn open(&self) -> Result<Opened> {
        Ok(Opened(SqliteStore::open(self.path(), &StoreOptions::default()).await?))
    }

    /// Does something with it, as the product opens it, and closes it.
    pub(crate) fn with_store<T, F: Future<Output = Result<T>>>(
        &self,
        work: impl FnOnce(SqliteStore) -> F,
    ) -> Result<T> {
        runtime()?.block_on(async {
            let opened = self.open().await?;
            let done = work(opened.0.clone()).await;
            opened.shut().await;
            done
        })
    }

    /// How long work takes with it, as the product opens it, until the file is closed: then all that was written is in it,
    /// and nothing is left to be paid for.
    pub(crate) fn until_closed<F: Future<Output = Result<()>>>(
        &self,
        work: impl FnOnce(SqliteStore) -> F,
    ) -> Result<Duration> {
        runtime()?.block_on(async {
            let opened = self.open().await?;
            let begun = now();
            let done = work(opened.0.clone()).await;
            opened.shut().await;
            let took = begun.elapsed();
            done.map(|()| took)
        })
    }

    /// Opened by rusqlite with the settings of the product.
    pub(crate) fn connect(&self) -> Result<Connection> {
        connect(&self.path())
    }

    /// The same for rusqlite.
    pub(crate) fn until_closed_raw(&self, work: impl FnOnce(&mut Connection) -> Result<()>) -> Result<Duration> {
        let mut connection = self.connect()?;
        let begun = now();
        work(&mut connection)?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(begun.elapsed())
    }

    /// Opened by rusqlite to be filled: nothing is measured, and nothing is lost by a power cut but the time to do it again.
    pub(crate) fn fill(&self, work: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
        let connection = Connection::open(self.path())?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -800000;
             BEGIN",
        )?;
        work(&connection)?;
        connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}

/// Opened by rusqlite with the settings of the product; only that SQLite writes the log back itself, within a commit.
pub(crate) fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000;
         PRAGMA cache_size = -14000;",
    )?;
    connection.set_prepared_statement_cache_capacity(100);
    Ok(connection)
}

/// A database that the product has open.
pub(crate) struct Opened(pub(crate) SqliteStore);

impl Opened {
    pub(crate) async fn shut(self) {
        norfab_model::Store::close(&self.0).await;
    }
}

/// A runtime as the product's programs have one.
pub(crate) fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// The columns of a table.
fn columns(connection: &Connection, table: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let names = statement.query_map([table], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok(names)
}

/// The rows of a table in their order, and a statement that inserts one of them: those columns that hold anything.
pub(crate) fn copied(connection: &Connection, table: &str) -> Result<(String, Vec<Vec<Value>>)> {
    let mut used = Vec::new();
    for column in columns(connection, table)? {
        let any = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} IS NOT NULL)");
        if connection.query_row(&any, [], |row| row.get(0))? {
            used.push(column);
        }
    }
    let mut statement = connection.prepare(&format!("SELECT {} FROM {table} ORDER BY rowid", used.join(", ")))?;
    let of_row = |row: &rusqlite::Row<'_>| (0..used.len()).map(|place| row.get(place)).collect();
    let rows = statement.query_map([], of_row)?.collect::<Result<Vec<Vec<Value>>, _>>()?;
    let places: Vec<String> = (1..=used.len()).map(|place| format!("?{place}")).collect();
    Ok((format!("INSERT INTO {table} ({}) VALUES ({})", used.join(", "), places.join(", ")), rows))
}

/// Runs a prepared statement with a row of values.
pub(crate) fn run(statement: &mut Statement<'_>, row: &[Value]) -> Result<usize> {
    Ok(statement.execute(params_from_iter(row))?)
}

/// Copies a row (`template`: its number) so often, with these expressions in place of some columns; `n` counts from 1.
pub(crate) fn multiply(
    connection: &Connection,
    table: &str,
    template: i64,
    count: usize,
    replaced: &[(&str, &str)],
) -> Result<()> {
    let columns = columns(connection, table)?;
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    let value = |column: &String| {
        let other = replaced.iter().find(|(name, _)| name == column);
        other.map_or_else(|| format!("template.\"{column}\""), |(_, expression)| (*expression).to_owned())
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    let (quoted, values) = (quoted.join(", "), values.join(", "));
    connection.execute(
        &format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
             INSERT INTO {table} ({quoted}) SELECT {values}
             FROM numbers CROSS JOIN (SELECT * FROM {table} WHERE rowid = ?2) AS template"
        ),
        (count as i64, template),
    )?;
    Ok(())
}
