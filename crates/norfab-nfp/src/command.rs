//! What a client says to the broker: a job to run, a question for its state, an answer to its question, a question to
//! the broker itself. Pure: from typed values to frames and back.

use std::fmt;

use norfab_model::{
    InputAnswer, InputVerdict, JobId, Json, Poll, Post, Request, UnsafePayload, Workers, check_payload,
};
use serde_json::Value;

use crate::error::Malformed;
use crate::frame::{Command, Envelope, Frames, Header, text, word};

/// The service that answers questions about the broker: `show_workers`, `show_broker_version` and others.
pub const BROKER_SERVICE: &str = "mmi.service.broker";

/// The service that answers questions about inventories: `get_inventory`.
pub const INVENTORY_SERVICE: &str = "sid.service.broker";

/// One message of a client: always a command, a service, a target, an identity and a payload.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientMessage {
    /// What is asked.
    pub command: Command,
    /// The service that is asked.
    pub service: String,
    /// The workers of it, in the form of the wire; see [`target_text`].
    pub target: String,
    /// The job, or for a question to the broker an identity of the question's own.
    pub uuid: String,
    /// JSON text.
    pub payload: String,
}

impl ClientMessage {
    /// Puts a request into words.
    ///
    /// # Errors
    /// [`UnsafePayload`] when it carries JSON that the other side's parser refuses: such a POST would end the thread by
    /// which the worker takes jobs.
    pub fn of(request: &Request) -> Result<Self, UnsafePayload> {
        match request {
            Request::Post(post) => Self::post(post),
            Request::Get(poll) => Ok(Self::get(poll)),
            Request::Put { job, service, worker, answer } => Self::put(service, worker, job, answer),
            Request::Mmi { id, task, kwargs } => Self::mmi(id, task, kwargs),
        }
    }

    fn post(post: &Post) -> Result<Self, UnsafePayload> {
        check_payload(&post.args)?;
        check_payload(&post.kwargs)?;
        let payload = format!(
            "{{\"task\":{},\"kwargs\":{},\"args\":{},\"timeout\":{}}}",
            Value::from(post.task.as_str()),
            post.kwargs.as_str(),
            post.args.as_str(),
            post.timeout
        );
        Ok(Self::new(Command::Post, &post.service, target_text(&post.target), &post.job, payload))
    }

    /// The worker looks at nothing but the identity.
    fn get(poll: &Poll) -> Self {
        Self::new(Command::Get, &poll.service, target_text(&poll.target), &poll.job, "{}".to_owned())
    }

    /// Nothing answers a PUT but an `input_response` event, and that only when the worker still waits.
    fn put(service: &str, worker: &str, job: &JobId, answer: &InputAnswer) -> Result<Self, UnsafePayload> {
        check_payload(&answer.value)?;
        check_payload(&answer.metadata)?;
        let payload = format!(
            "{{\"input_id\":{},\"value\":{},\"cancel\":{},\"metadata\":{}}}",
            Value::from(answer.input_id.as_str()),
            answer.value.as_str(),
            answer.verdict == InputVerdict::Cancelled,
            answer.metadata.as_str()
        );
        Ok(Self::new(Command::Put, service, worker_text(worker), job, payload))
    }

    fn mmi(id: &JobId, task: &str, kwargs: &Json) -> Result<Self, UnsafePayload> {
        check_payload(kwargs)?;
        let service = if task == "get_inventory" { INVENTORY_SERVICE } else { BROKER_SERVICE };
        let payload = format!("{{\"task\":{},\"kwargs\":{},\"args\":[]}}", Value::from(task), kwargs.as_str());
        Ok(Self::new(Command::Mmi, service, target_text(&Workers::Any), id, payload))
    }

    fn new(command: Command, service: &str, target: String, uuid: &JobId, payload: String) -> Self {
        Self { command, service: service.to_owned(), target, uuid: uuid.to_string(), payload }
    }

    /// The seven frames.
    #[must_use]
    pub fn into_frames(self) -> Frames {
        Envelope {
            command: self.command.as_bytes().to_vec(),
            fields: [self.service, self.target, self.uuid, self.payload].map(String::into_bytes),
        }
        .into_frames(Header::Client)
    }

    /// Reads a client's message as a broker gets it.
    ///
    /// # Errors
    /// [`Malformed`] when the envelope is none, the command is unknown, or a field is not UTF-8.
    pub fn from_frames(frames: Frames) -> Result<Self, Malformed> {
        let envelope = Envelope::from_frames(frames, Header::Client)?;
        let command = Command::from_bytes(&envelope.command)
            .ok_or_else(|| Malformed::UnknownCommand { found: word(&envelope.command) })?;
        let [service, target, uuid, payload] = envelope.fields;
        Ok(Self {
            command,
            service: text(service, "service")?,
            target: text(target, "target")?,
            uuid: text(uuid, "uuid")?,
            payload: text(payload, "payload")?,
        })
    }
}

