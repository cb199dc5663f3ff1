//! Starts the oracle: triggers and zones beside other ways to the same answer.

use std::process::Command;

use anyhow::Result;

use crate::{shell, workspace};

/// What shows that an interpreter can be asked for offsets.
const IMPORTS: &str = "import tzdata, zoneinfo";

/// Builds the oracle and runs it, with a Python that has `tzdata` if there is one.
pub(crate) fn run() -> Result<()> {
    let mut oracle = shell::cargo();
    oracle.args(["run", "--release", "--package", "norfab-oracle", "--"]);
    match python() {
        Some(python) => {
            oracle.args(["--python", &python]);
        }
        None => eprintln!("No Python with the package tzdata was found: `pip install tzdata`, and set PYTHON to it."),
    }
    shell::run(&mut oracle)
}

/// The interpreter that `PYTHON` names, the one of the real NorFab, or the one of the system: the first with `tzdata`.
fn python() -> Option<String> {
    let peer = workspace::root().join(".venv-peer");
    let peer = ["bin/python", "Scripts/python.exe"].map(|path| peer.join(path).display().to_string());
    let named = std::env::var("PYTHON").ok();
    let mut candidates = named.into_iter().chain(peer).chain(["python3".to_owned(), "python".to_owned()]);
    candidates.find(|python| {
        let asked = shell::capture(Command::new(python).args(["-c", IMPORTS]));
        asked.is_ok_and(|output| output.status.success())
    })
}
