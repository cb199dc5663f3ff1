//! A job database of the Python client: opened here without loss, and by the real Python client afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{W1, W2, completed, open, run, workers_of};
use norfab_client::{Client, JobFilter, JobId, JobStatus, Role, SqliteStore};
use norfab_tests::{Peer, PythonClient, Security};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Column, ConnectOptions, Connection, Row, TypeInfo, ValueRef};

#[derive(Deserialize)]
struct Recorded {
    jobs: Vec<RecordedJob>,
}

#[derive(Deserialize)]
struct RecordedJob {
    name: String,
    uuid: String,
    status: String,
    args: Value,
    kwargs: Value,
    result_data: Option<BTreeMap<String, Value>>,
    errors: Option<Vec<String>>,
    workers_requested: Value,
    workers_dispatched: Option<Vec<String>>,
    events: Vec<RecordedEvent>,
}

#[derive(Deserialize)]
struct RecordedEvent {
    message: String,
    severity: String,
    event_data: Value,
}

fn fixture(extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peer/fixtures").join(format!("python-client-0.25.0.{extension}"))
}

fn recorded() -> Recorded {
    let text = std::fs::read_to_string(fixture("json")).expect("the fixture's description");
    serde_json::from_str(&text).expect("JSON")
}

/// Puts the recorded database where a client of this name looks for it.
fn install(base_dir: &Path, name: &str) -> PathBuf {
    let folder = base_dir.join("__norfab__/files/client").join(name);
    std::fs::create_dir_all(&folder).expect("folder");
    let path = folder.join(format!("{name}.db"));
    std::fs::copy(fixture("db"), &path).expect("copied");
    path
}

/// Every value of the legacy columns as its type and bytes, row by row.
async fn legacy_columns(path: &Path) -> Vec<Vec<String>> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection: SqliteConnection = options.connect().await.expect("opens");
    let mut rows = Vec::new();
    for query in [
        "SELECT uuid, service, task, args, kwargs, timeout, deadline, status, workers_requested, workers_dispatched, \
         workers_started, workers_completed, result_data, errors, received_timestamp, started_timestamp, \
         completed_timestamp, created_at, last_poll_timestamp FROM jobs ORDER BY rowid",
        "SELECT id, job_uuid, message, severity, task, event_data, created_at FROM events ORDER BY id",
    ] {
        for row in sqlx::query(query).fetch_all(&mut connection).await.expect("reads") {
            rows.push(row.columns().iter().map(|column| shown(&row, column.ordinal())).collect());
        }
    }
    connection.close().await.expect("closes");
    rows
}

fn shown(row: &sqlx::sqlite::SqliteRow, column: usize) -> String {
    let value = row.try_get_raw(column).expect("a column");
    let kind = value.type_info().name().to_owned();
    match kind.as_str() {
        "NULL" => kind,
        "INTEGER" => format!("{kind} {}", row.get_unchecked::<i64, _>(column)),
        "REAL" => format!("{kind} {}", row.get_unchecked::<f64, _>(column).to_bits()),
        _ => format!("{kind} {:?}", row.get_unchecked::<Vec<u8>, _>(column)),
    }
}

/// All 19 jobs and their events read as the recording describes them, and no legacy column changes by it.
#[tokio::test]
async fn a_recorded_database_opens_without_loss() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = install(folder.path(), "fixture");
    let before = legacy_columns(&path).await;
    SqliteStore::migrate(&path).await.expect("migrates");
    assert_eq!(legacy_columns(&path).await, before);

    let client =
        Client::builder().folder(folder.path()).name("fixture").role(Role::ReadOnly).build().await.expect("opens");
    let recorded = recorded().jobs;
    assert_eq!(recorded.len(), 19);
    let page = client.list_jobs(&JobFilter::default()).await.expect("lists");
    assert_eq!(page.unreadable, []);
    let listed: Vec<_> = page.jobs.iter().rev().map(|job| job.uuid.as_str()).collect();
    assert_eq!(listed, recorded.iter().map(|job| job.uuid.as_str()).collect::<Vec<_>>());
    for expected in recorded {
        compare(&client, expected).await;
    }
    client.shutdown().await;
    assert_eq!(legacy_columns(&path).await, before);
}

