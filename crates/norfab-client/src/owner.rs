//! One process dispatches for a database: it holds a lock on a file beside it for as long as it does.
//!
//! The files lie beside the database itself, not beside a symbolic link to it, so that all its names have one lock. Neither
//! may be a symbolic link: who can put one there could have us lock, or write, a file elsewhere.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use norfab_dispatch::Control;
use norfab_model::{Clock, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ClientError;

/// The right to dispatch for a database. The operating system frees it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    file: File,
    path: PathBuf,
    holder_path: PathBuf,
    holder: Holder,
}

/// Who dispatches for a database at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// Whether it serves all jobs or its own only.
    pub kind: HolderKind,
}

/// How much a holder serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// All jobs, until it is stopped.
    Owner,
    /// Its own jobs, until they have ended.
    Guest,
}

/// Whether a process dispatches for a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatching {
    /// None does.
    Nobody,
    /// One does; what is known of it, which may be nothing yet.
    Somebody(Option<Holder>),
}

/// Looks whether a process dispatches for a database at the moment. Makes no file.
///
/// # Errors
/// [`ClientError::Io`] when the lock cannot be looked at.
pub fn dispatching(database: &Path) -> Result<Dispatching, ClientError> {
    let path = beside(database, "lock");
    let io = |source| ClientError::Io { path: path.clone(), source };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Dispatching::Nobody),
        Err(error) => return Err(io(error)),
    };
    // Shared, so that two who look do not see each other.
    match file.try_lock_shared() {
        Ok(()) => Ok(Dispatching::Nobody),
        Err(TryLockError::WouldBlock) => Ok(Dispatching::Somebody(read_holder(database))),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// Why the lock was not taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process has it.
    Held {
        lock: PathBuf,
        /// What is known of it; it may have taken the lock a moment ago.
        holder: Option<Holder>,
    },
    /// The file cannot be made or locked.
    Io(PathBuf, std::io::Error),
}

impl OwnerLock {
    /// Takes the lock of a database, if nobody has it.
    pub(crate) fn take(database: &Path, kind: HolderKind) -> Result<Self, LockError> {
        let (path, holder_path) = (beside(database, "lock"), beside(database, "owner"));
        let holder = Holder { pid: std::process::id(), kind };
        match lock_in_place(&path) {
            Ok(Some(file)) => {
                write_holder(&holder_path, &holder);
                Ok(Self { file, path, holder_path, holder })
            }
            Ok(None) => Err(LockError::Held { lock: path, holder: read_holder(database) }),
            Err(error) => Err(LockError::Io(path, error)),
        }
    }

    /// Whether its file is still where others look for it. Without it another process could take a lock of its own.
    pub(crate) fn is_in_place(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Takes the lock once more, after its file was removed or replaced. Held: somebody else was faster.
    pub(crate) fn renew(&mut self) -> Result<(), LockError> {
        match lock_in_place(&self.path) {
            Ok(Some(file)) => {
                self.file = file;
                write_holder(&self.holder_path, &self.holder);
                Ok(())
            }
            Ok(None) => Err(LockError::Held { lock: self.path.clone(), holder: None }),
            Err(error) => Err(LockError::Io(self.path.clone(), error)),
        }
    }

    /// Keeps the lock while something runs, and looks whether its file is still there: when another process got hold of a
    /// new one, the dispatcher is told to end.
    pub(crate) async fn guard<C: Clock>(mut self, running: impl Future<Output = ()>, control: &Control, clock: C) {
        let mut running = pin!(running);
        let mut trouble = None;
        loop {
            let next = clock.uptime().saturating_add(LOOK_INTERVAL);
            tokio::select! {
                () = &mut running => return,
                () = clock.sleep_until(Timestamp::MAX, next) => self.look(control, &mut trouble),
            }
        }
    }

    /// Looks once; `trouble` is what was told last.
    fn look(&mut self, control: &Control, trouble: &mut Option<String>) {
        if self.is_in_place() {
            *trouble = None;
            return;
        }
        let path = self.path.clone();
        let file = path.display();
        match self.renew() {
            Ok(()) => tracing::warn!("Made {file} anew, which was removed or replaced; leave it where it is"),
            Err(LockError::Held { .. }) => {
                tracing::error!("Ends: {file} was removed or replaced, and another process dispatches by now");
                control.shutdown();
            }
            Err(LockError::Io(_, error)) => {
                let text = error.to_string();
                if trouble.as_ref() != Some(&text) {
                    tracing::warn!("Cannot lock {file}: {text}");
                    *trouble = Some(text);
                }
            }
        }
    }
}

/// How often an owner looks for the file of its lock.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // Removed while the lock is held, so that it is never another holder's.
        if self.is_in_place() {
            let _ = std::fs::remove_file(&self.holder_path);
        }
        let _ = self.file.unlock();
    }
}

/// How often a file is opened anew that others replace at the same moment.
const ATTEMPTS: usize = 10;

/// Locks the file at this path, which is made if it is missing; None when another has locked it.
fn lock_in_place(path: &Path) -> std::io::Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        let Some(file) = open_in_place(path)? else { continue };
        match file.try_lock() {
            // It may have been removed between the two.
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(std::io::Error::other("it is replaced again and again"))
}

