//! What comes from the broker: each message to whom it concerns, replies into a row until they are stored.

use norfab_model::{
    Broker, Clock, Context, Inbound, JobId, Json, LiveWorkers, Moment, Reply, ReplyKind, ScheduleStore, Store,
};

use crate::Dispatcher;
use crate::dispatcher::Recovery;
use crate::link::Answered;
use crate::weight::bytes_of;

/// How many messages, and of how many bytes, may wait while the database fails; more are left with the transport.
const INBOX_LIMIT: usize = 10_000;
const INBOX_BYTES: usize = 64 << 20;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Whether messages may wait here. Their bytes are looked at only while some do: usually a pass applies all.
    pub(crate) fn has_room(&self) -> bool {
        self.inbox.len() < INBOX_LIMIT && self.waiting_bytes() < INBOX_BYTES
    }

    /// The bytes of all that waits.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.inbox.iter().map(bytes_of).sum()
    }

    /// Sorts what came: replies wait for the pass, the rest is done with here.
    pub(crate) fn take(&mut self, now: Moment, batch: Vec<Inbound>) {
        for inbound in batch {
            if !matches!(inbound, Inbound::Connection(_)) {
                self.link.heard(now.up);
            }
            match inbound {
                Inbound::Reply(reply) => self.take_reply(now, reply),
                Inbound::Mmi { id, answer } => self.take_answer(now, &id, answer),
                Inbound::Connection(connection) => self.connection(connection),
                Inbound::Stray(what) => self.stray(&what),
            }
        }
    }

    fn take_reply(&mut self, now: Moment, reply: Reply) {
        let reply = self.requests.context_of(now.up, reply);
        if confirms_named_get(&reply) {
            self.ignored += 1;
            return;
        }
        self.fetch.extend(self.requests.fetch(&reply));
        self.inbox.push(reply);
    }

    fn take_answer(&mut self, now: Moment, id: &JobId, answer: Json) {
        match self.link.answered(id) {
            Answered::CameUp => {
                self.recovery = Recovery::Needed;
                self.requests.link_up(now.up);
            }
            // What was asked before this question was not answered.
            Answered::IsUp => self.live.clear(),
            Answered::NotOurs => match self.live.answered(now.up, id, &answer) {
                Some(Ok(())) => {
                    let known_for = self.live.fresh(now.up).map(LiveWorkers::known_for);
                    self.requests.broker_is_as_old_as(now.up, known_for.unwrap_or_default());
                }
                Some(Err(())) => self.stray("the broker's list of workers, which is none"),
                None => {
                    if let Some(waiting) = self.questions.remove(id) {
                        // Who asked may have stopped waiting.
                        let _ = waiting.send(Ok(answer));
                    }
                }
            },
        }
    }

    pub(crate) fn stray(&mut self, what: &str) {
        self.strays.drop_one(what);
    }
}

/// Whether this is the broker's 202 to a GET that named its workers: it tells nothing about the job.
fn confirms_named_get(reply: &Reply) -> bool {
    let to_named = matches!(&reply.context, Context::Get { target, .. } if target.names().is_some());
    to_named && matches!(reply.kind, ReplyKind::Accepted { .. })
}
