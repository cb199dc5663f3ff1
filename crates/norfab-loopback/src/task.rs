//! The tasks of a loopback worker: from a name and JSON arguments to what is to be done. Pure.

use std::time::Duration;

use norfab_model::Json;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What a client asks a worker to run, as it came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) task: String,
    pub(crate) args: Json,
    pub(crate) kwargs: Json,
    /// Seconds, null for none; a worker of NorFab takes anything.
    pub(crate) timeout: Value,
}

/// What a POST may turn out to be.
#[derive(Debug, PartialEq)]
pub(crate) enum Posted {
    /// A job.
    Call(Call),
    /// An object without a task, which a worker takes no notice of.
    Nothing,
    /// No JSON object, which ends the thread by which a real worker takes jobs.
    Poison,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    task: Value,
    #[serde(default = "Json::empty_array")]
    args: Json,
    #[serde(default = "Json::empty_object")]
    kwargs: Json,
    #[serde(default = "sixty")]
    timeout: Value,
}

fn sixty() -> Value {
    Value::from(60)
}

impl Posted {
    /// Reads the payload of a POST.
    pub(crate) fn parse(payload: &[u8]) -> Self {
        let Ok(payload) =
            serde_json::from_slice::<Map<String, Value>>(payload).and_then(|_| serde_json::from_slice(payload))
        else {
            return Self::Poison;
        };
        let Payload { task, args, kwargs, timeout } = payload;
        match task {
            Value::String(task) => Self::Call(Call { task, args, kwargs, timeout }),
            _ => Self::Nothing,
        }
    }
}

/// A task with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task {
    /// Returns what it was called with.
    Echo,
    /// Takes some time, and returns how long.
    Sleep {
        /// The argument as it came.
        seconds: Value,
        duration: Duration,
    },
    /// Raises.
    Raise { message: String },
    /// Returns a result that is marked as failed.
    FailSoftly { message: String },
    /// Sends events.
    Emit { count: u64, interval: Duration },
    /// Asks the client.
    Ask { question: String, timeout: u32 },
    /// Returns the names of the tasks, or their descriptions.
    List(Value),
}

/// The tasks in the order of their names: each with what it does, and its arguments.
const TASKS: [(&str, &str, &[&str]); 6] = [
    ("ask", "Asks the client, and returns its answer", &["question", "timeout"]),
    ("echo", "Returns what it was called with", &[]),
    ("emit", "Sends events", &["n", "interval"]),
    ("fail", "Raises, or returns a failed result", &["message", "soft"]),
    ("list_tasks", "Lists the tasks of the worker", &["name", "brief"]),
    ("sleep", "Takes some time, and returns how long", &["seconds"]),
];

/// What a task ends with instead of a result: the name of a Python exception, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