/// Without the payload: arguments must not reach a log.
impl fmt::Debug for ClientMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, service, target, uuid, payload } = self;
        write!(f, "ClientMessage({command:?} {service} {target} {uuid}, {} bytes)", payload.len())
    }
}

/// Reads the target of a request; None when it is none.
#[must_use]
pub(crate) fn target_of(text: &str) -> Option<Workers> {
    match text {
        "all" => Some(Workers::All),
        "any" => Some(Workers::Any),
        _ if text.starts_with('[') => serde_json::from_str(text).ok().map(Workers::List),
        name => Some(Workers::One(name.to_owned())),
    }
}

/// The target frame: `all`, `any`, a name as it is, or a JSON array of names. A single name whose text means something
/// else there goes as an array of one.
#[must_use]
pub fn target_text(workers: &Workers) -> String {
    match workers {
        Workers::All => "all".to_owned(),
        Workers::Any => "any".to_owned(),
        Workers::One(name) => worker_text(name),
        Workers::List(names) => Value::from(names.clone()).to_string(),
    }
}

/// Reads a target frame. A text that is no JSON array of names is one worker's name, the keywords aside.
#[must_use]
pub fn parse_target(target: &str) -> Workers {
    match target {
        "all" => Workers::All,
        "any" => Workers::Any,
        _ => match serde_json::from_str::<Vec<String>>(target) {
            Ok(names) => Workers::List(names),
            Err(_) => Workers::One(target.to_owned()),
        },
    }
}

