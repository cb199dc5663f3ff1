//! The threads that have the connections. What a transaction does is handed over as one piece of work and comes back as one
//! answer: a job that passes through five transactions of six statements changes threads ten times, not sixty, and not at all
//! where the caller carries it out itself.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot, watch};

use super::desk::Desk;
use super::group::{Member, Undone};
use super::log::Log;
use super::whereabouts::Astray;

/// What a thread is to do with its connection.
pub(super) enum Work {
    Alone(Box<dyn FnOnce(&Connection) + Send>),
    /// What only looks, and waits for nobody.
    Look(Box<dyn FnOnce(&Connection) + Send>),
    Shared(Member),
}

impl Work {
    /// The call that may share its transaction.
    pub(super) fn shared(&self) -> Option<&Member> {
        match self {
            Self::Alone(_) | Self::Look(_) => None,
            Self::Shared(member) => Some(member),
        }
    }

    /// Whether it may be that it waits for another program that holds the database, unless it is told not to.
    pub(super) fn may_wait(&self) -> bool {
        matches!(self, Self::Alone(_))
    }
}

/// Why there is no answer to what a thread was to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("it is closed")]
    Closed,
    #[error("the work ended in a panic, which the log tells of, and is undone")]
    Panicked,
    #[error(transparent)]
    NoConnection(#[from] NotStarted),
    #[error(transparent)]
    Undone(#[from] Undone),
}

impl NoAnswer {
    /// What went wrong, as the source of another error.
    pub(super) fn into_source(self) -> Box<dyn std::error::Error + Send + Sync> {
        match self {
            Self::NoConnection(NotStarted::Sqlite(error)) => error.into(),
            Self::NoConnection(NotStarted::Astray(error)) => error.into(),
            other => other.into(),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Astray(#[from] Astray),
    #[error("the system starts no thread for a connection: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the thread of a connection ended while it was opened")]
    Ended,
}

/// Whose hands do what a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hands {
    /// Those of the thread of the connection.
    Thread,
    /// The caller's own, where the connection is free.
    Caller,
}

/// A connection and the thread that it belongs to.
#[derive(Debug)]
pub(super) struct Worker {
    desk: Arc<Desk>,
    /// Its sender goes with the thread.
    ended: watch::Receiver<()>,
}

impl Worker {
    /// Starts a thread that opens a connection. `wait` is how long another program that holds the database is waited for;
    /// one that writes looks after the log.
    pub(super) async fn start(
        wait: Duration,
        log: Option<Log>,
        open: impl FnOnce() -> Result<Connection, NotStarted> + Send + 'static,
    ) -> Result<Self, NotStarted> {
        let desk = Arc::new(Desk::new(wait, log));
        let (tell_opened, opened) = oneshot::channel();
        let (tell_ended, ended) = watch::channel(());
        let served = Arc::clone(&desk);
        std::thread::Builder::new().name("norfab-store".to_owned()).spawn(move || {
            match open() {
                Ok(connection) => {
                    // Who opens may have gone away meanwhile; then nobody has work.
                    let _ = tell_opened.send(Ok(()));
                    served.serve(connection);
                }
                Err(error) => drop(tell_opened.send(Err(error))),
            }
            drop(tell_ended);
        })?;
        let worker = Self { desk, ended };
        opened.await.map_err(|_| NotStarted::Ended)??;
        Ok(worker)
    }

    /// Has work done after all that was handed over before; whoever goes away while it waits does not stop it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (answer, answered) = oneshot::channel();
        self.put(Work::Alone(Box::new(move |connection| drop(answer.send(work(connection))))))?;
        self.answer(Hands::Thread, answered).await
    }

    /// Has something looked at after all that was handed over before.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        hands: Hands,
        look: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let (answer, answered) = oneshot::channel();
        self.put(Work::Look(Box::new(move |connection| drop(answer.send(look(connection))))))?;
        self.answer(hands, answered).await
    }

    /// Puts work behind all that was handed over before. Whoever does so waits for an [answer](Self::answer).
    pub(super) fn put(&self, work: Work) -> Result<(), NoAnswer> {
        self.desk.put(work)
    }

    /// Waits for what comes of work that was handed over.
    pub(super) async fn answer<T>(&self, hands: Hands, mut answered: oneshot::Receiver<T>) -> Result<T, NoAnswer> {
        let caller = Caller(&self.desk);
        if hands == Hands::Caller {
            // Those that are about to ask for something come along.
            tokio::task::yield_now().await;
            let mut told = None;
            self.desk.lend_a_hand(|| {
                told = match answered.try_recv() {
                    Ok(answer) => Some(Ok(answer)),
                    Err(TryRecvError::Closed) => Some(Err(NoAnswer::Panicked)),
                    Err(TryRecvError::Empty) => None,
                };
                told.is_some()
            });
            if let Some(told) = told {
                return told;
            }
        }
        drop(caller);
        answered.await.map_err(|_| NoAnswer::Panicked)
    }

    /// Waits until nobody works with the connection: who told an answer may have it for a moment more.
    #[cfg(test)]
    pub(super) async fn rest(&self) {
        while !self.desk.is_free() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether it takes more work.
    pub(super) fn is_open(&self) -> bool {
        self.desk.is_open()
    }

    /// Closes the connection once all work is done, and waits for that, whoever else closes it.
    pub(super) async fn close(&self) {
        self.desk.close();
        // It ends by having no sender any more.
        while self.ended.clone().changed().await.is_ok() {}
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.desk.close();
    }
}

/// One that waits for work to be done. Should it go away before it has lent a hand, the thread comes to the work.
struct Caller<'a>(&'a Desk);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.0.call();
    }
}

/// Opens a connection that only reads.
type OpenReader = dyn Fn() -> Result<Connection, NotStarted> + Send + Sync;

