//! The broker: which workers a message is for, and what it answers itself. Pure; chance comes from outside.

use norfab_model::{Uptime, Workers};
use norfab_nfp::{BROKER_SERVICE, Command, Envelope, Frames, Header, INVENTORY_SERVICE, Status, parse_target};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{self, Dispatched, Refused, python_bytes};

/// The service that stands for all services.
const EVERY_SERVICE: &str = "all";

/// What the broker does with a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Answers the client.
    Answer(Frames),
    /// Hands the message to a worker, given by its number.
    Deliver { worker: usize, command: Command, uuid: String, payload: Vec<u8> },
}

/// A worker as the broker knows it.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) name: String,
    pub(crate) service: String,
}

/// The broker's knowledge.
#[derive(Debug)]
pub(crate) struct Broker {
    endpoint: String,
    started: Uptime,
    workers: Vec<Registration>,
    received: u64,
}

/// A client's request whose fields are text.
struct Request {
    command: Command,
    service: String,
    target: String,
    uuid: String,
    payload: Vec<u8>,
}

impl Broker {
    pub(crate) fn new(endpoint: String, started: Uptime, workers: Vec<Registration>) -> Self {
        Self { endpoint, started, workers, received: 0 }
    }

    /// Decides about a client's message. `choose` picks one of so many workers, by chance. Nothing comes of frames that
    /// are no message of a client.
    pub(crate) fn decide(
        &mut self,
        now: Uptime,
        envelope: Envelope,
        choose: &mut impl FnMut(usize) -> usize,
    ) -> Vec<Decision> {
        self.received += 1;
        let Envelope { command, fields: [service, target, uuid, payload] } = envelope;
        let Some(command) = Command::from_bytes(&command).filter(|command| is_for_clients(*command)) else {
            return vec![Decision::Answer(wire::unsupported(&service, &command))];
        };
        let (Ok(service), Ok(target), Ok(uuid)) =
            (String::from_utf8(service), String::from_utf8(target), String::from_utf8(uuid))
        else {
            return Vec::new();
        };
        let request = Request { command, service, target, uuid, payload };
        match request.service.as_str() {
            BROKER_SERVICE | INVENTORY_SERVICE => self.question(now, &request),
            _ => self.dispatch(request, choose),
        }
    }

    fn dispatch(&self, request: Request, choose: &mut impl FnMut(usize) -> usize) -> Vec<Decision> {
        let chosen = self.targeted(&request.service, &request.target, choose);
        if chosen.is_empty() {
            return vec![Decision::Answer(refusal(&request))];
        }
        let mut decisions = Vec::with_capacity(chosen.len() + 1);
        let Request { command, service, target, uuid, payload } = request;
        if matches!(command, Command::Post | Command::Get) {
            let workers =
                chosen.iter().filter_map(|number| self.workers.get(*number)).map(|w| w.name.as_str()).collect();
            let dispatched =
                Dispatched { workers, uuid: &uuid, target: &target, status: "DISPATCHED", service: &service };
            decisions.push(Decision::Answer(wire::message(
                Command::Response,
                &service,
                &uuid,
                Status::Accepted,
                &dispatched,
            )));
        }
        decisions.extend(chosen.into_iter().map(|worker| Decision::Deliver {
            worker,
            command,
            uuid: uuid.clone(),
            payload: payload.clone(),
        }));
        decisions
    }

    /// The numbers of the workers that a target means. A name is looked up among the workers of every service, but only
    /// when the service has workers.
    fn targeted(&self, service: &str, target: &str, choose: &mut impl FnMut(usize) -> usize) -> Vec<usize> {
        let of_service: Vec<usize> = self.numbers(|worker| service == EVERY_SERVICE || worker.service == service);
        if of_service.is_empty() {
            return Vec::new();
        }
        match parse_target(target) {
            Workers::All => of_service,
            Workers::Any => self.one_of_each_service(&of_service, choose),
            Workers::One(name) => self.numbers(|worker| worker.name == name),
            Workers::List(names) => {
                let mut numbers = Vec::new();
                for number in names.iter().flat_map(|name| self.numbers(|worker| worker.name == *name)) {
                    if !numbers.contains(&number) {
                        numbers.push(number);
                    }
                }
                numbers
            }
        }
    }

    fn numbers(&self, is_meant: impl Fn(&Registration) -> bool) -> Vec<usize> {
        self.workers.iter().enumerate().filter(|(_, worker)| is_meant(worker)).map(|(number, _)| number).collect()
    }

