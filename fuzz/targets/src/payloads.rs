//! Payloads as other hands may leave them, in every form that NorFab has ever written: read, or told to be unreadable, and
//! never larger than they may be. What the project writes itself is read as it was given, digit by digit.

use std::sync::{Mutex, PoisonError};

use norfab_model::{JobDetail, JobId, Json, Limits, NewJob, Store, StoreError, Timestamp};
use norfab_store::{Codec, CodecChoice, Durability, SqliteStore, StoreOptions};
use rusqlite::Connection;
use rusqlite::types::Value;

const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);
/// The columns that hold payloads.
const COLUMNS: [&str; 3] = ["args", "kwargs", "result_data"];
/// What is kept of a result, and the room for what stands for those that are not.
const MOST_BYTES: usize = (64 + 8) << 20;

/// A database with a job whose payloads other hands write.
struct Payloads {
    store: SqliteStore,
    hand: Connection,
    _folder: tempfile::TempDir,
}

/// One for each way to compress; made once, as that takes longer than an input to try.
static PAYLOADS: Mutex<Vec<Payloads>> = Mutex::new(Vec::new());

/// Writes the input to a column: its first byte says which, and as what; or gives it to a new job, where it is JSON.
pub fn payloads(data: &[u8]) {
    let [what, input @ ..] = data else { return };
    let mut all = PAYLOADS.lock().unwrap_or_else(PoisonError::into_inner);
    // Taken out, so that what went wrong once is not met again by the next input.
    let mut kept = std::mem::take(&mut *all);
    if kept.is_empty() {
        kept = [Codec::Zlib, Codec::Lz4].map(|codec| crate::wait(Payloads::make(codec))).into();
    }
    let text = String::from_utf8_lossy(input);
    let column = COLUMNS[usize::from(what / 4) % COLUMNS.len()];
    match what % 4 {
        0 => crate::wait(kept[0].read(column, &Value::Blob(input.to_vec()))),
        1 => crate::wait(kept[0].read(column, &Value::Text(text.into_owned()))),
        codec => crate::wait(kept[usize::from(codec) - 2].round_trip(&text)),
    }
    *all = kept;
}

impl Payloads {
    async fn make(codec: Codec) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("payloads.db");
        let codec = CodecChoice::Set(codec);
        let options = StoreOptions { durability: Durability::Normal, codec, ..StoreOptions::default() };
        let store = SqliteStore::open(&path, &options).await.expect("it opens");
        let hand = Connection::open(&path).expect("it opens");
        hand.execute_batch("PRAGMA synchronous = OFF").expect("a setting");
        let kept = Self { store, hand, _folder: folder };
        kept.add(NewJob::new("dummy", "echo")).await;
        kept
    }

    /// The job that there is then.
    async fn add(&self, new: NewJob) -> JobDetail {
        let id = JobId::new("touched").expect("a name");
        let job = Limits::default().check_job(NOW, NewJob { id: Some(id), ..new }).expect("a valid job");
        self.store.job_add(NOW, &job).await.expect("the job is added");
        self.detail().await.expect("what was just written can be read")
    }

    async fn detail(&self) -> Result<JobDetail, StoreError> {
        let detail = self.store.job_detail(&JobId::new("touched").expect("a name")).await;
        detail.map(|detail| detail.expect("it is there"))
    }

    async fn read(&self, column: &str, value: &Value) {
        let write = |value: &Value| {
            let changed = self.hand.execute(&format!("UPDATE jobs SET {column} = ?1"), [value]);
            assert_eq!(changed.expect("any value can be written"), 1);
        };
        write(value);
        match self.detail().await {
            Ok(JobDetail { args, kwargs, results, .. }) => {
                assert!(args.is_array() && kwargs.is_object(), "they have the shape of arguments");
                let results: usize = results.iter().map(|(worker, result)| worker.len() + result.as_str().len()).sum();
                let bytes = args.as_str().len().max(kwargs.as_str().len()).max(results);
                assert!(bytes <= MOST_BYTES, "{bytes} bytes came of it");
            }
            Err(StoreError::Unreadable { job, .. }) => assert_eq!(job, "touched"),
            Err(other) => panic!("{other}"),
        }
        write(&Value::Null);
        self.detail().await.expect("it can be read again");
    }

    async fn round_trip(&self, text: &str) {
        let Ok(json) = Json::parse(text) else { return };
        let new = NewJob::new("dummy", "echo");
        let new = if json.is_array() { new.args(json.clone()) } else { new.kwargs(json.clone()) };
        if Limits::default().check_job(NOW, new.clone()).is_err() {
            return;
        }
        self.hand.execute("DELETE FROM jobs", ()).expect("it goes");
        let JobDetail { args, kwargs, .. } = self.add(new).await;
        assert_eq!(if json.is_array() { args } else { kwargs }.as_str(), json.as_str(), "it is what was given");
    }
}
