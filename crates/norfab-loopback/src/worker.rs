//! One worker: which jobs it has, how each stands, and what it says when it is spoken to. Pure; running a job is asked
//! for by an [`Effect`] and told by a [`News`].

use std::collections::{HashMap, VecDeque};

use norfab_model::{Json, Timestamp};
use norfab_nfp::{Command, Frames, Status};
use serde::Serialize;
use serde_json::{Value, json};

use crate::task::{Call, Posted, Raised};
use crate::wire::{self, Event, Outgoing, Question, Standing, Stored, WorkerResult};

/// What a worker wants done.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Say this.
    Send(Outgoing),
    /// Run this job.
    Run(Run),
    /// Hand the answer to the running job.
    Answer { uuid: String, payload: Vec<u8> },
}

/// A job to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) uuid: String,
    pub(crate) worker: String,
    pub(crate) client: String,
    pub(crate) call: Call,
}

/// What a running job tells.
#[derive(Debug)]
pub(crate) enum News {
    /// One of its steps.
    Step { number: u64, count: u64 },
    /// It waits for an answer.
    Asks(Question),
    /// It waits no longer.
    Asked { question: Question, reply: Reply },
    /// It has ended.
    Ended { started: Timestamp, outcome: Outcome },
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Received { metadata: Json },
    Cancelled { metadata: Json },
    TimedOut,
}

/// How a job ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Completed(Json),
    Failed { message: String },
    Raised { raised: Raised, timed_out: TimedOut },
}

/// Whether a job had used up its time when it raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedOut {
    Yes,
    No,
}

/// A worker and its jobs. It keeps every identity it ever had.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) service: String,
    concurrency: usize,
    running: usize,
    backlog: VecDeque<String>,
    jobs: HashMap<String, Job>,
    takes_jobs: bool,
}

#[derive(Debug)]
struct Job {
    client: Vec<u8>,
    call: Call,
    state: State,
}

#[derive(Debug)]
enum State {
    Unfinished,
    Asks(Question),
    Done(Box<WorkerResult>),
}

impl Worker {
    pub(crate) fn new(name: &str, service: &str, concurrency: usize) -> Self {
        Self {
            name: name.to_owned(),
            service: service.to_owned(),
            concurrency,
            running: 0,
            backlog: VecDeque::new(),
            jobs: HashMap::new(),
            takes_jobs: true,
        }
    }

    /// A POST. A job that is known already is passed over in silence, and so is everything after a payload that is no
    /// JSON object.
    pub(crate) fn post(&mut self, now: Timestamp, client: &[u8], uuid: &str, payload: &[u8]) -> Vec<Effect> {
        if !self.takes_jobs || self.jobs.contains_key(uuid) {
            return Vec::new();
        }
        let call = match Posted::parse(payload) {
            Posted::Call(call) => call,
            Posted::Nothing => return Vec::new(),
            Posted::Poison => {
                self.takes_jobs = false;
                return Vec::new();
            }
        };
        self.jobs.insert(uuid.to_owned(), Job { client: client.to_owned(), call, state: State::Unfinished });
        self.backlog.push_back(uuid.to_owned());
        let stored = Stored { worker: &self.name, uuid, status: "ACCEPTED", service: &self.service };
        let frames = wire::message(Command::Response, &self.service, uuid, Status::Stored, &stored);
        let mut effects = vec![Effect::Send(Outgoing { client: client.to_owned(), frames })];
        effects.extend(self.run_next(now));
        effects
    }

    /// A GET, which any client may send for any job.
    pub(crate) fn get(&self, client: &[u8], uuid: &str) -> Effect {
        let frames = match self.jobs.get(uuid).map(|job| &job.state) {
            None => self.standing(uuid, Status::NotFound, "JOB NOT FOUND", None),
            Some(State::Unfinished) => self.standing(uuid, Status::Pending, "STARTED", None),
            Some(State::Asks(question)) => {
                self.standing(uuid, Status::WaitingInput, "WAITING_CLIENT_INPUT", Some(question))
            }
            Some(State::Done(result)) => {
                let results: HashMap<&str, &WorkerResult> = HashMap::from([(self.name.as_str(), result.as_ref())]);
                wire::message(Command::Response, &self.service, uuid, Status::Ok, &results)
            }
        };
        Effect::Send(Outgoing { client: client.to_owned(), frames })
    }

    /// A PUT, which matters only to a job that runs.
    pub(crate) fn put(&self, uuid: &str, payload: &[u8]) -> Option<Effect> {
        let job = self.jobs.get(uuid)?;
        let runs = !matches!(job.state, State::Done(_)) && !self.backlog.iter().any(|waiting| waiting == uuid);
        runs.then(|| Effect::Answer { uuid: uuid.to_owned(), payload: payload.to_owned() })
    }

    /// Takes news of a running job.
    pub(crate) fn hear(&mut self, now: Timestamp, uuid: &str, news: News) -> Vec<Effect> {
        match news {
            News::Step { number, count } => {
                let event = Happened {
                    resource: json!(format!("step-{number}")),
                    extras: Json::of(&json!({ "step": number })).ok(),
                    ..Happened::progress(format!("step {number} of {count}"), "running")
                };
                self.event(now, uuid, event).into_iter().collect()
            }
            News::Asks(question) => {
                let event = Happened {
                    kind: "input_request",
                    extras: Json::of(&Asking { input_request: &question }).ok(),
                    timeout: Some(question.timeout),
                    ..Happened::progress(question.question.clone(), "waiting_client_input")
                };
                self.set_state(uuid, State::Asks(question));
                self.event(now, uuid, event).into_iter().collect()
            }
            News::Asked { question, reply } => {
                self.set_state(uuid, State::Unfinished);
                self.event(now, uuid, input_response(question, reply)).into_iter().collect()
            }
            News::Ended { started, outcome } => self.ended(now, uuid, started, outcome),
        }
    }

