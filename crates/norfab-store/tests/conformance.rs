//! Both stores against the one suite, and SQLite with each of its choices.

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use norfab_model::ScheduleId;
use norfab_store::conformance::{Database, LeftCursor, exercise};
use norfab_store::{Codec, CodecChoice, Durability, MemoryStore, SqliteStore, StoreOptions};

#[derive(Default)]
struct Memory(MemoryStore);

impl Database for Memory {
    type Store = MemoryStore;

    async fn open(&self) -> MemoryStore {
        self.0.clone()
    }

    async fn leave(&self, schedule: &ScheduleId, cursor: LeftCursor) {
        self.0.schedule_leave(schedule, cursor);
    }
}

struct Sqlite {
    folder: Arc<tempfile::TempDir>,
    options: StoreOptions,
    handle: fn(SqliteStore) -> SqliteStore,
}

impl Sqlite {
    fn new(options: StoreOptions) -> Self {
        Self { folder: Arc::new(tempfile::tempdir().unwrap()), options, handle: |store| store }
    }

    /// What it writes is carried out where it is awaited.
    fn working_here() -> Self {
        Self { handle: |store| store.working_here(), ..Self::new(StoreOptions::default()) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }
}

impl Database for Sqlite {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        (self.handle)(SqliteStore::open(self.path(), &self.options).await.unwrap())
    }

    async fn leave(&self, schedule: &ScheduleId, cursor: LeftCursor) {
        common::leave(&self.path(), schedule, cursor).await;
    }
}

#[tokio::test]
async fn memory() {
    exercise(async || Memory::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_with_lz4() {
    exercise(async || Sqlite::new(StoreOptions::default())).await;
}

#[tokio::test]
async fn sqlite_in_the_thread_of_the_caller() {
    exercise(async || Sqlite::working_here()).await;
}

#[tokio::test]
async fn sqlite_with_zlib_and_without_waiting_for_the_disk() {
    let options = StoreOptions {
        codec: CodecChoice::IfNew(Codec::Zlib),
        durability: Durability::Normal,
        ..StoreOptions::default()
    };
    exercise(async || Sqlite::new(options.clone())).await;
}