async fn compare(client: &Client, expected: RecordedJob) {
    let id = JobId::new(expected.uuid).expect("an id");
    let found = client.get_job(&id).await.expect("readable");
    let name = expected.name;
    assert_eq!(found.job.status.as_str(), expected.status, "{name}");
    assert_eq!(value(&found.args), expected.args, "{name}");
    assert_eq!(value(&found.kwargs), expected.kwargs, "{name}");
    assert_eq!(serde_json::to_value(&found.job.workers_requested).expect("JSON"), expected.workers_requested, "{name}");
    assert_eq!(found.job.workers_dispatched, expected.workers_dispatched.unwrap_or_default(), "{name}");
    assert_eq!(found.job.errors, expected.errors.unwrap_or_default(), "{name}");
    let results: BTreeMap<_, _> = found.results.iter().map(|(worker, raw)| (worker.clone(), value(raw))).collect();
    assert_eq!(results, expected.result_data.unwrap_or_default(), "{name}");

    let events = client.job_events(&id, 0, 1000).await.expect("readable");
    assert_eq!(events.len(), expected.events.len(), "{name}");
    for (found, expected) in events.iter().zip(expected.events) {
        assert_eq!((&found.message, &found.severity), (&expected.message, &expected.severity), "{name}");
        assert_eq!(value(&found.data), expected.event_data, "{name}");
    }
}

fn value(json: &norfab_client::Json) -> Value {
    json.to().expect("JSON")
}

/// The real Python client starts on the migrated database, lists every job and runs one; then our client goes on with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_goes_on_with_it() {
    let Some(peer) = Peer::builder().workers(2).start().await else { return };
    let path = install(peer.base_dir(), "fixture");
    SqliteStore::migrate(&path).await.expect("migrates");
    let python = PythonClient::new(peer.base_dir(), "fixture").expect("the peer has a Python");
    let report = python.run("dummy", "echo", &json!({"n": 1})).report().await;
    assert_eq!(report.jobs.len(), 19);
    let recorded = recorded().jobs;
    for (listed, recorded) in report.jobs.iter().zip(&recorded) {
        assert_eq!((&listed.uuid, &listed.args, &listed.kwargs), (&recorded.uuid, &recorded.args, &recorded.kwargs));
    }
    assert_eq!(report.result[W1]["failed"], false);
    assert_eq!(report.result[W2]["failed"], false);

    let client = Client::builder().folder(peer.base_dir()).name("fixture").build().await.expect("opens");
    assert_eq!(workers_of(run(&client, crate::common::job("echo")).await).len(), 2);
    let page = client.list_jobs(&JobFilter::default()).await.expect("lists");
    assert_eq!((page.jobs.len(), page.unreadable.len()), (21, 0));
    client.shutdown().await;
}

/// A database that was made here in NorFab's layout serves the Python client, jobs of kinds that it does not know included.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_made_here_serves_the_python_client() {
    let Some((peer, client)) = crate::common::fabric(Security::Curve, 1).await else { return };
    let kwargs = json!({"text": "zażółć", "numbers": [0.1, 9_007_199_254_740_993_u64, null]});
    completed(run(&client, crate::common::job("echo").kwargs(kwargs.clone())).await);
    let mut events = client.submit_job(crate::common::job("emit").kwargs(json!({"n": 2}))).await.expect("added");
    completed(crate::common::outcome(&mut events).await);
    let waiting =
        client.schedule_job(crate::common::job("echo").at(crate::common::in_seconds(3600))).await.expect("added");
    let withdrawn =
        client.schedule_job(crate::common::job("echo").at(crate::common::in_seconds(3600))).await.expect("added");
    client.cancel_scheduled_job(withdrawn.id()).await.expect("cancelled");
    client.shutdown().await;

    let python = PythonClient::new(peer.base_dir(), "rust").expect("the peer has a Python");
    let report = python.run("dummy", "echo", &json!({})).report().await;
    let statuses: Vec<_> = report.jobs.iter().map(|job| job.status.as_str()).collect();
    assert_eq!(statuses, ["COMPLETED", "COMPLETED", "SCHEDULED", "CANCELLED"]);
    assert_eq!(report.jobs[0].kwargs, kwargs);
    assert_eq!(report.jobs[0].result_data[W1]["result"]["kwargs"], kwargs);
    assert_eq!(report.result[W1]["failed"], false);

    let client = open(&peer).await;
    let job = client.find_job(waiting.id()).await.expect("there");
    assert_eq!(job.status, JobStatus::Scheduled);
    client.shutdown().await;
}
