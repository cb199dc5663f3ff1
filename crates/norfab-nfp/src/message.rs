//! What the broker says to a client: frames become a typed message, and a message becomes what it means for a job.
//! Pure; whatever is wrong with a message is a [`Malformed`], never a panic.

use std::collections::BTreeMap;
use std::fmt;

use norfab_model::{Context, FabricEvent, FabricEventKind, InputRequest, JobId, Json, Reply, ReplyKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::command::target_of;
use crate::command::{BROKER_SERVICE, INVENTORY_SERVICE};
use crate::error::Malformed;
use crate::first::First;
use crate::frame::{Command, Envelope, Frames, Header, shown, text, word};

/// The kinds of messages that a client understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An answer to a request.
    Response,
    /// Something that happened during a job.
    Event,
    /// An answer to a question to the broker; the same comes as a response too.
    Mmi,
}

/// The status of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 102: a worker waits for input.
    WaitingInput,
    /// 200: a result, an event or an answer.
    Ok,
    /// 201: a worker has stored the job.
    Stored,
    /// 202: the broker hands the request to workers.
    Accepted,
    /// 300: a worker has not finished the job.
    Pending,
    /// 400: the broker could not hand the request over.
    Refused,
    /// 404: a worker does not know the job.
    NotFound,
}

impl Status {
    const ALL: [Self; 7] =
        [Self::WaitingInput, Self::Ok, Self::Stored, Self::Accepted, Self::Pending, Self::Refused, Self::NotFound];

    /// The three digits.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WaitingInput => "102",
            Self::Ok => "200",
            Self::Stored => "201",
            Self::Accepted => "202",
            Self::Pending => "300",
            Self::Refused => "400",
            Self::NotFound => "404",
        }
    }

    /// The frame.
    #[must_use]
    pub const fn as_bytes(self) -> &'static [u8] {
        self.as_str().as_bytes()
    }

    /// Reads the frame; `None` for an unknown status.
    #[must_use]
    pub fn from_bytes(frame: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_bytes() == frame)
    }
}

/// A message of the broker, or of a worker through it.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerMessage {
    /// What kind it is.
    pub kind: Kind,
    /// The service of the worker that answers, which need not be the one that was asked.
    pub service: String,
    /// The job, or the question to the broker.
    pub uuid: JobId,
    /// The status.
    pub status: Status,
    /// The payload as it came.
    pub payload: Json,
}

/// What a message means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// News of a job; several when one message holds the results of several workers.
    Replies(Vec<Reply>),
    /// The broker's answer to a question.
    Answer {
        /// The question.
        id: JobId,
        /// The answer.
        answer: Json,
    },
}

impl BrokerMessage {
    /// Reads a message as it comes from the socket.
    ///
    /// # Errors
    /// [`Malformed`] for everything that is no whole message of a known kind: too few frames (the broker's refusal of
    /// an unknown command among them), another header, command or status, a payload that is not JSON, a file stream.
    pub fn from_frames(frames: Frames) -> Result<Self, Malformed> {
        if let Some(text) = refusal_of(&frames) {
            return Err(Malformed::Refused { text: shown(text) });
        }
        let Envelope { command, fields: [service, uuid, status, payload] } =
            Envelope::from_frames(frames, Header::Broker)?;
        let kind = match Command::from_bytes(&command) {
            Some(Command::Response) => Kind::Response,
            Some(Command::Event) => Kind::Event,
            Some(Command::Mmi) => Kind::Mmi,
            Some(Command::Stream) => return Err(Malformed::Stream { bytes: payload.len() }),
            _ => return Err(Malformed::UnknownCommand { found: word(&command) }),
        };
        let uuid = text(uuid, "uuid")?;
        Ok(Self {
            kind,
            service: text(service, "service")?,
            uuid: JobId::new(uuid.as_str()).map_err(|_| Malformed::BadUuid { found: word(uuid.as_bytes()) })?,
            status: Status::from_bytes(&status).ok_or_else(|| Malformed::UnknownStatus { found: word(&status) })?,
            payload: Json::parse(text(payload, "payload")?)
                .map_err(|error| Malformed::NotJson { line: error.line(), column: error.column() })?,
        })
    }

