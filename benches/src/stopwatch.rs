//! The clock of the measurements; everything that is measured is handed its `now`.

use std::time::{Duration, Instant};

use norfab_client::{Clock, SystemClock};
use norfab_model::Timestamp;

/// What this returned, and how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = now();
    let done = work();
    (done, begun.elapsed())
}

/// How many of these a second.
pub(crate) fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time of the clock on the wall, for what runs by it.
pub(crate) fn wall() -> Timestamp {
    SystemClock.now()
}
