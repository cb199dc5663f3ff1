//! What becomes of the connection to the broker: doubt in its silence, a new one, and what is forgotten with the old.

use norfab_model::{Broker, Clock, Connection, Json, Moment, Request, Resend, ScheduleStore, Store, Uptime};

use crate::Dispatcher;
use crate::link::LinkStep;

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Whether the broker owes an answer and has said nothing since.
    pub(crate) fn is_silent(&mut self) -> bool {
        let owed = self.requests.owed_since();
        self.link.is_silent(owed)
    }

    /// When it becomes doubtful whether the broker is there: it owes an answer for too long.
    pub(crate) fn doubtful_at(&mut self) -> Option<Uptime> {
        let owed = self.requests.owed_since().into_iter().chain(self.live.unanswered_since()).min();
        self.link.doubtful_at(owed, self.requests.answer_time())
    }

    /// Asks whether the broker is there, and makes a new connection when it does not say so.
    pub(crate) async fn look_after_link(&mut self, now: Moment) {
        if self.doubtful_at().is_some_and(|at| at <= now.up) {
            self.link.doubt();
        }
        if !self.link.is_doubted() {
            // The broker is there, so that the question was lost.
            self.live.forget_late(now.up, self.config.probe_timeout);
        }
        match self.link.step(now) {
            None => {}
            Some(LinkStep::Ask(id)) => {
                let task = "show_broker_version".to_owned();
                self.send(Request::Mmi { id, task, kwargs: Json::empty_object() }).await;
            }
            Some(LinkStep::Rebuild) => {
                self.link_lost();
                if let Err(error) = self.broker.reconnect().await {
                    tracing::debug!("Did not make a new connection: {error}");
                }
            }
        }
    }

    pub(crate) fn connection(&mut self, connection: Connection) {
        tracing::debug!(?connection, "The connection changed");
        self.link.connection(connection);
        self.link_lost();
    }

    /// What was asked on the last connection is not answered any more; all that is in flight is asked for on the next.
    pub(crate) fn link_lost(&mut self) {
        self.requests.link_lost();
        self.again.retain(|again| matches!(again.why, Resend::Lost(_)));
        self.live.clear();
        self.hold.link_lost();
    }
}
