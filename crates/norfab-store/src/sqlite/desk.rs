//! A connection, and the row of the work that waits for it. Whoever has the connection carries out what waits: its own thread,
//! or a caller that may wait for the disk itself and finds the connection free, which saves both ways between two threads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::Durability;
use super::driver::{NoAnswer, Work, caught};
use super::group::{self, Member, Patience};
use super::log::Log;

/// A connection and what waits for it.
pub(super) struct Desk {
    state: Mutex<State>,
    /// The thread of the connection has something to do.
    called: Condvar,
    /// How long another program that holds the database is waited for.
    busy_timeout: Duration,
    /// The log of a connection that writes.
    log: Option<Log>,
}

struct State {
    row: VecDeque<Work>,
    /// None while somebody works with it.
    connection: Option<Connection>,
    is_open: bool,
}

impl fmt::Debug for Desk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Desk").field("busy_timeout", &self.busy_timeout).finish_non_exhaustive()
    }
}

impl Desk {
    /// One whose connection comes with [`serve`](Self::serve).
    pub(super) fn new(busy_timeout: Duration, log: Option<Log>) -> Self {
        let state = State { row: VecDeque::new(), connection: None, is_open: true };
        Self { state: Mutex::new(state), called: Condvar::new(), busy_timeout, log }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts work behind all that waits. Somebody has to come to it: [call](Self::call), or [lend a hand](Self::lend_a_hand).
    pub(super) fn put(&self, work: Work) -> Result<(), NoAnswer> {
        let mut state = self.state();
        if !state.is_open {
            return Err(NoAnswer::Closed);
        }
        state.row.push_back(work);
        Ok(())
    }

    /// Has the thread of the connection come to what waits. Where somebody is at work, they do so by themselves.
    pub(super) fn call(&self) {
        let state = self.state();
        if state.connection.is_some() && !state.row.is_empty() {
            self.called.notify_one();
        }
    }

    /// Whether it takes more work.
    pub(super) fn is_open(&self) -> bool {
        self.state().is_open
    }

    /// Whether nobody works with the connection.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state().connection.is_some()
    }

    /// Takes no more work. The connection is closed by its thread, once all is done.
    pub(super) fn close(&self) {
        self.state().is_open = false;
        self.called.notify_one();
    }

    /// Carries out what waits, and what comes, until it is closed: what the thread of the connection does.
    pub(super) fn serve(&self, mut connection: Connection) {
        loop {
            while let Some(work) = self.next_if(|_| true) {
                drop(caught(|| self.carry_out(&connection, work, Patience::Waits)));
            }
            let mut state = self.state();
            if state.row.is_empty() {
                state.connection = Some(connection);
                match self.wait(state) {
                    Some(free) => connection = free,
                    None => return,
                }
            }
        }
    }

    /// Waits for work, with the connection to do it; None once it is closed and all is done. Then the connection is closed.
    fn wait(&self, mut state: MutexGuard<'_, State>) -> Option<Connection> {
        loop {
            if !state.row.is_empty() && state.connection.is_some() {
                return state.connection.take();
            }
            if !state.is_open && state.connection.is_some() {
                let last = state.connection.take();
                drop(state);
                if let Some(log) = &self.log {
                    // The last one to close the file writes the rest of the log back and removes it.
                    log.wait();
                }
                drop(last);
                return None;
            }
            state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Carries out work. Returns it where it would have to wait.
    fn carry_out(&self, connection: &Connection, work: Work, patience: Patience) -> Option<Work> {
        let carry_out = || match work {
            Work::Alone(work) | Work::Look(work) => {
                work(connection);
                None
            }
            Work::Shared(first) => group::carry_out(connection, first, self, patience).map(Work::Shared),
        };
        match &self.log {
            Some(log) => log.look_after(connection, carry_out),
            None => carry_out(),
        }
    }

    /// Carries out what waits until the caller's own work is done, if the connection is free and the database is not held by
    /// another program: otherwise its thread does it all the same, and waits as long as it must.
    pub(super) fn lend_a_hand(&self, mut is_done: impl FnMut() -> bool) {
        let Some(connection) = self.state().connection.take() else { return };
        let may_go = connection.busy_timeout(Duration::ZERO).is_ok();
        while may_go && !is_done() {
            let Some(work) = self.next_if(|work| !work.may_wait()) else { break };
            if let Some(Some(waits)) = caught(|| self.carry_out(&connection, work, Patience::None)) {
                self.state().row.push_front(waits);
                break;
            }
        }
        if let Err(error) = connection.busy_timeout(self.busy_timeout) {
            tracing::warn!(%error, "Cannot set how long a database that is held is waited for");
        }
        let mut state = self.state();
        state.connection = Some(connection);
        if !state.row.is_empty() || !state.is_open {
            self.called.notify_one();
        }
    }

    fn next_if(&self, suits: impl FnOnce(&Work) -> bool) -> Option<Work> {
        self.state().row.pop_front_if(|work| suits(work))
    }

    /// The next call, if it may share the transaction of the one before.
    pub(super) fn join(&self, suits: impl FnOnce(&Member) -> bool) -> Option<Member> {
        match self.next_if(|work| work.shared().is_some_and(suits))? {
            Work::Shared(call) => Some(call),
            Work::Alone(_) | Work::Look(_) => None,
        }
    }

    /// What the next calls that may share a transaction need of the disk, so many at most; None where there is none.
    pub(super) fn company(&self, most: usize) -> Option<Durability> {
        let state = self.state();
        let all = state.row.iter().map_while(Work::shared).take(most).map(|member| member.durability);
        all.reduce(Durability::or)
    }
}
