//! A folder and a fabric for one test, and another program that has the database.

use std::path::{Path, PathBuf};

use norfab_client::{Client, ClientBuilder, Job, JobFilter, JobId, NewJob, Role, SystemClock, Workers};
use norfab_loopback::{Loopback, LoopbackConfig};
use norfab_tests::{Program, eventually};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;

const NAME: &str = "rust";

/// A fabric, and a folder whose inventory leads to it.
pub(crate) struct Ground {
    pub(crate) fabric: Loopback,
    folder: TempDir,
}

impl Ground {
    pub(crate) async fn start() -> Self {
        let fabric = Loopback::start(LoopbackConfig::default(), SystemClock).await.expect("a free port");
        let ground = Self { fabric, folder: tempfile::tempdir().expect("temporary folder") };
        ground.lead_to(ground.fabric.endpoint());
        ground
    }

    /// Has the inventory lead to another place.
    pub(crate) fn lead_to(&self, endpoint: &str) {
        let inventory = format!("broker: {{endpoint: '{endpoint}', zmq_auth: false}}\n");
        std::fs::write(self.path().join("inventory.yaml"), inventory).expect("written");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn program(&self) -> Program {
        Program::new(env!("CARGO_BIN_EXE_norfab-under-test"), self.path(), NAME)
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder().folder(self.path()).name(NAME)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.builder().database_path().expect("a path")
    }

    pub(crate) async fn client(&self, role: Role) -> Client {
        self.builder().role(role).build().await.expect("opens")
    }

    /// A connection of another program that holds the write lock until it is let go.
    pub(crate) async fn locked(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.database());
        let mut other = options.connect().await.expect("opens");
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("locks");
        other
    }

    /// All jobs of the database.
    pub(crate) async fn jobs(&self) -> Vec<Job> {
        let client = self.client(Role::ReadOnly).await;
        let page = client.list_jobs(&JobFilter { limit: 1000, ..JobFilter::default() }).await.expect("lists");
        client.shutdown().await;
        assert_eq!(page.unreadable, []);
        page.jobs
    }

    /// Whether the broker got a POST of this job.
    pub(crate) fn was_sent(&self, id: &JobId) -> bool {
        self.fabric.messages().iter().any(|message| message.command == "0x04" && message.uuid == id.as_str())
    }

    /// Waits until the broker has got a POST of this job.
    pub(crate) async fn until_sent(&self, id: &JobId) {
        eventually("the job on its way", async || self.was_sent(id).then_some(())).await;
    }
}

pub(crate) async fn let_go(mut other: SqliteConnection) {
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("unlocks");
    other.close().await.expect("closes");
}

/// A job to the first worker.
pub(crate) fn job(task: &str) -> NewJob {
    NewJob::new("demo", task).workers(Workers::One("demo-worker-1".to_owned()))
}
