//! The job database in one SQLite file. One connection writes, others read beside it; every step of a pass is a
//! constant number of statements, each of which stands in a file of its own under `sql/`.

mod add;
mod adopt;
mod answer;
mod apply;
mod codec;
mod encode;
mod error;
mod event;
mod info;
mod job;
mod list;
mod load;
mod local_time;
mod migrate;
mod open;
mod packed;
mod pass;
mod row;
mod schedule;
mod select;
mod whereabouts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use norfab_model::{
    AppliedReplies, Claim, Claimed, InputAnswer, Job, JobDetail, JobEvent, JobFilter, JobId, JobPage, JobStats, Link,
    LiveWorkers, NextDue, Overdue, Poll, Recovered, Released, Reply, RetryPolicy, Scope, SendAgain, SentAgain, Store,
    StoreError, StoredAnswer, Timestamp, ValidJob,
};
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqlitePool;
use sqlx::{Sqlite, SqliteConnection, Transaction};

pub use codec::{Codec, UnknownCodec};
pub use error::StoreOpenError;
pub use info::DatabaseInfo;
pub use migrate::{Migrated, MigrationInfo};
pub use open::{Access, CodecChoice, Durability, StoreOptions};

use local_time::{LocalTime, LocalZone};
use open::Connections;
use whereabouts::Whereabouts;

use crate::transition::Stored;

/// A job database in an SQLite file.
///
/// Cloning gives another handle on the same connections. Close it with [`close`](Store::close) when it matters that the
/// file is complete without the write-ahead log beside it; dropping it loses nothing.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

/// What all handles share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    access: Access,
    durability: Durability,
    codec: Codec,
    payloads: codec::Reader,
    connections: Connections,
    whereabouts: Whereabouts,
    zone: LocalZone,
    adds: add::Queue,
}

impl SqliteStore {
    /// Opens a job database. With [`Access::Write`] it is made when there is none, taken over when it is the Python
    /// client's, and brought to the schema of this release; any number of processes may do so at once.
    ///
    /// # Errors
    /// [`StoreOpenError`]; the file is then as it was before.
    pub async fn open(path: impl AsRef<Path>, options: &StoreOptions) -> Result<Self, StoreOpenError> {
        let path = path.as_ref().to_owned();
        let connections = open::open(&path, options).await?;
        let codec = info::settle_codec(&path, &connections, options).await?;
        let payloads = codec::Reader { most_bytes: options.most_payload_bytes };
        let (zone, adds) = (LocalZone::default(), add::Queue::default());
        let (access, durability, whereabouts) = (options.access, options.durability, Whereabouts::of(&path));
        let shared = Shared { path, access, durability, codec, payloads, connections, whereabouts, zone, adds };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Brings a database that is there to the schema of this release, and says what was done. Nothing is done to one
    /// that is up to date. New payloads of one that was empty are noted as zlib, which every client reads.
    ///
    /// # Errors
    /// [`StoreOpenError`]; the file is then as it was before.
    pub async fn migrate(path: impl AsRef<Path>) -> Result<Migrated, StoreOpenError> {
        open::migrate(path.as_ref(), Codec::Zlib).await
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// How new payloads are compressed.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.shared.codec
    }
}

impl Shared {
    /// Begins to write what must be on the disk before anything is said of it; `doing` completes "the database failed
    /// to ..".
    async fn write(&self, doing: &'static str) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.begin(self.durability, doing).await
    }

    /// Begins to write what comes again by itself, should a power cut undo it. Nobody waits for the disk then; the next
    /// commit of [`write`](Self::write) takes it along, since the log is written in order.
    async fn write_along(&self, doing: &'static str) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.begin(Durability::Normal, doing).await
    }

    /// The setting cannot be changed within a transaction, and belongs to the connection: it goes with each beginning.
    async fn begin(
        &self,
        durability: Durability,
        doing: &'static str,
    ) -> Result<Transaction<'static, Sqlite>, StoreError> {
        if self.access == Access::ReadOnly {
            return Err(StoreError::ReadOnly(doing));
        }
        self.in_place(&self.connections.kept, doing)?;
        let begin = match durability {
            Durability::Full => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
            Durability::Normal => "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
        };
        self.connections.kept.begin_with(begin).await.map_err(storage(doing))
    }

    /// A connection to read with.
    async fn read(&self, doing: &'static str) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.in_place(&self.connections.readers, doing)?;
        self.connections.readers.acquire().await.map_err(storage(doing))
    }

    /// Fails when the files are not where others look for them. Of a store that is closed they are nobody's business.
    fn in_place(&self, connections: &SqlitePool, doing: &'static str) -> Result<(), StoreError> {
        if connections.is_closed() { Ok(()) } else { self.whereabouts.check().map_err(storage(doing)) }
    }

    /// The results that a row holds, or why they cannot be read.
    fn stored_results(&self, row: &row::Row) -> Stored {
        Stored(self.payloads.results(&row.result_data).map_err(|error| error.to_string()))
    }

    async fn local(&self, now: Timestamp, connection: &mut SqliteConnection) -> Result<LocalTime, sqlx::Error> {
        self.zone.at(now, connection).await
    }
}

/// Wraps what went wrong in the storage.
fn storage<E: Into<BoxDynError>>(doing: &'static str) -> impl Fn(E) -> StoreError + Copy {
    move |source| {
        let source = source.into().downcast::<sqlx::Error>().map_or_else(|other| other, |error| error::cause(*error));
        StoreError::Storage { doing, source }
    }
}

impl Store for SqliteStore {
    async fn job_add(&self, now: Timestamp, job: &ValidJob) -> Result<Job, StoreError> {
        add::job_add(&self.shared, now, job, self.shared.durability).await
    }

