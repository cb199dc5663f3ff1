//! The job database in one SQLite file. One connection writes, others read beside it, each in a thread of its own that carries
//! out a whole call; every step of a pass is a constant number of statements, each of which stands in a file of its own under
//! `sql/`.

mod add;
mod adopt;
mod answer;
mod apply;
mod codec;
mod desk;
mod driver;
mod encode;
mod error;
mod event;
mod group;
mod info;
mod job;
mod list;
mod load;
mod local_time;
mod log;
mod migrate;
mod open;
mod packed;
mod pass;
mod row;
mod schedule;
mod select;
mod statement;
mod whereabouts;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use norfab_model::{
    AppliedReplies, Claim, Claimed, InputAnswer, Job, JobDetail, JobEvent, JobFilter, JobId, JobPage, JobStats, Link,
    LiveWorkers, NextDue, Overdue, Poll, Recovered, Released, Reply, RetryPolicy, Scope, SendAgain, SentAgain, Store,
    StoreError, StoredAnswer, Timestamp, ValidJob,
};
use rusqlite::Connection;
use tokio::sync::oneshot;

pub use codec::{Codec, UnknownCodec};
pub use error::StoreOpenError;
pub use info::DatabaseInfo;
pub use migrate::{Migrated, MigrationInfo};
pub use open::{Access, CodecChoice, Durability, StoreOptions};

use driver::{Hands, NoAnswer, Work};
use encode::EncodeError;
use group::{Group, Member, Tell};
use local_time::{LocalTime, LocalZone};
use migrate::Journal;
use open::Connections;
use statement::Tx;

use crate::transition::{Stored, must_last};

/// A job database in an SQLite file.
///
/// Cloning gives another handle on the same connections. Close it with [`close`](Store::close) when it matters that the
/// file is complete without the write-ahead log beside it; dropping it loses nothing.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
    hands: Hands,
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
        let (access, durability) = (options.access, options.durability);
        let shared = Shared { path, access, durability, codec, payloads, connections, zone, adds };
        Ok(Self { shared: Arc::new(shared), hands: Hands::Thread })
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

    /// Another handle on the same connections. What it writes is carried out by the thread that awaits it, unless another
    /// thread is writing just then or another program holds the database; that saves both ways between two threads. The
    /// thread waits for the disk meanwhile: it should have nothing else to do, so have a runtime of its own
    /// (`current_thread`). Where the database cannot have a write-ahead log, so that a commit waits for those who read, it is
    /// a handle like any other.
    #[must_use]
    pub fn working_here(&self) -> Self {
        let hands = match self.shared.connections.journal {
            Journal::Ahead => Hands::Caller,
            Journal::Behind => Hands::Thread,
        };
        Self { shared: Arc::clone(&self.shared), hands }
    }

    /// Has work done by one who writes, in one transaction with what waits beside it.
    async fn with_others<T, E>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&Session<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + std::error::Error + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work = move |session: &Session<'_>| -> Tell {
            let done = work(session);
            if let (Some(group), Err(error)) = (session.group, &done) {
                group.note(error);
            }
            Box::new(move |kept| {
                let done = done.and_then(|done| kept.map(|()| done).map_err(|undone| storage(doing)(undone).into()));
                // Who does not wait any more needs no answer.
                let _ = answer.send(done);
            })
        };
        let answered = match self.shared.post(durability, work) {
            Ok(()) => self.shared.connections.kept.answer(self.hands, answered).await,
            Err(none) => Err(none),
        };
        answered.unwrap_or_else(|none| Err(storage(doing)(none.into_source()).into()))
    }
}

impl Shared {
    /// Work as a connection does it that shares no transaction.
    fn by_itself<T>(
        self: &Arc<Self>,
        work: impl FnOnce(&Session<'_>) -> T + Send + 'static,
    ) -> impl FnOnce(&Connection) -> T + Send + 'static {
        let shared = Arc::clone(self);
        move |connection| work(&Session { shared: &shared, connection, group: None })
    }

