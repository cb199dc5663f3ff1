//! Two times: the true one, in which things happen and by which the client measures what passes, and the one that its wall
//! clock shows, which may be set to anything.

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use norfab_model::{Clock, Timestamp, Uptime};

/// The true time at the start of every run.
pub(crate) const START: Timestamp = Timestamp::from_seconds(1_795_996_800);

/// The longest sleep, as the clock's port promises.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The client's clock; clones show the same.
#[derive(Debug, Clone)]
pub(crate) struct SimClock(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    truth: Timestamp,
    /// What the clock shows beyond the truth, in microseconds.
    ahead: i64,
    /// When the sleeper wants to be woken, in true time.
    wake: Option<Timestamp>,
    looks: u64,
    /// A sleeper is not woken any more: it has turned on the spot.
    stuck: bool,
    /// How many looks are allowed until time goes on.
    allowance: u64,
}

/// How often the loop may turn while no time passes.
const TURNS: u64 = 5_000;

impl SimClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            truth: START,
            ahead: 0,
            wake: None,
            looks: 0,
            stuck: false,
            allowance: TURNS,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }

    pub(crate) fn truth(&self) -> Timestamp {
        self.state().truth
    }

    /// What the clock shows.
    pub(crate) fn shown(&self) -> Timestamp {
        let state = self.state();
        state.shown()
    }

    pub(crate) fn pass_to(&self, truth: Timestamp) {
        let mut state = self.state();
        if truth > state.truth {
            state.truth = truth;
            state.allowance = state.looks + TURNS;
        }
    }

    /// Sets the clock by so many microseconds.
    pub(crate) fn step(&self, micros: i64) {
        let mut state = self.state();
        state.ahead = state.ahead.saturating_add(micros);
    }

    /// When the loop wants to be woken, in true time.
    pub(crate) fn wake(&self) -> Option<Timestamp> {
        self.state().wake
    }

    /// Nobody sleeps any more.
    pub(crate) fn forget(&self) {
        self.state().wake = None;
    }

    /// How often the time was read: once for each turn of the loop.
    pub(crate) fn looks(&self) -> u64 {
        self.state().looks
    }

    /// Whether the loop turned on the spot.
    pub(crate) fn is_stuck(&self) -> bool {
        self.state().stuck
    }
}

impl State {
    fn shown(&self) -> Timestamp {
        Timestamp::from_micros(self.truth.as_micros().saturating_add(self.ahead))
    }

    /// An instant of the clock, in true time.
    fn in_truth(&self, shown: Timestamp) -> Timestamp {
        Timestamp::from_micros(shown.as_micros().saturating_sub(self.ahead))
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let mut state = self.state();
        state.looks += 1;
        state.shown()
    }

    fn uptime(&self) -> Uptime {
        Uptime::from_start(self.truth().since(START))
    }

    async fn sleep_until(&self, at: Timestamp, until: Uptime) {
        let until = START.saturating_add(until.since(Uptime::START));
        let latest = self.truth().saturating_add(LONGEST_SLEEP);
        std::future::poll_fn(|_| {
            let mut state = self.state();
            let wake = state.in_truth(at).min(until).min(latest);
            state.wake = Some(wake);
            state.stuck |= state.looks > state.allowance;
            if wake <= state.truth && !state.stuck { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