    async fn job_add_to_run(&self, now: Timestamp, job: &ValidJob) -> Result<Job, StoreError> {
        add::job_add(&self.shared, now, job, Durability::Normal).await
    }

    async fn job_find(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        job::job_find(&self.shared, id).await
    }

    async fn job_detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        job::job_detail(&self.shared, id).await
    }

    async fn job_list(&self, filter: &JobFilter) -> Result<JobPage, StoreError> {
        list::job_list(&self.shared, filter).await
    }

    async fn job_cancel(&self, now: Timestamp, id: &JobId) -> Result<Job, StoreError> {
        job::job_cancel(&self.shared, now, id).await
    }

    async fn job_reschedule(&self, now: Timestamp, id: &JobId, scheduled_for: Timestamp) -> Result<Job, StoreError> {
        job::job_reschedule(&self.shared, now, id, scheduled_for).await
    }

    async fn job_release_due(&self, now: Timestamp, scope: &Scope, link: Link) -> Result<Released, StoreError> {
        pass::job_release_due(&self.shared, now, scope, link).await
    }

    async fn job_expire_due(&self, now: Timestamp, scope: &Scope, overdue: Overdue) -> Result<Vec<Job>, StoreError> {
        pass::job_expire_due(&self.shared, now, scope, overdue).await
    }

    async fn job_claim(&self, claim: Claim<'_>) -> Result<Claimed, StoreError> {
        pass::job_claim(&self.shared, claim).await
    }

    async fn job_send_again(
        &self,
        now: Timestamp,
        jobs: Vec<SendAgain>,
        live: Option<&LiveWorkers>,
    ) -> Result<SentAgain, StoreError> {
        pass::job_send_again(&self.shared, now, jobs, live).await
    }

    async fn job_take_polls(
        &self,
        now: Timestamp,
        scope: &Scope,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Poll>, StoreError> {
        pass::job_take_polls(&self.shared, now, scope, before, limit).await
    }

    async fn job_apply(
        &self,
        now: Timestamp,
        policy: RetryPolicy,
        replies: Vec<Reply>,
    ) -> Result<AppliedReplies, StoreError> {
        apply::job_apply(&self.shared, now, policy, replies).await
    }

    async fn job_realign(&self, now: Timestamp) -> Result<u64, StoreError> {
        pass::job_realign(&self.shared, now).await
    }

    async fn job_recover(&self, now: Timestamp, scope: &Scope) -> Result<Recovered, StoreError> {
        pass::job_recover(&self.shared, now, scope).await
    }

    async fn job_give_up(&self, now: Timestamp, ids: &[JobId], reason: &str) -> Result<Vec<Job>, StoreError> {
        job::job_give_up(&self.shared, now, ids, reason).await
    }

    async fn job_unclaim(&self, _: Timestamp, ids: &[JobId]) -> Result<(), StoreError> {
        pass::job_unclaim(&self.shared, ids).await
    }

    async fn answer_add(
        &self,
        now: Timestamp,
        job: &JobId,
        worker: &str,
        answer: &InputAnswer,
    ) -> Result<(), StoreError> {
        answer::answer_add(&self.shared, now, job, worker, answer).await
    }

    async fn answer_take(&self, scope: &Scope, limit: u32) -> Result<Vec<StoredAnswer>, StoreError> {
        answer::answer_take(&self.shared, scope, limit as usize).await
    }

    async fn job_next_due(&self, scope: &Scope) -> Result<NextDue, StoreError> {
        pass::job_next_due(&self.shared, scope).await
    }

    async fn job_unfinished(&self) -> Result<Vec<Job>, StoreError> {
        list::job_unfinished(&self.shared).await
    }

    async fn event_list(&self, job: &JobId, after: i64, limit: u32) -> Result<Vec<JobEvent>, StoreError> {
        event::event_list(&self.shared, job, after, limit).await
    }

    async fn stats(&self) -> Result<JobStats, StoreError> {
        list::stats(&self.shared).await
    }

    async fn change_mark(&self) -> Result<i64, StoreError> {
        const DOING: &str = "look for changes";
        self.shared.in_place(&self.shared.connections.kept, DOING)?;
        let mut connection = self.shared.connections.kept.acquire().await.map_err(storage(DOING))?;
        // SQLite counts what other connections committed, so this store's own commits do not show. A new connection counts
        // anew, and what was committed before it is not to be overlooked.
        let replaced = i64::from(self.shared.connections.replaced.load(std::sync::atomic::Ordering::Relaxed));
        let version = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut *connection).await;
        version.map(|version: i64| version | replaced << 32).map_err(storage(DOING))
    }

    async fn close(&self) {
        self.shared.connections.readers.close().await;
        // Last, so that SQLite writes the log into the file.
        self.shared.connections.kept.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `PRAGMA synchronous` is within both kinds of transaction, twice each: 1 is NORMAL, 2 is FULL.
    async fn check(durability: Durability, lasting: i64) {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { durability, ..StoreOptions::default() };
        let store = SqliteStore::open(folder.path().join("jobs.db"), &options).await.unwrap();
        for _ in 0..2 {
            let tx = store.shared.write("write").await.unwrap();
            assert_eq!(synchronous(tx).await, lasting, "{durability:?}");
            let tx = store.shared.write_along("write").await.unwrap();
            assert_eq!(synchronous(tx).await, 1, "{durability:?}");
        }
    }

    async fn synchronous(mut tx: Transaction<'static, Sqlite>) -> i64 {
        let found = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        found
    }

    #[tokio::test]
    async fn only_what_must_last_waits_for_the_disk() {
        check(Durability::Full, 2).await;
        check(Durability::Normal, 1).await;
    }
}
