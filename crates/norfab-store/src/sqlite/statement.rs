//! Statements: each stands in a file of its own that `sqlx` checks against the schema when this crate is compiled, with the
//! names and the types of what it returns. They are carried out by the thread that has the connection.

use std::marker::PhantomData;
use std::ops::Deref;

use rusqlite::types::FromSql;
use rusqlite::{Connection, Row, ToSql};
use sqlx::Sqlite;
use sqlx::query::QueryScalar;
use tracing::trace;

use super::Durability;

/// What one row of a statement is read as.
pub(super) trait FromRow: Sized {
    /// The names of the columns, in their order; none where the names do not matter.
    const COLUMNS: &'static [&'static str];

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self>;
}

/// A transaction, or the part of one that belongs to a call. It is undone unless it is committed.
pub(super) struct Tx<'a> {
    connection: &'a Connection,
    extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Part,
    /// It is committed.
    Over,
}

impl<'a> Tx<'a> {
    /// Begins one that writes. The setting cannot be changed within a transaction, and belongs to the connection: it goes
    /// with each beginning.
    pub(super) fn begin(connection: &'a Connection, durability: Durability) -> rusqlite::Result<Self> {
        Self::open(connection, durability)?;
        Ok(Self { connection, extent: Extent::Whole })
    }

    /// Begins one that only reads.
    pub(super) fn snapshot(connection: &'a Connection) -> rusqlite::Result<Self> {
        undo_leftover(connection)?;
        carry_out("BEGIN", connection)?;
        Ok(Self { connection, extent: Extent::Whole })
    }

    /// Begins a part of the one that is [open](Self::open).
    pub(super) fn within(connection: &'a Connection) -> rusqlite::Result<Self> {
        carry_out("SAVEPOINT part", connection)?;
        Ok(Self { connection, extent: Extent::Part })
    }

    /// The one that is [open](Self::open), for the only call that it serves.
    pub(super) fn of_open(connection: &'a Connection) -> Self {
        Self { connection, extent: Extent::Whole }
    }

    /// Undoes the one that is [open](Self::open), if there is one.
    pub(super) fn undo_open(connection: &Connection) -> rusqlite::Result<()> {
        undo_leftover(connection)
    }

    /// Begins one that writes, and leaves it open.
    pub(super) fn open(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
        undo_leftover(connection)?;
        let setting = match durability {
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Normal => "PRAGMA synchronous = NORMAL",
        };
        carry_out(setting, connection)?;
        carry_out("BEGIN IMMEDIATE", connection)
    }

    /// Commits the one that is [open](Self::open), or undoes it.
    pub(super) fn close(connection: &Connection) -> rusqlite::Result<()> {
        let committed = carry_out("COMMIT", connection);
        if committed.is_err() && undo_leftover(connection).is_err() {
            tracing::warn!("Could not undo a transaction");
        }
        committed
    }

    pub(super) fn commit(mut self) -> rusqlite::Result<()> {
        match self.extent {
            Extent::Whole => Self::close(self.connection)?,
            Extent::Part => carry_out("RELEASE part", self.connection)?,
            Extent::Over => {}
        }
        self.extent = Extent::Over;
        Ok(())
    }

    fn undo(&self) -> rusqlite::Result<()> {
        match self.extent {
            Extent::Whole => carry_out("ROLLBACK", self.connection),
            Extent::Part => {
                let part = carry_out("ROLLBACK TO part", self.connection);
                let undone = part.and_then(|()| carry_out("RELEASE part", self.connection));
                // What cannot be undone by itself is undone with all that it belongs to.
                undone.or_else(|_| carry_out("ROLLBACK", self.connection))
            }
            Extent::Over => Ok(()),
        }
    }
}

/// One that could not be undone then may be now.
fn undo_leftover(connection: &Connection) -> rusqlite::Result<()> {
    if connection.is_autocommit() { Ok(()) } else { carry_out("ROLLBACK", connection) }
}

fn carry_out(sql: &'static str, connection: &Connection) -> rusqlite::Result<()> {
    Statement::new(sql, Vec::new()).execute(connection).map(drop)
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        // SQLite itself ends one that the disk refuses.
        if !self.connection.is_autocommit()
            && let Err(error) = self.undo()
        {
            tracing::warn!(%error, "Could not undo a transaction");
        }
    }
}

/// A statement with its parameters.
pub(super) struct Statement<'a> {
    sql: &'static str,
    parameters: Vec<Box<dyn ToSql + 'a>>,
}

impl<'a> Statement<'a> {
    pub(super) fn new(sql: &'static str, parameters: Vec<Box<dyn ToSql + 'a>>) -> Self {
        Self { sql, parameters }
    }

    /// Carries it out; returns how many rows it changed.
    pub(super) fn execute(self, connection: &Connection) -> rusqlite::Result<usize> {
        trace!(sql = self.sql, "Statement");
        connection.prepare_cached(self.sql)?.execute(rusqlite::params_from_iter(self.parameters))
    }

    /// All rows that it returns.
    fn all<T: FromRow>(self, connection: &Connection) -> rusqlite::Result<Vec<T>> {
        trace!(sql = self.sql, "Statement");
        let mut statement = connection.prepare_cached(self.sql)?;
        debug_assert!(T::COLUMNS.is_empty() || names(&statement).eq(T::COLUMNS.iter().copied()), "{}", self.sql);
        let mut rows = statement.query(rusqlite::params_from_iter(self.parameters))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(T::from_row(row)?);
        }
        Ok(all)
    }
}