impl Raised {
    pub(crate) fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl Task {
    /// Finds the task of a call and reads its arguments.
    pub(crate) fn of(call: &Call) -> Result<Self, Raised> {
        let Some((name, _, arguments)) = TASKS.iter().find(|(name, ..)| *name == call.task) else {
            return Err(Raised::new("KeyError", format!("'{}'", call.task)));
        };
        let mut given = match *name {
            // NorFab's own echo has `job` in front, so that a positional argument takes its place.
            "echo" if call.args.as_str() != "[]" => {
                return Err(Raised::new("TypeError", "echo() got multiple values for argument 'job'"));
            }
            "echo" => return Ok(Self::Echo),
            _ => Arguments::bind(call, arguments)?,
        };
        match *name {
            "list_tasks" => listed(given.optional("name")?, given.optional("brief")?).map(Self::List),
            "sleep" => {
                let seconds: Value = given.required("seconds")?;
                Ok(Self::Sleep { duration: duration("seconds", &seconds)?, seconds })
            }
            "fail" => {
                let message = given.optional("message")?.unwrap_or_else(|| "failed on purpose".to_owned());
                let is_soft: bool = given.optional("soft")?.unwrap_or_default();
                Ok(if is_soft { Self::FailSoftly { message } } else { Self::Raise { message } })
            }
            "emit" => {
                let interval: Option<Value> = given.optional("interval")?;
                let interval = interval.map_or(Ok(Duration::ZERO), |value| duration("interval", &value))?;
                Ok(Self::Emit { count: given.required("n")?, interval })
            }
            _ => {
                let timeout = given.optional("timeout")?.unwrap_or(120);
                Ok(Self::Ask { question: given.required("question")?, timeout })
            }
        }
    }
}

/// The names when they are enough, else the description of one task or of each.
fn listed(name: Option<Option<String>>, brief: Option<bool>) -> Result<Value, Raised> {
    if brief == Some(true) {
        return Ok(TASKS.iter().map(|(name, ..)| *name).collect());
    }
    let name = name.flatten().filter(|name| !name.is_empty());
    let wanted = TASKS.iter().filter(|(task, ..)| name.as_ref().is_none_or(|name| name == task));
    let described: Vec<Value> = wanted.map(|(name, what, arguments)| described(name, what, arguments)).collect();
    match name {
        Some(name) if described.is_empty() => Err(Raised::new("KeyError", format!("'{name} - task not registered'"))),
        _ => Ok(described.into()),
    }
}

/// What a worker of NorFab tells of a task.
fn described(name: &str, what: &str, arguments: &[&str]) -> Value {
    let properties: Map<String, Value> = arguments.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({
        "name": name,
        "description": what,
        "inputSchema": {"type": "object", "properties": properties},
        "outputSchema": {"type": "object"},
        "fastapi": null,
        "mcp": null,
        "agent": null,
    })
}

/// Arguments by name.
struct Arguments<'a> {
    task: &'a str,
    values: Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Gives positional arguments the names that they stand for, as Python does.
    fn bind(call: &'a Call, names: &[&str]) -> Result<Self, Raised> {
        let task = call.task.as_str();
        let error = |text: String| Raised::new("TypeError", format!("{task}() {text}"));
        let args: Vec<Value> = call.args.to().map_err(|_| error("args must be a list".to_owned()))?;
        let mut values: Map<String, Value> =
            call.kwargs.to().map_err(|_| error("kwargs must be a mapping".to_owned()))?;
        if let Some(name) = values.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(error(format!("got an unexpected keyword argument '{name}'")));
        }
        if args.len() > names.len() {
            return Err(error(format!("takes {} positional arguments but {} were given", names.len(), args.len())));
        }
        for (name, value) in names.iter().zip(args) {
            if values.insert((*name).to_owned(), value).is_some() {
                return Err(error(format!("got multiple values for argument '{name}'")));
            }
        }
        Ok(Self { task, values })
    }

    fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Raised> {
        let Some(value) = self.values.remove(name) else { return Ok(None) };
        let wrong =
            |_| Raised::new("ValidationError", format!("{}() argument '{name}' is of the wrong type", self.task));
        serde_json::from_value(value).map(Some).map_err(wrong)
    }

    fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Raised> {
        let missing = Raised::new("TypeError", format!("{}() missing a required argument: '{name}'", self.task));
        self.optional(name)?.ok_or(missing)
    }
}