/// Connections that only read, each with its thread, opened as they are needed.
pub(super) struct Readers {
    open: Arc<OpenReader>,
    /// How long another program that holds the database is waited for.
    wait: Duration,
    idle: Arc<Mutex<Vec<Arc<Worker>>>>,
    /// A place is held until the work is done, also by a caller that has gone away.
    places: Arc<Semaphore>,
    most: u32,
}

impl fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Readers").field("idle", &self.idle).field("places", &self.places).finish()
    }
}

impl Readers {
    /// So many at the most.
    pub(super) fn new(
        most: u32,
        wait: Duration,
        open: impl Fn() -> Result<Connection, NotStarted> + Send + Sync + 'static,
    ) -> Self {
        let places = Arc::new(Semaphore::new(most as usize));
        Self { open: Arc::new(open), wait, idle: Arc::default(), places, most }
    }

    /// Has work done by one of them.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| NoAnswer::Closed)?;
        let worker = self.worker().await?;
        let (idle, returned) = (Arc::clone(&self.idle), Arc::clone(&worker));
        let done = worker.run(move |connection| {
            let done = work(connection);
            locked(&idle).push(returned);
            drop(place);
            done
        });
        done.await
    }

    /// One that rests, or a new one.
    async fn worker(&self) -> Result<Arc<Worker>, NotStarted> {
        let idle = locked(&self.idle).pop();
        if let Some(worker) = idle {
            return Ok(worker);
        }
        let open = Arc::clone(&self.open);
        Worker::start(self.wait, None, move || open()).await.map(Arc::new)
    }

    /// Closes them once their work is done, and waits for that, whoever else closes them.
    pub(super) async fn close(&self) {
        let all = self.places.acquire_many(self.most).await;
        self.places.close();
        drop(all);
        let all = locked(&self.idle).clone();
        for worker in all {
            worker.close().await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work. None after a panic: its transaction is undone on the way out, and who waits learns that there is no answer.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        tracing::error!("Work on the database ended in a panic; it is undone");
    }
    done.ok()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::Poll;

    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    fn open(path: &std::path::Path) -> Result<Connection, NotStarted> {
        Ok(Connection::open(path)?)
    }

    async fn writer(folder: &tempfile::TempDir) -> Worker {
        let path = folder.path().join("some.db");
        let worker = Worker::start(WAIT, None, move || open(&path)).await.unwrap();
        let make = "PRAGMA journal_mode = WAL; CREATE TABLE one (number)";
        worker.run(move |connection| connection.execute_batch(make)).await.unwrap().unwrap();
        worker
    }

    fn readers(folder: &tempfile::TempDir, most: u32) -> Readers {
        let path = folder.path().join("some.db");
        Readers::new(most, WAIT, move || open(&path))
    }

    /// Whether it does not end at once.
    async fn waits<F: Future>(mut future: Pin<&mut F>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }

    fn rows(connection: &Connection) -> i64 {
        connection.query_one("SELECT count(*) FROM one", (), |row| row.get(0)).unwrap()
    }

    #[tokio::test]
    async fn a_panic_undoes_its_work_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let worker = writer(&folder).await;
        let panics = |connection: &Connection| {
            let tx = connection.unchecked_transaction().unwrap();
            tx.execute("INSERT INTO one VALUES (1)", ()).unwrap();
            panic!("it fails");
        };
        assert!(matches!(worker.run::<()>(panics).await, Err(NoAnswer::Panicked)));
        assert_eq!(worker.run(rows).await.unwrap(), 0);
        let readers = readers(&folder, 1);
        assert!(matches!(readers.run::<()>(|_| panic!("it fails")).await, Err(NoAnswer::Panicked)));
        assert_eq!(readers.run(rows).await.unwrap(), 0);
    }

    /// Whoever goes away while a connection works for it leaves it its place; closing waits for it all the same.
    #[tokio::test]
    async fn a_read_that_nobody_awaits_keeps_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (worker, readers) = (writer(&folder).await, Arc::new(readers(&folder, 1)));
        let (begun, has_begun) = oneshot::channel();
        let (go_on, told) = mpsc::channel::<()>();
        let reading = tokio::spawn({
            let readers = Arc::clone(&readers);
            async move {
                let read = readers.run(move |connection| {
                    begun.send(()).unwrap();
                    told.recv().unwrap();
                    rows(connection)
                });
                read.await.map(drop)
            }
        });
        has_begun.await.unwrap();
        reading.abort();
        assert!(reading.await.unwrap_err().is_cancelled());
        assert_eq!(readers.places.available_permits(), 0);

        let closing = async {
            readers.close().await;
            worker.close().await;
        };
        tokio::pin!(closing);
        assert!(waits(closing.as_mut()).await);
        go_on.send(()).unwrap();
        closing.await;
        assert!(!folder.path().join("some.db-wal").exists(), "the log is part of the file");
    }

    #[tokio::test]
    async fn everybody_who_closes_waits_for_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let (worker, readers) = (writer(&folder).await, readers(&folder, 2));
        readers.run(rows).await.unwrap();
        let (go_on, told) = mpsc::channel::<()>();
        worker.put(Work::Alone(Box::new(move |_| told.recv().unwrap()))).unwrap();
        worker.desk.call();
        let all = async { tokio::join!(worker.close(), worker.close(), readers.close(), readers.close()) };
        tokio::pin!(all);
        assert!(waits(all.as_mut()).await);
        go_on.send(()).unwrap();
        all.await;
        worker.close().await;
        assert!(matches!(worker.run(rows).await, Err(NoAnswer::Closed)));
        assert!(matches!(readers.run(rows).await, Err(NoAnswer::Closed)));
    }
}
