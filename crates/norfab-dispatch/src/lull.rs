//! A moment in which what came is left in the row, for what follows it: the result of a short job comes a fraction of a
//! millisecond after the word that there is one, and both are stored at once then. Nothing is kept from being sent meanwhile.

use std::time::Duration;

use norfab_model::{Broker, Clock, Link, Reply, ReplyKind, ScheduleStore, Store};

use crate::Dispatcher;
use crate::dispatcher::MUCH;

/// How long what came waits for the next message, by the runtime's time: it is a pause in what arrives, no instant.
pub(crate) const LULL: Duration = Duration::from_millis(2);
/// How many messages are waited for in a row.
const MOST: u32 = 4;

/// How often the next message has been waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lull(u32);

impl Lull {
    pub(crate) fn is_over(self) -> bool {
        self.0 == 0
    }
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Whether more is waited for after what just came: while little is under way, since with much of it replies gather
    /// anyway, and only where nothing came that a caller waits for.
    pub(crate) fn lull_after(&self, before: Lull) -> Lull {
        let little = !self.inbox.is_empty() && self.requests.len() < MUCH;
        let expects = little && self.is_settled() && self.link.link() == Link::Up && self.inbox.iter().all(announces);
        if expects && before.0 < MOST { Lull(before.0 + 1) } else { Lull::default() }
    }
}

/// Whether something is to follow a reply, and nobody acts on it but by asking for that.
fn announces(reply: &Reply) -> bool {
    match reply.kind {
        ReplyKind::Accepted { .. } | ReplyKind::Stored { .. } | ReplyKind::Event(_) => true,
        ReplyKind::Refused { .. }
        | ReplyKind::Pending { .. }
        | ReplyKind::WaitingInput { .. }
        | ReplyKind::Result { .. }
        | ReplyKind::NotFound { .. } => false,
    }
}
