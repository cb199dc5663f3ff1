//! Messages to clients, key by key in the order in which NorFab writes them.

use norfab_model::{Json, Timestamp};
use norfab_nfp::{Command, Envelope, Frames, Header, Status};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// A message to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// The client's name, which is its address.
    pub(crate) client: Vec<u8>,
    /// The frames behind the address.
    pub(crate) frames: Frames,
}

/// A message of seven frames.
pub(crate) fn message(command: Command, service: &str, uuid: &str, status: Status, payload: &impl Serialize) -> Frames {
    // Every payload here is a plain structure with text keys, which always has a JSON form.
    let payload = serde_json::to_vec(payload).unwrap_or_default();
    let fields = [service.as_bytes().to_vec(), uuid.as_bytes().to_vec(), status.as_bytes().to_vec(), payload];
    Envelope { command: command.as_bytes().to_vec(), fields }.into_frames(Header::Broker)
}

/// The five frames by which the broker refuses a command that is none of a client's.
pub(crate) fn unsupported(service: &[u8], command: &[u8]) -> Frames {
    let text = format!("NFPBroker - Unsupported client command '{}'", python_bytes(command));
    vec![
        Vec::new(),
        Header::Broker.as_bytes().to_vec(),
        Command::Response.as_bytes().to_vec(),
        service.to_vec(),
        text.into_bytes(),
    ]
}

/// 202: the request goes to these workers.
#[derive(Serialize)]
pub(crate) struct Dispatched<'a> {
    pub(crate) workers: Vec<&'a str>,
    pub(crate) uuid: &'a str,
    pub(crate) target: &'a str,
    pub(crate) status: &'static str,
    pub(crate) service: &'a str,
}

/// 400: there is nobody to hand the request to.
#[derive(Serialize)]
pub(crate) struct Refused<'a> {
    pub(crate) workers: (),
    pub(crate) uuid: &'a str,
    pub(crate) target: &'a str,
    pub(crate) status: &'static str,
    pub(crate) service: &'a str,
    pub(crate) errors: [String; 1],
}

/// 201: the job is stored.
#[derive(Serialize)]
pub(crate) struct Stored<'a> {
    pub(crate) worker: &'a str,
    pub(crate) uuid: &'a str,
    pub(crate) status: &'static str,
    pub(crate) service: &'a str,
}

/// 300, 102 and 404: how a job stands.
#[derive(Serialize)]
pub(crate) struct Standing<'a> {
    pub(crate) worker: &'a str,
    pub(crate) uuid: &'a str,
    pub(crate) service: &'a str,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_request: Option<&'a Question>,
}

/// A question to the client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Question {
    pub(crate) id: String,
    pub(crate) question: String,
    pub(crate) default: bool,
    pub(crate) timeout: i64,
    pub(crate) metadata: Empty,
}

/// `{}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Empty {}

/// An event of a job.
#[derive(Serialize)]
pub(crate) struct Event<'a> {
    pub(crate) worker: &'a str,
    pub(crate) service: &'a str,
    pub(crate) uuid: &'a str,
    pub(crate) event_type: &'static str,
    pub(crate) message: &'a str,
    pub(crate) task: &'a str,
    pub(crate) status: &'static str,
    pub(crate) resource: Value,
    pub(crate) severity: &'static str,
    pub(crate) timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extras: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<i64>,
}

/// What a worker answers for one job.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WorkerResult {
    pub(crate) result: Json,
    pub(crate) failed: bool,
    pub(crate) errors: Vec<String>,
    pub(crate) task: String,
    pub(crate) messages: Vec<String>,
    pub(crate) juuid: String,
    pub(crate) resources: [&'static str; 0],
    pub(crate) resources_failed: [&'static str; 0],
    pub(crate) status: &'static str,
    pub(crate) task_started: String,
    pub(crate) task_completed: String,
    /// Left out of results of tasks that raised.
    pub(crate) service: Option<String>,
    pub(crate) diff: (),
    pub(crate) dry_run: bool,
}

/// A time as in results: `Sun Nov 29 15:59:15 2026`. NorFab writes local time; here it is UTC.
pub(crate) fn result_time(at: Timestamp) -> String {
    const FORM: &[BorrowedFormatItem<'_>] = format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    );
    shown(at, FORM)
}

/// A time as in events: `29-Nov-2026 15:59:32.308`. NorFab writes local time; here it is UTC.
pub(crate) fn event_time(at: Timestamp) -> String {
    const FORM: &[BorrowedFormatItem<'_>] =
        format_description!("[day]-[month repr:short]-[year] [hour]:[minute]:[second].[subsecond digits:3]");
    shown(at, FORM)
}

fn shown(at: Timestamp, form: &[BorrowedFormatItem<'_>]) -> String {
    OffsetDateTime::from(at).format(form).unwrap_or_default()
}

/// Bytes as Python shows them, `b'..'`: the broker's texts contain them so.
pub(crate) fn python_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    let mut text = format!("b{}", char::from(quote));
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            _ if byte == quote => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push(char::from(quote));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_bytes(bytes: &[u8], expected: &str) {
        assert_eq!(python_bytes(bytes), expected);
    }

    #[test]
    fn bytes_as_python_shows_them() {
        check_bytes(b"all", "b'all'");
        check_bytes("ż".as_bytes(), r"b'\xc5\xbc'");
        check_bytes(b"x'y", r#"b"x'y""#);
        check_bytes(b"x'\"\xff", r#"b'x\'"\xff'"#);
        check_bytes(b"[\"w1\"]", r#"b'["w1"]'"#);
        check_bytes(b"a\\\n\r\t\0", r"b'a\\\n\r\t\x00'");
    }

    #[test]
    fn times_as_norfab_writes_them() {
        let at = Timestamp::parse("2026-11-09T15:59:32.308999Z").unwrap();
        assert_eq!(result_time(at), "Mon Nov  9 15:59:32 2026");
        assert_eq!(event_time(at), "09-Nov-2026 15:59:32.308");
    }
}
