//! When what came is left in the row for what follows it, so that both are stored at once. Nothing that could be sent waits
//! for that; and while little is under way, nothing that somebody waits for.

use std::time::Duration;

use norfab_model::{Broker, Clock, Link, Moment, Reply, ReplyKind, ScheduleStore, Store, Timestamp};

use crate::Dispatcher;
use crate::requests::Timing;

/// With so many jobs under way more is sure to come.
const MUCH: usize = 32;
/// How long what comes waits for more then, counted from when the last was stored: so long for each job that is under way.
const GATHERING_EACH: Duration = Duration::from_micros(50);
/// How long at the shortest, and where little is under way and nobody waits for it.
const SHORTEST: Duration = Duration::from_millis(10);
/// How long at the longest, and where one instant follows the other.
const LONGEST: Duration = Duration::from_millis(30);
/// So many bytes wait for no more.
const ENOUGH_BYTES: usize = 4 << 20;
/// Where something is due so soon that storing what came might not be done by then, what came is stored after that instant.
const NEAR: Duration = Duration::from_millis(2);
/// How long it waits for the next message with less, by the runtime's time: it is a pause in what arrives, no instant. The
/// result of a short job comes a fraction of a millisecond after the word that there is one.
pub(crate) const LULL: Duration = Duration::from_millis(2);
/// For how many messages in a row.
const MOST: u32 = 4;

/// For how many messages in a row what came has been left in the row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lull(u32);

impl Lull {
    /// Whether nothing is waited for.
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Until when what came waits for more of its kind: a moment, while so much is under way that more is sure to come, or
    /// where nobody waits for it. It is stored together then, and nothing else has to be done before.
    pub(crate) fn gathers(&self, now: Moment) -> Option<Timestamp> {
        let stored = self.stored_at?;
        let is_near = |at: Timestamp| at > now.wall && at <= now.wall.saturating_add(NEAR);
        let is_crowded = self.next_instant().is_some_and(is_near);
        let until = stored.saturating_add(if is_crowded { LONGEST } else { gathering(self.requests.len()) });
        let is_soon = now.up < until;
        let until = now.wall_at(until);
        let is_little = self.inbox.len() < self.config.reply_batch && self.waiting_bytes() < ENOUGH_BYTES;
        let waits = !self.inbox.is_empty() && is_little;
        let expires = self.due.as_ref().is_none_or(|due| due.expire.is_some_and(|at| at <= until));
        let occurs = self.schedule_due.is_some_and(|due| due.is_some_and(|at| at <= now.wall));
        let nothing_else = self.again.is_empty() && !expires && !occurs;
        let is_calm = self.requests.len() >= MUCH || !self.inbox.iter().any(|reply| self.may_be_awaited(reply));
        (is_soon && waits && nothing_else && is_calm).then_some(until)
    }

    /// When a job is due next, as far as that is known.
    fn next_instant(&self) -> Option<Timestamp> {
        let release = self.due.as_ref().and_then(|due| due.release);
        release.into_iter().chain(self.schedule_due.flatten()).min()
    }

    /// Whether somebody may be waiting for what a reply tells.
    fn may_be_awaited(&self, reply: &Reply) -> bool {
        self.requests.cause(&reply.job).is_none_or(|cause| cause.timing == Timing::Immediate)
    }

    /// Whether more is waited for after what just came: while little is under way, where nothing came that a caller waits
    /// for, and no job waits that may be sent by what came.
    pub(crate) fn lull_after(&self, now: Timestamp, before: Lull) -> Lull {
        let little = !self.inbox.is_empty() && self.requests.len() < MUCH;
        let settled = self.is_settled() && self.link.link() == Link::Up;
        let to_send = self.due.as_ref().is_none_or(|due| due.send.is_some_and(|at| at <= now));
        let expects = little && settled && !to_send && self.inbox.iter().all(announces);
        if expects && before.0 < MOST { Lull(before.0 + 1) } else { Lull::default() }
    }
}

/// How long what comes waits for more of its kind, with so many jobs under way.
fn gathering(under_way: usize) -> Duration {
    let each = u32::try_from(under_way).unwrap_or(u32::MAX);
    GATHERING_EACH.saturating_mul(each).clamp(SHORTEST, LONGEST)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(under_way: usize, milliseconds: u64) {
        assert_eq!(gathering(under_way), Duration::from_millis(milliseconds), "{under_way}");
    }

    #[test]
    fn the_more_is_under_way_the_more_is_stored_at_once() {
        check(0, 10);
        check(MUCH, 10);
        check(200, 10);
        check(300, 15);
        check(500, 25);
        check(600, 30);
        check(usize::MAX, 30);
    }
}
