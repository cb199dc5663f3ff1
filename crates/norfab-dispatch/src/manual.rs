//! A clock that is moved by hand, for tests of programs that schedule: nothing has to be waited for.

use norfab_model::{Clock, Timestamp};
use tokio::sync::watch;

/// A [`Clock`] that stands still until it is told another time. Its clones show the same time.
///
/// ```
/// use norfab_dispatch::ManualClock;
/// use norfab_model::{Clock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_seconds(1_795_996_800));
/// clock.advance(std::time::Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-11-30T00:01:00Z");
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    time: watch::Sender<Timestamp>,
}

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self { time: watch::Sender::new(time) }
    }

    /// Shows another time, earlier or later, and wakes who sleeps.
    pub fn set(&self, time: Timestamp) {
        self.time.send_replace(time);
    }

    /// Shows a later time, and wakes who sleeps.
    pub fn advance(&self, by: std::time::Duration) {
        self.time.send_modify(|time| *time = time.saturating_add(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.time.borrow()
    }

    async fn sleep_until(&self, at: Timestamp) {
        let mut time = self.time.subscribe();
        // The sender lives as long as this clock, so that this ends only when the time has come.
        let _ = time.wait_for(|now| *now >= at).await;
    }
}
