//! What may be secret stays where it belongs: arguments, answers and results in the database, keys in their files. Logs of
//! every level, errors and counts of whole runs are searched for secrets that were planted; and of every file that is made
//! it is looked who may read it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use norfab_client::{Clock, Interval, JobStatus, NewJob, NewSchedule, Outcome, Role, SystemClock, Workers};
use norfab_tests::{Ended, Program, Stopped, eventually};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::common::{Ground, job};
use crate::hostile::{Hostile, event, result};
use crate::script::script;

/// All of them have it in common.
const MARK: &str = "s3cr3t";

fn secret(name: &str) -> String {
    format!("{MARK}-{name}")
}

/// Nothing of what was said has a secret in it.
#[track_caller]
fn silent<'a>(what: &str, lines: impl IntoIterator<Item = &'a str>, secrets: &[String]) {
    for line in lines {
        for secret in std::iter::once(MARK).chain(secrets.iter().map(String::as_str)) {
            let place = line.find(secret);
            assert!(place.is_none(), "{what}: {}", line.replace(secret, "<SECRET>"));
        }
    }
}

/// A command that is to show arguments or results on its output: what it says besides has no secret in it.
#[track_caller]
fn said_nothing(ended: &Ended, code: i32) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    silent("a command", ended.stderr.lines(), &[]);
}

/// A command that shows neither.
#[track_caller]
fn showed_nothing(ended: &Ended, code: i32) {
    said_nothing(ended, code);
    assert!(!ended.stdout.is_empty(), "{ended:?}");
    silent("what a command shows", ended.stdout.lines(), &[]);
}

fn texts(log: &[String]) -> impl Iterator<Item = &str> {
    log.iter().map(String::as_str)
}