fn duration(name: &str, value: &Value) -> Result<Duration, Raised> {
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Raised::new("ValidationError", format!("argument '{name}' is no number of seconds")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(task: &str, args: &str, kwargs: &str) -> Result<Task, Raised> {
        let payload = format!(r#"{{"task":"{task}","args":{args},"kwargs":{kwargs}}}"#);
        match Posted::parse(payload.as_bytes()) {
            Posted::Call(call) => Task::of(&call),
            other => panic!("{other:?}"),
        }
    }

    fn check(task: &str, args: &str, kwargs: &str, expected: Task) {
        assert_eq!(parse(task, args, kwargs), Ok(expected));
    }

    fn check_raises(task: &str, args: &str, kwargs: &str, kind: &str, part: &str) {
        let raised = parse(task, args, kwargs).unwrap_err();
        assert!(raised.kind == kind && raised.text.contains(part), "{raised:?}");
    }

    #[test]
    fn tasks_take_keyword_and_positional_arguments() {
        check("echo", "[]", r#"{"anything":1}"#, Task::Echo);
        let half = Task::Sleep { seconds: Value::from(0.5), duration: Duration::from_millis(500) };
        check("sleep", "[]", r#"{"seconds":0.5}"#, half.clone());
        check("sleep", "[0.5]", "{}", half);
        check("fail", "[]", "{}", Task::Raise { message: "failed on purpose".to_owned() });
        check("fail", r#"["no"]"#, r#"{"soft":true}"#, Task::FailSoftly { message: "no".to_owned() });
        check("emit", "[3]", "{}", Task::Emit { count: 3, interval: Duration::ZERO });
        check("emit", "[3, 1]", "{}", Task::Emit { count: 3, interval: Duration::from_secs(1) });
        check("ask", r#"["Go on?"]"#, "{}", Task::Ask { question: "Go on?".to_owned(), timeout: 120 });
        check("ask", "[]", r#"{"question":"?","timeout":5}"#, Task::Ask { question: "?".to_owned(), timeout: 5 });
    }

    #[test]
    fn tasks_are_listed_by_name_or_described() {
        let names = json!(["ask", "echo", "emit", "fail", "list_tasks", "sleep"]);
        check("list_tasks", "[]", r#"{"brief":true}"#, Task::List(names.clone()));
        check("list_tasks", r#"["nosuch", true]"#, "{}", Task::List(names));
        for name in ["null", "\"\"", "\"sleep\""] {
            let Ok(Task::List(Value::Array(tasks))) = parse("list_tasks", &format!("[{name}]"), "{}") else {
                panic!("{name}")
            };
            assert_eq!(tasks.len(), if name == "\"sleep\"" { 1 } else { 6 });
            assert_eq!(tasks[tasks.len() - 1]["inputSchema"]["properties"], json!({"seconds": {}}));
        }
        check_raises("list_tasks", r#"["nosuch"]"#, "{}", "KeyError", "'nosuch - task not registered'");
    }

    #[test]
    fn wrong_calls_raise() {
        check_raises("nosuch", "[]", "{}", "KeyError", "'nosuch'");
        check_raises("echo", "[1]", "{}", "TypeError", "multiple values for argument 'job'");
        check_raises("sleep", "[]", "{}", "TypeError", "missing a required argument: 'seconds'");
        check_raises("sleep", "[]", r#"{"seconds":"long"}"#, "ValidationError", "no number of seconds");
        check_raises("sleep", "[-1]", "{}", "ValidationError", "no number of seconds");
        check_raises("sleep", "[1,2]", "{}", "TypeError", "takes 1 positional arguments but 2 were given");
        check_raises("sleep", "[1]", r#"{"seconds":1}"#, "TypeError", "multiple values");
        check_raises("sleep", "[]", r#"{"hours":1}"#, "TypeError", "unexpected keyword argument 'hours'");
        check_raises("emit", "[-1]", "{}", "ValidationError", "'n' is of the wrong type");
        check_raises("ask", "[]", "7", "TypeError", "kwargs must be a mapping");
    }

    #[test]
    fn payloads() {
        assert_eq!(Posted::parse(b"{}"), Posted::Nothing);
        assert_eq!(Posted::parse(br#"{"task":null,"kwargs":{}}"#), Posted::Nothing);
        for poison in [&b"[]"[..], b"", b"null", b"{\"task\":", b"\xff"] {
            assert_eq!(Posted::parse(poison), Posted::Poison);
        }
        let call = Call {
            task: "echo".to_owned(),
            args: Json::empty_array(),
            kwargs: Json::empty_object(),
            timeout: Value::from(60),
        };
        assert_eq!(Posted::parse(br#"{"task":"echo"}"#), Posted::Call(call));
    }

    proptest! {
        #[test]
        fn any_payload_is_read_without_panic(payload in any::<Vec<u8>>()) {
            let _ = Posted::parse(&payload);
        }

        #[test]
        fn any_arguments_are_read_without_panic(
            task in prop::sample::select(vec!["echo", "sleep", "fail", "emit", "ask", "list_tasks", "x"]),
            name in prop::sample::select(vec![
                "seconds", "n", "interval", "message", "soft", "question", "timeout", "name", "brief",
            ]),
            value in prop::sample::select(vec!["1", "-1", "1e300", "null", "\"x\"", "[]", "true", "1e-300"]),
        ) {
            let _ = parse(task, "[]", &format!("{{\"{name}\":{value}}}"));
            let _ = parse(task, &format!("[{value}]"), "{}");
        }
    }
}
