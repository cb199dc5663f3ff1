//! Opening a job database: what may be chosen, what is looked at before anything is touched, and the connections.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use tracing::warn;

use super::codec::Codec;
use super::driver::{Readers, Worker};
use super::error::{StoreOpenError, is_busy};
use super::log::{self, Log};
use super::migrate::{self, History, Journal, Migrated};
use super::whereabouts::Whereabouts;
use crate::transition::MOST_RESULT_BYTES;

/// How a job database is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// Whether it may be changed. Default: yes.
    pub access: Access,
    /// How new payloads are compressed. Default: LZ4 in a new database, as noted in any other.
    pub codec: CodecChoice,
    /// When a commit counts as done. Default: once it is on the disk.
    pub durability: Durability,
    /// The most bytes of a payload once it is unpacked; larger ones are not read, and a result that would be larger is
    /// kept as that worker's failure. Default 64 MiB.
    pub most_payload_bytes: usize,
    /// How long another program that holds the database is waited for. Default 5 s.
    pub busy_timeout: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            access: Access::Write,
            codec: CodecChoice::IfNew(Codec::Lz4),
            durability: Durability::Full,
            most_payload_bytes: MOST_RESULT_BYTES,
            busy_timeout: Duration::from_secs(5),
        }
    }
}

/// Whether a store may change its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It may; the database is made and migrated when need be.
    Write,
    /// It may not: every call that changes anything is refused, and the database must be there with the current schema.
    ReadOnly,
}

/// How new payloads are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecChoice {
    /// So in a database that is made now; any other keeps to what is noted in it, and one of the Python client to zlib.
    IfNew(Codec),
    /// So from now on; it is noted in the database.
    Set(Codec),
}

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the disk: a job that was acknowledged survives a power cut.
    Full,
    /// When it is with the operating system: a power cut may undo the last commits, a crash of the process nothing.
    Normal,
}

impl Durability {
    /// What is enough for both.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Full { self } else { other }
    }
}

/// The connections of a store.
#[derive(Debug)]
pub(super) struct Connections {
    /// One connection that is kept for good: the writer, or with read access only the one that watches for changes.
    pub(super) kept: Worker,
    /// Connections that can only read.
    pub(super) readers: Readers,
    /// Where the files are.
    pub(super) whereabouts: Arc<Whereabouts>,
    /// What is noted first of what the one that is kept commits.
    pub(super) journal: Journal,
}

/// Makes or migrates the database as need be, and connects to it.
pub(super) async fn open(path: &Path, options: &StoreOptions) -> Result<Connections, StoreOpenError> {
    let plain = connect_options(path, options);
    match options.access {
        Access::Write => {
            make_if_missing(path)?;
            let (CodecChoice::IfNew(codec) | CodecChoice::Set(codec)) = options.codec;
            bring_up_to_date(path, &plain, codec).await?;
        }
        Access::ReadOnly => {
            let history = look(path, &plain).await?;
            if !history.pending.is_empty() {
                let (found, known) = (history.version, migrate::newest());
                return Err(StoreOpenError::NeedsMigration { path: path.to_owned(), found, known });
            }
        }
    }
    connect(path, options).await
}

/// Migrates a database that is there. `codec` is for one that has none noted.
pub(super) async fn migrate(path: &Path, codec: Codec) -> Result<Migrated, StoreOpenError> {
    check_file(path)?;
    bring_up_to_date(path, &connect_options(path, &StoreOptions::default()), codec).await
}

async fn bring_up_to_date(
    path: &Path,
    options: &SqliteConnectOptions,
    codec: Codec,
) -> Result<Migrated, StoreOpenError> {
    match look(path, options).await {
        Ok(history) if history.pending.is_empty() => Ok(Migrated::default()),
        // A file that cannot be read without writing (a journal to be played back) shows itself below.
        Ok(_) | Err(StoreOpenError::Sqlite { .. } | StoreOpenError::Locked { .. }) => {
            migrate::run(path, &options.clone().busy_timeout(Duration::from_secs(30)), codec).await
        }
        Err(error) => Err(error),
    }
}

