//! A worker: a disk that remembers every job, a thread that takes POSTs, one that answers GETs, and five places for tasks.

use std::collections::{BTreeMap, VecDeque};

use norfab_model::{FabricEvent, FabricEventKind, InputAnswer, InputRequest, JobId, Json, ReplyKind};

use super::{Event, Execution, Lane, MILLI, Micros, SECOND, State, short};
use crate::script::WORKERS;

/// How many tasks run at a time.
const PLACES: usize = 5;

/// A message for a worker.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    Post { job: JobId, task: String },
    Get { job: JobId },
    Put { job: JobId, answer: InputAnswer },
}

/// What a worker's disk knows of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// It waits for a place.
    Stored {
        task: String,
    },
    Running {
        task: String,
    },
    Asking(InputRequest),
    Done(Json),
    /// The worker died while it had it: it is never run again, and counts as running for ever.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Runs,
    Paused,
    Dead,
}

#[derive(Debug, Clone)]
pub(crate) struct Worker {
    name: &'static str,
    health: Health,
    /// Grows with each start.
    pub(crate) life: u32,
    pub(crate) disk: BTreeMap<JobId, Entry>,
    /// When who counts on the broker last had reason to take it for gone.
    pub(super) given_up_at: Option<Micros>,
    running: usize,
    line: VecDeque<JobId>,
    /// What came while it was paused.
    held: Vec<Held>,
}

impl Worker {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            health: Health::Runs,
            life: 1,
            disk: BTreeMap::new(),
            given_up_at: None,
            running: 0,
            line: VecDeque::new(),
            held: Vec::new(),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.health == Health::Runs
    }

    pub(crate) fn runs(&self, life: u32) -> bool {
        self.is_running() && self.life == life
    }

    /// Tells whether it was alive.
    pub(super) fn dies(&mut self) -> bool {
        let was = self.health != Health::Dead;
        self.health = Health::Dead;
        self.life += 1;
        for entry in self.disk.values_mut() {
            if !matches!(entry, Entry::Done(_)) {
                *entry = Entry::Interrupted;
            }
        }
        self.running = 0;
        self.line.clear();
        self.held.clear();
        was
    }

    pub(super) fn starts(&mut self) -> bool {
        let was_dead = self.health == Health::Dead;
        if was_dead {
            self.health = Health::Runs;
        }
        was_dead
    }

    pub(super) fn pauses(&mut self) -> bool {
        let ran = self.is_running();
        if ran {
            self.health = Health::Paused;
        }
        ran
    }

    /// What came meanwhile; None when it was not paused.
    pub(super) fn resumes(&mut self) -> Option<Vec<Held>> {
        (self.health == Health::Paused).then(|| {
            self.health = Health::Runs;
            std::mem::take(&mut self.held)
        })
    }
}

impl State {
    pub(super) fn at_worker(&mut self, worker: usize, message: Held) {
        match self.workers[worker].health {
            Health::Runs => {
                self.hold_up(worker);
                self.hand_over(worker, message);
            }
            Health::Paused => self.workers[worker].held.push(message),
            Health::Dead => {}
        }
    }

    /// Gives a message to the thread that it is for; the two threads race.
    pub(super) fn hand_over(&mut self, worker: usize, message: Held) {
        let lane = if matches!(message, Held::Get { .. }) { Lane::Gets(worker) } else { Lane::Posts(worker) };
        let delay = self.rng.between(50, 4 * MILLI);
        let life = self.workers[worker].life;
        self.along(lane, delay, Event::InThread { worker, life, message });
    }

    pub(super) fn in_thread(&mut self, worker: usize, life: u32, message: Held) {
        let it = &mut self.workers[worker];
        if it.life != life {
            return;
        }
        if !it.is_running() {
            it.held.push(message);
            return;
        }
        match message {
            Held::Post { job, task } => {
                if it.disk.contains_key(&job) {
                    return;
                }
                it.disk.insert(job.clone(), Entry::Stored { task });
                it.line.push_back(job.clone());
                let stored = ReplyKind::Stored { worker: it.name.to_owned() };
                self.says(worker, job, stored);
                self.start_tasks(worker);
            }
            Held::Get { job } => self.answer_get(worker, job),
            Held::Put { job, answer } => self.answered(worker, &job, &answer),
        }
    }

