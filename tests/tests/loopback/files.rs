//! The files of a running client in other hands: removed, replaced, without room, damaged. What can go on does, one error
//! tells what is wrong and what to do, nothing is lost without a word, and there is never a second owner.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use norfab_client::{
    Client, ClientError, Clock, Interval, JobHandle, JobStatus, NewSchedule, Outcome, Role, SqliteStore, SystemClock,
    Timestamp, Uptime,
};
use norfab_tests::{OwnerProcess, eventually};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::common::{Ground, job};
use crate::script::script;

const TROUBLE: &str = "Cannot use the job database";

fn in_seconds(seconds: u32) -> Timestamp {
    SystemClock.now().plus_seconds(seconds)
}

fn beside(database: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", database.display()))
}

async fn completes(handle: &mut JobHandle<SqliteStore, SystemClock>) {
    let end = tokio::time::timeout(Duration::from_secs(60), handle.outcome()).await;
    let outcome = end.expect("it does not end").expect("ends");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}

/// Lines of a log that tell of an error.
fn errors(log: &[String]) -> Vec<&str> {
    log.iter().filter(|line| line.contains(" ERROR ") || line.contains("panicked")).map(String::as_str).collect()
}

#[tokio::test]
async fn the_database_is_moved_away_and_back() {
    let ground = Ground::start().await;
    let mut owner = ground.program().start_owner().await;
    let client = ground.client(Role::Beside).await;
    let mut due = client.schedule_job(job("echo").at(in_seconds(3))).await.expect("added");
    let (database, away) = (ground.database(), ground.path().join("away.db"));
    fs::rename(&database, &away).expect("moved");

    // Nobody has to ask for it.
    let told = owner.logged(TROUBLE).await;
    assert!(
        told.contains(" ERROR ") && told.contains("removed or moved away") && told.contains("put it back"),
        "{told}"
    );
    // Nor is anything written where nobody will look for it.
    let refused = client.submit_job(job("echo")).await.expect_err("nobody would see it");
    assert!(matches!(refused, ClientError::Store(_)), "{refused:?}");
    assert!(due.job().await.is_err());
    assert_eq!(ground.program().run(&["job", "list", "--json"]).await.code, Some(4), "there is no database");
    let (status, log) = ground.program().spawn_owner().end().await;
    assert_eq!(status.code(), Some(3), "a second owner, on a database of its own: {log:?}");
    // A second owner makes no database before it has the lock.
    assert!(!database.exists());

    fs::rename(&away, &database).expect("moved");
    owner.logged("It works again").await;
    completes(&mut due).await;
    completes(&mut client.submit_job(job("echo")).await.expect("added")).await;
    client.shutdown().await;
    let log = owner.stop().await;
    assert_eq!(errors(&log).len(), 1, "{log:?}");
    assert_eq!(ground.fabric.executions().len(), 2);
}

/// For good, by somebody who did not know what it is: the file alone, or with what SQLite has beside it.
#[tokio::test]
async fn the_database_is_deleted() {
    for ends in [&[""][..], &["", "-wal", "-shm"]] {
        let ground = Ground::start().await;
        let client = ground.client(Role::Beside).await;
        let time = in_seconds(2);
        let due = client.schedule_job(job("echo").at(time)).await.expect("added");
        let (database, backup) = (ground.database(), ground.path().join("backup.db"));
        execute(&database, &format!("VACUUM INTO '{}'", backup.display())).await;
        let mut owner = ground.program().start_owner().await;
        ends.iter().for_each(|end| fs::remove_file(beside(&database, end)).expect("removed"));

        let told = owner.logged(TROUBLE).await;
        assert!(told.contains(" ERROR ") && told.contains("removed or moved away"), "{told}");
        let refused = client.submit_job(job("echo")).await.expect_err("nobody would see it");
        assert!(matches!(refused, ClientError::Store(_)), "{refused:?}");
        assert!(due.job().await.is_err(), "what is in a file without a name is nobody's");
        let (status, log) = ground.program().spawn_owner().end().await;
        assert_eq!(status.code(), Some(3), "a second owner, on a database of its own: {log:?}");
        // Its time comes meanwhile: it is that which matters here.
        SystemClock.sleep_until(time.plus_seconds(1), Uptime::MAX).await;
        assert!(!ground.was_sent(due.id()), "it was sent, and no row says so");
        client.shutdown().await;
        let log = owner.stop().await;
        assert_eq!(errors(&log).len(), 1, "{log:?}");
        assert!(!database.exists(), "it was made anew, without what was in it");

        // As it is told: stopped in order, and then a backup.
        for end in ["-wal", "-shm"] {
            fs::remove_file(beside(&database, end)).ok();
        }
        fs::rename(&backup, &database).expect("restored");
        let owner = ground.program().start_owner().await;
        let client = ground.client(Role::Beside).await;
        completes(&mut client.job(due.id()).await.expect("as in the backup")).await;
        assert_eq!(ground.fabric.executions().len(), 1);
        client.shutdown().await;
        owner.stop().await;
    }
}

