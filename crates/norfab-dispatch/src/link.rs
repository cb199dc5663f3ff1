//! Whether the broker answers: a connection counts for nothing until it has answered a question on it.

use std::time::Duration;

use norfab_model::{Connection, JobId, Link, Moment, Uptime};

use crate::LinkState;

/// The state of the link, fed with what happens; it does nothing by itself.
#[derive(Debug)]
pub(crate) struct LinkMonitor {
    state: State,
    probe_timeout: Duration,
    /// Whether the last connection ended in silence: the next one is not believed before it has answered.
    silent: bool,
    /// Whether a connection was thrown away whose end has not been told yet.
    rebuilding: bool,
    /// When something last came from the broker.
    heard_at: Uptime,
}

#[derive(Debug, PartialEq)]
enum State {
    /// Nothing is known yet.
    Fresh,
    /// No connection.
    Down { reason: String },
    /// Connected; a question must be asked.
    Ask,
    /// The question is out.
    Asked { id: JobId, at: Uptime },
    /// It was answered.
    Up,
    /// It was answered once, but the broker owes other answers for too long; a question must be asked.
    Doubt,
    /// The same, and the question is out.
    Doubted { id: JobId, at: Uptime },
}

/// What the link wants to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkStep {
    /// Ask the broker, under this id.
    Ask(JobId),
    /// Throw the connection away and make a new one: nothing comes on it.
    Rebuild,
}

/// What a broker that does not answer on a connection looks like, whatever the cause.
const SILENT: &str = "connected, but the broker does not answer: it hangs, or another client with this name has taken \
                      its answers over";

impl LinkMonitor {
    pub(crate) fn new(probe_timeout: Duration) -> Self {
        Self { state: State::Fresh, probe_timeout, silent: false, rebuilding: false, heard_at: Uptime::START }
    }

    pub(crate) fn link(&self) -> Link {
        if matches!(self.state, State::Up | State::Doubt | State::Doubted { .. }) { Link::Up } else { Link::Down }
    }

    /// Whether the broker is asked if it is still there.
    pub(crate) fn is_doubted(&self) -> bool {
        matches!(self.state, State::Doubt | State::Doubted { .. })
    }

    pub(crate) fn state(&self) -> LinkState {
        match &self.state {
            State::Up | State::Doubt | State::Doubted { .. } => LinkState::Up,
            State::Down { reason } => LinkState::Down { reason: reason.clone() },
            State::Ask | State::Asked { .. } if self.silent => LinkState::Down { reason: SILENT.to_owned() },
            State::Fresh | State::Ask | State::Asked { .. } => LinkState::Connecting,
        }
    }

    /// Takes what a transport reports.
    pub(crate) fn connection(&mut self, connection: Connection) {
        self.state = match connection {
            Connection::Connected => State::Ask,
            // The end of a connection that was thrown away for its silence says nothing new.
            Connection::Lost(_) if self.rebuilding => State::Down { reason: SILENT.to_owned() },
            Connection::Lost(reason) | Connection::Trouble(reason) => {
                self.silent = false;
                State::Down { reason }
            }
        };
        self.rebuilding = false;
    }

    /// Something came from the broker.
    pub(crate) fn heard(&mut self, now: Uptime) {
        self.heard_at = now;
    }

    /// Whether nothing has come since the broker owes an answer: it may hang, or be cut off.
    pub(crate) fn is_silent(&self, owed_since: Option<Uptime>) -> bool {
        self.is_doubted() || owed_since.is_some_and(|since| self.heard_at < since)
    }

    /// Tells when the link becomes doubtful: the broker owes an answer since `owed_since` and has said nothing for `patience`.
    pub(crate) fn doubtful_at(&self, owed_since: Option<Uptime>, patience: Duration) -> Option<Uptime> {
        let since = owed_since.filter(|_| self.state == State::Up)?;
        Some(since.max(self.heard_at).saturating_add(patience))
    }

    /// The link has become doubtful.
    pub(crate) fn doubt(&mut self) {
        if self.state == State::Up {
            self.state = State::Doubt;
        }
    }

    /// What to do now. Each question is asked once.
    pub(crate) fn step(&mut self, now: Moment) -> Option<LinkStep> {
        match &self.state {
            State::Ask => {
                let id = JobId::generate(now.wall);
                self.state = State::Asked { id: id.clone(), at: now.up };
                Some(LinkStep::Ask(id))
            }
            State::Doubt => {
                let id = JobId::generate(now.wall);
                self.state = State::Doubted { id: id.clone(), at: now.up };
                Some(LinkStep::Ask(id))
            }
            State::Asked { at, .. } | State::Doubted { at, .. } if at.saturating_add(self.probe_timeout) <= now.up => {
                (self.silent, self.rebuilding) = (true, true);
                self.state = State::Down { reason: SILENT.to_owned() };
                Some(LinkStep::Rebuild)
            }
            _ => None,
        }
    }

    /// Takes an answer; tells what it means for the link.
    pub(crate) fn answered(&mut self, id: &JobId) -> Answered {
        let answered = match &self.state {
            State::Asked { id: asked, .. } if asked == id => Answered::CameUp,
            State::Doubted { id: asked, .. } if asked == id => Answered::IsUp,
            _ => return Answered::NotOurs,
        };
        self.state = State::Up;
        self.silent = false;
        answered
    }

