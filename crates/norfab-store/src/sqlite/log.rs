//! How long the write-ahead log may become, and who writes it back to the file. To copy thousands of pages and to wait for
//! the disk takes longer than many commits, so it is done beside them, by a connection of its own; what was committed
//! meanwhile, if it is little, is written back by whoever writes. Then the next commit begins the log anew, unless somebody
//! still reads an old state.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use tracing::warn;

use super::driver::{NotStarted, caught};

/// So many pages in the log are written back: 16 MiB. Most commits change the same pages of the indexes again, which are
/// written back once; with the thousand pages that SQLite takes by itself, four times.
pub(super) const LONG: c_int = 4_000;
/// With so many times as much, whoever writes waits for it: what is beside them does not keep up.
const TOO_LONG: c_int = 3;
/// Such a part of it is little.
const LITTLE: c_int = 8;
/// When it is longer by such a part, it is tried again to write it back.
const AGAIN: c_int = 16;
/// So often it is written back beside those who write, at the most. They commit meanwhile, and SQLite waits for the disk, so
/// that they need not, only where nothing more has come by the end.
const PASSES: usize = 8;

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
    shared: Arc<Shared>,
    /// What writes it back, or has done so.
    beside: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    /// Where the database is.
    path: PathBuf,
    open: Box<Open>,
    length: Mutex<Length>,
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Log").field("length", &self.shared.length).finish_non_exhaustive()
    }
}

impl Log {
    /// One that is written back when it has `long` pages, by connections that are opened like this.
    pub(super) fn new(
        path: &Path,
        long: c_int,
        open: impl Fn() -> Result<Connection, NotStarted> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared { path: path.to_owned(), open: Box::new(open), length: Mutex::new(Length::new(long)) };
        Self { shared: Arc::new(shared), beside: Mutex::default() }
    }

    /// Does work with its connection, and looks at the log after it.
    pub(super) fn look_after<T>(&self, connection: &Connection, work: impl FnOnce() -> T) -> T {
        // Of a commit whose work ended in a panic, maybe of another database.
        PAGES.set(None);
        let done = work();
        if let Some(pages) = PAGES.take() {
            let step = locked(&self.shared.length).step(pages);
            match step {
                Step::None => {}
                Step::Beside => self.begin(),
                Step::Here => self.shared.write_back_here(connection),
                Step::Wait => {
                    self.wait();
                    self.shared.write_back_here(connection);
                }
            }
        }
        done
    }

    /// Begins to write the log back.
    fn begin(&self) {
        let shared = Arc::clone(&self.shared);
        let begun = Builder::new().name("norfab-log".to_owned()).spawn(move || {
            let written = caught(|| shared.write_back()).flatten();
            locked(&shared.length).was_beside(written);
        });
        match begun {
            Ok(thread) => *locked(&self.beside) = Some(thread),
            Err(error) => {
                self.shared.tell(&error);
                locked(&self.shared.length).was_beside(None);
            }
        }
    }

    /// Waits for the end of what writes it back.
    pub(super) fn wait(&self) {
        let thread = locked(&self.beside).take();
        // It ends in no panic; see there.
        drop(thread.map(JoinHandle::join));
    }
}

impl Shared {
    /// Writes the log back beside those who write, until there is nothing more; returns how many of its pages are written
    /// back. None where that failed.
    fn write_back(&self) -> Option<c_int> {
        let connection = (self.open)().inspect_err(|error| self.tell(error)).ok()?;
        let mut written = self.once(&connection)?;
        for _ in 1..PASSES {
            let before = written;
            written = self.once(&connection)?;
            if written <= before {
                break;
            }
        }
        Some(written)
    }

    /// Writes back what is left of the log.
    fn write_back_here(&self, connection: &Connection) {
        let written = self.once(connection);
        locked(&self.length).was_here(written);
    }

    fn once(&self, connection: &Connection) -> Option<c_int> {
        write_back(connection).inspect_err(|error| self.tell(error)).ok()
    }

    fn tell(&self, error: &dyn Display) {
        let database = self.path.display();
        warn!(%database, %error, "Could not write the log of the database back to its file; it is tried again");
    }
}

/// Writes back what is in the log, without waiting for anybody who reads or writes; returns how many of its pages are written
/// back, -1 where another connection is at it.
fn write_back(connection: &Connection) -> rusqlite::Result<c_int> {
    connection.query_one("PRAGMA wal_checkpoint(PASSIVE)", (), |row| row.get(2))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of its length, in pages.
#[derive(Debug)]
struct Length {
    long: c_int,
    /// After the last commit.
    seen: c_int,
    /// What is written back of it.
    written: c_int,
    /// With so many it is written back next.
    next: c_int,
    who: Who,
    /// It has begun anew since somebody else began to write it back.
    is_another: bool,
}

/// Who writes it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Nobody just now.
    Nobody,
    /// Somebody beside those who write.
    Other,
    /// Whoever writes, since nobody else can.
    Writer,
}

/// What is to be done after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    None,
    /// To write it back beside those who write.
    Beside,
    /// To write it back before anything else is written.
    Here,
    /// To wait until it is written back, and to write back what is left.
    Wait,
}