/// A backup is put in place of the database, and the owner was forgotten.
#[tokio::test]
async fn the_database_is_replaced() {
    let ground = Ground::start().await;
    let client = ground.client(Role::Beside).await;
    let old = client.schedule_job(job("echo").at(in_seconds(3600))).await.expect("added").id().clone();
    client.shutdown().await;
    let (database, backup) = (ground.database(), ground.path().join("backup.db"));
    fs::copy(&database, &backup).expect("copied");

    let mut owner = ground.program().start_owner().await;
    let away = tempfile::tempdir_in(ground.path()).expect("a folder");
    for end in ["", "-wal", "-shm"] {
        fs::rename(beside(&database, end), beside(&away.path().join("rust.db"), end)).expect("moved");
    }
    fs::copy(&backup, &database).expect("copied");
    let told = owner.logged(TROUBLE).await;
    assert!(told.contains("replaced by another file") && told.contains("start it again"), "{told}");
    let client = ground.client(Role::Beside).await;
    let mut new = client.submit_job(job("echo")).await.expect("the new one can be used");
    let (status, _) = ground.program().spawn_owner().end().await;
    assert_eq!(status.code(), Some(3), "a second owner");
    assert_eq!(new.job().await.expect("there").status, JobStatus::New);

    owner.stop().await;
    let owner = ground.program().start_owner().await;
    completes(&mut new).await;
    assert_eq!(client.find_job(&old).await.expect("as in the backup").status, JobStatus::Scheduled);
    client.shutdown().await;
    owner.stop().await;
}

#[tokio::test]
async fn the_lock_is_removed() {
    let ground = Ground::start().await;
    let mut owner = ground.program().start_owner().await;
    let lock = beside(&ground.database(), ".lock");
    fs::remove_file(&lock).expect("removed");
    let told = owner.logged("which was removed or replaced").await;
    assert!(told.contains(" WARN ") && lock.exists(), "{told}");
    let (status, _) = ground.program().spawn_owner().end().await;
    assert_eq!(status.code(), Some(3), "a second owner");
    let client = ground.client(Role::Beside).await;
    completes(&mut client.submit_job(job("echo")).await.expect("added")).await;

    // Somebody is faster: then the first one ends.
    fs::remove_file(&lock).expect("removed");
    let mut second = ground.program().spawn_owner();
    let first = async { tokio::time::timeout(Duration::from_secs(10), owner.end()).await };
    let second = async {
        second.logged("Serves the jobs of").await;
        second
    };
    match tokio::join!(first, tokio::time::timeout(Duration::from_secs(10), second)) {
        (Ok((status, log)), Ok(second)) => {
            assert_eq!(status.code(), Some(1), "{log:?}");
            assert!(log.iter().any(|line| line.contains("another process dispatches by now")), "{log:?}");
            completes(&mut client.submit_job(job("echo")).await.expect("added")).await;
            second.stop().await;
        }
        // It noticed before the second came.
        (Err(_), Err(_)) => {}
        (first, second) => panic!("owners: {:?}, {:?}", first.is_err(), second.is_ok()),
    }
    client.shutdown().await;
}

/// What goes on, and what does not, while an owner cannot write; `mend` ends that.
async fn without_room(
    ground: &Ground,
    mut owner: OwnerProcess,
    part: &str,
    fill: impl AsyncFn(&Client),
    mend: impl Fn(&OwnerProcess),
) {
    let client = ground.client(Role::Beside).await;
    let mut due = client.schedule_job(job("echo").at(in_seconds(2))).await.expect("added");
    fill(&client).await;
    let told = owner.logged(TROUBLE).await;
    assert!(told.contains(" ERROR ") && told.contains(part), "{told}");
    let list = ground.program().run(&["job", "list", "--json"]).await;
    assert_eq!(list.code, Some(0), "{list:?}");
    assert!(!ground.was_sent(due.id()), "it was sent, and no row says so");
    mend(&owner);
    owner.logged("It works again").await;
    completes(&mut due).await;
    client.shutdown().await;
    let log = owner.stop().await;
    assert_eq!(errors(&log).len(), 1, "{log:?}");
    assert_eq!(ground.fabric.executions().iter().filter(|run| run.job == due.id().as_str()).count(), 1);
}