    /// Has work done by the thread that writes, by itself.
    async fn on_writer<T, E>(
        self: &Arc<Self>,
        work: impl FnOnce(&Session<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let done = self.connections.kept.run(self.by_itself(work)).await;
        done.unwrap_or_else(|none| Err(no_answer(none).into()))
    }

    /// Puts work behind all that waits, to be done in one transaction with what waits beside it.
    fn post(
        self: &Arc<Self>,
        durability: Durability,
        work: impl FnOnce(&Session<'_>) -> Tell + Send + 'static,
    ) -> Result<(), NoAnswer> {
        let shared = Arc::clone(self);
        let work = move |connection: &Connection, group: &Group| {
            work(&Session { shared: &shared, connection, group: Some(group) })
        };
        self.connections.kept.put(Work::Shared(Member { durability, work: Box::new(work) }))
    }

    /// Has work done by a thread that only reads.
    async fn on_reader<T, E>(
        self: &Arc<Self>,
        work: impl FnOnce(&Session<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let done = self.connections.readers.run(self.by_itself(work)).await;
        done.unwrap_or_else(|none| Err(no_answer(none).into()))
    }

    /// The results that a row holds, or why they cannot be read.
    fn stored_results(&self, row: &row::Row) -> Stored {
        Stored(self.payloads.results(&row.result_data).map_err(|error| error.to_string()))
    }
}

/// What is said of a call that did not come to the database, or that did not stay in it.
fn no_answer(none: NoAnswer) -> StoreError {
    storage("answer")(none.into_source())
}

/// A connection, in the thread that it belongs to, and what all threads share.
struct Session<'a> {
    shared: &'a Shared,
    connection: &'a Connection,
    /// The transaction that it shares with other calls.
    group: Option<&'a Group>,
}

impl Deref for Session<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        self.shared
    }
}

