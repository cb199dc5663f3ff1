//! Why a job database cannot be opened.

use std::path::{Path, PathBuf};

use sqlx::error::DatabaseError;

use sqlx::error::BoxDynError;

/// What went wrong while a job database was opened, inspected or migrated. The file is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreOpenError {
    /// There is no such file, and this way of opening makes none.
    #[error("there is no job database {}", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not an SQLite database; move it away or give another path", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A later release made it.
    #[error(
        "the database {} has schema {found}, and this release knows schemas up to {known}; use a newer release",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The newest schema in it.
        found: i64,
        /// The newest schema of this release.
        known: i64,
    },
    /// It was migrated by a program whose migrations are not those of this release.
    #[error(
        "the database {} was migrated by another program: its migration {version} is not the one of this release",
        path.display()
    )]
    OtherHistory {
        /// The file.
        path: PathBuf,
        /// The migration that differs.
        version: i64,
    },
    /// Another program made tables or columns with our names and another meaning.
    #[error("the database {} cannot be taken over: its table {table} {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It must be migrated first, which opening for reading does not do.
    #[error(
        "the database {} has schema {found} and has to be brought to schema {known} first; \
         open it once for writing, or run `norfab db migrate`",
        path.display()
    )]
    NeedsMigration {
        /// The file.
        path: PathBuf,
        /// The newest schema in it; 0 for a database of the Python client.
        found: i64,
        /// The newest schema of this release.
        known: i64,
    },
    /// Another program holds it for too long.
    #[error("the database {} stayed locked by another program; try again", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: BoxDynError,
    },
    /// This user may not write the file, or its folder.
    #[error(
        "the database {} may not be written; allow this user to write its folder, the file and those beside it (-wal, -shm)",
        path.display()
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: BoxDynError,
    },
    /// SQLite cannot open the file, or one beside it that it needs even to read.
    #[error(
        "the database {} cannot be opened; allow this user to read it and to write its folder, where SQLite needs files \
         beside it even to read, or copy all of them (-wal and -shm too, if they are there) to a folder of this user",
        path.display()
    )]
    NotOpened {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: BoxDynError,
    },
    /// The file cannot be made or read.
    #[error("cannot {doing} the database {}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// SQLite failed otherwise.
    #[error("cannot {doing} the database {}", path.display())]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: BoxDynError,
    },
}

impl StoreOpenError {
    /// Sorts what SQLite says into what a caller can do about it.
    pub(super) fn of(doing: &'static str, path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        if is_busy(&source) {
            return Self::Locked { path, source: cause(source) };
        }
        match code(&source) {
            Some(8) => Self::NotWritable { path, source: cause(source) },
            Some(14) => Self::NotOpened { path, source: cause(source) },
            Some(26) => Self::NotADatabase { path },
            _ => Self::Sqlite { doing, path, source: cause(source) },
        }
    }
}

/// An error of sqlx as the source of another one. Its own text repeats what its sources say, so these are left out; of
/// SQLite's errors only what SQLite says remains.
pub(super) fn cause(error: sqlx::Error) -> BoxDynError {
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(sqlx::Error);

    match error {
        sqlx::Error::Database(error) => match remedy(primary(&*error)) {
            Some(remedy) => Remedied { error, remedy }.into(),
            None => error.into_error(),
        },
        other => Told(other).into(),
    }
}

/// An error of SQLite that a person has to do something about.
#[derive(Debug, thiserror::Error)]
#[error("{error}; {remedy}")]
struct Remedied {
    error: Box<dyn DatabaseError>,
    remedy: &'static str,
}

/// What to do about an error that does not pass by itself, by SQLite's primary result code.
fn remedy(code: Option<i32>) -> Option<&'static str> {
    match code? {
        10 => Some("look at the disk and at what the system says of it"),
        11 => Some(
            "the file is damaged: stop, copy it away with its -wal file, and restore the backup, or save what can be read \
             with `sqlite3 FILE .recover`",
        ),
        13 => Some("make room"),
        _ => None,
    }
}

/// Whether another connection was in the way: SQLITE_BUSY or SQLITE_LOCKED.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(5 | 6))
}

/// What SQLite says when a rule of a table stopped a statement: SQLITE_CONSTRAINT.
pub(super) fn constraint(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Option<String> {
    // The cause as `cause` leaves it: SQLite's own error.
    let error = error.downcast_ref::<sqlx::sqlite::SqliteError>()?;
    (primary(error) == Some(19)).then(|| error.message().to_owned())
}

/// SQLite's primary result code, of any error of sqlx.
fn code(error: &sqlx::Error) -> Option<i32> {
    primary(error.as_database_error()?)
}

/// SQLite's primary result code.
fn primary(error: &dyn DatabaseError) -> Option<i32> {
    let extended: i32 = error.code()?.parse().ok()?;
    Some(extended & 0xff)
}
