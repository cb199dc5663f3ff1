//! A database that cannot be written for a while: nothing is sent that is not in it, reading goes on, one error tells of
//! it, and all goes on by itself.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use norfab_client::{Clock, JobStatus, Outcome, Role, SystemClock};
use norfab_tests::{Ended, OwnerProcess, Program, eventually};

use crate::common::{Ground, job};

pub(crate) const TROUBLE: &str = "Cannot use the job database";

/// A file that lets itself not be written any more while the owner has it open, as a file system does that is remounted
/// after an error.
#[tokio::test]
async fn it_becomes_read_only_while_the_owner_runs() {
    let ground = Ground::start().await;
    let mut owner = ground.program().start_owner().await;
    let client = ground.client(Role::Beside).await;
    let mut due = client.schedule_job(job("echo").at(SystemClock.now().plus_seconds(2))).await.expect("added");
    let Some(frozen) = Frozen::freeze(&ground.database()) else { return };
    assert_eq!(due.job().await.expect("there").status, JobStatus::Scheduled);

    let error = owner.logged(TROUBLE).await;
    assert!(error.contains(" ERROR "), "{error}");
    reading_goes_on(&ground.program(), 1).await;
    let line = ["job", "run", "demo", "echo", "--json"];
    is_refused(&ground.program().run(&line).await, "may not be written");
    assert!(ground.fabric.messages().iter().all(|message| message.command != "0x04"), "something was sent");
    drop(frozen);

    let outcome = due.outcome().await.expect("ends");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(ground.fabric.executions().len(), 1);
    client.shutdown().await;
    it_works_again(owner).await;
}

/// Who may not write the file, or beside it, is told so before anything is sent.
async fn check_forbidden(forbid: impl Fn(&Path), read: impl AsyncFn(&Program), allow: impl Fn(&Path)) {
    let ground = Ground::start().await;
    let common = Common::of(&ground);
    let program = &common.program;
    let schedule = ["job", "schedule", "demo", "echo", "--workers", "any", "--in", "1s", "--json"];
    let added = program.run(&schedule).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    forbid(&ground.database());

    let (status, log) = program.spawn_owner().end().await;
    assert_eq!(status.code(), Some(1), "{log:?}");
    let errors: Vec<_> = log.iter().filter(|line| line.contains("error:") || line.contains(" ERROR ")).collect();
    assert!(errors.len() == 1 && errors[0].contains("rust.db"), "{log:?}");
    is_refused(&program.run(&schedule).await, "rust.db");
    is_refused(&program.run(&["job", "run", "demo", "echo", "--json"]).await, "rust.db");
    assert!(ground.fabric.messages().iter().all(|message| message.command != "0x04"), "something was sent");
    read(program).await;

    allow(&ground.database());
    let owner = program.start_owner().await;
    let ended = async || {
        let list = program.run(&["job", "list", "--json"]).await.json();
        (list["jobs"][0]["status"] == "COMPLETED").then_some(())
    };
    eventually("the end of the job", ended).await;
    assert_eq!(ground.fabric.executions().len(), 1);
    owner.stop().await;
}

#[tokio::test]
async fn a_file_that_may_not_be_written() {
    let read = async |program: &Program| reading_goes_on(program, 1).await;
    // What SQLite has made beside it meanwhile is permitted no more than the file itself was.
    let allow = |file: &Path| files(file).iter().filter(|file| file.exists()).for_each(|file| permit(file, 0o644));
    check_forbidden(|file| permit(file, 0o444), read, allow).await;
}

/// There SQLite cannot even read while nobody has the database open: it needs a file beside it for that.
#[tokio::test]
async fn a_folder_that_may_not_be_written() {
    let folder = |file: &Path| file.parent().expect("a folder").to_owned();
    let read = async |program: &Program| is_refused(&program.run(&["job", "list", "--json"]).await, "rust.db");
    check_forbidden(|file| permit(&folder(file), 0o555), read, |file| permit(&folder(file), 0o755)).await;
}

