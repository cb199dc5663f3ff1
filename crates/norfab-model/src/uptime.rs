//! Time that really passed, as no step of the wall clock makes it pass: for how long something waits, is silent or is gone.

use std::time::Duration;

use crate::Timestamp;

/// A reading of a clock that only ever goes on: the time since some start, which tells nothing by itself. Two readings of
/// one clock (its clones included) tell how much time passed between them. It must not be stored, as another process has
/// another start. Whole microseconds, as those of [`Timestamp`]. Whether it goes on while the machine is suspended depends
/// on the system.
///
/// ```
/// use std::time::Duration;
/// use norfab_model::Uptime;
///
/// let begun = Uptime::from_start(Duration::from_secs(5));
/// let now = begun.saturating_add(Duration::from_secs(2));
/// assert_eq!((now.since(begun), begun.since(now)), (Duration::from_secs(2), Duration::ZERO));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uptime(u64);

impl Uptime {
    /// The start of the clock.
    pub const START: Self = Self(0);
    /// Never.
    pub const MAX: Self = Self(u64::MAX);

    /// So long after the start; parts of a microsecond are cut.
    #[must_use]
    pub const fn from_start(since: Duration) -> Self {
        Self(micros(since))
    }

    /// How much time passed since `earlier`; zero when that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// So much later, [`Uptime::MAX`] at the most.
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// So much earlier, [`Uptime::START`] at the least.
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }
}

const fn micros(duration: Duration) -> u64 {
    let micros = duration.as_micros();
    if micros > u64::MAX as u128 { u64::MAX } else { micros as u64 }
}

/// What a clock shows at one look: the time of day, and the time that passed. What somebody named (a time to run, a
/// deadline) is compared with the first, what is waited for with the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// By the wall clock, which may be set to anything at any time.
    pub wall: Timestamp,
    /// By the clock that only goes on.
    pub up: Uptime,
}

impl Moment {
    /// What the wall clock shows at another instant, unless it is set meanwhile.
    #[must_use]
    pub fn wall_at(self, up: Uptime) -> Timestamp {
        self.wall.saturating_add(up.since(self.up)).saturating_sub(self.up.since(up))
    }

    /// When the wall clock shows an instant, unless it is set meanwhile; one before the start counts as the start.
    #[must_use]
    pub fn up_at(self, wall: Timestamp) -> Uptime {
        self.up.saturating_add(wall.since(self.wall)).saturating_sub(self.wall.since(wall))
    }

    /// How long ago an earlier look was, by the clock that tells more: the wall clock stands still for none that is set
    /// back, and the other one may for a machine that is suspended.
    #[must_use]
    pub fn longest_since(self, earlier: Self) -> Duration {
        self.wall.since(earlier.wall).max(self.up.since(earlier.up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(wall: i64, up: u64) -> Moment {
        Moment { wall: Timestamp::from_seconds(wall), up: Uptime::from_start(Duration::from_secs(up)) }
    }

    #[track_caller]
    fn check(wall: i64, up: u64) {
        let (now, other) = (moment(1000, 50), moment(wall, up));
        assert_eq!((now.wall_at(other.up), now.up_at(other.wall)), (other.wall, other.up));
    }

    #[test]
    fn one_clock_tells_of_the_other() {
        check(1000, 50);
        check(1030, 80);
        check(970, 20);
        assert_eq!(moment(1000, 50).up_at(Timestamp::from_seconds(900)), Uptime::START);
        assert_eq!(moment(1000, 50).wall_at(Uptime::MAX), Timestamp::MAX);
        assert_eq!(moment(1000, 50).up_at(Timestamp::MIN), Uptime::START);
    }

    #[test]
    fn the_longest_counts() {
        let longest = |wall, up| moment(wall, up).longest_since(moment(1000, 50)).as_secs();
        assert_eq!((longest(1003, 52), longest(400, 57), longest(1000, 50)), (3, 7, 0));
    }
}