#[tokio::test]
async fn a_full_run_tells_no_secret() {
    let ground = Ground::start().await;
    let program = ground.program().log("trace");
    let owner = program.clone().json().start_owner().await;
    let kwargs = |name: &str| json!({ "password": secret(name) }).to_string();
    let run = async |line: &[&str]| program.run(line).await;

    said_nothing(&run(&["job", "run", "demo", "echo", "--kwargs", &kwargs("argument")]).await, 0);
    said_nothing(
        &run(&["job", "schedule", "demo", "echo", "--in", "1s", "--wait", "--kwargs", &kwargs("delayed")]).await,
        0,
    );
    let failing = json!({ "message": secret("failure") }).to_string();
    said_nothing(&run(&["job", "run", "demo", "fail", "--json", "--kwargs", &failing]).await, 1);
    let question = json!({ "question": secret("question") }).to_string();
    let asked = ["job", "run", "demo", "ask", "--json", "--workers", "demo-worker-1", "--kwargs", &question];
    let answer = secret("answer");
    let asked: Vec<&str> = asked.into_iter().chain(["--answer", &answer]).collect();
    said_nothing(&run(&asked).await, 0);
    for (name, task, given) in [("nightly", "echo", kwargs("template")), ("broken", "fail", failing)] {
        let create = ["schedule", "create", name, "demo", task, "--every", "1s", "--kwargs", &given];
        said_nothing(&run(&create).await, 0);
    }
    said_nothing(&run(&["schedule", "run-now", "nightly", "--wait", "--force"]).await, 0);

    // What is refused is not repeated.
    for wrong in [format!("{{\"password\": {MARK}}}"), format!("\"{MARK}\""), format!("[\"{MARK}\"]"), MARK.to_owned()]
    {
        let refused = run(&["job", "run", "demo", "echo", "--json", "--kwargs", &wrong]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        silent("what is refused", [refused.stdout.as_str(), refused.stderr.as_str()], &[]);
    }
    damaged(&ground).await;
    counts_and_lists(&program).await;
    let Stopped { status, log, stdout, .. } = owner.stop_by("TERM").await;
    assert!(status.success() && stdout.contains("total_jobs"), "{status}: {stdout}");
    silent("the log of the owner", texts(&log), &[]);
    silent("the report of the owner", stdout.lines(), &[]);
    health(&ground).await;
}

/// Whatever shows how all is, but not what a job was called with or came to: for people and for programs. `job show`, and
/// `schedule show` for people, are to show just that.
async fn counts_and_lists(program: &Program) {
    let schedule = async |name: &str| {
        let mut shown = program.run(&["schedule", "show", name, "--json"]).await;
        let mut value = shown.json();
        // Those are to be shown, and nothing else of them.
        let template = value.as_object_mut().expect("an object").remove("kwargs").expect("its arguments");
        assert!(template.to_string().contains(MARK), "{template}");
        shown.stdout = value.to_string();
        showed_nothing(&shown, 0);
        value
    };
    let ran = async || {
        let broken = schedule("broken").await;
        (broken["failed_runs"].as_u64() > Some(0) && broken["last_outcome"].is_object()).then_some(())
    };
    eventually("a schedule with a run that failed", ran).await;
    assert!(schedule("nightly").await["last_outcome"].is_object());
    let disabled = async || {
        let list = program.clone().json().run(&["schedule", "list"]).await.json();
        list["unreadable"][0]["last_error"].is_string().then_some(list["unreadable"].clone())
    };
    let damaged = eventually("a schedule that was switched off", disabled).await;
    assert!(damaged.to_string().contains("Nowhere/None"), "{damaged}");
    for line in [["db", "info"], ["job", "list"], ["schedule", "list"], ["schedule", "preview"]] {
        let name = if line[1] == "preview" { &["nightly"][..] } else { &[] };
        for form in [program.clone(), program.clone().json()] {
            showed_nothing(&form.run(&[&line, name].concat()).await, 0);
        }
    }
    for form in [program.clone(), program.clone().json()] {
        showed_nothing(&form.run(&["workers"]).await, 0);
    }
}

/// What a program is told of a client that it has within itself.
async fn health(ground: &Ground) {
    let client = ground.client(Role::Owner).await;
    let called = job("echo").kwargs(json!({ "password": secret("argument") }));
    let outcome = client.run_job(called).await.expect("runs");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    let stats = client.stats().await.expect("counted");
    assert!(stats.jobs.total_jobs > 8, "{stats:?}");
    let health = client.health().expect("it dispatches");
    silent("counts", [format!("{stats:?}").as_str(), format!("{health:?}").as_str()], &[]);
    client.shutdown().await;
}

/// Payloads with secrets that are broken: why they cannot be read is told, and nothing of them.
async fn damaged(ground: &Ground) {
    let client = ground.client(Role::Beside).await;
    for blob in [format!("{{\"kwargs\": {{\"password\": \"{MARK}\""), format!("[\"{MARK}\"]"), MARK.to_owned()] {
        let id =
            client.schedule_job(job("echo").at(SystemClock.now().plus_seconds(1))).await.expect("added").id().clone();
        let mut connection = SqliteConnectOptions::new().filename(ground.database()).connect().await.expect("opens");
        let update = format!("UPDATE jobs SET kwargs = CAST('{blob}' AS BLOB) WHERE uuid = '{id}'");
        sqlx::query(AssertSqlSafe(update)).execute(&mut connection).await.expect("written");
        connection.close().await.expect("closes");
        let failed = async || {
            let job = client.find_job(&id).await.expect("there");
            (job.status == JobStatus::Failed).then_some(job.errors)
        };
        let errors = eventually("its end", failed).await;
        silent("a job that cannot be read", texts(&errors), &[]);
        let shown = ground.program().log("trace").run(&["job", "show", id.as_str(), "--events", "--json"]).await;
        silent("a job that cannot be read", [shown.stdout.as_str(), shown.stderr.as_str()], &[]);
    }
    // A schedule whose zone is gone is switched off, and says why.
    let new = NewSchedule::new("demo", "echo", Interval::new(1).expect("valid")).name("damaged");
    client.create_job_schedule(new.kwargs(json!({ "password": secret("damaged") }))).await.expect("created");
    let mut connection = SqliteConnectOptions::new().filename(ground.database()).connect().await.expect("opens");
    let update = "UPDATE job_schedules SET timezone = 'Nowhere/None' WHERE name = 'damaged'";
    sqlx::query(update).execute(&mut connection).await.expect("written");
    connection.close().await.expect("closes");
    client.shutdown().await;
}

/// Under CURVE, and with a broker that mixes its frames up, so that results stand where words should.
#[tokio::test]
async fn neither_keys_nor_mixed_up_messages_are_told() {
    let ground = Ground::start().await;
    let (mut broker, key) = Hostile::with_curve().await;
    let inventory = format!("broker: {{endpoint: '{}', shared_key: '{key}'}}\n", broker.endpoint);
    fs::write(ground.path().join("inventory.yaml"), inventory).expect("written");
    let client = ground.client(Role::Beside).await;
    let workers = Workers::One("w1".to_owned());
    let new = NewJob::new("demo", "echo").workers(workers).kwargs(json!({ "password": secret("argument") }));
    let mut handle = client.submit_job(new).await.expect("added");
    let owner = ground.program().log("trace").spawn_owner();
    let id = broker.post().await;
    broker.accept(&id).await;

    let payload = result("w1", &secret("result")).to_string();
    let header = ["", "NFPB01"];
    let mixed: [&[&str]; 6] = [
        &[&payload, "0x05", "demo", &id, "200"],
        &["0x05", &payload, "demo", &id, "200"],
        &["0x05", "demo", &payload, "200", "{}"],
        &["0x05", "demo", MARK, "200", "{}"],
        &["0x05", "demo", &id, &payload, "{}"],
        &["0x05", "demo", &id, "404", &payload],
    ];
    for frames in mixed {
        broker.frames(&[&header, frames].concat()).await;
    }
    broker.frames(&["", &payload, "0x05", "demo", &id, "200", "{}"]).await;
    broker.frames(&[&payload, "", "NFPB01", "0x05", "demo", &id, "200"]).await;
    let mut told = event(&id, 1);
    told["message"] = json!(secret("event"));
    broker.say("0x08", "demo", &id, "200", &told).await;
    broker.reply(&id, "200", &result("w1", &secret("result"))).await;
    let outcome = handle.outcome().await.expect("ends");
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    client.shutdown().await;

    let keys = secret_keys(&ground.database());
    let log = owner.stop().await;
    assert!(log.iter().any(|line| line.contains("Dropped")) && log.len() > 50, "{log:?}");
    silent("the log of the owner", texts(&log), &keys);
    ground.fabric.shutdown().await;
}

/// The secret key of the client, as its file has it.
fn secret_keys(database: &Path) -> Vec<String> {
    let file = database.with_file_name("private_keys").join("rust.key_secret");
    let text = fs::read_to_string(file).expect("there");
    let value = text.lines().find_map(|line| line.trim().strip_prefix("secret-key = ")).expect("a key");
    let key = value.trim_matches('"').to_owned();
    assert_eq!(key.len(), 40);
    vec![key]
}

/// Whatever the umask is: what is the client's own is for its owner only, and no folder is open to everybody.
#[tokio::test]
async fn files_are_for_their_owner_only() {
    for umask in ["000", "022"] {
        let ground = Ground::start().await;
        let (mut broker, key) = Hostile::with_curve().await;
        let inventory = format!("broker: {{endpoint: '{}', shared_key: '{key}'}}\n", broker.endpoint);
        fs::write(ground.path().join("inventory.yaml"), inventory).expect("written");
        let careless = script(&format!("umask {umask}"), env!("CARGO_BIN_EXE_norfab-under-test"));
        let program = ground.program().at(&careless.program);
        let added = program.run(&["job", "schedule", "demo", "echo", "--workers", "w1", "--in", "1s", "--json"]).await;
        assert_eq!(added.code, Some(0), "{added:?}");
        let owner = program.spawn_owner();
        broker.post().await;

        let mut files = Vec::new();
        all_below(&ground.path().join("__norfab__"), &mut files);
        let folder = ground.database().parent().expect("a folder").to_owned();
        for (path, mode) in &files {
            let is_own = path.starts_with(&folder);
            let most = match path.is_dir() {
                false => 0o600,
                true if is_own && *path != folder.join("public_keys") => 0o700,
                true => 0o775,
            };
            assert_eq!(mode & !most, 0, "umask {umask}: {} is {mode:o}", path.display());
        }
        let names: Vec<_> = files.iter().filter_map(|(path, _)| path.strip_prefix(&folder).ok()).collect();
        for name in [
            "rust.db",
            "rust.db-wal",
            "rust.db-shm",
            "rust.db.lock",
            "rust.db.owner",
            "private_keys/rust.key_secret",
            "public_keys/rust.key",
            "public_keys/broker.key",
        ] {
            assert!(names.contains(&Path::new(name)), "{name} is missing: {names:?}");
        }
        owner.stop().await;
        ground.fabric.shutdown().await;
    }
}

/// Everything below a folder, it included, with its permissions.
fn all_below(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    let about = fs::symlink_metadata(path).expect("there");
    found.push((path.to_owned(), about.permissions().mode() & 0o7777));
    if about.is_dir() {
        fs::read_dir(path).expect("readable").for_each(|entry| all_below(&entry.expect("readable").path(), found));
    }
}

/// A link where the database should be is followed, and its lock lies beside the database; a link where a lock should be is
/// refused.
#[tokio::test]
async fn links_lead_nobody_astray() {
    let ground = Ground::start().await;
    let client = ground.client(Role::Beside).await;
    client.shutdown().await;
    let (database, real) = (ground.database(), ground.path().join("real.db"));
    fs::rename(&database, &real).expect("moved");
    std::os::unix::fs::symlink(&real, &database).expect("linked");
    let owner = ground.program().start_owner().await;
    let by_its_name = Program::new(env!("CARGO_BIN_EXE_norfab-under-test"), ground.path(), "rust");
    let (status, log) = by_its_name.spawn_owner().end().await;
    assert_eq!(status.code(), Some(3), "{log:?}");
    assert!(ground.path().join("real.db.lock").exists() && !database.with_extension("db.lock").exists());
    owner.stop().await;

    let precious = ground.path().join("precious");
    fs::write(&precious, "precious").expect("written");
    fs::remove_file(ground.path().join("real.db.lock")).expect("removed");
    std::os::unix::fs::symlink(&precious, ground.path().join("real.db.lock")).expect("linked");
    let (status, log) = ground.program().spawn_owner().end().await;
    assert_eq!(status.code(), Some(1), "{log:?}");
    assert!(log.concat().contains("symbolic link"), "{log:?}");
    assert_eq!(fs::read_to_string(&precious).expect("there"), "precious");
}