/// A file system for one test, which only root can make.
struct Disk(PathBuf);

impl Disk {
    fn mount(place: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(place).expect("folders");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "norfab-test"]).arg(place);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Self(place.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.display());
    }
}

#[tokio::test]
async fn the_disk_is_full() {
    let ground = Ground::start().await;
    let folder = ground.database().parent().expect("a folder").to_owned();
    let Some(_disk) = Disk::mount(&folder, "4m") else {
        let is_root = fs::metadata(&folder).expect("there").uid() == 0;
        assert!(!(is_root && std::env::var_os("CI").is_some()), "root of a CI cannot mount a small file system");
        eprintln!("LEFT OUT: a full disk. This user cannot mount a small file system (root can);");
        eprintln!("LEFT OUT: of it only a_limit_is_set_to_the_size_of_files is shown");
        return;
    };
    let owner = ground.program().start_owner().await;
    let ballast = folder.join("ballast");
    let fill = async |client: &Client| {
        // To the last byte: what the log has room for within its file does not need the disk.
        let zeros = vec![0; 64 << 10];
        let mut file = fs::File::create(&ballast).expect("made");
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
        let large = job("echo").kwargs(json!({ "text": noise(512 << 10) })).at(in_seconds(3600));
        let refused = client.schedule_job(large).await.expect_err("there is no room");
        let text = format!("{refused:?}");
        assert!(text.contains("full") && text.contains("make room"), "{text}");
    };
    let mend = |_: &OwnerProcess| fs::remove_file(&ballast).expect("removed");
    without_room(&ground, owner, "database or disk is full; make room", fill, mend).await;
}

/// The same by a limit of the process, which any user can set: another error, as it is not the disk that is full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_limit_is_set_to_the_size_of_files() {
    let ground = Ground::start().await;
    let limited = script("trap '' XFSZ\nulimit -S -f 2000", env!("CARGO_BIN_EXE_norfab-under-test"));
    let owner = ground.program().at(&limited.program).start_owner().await;
    let fill = async |client: &Client| {
        // Another process has no such limit, and its log grows beyond it.
        for _ in 0..3 {
            let large = job("echo").kwargs(json!({ "text": noise(1 << 20) })).at(in_seconds(3600));
            client.schedule_job(large).await.expect("added");
        }
    };
    let mend = |owner: &OwnerProcess| {
        let pid = owner.pid().expect("it runs").to_string();
        let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:unlimited"]).status();
        assert!(raised.is_ok_and(|status| status.success()), "the limit cannot be raised");
    };
    without_room(&ground, owner, "look at the disk", fill, mend).await;
}

/// Text that does not let itself be compressed.
fn noise(bytes: usize) -> String {
    let mut chance = norfab_tests::Chance::seeded(1);
    let letter = |number: u64| char::from(b'!' + u8::try_from(number).expect("small"));
    (0..bytes).map(|_| letter(chance.below(90))).filter(|letter| !matches!(letter, '"' | '\\')).collect()
}

/// Plain SQL on a database.
async fn execute(database: &Path, sql: &str) {
    let mut connection = SqliteConnectOptions::new().filename(database).connect().await.expect("opens");
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.expect("works");
    connection.close().await.expect("closes");
}

/// The schedules cannot be read any more: the jobs go on.
#[tokio::test]
async fn a_page_of_the_schedules_is_damaged() {
    let ground = Ground::start().await;
    let client = ground.client(Role::Beside).await;
    let new = NewSchedule::new("demo", "echo", Interval::new(1).expect("valid"));
    client.create_job_schedule(new).await.expect("created");
    client.shutdown().await;
    damage(&ground.database(), "job_schedules").await;

    let mut owner = ground.program().start_owner().await;
    let told = owner.logged("Cannot look at the schedules").await;
    assert!(told.contains(" ERROR ") && told.contains("malformed") && told.contains("restore the backup"), "{told}");
    let client = ground.client(Role::Beside).await;
    for _ in 0..3 {
        completes(&mut client.submit_job(job("echo")).await.expect("added")).await;
    }
    completes(&mut client.schedule_job(job("echo").at(in_seconds(1))).await.expect("added")).await;
    client.shutdown().await;
    let log = owner.stop().await;
    assert_eq!(errors(&log).len(), 1, "{log:?}");
}

