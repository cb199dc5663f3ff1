//! How SQLite finds what the statements ask for. Every statement is looked at, those that come later too: none may walk
//! through all jobs or events, but the few that are named here, which no pass uses.

mod common;

use std::path::{Path, PathBuf};

use common::Database;
use norfab_model::Store;
use sqlx::{AssertSqlSafe, Row};

/// Counting reads an index from end to end.
const COUNTS: [&str; 3] = ["job/count_by_status.sql", "job/count_by_service.sql", "event/count.sql"];
/// Sorting what was found: pages by due time, unfinished jobs of several statuses, answers for several jobs, and
/// parameters kept in their order.
const SORTS: [&str; 5] =
    ["job/list_by_due.sql", "job/unfinished.sql", "answer/waiting_of.sql", "job/add.sql", "schedule/active.sql"];
/// Tables of a JSON parameter or column, and parts of a statement, as the statements call them.
const PARAMETERS: [&str; 9] =
    ["json_each", "list", "change", "new", "completed", "wanted", "CONSTANT", "due", "overdue"];
/// What a guest asks: it names its jobs, and sorting these is no matter.
const GUEST: &str = "guest/";

fn statements() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let files = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut found = Vec::new();
    for path in files(&root).iter().flat_map(|folder| files(folder)) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        found.push((name, std::fs::read_to_string(&path).unwrap()));
    }
    found.sort();
    found
}

/// A database that the store has made, which is there as long as it is held, and a connection to it.
async fn empty() -> (Database, sqlx::SqliteConnection) {
    let database = Database::missing();
    database.open().await.close().await;
    let connection = database.connect().await;
    (database, connection)
}

/// The lines of the plan of a statement.
async fn plan(connection: &mut sqlx::SqliteConnection, sql: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"))).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| row.get("detail")).collect()
}

/// What is wrong with a line of a plan, if anything.
fn objection(statement: &str, line: &str) -> bool {
    let scans_rows = line
        .strip_prefix("SCAN ")
        .and_then(|rest| rest.split_whitespace().next())
        // What a subquery looks through has lines of its own.
        .is_some_and(|table| !PARAMETERS.contains(&table) && !table.starts_with("(subquery-"));
    let sorts = line.starts_with("USE TEMP B-TREE");
    let builds_index = line.contains("AUTOMATIC");
    (scans_rows && !COUNTS.contains(&statement))
        || (sorts && !SORTS.contains(&statement) && !statement.starts_with(GUEST))
        || builds_index
}

#[tokio::test]
async fn no_statement_walks_through_all_rows() {
    let (_database, mut connection) = empty().await;
    let statements = statements();
    assert!(statements.len() > 25, "the statements were not found");
    for (name, sql) in &statements {
        let plan = plan(&mut connection, sql).await;
        let wrong: Vec<_> = plan.iter().filter(|line| objection(name, line)).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
    for named in COUNTS.iter().chain(&SORTS) {
        assert!(statements.iter().any(|(name, _)| name == named), "{named} is gone");
    }
}

/// Loading a row must not make tables for the lists of what to load.
#[tokio::test]
async fn rows_are_loaded_along_the_lists() {
    let (_database, mut connection) = empty().await;
    let mut statements = statements();
    statements.retain(|(name, _)| name.ends_with("/load.sql"));
    assert_eq!(statements.len(), 2);
    for (name, sql) in &statements {
        let plan = plan(&mut connection, sql).await;
        let tables = |line: &&String| line.starts_with("LIST SUBQUERY") || line.starts_with("MATERIALIZE");
        let wrong: Vec<_> = plan.iter().filter(tables).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[tokio::test]
async fn a_guest_pays_for_its_own_jobs_only() {
    let (_database, mut connection) = empty().await;
    let mut statements = statements();
    statements.retain(|(name, _)| name.starts_with(GUEST) || name == "job/unclaim.sql");
    assert_eq!(statements.len(), 9);
    for (name, sql) in &statements {
        let plan = plan(&mut connection, sql).await;
        let by_name = plan.iter().filter(|line| line.contains(" jobs USING INDEX sqlite_autoindex_jobs_1 (uuid=?)"));
        let tables = plan.iter().filter(|line| line.contains(" jobs "));
        assert_eq!((by_name.count(), tables.count()), (1, 1), "{name}: {plan:?}");
    }
}

#[tokio::test]
async fn a_walk_would_be_noticed() {
    let (_database, mut connection) = empty().await;
    for sql in [
        "SELECT uuid FROM jobs WHERE task = ?1",
        "SELECT uuid FROM jobs INDEXED BY jobs_to_send WHERE status = 'NEW'",
        "UPDATE jobs SET errors = NULL FROM json_each(?1) AS change WHERE +jobs.rowid = change.value",
        "SELECT uuid FROM jobs WHERE status IN ('NEW', 'STARTED') ORDER BY rowid",
    ] {
        let plan = plan(&mut connection, sql).await;
        assert!(plan.iter().any(|line| objection("job/planted.sql", line)), "{plan:?}");
    }
}

#[tokio::test]
async fn every_statement_says_what_it_is_for() {
    for (name, sql) in statements() {
        assert!(sql.starts_with("-- ") && sql.ends_with('\n') && !sql.contains('\r'), "{name}");
        assert!(!sql.to_lowercase().contains("'now'") && !sql.contains("CURRENT_"), "{name} asks SQLite for the time");
    }
}
