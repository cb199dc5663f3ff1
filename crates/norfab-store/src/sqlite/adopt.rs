//! Takes over what another program has made: the Python client's tables, and columns with our names, where their types
//! fit. What the right schema is, the migrations themselves say: they are run on an empty database to compare with.

use std::borrow::Cow;
use std::path::Path;

use sqlx::migrate::{Migration, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row as _, SqlSafeStr};

use super::error::StoreOpenError;
use super::migrate::MIGRATIONS;

/// The migration that makes the tables as the Python client does. The types of its columns are that client's business.
const LEGACY: i64 = 1;
/// The start of a line that adds a column to a table that may have it already.
const ADD_COLUMN: &str = "ALTER TABLE jobs ADD COLUMN ";
/// The table that may be there with a part of its columns.
const SCHEDULES: &str = "job_schedules";

/// The migrations as they fit a database.
pub(super) struct Adopted {
    /// What to run.
    pub(super) migrator: Migrator,
    /// The columns that are there already, as `table.column`.
    pub(super) columns: Vec<String>,
}

/// One column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    name: String,
    declared: String,
    not_null: bool,
    default: Option<String>,
    in_key: bool,
}

/// The columns of a table; none when there is no such table.
pub(super) async fn columns(connection: &mut SqliteConnection, table: &str) -> Result<Vec<Column>, sqlx::Error> {
    let rows = sqlx::query("SELECT name, type, \"notnull\" AS not_null, dflt_value, pk FROM pragma_table_info(?1)")
        .bind(table)
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Column {
                name: row.try_get("name")?,
                declared: row.try_get("type")?,
                not_null: row.try_get::<i64, _>("not_null")? != 0,
                default: row.try_get("dflt_value")?,
                in_key: row.try_get::<i64, _>("pk")? != 0,
            })
        })
        .collect()
}

/// Judges the tables that are there, completes a table of schedules that lacks columns, and leaves out of the migrations
/// what is there already.
pub(super) async fn prepare(path: &Path, connection: &mut SqliteConnection) -> Result<Adopted, StoreOpenError> {
    let failed = |source| StoreOpenError::of("read", path, source);
    let mut legacy = Model::make(Some(LEGACY)).await.map_err(failed)?;
    let mut model = Model::make(None).await.map_err(failed)?;
    let mut adopted = Vec::new();
    for table in ["jobs", "events", SCHEDULES, "input_answers", "norfab_settings"] {
        let actual = columns(connection, table).await.map_err(failed)?;
        if actual.is_empty() {
            continue;
        }
        let of_python = legacy.columns(table).await.map_err(failed)?;
        let wanted = model.columns(table).await.map_err(failed)?;
        let foreign = |reason| StoreOpenError::Foreign { path: path.to_owned(), table: table.to_owned(), reason };
        let verdict = judge(&actual, &of_python, &wanted).map_err(foreign)?;
        if let Some(reason) = not_addable(table, &verdict.missing) {
            return Err(foreign(reason));
        }
        if table == SCHEDULES {
            add_columns(connection, &verdict.missing).await.map_err(failed)?;
        }
        adopted.extend(verdict.adopted.into_iter().map(|column| format!("{table}.{column}")));
    }
    Ok(Adopted { migrator: without(&adopted), columns: adopted })
}

/// Fills in what schedules of another program do not say.
pub(super) async fn complete(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE job_schedules SET anchor_at = ifnull(start_at, CAST(created_at AS INTEGER)) WHERE anchor_at IS NULL",
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE job_schedules SET next_due_at = next_run_at WHERE next_due_at IS NULL AND next_run_at IS NOT NULL",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What a table that is there comes to.
#[derive(Debug, Default)]
struct Verdict {
    /// Our columns that are there.
    adopted: Vec<String>,
    /// Our columns that are not.
    missing: Vec<Column>,
}

/// Compares a table that is there with the Python client's and with ours. The error says what is wrong with it.
fn judge(actual: &[Column], of_python: &[Column], wanted: &[Column]) -> Result<Verdict, String> {
    let named = |columns: &[Column], name: &str| columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let mut verdict = Verdict::default();
    for column in wanted {
        let is_python = named(of_python, &column.name);
        match actual.iter().find(|there| there.name.eq_ignore_ascii_case(&column.name)) {
            None if is_python => return Err(format!("has no column {}", column.name)),
            None => verdict.missing.push(column.clone()),
            Some(_) if is_python => {}
            Some(there) if there.in_key != column.in_key => return Err("has another primary key".to_owned()),
            Some(there) if fits(affinity(&column.declared), affinity(&there.declared)) => {
                verdict.adopted.push(column.name.clone());
            }
            Some(there) => {
                return Err(format!(
                    "has a column {} of type {:?}, which cannot hold what this release keeps there ({})",
                    column.name, there.declared, column.declared
                ));
            }
        }
    }
    match actual.iter().find(|there| !named(wanted, &there.name) && must_be_filled(there)) {
        Some(there) => {
            Err(format!("has a column {} that must be filled and that this release does not know", there.name))
        }
        None => Ok(verdict),
    }
}

fn must_be_filled(column: &Column) -> bool {
    (column.not_null && column.default.is_none()) || column.in_key
}

/// The first column that is missing and that cannot be added to a table that may have rows.
fn not_addable(table: &str, missing: &[Column]) -> Option<String> {
    let addable = |column: &Column| match table {
        // The migration itself adds them.
        "jobs" => true,
        SCHEDULES => !column.in_key && (!column.not_null || column.default.is_some() || column.name == "anchor_at"),
        _ => false,
    };
    missing.iter().find(|column| !addable(column)).map(|column| format!("has no column {}", column.name))
}

/// How SQLite treats what is stored in a column, by the rules of its documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Affinity {
    Integer,
    Text,
    Blob,
    Real,
    Numeric,
}

