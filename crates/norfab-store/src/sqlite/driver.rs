//! The threads that have the connections. What a transaction does is handed to the thread as one piece of work and comes back
//! as one answer: a job that passes through five transactions of six statements changes threads ten times, not sixty.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

/// What a thread is to do with its connection.
type Work = Box<dyn FnOnce(&Connection) + Send>;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a thread gives no answer.
#[derive(Debug, thiserror::Error)]
#[error("it is closed")]
pub(super) struct Closed;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("the system starts no thread for a connection: {0}")]
    Thread(#[from] std::io::Error),
    #[error("the thread of a connection ended while it was opened")]
    Ended,
}

/// A connection and the thread that it belongs to.
#[derive(Debug)]
pub(super) struct Worker {
    work: Mutex<Option<mpsc::Sender<Work>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Worker {
    /// Starts a thread that opens a connection.
    pub(super) async fn start(
        open: impl FnOnce() -> rusqlite::Result<Connection> + Send + 'static,
    ) -> Result<Self, NotStarted> {
        let (work, waiting) = mpsc::channel::<Work>();
        let (tell_opened, opened) = oneshot::channel();
        let (tell_ended, ended) = oneshot::channel();
        std::thread::Builder::new().name("norfab-store".to_owned()).spawn(move || {
            match open() {
                Ok(connection) => {
                    // Who opens may have gone away meanwhile; then nobody has work.
                    let _ = tell_opened.send(Ok(()));
                    serve(&connection, &waiting);
                }
                Err(error) => drop(tell_opened.send(Err(error))),
            }
            drop(tell_ended);
        })?;
        opened.await.map_err(|_| NotStarted::Ended)??;
        Ok(Self { work: Mutex::new(Some(work)), ended: Mutex::new(Some(ended)) })
    }

    /// Has work done after all that was handed over before; whoever goes away while it waits does not stop it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, Closed> {
        let (answer, answered) = oneshot::channel();
        self.post(move |connection| drop(answer.send(work(connection))))?;
        answered.await.map_err(|_| Closed)
    }

    /// Has work done of which nobody awaits the end.
    pub(super) fn post(&self, work: impl FnOnce(&Connection) + Send + 'static) -> Result<(), Closed> {
        let sender = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().and_then(|sender| sender.send(Box::new(work)).ok()).ok_or(Closed)
    }

    /// Closes the connection once all work is done, and waits for that.
    pub(super) async fn close(&self) {
        drop(self.work.lock().unwrap_or_else(PoisonError::into_inner).take());
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // It ends by being dropped.
            let _ = ended.await;
        }
    }
}

/// Opens a connection that only reads.
type OpenReader = Box<dyn Fn() -> rusqlite::Result<Connection> + Send + Sync>;

/// Connections that only read, each with its thread, opened as they are needed.
pub(super) struct Readers {
    open: Arc<OpenReader>,
    idle: Mutex<Vec<Worker>>,
    places: Semaphore,
    most: u32,
}

impl fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Readers").field("idle", &self.idle).field("places", &self.places).finish()
    }
}

impl Readers {
    /// So many at the most.
    pub(super) fn new(most: u32, open: impl Fn() -> rusqlite::Result<Connection> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(Box::new(open)), idle: Mutex::default(), places: Semaphore::new(most as usize), most }
    }

    /// Has work done by one of them.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, BoxError> {
        let _place = self.places.acquire().await.map_err(|_| Closed)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let worker = match idle {
            Some(worker) => worker,
            None => {
                let open = Arc::clone(&self.open);
                Worker::start(move || open()).await.map_err(|error| match error {
                    NotStarted::Sqlite(error) => BoxError::from(error),
                    other => other.into(),
                })?
            }
        };
        let done = worker.run(work).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        Ok(done)
    }

    /// Whether they have been closed.
    pub(super) fn is_closed(&self) -> bool {
        self.places.is_closed()
    }

    /// Closes them once their work is done.
    pub(super) async fn close(&self) {
        let all = self.places.acquire_many(self.most).await;
        self.places.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in idle {
            worker.close().await;
        }
    }
}

fn serve(connection: &Connection, waiting: &mpsc::Receiver<Work>) {
    while let Ok(work) = waiting.recv() {
        // A transaction is rolled back on its way out; who waits learns that there is no answer.
        if catch_unwind(AssertUnwindSafe(|| work(connection))).is_err() {
            tracing::error!("Work on the database ended in a panic; it is undone");
        }
    }
}
