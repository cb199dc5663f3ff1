//! Which workers the broker knows, and since when: one that was started again knows none, and one that it does not hear of
//! for its holdtime is forgotten.

use norfab_model::{JobId, Json};

use super::{Event, MILLI, Micros, SECOND, State};
use crate::script::WORKERS;

/// A worker that the broker knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registration {
    since: Micros,
    /// Which silence it is in.
    silence: Option<u64>,
}

impl Registration {
    pub(super) fn new(since: Micros) -> Self {
        Self { since, silence: None }
    }
}

impl State {
    pub(crate) fn broker_dies(&mut self) {
        if self.broker_up {
            self.note(|| "broker dies".into());
            let now = self.now();
            for worker in 0..self.workers.len() {
                if !self.registered.contains_key(&worker) && self.is_waited_for_no_more(now) {
                    self.workers[worker].given_up_at = Some(now);
                }
            }
            self.broker_up = false;
            self.registered.clear();
            self.socket.last_words = None;
            if !self.cut {
                self.disconnect();
            }
        }
    }

    pub(crate) fn broker_starts(&mut self) {
        if !self.broker_up {
            self.note(|| "broker starts".into());
            (self.broker_up, self.broker_since) = (true, self.now());
            self.connect_soon();
            for worker in 0..self.workers.len() {
                if self.workers[worker].is_running() {
                    self.register_within(worker, self.numbers.holdtime * MILLI);
                }
            }
        }
    }

    pub(super) fn register_within(&mut self, worker: usize, span: Micros) {
        let at = self.now() + self.rng.between(MILLI, span);
        let life = self.workers[worker].life;
        self.at(at, Event::Registers { worker, life });
    }

    pub(super) fn registers(&mut self, worker: usize, life: u32) {
        if !self.broker_up || !self.workers[worker].runs(life) {
            return;
        }
        let now = self.now();
        if let Some(known) = self.registered.get_mut(&worker) {
            known.silence = None;
            return;
        }
        self.note(|| format!("broker knows {}", WORKERS[worker].0));
        self.registered.insert(worker, Registration::new(now));
        if self.is_waited_for_no_more(now) {
            self.workers[worker].given_up_at = Some(now);
        }
    }

    /// Whether workers have had the time to register with this broker that they are waited for.
    fn is_waited_for_no_more(&self, now: Micros) -> bool {
        now - self.broker_since >= self.numbers.gone * SECOND
    }

    /// The broker hears no more of a worker.
    pub(super) fn falls_silent(&mut self, worker: usize) {
        self.silences += 1;
        let silence = self.silences;
        if let Some(known) = self.registered.get_mut(&worker) {
            known.silence = Some(silence);
            let at = self.now() + self.numbers.holdtime * MILLI;
            self.at(at, Event::Purges { worker, silence });
        }
    }

    pub(super) fn purges(&mut self, worker: usize, silence: u64) {
        if self.registered.get(&worker).is_some_and(|known| known.silence == Some(silence)) {
            self.note(|| format!("broker drops {}", WORKERS[worker].0));
            self.registered.remove(&worker);
            self.workers[worker].given_up_at = Some(self.now());
        }
    }

    /// Whether the client may count without a worker that has a job: since the job was first sent, the broker dropped the
    /// worker, or the worker took longer to register with a new one than it is waited for, or never did.
    pub(crate) fn was_given_up(&self, worker: usize, job: &JobId) -> bool {
        let first = self.first_post.get(job);
        first.zip(self.workers[worker].given_up_at).is_some_and(|(first, at)| *first <= at)
    }

    /// The answer to `show_workers`.
    pub(super) fn list(&self) -> Json {
        let entry = |(worker, known): (&usize, &Registration)| {
            let (name, service) = WORKERS[*worker];
            let alive = (self.now() - known.since) / SECOND;
            serde_json::json!({ "name": name, "service": service, "status": "alive", "alive (s)": alive.to_string() })
        };
        Json::from(serde_json::Value::Array(self.registered.iter().map(entry).collect()))
    }
}
