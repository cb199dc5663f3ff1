//! The broker dies under jobs for all workers: just when it has handed one over, or while the answers are on their way. The
//! one that follows knows no worker, and each registers in its own time. It has chance of its own, so that all else that
//! follows from a seed is the same with and without.

use super::{Event, MILLI, SECOND, State};
use crate::rng::Rng;
use crate::script::WORKERS;

/// What the broker does by itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    Dies,
    Starts,
}

/// How many jobs the broker is still to die under.
#[derive(Debug)]
pub(super) struct Ambush {
    rng: Rng,
    times: u32,
}

impl Ambush {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed ^ 0xa3b5), times: 0 }
    }

    /// There is none any more.
    pub(super) fn lift(&mut self) {
        self.times = 0;
    }
}

impl State {
    pub(crate) fn lie_in_ambush(&mut self, times: u32) {
        self.ambush.times = times;
    }

    /// The broker has handed a job over to all workers that it knows.
    pub(super) fn handed_to_all(&mut self) {
        let ambush = &mut self.ambush;
        if ambush.times == 0 {
            return;
        }
        ambush.times -= 1;
        let at_once = ambush.rng.per_mille(700);
        let dies_in = if at_once { 0 } else { ambush.rng.between(MILLI, 300 * MILLI) };
        let away = ambush.rng.pick(&[20 * MILLI, SECOND, 4 * SECOND]);
        let starts_in = dies_in + ambush.rng.between(MILLI, away);
        let now = self.now();
        self.at(now + dies_in, Event::Broker { turn: Turn::Dies });
        self.at(now + starts_in, Event::Broker { turn: Turn::Starts });
    }

    /// One worker notices soon that the broker is another; when the others do is chance.
    pub(super) fn broker_comes_back(&mut self) {
        self.broker_starts();
        let first = self.ambush.rng.between(0, WORKERS.len() as u64 - 1) as usize;
        if self.workers[first].is_running() {
            self.register_within(first, SECOND);
        }
    }
}
