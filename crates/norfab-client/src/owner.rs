//! One process dispatches for a database: it holds a lock on a file beside it for as long as it does.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ClientError;

/// The right to dispatch for a database. The operating system frees it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    file: File,
    holder_path: PathBuf,
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
        let path = beside(database, "lock");
        let io = |error| LockError::Io(path.clone(), error);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { lock: path, holder: read_holder(database) });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        // A file of its own, since a locked one cannot be read everywhere. It only informs; the lock decides.
        let holder_path = beside(database, "owner");
        let holder = Holder { pid: std::process::id(), kind };
        if let Err(error) = std::fs::write(&holder_path, serde_json::to_vec(&holder).unwrap_or_default()) {
            tracing::warn!("Cannot say in {} who dispatches: {error}", holder_path.display());
        }
        Ok(Self { file, holder_path })
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // Removed while the lock is held, so that it is never another holder's.
        let _ = std::fs::remove_file(&self.holder_path);
        let _ = self.file.unlock();
    }
}

fn read_holder(database: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(beside(database, "owner")).ok()?.take(1000).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn beside(database: &Path, extension: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
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
}