fn worker_text(name: &str) -> String {
    match name {
        "all" | "any" => Value::from(vec![name]).to_string(),
        _ if name.trim_start().starts_with('[') => Value::from(vec![name]).to_string(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JOB: &str = "043b0d5c1e8f4a7c9d2e6b1a0f3c5d7e";

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn job() -> JobId {
        JobId::new(JOB).unwrap()
    }

    fn post(target: Workers, args: &str, kwargs: &str) -> Request {
        Request::Post(Post {
            job: job(),
            service: "dummy".to_owned(),
            target,
            task: "count".to_owned(),
            args: json(args),
            kwargs: json(kwargs),
            timeout: 60,
            schedule_id: None,
            scheduled_for: None,
        })
    }

    fn put(worker: &str, answer: InputAnswer) -> Request {
        Request::Put { job: job(), service: "dummy".to_owned(), worker: worker.to_owned(), answer }
    }

    fn mmi(task: &str, kwargs: &str) -> Request {
        Request::Mmi { id: job(), task: task.to_owned(), kwargs: json(kwargs) }
    }

    /// The frames behind the empty one, joined by `|`, `UUID` standing for the job; and that they read back.
    #[track_caller]
    fn check(request: &Request, expected: &str) {
        let message = ClientMessage::of(request).unwrap();
        let frames = message.clone().into_frames();
        assert_eq!(ClientMessage::from_frames(frames.clone()), Ok(message));
        assert_eq!(frames[0], b"");
        let shown: Vec<_> = frames[1..].iter().map(|frame| std::str::from_utf8(frame).unwrap()).collect();
        assert_eq!(shown.join("|").replace(JOB, "UUID"), expected);
    }

    #[test]
    fn post_to_all() {
        check(
            &post(Workers::All, "[]", "{}"),
            r#"NFPC01|0x04|dummy|all|UUID|{"task":"count","kwargs":{},"args":[],"timeout":60}"#,
        );
    }

    #[test]
    fn post_to_any() {
        check(
            &post(Workers::Any, "[1, 2]", r#"{"a": 1.50}"#),
            r#"NFPC01|0x04|dummy|any|UUID|{"task":"count","kwargs":{"a": 1.50},"args":[1, 2],"timeout":60}"#,
        );
    }

    #[test]
    fn post_to_one_is_its_plain_name() {
        check(
            &post(Workers::One("dummy-worker-1".to_owned()), "[]", "{}"),
            r#"NFPC01|0x04|dummy|dummy-worker-1|UUID|{"task":"count","kwargs":{},"args":[],"timeout":60}"#,
        );
    }

    #[test]
    fn post_to_a_list_is_an_array_even_of_one() {
        check(
            &post(Workers::List(vec!["w1".to_owned()]), "[]", "{}"),
            r#"NFPC01|0x04|dummy|["w1"]|UUID|{"task":"count","kwargs":{},"args":[],"timeout":60}"#,
        );
        check(
            &post(Workers::List(vec!["w1".to_owned(), "ż\"2".to_owned()]), "[]", "{}"),
            r#"NFPC01|0x04|dummy|["w1","ż\"2"]|UUID|{"task":"count","kwargs":{},"args":[],"timeout":60}"#,
        );
    }

    #[test]
    fn a_worker_with_a_keyword_for_a_name_is_still_a_worker() {
        check(
            &post(Workers::One("all".to_owned()), "[]", "{}"),
            r#"NFPC01|0x04|dummy|["all"]|UUID|{"task":"count","kwargs":{},"args":[],"timeout":60}"#,
        );
    }

    #[test]
    fn get() {
        let target = Workers::List(vec!["dummy-worker-1".to_owned(), "dummy-worker-2".to_owned()]);
        check(
            &Request::Get(Poll { job: job(), service: "dummy".to_owned(), target }),
            r#"NFPC01|0x06|dummy|["dummy-worker-1","dummy-worker-2"]|UUID|{}"#,
        );
    }

    #[test]
    fn put_with_a_value() {
        let answer = InputAnswer {
            input_id: "8ce1".to_owned(),
            value: json("\"yes\""),
            verdict: InputVerdict::Answered,
            metadata: json("{\"by\":\"me\"}"),
        };
        check(
            &put("dummy-worker-1", answer),
            r#"NFPC01|0x10|dummy|dummy-worker-1|UUID|{"input_id":"8ce1","value":"yes","cancel":false,"metadata":{"by":"me"}}"#,
        );
    }

    #[test]
    fn put_that_cancels() {
        let answer = InputAnswer {
            input_id: "8ce1".to_owned(),
            value: json("null"),
            verdict: InputVerdict::Cancelled,
            metadata: json("{}"),
        };
        check(
            &put("dummy-worker-1", answer),
            r#"NFPC01|0x10|dummy|dummy-worker-1|UUID|{"input_id":"8ce1","value":null,"cancel":true,"metadata":{}}"#,
        );
    }

    #[test]
    fn mmi_to_the_broker_and_its_inventories() {
        check(
            &mmi("show_workers", "{}"),
            r#"NFPC01|0x11|mmi.service.broker|any|UUID|{"task":"show_workers","kwargs":{},"args":[]}"#,
        );
        check(
            &mmi("get_inventory", r#"{"name":"w1"}"#),
            r#"NFPC01|0x11|sid.service.broker|any|UUID|{"task":"get_inventory","kwargs":{"name":"w1"},"args":[]}"#,
        );
    }

    #[track_caller]
    fn check_unsafe(kwargs: &str, expected: Option<&str>) {
        let found = ClientMessage::of(&post(Workers::All, "[]", kwargs)).map_err(|error| error.problem);
        assert_eq!(found.err(), expected, "{kwargs:.60}");
    }

    #[test]
    fn arguments_that_would_end_a_worker_are_not_sent() {
        check_unsafe(r#"{"a":"\ud800"}"#, Some("an escape is half of a surrogate pair"));
        check_unsafe(r#"{"\udc00x":1}"#, Some("an escape is half of a surrogate pair"));
        check_unsafe(r#"{"a":"\ud83d\ud83d"}"#, Some("an escape is half of a surrogate pair"));
        check_unsafe(r#"{"a":[1e400]}"#, Some("a number is too large"));
        check_unsafe(r#"{"a":-1e999}"#, Some("a number is too large"));
        check_unsafe(&format!("{{\"a\":{}{}}}", "[".repeat(2000), "]".repeat(2000)), Some("it is nested too deeply"));
    }

    #[test]
    fn odd_arguments_that_workers_take_are_sent() {
        check_unsafe(
            r#"{"a":"\ud83d\ude00","b":123456789012345678901234567890,"c":1e-400,"d":"\u0000","e":null}"#,
            None,
        );
        check_unsafe(&format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100)), None);
    }

    #[test]
    fn targets_read_back() {
        for target in [
            Workers::All,
            Workers::Any,
            Workers::One("w1".to_owned()),
            Workers::List(vec![]),
            Workers::List(vec!["all".to_owned(), "a\"b".to_owned()]),
        ] {
            assert_eq!(parse_target(&target_text(&target)), target);
        }
        for text in ["\"w1\"", "[1]", "", "{}"] {
            assert_eq!(parse_target(text), Workers::One(text.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn frames_of_any_shape_never_panic(frames in proptest::collection::vec(any::<Vec<u8>>(), 0..9)) {
            let _ = ClientMessage::from_frames(frames);
        }

        #[test]
        fn any_target_reads_back_as_the_same_workers(names in proptest::collection::vec(any::<String>(), 0..4), one in any::<String>()) {
            prop_assert_eq!(parse_target(&target_text(&Workers::List(names.clone()))), Workers::List(names));
            let read = parse_target(&target_text(&Workers::One(one.clone())));
            prop_assert!(read == Workers::One(one.clone()) || read == Workers::List(vec![one]));
        }
    }
}