impl Length {
    fn new(long: c_int) -> Self {
        Self { long, seen: 0, written: 0, next: long, who: Who::Nobody, is_another: false }
    }

    /// It has so many pages after a commit.
    fn step(&mut self, pages: c_int) -> Step {
        // After the end of what was written back, it may be another one that is as long.
        let is_little = self.written < self.seen && pages.saturating_sub(self.written) <= self.long / LITTLE;
        if pages < self.seen {
            self.is_another = true;
            self.written = 0;
            self.next = self.long;
        }
        self.seen = pages;
        let is_too_long = pages >= self.long.saturating_mul(TOO_LONG);
        let is_due = pages >= self.next;
        match self.who {
            Who::Other if is_too_long => Step::Wait,
            Who::Nobody if is_due && !is_little && !is_too_long => {
                self.who = Who::Other;
                self.is_another = false;
                Step::Beside
            }
            Who::Nobody | Who::Writer if is_due => Step::Here,
            _ => Step::None,
        }
    }

    /// It was written back beside those who write, if it could be.
    fn was_beside(&mut self, written: Option<c_int>) {
        self.who = if written.is_some() { Who::Nobody } else { Who::Writer };
        if let Some(written) = written.filter(|_| !self.is_another) {
            if written <= self.written {
                self.pause();
            }
            self.written = self.written.max(written);
        }
    }

    /// It was written back by whoever writes.
    fn was_here(&mut self, written: Option<c_int>) {
        self.who = Who::Nobody;
        self.pause();
        self.written = self.written.max(written.unwrap_or_default());
    }

    /// Should the next commit not begin it anew: somebody reads an old state, or writes it back elsewhere, or it could not be
    /// written back.
    fn pause(&mut self) {
        // SQLite may look at all of it to find out that it may write nothing.
        self.next = self.seen.saturating_add(self.seen.max(self.long) / AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Sender};
    use std::time::Duration;

    use tempfile::TempDir;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::super::driver::Worker;
    use super::*;

    use Does::{Beside, Commit, Fails, Here};

    /// What happens to a log that is long with 160 pages.
    #[derive(Debug, Clone, Copy)]
    enum Does {
        /// It has so many pages after a commit, and this is to be done.
        Commit(c_int, Step),
        /// So many pages are written back beside, or by whoever writes.
        Beside(c_int),
        Here(c_int),
        /// It cannot be written back beside.
        Fails,
    }

    fn check(all: &[Does]) {
        let mut length = Length::new(160);
        for does in all {
            match *does {
                Commit(pages, step) => assert_eq!(length.step(pages), step, "{pages} of {all:?}: {length:?}"),
                Beside(written) => length.was_beside(Some(written)),
                Here(written) => length.was_here(Some(written)),
                Fails => length.was_beside(None),
            }
        }
    }

    #[test]
    fn who_writes_writes_back_the_little_that_came_meanwhile() {
        let begin = [Commit(100, Step::None), Commit(170, Step::Beside), Commit(180, Step::None), Beside(175)];
        check(
            &[&begin[..], &[Commit(190, Step::Here), Here(190), Commit(10, Step::None), Commit(160, Step::Beside)]]
                .concat(),
        );
        // Nothing came meanwhile.
        check(&[&begin[..], &[Commit(10, Step::None), Commit(159, Step::None), Commit(161, Step::Beside)]].concat());
        // It has begun anew before it was told that it is written back.
        check(&[Commit(170, Step::Beside), Commit(10, Step::None), Beside(170), Commit(159, Step::None)]);
    }

    #[test]
    fn what_came_meanwhile_is_written_back_beside_if_it_is_much() {
        check(&[
            Commit(200, Step::Beside),
            Commit(300, Step::None),
            Beside(200),
            Commit(320, Step::Beside),
            Beside(320),
        ]);
    }

    /// Else whoever writes would write back all of one that has begun anew with as many pages.
    #[test]
    fn what_may_be_another_log_is_not_taken_for_little() {
        check(&[Commit(170, Step::Beside), Beside(170), Commit(175, Step::Beside)]);
    }

    #[test]
    fn while_somebody_reads_an_old_state_it_is_tried_seldom() {
        let kept =
            [Commit(170, Step::Beside), Beside(160), Commit(175, Step::Here), Here(160), Commit(184, Step::None)];
        let tried = [Commit(185, Step::Beside), Beside(160), Commit(195, Step::None), Commit(196, Step::Beside)];
        check(&[&kept[..], &tried[..]].concat());
        // Somebody else writes it back.
        check(&[Commit(170, Step::Beside), Beside(-1), Commit(179, Step::None), Commit(180, Step::Beside)]);
    }

    #[test]
    fn who_writes_waits_when_it_is_too_long() {
        check(&[Commit(160, Step::Beside), Commit(479, Step::None), Commit(480, Step::Wait), Beside(160), Here(480)]);
        // It was written back all the time, and something came meanwhile all the time.
        check(&[Commit(400, Step::Beside), Commit(450, Step::None), Beside(400), Commit(700, Step::Here), Here(700)]);
        check(&[Commit(160, Step::Beside), Fails, Commit(161, Step::Here), Here(161), Commit(5, Step::None)]);
        check(&[Commit(160, Step::Beside), Fails, Commit(161, Step::Here), Here(0), Commit(171, Step::Beside)]);
    }

    const WAIT: Duration = Duration::from_secs(5);

    /// A database whose log is long with twenty pages, and is written back beside only when that is let go.
    struct Held {
        folder: TempDir,
        worker: Worker,
        /// Somebody is about to write it back; they go on once this is dropped. Without it, nobody waits.
        begun: Option<UnboundedReceiver<Sender<()>>>,
    }

    impl Held {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("some.db");
            let (tell, begun) = unbounded_channel();
            let file = path.clone();
            let log = Log::new(&path, 20, move || {
                let connection = Connection::open(&file)?;
                let (go_on, wait) = mpsc::channel();
                if tell.send(go_on).is_ok() {
                    wait.recv().unwrap_err();
                }
                Ok(connection)
            });
            let open = move || {
                let connection = Connection::open(path)?;
                connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE one (bytes)")?;
                watch(&connection);
                Ok(connection)
            };
            let worker = Worker::start(WAIT, Some(log), open).await.unwrap();
            Self { folder, worker, begun: Some(begun) }
        }

        /// Writes until somebody is about to write the log back.
        async fn begun(&mut self) -> Sender<()> {
            let mut begun = self.begun.take().unwrap();
            let go_on = loop {
                tokio::select! {
                    biased;
                    go_on = begun.recv() => break go_on.unwrap(),
                    // It may have to wait for them.
                    () = self.write(1) => {}
                }
            };
            self.begun = Some(begun);
            go_on
        }

        /// Writes some four pages, so often.
        async fn write(&self, times: u32) {
            for _ in 0..times {
                let insert = "INSERT INTO one VALUES (zeroblob(9000))";
                self.worker.run(move |connection| connection.execute(insert, ())).await.unwrap().unwrap();
            }
        }

        fn log(&self) -> PathBuf {
            self.folder.path().join("some.db-wal")
        }

        /// How many pages the log has had at most: the file does not shrink.
        fn most(&self) -> u64 {
            std::fs::metadata(self.log()).unwrap().len() / 4120
        }
    }