/// Opens the file at this path and no other; a new one is for its owner only, as whoever can open it can lock it. None when
/// it was replaced meanwhile.
fn open_in_place(path: &Path) -> std::io::Result<Option<File>> {
    match new_file(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.map(Some),
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(std::io::Error::other("it is a symbolic link or no plain file; remove it"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = OpenOptions::new().write(true).open(path)?;
    Ok(Some(file).filter(|file| is_at(file, path)))
}

/// Makes a file where there is none, not even a symbolic link.
fn new_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether this very file is at this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(open), Ok(found)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
    (open.dev(), open.ino()) == (found.dev(), found.ino())
}

/// Where the system does not let an open file be removed.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Says who dispatches, in a file of its own, since a locked one cannot be read everywhere. It only informs; the lock
/// decides. It is moved into its place, so that nobody reads half of it and no link is followed.
fn write_holder(path: &Path, holder: &Holder) {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".tmp-{}", holder.pid));
    let temporary = PathBuf::from(temporary);
    // What a process of this number left behind when it was killed.
    let _ = std::fs::remove_file(&temporary);
    let written = new_file(&temporary)
        .and_then(|mut file| file.write_all(&serde_json::to_vec(holder).unwrap_or_default()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        tracing::warn!("Cannot say in {} who dispatches: {error}", path.display());
    }
}

fn read_holder(database: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(beside(database, "owner")).ok()?.take(1000).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// A file beside the database, wherever a symbolic link to it may lie.
fn beside(database: &Path, extension: &str) -> PathBuf {
    let is_link = std::fs::symlink_metadata(database).is_ok_and(|found| found.is_symlink());
    let real = is_link.then(|| std::fs::canonicalize(database).ok()).flatten();
    let mut name = real.as_deref().unwrap_or(database).as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_it_is_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let database = folder.path().join("c.db");
        let guest = OwnerLock::take(&database, HolderKind::Guest).expect("free");
        let Err(LockError::Held { lock, holder }) = OwnerLock::take(&database, HolderKind::Owner) else {
            panic!("taken twice")
        };
        assert_eq!(lock, folder.path().join("c.db.lock"));
        assert_eq!(holder, Some(Holder { pid: std::process::id(), kind: HolderKind::Guest }));
        assert_eq!(dispatching(&database).expect("looks"), Dispatching::Somebody(holder));
        drop(guest);
        assert_eq!(dispatching(&database).expect("looks"), Dispatching::Nobody);
        drop(OwnerLock::take(&database, HolderKind::Owner).expect("free again"));
        assert!(!folder.path().join("c.db.owner").exists());
    }

    #[test]
    fn looking_makes_no_file() {
        let folder = tempfile::tempdir().expect("temporary folder");
        assert_eq!(dispatching(&folder.path().join("c.db")).expect("looks"), Dispatching::Nobody);
        assert_eq!(std::fs::read_dir(folder.path()).expect("reads").count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let Err(LockError::Io(path, _)) = OwnerLock::take(Path::new("none/such/c.db"), HolderKind::Owner) else {
            panic!("taken in a folder that is not there")
        };
        assert_eq!(path, Path::new("none/such/c.db.lock"));
    }

    #[test]
    fn a_file_that_was_removed_is_noticed_and_made_anew() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let database = folder.path().join("c.db");
        let mut first = OwnerLock::take(&database, HolderKind::Owner).expect("free");
        assert!(first.is_in_place());
        std::fs::remove_file(&first.path).expect("removed");
        assert!(!first.is_in_place());
        first.renew().expect("nobody has it");
        assert!(first.is_in_place());
        assert!(matches!(OwnerLock::take(&database, HolderKind::Owner), Err(LockError::Held { .. })));

        std::fs::remove_file(&first.path).expect("removed");
        let second = OwnerLock::take(&database, HolderKind::Owner).expect("nobody has this one");
        assert!(matches!(first.renew(), Err(LockError::Held { .. })), "two holders");
        drop(first);
        assert!(folder.path().join("c.db.owner").exists(), "it is the second one's by now");
        drop(second);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_it_elsewhere() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("temporary folder");
        let (database, elsewhere) = (folder.path().join("c.db"), folder.path().join("precious"));
        symlink(&elsewhere, folder.path().join("c.db.lock")).expect("linked");
        for there in [false, true] {
            let Err(LockError::Io(path, error)) = OwnerLock::take(&database, HolderKind::Owner) else {
                panic!("a link was followed")
            };
            assert_eq!((path, elsewhere.exists()), (folder.path().join("c.db.lock"), there), "{error}");
            assert!(error.to_string().contains("symbolic link"), "{error}");
            std::fs::write(&elsewhere, "precious").expect("written");
        }
        std::fs::remove_file(folder.path().join("c.db.lock")).expect("removed");
        symlink(&elsewhere, folder.path().join("c.db.owner")).expect("linked");
        let lock = OwnerLock::take(&database, HolderKind::Owner).expect("free");
        assert_eq!(std::fs::read_to_string(&elsewhere).expect("there"), "precious");
        for file in ["c.db.lock", "c.db.owner"] {
            let mode = std::fs::symlink_metadata(folder.path().join(file)).expect("there").permissions().mode();
            assert_eq!(mode & 0o7777, 0o600, "{file}");
        }
        drop(lock);
    }

    /// Whatever a database is called, it has one lock.
    #[cfg(unix)]
    #[test]
    fn a_link_to_a_database_has_the_lock_of_the_database() {
        let (folder, other) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
        let (database, link) = (folder.path().join("c.db"), other.path().join("link.db"));
        std::fs::write(&database, "").expect("written");
        std::os::unix::fs::symlink(&database, &link).expect("linked");
        let lock = OwnerLock::take(&link, HolderKind::Owner).expect("free");
        assert!(matches!(OwnerLock::take(&database, HolderKind::Owner), Err(LockError::Held { .. })));
        drop(lock);
        assert_eq!(std::fs::read_dir(other.path()).expect("reads").count(), 1);
    }
}