    fn ended(&mut self, now: Timestamp, uuid: &str, started: Timestamp, outcome: Outcome) -> Vec<Effect> {
        let Some(job) = self.jobs.get_mut(uuid) else { return Vec::new() };
        let result = result(&self.name, &self.service, uuid, &job.call.task, outcome);
        job.state = State::Done(Box::new(WorkerResult {
            task_started: wire::result_time(started),
            task_completed: wire::result_time(now),
            ..result
        }));
        self.running = self.running.saturating_sub(1);
        let event = Happened { kind: "result_ready", ..Happened::progress("completed".to_owned(), "completed") };
        let mut effects: Vec<Effect> = self.event(now, uuid, event).into_iter().collect();
        effects.extend(self.run_next(now));
        effects
    }

    /// Starts the next job if there is one and room for it.
    fn run_next(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.running >= self.concurrency {
            return Vec::new();
        }
        let Some(uuid) = self.backlog.pop_front() else { return Vec::new() };
        let Some(job) = self.jobs.get(&uuid) else { return Vec::new() };
        self.running += 1;
        let run = Run {
            uuid: uuid.clone(),
            worker: self.name.clone(),
            client: String::from_utf8_lossy(&job.client).into_owned(),
            call: job.call.clone(),
        };
        let starting = self.event(now, &uuid, Happened::progress("starting".to_owned(), "running"));
        starting.into_iter().chain([Effect::Run(run)]).collect()
    }

    fn set_state(&mut self, uuid: &str, state: State) {
        if let Some(job) = self.jobs.get_mut(uuid) {
            job.state = state;
        }
    }

    fn standing(&self, uuid: &str, status: Status, text: &'static str, question: Option<&Question>) -> Frames {
        let Self { name: worker, service, .. } = self;
        let payload = Standing { worker, uuid, service, status: text, input_request: question };
        wire::message(Command::Response, service, uuid, status, &payload)
    }

    /// Events go to the client that sent the job.
    fn event(&self, now: Timestamp, uuid: &str, happened: Happened) -> Option<Effect> {
        let job = self.jobs.get(uuid)?;
        let event = Event {
            worker: &self.name,
            service: &self.service,
            uuid,
            event_type: happened.kind,
            message: &happened.message,
            task: &job.call.task,
            status: happened.status,
            resource: happened.resource,
            severity: "INFO",
            timestamp: wire::event_time(now),
            extras: happened.extras,
            timeout: happened.timeout,
        };
        let frames = wire::message(Command::Event, &self.service, uuid, Status::Ok, &event);
        Some(Effect::Send(Outgoing { client: job.client.clone(), frames }))
    }
}

/// The part of an event that differs from one to the next.
struct Happened {
    kind: &'static str,
    message: String,
    status: &'static str,
    resource: Value,
    extras: Option<Json>,
    timeout: Option<i64>,
}

/// The extras of a question.
#[derive(Serialize)]
struct Asking<'a> {
    input_request: &'a Question,
}

impl Happened {
    fn progress(message: String, status: &'static str) -> Self {
        Self { kind: "progress", message, status, resource: json!([]), extras: None, timeout: None }
    }
}

fn input_response(question: Question, reply: Reply) -> Happened {
    let Question { id, question, .. } = question;
    let (status, response) = match reply {
        Reply::Received { metadata } => ("received", json!({ "input_id": id, "metadata": metadata })),
        Reply::Cancelled { metadata } => ("cancelled", json!({ "input_id": id, "metadata": metadata })),
        Reply::TimedOut => ("timeout", json!({ "input_id": id })),
    };
    Happened {
        kind: "input_response",
        extras: Json::of(&json!({ "input_response": response })).ok(),
        ..Happened::progress(question, status)
    }
}

/// The result of a job, its times aside.
fn result(worker: &str, service: &str, uuid: &str, task: &str, outcome: Outcome) -> WorkerResult {
    let completed = WorkerResult {
        result: Json::from(Value::Null),
        failed: false,
        errors: Vec::new(),
        task: format!("{worker}:{task}"),
        messages: Vec::new(),
        juuid: uuid.to_owned(),
        resources: [],
        resources_failed: [],
        status: "completed",
        task_started: String::new(),
        task_completed: String::new(),
        service: Some(service.to_owned()),
        diff: (),
        dry_run: false,
    };
    match outcome {
        Outcome::Completed(result) => WorkerResult { result, ..completed },
        Outcome::Failed { message } => {
            WorkerResult { failed: true, errors: vec![message], status: "failed", ..completed }
        }
        Outcome::Raised { raised: Raised { kind, text }, timed_out } => WorkerResult {
            failed: true,
            errors: vec![format!("Traceback (most recent call last):\n{kind}: {text}\n")],
            messages: vec![format!("Worker experienced error: '{text}'")],
            status: if timed_out == TimedOut::Yes { "timeout" } else { "error" },
            service: None,
            ..completed
        },
    }
}
