//! The clocks of this machine: the only file that reads them.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use norfab_model::{Clock, SLEEP_CAP_SECONDS, Timestamp, Uptime};

/// The longest sleep in one piece: a step of the clock, or a machine that was suspended, delays work by this at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(SLEEP_CAP_SECONDS as u64);

/// How early the runtime's timer is to end for an instant that is to be met, and a millisecond more.
const COARSE: Duration = Duration::from_millis(2);

/// From where this process counts the time that passes.
#[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The wall clock, and the monotonic clock for how long something takes; on Linux and macOS that one stands still while the
/// machine is suspended. Its sleeps end at the instant asked for, never before it by this clock, or after 60 s, or when the
/// clock was set meanwhile: then the caller looks again. They need a runtime with a timer, on Linux one with I/O too
/// (`enable_all`).
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

    #[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
    fn uptime(&self) -> Uptime {
        // The start is taken first: at the first look it is now.
        let start = *START;
        Uptime::from_start(Instant::now().saturating_duration_since(start))
    }

    async fn sleep_until(&self, at: Timestamp, until: Uptime) {
        let (left, other) = (at.since(self.now()), until.since(self.uptime()));
        // The runtime's timer ends at the millisecond behind its instant: soon enough for what is no instant of a job.
        if other < left || left > LONGEST_SLEEP {
            return coarse_sleep(left.min(other).min(LONGEST_SLEEP)).await;
        }
        coarse_sleep(left.saturating_sub(COARSE)).await;
        // Should the clock have been set meanwhile, whoever sleeps had better look at it again.
        let left = at.since(self.now());
        if !left.is_zero() && left <= COARSE {
            // The clock here cuts to microseconds: nothing is released a hair early.
            precise::sleep(left.saturating_add(Duration::from_micros(1))).await;
        }
    }
}

async fn coarse_sleep(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}

/// A sleep that ends within some microseconds of its end.
#[cfg(target_os = "linux")]
mod precise {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) async fn sleep(left: Duration) {
        // A process that may open no more files has a timer all the same.
        if by_kernel(left).await.is_err() {
            tokio::time::sleep(left).await;
        }
    }

    #[expect(deprecated, reason = "it is unsound for a descriptor that changes, which this one does not")]
    async fn by_kernel(left: Duration) -> io::Result<()> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer: OwnedFd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: once, it_value: left })?;
        AsyncFd::with_interest(timer, Interest::READABLE)?.readable().await.map(drop)
    }
}

/// A sleep as precise as the runtime's timer.
#[cfg(not(target_os = "linux"))]
mod precise {
    pub(super) use tokio::time::sleep;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_never_ends_early() {
        for micros in [1, 999, 1000, 1001, 12_345] {
            let at = SystemClock.now().saturating_add(Duration::from_micros(micros));
            SystemClock.sleep_until(at, Uptime::MAX).await;
            assert!(SystemClock.now() >= at);
            let until = SystemClock.uptime().saturating_add(Duration::from_micros(micros));
            SystemClock.sleep_until(Timestamp::MAX, until).await;
            assert!(SystemClock.uptime() >= until);
        }
    }

    /// Whatever the machine slept through, or however far the time is: after a minute the caller looks at the clock again.
    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_after_the_longest_at_the_latest() {
        const YEARS: u64 = 9 * 366 * 86_400;
        for ahead in [61, 8 * 3600, YEARS] {
            let at = SystemClock.now().saturating_add(Duration::from_secs(ahead));
            let sleeps = |limit| tokio::time::timeout(limit, SystemClock.sleep_until(at, Uptime::MAX));
            assert!(sleeps(LONGEST_SLEEP - Duration::from_millis(10)).await.is_err());
            assert!(sleeps(LONGEST_SLEEP + Duration::from_millis(10)).await.is_ok());
        }
        SystemClock.sleep_until(Timestamp::MAX, Uptime::MAX).await;
        SystemClock.sleep_until(Timestamp::MIN, Uptime::MAX).await;
        SystemClock.sleep_until(Timestamp::MAX, Uptime::START).await;
    }
}
