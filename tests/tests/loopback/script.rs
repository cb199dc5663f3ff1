//! The program under conditions that a shell sets before it becomes the program.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A program that is a few lines of shell before another; it is gone when this is dropped.
pub(crate) struct Script {
    pub(crate) program: PathBuf,
    _folder: TempDir,
}

/// Lines of shell, and then the program in the same process.
pub(crate) fn script(lines: &str, program: &str) -> Script {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("norfab");
    let text = format!("#!/bin/sh\n{lines}\nexec '{program}' \"$@\"\n");
    // By another process: a file that anybody of this one has open to write cannot be run.
    let write = ["-c", "printf '%s' \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", &text];
    let written = Command::new("sh").args(write).arg(&path).status();
    assert!(written.is_ok_and(|status| status.success()), "the shell does not write");
    Script { program: path, _folder: folder }
}
