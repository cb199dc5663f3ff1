//! Calls that wait for the thread that writes at the same time share one transaction, and so one log entry of each page and
//! one wait for the disk. Each is still whole by itself: what one of them undoes is undone for it alone.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;

use super::Durability;
use super::driver::Work;
use super::error::Failure;
use super::statement::Tx;

/// The most calls of one transaction.
const MOST: usize = 32;
/// How long a call waits for the one that is known to follow it. To wake a thread takes a good part of that.
const COMPANY: Duration = Duration::from_micros(200);

/// A call that may share its transaction.
pub(super) struct Member {
    /// What it needs of the disk.
    pub(super) durability: Durability,
    pub(super) company: Company,
    pub(super) work: Box<Part>,
}

/// What a call does, within a transaction that it may share.
type Part = dyn FnOnce(&Connection, Option<&Group>) -> Tell + Send;

/// Tells who waits for a call what came of it, once it is known whether the transaction stays.
pub(super) type Tell = Box<dyn FnOnce(Result<(), Undone>) + Send>;

/// Whether another call is known to follow at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    AsItComes,
    Follows,
}

/// Why what a call did is undone although it went well.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Undone {
    #[error("what was done together could not be committed")]
    Commit(#[source] Arc<Failure>),
    #[error("SQLite undid what was done together, as a part of it failed")]
    Together,
}

/// The transaction that several calls share.
pub(super) struct Group {
    durability: Durability,
    state: Cell<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    NotBegun,
    Begun,
}

impl Group {
    fn new(durability: Durability) -> Self {
        Self { durability, state: Cell::new(State::NotBegun) }
    }

    /// Whether what is committed here is as safe as a call needs it.
    fn serves(&self, durability: Durability) -> bool {
        self.durability == Durability::Full || durability == Durability::Normal
    }

    /// Begins the part of one call.
    pub(super) fn begin<'a>(&self, connection: &'a Connection) -> rusqlite::Result<Tx<'a>> {
        if self.state.get() == State::NotBegun {
            Tx::open(connection, self.durability)?;
            self.state.set(State::Begun);
        }
        Tx::within(connection)
    }

    fn end(&self, connection: &Connection) -> Result<(), Undone> {
        if self.state.get() == State::NotBegun {
            return Ok(());
        }
        // A full disk, for one, makes SQLite undo everything.
        if connection.is_autocommit() {
            return Err(Undone::Together);
        }
        Tx::close(connection).map_err(|error| Undone::Commit(Arc::new(error.into())))
    }
}

/// Carries out a call, together with those that have come by its end. Returns what came behind them and is none of theirs.
pub(super) fn carry_out(connection: &Connection, first: Member, waiting: &mpsc::Receiver<Work>) -> Option<Work> {
    let mut next = waiting.try_recv().ok();
    let second = match &next {
        Some(Work::Shared(second)) => Some(second.durability),
        _ => None,
    };
    if second.is_none() && (first.company == Company::AsItComes || next.is_some()) {
        if let Some(tell) = run(connection, None, first) {
            tell(Ok(()));
        }
        return next;
    }
    let group = Group::new(second.filter(|second| *second == Durability::Full).unwrap_or(first.durability));
    let mut tells = Vec::new();
    let mut follows = first.company;
    let mut member = Some(first);
    while let Some(call) = member.take() {
        tells.extend(run(connection, Some(&group), call));
        next = next.or_else(|| following(waiting, follows));
        follows = Company::AsItComes;
        match next {
            Some(Work::Shared(call)) if tells.len() < MOST && group.serves(call.durability) => {
                member = Some(call);
                next = None;
            }
            other => next = other,
        }
    }
    let outcome = group.end(connection);
    for tell in tells {
        tell(outcome.clone());
    }
    next
}

fn following(waiting: &mpsc::Receiver<Work>, company: Company) -> Option<Work> {
    match company {
        Company::AsItComes => waiting.try_recv().ok(),
        Company::Follows => waiting.recv_timeout(COMPANY).ok(),
    }
}

/// None after a panic: its part is undone, and who waits learns that there is no answer.
fn run(connection: &Connection, group: Option<&Group>, call: Member) -> Option<Tell> {
    let done = catch_unwind(AssertUnwindSafe(|| (call.work)(connection, group)));
    if done.is_err() {
        super::driver::tell_of_panic();
    }
    done.ok()
}
