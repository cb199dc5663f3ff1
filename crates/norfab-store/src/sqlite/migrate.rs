//! Brings a database to the schema of this release: all that is pending in one transaction that no other process can
//! come between.

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Row as _};

use super::adopt::{self, Adopted};
use super::codec::Codec;
use super::error::{StoreOpenError, is_busy};

/// The migrations of this release.
pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// How often the first switch to WAL is tried: SQLite does not wait for others there.
const WAL_TRIES: u32 = 400;
const WAL_PAUSE: Duration = Duration::from_millis(25);

/// One migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationInfo {
    /// Its number; the schema that it leads to.
    pub version: i64,
    /// Its name.
    pub description: String,
}

/// What migrating a database came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Migrated {
    /// The migrations that were applied now, in order; none when the database was up to date.
    pub applied: Vec<MigrationInfo>,
    /// Columns with our names that were there already and fit, as `table.column`.
    pub adopted: Vec<String>,
}

/// The newest schema that this release knows.
pub(super) fn newest() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// Which migrations a database has, checked against those of this release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct History {
    /// The newest that it has; 0 for none.
    pub(super) version: i64,
    /// Those that it lacks.
    pub(super) pending: Vec<MigrationInfo>,
}

impl History {
    /// Reads it. Changes nothing.
    pub(super) async fn read(path: &Path, connection: &mut SqliteConnection) -> Result<Self, StoreOpenError> {
        let failed = |source: sqlx::Error| StoreOpenError::of("read", path, source);
        let encoding: String =
            sqlx::query_scalar("PRAGMA encoding").fetch_one(&mut *connection).await.map_err(failed)?;
        if encoding != "UTF-8" {
            return Err(StoreOpenError::Encoding { path: path.to_owned(), encoding });
        }
        let mut applied = Vec::new();
        if adopt::columns(connection, "_sqlx_migrations").await.map_err(failed)?.is_empty() {
            return Ok(Self::of(&applied));
        }
        let rows = sqlx::query("SELECT version, checksum FROM _sqlx_migrations ORDER BY version")
            .fetch_all(connection)
            .await
            .map_err(failed)?;
        for row in rows {
            let version: i64 = row.try_get(0).map_err(failed)?;
            let checksum: Vec<u8> = row.try_get(1).map_err(failed)?;
            match MIGRATIONS.iter().find(|migration| migration.version == version) {
                Some(migration) if *migration.checksum == *checksum => applied.push(version),
                None if version > newest() => {
                    return Err(StoreOpenError::Newer { path: path.to_owned(), found: version, known: newest() });
                }
                _ => return Err(StoreOpenError::OtherHistory { path: path.to_owned(), version }),
            }
        }
        Ok(Self::of(&applied))
    }

    fn of(applied: &[i64]) -> Self {
        let pending = MIGRATIONS.iter().filter(|migration| !applied.contains(&migration.version));
        Self {
            version: applied.iter().copied().max().unwrap_or(0),
            pending: pending.map(MigrationInfo::from).collect(),
        }
    }
}

impl From<&Migration> for MigrationInfo {
    fn from(migration: &Migration) -> Self {
        Self { version: migration.version, description: migration.description.to_string() }
    }
}

/// Applies what is pending, then has the database write ahead. `codec` is noted unless one is noted already; a database
/// of the Python client keeps to what that client reads.
pub(super) async fn run(path: &Path, options: &SqliteConnectOptions, codec: Codec) -> Result<Migrated, StoreOpenError> {
    let failed = |source| StoreOpenError::of("open", path, source);
    let mut connection = SqliteConnection::connect_with(options).await.map_err(failed)?;
    let outcome = match apply_pending(path, &mut connection, codec).await {
        Ok(migrated) => write_ahead(&mut connection).await.map(|_| migrated).map_err(failed),
        Err(error) => Err(error),
    };
    // What matters is committed; a failure to close tells nothing new.
    let _ = connection.close().await;
    outcome
}

async fn apply_pending(
    path: &Path,
    connection: &mut SqliteConnection,
    codec: Codec,
) -> Result<Migrated, StoreOpenError> {
    let failed = |source| StoreOpenError::of("migrate", path, source);
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    // Only now nobody else can migrate.
    let history = History::read(path, &mut tx).await?;
    if history.pending.is_empty() {
        return Ok(Migrated::default());
    }
    let of_python = history.version == 0 && !adopt::columns(&mut tx, "jobs").await.map_err(failed)?.is_empty();
    let Adopted { migrator, columns } = adopt::prepare(path, &mut tx).await?;
    migrator.run_direct(None, &mut *tx, false).await.map_err(|error| from_migrate(path, error))?;
    adopt::complete(&mut tx).await.map_err(failed)?;
    let codec = if of_python { Codec::Zlib } else { codec };
    sqlx::query("INSERT INTO norfab_settings (key, value) VALUES ('codec', ?1) ON CONFLICT (key) DO NOTHING")
        .bind(codec.as_str())
        .execute(&mut *tx)
        .await
        .map_err(failed)?;
    tx.commit().await.map_err(failed)?;
    Ok(Migrated { applied: history.pending, adopted: columns })
}

fn from_migrate(path: &Path, error: MigrateError) -> StoreOpenError {
    let source = match error {
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => source,
        other => sqlx::Error::Migrate(Box::new(other)),
    };
    StoreOpenError::of("migrate", path, source)
}

/// What SQLite notes first of what is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    /// The new pages, in a log: who reads and who writes are not in each other's way.
    Ahead,
    /// The old ones: a commit waits until nobody reads.
    Behind,
}

/// Switches the file to a write-ahead log, once and for all; nothing happens to one that has it. Each process that opens
/// a new file tries it at once, and SQLite answers "locked" without waiting. Where programs cannot share memory, as on some
/// file systems of a network, it answers with what it keeps to.
pub(super) async fn write_ahead(connection: &mut SqliteConnection) -> Result<Journal, sqlx::Error> {
    let mut tries = 0;
    loop {
        let answer = sqlx::query_scalar::<_, String>("PRAGMA journal_mode = WAL").fetch_one(&mut *connection).await;
        match answer {
            Err(error) if is_busy(&error) && tries < WAL_TRIES => tokio::time::sleep(WAL_PAUSE).await,
            Err(error) => return Err(error),
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(Journal::Ahead),
            Ok(_) => return Ok(Journal::Behind),
        }
        tries += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_cannot_write_ahead_says_so() {
        let mut memory = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        assert_eq!(write_ahead(&mut memory).await.unwrap(), Journal::Behind);
        let folder = tempfile::tempdir().unwrap();
        let file = SqliteConnectOptions::new().filename(folder.path().join("some.db")).create_if_missing(true);
        let mut file = SqliteConnection::connect_with(&file).await.unwrap();
        assert_eq!(write_ahead(&mut file).await.unwrap(), Journal::Ahead);
    }
}
