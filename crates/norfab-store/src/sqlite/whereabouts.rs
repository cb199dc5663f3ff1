//! Whether the files of an open database are still where others look for them. A file that was removed or replaced can be
//! read and written for as long as it is open, and nobody but this process would ever see it.

use std::path::{Path, PathBuf};

/// Where a database was opened, and which file that was.
#[derive(Debug)]
pub(super) struct Whereabouts {
    path: PathBuf,
    file: Option<Identity>,
    /// The write-ahead log, where there is one: it stays as long as anybody has the database open.
    log: Option<PathBuf>,
}

/// What tells a file from another one in its place.
type Identity = (u64, u64);

/// What is wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Astray {
    #[error("{} was removed or moved away while it is open; put it back, or stop this process", .0.display())]
    Removed(PathBuf),
    #[error("{} was replaced by another file while it is open; stop this process and start it again", .0.display())]
    Replaced(PathBuf),
}

impl Whereabouts {
    /// Notes the files of a database that was just opened.
    pub(super) fn of(path: &Path) -> Self {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = Some(PathBuf::from(log)).filter(|log| log.exists());
        Self { path: path.to_owned(), file: identity(path).ok().flatten(), log }
    }

    /// Looks whether they are there. What cannot be looked at is SQLite's to complain of.
    pub(super) fn check(&self) -> Result<(), Astray> {
        match identity(&self.path) {
            Ok(found) if found == self.file => {}
            Ok(_) => return Err(Astray::Replaced(self.path.clone())),
            Err(error) if is_gone(&error) => return Err(Astray::Removed(self.path.clone())),
            Err(_) => {}
        }
        match self.log.as_deref().map(std::fs::metadata) {
            Some(Err(error)) if is_gone(&error) => Err(Astray::Removed(self.log.clone().unwrap_or_default())),
            _ => Ok(()),
        }
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<Option<Identity>> {
    use std::os::unix::fs::MetadataExt;
    // A link to the database is followed, as SQLite does.
    std::fs::metadata(path).map(|found| Some((found.dev(), found.ino())))
}

/// Where the system does not let an open file be replaced.
#[cfg(not(unix))]
fn identity(path: &Path) -> std::io::Result<Option<Identity>> {
    std::fs::metadata(path).map(|_| None)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_removed_or_replaced_is_told_and_what_is_put_back_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let [database, log, away] = ["jobs.db", "jobs.db-wal", "away"].map(|name| folder.path().join(name));
        fs::write(&database, "one").unwrap();
        fs::write(&log, "").unwrap();
        let whereabouts = Whereabouts::of(&database);
        whereabouts.check().unwrap();

        fs::rename(&database, &away).unwrap();
        assert!(matches!(whereabouts.check(), Err(Astray::Removed(path)) if path == database));
        fs::write(&database, "two").unwrap();
        assert!(matches!(whereabouts.check(), Err(Astray::Replaced(path)) if path == database));
        fs::rename(&away, &database).unwrap();
        whereabouts.check().unwrap();

        fs::remove_file(&log).unwrap();
        assert!(matches!(whereabouts.check(), Err(Astray::Removed(path)) if path == log));
        fs::write(&log, "").unwrap();
        whereabouts.check().unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(matches!(whereabouts.check(), Err(Astray::Removed(_))));
    }
}
