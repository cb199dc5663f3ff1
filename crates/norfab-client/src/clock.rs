//! The wall clock of this machine: the only file that reads it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use norfab_model::{Clock, SLEEP_CAP_SECONDS, Timestamp};

/// The longest sleep in one piece: a step of the clock, or a machine that was suspended, delays work by this at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(SLEEP_CAP_SECONDS as u64);

/// The wall clock. Its sleeps end at the instant asked for, never before it by this clock, or after 60 s, when the caller
/// looks again.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
    fn now(&self) -> Timestamp {
        let now = SystemTime::now();
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp::from_micros(micros(since)),
            Err(before) => Timestamp::from_micros(-micros(before.duration())),
        }
    }

    async fn sleep_until(&self, at: Timestamp) {
        let left = at.since(self.now());
        if !left.is_zero() {
            // The timer counts in milliseconds and the clock here cuts to microseconds: round up, so that nothing is
            // released a hair early.
            tokio::time::sleep(left.min(LONGEST_SLEEP) + Duration::from_millis(1)).await;
        }
    }
}
