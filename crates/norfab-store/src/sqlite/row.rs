//! A row as SQLite holds it, and the job that it stands for. SQLite keeps any type in any column, and the Python client's
//! rows have gaps: what can be understood is, the rest makes its own row unreadable and no other.

use std::collections::{BTreeMap, BTreeSet};

use norfab_model::{InputRequest, Job, JobId, JobStatus, Origin, ScheduleId, Timestamp, UnreadableJob, Workers};
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use serde::de::DeserializeOwned;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Sqlite, Type};

use super::statement::{FromColumn, FromRow, row};

/// Seconds that a job of the Python client has when it names none.
const DEFAULT_TIMEOUT: u32 = 600;

/// One value, whatever its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    /// A text with bytes that are none.
    NotUtf8(Vec<u8>),
    Blob(Vec<u8>),
}

impl FromSql for Cell {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Self::Text(text.to_owned()),
                Err(_) => Self::NotUtf8(bytes.to_vec()),
            },
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        })
    }
}

/// For the check of the statements when they are compiled: a column of any type.
impl Type<Sqlite> for Cell {
    fn type_info() -> SqliteTypeInfo {
        <Vec<u8> as Type<Sqlite>>::type_info()
    }
}

impl<'r> Decode<'r, Sqlite> for Cell {
    fn decode(_: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        Err("rows are read by another driver".into())
    }
}

impl FromColumn<'_> for Cell {
    fn from_column(row: &rusqlite::Row<'_>, place: usize) -> rusqlite::Result<Self> {
        row.get(place)
    }
}

/// A value of a row that is being read, whatever its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen<'r>(ValueRef<'r>);

impl<'r> FromColumn<'r> for Seen<'r> {
    fn from_column(row: &'r rusqlite::Row<'_>, place: usize) -> rusqlite::Result<Self> {
        row.get_ref(place).map(Self)
    }
}

/// What is wrong with a column.
pub(super) type Wrong = &'static str;

impl Cell {
    /// The value as if the row were being read.
    pub(super) fn seen(&self) -> Seen<'_> {
        Seen(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::NotUtf8(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        })
    }

    /// The text, also of what is no text: to name a row that cannot be read.
    pub(super) fn shown(&self) -> String {
        self.seen().shown()
    }

    pub(super) fn text(&self) -> Result<&str, Wrong> {
        self.seen().text()
    }

    pub(super) fn optional_text(&self) -> Result<Option<&str>, Wrong> {
        self.seen().optional_text()
    }

    /// An instant of the database.
    pub(super) fn instant(&self) -> Result<Option<Timestamp>, Wrong> {
        self.seen().instant()
    }
}

impl<'r> Seen<'r> {
    /// The value as its own copy.
    pub(super) fn cell(self) -> rusqlite::Result<Cell> {
        Ok(Cell::column_result(self.0)?)
    }

    pub(super) fn is_null(self) -> bool {
        self.0 == ValueRef::Null
    }

    /// The number, if it is a whole one.
    pub(super) fn integer(self) -> Option<i64> {
        if let ValueRef::Integer(number) = self.0 { Some(number) } else { None }
    }

    /// The text, also of what is no text: to name a row that cannot be read.
    pub(super) fn shown(self) -> String {
        match self.0 {
            ValueRef::Null => String::new(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    pub(super) fn text(self) -> Result<&'r str, Wrong> {
        match self.0 {
            ValueRef::Text(bytes) => str::from_utf8(bytes).map_err(|_| "is no text"),
            ValueRef::Null => Err("is NULL"),
            _ => Err("is no text"),
        }
    }

    pub(super) fn optional_text(self) -> Result<Option<&'r str>, Wrong> {
        if self.is_null() { Ok(None) } else { self.text().map(Some) }
    }

    /// An instant of the database.
    pub(super) fn instant(self) -> Result<Option<Timestamp>, Wrong> {
        let seconds = match self.0 {
            ValueRef::Null => return Ok(None),
            ValueRef::Integer(seconds) => seconds as f64,
            ValueRef::Real(seconds) => seconds,
            _ => return Err("is no number of seconds"),
        };
        Timestamp::from_seconds_f64(seconds).map(Some).map_err(|_| "is no date of this calendar")
    }

    fn count(self) -> u32 {
        self.integer().map_or(0, |count| u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    }

    /// Whole seconds, rounded up; the default when there is nothing sensible.
    fn timeout(self) -> u32 {
        let seconds = match self.0 {
            // The cast stops at the bounds of the type, and NaN becomes 0.
            ValueRef::Real(seconds) => seconds.ceil() as u32,
            _ => self.count(),
        };
        if seconds == 0 { DEFAULT_TIMEOUT } else { seconds }
    }

    /// JSON in a text column. NULL and the empty text are nothing.
    fn json<T: DeserializeOwned>(self) -> Result<Option<T>, Wrong> {
        match self.optional_text()? {
            None | Some("") => Ok(None),
            Some(text) => serde_json::from_str(text).map(Some).map_err(|_| "is no JSON of the expected shape"),
        }
    }

    /// The workers that are asked for. Nothing is nobody, as for the Python client; a word without quotes is one.
    pub(super) fn workers(self) -> Result<Option<Workers>, Wrong> {
        match self.optional_text()? {
            None | Some("") => Ok(None),
            Some(text) if text.starts_with(['"', '[']) => {
                serde_json::from_str(text).map(Some).map_err(|_| "names no workers")
            }
            Some(word) if word.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) => {
                Ok(Some(Workers::from_names(vec![word.to_owned()])))
            }
            Some(_) => Err("names no workers"),
        }
    }

    /// Error texts. Anything else that stands there is kept as one error.
    fn errors(self) -> Vec<String> {
        match self.json::<Vec<serde_json::Value>>() {
            Ok(errors) => errors.unwrap_or_default().into_iter().map(error_text).collect(),
            Err(_) => vec![self.shown()],
        }
    }
}

fn error_text(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

row! {
    /// What `sql/job/load.sql` returns of a job.
    pub(super) struct Columns<C> {
        pub(super) row: i64,
        pub(super) uuid: C,
        pub(super) service: C,
        pub(super) task: C,
        pub(super) status: C,
        pub(super) timeout: C,
        pub(super) deadline: C,
        pub(super) workers_requested: C,
        pub(super) workers_dispatched: C,
        pub(super) workers_started: C,
        pub(super) workers_completed: C,
        pub(super) pending_inputs: C,
        pub(super) errors: C,
        pub(super) last_poll: C,
        pub(super) scheduled_for: C,
        pub(super) start_deadline: C,
        pub(super) schedule_id: C,
        pub(super) origin: C,
        pub(super) created_at: C,
        pub(super) released_at: C,
        pub(super) started_at: C,
        pub(super) finished_at: C,
        pub(super) dispatch_target: C,
        pub(super) posts_sent: C,
        pub(super) posts_refused: C,
        pub(super) next_attempt_at: C,
        pub(super) args: C,
        pub(super) kwargs: C,
        pub(super) result_data: C,
    }
}

/// The columns of a job as the statement is checked for.
pub(super) type StoredJob = Columns<Cell>;

/// A row of a job: its number, and the payloads that were asked for.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) row: i64,
    pub(super) args: Cell,
    pub(super) kwargs: Cell,
    pub(super) result_data: Cell,
}

/// A row with the job that it stands for.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) row: Row,
    pub(super) job: Result<Job, Unreadable>,
}

