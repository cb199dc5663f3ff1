//! What a database file is: its schema, its size, its settings.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::codec::Codec;
use super::error::StoreOpenError;
use super::migrate::{self, History, MigrationInfo};
use super::open::{self, Access, CodecChoice, Connections, StoreOptions};
use super::statement::{scalar, statement};
use super::{SqliteStore, adopt};

/// What is known of a database file without reading its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseInfo {
    /// The file.
    pub path: PathBuf,
    /// The newest migration that it has; 0 for none.
    pub schema_version: i64,
    /// The newest migration of this release.
    pub newest_schema_version: i64,
    /// The migrations that it lacks.
    #[serde(serialize_with = "names")]
    pub pending_migrations: Vec<MigrationInfo>,
    /// Whether it is as the Python client made it, not taken over yet.
    pub legacy: bool,
    /// The version of SQLite in this program.
    pub sqlite_version: String,
    /// How SQLite makes commits safe: `wal`, or what it was before it was taken over.
    pub journal_mode: String,
    /// When a commit counts as done, for this connection: `full`, `normal`, `off` or `extra`.
    pub synchronous: String,
    /// How new payloads are compressed; none before it is taken over.
    pub codec: Option<String>,
    /// Pages of the file.
    pub page_count: i64,
    /// Bytes of the file, the write-ahead log not counted.
    pub size_bytes: i64,
    /// Jobs in it.
    pub jobs: i64,
    /// Events in it.
    pub events: i64,
}

fn names<S: Serializer>(migrations: &[MigrationInfo], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(migrations.iter().map(|one| format!("{:04} {}", one.version, one.description)))
}

impl SqliteStore {
    /// Looks at a database that is there, without changing anything.
    ///
    /// # Errors
    /// [`StoreOpenError`] when it is no database or one of a newer release.
    pub async fn inspect(path: impl AsRef<Path>) -> Result<DatabaseInfo, StoreOpenError> {
        let path = path.as_ref();
        let options = StoreOptions::default();
        // Checks the file before SQLite sees it.
        open::look(path, &open::connect_options(path, &options)).await?;
        look(path, &options).await
    }

    /// What this database is.
    ///
    /// # Errors
    /// [`StoreOpenError`] when it cannot be read.
    pub async fn info(&self) -> Result<DatabaseInfo, StoreOpenError> {
        let options = StoreOptions { durability: self.shared.durability, ..StoreOptions::default() };
        look(self.path(), &options).await
    }
}

async fn look(path: &Path, options: &StoreOptions) -> Result<DatabaseInfo, StoreOpenError> {
    let failed = |source: sqlx::Error| StoreOpenError::of("read", path, source);
    let options = open::connect_options(path, options).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
    let info = read(path, &mut connection).await;
    // Nothing was written; a failure to close tells nothing.
    let _ = connection.close().await;
    info
}

async fn read(path: &Path, connection: &mut SqliteConnection) -> Result<DatabaseInfo, StoreOpenError> {
    let failed = |source| StoreOpenError::of("read", path, source);
    // One snapshot for all that follows.
    let mut tx = connection.begin().await.map_err(failed)?;
    let history = History::read(path, &mut tx).await?;
    let has_jobs = !adopt::columns(&mut tx, "jobs").await.map_err(failed)?.is_empty();
    let has_events = !adopt::columns(&mut tx, "events").await.map_err(failed)?.is_empty();
    let page_count = number(&mut tx, "PRAGMA page_count").await.map_err(failed)?;
    let page_size = number(&mut tx, "PRAGMA page_size").await.map_err(failed)?;
    let info = DatabaseInfo {
        path: path.to_owned(),
        schema_version: history.version,
        newest_schema_version: migrate::newest(),
        pending_migrations: history.pending,
        legacy: has_jobs && history.version == 0,
        sqlite_version: text(&mut tx, "SELECT sqlite_version()").await.map_err(failed)?,
        journal_mode: text(&mut tx, "PRAGMA journal_mode").await.map_err(failed)?,
        synchronous: synchronous(number(&mut tx, "PRAGMA synchronous").await.map_err(failed)?),
        codec: if history.version == 0 { None } else { noted_codec(&mut tx).await.map_err(failed)? },
        page_count,
        size_bytes: page_count.saturating_mul(page_size),
        jobs: if has_jobs { number(&mut tx, "SELECT count(*) FROM jobs").await.map_err(failed)? } else { 0 },
        events: if has_events { number(&mut tx, "SELECT count(*) FROM events").await.map_err(failed)? } else { 0 },
    };
    tx.commit().await.map_err(failed)?;
    Ok(info)
}

fn synchronous(number: i64) -> String {
    match number {
        0 => "off",
        1 => "normal",
        2 => "full",
        _ => "extra",
    }
    .to_owned()
}

async fn number(connection: &mut SqliteConnection, sql: &'static str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await
}

async fn text(connection: &mut SqliteConnection, sql: &'static str) -> Result<String, sqlx::Error> {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection).await
}

async fn noted_codec(connection: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_file_scalar!("sql/setting/get.sql", "codec").fetch_optional(connection).await
}

/// The codec for new payloads: the one that is asked for, which is then noted, or the one that is noted.
pub(super) async fn settle_codec(
    path: &Path,
    connections: &Connections,
    options: &StoreOptions,
) -> Result<Codec, StoreOpenError> {
    let (choice, access) = (options.codec, options.access);
    let settled = connections.kept.run(move |connection| settle(connection, choice, access)).await;
    match settled {
        Ok(settled) => settled.map_err(|source| StoreOpenError::of("read", path, source)),
        Err(closed) => Err(StoreOpenError::Sqlite { doing: "read", path: path.to_owned(), source: closed.into() }),
    }
}

fn settle(connection: &rusqlite::Connection, choice: CodecChoice, access: Access) -> rusqlite::Result<Codec> {
    let noted: Option<String> = scalar!("sql/setting/get.sql", "codec").fetch_optional(connection)?;
    let noted = noted.and_then(|noted| noted.parse().ok());
    match (choice, access) {
        (CodecChoice::Set(codec), Access::Write) if noted != Some(codec) => {
            statement!("sql/setting/set.sql", "codec", codec.as_str()).execute(connection)?;
            Ok(codec)
        }
        // What every client reads, where the note makes no sense.
        _ => Ok(noted.unwrap_or(Codec::Zlib)),
    }
}