impl Session<'_> {
    /// Begins to write what must be on the disk before anything is said of it; `doing` completes "the database failed
    /// to ..".
    fn write(&self, doing: &'static str) -> Result<Tx<'_>, StoreError> {
        self.begin(self.durability, doing)
    }

    /// Begins to write what comes again by itself, should a power cut undo it. Nobody waits for the disk then; the next
    /// commit of [`write`](Self::write) takes it along, since the log is written in order.
    fn write_along(&self, doing: &'static str) -> Result<Tx<'_>, StoreError> {
        self.begin(Durability::Normal, doing)
    }

    fn begin(&self, durability: Durability, doing: &'static str) -> Result<Tx<'_>, StoreError> {
        if self.access == Access::ReadOnly {
            return Err(StoreError::ReadOnly(doing));
        }
        if !self.group.is_some_and(Group::has_begun) {
            self.connections.whereabouts.check().map_err(storage(doing))?;
        }
        let begun = match self.group {
            Some(group) => group.begin(self.connection),
            None => Tx::begin(self.connection, durability),
        };
        begun.map_err(storage(doing))
    }

    /// The connection, to read with.
    fn read(&self, doing: &'static str) -> Result<&Connection, StoreError> {
        self.connections.whereabouts.check().map_err(storage(doing))?;
        Ok(self.connection)
    }

    /// One snapshot, for several statements that read.
    fn snapshot(&self, doing: &'static str) -> Result<Tx<'_>, StoreError> {
        Tx::snapshot(self.read(doing)?).map_err(storage(doing))
    }

    fn local(&self, now: Timestamp, connection: &Connection) -> rusqlite::Result<LocalTime> {
        self.zone.at(now, connection)
    }
}

/// A claim on its way to the thread of the connection.
struct OwnedClaim {
    now: Timestamp,
    scope: Scope,
    limit: u32,
    live: Option<LiveWorkers>,
    policy: RetryPolicy,
}

impl From<&Claim<'_>> for OwnedClaim {
    fn from(claim: &Claim<'_>) -> Self {
        let Claim { now, limit, policy, .. } = *claim;
        Self { now, scope: claim.scope.clone(), limit, live: claim.live.cloned(), policy }
    }
}

impl OwnedClaim {
    fn claim(&self) -> Claim<'_> {
        let Self { now, limit, policy, .. } = *self;
        Claim { now, scope: &self.scope, limit, live: self.live.as_ref(), policy }
    }
}

/// Wraps what went wrong in the storage.
fn storage<E: Into<EncodeError>>(doing: &'static str) -> impl Fn(E) -> StoreError + Copy {
    move |source| {
        let source = match source.into().downcast::<rusqlite::Error>() {
            Ok(error) => error::Failure::from(*error).into(),
            Err(other) => other,
        };
        StoreError::Storage { doing, source }
    }
}

impl Store for SqliteStore {
    async fn job_add(&self, now: Timestamp, job: &ValidJob) -> Result<Job, StoreError> {
        add::job_add(&self.shared, now, job, self.shared.durability, self.hands).await
    }

    async fn job_add_to_run(&self, now: Timestamp, job: &ValidJob) -> Result<Job, StoreError> {
        add::job_add(&self.shared, now, job, Durability::Normal, self.hands).await
    }

    async fn job_find(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let id = id.clone();
        self.shared.on_reader(move |session| job::job_find(session, &id)).await
    }

    async fn job_detail(&self, id: &JobId) -> Result<Option<JobDetail>, StoreError> {
        let id = id.clone();
        self.shared.on_reader(move |session| job::job_detail(session, &id)).await
    }

    async fn job_list(&self, filter: &JobFilter) -> Result<JobPage, StoreError> {
        let filter = filter.clone();
        self.shared.on_reader(move |session| list::job_list(session, &filter)).await
    }

    async fn job_cancel(&self, now: Timestamp, id: &JobId) -> Result<Job, StoreError> {
        let id = id.clone();
        self.shared.on_writer(move |session| job::job_cancel(session, now, &id)).await
    }

    async fn job_reschedule(&self, now: Timestamp, id: &JobId, scheduled_for: Timestamp) -> Result<Job, StoreError> {
        let id = id.clone();
        self.shared.on_writer(move |session| job::job_reschedule(session, now, &id, scheduled_for)).await
    }

    async fn job_release_due(&self, now: Timestamp, scope: &Scope, link: Link) -> Result<Released, StoreError> {
        let scope = scope.clone();
        self.with_others("release delayed jobs", Durability::Normal, move |session| {
            pass::job_release_due(session, now, &scope, link)
        })
        .await
    }

    async fn job_expire_due(&self, now: Timestamp, scope: &Scope, overdue: Overdue) -> Result<Vec<Job>, StoreError> {
        let scope = scope.clone();
        self.shared.on_writer(move |session| pass::job_expire_due(session, now, &scope, overdue)).await
    }

    async fn job_claim(&self, claim: Claim<'_>) -> Result<Claimed, StoreError> {
        let claim = OwnedClaim::from(&claim);
        let work = move |session: &Session<'_>| pass::job_claim(session, &claim.claim());
        self.with_others("claim jobs", self.shared.durability, work).await
    }

    async fn job_send_again(
        &self,
        now: Timestamp,
        jobs: Vec<SendAgain>,
        live: Option<&LiveWorkers>,
    ) -> Result<SentAgain, StoreError> {
        let live = live.cloned();
        self.with_others("send jobs again", self.shared.durability, move |session| {
            pass::job_send_again(session, now, jobs, live.as_ref())
        })
        .await
    }

    async fn job_take_polls(
        &self,
        now: Timestamp,
        scope: &Scope,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Poll>, StoreError> {
        let scope = scope.clone();
        self.with_others("choose jobs to ask for", Durability::Normal, move |session| {
            pass::job_take_polls(session, now, &scope, before, limit)
        })
        .await
    }

    async fn job_apply(
        &self,
        now: Timestamp,
        policy: RetryPolicy,
        replies: Vec<Reply>,
    ) -> Result<AppliedReplies, StoreError> {
        let durability = if replies.iter().any(must_last) { self.shared.durability } else { Durability::Normal };
        let work = move |session: &Session<'_>| apply::job_apply(session, now, policy, durability, replies);
        self.with_others("apply replies", durability, work).await
    }

    async fn job_realign(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.shared.on_writer(move |session| pass::job_realign(session, now)).await
    }

    async fn job_recover(&self, now: Timestamp, scope: &Scope) -> Result<Recovered, StoreError> {
        let scope = scope.clone();
        self.shared.on_writer(move |session| pass::job_recover(session, now, &scope)).await
    }

    async fn job_give_up(&self, now: Timestamp, ids: &[JobId], reason: &str) -> Result<Vec<Job>, StoreError> {
        let (ids, reason) = (ids.to_vec(), reason.to_owned());
        self.shared.on_writer(move |session| job::job_give_up(session, now, &ids, &reason)).await
    }

    async fn job_unclaim(&self, _: Timestamp, ids: &[JobId]) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        self.shared.on_writer(move |session| pass::job_unclaim(session, &ids)).await
    }

    async fn answer_add(
        &self,
        now: Timestamp,
        job: &JobId,
        worker: &str,
        answer: &InputAnswer,
    ) -> Result<(), StoreError> {
        let (job, worker, answer) = (job.clone(), worker.to_owned(), answer.clone());
        self.shared.on_writer(move |session| answer::answer_add(session, now, &job, &worker, &answer)).await
    }

    async fn answer_take(&self, scope: &Scope, limit: u32) -> Result<Vec<StoredAnswer>, StoreError> {
        let (asked, scope, limit) = (scope.clone(), scope.clone(), limit as usize);
        // Nearly always there is none, and that costs no write.
        if limit == 0 || !self.shared.on_reader(move |session| answer::any_waits(session, &asked)).await? {
            return Ok(Vec::new());
        }
        self.shared.on_writer(move |session| answer::answer_take(session, &scope, limit)).await
    }

    async fn job_next_due(&self, scope: &Scope) -> Result<NextDue, StoreError> {
        let scope = scope.clone();
        self.shared.on_reader(move |session| pass::job_next_due(session, &scope)).await
    }

    async fn job_unfinished(&self) -> Result<Vec<Job>, StoreError> {
        self.shared.on_reader(list::job_unfinished).await
    }

    async fn event_list(&self, job: &JobId, after: i64, limit: u32) -> Result<Vec<JobEvent>, StoreError> {
        let job = job.clone();
        self.shared.on_reader(move |session| event::event_list(session, &job, after, limit)).await
    }

    async fn stats(&self) -> Result<JobStats, StoreError> {
        self.shared.on_reader(list::stats).await
    }

    async fn change_mark(&self) -> Result<i64, StoreError> {
        const DOING: &str = "look for changes";
        // SQLite counts what other connections committed, so this store's own commits do not show: all that is written is
        // written by this one.
        let version = |session: &Session<'_>| {
            let mut statement = session.read(DOING)?.prepare_cached("PRAGMA data_version").map_err(storage(DOING))?;
            statement.query_one((), |row| row.get(0)).map_err(storage(DOING))
        };
        let looked = self.shared.connections.kept.look(self.hands, self.shared.by_itself(version)).await;
        looked.unwrap_or_else(|none| Err(no_answer(none)))
    }

    async fn close(&self) {
        self.shared.connections.readers.close().await;
        // Last, so that SQLite writes the log into the file.
        self.shared.connections.kept.close().await;
    }
}