/// The names of the columns that a statement returns, without what they tell `sqlx` of types.
fn names<'a>(statement: &'a rusqlite::Statement<'_>) -> impl Iterator<Item = &'a str> {
    statement.column_names().into_iter().map(|name| name.split(['!', '?', ':']).next().unwrap_or(name))
}

/// A statement whose rows are `T`.
pub(super) struct Query<'a, T> {
    statement: Statement<'a>,
    read: PhantomData<T>,
}

impl<'a, T> Query<'a, T> {
    pub(super) fn new(statement: Statement<'a>) -> Self {
        Self { statement, read: PhantomData }
    }

    /// The same statement with its rows read as something else that has the same columns.
    pub(super) fn read_as<R: FromRow>(self) -> Query<'a, R> {
        Query::new(self.statement)
    }
}

impl<'a, T: FromRow> Query<'a, T> {
    /// One whose type is what `sqlx` has found.
    pub(super) fn of(_: Option<PhantomData<T>>, statement: Statement<'a>) -> Self {
        Self::new(statement)
    }

    /// All rows.
    pub(super) fn fetch_all(self, connection: &Connection) -> rusqlite::Result<Vec<T>> {
        self.statement.all(connection)
    }

    /// The first row, which there must be.
    pub(super) fn fetch_one(self, connection: &Connection) -> rusqlite::Result<T> {
        self.fetch_optional(connection)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// The first row.
    pub(super) fn fetch_optional(self, connection: &Connection) -> rusqlite::Result<Option<T>> {
        Ok(self.fetch_all(connection)?.into_iter().next())
    }
}

/// One column.
impl<T: FromSql> FromRow for T {
    const COLUMNS: &'static [&'static str] = &[];

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        row.get(0)
    }
}

/// The type of what a statement returns.
pub(super) fn checked<T, A>(_: &QueryScalar<'_, Sqlite, T, A>) -> PhantomData<T> {
    PhantomData
}

/// The statement of a file, which returns nothing.
macro_rules! statement {
    ($file:literal $(, $parameter:expr)* $(,)?) => {{
        if false {
            let _ = sqlx::query_file!($file $(, $parameter)*);
        }
        $crate::sqlite::statement::Statement::new(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $file)),
            vec![$(Box::new($parameter) as Box<dyn rusqlite::ToSql + '_>),*],
        )
    }};
}

/// The statement of a file, which returns rows of a type.
macro_rules! query {
    ($row:ident, $file:literal $(, $parameter:expr)* $(,)?) => {{
        if false {
            let _ = sqlx::query_file_as!($row, $file $(, $parameter)*);
        }
        $crate::sqlite::statement::Query::<$row>::new($crate::sqlite::statement::Statement::new(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $file)),
            vec![$(Box::new($parameter) as Box<dyn rusqlite::ToSql + '_>),*],
        ))
    }};
}

/// The statement of a file, which returns one column.
macro_rules! scalar {
    ($file:literal $(, $parameter:expr)* $(,)?) => {{
        let checked = if false {
            Some($crate::sqlite::statement::checked(&sqlx::query_file_scalar!($file $(, $parameter)*)))
        } else {
            None
        };
        $crate::sqlite::statement::Query::of(checked, $crate::sqlite::statement::Statement::new(
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $file)),
            vec![$(Box::new($parameter) as Box<dyn rusqlite::ToSql + '_>),*],
        ))
    }};
}

/// What a column is read as, for as long as the row is there.
pub(super) trait FromColumn<'r>: Sized {
    fn from_column(row: &'r Row<'_>, place: usize) -> rusqlite::Result<Self>;
}

impl<'r> FromColumn<'r> for i64 {
    fn from_column(row: &'r Row<'_>, place: usize) -> rusqlite::Result<Self> {
        row.get(place)
    }
}

/// Declares a struct of all columns that a statement returns, in their order; one with a parameter can be read in several
/// ways, of which those that borrow copy nothing.
macro_rules! row {
    ($(#[$attribute:meta])* $visible:vis struct $row:ident<$cell:ident> { $($(#[$of_column:meta])* $shown:vis $column:ident: $kind:ty),* $(,)? }) => {
        $(#[$attribute])*
        $visible struct $row<$cell> { $($(#[$of_column])* $shown $column: $kind),* }

        impl<$cell> $row<$cell> {
            /// The names of the columns.
            pub(super) const COLUMNS: &'static [&'static str] = &[$(stringify!($column)),*];

            /// Reads them.
            pub(super) fn look<'r>(row: &'r rusqlite::Row<'_>) -> rusqlite::Result<Self>
            where
                $cell: $crate::sqlite::statement::FromColumn<'r>,
            {
                // The fields are read in the order in which they are written.
                let mut columns = 0_usize..;
                let mut next = || columns.next().unwrap_or_default();
                Ok(Self { $($column: <$kind as $crate::sqlite::statement::FromColumn<'r>>::from_column(row, next())?),* })
            }
        }
    };
    ($(#[$attribute:meta])* $visible:vis struct $row:ident { $($(#[$of_column:meta])* $shown:vis $column:ident: $kind:ty),* $(,)? }) => {
        $(#[$attribute])*
        $visible struct $row { $($(#[$of_column])* $shown $column: $kind),* }

        impl $crate::sqlite::statement::FromRow for $row {
            const COLUMNS: &'static [&'static str] = &[$(stringify!($column)),*];

            fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
                // The fields are read in the order in which they are written.
                let mut columns = 0_usize..;
                let mut next = || columns.next().unwrap_or_default();
                Ok(Self { $($column: row.get(next())?),* })
            }
        }
    };
}

pub(super) use {query, row, scalar, statement};
