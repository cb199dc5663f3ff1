//! The points at which the client may be hurt: each call of its store and of its broker. What is armed goes off at the
//! n-th call.
//!
//! The client may die at any await, and these points are all of them that differ. What outlives it is what the database,
//! the broker and its own socket have taken, and these are changed by nothing but the calls that pass here, one by one: all
//! that counts of an await is how many of them are done by then. A death before a call and one behind it, of each call,
//! are all those numbers: to die within a call is to die with its work not done, or with its work done and not told. It is
//! the same where calls run side by side, as a store carries them out in the order in which they began, and who is dead
//! does nothing more, in none of them. While the client only waits (for time, a message, a command) a step of the script
//! kills it. Not covered is a store that is killed within its own work, with a commit half written: that is for the tests
//! which kill real processes.

use std::sync::{Arc, Mutex, MutexGuard};

use norfab_model::StoreError;

use crate::script::Op;

/// Where in a call something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is under way, and nothing of it is done.
    Before,
    /// It is done, and its caller is not told.
    After,
}

/// What goes off.
#[derive(Debug, Clone)]
pub(crate) enum Charge {
    /// The process dies.
    Crash(Place),
    /// The process dies at the next call that makes the jobs of a schedule that is due.
    CrashAtMaking(Place),
    /// The store fails, this often.
    Fail { place: Place, times: u32, what: &'static str },
    /// The store fails once, at the next call that makes the jobs of a schedule that is due.
    FailAtMaking { place: Place, what: &'static str },
    /// Somebody else changes the store first.
    Interlope(Op),
}

/// What a call of the store is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It makes the jobs of schedules, and one is due.
    Making,
    Else,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Crash(Place),
    Fail(Place, &'static str),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// How many calls are left before each charge goes off.
    armed: Vec<(u32, Charge)>,
    crashed: bool,
    store_calls: u32,
    /// How many calls since time last passed.
    calls: u32,
}

/// How many calls of the store one instant may see.
const MOST_CALLS: u32 = 20_000;

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }

    pub(crate) fn arm(&self, after: u32, charge: Charge) {
        self.state().armed.push((after, charge));
    }

    pub(crate) fn disarm(&self) {
        self.state().armed.clear();
    }

    /// A new process: what was to hit the old one is over.
    pub(crate) fn new_process(&self) {
        let mut state = self.state();
        state.crashed = false;
        state.store_calls = 0;
        state.armed.retain(|(_, charge)| !matches!(charge, Charge::Crash(_)));
    }

    pub(crate) fn crash(&self) {
        self.state().crashed = true;
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.state().crashed
    }

    pub(crate) fn is_in_store(&self) -> bool {
        self.state().store_calls > 0
    }

    /// Time goes on.
    pub(crate) fn time_passes(&self) {
        self.state().calls = 0;
    }

    /// Whether the client calls the store again and again while no time passes.
    pub(crate) fn runs_away(&self) -> bool {
        self.state().calls > MOST_CALLS
    }

    /// Counts a call of the store: who else changes it first, and what becomes of the call.
    pub(crate) fn store_call(&self, doing: Doing) -> (Vec<Op>, Fate) {
        let mut state = self.state();
        let (mut ops, mut fate) = (Vec::new(), Fate::Pass);
        state.calls += 1;
        if state.calls > MOST_CALLS {
            return (ops, Fate::Crash(Place::Before));
        }
        let mut armed = std::mem::take(&mut state.armed);
        armed.retain_mut(|(left, charge)| {
            let at_making = matches!(charge, Charge::CrashAtMaking(_) | Charge::FailAtMaking { .. });
            let elsewhere = at_making && doing != Doing::Making;
            if *left > 0 || elsewhere {
                *left = left.saturating_sub(1);
                return true;
            }
            match charge {
                Charge::Interlope(op) => ops.push(op.clone()),
                Charge::Crash(place) | Charge::CrashAtMaking(place) => fate = Fate::Crash(*place),
                Charge::FailAtMaking { place, what } => fate = Fate::Fail(*place, what),
                Charge::Fail { place, times, what } => {
                    fate = Fate::Fail(*place, what);
                    *times -= 1;
                    return *times > 0;
                }
            }
            false
        });
        state.armed = armed;
        (ops, fate)
    }

    /// Counts a call of the broker, at which the process may die.
    pub(crate) fn broker_call(&self) -> Option<Place> {
        let mut state = self.state();
        let mut found = None;
        state.armed.retain_mut(|(left, charge)| match charge {
            Charge::Crash(place) if *left == 0 => {
                found = Some(*place);
                false
            }
            Charge::Crash(_) => {
                *left -= 1;
                true
            }
            _ => true,
        });
        found
    }

    /// Marks that a call of the store is under way, until the mark is dropped.
    pub(crate) fn enter(&self) -> Inside {
        self.state().store_calls += 1;
        Inside(self.clone())
    }
}

/// A call of the store is under way.
pub(crate) struct Inside(Gate);

impl Drop for Inside {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.store_calls = state.store_calls.saturating_sub(1);
    }
}

/// The error of a store that fails.
pub(crate) fn storage(what: &'static str) -> StoreError {
    StoreError::Storage { doing: "work in the simulation", source: what.into() }
}