/// What has been applied to a database, without changing it in any way.
pub(super) async fn look(path: &Path, options: &SqliteConnectOptions) -> Result<History, StoreOpenError> {
    check_file(path)?;
    let failed = |source| StoreOpenError::of("read", path, source);
    let options = options.clone().read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await.map_err(failed)?;
    let history = History::read(path, &mut connection).await;
    // Nothing was written; a failure to close tells nothing.
    let _ = connection.close().await;
    history
}

/// For what is done before the store is open.
pub(super) fn connect_options(path: &Path, options: &StoreOptions) -> SqliteConnectOptions {
    let synchronous = match options.durability {
        Durability::Full => SqliteSynchronous::Full,
        Durability::Normal => SqliteSynchronous::Normal,
    };
    let wait = options.busy_timeout;
    SqliteConnectOptions::new().filename(path).busy_timeout(wait).foreign_keys(true).synchronous(synchronous)
}

/// The most kibibytes of the file that the connection which writes keeps in memory. A pass over thousands of jobs changes
/// pages all over the indexes; with the 2 MiB that SQLite takes by itself, it would write many of them several times.
const WRITER_CACHE: i64 = -14_000;

/// How many prepared statements a connection keeps: all that there are.
const STATEMENTS: usize = 128;

/// The most connections that read at once.
const READERS: u32 = 4;

async fn connect(path: &Path, options: &StoreOptions) -> Result<Connections, StoreOpenError> {
    let (file, wait) = (path.to_owned(), options.busy_timeout);
    let reader = move || open_connection(&file, Access::ReadOnly, wait);
    let Kept { worker, whereabouts, journal } = match options.access {
        Access::ReadOnly => keep_reader(path, reader.clone(), wait).await?,
        Access::Write => keep_writer(path, options).await?,
    };
    let there = Arc::clone(&whereabouts);
    // Another file in its place is not opened.
    let readers = Readers::new(READERS, wait, move || {
        there.check()?;
        Ok(reader()?)
    });
    Ok(Connections { kept: worker, readers, whereabouts, journal })
}

/// The connection that is kept for good.
struct Kept {
    worker: Worker,
    whereabouts: Arc<Whereabouts>,
    journal: Journal,
}

async fn keep_reader(
    path: &Path,
    open: impl FnOnce() -> rusqlite::Result<rusqlite::Connection> + Send + 'static,
    wait: Duration,
) -> Result<Kept, StoreOpenError> {
    let worker = Worker::start(wait, None, move || Ok(open()?)).await;
    let worker = worker.map_err(|source| StoreOpenError::of("open", path, source))?;
    // Whoever writes decides that; the worst may be.
    Ok(Kept { worker, whereabouts: Arc::new(Whereabouts::of(path)), journal: Journal::Behind })
}

async fn keep_writer(path: &Path, options: &StoreOptions) -> Result<Kept, StoreOpenError> {
    let failed = |source: sqlx::Error| StoreOpenError::of("open", path, source);
    let mut first = SqliteConnection::connect_with(&connect_options(path, options)).await.map_err(failed)?;
    must_be_writable(&mut first).await.map_err(failed)?;
    let journal = migrate::write_ahead(&mut first).await.map_err(failed)?;
    if journal == Journal::Behind {
        warn!(database = %path.display(), "The database cannot have a write-ahead log where it lies");
    }
    // The log is made when it is needed first.
    sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut first).await.map_err(failed)?;
    let whereabouts = Arc::new(Whereabouts::of(path));
    let (file, there, wait) = (path.to_owned(), Arc::clone(&whereabouts), options.busy_timeout);
    // Whoever closes the store waits for it.
    let log = Log::new(path, log::LONG, move || {
        there.check()?;
        Ok(open_connection(&file, Access::Write, Duration::ZERO)?)
    });
    let (file, durability) = (path.to_owned(), options.durability);
    let worker = Worker::start(wait, Some(log), move || Ok(open_writer(&file, durability, wait)?)).await;
    // Not before: whoever closes a file as the last one writes its log back and removes it.
    let _ = first.close().await;
    let worker = worker.map_err(|source| StoreOpenError::of("open", path, source))?;
    Ok(Kept { worker, whereabouts, journal })
}

fn open_writer(path: &Path, durability: Durability, wait: Duration) -> rusqlite::Result<rusqlite::Connection> {
    let connection = open_connection(path, Access::Write, wait)?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE)?;
    log::watch(&connection);
    // What a statement of many rows, or a call of several, might have to undo is kept aside: in memory, as a file would be
    // written for it, with as many writes as the commit needs, and fail where there is no room for temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