    /// Time for others to do something.
    async fn a_moment() {
        for _ in 0..2000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_log_begins_anew_while_work_goes_on() {
        let mut held = Held::new().await;
        for _ in 0..30 {
            let go_on = held.begun().await;
            tokio::join!(held.write(2), async { drop(go_on) });
        }
        assert!(held.most() < 100, "{}", held.most());
    }

    #[tokio::test]
    async fn who_writes_waits_for_a_log_that_is_too_long() {
        let mut held = Held::new().await;
        let go_on = held.begun().await;
        held.begun = None;
        let let_go = async {
            while held.most() < 60 {
                tokio::task::yield_now().await;
            }
            a_moment().await;
            assert!(held.most() < 66, "{} while it is written back", held.most());
            drop(go_on);
        };
        tokio::join!(held.write(40), let_go);
        assert!(held.most() < 120, "{}", held.most());
    }

    #[tokio::test]
    async fn a_reader_that_stays_holds_the_log_until_it_goes() {
        let mut held = Held::new().await;
        held.begun = None;
        held.write(1).await;
        let reader = Connection::open(held.folder.path().join("some.db")).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM one").unwrap();
        held.write(50).await;
        let most = held.most();
        assert!(most > 150, "{most}");
        reader.execute_batch("COMMIT").unwrap();
        held.write(200).await;
        assert!(held.most() < most + 100, "{} after {most}", held.most());
    }

    /// Else its connection would be the last one, and the log would stay behind.
    #[tokio::test]
    async fn who_closes_waits_for_what_writes_it_back() {
        let mut held = Held::new().await;
        let go_on = held.begun().await;
        let is_let_go = Cell::new(false);
        let closing = async {
            held.worker.close().await;
            assert!(is_let_go.get());
        };
        let let_go = async {
            a_moment().await;
            is_let_go.set(true);
            drop(go_on);
        };
        tokio::join!(closing, let_go);
        assert!(!held.log().exists());
    }

    /// A connection that cannot be opened, or a panic, is no reason to let the log grow.
    #[tokio::test]
    async fn who_writes_does_it_when_nobody_else_can() {
        for panics in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("some.db");
            let log = Log::new(&path, 20, move || if panics { panic!("it fails") } else { Err(NotStarted::Ended) });
            let connection = Connection::open(&path).unwrap();
            connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE one (bytes)").unwrap();
            watch(&connection);
            for _ in 0..100 {
                let write = || connection.execute("INSERT INTO one VALUES (zeroblob(9000))", ()).unwrap();
                assert_eq!(log.look_after(&connection, write), 1);
                log.wait();
            }
            let most = std::fs::metadata(folder.path().join("some.db-wal")).unwrap().len() / 4120;
            assert!(most < 40, "{most}");
        }
    }
}