/// A process may open the database more than once, and close it again, without taking anything from who has it open.
#[tokio::test]
async fn one_process_opens_it_twice_beside_another() {
    let ground = Ground::start().await;
    let owner = ground.client(Role::Owner).await;
    for role in [Role::ReadOnly, Role::Beside] {
        let second = ground.client(role).await;
        second.shutdown().await;
        #[cfg(target_os = "linux")]
        assert!(is_locked(&ground.database()), "{role:?}: the owner's lock on its database is gone");
        let line = ["job", "schedule", "demo", "echo", "--in", "1h", "--json"];
        let other = ground.program().run(&line).await;
        assert_eq!(other.code, Some(0), "{other:?}");
        let own = owner.schedule_job(job("echo").at(SystemClock.now().plus_seconds(7200))).await.expect("added");
        let shown = ground.program().run(&["job", "show", own.id().as_str(), "--json"]).await;
        assert_eq!(shown.code, Some(0), "{role:?}: {shown:?}");
        let id = norfab_client::JobId::new(other.json()["uuid"].as_str().expect("text")).expect("a UUID");
        owner.find_job(&id).await.expect("the owner knows it");
    }
    owner.shutdown().await;
    assert_eq!(ground.jobs().await.len(), 4);
}

/// Whether a process has a lock of SQLite's on a file. Without one, whoever closes the database last removes its log, and
/// what others write to it from then on is lost.
#[cfg(target_os = "linux")]
fn is_locked(file: &Path) -> bool {
    let inode = format!(":{} ", std::fs::metadata(file).expect("there").ino());
    let locks = std::fs::read_to_string("/proc/locks").expect("readable");
    locks.lines().any(|lock| lock.contains("POSIX") && lock.contains(&inode))
}

pub(crate) async fn reading_goes_on(program: &Program, jobs: usize) {
    let list = program.run(&["job", "list", "--json"]).await;
    assert_eq!(list.code, Some(0), "{list:?}");
    assert_eq!(list.json()["jobs"].as_array().map(Vec::len), Some(jobs), "{list:?}");
}

#[track_caller]
pub(crate) fn is_refused(ended: &Ended, part: &str) {
    let error = &ended.json()["error"];
    assert_eq!((ended.code, error["kind"].as_str()), (Some(1), Some("error")), "{ended:?}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{ended:?}");
}

/// It has told each step that failed once, and the end of the trouble.
pub(crate) async fn it_works_again(mut owner: OwnerProcess) {
    owner.logged("It works again").await;
    let log = owner.stop().await;
    let mut errors: Vec<_> = log.iter().filter_map(|line| line.split_once(" ERROR ")).map(|(_, error)| error).collect();
    errors.sort_unstable();
    let told = errors.len();
    errors.dedup();
    assert!(told > 0 && errors.len() == told, "told more than once: {log:?}");
}

/// A user who is not above permissions, and the program for it.
struct Common {
    program: Program,
    /// A copy of the program, where that user can reach it.
    _executable: Option<tempfile::TempDir>,
}

/// The number of the user `nobody` nearly everywhere; it need not have a name.
const NOBODY: u32 = 65_534;

impl Common {
    fn of(ground: &Ground) -> Self {
        let is_above = std::fs::metadata(ground.path()).expect("there").uid() == 0;
        if !is_above {
            return Self { program: ground.program(), _executable: None };
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        let copy = folder.path().join("norfab");
        // By another process: a program that anybody of this one has open to write cannot be run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_norfab-under-test")).arg(&copy).status();
        assert!(copied.is_ok_and(|status| status.success()), "cp does not copy");
        permit(folder.path(), 0o755);
        for path in [ground.path().to_owned(), ground.path().join("inventory.yaml")] {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("given away");
        }
        Self { program: ground.program().at(&copy).user(NOBODY), _executable: Some(folder) }
    }
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permitted");
}

/// The file of a database, and those that SQLite has beside it while it is open.
fn files(database: &Path) -> Vec<PathBuf> {
    ["", "-wal", "-shm"].iter().map(|end| PathBuf::from(format!("{}{end}", database.display()))).collect()
}

/// The files of a database, which nobody can write until this is dropped, not even who has them open.
struct Frozen(Vec<PathBuf>);

impl Frozen {
    /// Nothing where the system or the file system does not let us.
    fn freeze(database: &Path) -> Option<Self> {
        let mut frozen = Self(Vec::new());
        // Not the last, which is mapped into memory: to write to it would end the process.
        for file in files(database).into_iter().take(2) {
            if !change("+i", &file) {
                eprintln!("Left out: this user cannot freeze files of this file system (chattr +i)");
                return None;
            }
            frozen.0.push(file);
        }
        Some(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for file in &self.0 {
            change("-i", file);
        }
    }
}

fn change(attribute: &str, file: &Path) -> bool {
    Command::new("chattr").arg(attribute).arg(file).output().is_ok_and(|output| output.status.success())
}
