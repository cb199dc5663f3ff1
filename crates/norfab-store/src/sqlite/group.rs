//! Calls that wait for the connection that writes at the same time share one transaction, and so one log entry of each page and
//! one wait for the disk. Each is still whole by itself: what one of them undoes is undone for it alone.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

use super::Durability;
use super::desk::Desk;
use super::driver::caught;
use super::error::Failure;
use super::statement::Tx;

/// The most calls of one transaction.
const MOST: usize = 32;
/// So many rows are changed by then that nobody else joins: others wait for the database, and each call for the last.
const MOST_ROWS: u64 = 5_000;

/// A call that may share its transaction.
pub(super) struct Member {
    /// What it needs of the disk.
    pub(super) durability: Durability,
    pub(super) work: Box<Part>,
}

/// What a call does, within a transaction that it may share.
type Part = dyn FnOnce(&Connection, &Group) -> Tell + Send;

/// Tells who waits for a call what came of it, once it is known whether the transaction stays.
pub(super) type Tell = Box<dyn FnOnce(Result<(), Undone>) + Send>;

/// Why what a call did is undone although it went well.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Undone {
    #[error("what was done together could not be committed")]
    Commit(#[source] Arc<Failure>),
    #[error("SQLite undid what was done together, as a part of it failed: {0}")]
    Together(Arc<str>),
}

/// The transaction that several calls share.
pub(super) struct Group {
    durability: Durability,
    size: Size,
    state: Cell<State>,
    /// What failed last in it.
    failure: RefCell<Arc<str>>,
}

/// Whether a call is by itself, and can be undone only with all of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    One,
    Several,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    NotBegun,
    /// It is open, and no call has begun.
    Open,
    Begun,
}

impl Group {
    fn new(durability: Durability, size: Size) -> Self {
        let (state, failure) = (Cell::new(State::NotBegun), RefCell::new("nobody says why".into()));
        Self { durability, size, state, failure }
    }

    /// What is on the disk once the group is committed.
    pub(super) fn durability(&self) -> Durability {
        self.durability
    }

    /// Notes that a call has failed: should SQLite undo all, the others are told this.
    pub(super) fn note(&self, failure: &dyn Error) {
        let mut told = failure.to_string();
        let mut source = failure.source();
        while let Some(error) = source {
            told = format!("{told}: {error}");
            source = error.source();
        }
        *self.failure.borrow_mut() = told.into();
    }

    /// Whether what is committed here is as safe as a call needs it.
    fn serves(&self, durability: Durability) -> bool {
        self.durability == Durability::Full || durability == Durability::Normal
    }

    /// Begins the part of one call.
    pub(super) fn begin<'a>(&self, connection: &'a Connection) -> rusqlite::Result<Tx<'a>> {
        let is_missing = match self.size {
            // It may have one after the other.
            Size::One => connection.is_autocommit(),
            Size::Several => self.state.get() == State::NotBegun,
        };
        if is_missing {
            Tx::open(connection, self.durability)?;
        }
        self.state.set(State::Begun);
        if self.is_lost(connection) {
            // A part of none would be a transaction of its own.
            let aborted = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
            return Err(rusqlite::Error::SqliteFailure(aborted, Some(self.lost().to_string())));
        }
        match self.size {
            Size::One => Ok(Tx::of_open(connection)),
            Size::Several => Tx::within(connection),
        }
    }

    /// Opens the transaction before any call begins. Whether that is kept waiting: another program holds the database. What
    /// else goes wrong, the first call finds too.
    fn is_kept_waiting(&self, connection: &Connection) -> bool {
        let opened = Tx::open(connection, self.durability);
        if opened.is_ok() {
            self.state.set(State::Open);
        }
        opened.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }

    /// Whether another call has begun already.
    pub(super) fn has_begun(&self) -> bool {
        self.size == Size::Several && self.state.get() == State::Begun
    }

    /// Whether SQLite has undone everything, as it does when the disk is full.
    fn is_lost(&self, connection: &Connection) -> bool {
        self.state.get() != State::NotBegun && connection.is_autocommit()
    }

    fn lost(&self) -> Undone {
        Undone::Together(Arc::clone(&self.failure.borrow()))
    }

    fn end(&self, connection: &Connection) -> Result<(), Undone> {
        if self.state.get() == State::NotBegun {
            return Ok(());
        }
        if self.is_lost(connection) {
            return Err(self.lost());
        }
        Tx::close(connection).map_err(|error| Undone::Commit(Arc::new(error.into())))
    }
}

/// Whether a program that holds the database is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Waits,
    None,
}

/// Carries out a call, together with those that have come by its end. Returns it where it would have to wait.
pub(super) fn carry_out(connection: &Connection, first: Member, desk: &Desk, patience: Patience) -> Option<Member> {
    let company = desk.company(MOST - 1);
    let durability = company.map_or(first.durability, |company| company.or(first.durability));
    let group = Group::new(durability, if company.is_some() { Size::Several } else { Size::One });
    if patience == Patience::None && group.is_kept_waiting(connection) {
        return Some(first);
    }
    match group.size {
        Size::One => carry_out_one(connection, first, &group),
        Size::Several => carry_out_several(connection, first, &group, desk),
    }
    None
}