    /// The seven frames, as a broker sends them.
    #[must_use]
    pub fn into_frames(self) -> Frames {
        let command = match self.kind {
            Kind::Response => Command::Response,
            Kind::Event => Command::Event,
            Kind::Mmi => Command::Mmi,
        };
        Envelope {
            command: command.as_bytes().to_vec(),
            fields: [
                self.service.into_bytes(),
                self.uuid.as_str().as_bytes().to_vec(),
                self.status.as_bytes().to_vec(),
                self.payload.as_str().as_bytes().to_vec(),
            ],
        }
        .into_frames(Header::Broker)
    }

    /// What the message means.
    ///
    /// # Errors
    /// [`Malformed::WrongShape`] when the payload lacks what a message of its kind and status must say, and
    /// [`Malformed::UnknownStatus`] for an event with another status than 200.
    pub fn meaning(self) -> Result<Meaning, Malformed> {
        let of_broker = self.service == BROKER_SERVICE || self.service == INVENTORY_SERVICE;
        if self.kind == Kind::Mmi || (of_broker && self.status == Status::Ok) {
            return Ok(Meaning::Answer { id: self.uuid, answer: self.payload });
        }
        let kinds = match (self.kind, self.status) {
            (Kind::Event, Status::Ok) => vec![event(self.payload)?],
            (Kind::Event, status) => return Err(Malformed::UnknownStatus { found: word(status.as_bytes()) }),
            (_, Status::Ok) => results(&self.payload)?,
            (_, status) => {
                let (kind, context) = state(status, &self.payload)?;
                return Ok(Meaning::Replies(vec![Reply { context, ..Reply::new(self.uuid, kind) }]));
            }
        };
        let replies = kinds.into_iter().map(|kind| Reply::new(self.uuid.clone(), kind));
        Ok(Meaning::Replies(replies.collect()))
    }
}

/// Without the payload: results must not reach a log.
impl fmt::Debug for BrokerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, service, uuid, status, payload } = self;
        write!(f, "BrokerMessage({kind:?} {service} {uuid} {status:?}, {payload:?})")
    }
}

/// The text of the five frames by which the broker refuses a command that it does not know.
fn refusal_of(frames: &Frames) -> Option<&[u8]> {
    match frames.as_slice() {
        [empty, header, command, _service, text]
            if empty.is_empty() && header == Header::Broker.as_bytes() && command == Command::Response.as_bytes() =>
        {
            Some(text)
        }
        _ => None,
    }
}

fn read<T: DeserializeOwned>(payload: &Json, kind: &'static str) -> Result<T, Malformed> {
    payload.to().map_err(|error| Malformed::WrongShape { kind, line: error.line(), column: error.column() })
}

/// The most bytes of a worker's name: it is that worker's identity on the wire, and those are no longer.
const MOST_NAME_BYTES: usize = 255;
/// The most bytes of a question. A person is to read it, and its parts are taken apart, where a byte becomes many.
const MOST_QUESTION_BYTES: usize = 1 << 20;

/// A worker's name, checked.
fn name(worker: String) -> Result<String, Malformed> {
    let bytes = worker.len();
    if bytes > MOST_NAME_BYTES { Err(Malformed::WorkerName { bytes }) } else { Ok(worker) }
}

/// What a broker or a worker says of a job's state, as far as it is looked at.
#[derive(Deserialize)]
struct State {
    #[serde(default)]
    worker: Option<String>,
    #[serde(default)]
    workers: Option<First<Vec<String>>>,
    /// Of the request that is answered, as it stood in its frame.
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    errors: Option<First<Vec<Json>>>,
    #[serde(default)]
    input_request: Option<Json>,
}