    fn one_of_each_service(&self, numbers: &[usize], choose: &mut impl FnMut(usize) -> usize) -> Vec<usize> {
        let mut by_service: Vec<(&str, Vec<usize>)> = Vec::new();
        for &number in numbers {
            let Some(worker) = self.workers.get(number) else { continue };
            match by_service.iter_mut().find(|(service, _)| *service == worker.service) {
                Some((_, members)) => members.push(number),
                None => by_service.push((&worker.service, vec![number])),
            }
        }
        by_service.iter().filter_map(|(_, members)| members.get(choose(members.len())).copied()).collect()
    }

    /// A question to the broker itself, whatever the command. The answer goes out twice.
    fn question(&self, now: Uptime, request: &Request) -> Vec<Decision> {
        let Ok(question) = serde_json::from_slice::<Question>(&request.payload) else { return Vec::new() };
        let answer = if request.service == BROKER_SERVICE {
            self.answer(now, &question)
        } else {
            // No inventories are kept here.
            (question.task == "get_inventory").then_some(Value::Null)
        };
        let answer = answer.unwrap_or_else(|| json!(format!("Unsupported task '{}'", plain(&question.task))));
        [Command::Response, Command::Mmi]
            .map(|command| {
                Decision::Answer(wire::message(command, &request.service, &request.uuid, Status::Ok, &answer))
            })
            .into()
    }

    fn answer(&self, now: Uptime, question: &Question) -> Option<Value> {
        let task = question.task.as_str()?;
        match task {
            "show_workers" => Some(self.show_workers(now, &question.kwargs)),
            "show_broker_version" => Some(json!({
                "norfab": "", "norfab-loopback": env!("CARGO_PKG_VERSION"), "platform": std::env::consts::OS,
            })),
            "get_status" => Some(json!({
                "name": "loopback", "role": "broker", "status": "active", "endpoint": self.endpoint,
                "security": { "zmq_auth": false },
            })),
            "get_stats" => Some(json!({
                "name": "loopback", "role": "broker", "status": "active", "endpoint": self.endpoint,
                "messaging": { "received": self.received }, "worker_count": self.workers.len(),
            })),
            "show_broker_inventory" => Some(json!({ "broker": { "endpoint": self.endpoint, "zmq_auth": false } })),
            "get_logs" => Some(json!([])),
            _ => None,
        }
    }

    /// Every worker is alive as long as the fabric is. Without a match there is one entry of empty texts.
    fn show_workers(&self, now: Uptime, kwargs: &Value) -> Value {
        let wanted = |key: &str| kwargs.get(key).and_then(Value::as_str);
        let service = wanted("service").filter(|service| *service != EVERY_SERVICE);
        let is_shown = |worker: &&Registration| {
            service.is_none_or(|service| worker.service == service) && wanted("status") != Some("dead")
        };
        let alive = now.since(self.started).as_secs();
        let entries: Vec<Value> = self
            .workers
            .iter()
            .filter(is_shown)
            .map(|worker| {
                json!({
                    "name": worker.name, "service": worker.service, "status": "alive", "holdtime": "15.0",
                    "keepalives tx/rx": "0 / 0", "alive (s)": alive.to_string(),
                })
            })
            .collect();
        if entries.is_empty() { json!([{ "name": "", "service": "", "status": "" }]) } else { Value::from(entries) }
    }
}

/// The payload of a question.
#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    task: Value,
    #[serde(default)]
    kwargs: Value,
}

/// A value as Python writes it into a text; only texts and null ever occur.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

fn is_for_clients(command: Command) -> bool {
    use Command::{Delete, Disconnect, Get, Mmi, Open, Post, Put};
    matches!(command, Open | Disconnect | Post | Get | Delete | Put | Mmi)
}

fn refusal(request: &Request) -> Frames {
    let Request { service, target, uuid, .. } = request;
    let (asked, meant) = (python_bytes(service.as_bytes()), python_bytes(target.as_bytes()));
    let refused = Refused {
        workers: (),
        uuid,
        target,
        status: "FAILED",
        service,
        errors: [format!("NFPBroker - {asked} service failed to target workers '{meant}'")],
    };
    wire::message(Command::Response, service, uuid, Status::Refused, &refused)
}

/// Frames that are a whole message of a client.
pub(crate) fn envelope_of(frames: Frames) -> Option<Envelope> {
    Envelope::from_frames(frames, Header::Client).ok()
}
