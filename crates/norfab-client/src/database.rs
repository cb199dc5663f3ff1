//! Looking at a job database, or bringing it up to date, without a client.

use std::path::Path;

use norfab_store::{DatabaseInfo, Migrated, SqliteStore};

use crate::ClientError;

/// Looks at a database that is there, without changing anything: also at the Python client's, before it is taken over.
///
/// # Errors
/// [`ClientError::Open`] when it is missing, no database, or one of a newer release.
pub async fn inspect_database(path: &Path) -> Result<DatabaseInfo, ClientError> {
    Ok(SqliteStore::inspect(path).await?)
}

/// Brings a database that is there to the schema of this release, and tells what was done; nothing that is in it is lost.
/// Any number of processes may do so at once.
///
/// # Errors
/// [`ClientError::Open`]; the file is then as it was before.
pub async fn migrate_database(path: &Path) -> Result<Migrated, ClientError> {
    Ok(SqliteStore::migrate(path).await?)
}
