//! What a reply takes of memory while it waits: all that came over the wire, whoever sent it.

use norfab_model::{Context, FabricEvent, FabricEventKind, InputRequest, Reply, ReplyKind, Workers};
use serde_json::Value;

/// About how many bytes a reply takes.
pub(crate) fn bytes_of(reply: &Reply) -> usize {
    size_of::<Reply>() + reply.job.as_str().len() + of_context(&reply.context) + of_kind(&reply.kind)
}

fn of_context(context: &Context) -> usize {
    match context {
        Context::Answer { target } | Context::Post { target, .. } | Context::Get { target, .. } => match target {
            Workers::All | Workers::Any => 0,
            Workers::One(name) => name.len(),
            Workers::List(names) => of_texts(names),
        },
        Context::Unknown | Context::Repeated(_) => 0,
    }
}

fn of_kind(kind: &ReplyKind) -> usize {
    match kind {
        ReplyKind::Accepted { workers } => of_texts(workers),
        ReplyKind::Refused { errors } => of_texts(errors),
        ReplyKind::Stored { worker } | ReplyKind::Pending { worker } | ReplyKind::NotFound { worker } => worker.len(),
        ReplyKind::WaitingInput { worker, request } => worker.len() + of_question(request),
        ReplyKind::Result { worker, result } => worker.len() + result.as_str().len(),
        ReplyKind::Event(event) => of_event(event),
    }
}

fn of_event(event: &FabricEvent) -> usize {
    let FabricEvent { worker, kind, message, severity, task, data } = event;
    let kind = match kind {
        FabricEventKind::InputRequest(request) => of_question(request),
        FabricEventKind::InputResponse { input_id } => of_text(input_id.as_deref()),
        FabricEventKind::Other(name) => name.len(),
        FabricEventKind::Progress | FabricEventKind::ResultReady => 0,
    };
    let texts = worker.len() + message.len() + severity.len() + of_text(task.as_deref());
    kind + texts + data.as_str().len()
}

fn of_question(request: &InputRequest) -> usize {
    let InputRequest { id, question, default, timeout: _, metadata } = request;
    id.len() + question.len() + of_value(default) + of_value(metadata)
}

/// It is no deeper than the parser goes, which stops long before the stack does.
fn of_value(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(of_value).sum(),
        Value::Object(values) => {
            values.iter().map(|(key, value)| size_of::<String>() + key.len() + of_value(value)).sum()
        }
    };
    size_of::<Value>() + inside
}

fn of_texts(texts: &[String]) -> usize {
    texts.iter().map(|text| size_of::<String>() + text.len()).sum()
}

fn of_text(text: Option<&str>) -> usize {
    text.map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use norfab_model::{JobId, Json};
    use serde_json::json;

    use super::*;

    const LARGE: usize = 1 << 20;

    fn large() -> String {
        "x".repeat(LARGE)
    }

    fn question(id: String, question: String, default: Value, metadata: Value) -> InputRequest {
        InputRequest { id, question, default, timeout: None, metadata }
    }

    fn event(worker: String, kind: FabricEventKind) -> FabricEvent {
        let (message, severity, data) = (String::new(), "INFO".to_owned(), Json::empty_object());
        FabricEvent { worker, kind, message, severity, task: None, data }
    }

    fn weight(kind: ReplyKind) -> usize {
        bytes_of(&Reply::new(JobId::new("043b").unwrap(), kind))
    }

    /// Each part of a reply that the other side chooses, as a large one.
    #[test]
    fn nothing_that_came_goes_uncounted() {
        let (none, progress) = (|| Value::Null, || FabricEventKind::Progress);
        let asks = |request| ReplyKind::WaitingInput { worker: "w1".into(), request };
        let tells = |event| ReplyKind::Event(event);
        let w1 = || event("w1".into(), progress());
        let of_kind = |kind| event("w1".into(), kind);
        let kinds = [
            ReplyKind::Accepted { workers: vec!["w1".into(), large()] },
            ReplyKind::Refused { errors: vec![large()] },
            ReplyKind::Stored { worker: large() },
            ReplyKind::Pending { worker: large() },
            ReplyKind::NotFound { worker: large() },
            ReplyKind::WaitingInput { worker: large(), request: question("1".into(), "?".into(), none(), none()) },
            asks(question(large(), "?".into(), none(), none())),
            asks(question("1".into(), large(), none(), none())),
            asks(question("1".into(), "?".into(), json!(large()), none())),
            asks(question("1".into(), "?".into(), none(), json!({"a": [{"b": large()}]}))),
            asks(question("1".into(), "?".into(), none(), json!({large(): 1}))),
            ReplyKind::Result { worker: large(), result: Json::empty_object() },
            ReplyKind::Result { worker: "w1".into(), result: Json::of(&large()).unwrap() },
            tells(event(large(), progress())),
            tells(of_kind(FabricEventKind::Other(large()))),
            tells(of_kind(FabricEventKind::InputResponse { input_id: Some(large()) })),
            tells(of_kind(FabricEventKind::InputRequest(question("1".into(), large(), none(), none())))),
            tells(FabricEvent { message: large(), ..w1() }),
            tells(FabricEvent { severity: large(), ..w1() }),
            tells(FabricEvent { task: Some(large()), ..w1() }),
            tells(FabricEvent { data: Json::of(&large()).unwrap(), ..w1() }),
        ];
        for kind in kinds {
            let weight = weight(kind.clone());
            assert!((LARGE..LARGE + 4096).contains(&weight), "{weight} of {kind:?}");
        }
    }

    #[test]
    fn many_small_parts_are_counted_by_what_each_takes() {
        let names = vec![String::new(); 1000];
        assert!(weight(ReplyKind::Accepted { workers: names.clone() }) >= 1000 * size_of::<String>());
        let zeros = Value::Array(vec![json!(0); 1000]);
        let request = question("1".into(), "?".into(), zeros, Value::Null);
        assert!(weight(ReplyKind::WaitingInput { worker: "w1".into(), request }) >= 1000 * size_of::<Value>());
        let target = Workers::List(names);
        for context in [Context::Answer { target }, Context::Answer { target: Workers::One(large()) }] {
            let kind = ReplyKind::Refused { errors: Vec::new() };
            let reply = Reply { context, ..Reply::new(JobId::new("043b").unwrap(), kind) };
            assert!(bytes_of(&reply) >= 1000 * size_of::<String>());
        }
    }
}