impl FromRow for Loaded {
    const COLUMNS: &'static [&'static str] = StoredJob::COLUMNS;

    fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let seen = Columns::<Seen<'_>>::look(row)?;
        let (args, kwargs, result_data) = (seen.args.cell()?, seen.kwargs.cell()?, seen.result_data.cell()?);
        Ok(Self { row: Row { row: seen.row, args, kwargs, result_data }, job: seen.job() })
    }
}

/// A row that is no job.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// Its number.
    pub(super) row: i64,
    /// What stands in its `uuid` column, and why it is no job.
    pub(super) what: UnreadableJob,
}

impl Unreadable {
    /// The row of this number, with this in its `uuid` column, cannot be read for this reason.
    pub(super) fn new(row: i64, uuid: &str, reason: &str) -> Self {
        Self { row, what: UnreadableJob { uuid: uuid.chars().take(255).collect(), reason: reason.to_owned() } }
    }
}

impl Columns<Seen<'_>> {
    /// The job.
    fn job(&self) -> Result<Job, Unreadable> {
        let unreadable =
            |(column, wrong)| Unreadable::new(self.row, &self.uuid.shown(), &format!("its {column} {wrong}"));
        self.read().map_err(unreadable)
    }

    fn read(&self) -> Result<Job, (&'static str, Wrong)> {
        fn of<T>(column: &'static str, read: Result<T, Wrong>) -> Result<T, (&'static str, Wrong)> {
            read.map_err(|wrong| (column, wrong))
        }
        let uuid = of("uuid", self.uuid.text())?;
        let status = of("status", self.status.text())?;
        let schedule_id = of("schedule_id", self.schedule_id.optional_text())?.filter(|id| !id.is_empty());
        Ok(Job {
            uuid: of("uuid", JobId::new(uuid).map_err(|_| "is no identity"))?,
            service: of("service", self.service.text())?.to_owned(),
            task: of("task", self.task.text())?.to_owned(),
            status: of("status", status.parse::<JobStatus>().map_err(|_| "is unknown to this release"))?,
            workers_requested: of("workers_requested", self.workers_requested.workers())?
                .unwrap_or(Workers::List(Vec::new())),
            workers_dispatched: of("workers_dispatched", self.workers_dispatched.json::<Vec<String>>())?
                .unwrap_or_default(),
            workers_started: of("workers_started", self.workers_started.json::<BTreeSet<String>>())?
                .unwrap_or_default(),
            workers_completed: of("workers_completed", self.workers_completed.json::<BTreeSet<String>>())?
                .unwrap_or_default(),
            pending_inputs: of("pending_inputs", self.pending_inputs.json::<BTreeMap<String, InputRequest>>())?
                .unwrap_or_default(),
            errors: self.errors.errors(),
            timeout: self.timeout.timeout(),
            deadline: of("deadline", self.deadline.instant())?,
            scheduled_for: of("scheduled_for", self.scheduled_for.instant())?,
            start_deadline: of("start_deadline", self.start_deadline.instant())?,
            schedule_id: of("schedule_id", schedule_id.map(ScheduleId::new).transpose().map_err(|_| "is no identity"))?,
            origin: Origin::from_column(of("origin", self.origin.optional_text())?),
            created_at: of("created_at", self.created_at.instant())?,
            released_at: of("released_at", self.released_at.instant())?,
            started_at: of("started_at", self.started_at.instant())?,
            finished_at: of("finished_at", self.finished_at.instant())?,
            dispatch_target: of("dispatch_target", self.dispatch_target.workers())?,
            posts_sent: self.posts_sent.count(),
            posts_refused: self.posts_refused.count(),
            next_attempt_at: of("next_attempt_at", self.next_attempt_at.instant())?,
            // The Python client writes 0 for never.
            last_poll: of("last_poll_timestamp", self.last_poll.instant())?.filter(|at| *at > Timestamp::EPOCH),
        })
    }
}