fn affinity(declared: &str) -> Affinity {
    let declared = declared.to_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    if has(&["INT"]) {
        Affinity::Integer
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        Affinity::Text
    } else if declared.is_empty() || has(&["BLOB"]) {
        Affinity::Blob
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        Affinity::Real
    } else {
        Affinity::Numeric
    }
}

/// A column of whole numbers takes fractions too. One called TIMESTAMP or so is numeric, and usually holds text.
fn fits(wanted: Affinity, there: Affinity) -> bool {
    wanted == there || (wanted == Affinity::Real && there == Affinity::Integer)
}

/// Adds what a table of schedules lacks. Without a default a column cannot be NOT NULL; [`complete`] fills it.
async fn add_columns(connection: &mut SqliteConnection, missing: &[Column]) -> Result<(), sqlx::Error> {
    for column in missing {
        let default = column.default.as_ref().map(|value| {
            let not_null = if column.not_null { " NOT NULL" } else { "" };
            format!("{not_null} DEFAULT {value}")
        });
        let sql = format!(
            "ALTER TABLE {SCHEDULES} ADD COLUMN \"{}\" {}{}",
            column.name,
            column.declared,
            default.unwrap_or_default()
        );
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The migrations without the lines that add a column that is there. They keep their checksums: what is recorded is that
/// the migration's schema is reached.
fn without(adopted: &[String]) -> Migrator {
    let is_there = |line: &str| {
        line.strip_prefix(ADD_COLUMN)
            .and_then(|rest| rest.split_whitespace().next())
            .is_some_and(|column| adopted.iter().any(|name| *name == format!("jobs.{column}")))
    };
    let tailored = MIGRATIONS.iter().map(|migration| {
        let lines = migration.sql.as_str().lines().filter(|line| !is_there(line));
        let sql: String = lines.flat_map(|line| [line, "\n"]).collect();
        Migration { sql: AssertSqlSafe(sql).into_sql_str(), ..migration.clone() }
    });
    Migrator { migrations: Cow::Owned(tailored.collect()), ..Migrator::DEFAULT }
}

/// A database in memory that shows what migrations come to.
struct Model(SqliteConnection);

impl Model {
    /// The schema after the migration with this number, or after all.
    async fn make(upto: Option<i64>) -> Result<Self, sqlx::Error> {
        let mut connection = SqliteConnection::connect_with(&SqliteConnectOptions::new().in_memory(true)).await?;
        let done = MIGRATIONS.run_direct(upto, &mut connection, false).await;
        done.map_err(|error| sqlx::Error::Migrate(Box::new(error)))?;
        Ok(Self(connection))
    }

    async fn columns(&mut self, table: &str) -> Result<Vec<Column>, sqlx::Error> {
        columns(&mut self.0, table).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(declared: &str, expected: Affinity) {
        assert_eq!(affinity(declared), expected, "{declared}");
    }

    #[test]
    fn affinities_are_those_of_sqlite() {
        check("INTEGER", Affinity::Integer);
        check("bigint", Affinity::Integer);
        check("FLOATING POINT", Affinity::Integer);
        check("VARCHAR(255)", Affinity::Text);
        check("BLOB", Affinity::Blob);
        check("", Affinity::Blob);
        check("double precision", Affinity::Real);
        check("TIMESTAMP", Affinity::Numeric);
        check("DECIMAL(10,5)", Affinity::Numeric);
    }

    #[test]
    fn only_the_lines_of_columns_that_are_there_are_left_out() {
        let migrator = without(&["jobs.origin".to_owned(), "job_schedules.name".to_owned()]);
        for (tailored, whole) in migrator.iter().zip(MIGRATIONS.iter()) {
            let left_out: Vec<&str> =
                whole.sql.as_str().lines().filter(|line| !tailored.sql.as_str().contains(line)).collect();
            let expected: &[&str] =
                if whole.version == 2 { &["ALTER TABLE jobs ADD COLUMN origin TEXT;"] } else { &[] };
            assert_eq!((left_out, tailored.version), (expected.to_vec(), whole.version));
            assert_eq!(tailored.checksum, whole.checksum);
        }
    }

    #[tokio::test]
    async fn every_column_that_is_added_can_be_adopted() {
        let (mut legacy, mut whole) = (Model::make(Some(LEGACY)).await.unwrap(), Model::make(None).await.unwrap());
        let before = legacy.columns("jobs").await.unwrap();
        for column in &whole.columns("jobs").await.unwrap()[before.len()..] {
            let line = format!("{ADD_COLUMN}{} {}", column.name, column.declared);
            let is_one_line =
                |migration: &Migration| migration.sql.as_str().lines().any(|found| found.starts_with(&line));
            assert!(MIGRATIONS.iter().any(is_one_line), "{}", column.name);
        }
    }
}
