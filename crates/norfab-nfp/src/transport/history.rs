//! What the attempts to connect so far teach: how long to pause before the next one, and what is worth saying. Pure.

use std::time::Duration;

use norfab_model::Connection;

/// Pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Failed handshakes in a row, with a listener that looks right, after which trying again will hardly help.
const HANDSHAKES_TRIED: u32 = 2;

/// Why there is no connection, or no longer.
#[derive(Debug)]
pub(super) enum Ended {
    /// Nobody needs the transport any more.
    Closed,
    /// A new socket is wanted.
    Renewed,
    /// The connection was lost, and why.
    Lost(String),
    /// An attempt failed.
    Failed(Failure),
    /// The code beneath panicked.
    Crashed,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing answers; time may help.
    Unreachable(String),
    /// What listens cannot be the broker of this configuration.
    Mismatch(String),
    /// The listener looked right, and then broke the handshake off.
    Handshake(String),
}

/// What was said already, and how it went.
#[derive(Debug)]
pub(super) struct History {
    said: Option<Connection>,
    /// Whether the broker has sent anything on the last connection.
    heard: bool,
    failures: u32,
    handshakes_failed: u32,
}

impl History {
    pub(super) fn new() -> Self {
        Self { said: None, heard: false, failures: 0, handshakes_failed: 0 }
    }

    /// Counts a connection, and returns what there is to say about it: always something, since what was said last is
    /// either nothing or of another kind.
    pub(super) fn connected(&mut self) -> Option<Connection> {
        self.heard = false;
        self.handshakes_failed = 0;
        self.news(Connection::Connected)
    }

    /// The broker has sent something on this connection.
    pub(super) fn heard(&mut self) {
        self.heard = true;
    }

    /// Counts an end, and returns what there is to say about it. `refused` is what to tell a person whose handshakes are
    /// broken off again and again.
    pub(super) fn ended(&mut self, ended: Ended, refused: impl FnOnce() -> String) -> Option<Connection> {
        let news = match ended {
            Ended::Closed => return None,
            Ended::Renewed => {
                self.failures = 0;
                if self.said != Some(Connection::Connected) {
                    return None;
                }
                Connection::Lost("a new connection was asked for".to_owned())
            }
            Ended::Lost(reason) => {
                self.failures = if self.heard { 1 } else { self.failures.saturating_add(1) };
                Connection::Lost(reason)
            }
            Ended::Failed(failure) => {
                self.failures = self.failures.saturating_add(1);
                self.failed(failure, refused)
            }
            Ended::Crashed => {
                self.failures = self.failures.saturating_add(1);
                Connection::Trouble("the transport failed unexpectedly and starts again; please report it".to_owned())
            }
        };
        self.news(news)
    }

    fn failed(&mut self, failure: Failure, refused: impl FnOnce() -> String) -> Connection {
        match failure {
            Failure::Unreachable(reason) => Connection::Lost(reason),
            Failure::Mismatch(reason) => Connection::Trouble(reason),
            Failure::Handshake(reason) => {
                self.handshakes_failed = self.handshakes_failed.saturating_add(1);
                if self.handshakes_failed < HANDSHAKES_TRIED {
                    Connection::Lost(reason)
                } else {
                    Connection::Trouble(refused())
                }
            }
        }
    }

    fn news(&mut self, news: Connection) -> Option<Connection> {
        if self.said.as_ref() == Some(&news) {
            return None;
        }
        self.said = Some(news.clone());
        Some(news)
    }

    /// None after a wish, else doubling with each failure in a row.
    pub(super) fn pause(&self) -> Duration {
        match self.failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(history: &mut History, ended: Ended) -> Option<Connection> {
        history.ended(ended, || "refused".to_owned())
    }

    fn failed(history: &mut History, failure: Failure) -> Option<Connection> {
        ended(history, Ended::Failed(failure))
    }

    fn lost(text: &str) -> Option<Connection> {
        Some(Connection::Lost(text.to_owned()))
    }

    fn trouble(text: &str) -> Option<Connection> {
        Some(Connection::Trouble(text.to_owned()))
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        let mut history = History::new();
        let unreachable = || Failure::Unreachable("gone".to_owned());
        assert_eq!(failed(&mut history, unreachable()), lost("gone"));
        assert_eq!(failed(&mut history, unreachable()), None);
        assert_eq!(failed(&mut history, Failure::Mismatch("other".to_owned())), trouble("other"));
        assert_eq!(failed(&mut history, unreachable()), lost("gone"));
        assert_eq!(history.connected(), Some(Connection::Connected));
    }

    #[test]
    fn every_connection_is_told_whatever_ended_the_last_one() {
        let mut history = History::new();
        for end in [
            Ended::Renewed,
            Ended::Lost("gone".to_owned()),
            Ended::Failed(Failure::Unreachable("gone".to_owned())),
            Ended::Crashed,
        ] {
            assert_eq!(history.connected(), Some(Connection::Connected));
            assert!(ended(&mut history, end).is_some());
        }
    }

    #[test]
    fn one_failed_handshake_is_chance_two_are_trouble() {
        let mut history = History::new();
        let handshake = || Failure::Handshake("hung up".to_owned());
        assert_eq!(failed(&mut history, handshake()), lost("hung up"));
        assert_eq!(failed(&mut history, handshake()), trouble("refused"));
        history.connected();
        assert_eq!(failed(&mut history, handshake()), lost("hung up"));
    }

    #[test]
    fn what_is_tried_until_a_wrong_key_is_told_takes_one_short_pause() {
        let mut history = History::new();
        failed(&mut history, Failure::Handshake("hung up".to_owned()));
        assert_eq!(history.pause(), Duration::from_millis(100));
        assert_eq!(failed(&mut history, Failure::Handshake("hung up".to_owned())), trouble("refused"));
    }

    #[test]
    fn a_wish_for_a_new_connection_is_told_only_when_there_was_one() {
        let mut history = History::new();
        assert_eq!(ended(&mut history, Ended::Renewed), None);
        history.connected();
        assert!(matches!(ended(&mut history, Ended::Renewed), Some(Connection::Lost(_))));
        assert_eq!(history.pause(), Duration::ZERO);
    }

    #[test]
    fn pauses_grow_to_a_few_seconds_and_shrink_with_success() {
        let mut history = History::new();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            failed(&mut history, Failure::Unreachable("gone".to_owned()));
            pauses.push(history.pause().as_millis());
        }
        assert_eq!(pauses[..7], [100, 200, 400, 800, 1600, 3000, 3000]);
        assert_eq!(pauses[39], 3000);
        // A connection on which nothing came is no success.
        history.connected();
        ended(&mut history, Ended::Lost("gone".to_owned()));
        assert_eq!(history.pause(), LONGEST_PAUSE);
        history.connected();
        history.heard();
        ended(&mut history, Ended::Lost("gone".to_owned()));
        assert_eq!(history.pause(), FIRST_PAUSE);
    }
}
