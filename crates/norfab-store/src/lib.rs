//! The job database of the NorFab client: [`SqliteStore`], one file that the Python client can open too, and
//! [`MemoryStore`], which behaves alike and keeps nothing.
//!
//! Both are a [`Store`](norfab_model::Store) and a [`ScheduleStore`](norfab_model::ScheduleStore); both carry out the same
//! pure steps, and both pass [`conformance`], which a store of your own can be held against as well.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod by_zone;
pub mod conformance;
mod materialize;
mod memory;
mod sqlite;
mod transition;

pub use memory::MemoryStore;
pub use sqlite::{
    Access, Codec, CodecChoice, DatabaseInfo, Durability, Migrated, MigrationInfo, SqliteStore, StoreOpenError,
    StoreOptions, UnknownCodec,
};
