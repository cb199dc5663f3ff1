//! Where the database is: in memory or in a file. It outlives the client's process.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use norfab_model::{ScheduleStore, Store};
use norfab_store::{Durability, MemoryStore, SqliteStore, StoreOptions};

/// Opens handles on one database, as each process has its own.
pub(crate) trait Shelf {
    type Store: Store + ScheduleStore;

    fn open(&self) -> impl Future<Output = Arc<Self::Store>>;
}

/// A database in memory.
pub(crate) struct InMemory(pub(crate) MemoryStore);

impl Shelf for InMemory {
    type Store = MemoryStore;

    async fn open(&self) -> Arc<MemoryStore> {
        Arc::new(self.0.clone())
    }
}

/// A database in a file.
pub(crate) struct InFile(pub(crate) PathBuf);

impl Shelf for InFile {
    type Store = SqliteStore;

    async fn open(&self) -> Arc<SqliteStore> {
        // What a power cut would cost is another test's matter.
        let options = StoreOptions { durability: Durability::Normal, ..StoreOptions::default() };
        Arc::new(SqliteStore::open(&self.0, &options).await.expect("a database of this release opens"))
    }
}
