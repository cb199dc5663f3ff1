//! Whether the broker answers: a connection counts for nothing until it has answered a question on it.

use std::time::Duration;

use norfab_model::{Connection, JobId, Link, Timestamp};

use crate::LinkState;

/// The state of the link, fed with what happens; it does nothing by itself.
#[derive(Debug)]
pub(crate) struct LinkMonitor {
    state: State,
    probe_timeout: Duration,
}

#[derive(Debug, PartialEq)]
enum State {
    /// Nothing is known yet.
    Fresh,
    /// No connection.
    Down { reason: String },
    /// Connected; a question must be asked, at this instant or later.
    Ask { at: Timestamp, silent_for: u32 },
    /// The question is out.
    Asked { id: JobId, at: Timestamp, silent_for: u32 },
    /// It was answered.
    Up,
}

impl LinkMonitor {
    pub(crate) fn new(probe_timeout: Duration) -> Self {
        Self { state: State::Fresh, probe_timeout }
    }

    pub(crate) fn link(&self) -> Link {
        if self.state == State::Up { Link::Up } else { Link::Down }
    }

    pub(crate) fn state(&self) -> LinkState {
        match &self.state {
            State::Up => LinkState::Up,
            State::Fresh | State::Ask { silent_for: 0, .. } | State::Asked { silent_for: 0, .. } => {
                LinkState::Connecting
            }
            State::Down { reason } => LinkState::Down { reason: reason.clone() },
            State::Ask { silent_for, .. } | State::Asked { silent_for, .. } => {
                let seconds = u64::from(*silent_for) * self.probe_timeout.as_secs();
                LinkState::Down { reason: format!("connected, but the broker has not answered for {seconds} s") }
            }
        }
    }

    /// Takes what a transport reports.
    pub(crate) fn connection(&mut self, now: Timestamp, connection: Connection) {
        self.state = match connection {
            Connection::Connected => State::Ask { at: now, silent_for: 0 },
            Connection::Lost(reason) => State::Down { reason },
            Connection::Trouble(reason) => State::Down { reason },
        };
    }

    /// Takes a step of the clock into the past: what was to happen by the old time happens now.
    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        match &mut self.state {
            State::Ask { at, .. } | State::Asked { at, .. } => *at = now.min(*at),
            State::Fresh | State::Down { .. } | State::Up => {}
        }
    }

    /// Whether to ask the broker now, and under which id. Each id is asked for once.
    pub(crate) fn question(&mut self, now: Timestamp) -> Option<JobId> {
        let silent_for = match &self.state {
            State::Ask { at, silent_for } if *at <= now => *silent_for,
            State::Asked { at, silent_for, .. } if at.saturating_add(self.probe_timeout) <= now => silent_for + 1,
            _ => return None,
        };
        let id = JobId::generate(now);
        self.state = State::Asked { id: id.clone(), at: now, silent_for };
        Some(id)
    }

    /// Takes an answer; tells whether the link came up by it.
    pub(crate) fn answered(&mut self, id: &JobId) -> bool {
        let ours = matches!(&self.state, State::Asked { id: asked, .. } if asked == id);
        if ours {
            self.state = State::Up;
        }
        ours
    }

    /// When there is something to do without a message.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        match &self.state {
            State::Ask { at, .. } => Some(*at),
            State::Asked { at, .. } => Some(at.saturating_add(self.probe_timeout)),
            State::Fresh | State::Down { .. } | State::Up => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn monitor() -> LinkMonitor {
        LinkMonitor::new(Duration::from_secs(5))
    }

    #[track_caller]
    fn down(monitor: &LinkMonitor, part: &str) {
        let LinkState::Down { reason } = monitor.state() else { panic!("the link is up") };
        assert!(reason.contains(part), "{reason}");
        assert_eq!(monitor.link(), Link::Down);
    }

    #[test]
    fn up_only_by_an_answer_on_this_connection() {
        let mut link = monitor();
        assert_eq!((link.state(), link.link()), (LinkState::Connecting, Link::Down));
        assert_eq!(link.question(T0), None);
        link.connection(T0, Connection::Connected);
        let first = link.question(T0).expect("asks");
        assert_eq!(link.question(T0), None);
        link.connection(T0, Connection::Lost("gone".into()));
        assert!(!link.answered(&first));
        down(&link, "gone");
        link.connection(T0, Connection::Connected);
        let second = link.question(T0).expect("asks");
        assert!(!link.answered(&first) && link.answered(&second));
        assert_eq!((link.link(), link.state(), link.next()), (Link::Up, LinkState::Up, None));
    }

    #[test]
    fn a_silent_broker_is_asked_again_and_named() {
        let mut link = monitor();
        link.connection(T0, Connection::Connected);
        let first = link.question(T0).expect("asks");
        assert_eq!(link.next(), Some(T0.plus_seconds(5)));
        assert_eq!(link.question(T0.plus_seconds(4)), None);
        assert!(link.question(T0.plus_seconds(5)).is_some_and(|second| second != first));
        down(&link, "not answered for 5 s");
    }

    #[test]
    fn a_clock_set_back_delays_no_question() {
        let mut link = monitor();
        link.connection(T0.plus_seconds(3600), Connection::Connected);
        assert!(link.question(T0.plus_seconds(3600)).is_some());
        link.clock_went_back(T0);
        assert!(link.question(T0.plus_seconds(5)).is_some());
    }

    #[test]
    fn trouble_keeps_its_reason() {
        let mut link = monitor();
        link.connection(T0, Connection::Trouble("another key".into()));
        down(&link, "another key");
    }
}
