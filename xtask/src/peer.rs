//! The Python environment of the real NorFab, which the end-to-end tests run against.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{shell, workspace};

/// Whether the tests that need the real NorFab run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Peer,
    NoPeer,
}

/// What shows that everything of the peer's is installed.
const IMPORTS: &str = "import norfab.core.broker, norfab.core.client, norfab.core.worker";
/// Prints what distinguishes one interpreter from another, its version first.
const IDENTIFY: &str = "import sys; print('%d %d' % sys.version_info[:2]); print(sys.version, sys.base_prefix)";
/// The releases of Python that NorFab runs on.
const SUPPORTED: std::ops::RangeInclusive<(u32, u32)> = (3, 10)..=(3, 14);

/// Makes the environment unless it is there already, and gives the path of its interpreter.
pub(crate) fn make() -> Result<PathBuf> {
    let root = workspace::root();
    let venv = root.join(".venv-peer");
    let requirements = root.join("tests").join("peer").join("requirements.txt");
    let wanted =
        std::fs::read_to_string(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    let interpreter = find_interpreter()?;
    let wanted = format!("# {}\n{wanted}", interpreter.identity);

    // Two test runs may come here at the same time; the second one finds the work done.
    let lock = root.join(".venv-peer.lock");
    let lock = File::create(&lock).with_context(|| format!("cannot make {}", lock.display()))?;
    lock.lock().context("cannot lock .venv-peer.lock")?;
    let stamp = venv.join("installed-requirements.txt");
    if std::fs::read_to_string(&stamp).ok() != Some(wanted.clone()) || !python_of(&venv).exists() {
        install(&interpreter, &venv, &requirements)?;
        std::fs::write(&stamp, wanted)?;
    }
    Ok(python_of(&venv))
}

fn install(interpreter: &Interpreter, venv: &Path, requirements: &Path) -> Result<()> {
    eprintln!("Making {} ..", venv.display());
    let mut make = interpreter.command();
    make.args(["-m", "venv", "--clear"]).arg(venv);
    let made = shell::capture(&mut make)?;
    if !made.status.success() {
        bail!(
            "{} cannot make a virtual environment; on Debian and Ubuntu install python3-venv \
             (`apt install python3-venv`), elsewhere set PYTHON to a complete Python 3.10 to 3.14. It said:\n{}{}",
            interpreter.program,
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr),
        );
    }
    let python = python_of(venv);
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    shell::run(install.arg(requirements).stdout(std::io::stderr()))?;
    shell::run(Command::new(&python).args(["-c", IMPORTS])).context("NorFab was installed but cannot be imported")
}

fn python_of(venv: &Path) -> PathBuf {
    if cfg!(windows) { venv.join("Scripts").join("python.exe") } else { venv.join("bin").join("python") }
}

/// A Python to make the environment with.
struct Interpreter {
    program: String,
    arguments: &'static [&'static str],
    identity: String,
}

impl Interpreter {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.arguments);
        command
    }
}

/// $PYTHON, or else the first of the usual names that NorFab runs on.
fn find_interpreter() -> Result<Interpreter> {
    if let Some(program) = std::env::var_os("PYTHON").filter(|value| !value.is_empty()) {
        return identify(&program.to_string_lossy(), &[]).context("PYTHON names no Python that can be used");
    }
    let mut tried = Vec::new();
    for (program, arguments) in candidates() {
        match identify(program, arguments) {
            Ok(interpreter) => return Ok(interpreter),
            Err(error) => tried.push(format!("\n  {error:#}")),
        }
    }
    bail!(
        "no Python 3.10 to 3.14 found; install one, set PYTHON to its path, or leave the real NorFab out with --no-peer:{}",
        tried.concat()
    )
}

fn candidates() -> Vec<(&'static str, &'static [&'static str])> {
    let mut names: Vec<(&str, &[&str])> = if cfg!(windows) { vec![("py", &["-3"])] } else { vec![] };
    names.extend(
        ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"]
            .map(|name| (name, &[] as &[&str])),
    );
    names
}

fn identify(program: &str, arguments: &'static [&'static str]) -> Result<Interpreter> {
    let mut command = Command::new(program);
    command.args(arguments).args(["-c", IDENTIFY]).stdin(Stdio::null());
    let output = command.output().context(program.to_string())?;
    if !output.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let identity = supported(&String::from_utf8_lossy(&output.stdout)).with_context(|| program.to_string())?;
    Ok(Interpreter { program: program.into(), arguments, identity })
}

/// What an interpreter says of itself in one line, if NorFab runs on it.
fn supported(said: &str) -> Result<String> {
    let (version, identity) = said.split_once('\n').context("it is no Python")?;
    let numbers = version.trim().split_once(' ').context("it is no Python")?;
    let version = (numbers.0.parse()?, numbers.1.parse()?);
    if !SUPPORTED.contains(&version) {
        bail!("it is Python {}.{}, and NorFab runs on 3.10 to 3.14", version.0, version.1);
    }
    Ok(identity.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, expected: Result<&str, &str>) {
        let found = supported(said).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(String::from).map_err(String::from));
    }

    #[test]
    fn both_ends_of_what_is_supported() {
        check("3 10\n3.10.1 (main) /usr\n", Ok("3.10.1 (main) /usr"));
        check("3 14\r\n3.14.0 (main)\n[GCC] C:\\Python\r\n", Ok("3.14.0 (main) [GCC] C:\\Python"));
    }

    #[test]
    fn older_and_newer_ones() {
        check("3 9\n3.9.2\n", Err("it is Python 3.9, and NorFab runs on 3.10 to 3.14"));
        check("3 15\n3.15.0\n", Err("it is Python 3.15, and NorFab runs on 3.10 to 3.14"));
    }

    #[test]
    fn something_that_is_no_python() {
        check("", Err("it is no Python"));
    }
}