/// Carries out a call by itself.
fn carry_out_one(connection: &Connection, call: Member, group: &Group) {
    let tell = caught(|| (call.work)(connection, group));
    // It may have been opened and not been begun.
    if let Err(error) = Tx::undo_open(connection) {
        tracing::warn!(%error, "Could not undo a transaction");
    }
    if let Some(tell) = tell {
        tell(Ok(()));
    }
}

/// Carries out a call and those beside it.
fn carry_out_several(connection: &Connection, first: Member, group: &Group, desk: &Desk) {
    let rows_before = connection.total_changes();
    let mut tells = Vec::new();
    let mut member = Some(first);
    while let Some(call) = member.take() {
        tells.extend(caught(|| (call.work)(connection, group)));
        let is_small = connection.total_changes().saturating_sub(rows_before) < MOST_ROWS;
        if tells.len() < MOST && is_small && !group.is_lost(connection) {
            member = desk.join(|call| group.serves(call.durability));
        }
    }
    let outcome = group.end(connection);
    // Who came last is the one whom something waits for: the others only hear that they were along.
    for tell in tells.into_iter().rev() {
        tell(outcome.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::super::driver::{Hands, Work, Worker};
    use super::Durability::{Full, Normal};
    use super::*;

    use Does::{Dangle, EndAll, Insert, Panic, Undo};

    /// What a call does, once it is in the transaction.
    #[derive(Debug, Clone, Copy)]
    enum Does {
        Insert(i64),
        /// Inserts, and takes it back.
        Undo,
        /// Ends the whole transaction, as SQLite does when the disk is full.
        EndAll,
        Panic,
        /// Leaves something that no commit accepts.
        Dangle,
    }

    async fn worker(path: &Path) -> Arc<Worker> {
        let path = path.to_owned();
        let worker = Worker::start(Duration::from_secs(5), None, move || Ok(Connection::open(path)?)).await.unwrap();
        let make = "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; CREATE TABLE one (number PRIMARY KEY);
                    CREATE TABLE two (number REFERENCES one (number) DEFERRABLE INITIALLY DEFERRED)";
        worker.run(move |connection| connection.execute_batch(make)).await.unwrap().unwrap();
        Arc::new(worker)
    }

    /// Keeps the thread of the connection busy until it is told to go on.
    async fn hold(worker: &Arc<Worker>) -> mpsc::Sender<()> {
        let ((go_on, wait), (begin, begun)) = (mpsc::channel(), oneshot::channel());
        let worker = Arc::clone(worker);
        tokio::spawn(async move {
            let held = worker.run(move |_| {
                begin.send(()).unwrap();
                wait.recv().unwrap();
            });
            held.await.unwrap();
        });
        begun.await.unwrap();
        go_on
    }

    fn carry_out(does: Does, connection: &Connection, group: &Group) {
        let tx = group.begin(connection).unwrap();
        let done = match does {
            Insert(number) => tx.execute("INSERT INTO one VALUES (?1)", [number]).map(drop),
            Undo => return assert_eq!(tx.execute("INSERT INTO one VALUES (-1)", ()).unwrap(), 1),
            EndAll => return tx.execute_batch("ROLLBACK").unwrap(),
            Panic => panic!("it fails"),
            Dangle => tx.execute("INSERT INTO two VALUES (77)", ()).map(drop),
        };
        done.and_then(|()| tx.commit()).unwrap();
    }

    /// Whether a call had company, and what it is told.
    type Told = (&'static str, Result<(), Undone>);

    fn hand_over(worker: &Worker, (does, durability): (Does, Durability)) -> oneshot::Receiver<Told> {
        let (tell, told) = oneshot::channel();
        let work: Box<Part> = Box::new(move |connection, group| {
            let company = if group.size == Size::Several { "shared" } else { "alone" };
            carry_out(does, connection, group);
            Box::new(move |kept| drop(tell.send((company, kept))))
        });
        worker.put(Work::Shared(Member { durability, work })).unwrap();
        told
    }

    /// What calls that wait at the same time are told, and which rows stay.
    async fn check(calls: &[(Does, Durability)], told: &[&str], rows: &[i64]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let worker = worker(&path).await;
        let go_on = hold(&worker).await;
        let waiting: Vec<_> = calls.iter().map(|call| hand_over(&worker, *call)).collect();
        go_on.send(()).unwrap();
        let mut said = Vec::new();
        for answer in waiting {
            said.push(match answer.await {
                Ok((company, Ok(()))) => company.to_owned(),
                Ok((company, Err(undone))) => format!("{company}, but {undone}"),
                Err(_) => "no answer".to_owned(),
            });
        }
        assert_eq!(said, told, "{calls:?}");
        let found = worker.run(|connection| {
            let mut all = connection.prepare("SELECT number FROM one ORDER BY number")?;
            all.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()
        });
        assert_eq!(found.await.unwrap().unwrap(), rows, "{calls:?}");
    }

    #[tokio::test]
    async fn what_waits_together_is_one_transaction() {
        check(&[(Insert(1), Full)], &["alone"], &[1]).await;
        check(&[(Insert(1), Normal), (Insert(2), Full), (Insert(3), Normal)], &["shared"; 3], &[1, 2, 3]).await;
        let many: Vec<_> = (1..=40).map(|number| (Insert(number), Normal)).collect();
        check(&many, &["shared"; 40], &(1..=40).collect::<Vec<_>>()).await;
    }

    #[tokio::test]
    async fn what_must_last_makes_all_of_it_last() {
        let calls = [(Insert(1), Normal), (Insert(2), Normal), (Insert(3), Full)];
        check(&calls, &["shared"; 3], &[1, 2, 3]).await;
        let group = Group::new(Normal, Size::Several);
        assert!(group.serves(Normal) && !group.serves(Full), "what comes later joins nothing that does not last");
        assert!(Group::new(Full, Size::Several).serves(Normal));
    }

    #[tokio::test]
    async fn what_one_undoes_is_undone_for_it_alone() {
        check(&[(Insert(1), Full), (Undo, Full), (Insert(2), Full)], &["shared"; 3], &[1, 2]).await;
        check(&[(Undo, Full), (Insert(2), Full)], &["shared"; 2], &[2]).await;
        let told = ["shared", "no answer", "shared"];
        check(&[(Insert(1), Full), (Panic, Full), (Insert(2), Full)], &told, &[1, 2]).await;
        check(&[(Panic, Full), (Insert(2), Full)], &["no answer", "shared"], &[2]).await;
    }

    #[tokio::test]
    async fn what_is_not_committed_is_told_to_all() {
        let undone = "shared, but SQLite undid what was done together, as a part of it failed: nobody says why";
        check(&[(Insert(1), Full), (EndAll, Full)], &[undone; 2], &[]).await;
        check(&[(Insert(1), Full), (EndAll, Full), (Insert(2), Full)], &[undone, undone, "alone"], &[2]).await;
        let failed = "shared, but what was done together could not be committed";
        check(&[(Insert(1), Full), (Dangle, Full)], &[failed; 2], &[]).await;
        let later = [(Insert(1), Normal), (Dangle, Normal), (Insert(2), Full), (Insert(3), Full)];
        check(&later, &[failed; 4], &[]).await;
    }

    /// By which thread a call is carried out whose caller lends a hand.
    async fn ask(worker: &Worker, number: i64) -> ThreadId {
        let (tell, told) = oneshot::channel();
        let work: Box<Part> = Box::new(move |connection, group| {
            carry_out(Insert(number), connection, group);
            Box::new(move |kept| drop(tell.send(kept.map(|()| thread::current().id()))))
        });
        worker.put(Work::Shared(Member { durability: Full, work })).unwrap();
        worker.answer(Hands::Caller, told).await.unwrap().unwrap()
    }

    async fn rows(worker: &Worker) -> i64 {
        worker
            .run(|connection| connection.query_one("SELECT count(*) FROM one", (), |row| row.get(0)))
            .await
            .unwrap()
            .unwrap()
    }

    #[tokio::test]
    async fn who_lends_a_hand_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder.path().join("some.db")).await;
        let here = thread::current().id();
        worker.rest().await;
        assert_eq!(ask(&worker, 1).await, here);
        let commits =
            |connection: &Connection| connection.query_one("PRAGMA data_version", (), |row| row.get::<_, i64>(0));
        let other = Connection::open(folder.path().join("some.db")).unwrap();
        let before = commits(&other).unwrap();
        assert_eq!(tokio::join!(ask(&worker, 2), ask(&worker, 3)), (here, here));
        assert_eq!(commits(&other).unwrap(), before + 1, "they share a transaction");
        assert_eq!(rows(&worker).await, 3);
    }

    /// The thread of the connection is at work, or another program holds the database: then nobody but that thread waits.
    #[tokio::test]
    async fn what_cannot_be_done_at_once_is_left_to_the_thread() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder.path().join("some.db")).await;
        let here = thread::current().id();
        let go_on = hold(&worker).await;
        let (by, ()) = tokio::join!(ask(&worker, 1), async { go_on.send(()).unwrap() });
        assert_ne!(by, here);
        let other = Connection::open(folder.path().join("some.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let free = async {
            // The other one has tried by then.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            other.execute_batch("COMMIT").unwrap();
        };
        let (by, ()) = tokio::join!(ask(&worker, 2), free);
        assert_ne!(by, here);
        assert_eq!(rows(&worker).await, 2);
    }

    #[tokio::test]
    async fn who_goes_away_before_it_lends_a_hand_leaves_the_work_to_the_thread() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(&folder.path().join("some.db")).await;
        {
            let asking = ask(&worker, 1);
            tokio::pin!(asking);
            let begun = std::future::poll_fn(|context| std::task::Poll::Ready(asking.as_mut().poll(context))).await;
            assert!(begun.is_pending());
        }
        assert_eq!(rows(&worker).await, 1);
    }
}