fn state(status: Status, payload: &Json) -> Result<(ReplyKind, Context), Malformed> {
    let kind = status.as_str();
    let State { worker, workers, target, errors, input_request } = read(payload, kind)?;
    let wrong = || Malformed::WrongShape { kind, line: 1, column: 1 };
    let worker = || worker.ok_or_else(wrong).and_then(name);
    let kind = match (status, input_request) {
        // Whom the job was handed to is all that it says.
        (Status::Accepted, _) => {
            let workers = workers.map(|First(workers)| workers).filter(|workers| !workers.is_empty());
            let workers = workers.ok_or_else(wrong)?.into_iter().map(name);
            ReplyKind::Accepted { workers: workers.collect::<Result<_, _>>()? }
        }
        (Status::Refused, _) => {
            let errors = errors.map(|First(errors)| errors).unwrap_or_default();
            ReplyKind::Refused { errors: errors.iter().map(plain).collect() }
        }
        (Status::Stored, _) => ReplyKind::Stored { worker: worker()? },
        (Status::NotFound, _) => ReplyKind::NotFound { worker: worker()? },
        (Status::WaitingInput, Some(request)) => {
            let bytes = request.as_str().len();
            if bytes > MOST_QUESTION_BYTES {
                return Err(Malformed::Question { bytes });
            }
            ReplyKind::WaitingInput { worker: worker()?, request: read(&request, kind)? }
        }
        // A worker that waits may name no question: then it has just got its answer.
        _ => ReplyKind::Pending { worker: worker()? },
    };
    let context = target.as_deref().and_then(target_of).map_or(Context::Unknown, |target| Context::Answer { target });
    Ok((kind, context))
}

fn results(payload: &Json) -> Result<Vec<ReplyKind>, Malformed> {
    let First(results): First<BTreeMap<String, Json>> = read(payload, "200")?;
    results.into_iter().map(|(worker, result)| Ok(ReplyKind::Result { worker: name(worker)?, result })).collect()
}

/// An event, as far as it is looked at; the whole of it is kept beside.
#[derive(Deserialize)]
struct Event {
    worker: String,
    #[serde(default)]
    event_type: Option<String>,
    #[serde(default)]
    message: Option<Json>,
    #[serde(default)]
    severity: Option<String>,
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    extras: Option<Extras>,
}

#[derive(Deserialize)]
struct Extras {
    #[serde(default)]
    input_request: Option<Json>,
    #[serde(default)]
    input_response: Option<Json>,
}

/// That a question was answered.
#[derive(Deserialize)]
struct InputResponse {
    #[serde(default)]
    input_id: Option<Json>,
}

fn event(payload: Json) -> Result<ReplyKind, Malformed> {
    let event: Event = read(&payload, "event")?;
    let kind = event_kind(event.event_type.unwrap_or_else(|| "progress".to_owned()), event.extras);
    Ok(ReplyKind::Event(FabricEvent {
        worker: name(event.worker)?,
        kind,
        message: event.message.as_ref().map(plain).unwrap_or_default(),
        severity: event.severity.unwrap_or_else(|| "INFO".to_owned()),
        task: event.task,
        data: payload,
    }))
}

/// An input request that cannot be answered, for want of an id or as it is too large for a question, stays visible as an
/// event of its own kind.
fn event_kind(name: String, extras: Option<Extras>) -> FabricEventKind {
    let (request, response) = extras.map_or((None, None), |e| (e.input_request, e.input_response));
    match name.as_str() {
        "progress" => FabricEventKind::Progress,
        "result_ready" => FabricEventKind::ResultReady,
        "input_request" => {
            let request = request.filter(|request| request.as_str().len() <= MOST_QUESTION_BYTES);
            let request = request.and_then(|request| request.to::<InputRequest>().ok());
            request.map_or(FabricEventKind::Other(name), FabricEventKind::InputRequest)
        }
        "input_response" => {
            let response = response.and_then(|response| response.to::<InputResponse>().ok());
            let id = response.and_then(|response| response.input_id);
            FabricEventKind::InputResponse { input_id: id.and_then(|id| id.to().ok()) }
        }
        _ => FabricEventKind::Other(name),
    }
}