/// The jobs themselves cannot be read any more: it says so, goes on trying, and ends in order.
#[tokio::test]
async fn a_page_of_the_jobs_is_damaged() {
    let ground = Ground::start().await;
    let client = ground.client(Role::Beside).await;
    client.schedule_job(job("echo").at(in_seconds(1))).await.expect("added");
    client.shutdown().await;
    damage(&ground.database(), "jobs").await;
    let mut owner = ground.program().spawn_owner();
    let told = owner.logged("malformed").await;
    assert!(told.contains(" ERROR ") || told.contains(" WARN "), "{told}");
    assert!(told.contains("restore the backup"), "{told}");
    let list = ground.program().run(&["job", "list", "--json"]).await;
    assert_eq!(list.code, Some(1), "{list:?}");
    assert!(list.json()["error"]["message"].as_str().is_some_and(|text| text.contains("malformed")), "{list:?}");
    owner.stop().await;
}

/// Overwrites the first page of a table, while nobody has the database open.
async fn damage(database: &Path, table: &str) {
    execute(database, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let mut connection = SqliteConnectOptions::new().filename(database).connect().await.expect("opens");
    let root = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}' AND type = 'table'");
    let root: i64 = sqlx::query_scalar(AssertSqlSafe(root)).fetch_one(&mut connection).await.expect("reads");
    let size: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut connection).await.expect("reads");
    connection.close().await.expect("closes");
    let (root, size) = (usize::try_from(root).expect("small"), usize::try_from(size).expect("small"));
    let mut bytes = fs::read(database).expect("readable");
    bytes[(root - 1) * size..root * size].fill(0xa5);
    fs::write(database, bytes).expect("written");
}

/// Payloads that are none, and some that are far more than they seem: those jobs fail, and say why; the others run.
#[tokio::test]
async fn blobs_are_damaged_or_bombs() {
    let ground = Ground::start().await;
    let client = ground.client(Role::Beside).await;
    let mut bad = Vec::new();
    for blob in [vec![0, 0xff], b"x\x9cgarbage".to_vec(), zlib_bomb(), lz4_bomb()] {
        let id = client.schedule_job(job("echo").at(in_seconds(2))).await.expect("added").id().clone();
        let hex: String = blob.iter().map(|byte| format!("{byte:02x}")).collect();
        execute(&ground.database(), &format!("UPDATE jobs SET kwargs = x'{hex}' WHERE uuid = '{id}'")).await;
        bad.push(id);
    }
    let mut good = client.schedule_job(job("echo").at(in_seconds(2))).await.expect("added");
    let owner = ground.program().start_owner().await;
    completes(&mut good).await;
    for (id, part) in bad.iter().zip(["none of the known forms", "damaged", "more than 67108864", "more than 67108864"])
    {
        let failed = async || {
            let job = client.find_job(id).await.expect("there");
            (job.status == JobStatus::Failed).then_some(job.errors)
        };
        let errors = eventually("its end", failed).await;
        assert!(errors.concat().contains(part), "{errors:?} instead of {part}");
        let shown = ground.program().run(&["job", "show", id.as_str(), "--json"]).await;
        assert!(!shown.stderr.contains("panicked"), "{shown:?}");
    }
    #[cfg(target_os = "linux")]
    {
        let most = crate::giants::memory(owner.pid().expect("it runs"), "VmHWM");
        assert!(most < 400 << 20, "{most} bytes for bombs of 64 MiB at the most");
    }
    assert_eq!(ground.fabric.executions().len(), 1);
    client.shutdown().await;
    owner.stop().await;
}

/// Far beyond what is read, in a mebibyte or less.
const BOMB: usize = 256 << 20;

fn zlib_bomb() -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    pour(&mut encoder);
    encoder.finish().expect("packed")
}

fn lz4_bomb() -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    pour(&mut encoder);
    encoder.finish().expect("packed")
}

fn pour(packer: &mut impl std::io::Write) {
    packer.write_all(b"{\"kwargs\": {\"text\": \"").expect("packed");
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..BOMB / piece.len() {
        packer.write_all(&piece).expect("packed");
    }
    packer.write_all(b"\"}}").expect("packed");
}
