//! One worker's answer, read.

use norfab_model::Json;
use serde::{Deserialize, Serialize};

/// The fields of a worker's result that NorFab's own results have. What else is in it stays in the raw JSON.
///
/// ```
/// use norfab_client::{Json, WorkerResult};
///
/// let raw = Json::parse(r#"{"result": 1, "failed": true, "errors": ["timed out"], "status": "error"}"#)?;
/// let result = WorkerResult::read(&raw)?;
/// assert!(result.failed && result.errors == ["timed out"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerResult {
    /// What the task returned.
    #[serde(default = "null")]
    pub result: Json,
    /// Whether the task failed.
    #[serde(default)]
    pub failed: bool,
    /// Why, in the worker's words.
    #[serde(default)]
    pub errors: Vec<String>,
    /// `completed`, `failed`, `error`, `timeout` or what the task says.
    #[serde(default)]
    pub status: Option<String>,
    /// Texts for a person.
    #[serde(default)]
    pub messages: Vec<String>,
}

impl WorkerResult {
    /// Reads a worker's answer.
    ///
    /// # Errors
    /// When it is no JSON object of this shape.
    pub fn read(raw: &Json) -> Result<Self, serde_json::Error> {
        if raw.is_object() { raw.to() } else { Err(serde::de::Error::custom("a worker's result is a JSON object")) }
    }
}

fn null() -> Json {
    Json::from(serde_json::Value::Null)
}