    fn answer_get(&mut self, worker: usize, job: JobId) {
        let it = &self.workers[worker];
        let name = it.name.to_owned();
        let kind = match it.disk.get(&job) {
            None => ReplyKind::NotFound { worker: name },
            Some(Entry::Done(result)) => ReplyKind::Result { worker: name, result: result.clone() },
            Some(Entry::Asking(request)) => ReplyKind::WaitingInput { worker: name, request: request.clone() },
            Some(_) => ReplyKind::Pending { worker: name },
        };
        self.says(worker, job, kind);
    }

    fn says(&mut self, worker: usize, job: JobId, kind: ReplyKind) {
        let delay = self.delay();
        let event = Event::FromWorker { worker, job, kind };
        if self.noise.race {
            let at = self.now() + delay;
            self.at(at, event);
        } else {
            self.along(Lane::FromWorker(worker), delay, event);
        }
    }

    fn tells(&mut self, worker: usize, job: &JobId, kind: FabricEventKind, message: &str) {
        let event = FabricEvent {
            worker: self.workers[worker].name.to_owned(),
            kind,
            message: message.to_owned(),
            severity: "INFO".to_owned(),
            task: None,
            data: Json::empty_object(),
        };
        self.says(worker, job.clone(), ReplyKind::Event(event));
    }

    fn start_tasks(&mut self, worker: usize) {
        while self.workers[worker].running < PLACES {
            let Some(job) = self.workers[worker].line.pop_front() else { return };
            let Some(Entry::Stored { task }) = self.workers[worker].disk.get(&job).cloned() else { continue };
            self.workers[worker].running += 1;
            let at = self.now();
            self.note(|| format!("  {} runs {}", WORKERS[worker].0, short(&job)));
            self.executions.entry(job.clone()).or_default().push(Execution { worker, at });
            self.tells(worker, &job, FabricEventKind::Progress, "starting");
            let life = self.workers[worker].life;
            let lasts: Option<Micros> = match task.as_str() {
                "hangs" => None,
                "slow" => Some(self.rng.between(4 * SECOND, 15 * SECOND)),
                _ => Some(self.rng.between(MILLI, 2 * SECOND)),
            };
            if let Some(lasts) = lasts {
                let job = job.clone();
                let asks = task == "asks";
                let event = if asks { Event::Asks { worker, life, job } } else { Event::Ends { worker, life, job } };
                self.at(at + lasts, event);
            }
            self.workers[worker].disk.insert(job, Entry::Running { task });
        }
    }

    pub(super) fn task_asks(&mut self, worker: usize, life: u32, job: &JobId) {
        if self.workers[worker].life != life {
            return;
        }
        let request = InputRequest {
            id: format!("{}-{}", self.workers[worker].name, short(job)),
            question: "Go on?".to_owned(),
            default: serde_json::Value::Null,
            timeout: Some(20.0),
            metadata: serde_json::Value::Null,
        };
        self.workers[worker].disk.insert(job.clone(), Entry::Asking(request.clone()));
        self.tells(worker, job, FabricEventKind::InputRequest(request), "asks");
        let at = self.now() + 20 * SECOND;
        self.at(at, Event::Ends { worker, life, job: job.clone() });
    }

    fn answered(&mut self, worker: usize, job: &JobId, answer: &InputAnswer) {
        let asked = match self.workers[worker].disk.get(job) {
            Some(Entry::Asking(request)) => request.id == answer.input_id,
            _ => false,
        };
        if asked {
            let input_id = Some(answer.input_id.clone());
            self.workers[worker].disk.insert(job.clone(), Entry::Running { task: "quick".to_owned() });
            self.tells(worker, job, FabricEventKind::InputResponse { input_id }, "received");
            let (at, life) = (self.now() + 200 * MILLI, self.workers[worker].life);
            self.at(at, Event::Ends { worker, life, job: job.clone() });
        }
    }

    pub(super) fn task_ends(&mut self, worker: usize, life: u32, job: &JobId) {
        let it = &mut self.workers[worker];
        if it.life != life {
            return;
        }
        if !it.is_running() {
            // A stopped process goes on where it was.
            let at = self.now() + SECOND;
            self.at(at, Event::Ends { worker, life, job: job.clone() });
            return;
        }
        let failed = match it.disk.get(job) {
            Some(Entry::Running { task }) => task == "fails",
            Some(Entry::Asking(_)) => false,
            _ => return,
        };
        let result = serde_json::json!({ "result": it.name, "failed": failed, "errors": [], "status": "completed" });
        it.disk.insert(job.clone(), Entry::Done(Json::from(result)));
        it.running = it.running.saturating_sub(1);
        self.tells(worker, job, FabricEventKind::ResultReady, "completed");
        self.start_tasks(worker);
    }
}