fn open_connection(path: &Path, access: Access, wait: Duration) -> rusqlite::Result<rusqlite::Connection> {
    let mode = match access {
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::ReadOnly => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let connection = rusqlite::Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "foreign_keys", true)?;
    // Without it, SQLite plans statements anew for other values of their parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // SQLite opens the file only now.
    connection.query_one("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
    Ok(connection)
}

/// A file that may not be written is opened to read only by SQLite, without a word and for good, so that writing would
/// fail also when it is allowed again. What is tried here is taken back, and nobody is waited for: only what can be written
/// is found locked by another program.
async fn must_be_writable(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let wait: i64 = sqlx::query_scalar("PRAGMA busy_timeout").fetch_one(&mut *connection).await?;
    sqlx::query("PRAGMA busy_timeout = 0").execute(&mut *connection).await?;
    let tried = match sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await {
        Err(error) if is_busy(&error) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            let tried = sqlx::query("PRAGMA user_version = 0").execute(&mut *connection).await;
            // Where SQLite has taken it back itself, there is nothing left to take back.
            let _ = sqlx::query("ROLLBACK").execute(&mut *connection).await;
            tried.map(drop)
        }
    };
    sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = {wait}"))).execute(connection).await?;
    tried
}

/// Makes an empty file that only its owner can read; SQLite gives the files beside it the same permissions.
fn make_if_missing(path: &Path) -> Result<(), StoreOpenError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(source) if source.kind() != ErrorKind::AlreadyExists => {
            Err(StoreOpenError::File { doing: "make", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Whether the file can be one of SQLite, which takes a few bytes of another kind for an empty database. It is not opened
/// here: closing it again would take from this process all locks that SQLite holds on it for other stores of the process,
/// and another process could then remove the log that they write to.
fn check_file(path: &Path) -> Result<(), StoreOpenError> {
    /// SQLite has no smaller page, and no smaller file but an empty one.
    const SMALLEST: u64 = 512;
    let failed = |source| StoreOpenError::File { doing: "read", path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Err(source) if source.kind() == ErrorKind::NotFound => Err(StoreOpenError::NotFound { path: path.to_owned() }),
        Err(source) => Err(failed(source)),
        Ok(found) if found.is_dir() => Err(failed(ErrorKind::IsADirectory.into())),
        Ok(found) if (1..SMALLEST).contains(&found.len()) => {
            Err(StoreOpenError::NotADatabase { path: path.to_owned() })
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(durability: Durability, synchronous: i64) {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { durability, ..StoreOptions::default() };
        let connections = open(&folder.path().join("jobs.db"), &options).await.unwrap();
        let asked = connections.kept.run(|kept| kept.query_one("PRAGMA synchronous", (), |row| row.get::<_, i64>(0)));
        assert_eq!(asked.await.unwrap().unwrap(), synchronous, "{durability:?}");
    }

    #[tokio::test]
    async fn a_commit_is_on_the_disk_unless_less_is_asked_for() {
        check(StoreOptions::default().durability, 2).await;
        check(Durability::Normal, 1).await;
    }

    #[tokio::test]
    async fn the_log_of_a_file_that_had_none_is_watched_over() {
        let folder = tempfile::tempdir().unwrap();
        let (path, options) = (folder.path().join("jobs.db"), StoreOptions::default());
        let first = open(&path, &options).await.unwrap();
        first.kept.close().await;
        let without = rusqlite::Connection::open(&path).unwrap();
        without.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).unwrap();
        drop(without);
        let connections = open(&path, &options).await.unwrap();
        connections.whereabouts.check().unwrap();
        std::fs::remove_file(folder.path().join("jobs.db-wal")).unwrap();
        assert!(connections.whereabouts.check().is_err());
    }

    #[tokio::test]
    async fn what_is_closed_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let connections = open(&folder.path().join("jobs.db"), &StoreOptions::default()).await.unwrap();
        connections.readers.run(|_| ()).await.unwrap();
        connections.readers.close().await;
        connections.kept.close().await;
        assert!(connections.kept.run(|_| ()).await.is_err());
        assert!(connections.readers.run(|_| ()).await.is_err());
        assert!(!folder.path().join("jobs.db-wal").exists(), "the log is part of the file");
    }
}
