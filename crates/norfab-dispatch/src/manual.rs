//! A clock that is moved by hand, for tests of programs that schedule: nothing has to be waited for.

use std::time::Duration;

use norfab_model::{Clock, Moment, Timestamp, Uptime};
use tokio::sync::watch;

/// A [`Clock`] that stands still until it is moved. Its clones show the same time.
///
/// ```
/// use norfab_dispatch::ManualClock;
/// use norfab_model::{Clock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_seconds(1_795_996_800));
/// clock.advance(std::time::Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-11-30T00:01:00Z");
/// let up = clock.uptime();
/// clock.set(Timestamp::from_seconds(1_795_996_800));
/// assert_eq!(clock.uptime(), up);
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    time: watch::Sender<Moment>,
}

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self { time: watch::Sender::new(Moment { wall: time, up: Uptime::START }) }
    }

    /// Sets the wall clock to another time, earlier or later, while no time passes, and wakes who sleeps until then.
    pub fn set(&self, time: Timestamp) {
        self.time.send_modify(|now| now.wall = time);
    }

    /// Lets time pass, and wakes who sleeps until then.
    pub fn advance(&self, by: Duration) {
        self.time.send_modify(|now| *now = Moment { wall: now.wall.saturating_add(by), up: now.up.saturating_add(by) });
    }

    /// Lets time pass until the wall clock shows this time; none when it does already.
    pub fn advance_to(&self, time: Timestamp) {
        self.advance(time.since(self.now()));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.time.borrow().wall
    }

    fn uptime(&self) -> Uptime {
        self.time.borrow().up
    }

    async fn sleep_until(&self, at: Timestamp, until: Uptime) {
        let mut time = self.time.subscribe();
        // The sender lives as long as this clock, so that this ends only when the time has come.
        let _ = time.wait_for(|now| now.wall >= at || now.up >= until).await;
    }
}