#[cfg(test)]
mod tests {
    use norfab_model::{Materialize, ScheduleStore};

    use super::*;

    /// What `PRAGMA synchronous` is within both kinds of transaction, twice each: 1 is NORMAL, 2 is FULL.
    async fn check(durability: Durability, lasting: i64) {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { durability, ..StoreOptions::default() };
        let store = SqliteStore::open(folder.path().join("jobs.db"), &options).await.unwrap();
        for _ in 0..2 {
            let both = |session: &Session<'_>| {
                let lasting = synchronous(session.write("write")?);
                Ok::<_, StoreError>([lasting, synchronous(session.write_along("write")?)])
            };
            assert_eq!(store.shared.on_writer(both).await.unwrap(), [lasting, 1], "{durability:?}");
        }
        let (now, limits) = (Timestamp::EPOCH, norfab_model::Limits::default());
        let claim = Claim::new(now, &Scope::All, 10);
        for (claim, expected) in [(Some(&claim), lasting), (None, 1), (Some(&claim), lasting)] {
            let request = Materialize { now, limits: &limits, budget_left: 10, batch: 10, seen: &[], claim };
            store.schedule_materialize_due(request).await.unwrap();
            let left = |session: &Session<'_>| {
                let found = session.connection.query_one("PRAGMA synchronous", (), |row| row.get::<_, i64>(0));
                found.map_err(storage("look"))
            };
            assert_eq!(store.shared.on_writer(left).await.unwrap(), expected, "{durability:?}");
        }
    }

    fn synchronous(tx: Tx<'_>) -> i64 {
        let found = tx.query_one("PRAGMA synchronous", (), |row| row.get(0)).unwrap();
        tx.commit().unwrap();
        found
    }

    /// SQLite itself ends a transaction that the disk refuses: what follows begins a new one.
    #[tokio::test]
    async fn a_transaction_that_sqlite_has_ended_stops_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("jobs.db"), &StoreOptions::default()).await.unwrap();
        for _ in 0..2 {
            let ended = |session: &Session<'_>| {
                let tx = session.write("write")?;
                tx.execute_batch("ROLLBACK").map_err(storage("write"))?;
                tx.commit().map_err(storage("write"))
            };
            assert!(store.shared.on_writer(ended).await.is_err());
            let dropped = |session: &Session<'_>| session.write("write").map(drop);
            store.shared.on_writer(dropped).await.unwrap();
            let whole = |session: &Session<'_>| session.write("write")?.commit().map_err(storage("write"));
            store.shared.on_writer(whole).await.unwrap();
        }
    }

    #[tokio::test]
    async fn only_what_must_last_waits_for_the_disk() {
        check(Durability::Full, 2).await;
        check(Durability::Normal, 1).await;
    }
}
