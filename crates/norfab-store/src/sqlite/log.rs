//! How long the write-ahead log may become, and who writes it back to the file. To copy thousands of pages and to wait for
//! the disk takes longer than many commits, so it is done beside them, by a connection of its own; what was committed
//! meanwhile, a few pages, is written back by whoever writes. Then nothing of the log is needed any more, and the next
//! commit begins it anew.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use tracing::warn;

use super::driver::NotStarted;

/// So many pages in the log are written back: 16 MiB. Most commits change the same pages of the indexes again, which are
/// written back once; with the thousand pages that SQLite takes by itself, four times.
pub(super) const LONG: c_int = 4_000;
/// With so many times as much in the log, whoever writes waits for it: what writes it back beside them does not keep up.
const TOO_LONG: c_int = 4;

thread_local! {
    /// How many pages the log had after the last commit of this thread that nobody has looked at yet.
    static PAGES: Cell<Option<c_int>> = const { Cell::new(None) };
}

/// Has a connection tell how long the log is, instead of writing it back within a commit.
pub(super) fn watch(connection: &Connection) {
    connection.wal_hook(Some(note));
}

#[expect(clippy::unnecessary_wraps, reason = "what SQLite calls may fail")]
fn note(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    PAGES.set(Some(pages));
    Ok(())
}

/// Opens a connection that writes.
type Open = dyn Fn() -> Result<Connection, NotStarted> + Send + Sync;

/// The log of a connection that writes.
pub(super) struct Log {
    open: Arc<Open>,
    length: Arc<Mutex<Length>>,
    /// What writes it back, or has done so.
    beside: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Log").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Log {
    /// One that is written back when it has `long` pages, by connections that are opened like this.
    pub(super) fn new(long: c_int, open: impl Fn() -> Result<Connection, NotStarted> + Send + Sync + 'static) -> Self {
        let length = Length { long, seen: 0, next: long, back: Back::Not };
        Self { open: Arc::new(open), length: Arc::new(Mutex::new(length)), beside: Mutex::default() }
    }

    /// Looks at the log after work with its connection.
    pub(super) fn look_after(&self, connection: &Connection) {
        let Some(pages) = PAGES.take() else { return };
        let step = locked(&self.length).step(pages);
        match step {
            Step::None => {}
            Step::Beside => self.begin(),
            // As when SQLite does it within a commit, it comes up again should it fail.
            Step::Here => drop(write_back(connection)),
        }
    }

    /// Begins to write the log back.
    fn begin(&self) {
        let (open, length) = (Arc::clone(&self.open), Arc::clone(&self.length));
        let begun = Builder::new().name("norfab-log".to_owned()).spawn(move || {
            let done = open().and_then(|connection| Ok(write_back(&connection)?));
            if let Err(error) = done {
                warn!(%error, "Could not write the log of the database back to its file; it is tried again");
            }
            locked(&length).back = Back::Almost;
        });
        match begun {
            Ok(thread) => *locked(&self.beside) = Some(thread),
            // Whoever writes does it alone.
            Err(_) => locked(&self.length).back = Back::Almost,
        }
    }

    /// Waits for the end of what writes it back.
    pub(super) fn wait(&self) {
        let thread = locked(&self.beside).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            warn!("What writes the log of the database back to its file ended in a panic");
        }
    }
}

/// Writes back what is in the log, without waiting for anybody who reads or writes.
fn write_back(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_one("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of its length.
#[derive(Debug)]
struct Length {
    long: c_int,
    /// After the last commit.
    seen: c_int,
    /// How long it is when it is written back next. Somebody who reads what it was before keeps it from beginning anew.
    next: c_int,
    back: Back,
}

/// Whether it is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    Not,
    /// Beside those who write.
    UnderWay,
    /// But for what was committed meanwhile.
    Almost,
}

/// What is to be done after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    None,
    /// To write it back beside those who write.
    Beside,
    /// To write it back before anything else is written.
    Here,
}

impl Length {
    fn step(&mut self, pages: c_int) -> Step {
        if pages < self.seen {
            self.next = self.long;
        }
        self.seen = pages;
        let over = pages.saturating_sub(self.next);
        match self.back {
            Back::Not if over >= 0 => {
                self.back = Back::UnderWay;
                Step::Beside
            }
            Back::UnderWay if over >= self.long.saturating_mul(TOO_LONG - 1) => {
                self.next = pages;
                Step::Here
            }
            Back::Almost => {
                self.back = Back::Not;
                if over < 0 {
                    return Step::None;
                }
                self.next = pages.saturating_add(self.long);
                Step::Here
            }
            Back::Not | Back::UnderWay => Step::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long the log is after each commit, and what is to be done; between those, it has been written back beside them.
    fn check(commits: &[&[(c_int, Step)]]) {
        let mut length = Length { long: 100, seen: 0, next: 100, back: Back::Not };
        for part in commits {
            for (pages, step) in *part {
                assert_eq!(length.step(*pages), *step, "{pages} pages: {length:?}");
            }
            length.back = Back::Almost;
        }
    }

    #[test]
    fn who_writes_writes_back_what_was_committed_meanwhile() {
        use Step::{Beside, Here, None};
        check(&[&[(50, None), (99, None), (120, Beside), (130, None)], &[(140, Here), (10, None), (100, Beside)]]);
        // Nothing was committed meanwhile: the log has begun anew.
        check(&[&[(120, Beside)], &[(10, None), (90, None), (110, Beside)]]);
    }

    #[test]
    fn what_reads_an_old_state_has_it_tried_no_more_often() {
        use Step::{Beside, Here, None};
        check(&[
            &[(120, Beside)],
            &[(140, Here), (150, None), (239, None), (240, Beside)],
            &[(250, Here), (349, None)],
        ]);
    }

    #[test]
    fn who_writes_waits_when_it_is_too_long() {
        use Step::{Beside, Here, None};
        check(&[&[(100, Beside), (399, None), (400, Here), (410, None), (699, None), (700, Here), (10, None)]]);
    }

    fn of(path: &std::path::Path) -> (Connection, Log) {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE one (number)").unwrap();
        watch(&connection);
        let path = path.to_owned();
        (connection, Log::new(20, move || Ok(Connection::open(&path)?)))
    }

    fn write(connection: &Connection, log: &Log) {
        connection.execute("INSERT INTO one VALUES (zeroblob(9000))", ()).unwrap();
        log.look_after(connection);
    }

    #[test]
    fn the_log_begins_anew_while_work_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let (connection, log) = of(&path);
        let length = |name| std::fs::metadata(folder.path().join(name)).unwrap().len();
        for _ in 0..200 {
            write(&connection, &log);
            log.wait();
        }
        assert!(length("some.db-wal") < 40 * 4096, "{}", length("some.db-wal"));
        assert!(length("some.db") > 200 * 9000 - 40 * 4096, "{}", length("some.db"));
        drop(connection);
        assert!(!folder.path().join("some.db-wal").exists());
    }

    /// A connection that cannot be opened is no reason to let the log grow.
    #[test]
    fn who_writes_does_it_when_nobody_else_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let (connection, mut log) = of(&path);
        log.open = Arc::new(|| Err(NotStarted::Ended));
        for _ in 0..200 {
            write(&connection, &log);
            log.wait();
        }
        assert!(std::fs::metadata(folder.path().join("some.db-wal")).unwrap().len() < 40 * 4096);
    }
}
