//! What makes the threads of a worker race: they are held up, and what goes between the broker and them is doubled. It has
//! chance of its own, so that all else that follows from a seed is the same with and without.

use norfab_model::{Inbound, ReplyKind};

use super::{Event, Held, Lane, MILLI, Micros, SECOND, State};
use crate::rng::Rng;

/// The longest that a whole process is held up: the broker waits a little longer for it by default.
const LONGEST_PROCESS: Micros = 14 * SECOND;
/// The longest that jobs wait to be stored: about what a worker takes for a thousand that come at once.
const LONGEST_STORE: Micros = 8 * SECOND;

/// How much strain the workers of a run are under.
#[derive(Debug)]
pub(super) struct Strain {
    rng: Rng,
    /// How often something that arrives finds its worker held up.
    stalls_per_mille: u64,
    /// Chance of the answers that a job is not known alone.
    babble: Rng,
}

impl Strain {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x57a1);
        let stalls_per_mille = rng.pick(&[200, 400, 600]);
        Self { rng, stalls_per_mille, babble: Rng::new(seed ^ 0xbab1) }
    }
}

impl State {
    /// Whether a message comes twice.
    pub(super) fn echoes(&mut self) -> bool {
        self.noise.echoes && self.strain.rng.per_mille(300)
    }

    /// How often what a worker says comes again. That it does not know a job comes again and again: nobody must believe it
    /// for that.
    pub(super) fn repeats(&mut self, kind: &ReplyKind) -> u64 {
        let echoes = self.echoes();
        let babble = &mut self.strain.babble;
        match kind {
            ReplyKind::NotFound { .. } if echoes || self.noise.echoes && babble.per_mille(500) => babble.between(1, 4),
            _ => u64::from(echoes),
        }
    }

    /// The broker hands a message to a worker's process.
    pub(super) fn deliver(&mut self, worker: usize, message: Held) {
        let delay = self.delay();
        if self.echoes() {
            self.along(Lane::ToWorker(worker), delay, Event::AtWorker { worker, message: message.clone() });
        }
        self.along(Lane::ToWorker(worker), delay, Event::AtWorker { worker, message });
    }

    /// Says once more what was just said: it comes right behind.
    pub(super) fn say_again(&mut self, inbound: Inbound) {
        if self.socket.connected && !self.socket.stolen && !self.cut {
            let epoch = self.socket.epoch;
            self.along(Lane::ToClient, MILLI, Event::AtClient { epoch, inbound });
        }
    }

    /// Holds up the threads that take messages, now and then: both where the process does not get the processor, the one
    /// that stores where others have the database. Then each goes on as soon as it can, and what has gathered is taken in
    /// one go: which of the two is the first is chance.
    pub(super) fn hold_up(&mut self, worker: usize) {
        let lanes = [Lane::Posts(worker), Lane::Gets(worker)];
        let behind = lanes.iter().any(|lane| self.lanes.get(lane).is_some_and(|last| *last > self.now()));
        let strain = &mut self.strain;
        if !self.noise.stalls || behind || !strain.rng.per_mille(strain.stalls_per_mille) {
            return;
        }
        let (threads, longest) = if strain.rng.per_mille(200) { (1, LONGEST_STORE) } else { (2, LONGEST_PROCESS) };
        let most = strain.rng.pick(&[20 * MILLI, 2 * SECOND, longest]);
        let span = strain.rng.between(MILLI, most);
        for lane in lanes.into_iter().take(threads) {
            let wakes = self.strain.rng.between(50, 4 * MILLI);
            self.lanes.insert(lane, self.now() + span + wakes);
        }
    }
}
