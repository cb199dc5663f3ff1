//! Why a job database cannot be opened.

use std::path::{Path, PathBuf};

use super::driver::NotStarted;

type BoxDynError = Box<dyn std::error::Error + Send + Sync>;

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
    /// Its text is not UTF-8, as every client makes it: what the statements write would be read as other characters.
    #[error(
        "the database {} keeps its text in {encoding}, and this client needs UTF-8; copy it into a new file with \
         `sqlite3 OLD .dump | sqlite3 NEW` and use that",
        path.display()
    )]
    Encoding {
        /// The file.
        path: PathBuf,
        /// What SQLite calls it.
        encoding: String,
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
    pub(super) fn of(doing: &'static str, path: &Path, source: impl Into<Failure>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        match source.code {
            Some(5 | 6) => Self::Locked { path, source: source.into() },
            Some(8) => Self::NotWritable { path, source: source.into() },
            Some(14) => Self::NotOpened { path, source: source.into() },
            Some(26) => Self::NotADatabase { path },
            _ => Self::Sqlite { doing, path, source: source.into() },
        }
    }
}

/// What SQLite or one of its drivers says, as the source of another error.
#[derive(Debug, thiserror::Error)]
#[error("{prefix}{said}{remedy}")]
pub(super) struct Failure {
    /// SQLite's primary result code, when it is one of SQLite's.
    code: Option<i32>,
    /// The code that SQLite gives, which may be more than the primary one.
    prefix: String,
    said: String,
    /// What to do about it.
    remedy: &'static str,
}

impl Failure {
    fn of_sqlite(extended: i32, message: &str) -> Self {
        let code = extended & 0xff;
        let (prefix, said) = (format!("(code: {extended}) "), message.to_owned());
        Self { code: Some(code), prefix, said, remedy: remedy(code) }
    }

    fn of_driver(error: &dyn std::error::Error) -> Self {
        Self { code: None, prefix: String::new(), said: error.to_string(), remedy: "" }
    }
}

impl From<sqlx::Error> for Failure {
    /// The text of an error of sqlx repeats what its sources say; of SQLite's errors only what SQLite says remains.
    fn from(error: sqlx::Error) -> Self {
        let extended = error.as_database_error().and_then(|error| error.code()?.parse().ok());
        match (extended, error.as_database_error()) {
            (Some(extended), Some(error)) => Self::of_sqlite(extended, error.message()),
            _ => Self::of_driver(&error),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(code, message) => {
                let known = || rusqlite::ffi::code_to_str(code.extended_code).to_owned();
                Self::of_sqlite(code.extended_code, &message.clone().unwrap_or_else(known))
            }
            rusqlite::Error::SqlInputError { error: code, msg, .. } => Self::of_sqlite(code.extended_code, msg),
            _ => Self::of_driver(&error),
        }
    }
}

impl From<NotStarted> for Failure {
    fn from(error: NotStarted) -> Self {
        match error {
            NotStarted::Sqlite(error) => error.into(),
            other => Self::of_driver(&other),
        }
    }
}

/// What to do about an error that does not pass by itself, by SQLite's primary result code.
fn remedy(code: i32) -> &'static str {
    match code {
        10 => "; look at the disk and at what the system says of it",
        11 => {
            "; the file is damaged: stop, copy it away with its -wal file, and restore the backup, or save what can be read \
             with `sqlite3 FILE .recover`"
        }
        13 => "; make room",
        _ => "",
    }
}

/// Whether another connection was in the way: SQLITE_BUSY or SQLITE_LOCKED.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    matches!(code.map(|extended| extended & 0xff), Some(5 | 6))
}

/// What SQLite says when a rule of a table stopped a statement: SQLITE_CONSTRAINT.
pub(super) fn constraint<'a>(error: &'a (dyn std::error::Error + Send + Sync + 'static)) -> Option<&'a str> {
    let failure = error.downcast_ref::<Failure>()?;
    (failure.code == Some(19)).then_some(failure.said.as_str())
}