    /// When there is something to do without a message.
    pub(crate) fn next(&self, now: Uptime) -> Option<Uptime> {
        match &self.state {
            State::Ask | State::Doubt => Some(now),
            State::Asked { at, .. } | State::Doubted { at, .. } => Some(at.saturating_add(self.probe_timeout)),
            State::Fresh | State::Down { .. } | State::Up => None,
        }
    }
}

/// What an answer means for the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It answers another question.
    NotOurs,
    /// The link came up by it.
    CameUp,
    /// The link was up all the time.
    IsUp,
}

#[cfg(test)]
mod tests {
    use norfab_model::Timestamp;

    use super::*;

    const T0: Moment = Moment { wall: Timestamp::from_seconds(1_795_996_800), up: Uptime::START };
    const PATIENCE: Duration = Duration::from_secs(10);

    fn after(seconds: u64) -> Uptime {
        T0.up.saturating_add(Duration::from_secs(seconds))
    }

    /// So many seconds later, while the wall clock shows no other time.
    fn at(seconds: u64) -> Moment {
        Moment { up: after(seconds), ..T0 }
    }

    fn monitor() -> LinkMonitor {
        LinkMonitor::new(Duration::from_secs(5))
    }

    #[track_caller]
    fn down(monitor: &LinkMonitor, part: &str) {
        let LinkState::Down { reason } = monitor.state() else { panic!("the link is not down") };
        assert!(reason.contains(part), "{reason}");
        assert_eq!(monitor.link(), Link::Down);
    }

    #[track_caller]
    fn asks(link: &mut LinkMonitor, now: Moment) -> JobId {
        match link.step(now) {
            Some(LinkStep::Ask(id)) => id,
            other => panic!("asks nothing: {other:?}"),
        }
    }

    fn up() -> LinkMonitor {
        let mut link = monitor();
        link.connection(Connection::Connected);
        let id = asks(&mut link, T0);
        assert_eq!(link.answered(&id), Answered::CameUp);
        link.heard(T0.up);
        link
    }

    #[test]
    fn up_only_by_an_answer_on_this_connection() {
        let mut link = monitor();
        assert_eq!((link.state(), link.link()), (LinkState::Connecting, Link::Down));
        assert_eq!(link.step(T0), None);
        link.connection(Connection::Connected);
        let first = asks(&mut link, T0);
        assert_eq!(link.step(T0), None);
        link.connection(Connection::Lost("gone".into()));
        assert_eq!(link.answered(&first), Answered::NotOurs);
        down(&link, "gone");
        link.connection(Connection::Connected);
        let second = asks(&mut link, T0);
        assert_eq!((link.answered(&first), link.answered(&second)), (Answered::NotOurs, Answered::CameUp));
        assert_eq!((link.link(), link.state(), link.next(T0.up)), (Link::Up, LinkState::Up, None));
    }

    #[test]
    fn a_connection_on_which_nothing_comes_is_thrown_away() {
        let mut link = monitor();
        link.connection(Connection::Connected);
        let first = asks(&mut link, T0);
        assert_eq!(link.next(T0.up), Some(after(5)));
        assert_eq!(link.step(at(4)), None);
        assert_eq!(link.step(at(5)), Some(LinkStep::Rebuild));
        down(&link, "does not answer");
        // The new one is not believed until it answers.
        link.connection(Connection::Lost("thrown away".into()));
        link.connection(Connection::Connected);
        down(&link, "does not answer");
        let second = asks(&mut link, at(6));
        assert_eq!((link.answered(&first), link.answered(&second)), (Answered::NotOurs, Answered::CameUp));
        link.connection(Connection::Lost("gone".into()));
        down(&link, "gone");
    }

    #[test]
    fn what_is_wrong_after_a_silence_is_told() {
        let mut link = up();
        link.doubt();
        asks(&mut link, at(10));
        assert_eq!(link.step(at(15)), Some(LinkStep::Rebuild));
        link.connection(Connection::Lost("thrown away".into()));
        down(&link, "does not answer");
        link.connection(Connection::Lost("connection refused".into()));
        down(&link, "connection refused");
        link.connection(Connection::Trouble("another key".into()));
        down(&link, "another key");
    }

    #[test]
    fn a_broker_that_owes_an_answer_is_asked_whether_it_is_there() {
        let mut link = up();
        assert_eq!(link.doubtful_at(None, PATIENCE), None);
        assert_eq!(link.doubtful_at(Some(after(1)), PATIENCE), Some(after(11)));
        link.heard(after(4));
        assert_eq!(link.doubtful_at(Some(after(1)), PATIENCE), Some(after(14)));
        link.doubt();
        assert_eq!((link.link(), link.is_doubted(), link.state()), (Link::Up, true, LinkState::Up));
        let id = asks(&mut link, at(14));
        assert_eq!((link.answered(&id), link.is_doubted()), (Answered::IsUp, false));

        link.doubt();
        asks(&mut link, at(30));
        assert_eq!(link.step(at(35)), Some(LinkStep::Rebuild));
        down(&link, "another client");
    }

    #[test]
    fn trouble_keeps_its_reason() {
        let mut link = monitor();
        link.connection(Connection::Trouble("another key".into()));
        down(&link, "another key");
    }
}