/// Text as it is, anything else as JSON.
fn plain(value: &Json) -> String {
    match value.to::<Option<String>>() {
        Ok(text) => text.unwrap_or_default(),
        Err(_) => value.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const JOB: &str = "043b0d5c1e8f4a7c9d2e6b1a0f3c5d7e";

    fn frames(parts: &[&str]) -> Frames {
        parts.iter().map(|part| part.as_bytes().to_vec()).collect()
    }

    fn message(command: &str, service: &str, status: &str, payload: &str) -> Frames {
        frames(&["", "NFPB01", command, service, JOB, status, payload])
    }

    /// What a message means, and that it is written exactly as it was read.
    fn meaning(command: &str, service: &str, status: &str, payload: &str) -> Result<Meaning, Malformed> {
        let frames = message(command, service, status, payload);
        let read = BrokerMessage::from_frames(frames.clone())?;
        assert_eq!(read.clone().into_frames(), frames);
        read.meaning()
    }

    #[track_caller]
    fn check(status: &str, payload: &str, expected: &[ReplyKind]) {
        let context = if payload.contains(r#""target":"all""#) {
            Context::Answer { target: norfab_model::Workers::All }
        } else {
            Context::Unknown
        };
        let reply = |kind: &ReplyKind| Reply::new(JobId::new(JOB).unwrap(), kind.clone());
        let replies = expected.iter().map(|kind| Reply { context: context.clone(), ..reply(kind) });
        assert_eq!(meaning("0x05", "dummy", status, payload), Ok(Meaning::Replies(replies.collect())));
    }

    #[test]
    fn accepted() {
        check(
            "202",
            r#"{"workers":["dummy-worker-1","dummy-worker-2"],"uuid":"043b","target":"all","status":"DISPATCHED","service":"dummy"}"#,
            &[ReplyKind::Accepted { workers: vec!["dummy-worker-1".to_owned(), "dummy-worker-2".to_owned()] }],
        );
    }

    #[test]
    fn stored() {
        check(
            "201",
            r#"{"worker":"dummy-worker-1","uuid":"043b","status":"ACCEPTED","service":"dummy"}"#,
            &[ReplyKind::Stored { worker: "dummy-worker-1".to_owned() }],
        );
    }

    #[test]
    fn pending() {
        let expected = [ReplyKind::Pending { worker: "w1".to_owned() }];
        check("300", r#"{"worker":"w1","uuid":"043b","service":"dummy","status":"STARTED"}"#, &expected);
        check("102", r#"{"worker":"w1","uuid":"043b","service":"dummy","status":"WAITING_CLIENT_INPUT"}"#, &expected);
    }

    fn question() -> InputRequest {
        InputRequest {
            id: "8ce1".to_owned(),
            question: "Go on?".to_owned(),
            default: Value::Bool(false),
            timeout: Some(120.0),
            metadata: Value::Object(serde_json::Map::new()),
        }
    }

    #[test]
    fn waiting_for_input() {
        check(
            "102",
            r#"{"worker":"w1","uuid":"043b","service":"dummy","status":"WAITING_CLIENT_INPUT","input_request":{"id":"8ce1","question":"Go on?","default":false,"timeout":120,"metadata":{}}}"#,
            &[ReplyKind::WaitingInput { worker: "w1".to_owned(), request: question() }],
        );
    }

    #[test]
    fn results_of_workers_are_kept_as_they_came() {
        let result = r#"{"result":{"n":1.50,"big":123456789012345678901234567890},"failed":false}"#;
        check(
            "200",
            &format!(r#"{{"w1":{result},"w2":{{"failed":true}}}}"#),
            &[
                ReplyKind::Result { worker: "w1".to_owned(), result: Json::parse(result).unwrap() },
                ReplyKind::Result { worker: "w2".to_owned(), result: Json::parse(r#"{"failed":true}"#).unwrap() },
            ],
        );
        check("200", "{}", &[]);
    }

    #[test]
    fn refused() {
        check(
            "400",
            r#"{"workers":null,"uuid":"043b","target":"all","status":"FAILED","service":"nosuch","errors":["NFPBroker - b'nosuch' service failed to target workers 'b'all''"]}"#,
            &[ReplyKind::Refused {
                errors: vec!["NFPBroker - b'nosuch' service failed to target workers 'b'all''".to_owned()],
            }],
        );
        check("400", "{}", &[ReplyKind::Refused { errors: vec![] }]);
        check("400", "{\"target\":\"[1\"}", &[ReplyKind::Refused { errors: vec![] }]);
    }

    /// What a broker that means harm could fill the memory with.
    #[test]
    fn what_no_worker_says_is_refused() {
        let long = "w".repeat(256);
        let named = [
            ("0x05", "201", json!({"worker": long})),
            ("0x05", "300", json!({"worker": long})),
            ("0x05", "404", json!({"worker": long})),
            ("0x05", "202", json!({"workers": ["w1", long]})),
            ("0x05", "200", json!({"w1": {}, long.as_str(): {}})),
            ("0x08", "200", json!({"worker": long})),
        ];
        for (command, status, payload) in named {
            let refused = meaning(command, "dummy", status, &payload.to_string());
            assert_eq!(refused, Err(Malformed::WorkerName { bytes: 256 }), "{status}");
        }
        let whole = "w".repeat(255);
        let stored = json!({"worker": whole}).to_string();
        check("201", &stored, &[ReplyKind::Stored { worker: whole }]);

        // A person is asked in fewer words; what is taken apart takes many times its bytes.
        let metadata = vec![0; MOST_QUESTION_BYTES / 2];
        let request = json!({"id": "8ce1", "question": "Go on?", "metadata": metadata});
        let bytes = request.to_string().len();
        let asked = json!({"worker": "w1", "input_request": request}).to_string();
        assert_eq!(meaning("0x05", "dummy", "102", &asked), Err(Malformed::Question { bytes }));
        let told = json!({"worker": "w1", "event_type": "input_request", "extras": {"input_request": request}});
        let Ok(Meaning::Replies(replies)) = meaning("0x08", "dummy", "200", &told.to_string()) else { panic!() };
        let [Reply { kind: ReplyKind::Event(event), .. }] = replies.as_slice() else { panic!("{replies:?}") };
        assert_eq!(event.kind, FabricEventKind::Other("input_request".into()));
    }

    #[test]
    fn not_found() {
        check(
            "404",
            r#"{"worker":"w1","uuid":"043b","service":"dummy","status":"JOB NOT FOUND"}"#,
            &[ReplyKind::NotFound { worker: "w1".to_owned() }],
        );
    }

    #[track_caller]
    fn check_event(payload: &str, message: &str, kind: FabricEventKind) {
        let event = FabricEvent {
            worker: "w1".to_owned(),
            kind,
            message: message.to_owned(),
            severity: "INFO".to_owned(),
            task: Some("emit".to_owned()),
            data: Json::parse(payload).unwrap(),
        };
        let reply = Reply::new(JobId::new(JOB).unwrap(), ReplyKind::Event(event));
        assert_eq!(meaning("0x08", "dummy", "200", payload), Ok(Meaning::Replies(vec![reply])));
    }

    #[test]
    fn events() {
        check_event(
            r#"{"worker":"w1","service":"dummy","uuid":"8395","event_type":"progress","message":"step 1 of 3","task":"emit","status":"running","resource":"step-1","severity":"INFO","timestamp":"29-Nov-2026 15:59:32.308","extras":{"step":1}}"#,
            "step 1 of 3",
            FabricEventKind::Progress,
        );
        check_event(
            r#"{"worker":"w1","event_type":"result_ready","message":"completed","task":"emit","status":"completed","resource":[]}"#,
            "completed",
            FabricEventKind::ResultReady,
        );
        check_event(
            r#"{"worker":"w1","task":"emit","event_type":"novel"}"#,
            "",
            FabricEventKind::Other("novel".to_owned()),
        );
        check_event(r#"{"worker":"w1","task":"emit","message":[1]}"#, "[1]", FabricEventKind::Progress);
    }

    #[test]
    fn events_of_input() {
        check_event(
            r#"{"worker":"w1","event_type":"input_request","message":"Go on?","task":"emit","status":"waiting_client_input","extras":{"input_request":{"id":"8ce1","question":"Go on?","default":false,"timeout":120,"metadata":{}}},"timeout":120}"#,
            "Go on?",
            FabricEventKind::InputRequest(question()),
        );
        check_event(
            r#"{"worker":"w1","event_type":"input_response","message":"Go on?","task":"emit","status":"received","extras":{"input_response":{"input_id":"8ce1","metadata":{}}}}"#,
            "Go on?",
            FabricEventKind::InputResponse { input_id: Some("8ce1".to_owned()) },
        );
        check_event(
            r#"{"worker":"w1","event_type":"input_request","message":"Go on?","task":"emit","extras":{"input_request":7}}"#,
            "Go on?",
            FabricEventKind::Other("input_request".to_owned()),
        );
    }

    #[test]
    fn answers_of_the_broker_come_in_two_forms() {
        let answer = r#"[{"name":"dummy-worker-1","service":"dummy","status":"alive","holdtime":"1.8"}]"#;
        let expected = Meaning::Answer { id: JobId::new(JOB).unwrap(), answer: Json::parse(answer).unwrap() };
        assert_eq!(meaning("0x05", "mmi.service.broker", "200", answer), Ok(expected.clone()));
        assert_eq!(meaning("0x11", "mmi.service.broker", "200", answer), Ok(expected.clone()));
        assert_eq!(meaning("0x05", "sid.service.broker", "200", answer), Ok(expected));
    }

    #[track_caller]
    fn check_malformed(frames: Frames, expected: &str) {
        let error = BrokerMessage::from_frames(frames).and_then(BrokerMessage::meaning).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn malformed_frames() {
        check_malformed(vec![], "0 of 7 frames");
        check_malformed(frames(&["", "NFPB01", "0x05"]), "3 of 7 frames");
        check_malformed(
            frames(&["", "NFPB01", "0x05", "dummy", "Unsupported\ncommand"]),
            "refused a command: Unsupported\\ncommand",
        );
        check_malformed(frames(&["", "NFPB01", "0x08", "dummy", "text"]), "5 of 7 frames");
        check_malformed(frames(&["", "NFPC01", "0x05", "s", JOB, "200", "{}"]), "header \"NFPC01\"");
        check_malformed(frames(&["NFPB01", "0x05", "s", JOB, "200", "{}", ""]), "first frame is not empty");
        check_malformed(message("0x04", "s", "200", "{}"), "command \"0x04\"");
        check_malformed(message("what", "s", "200", "{}"), "command \"what\"");
        check_malformed(message("0x09", "s", "200", "raw bytes"), "file stream of 9 bytes");
        check_malformed(message("0x05", "s", "500", "{}"), "status \"500\"");
        check_malformed(message("0x05", "s", "", "{}"), "status \"\"");
        check_malformed(message("0x08", "s", "404", "{}"), "status \"404\"");
        check_malformed(frames(&["", "NFPB01", "0x05", "s", "", "200", "{}"]), "uuid \"\"");
    }

    #[test]
    fn malformed_payloads() {
        check_malformed(message("0x05", "s", "200", ""), "not JSON");
        check_malformed(message("0x05", "s", "200", "{\"a\":"), "not JSON (line 1, column 5)");
        check_malformed(message("0x05", "s", "200", "[1]"), "200 message has another shape");
        check_malformed(message("0x05", "s", "201", "{}"), "201 message has another shape");
        check_malformed(message("0x05", "s", "202", "{\"workers\":7}"), "202 message has another shape");
        check_malformed(message("0x05", "s", "202", "{\"workers\":[]}"), "202 message has another shape");
        check_malformed(message("0x05", "s", "202", "{}"), "202 message has another shape");
        check_malformed(message("0x08", "s", "200", "{}"), "event message has another shape");
        let mut not_text = message("0x05", "s", "200", "{}");
        not_text[6] = vec![b'"', 0xff, b'"'];
        check_malformed(not_text, "payload is not UTF-8");
    }

    #[test]
    fn results_are_never_shown() {
        let read = BrokerMessage::from_frames(message("0x05", "s", "200", r#"{"w1":"hunter2"}"#)).unwrap();
        let shown = format!("{read:?} {:?}", read.clone().meaning());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    proptest! {
        #[test]
        fn frames_of_any_shape_never_panic(frames in proptest::collection::vec(any::<Vec<u8>>(), 0..9)) {
            let _ = BrokerMessage::from_frames(frames);
        }

        #[test]
        fn messages_with_any_payload_never_panic(
            command in prop::sample::select(vec!["0x05", "0x08", "0x09", "0x11", "0x04"]),
            status in prop::sample::select(vec!["102", "200", "201", "202", "300", "400", "404", "x"]),
            payload in any_payload(),
        ) {
            let frames = message(command, "dummy", status, &payload);
            let _ = BrokerMessage::from_frames(frames).and_then(BrokerMessage::meaning);
        }
    }

    /// JSON objects with the keys that are looked at and values of any kind, and plain nonsense.
    fn any_payload() -> impl Strategy<Value = String> {
        let value = prop::sample::select(vec![
            "null",
            "1",
            "-1e300",
            "\"x\"",
            "[]",
            "[1]",
            "[\"w\"]",
            "{}",
            "{\"id\":\"x\"}",
            "true",
        ]);
        let key = prop::sample::select(vec![
            "worker",
            "workers",
            "errors",
            "input_request",
            "event_type",
            "message",
            "severity",
            "task",
            "extras",
            "w1",
        ]);
        let object = proptest::collection::btree_map(key, value, 0..5).prop_map(|map| {
            let fields: Vec<_> = map.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        });
        prop_oneof![object, any::<String>()]
    }
}
