//! Many measured times: where the middle of them lies, and where the end.

use std::time::Duration;

use anyhow::{Result, ensure};

/// Times in order, the shortest first.
#[derive(Debug)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// There must be at least one.
    pub(crate) fn of(mut times: Vec<Duration>) -> Result<Self> {
        ensure!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Ok(Self(times))
    }

    /// The time that this share of all stays within, in milliseconds.
    pub(crate) fn milliseconds(&self, share: f64) -> f64 {
        let place = (self.0.len() as f64 * share).ceil() as usize;
        let time = self.0.get(place.clamp(1, self.0.len()) - 1).copied().unwrap_or_default();
        time.as_secs_f64() * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: u64, share: f64, milliseconds: f64) {
        let times = (1..=count).rev().map(Duration::from_millis).collect();
        assert_eq!(Times::of(times).unwrap().milliseconds(share), milliseconds);
    }

    #[test]
    fn a_share_of_all() {
        check(100, 0.5, 50.0);
        check(100, 0.99, 99.0);
        check(10, 0.99, 10.0);
        check(1, 0.0, 1.0);
        assert!(Times::of(Vec::new()).is_err());
    }
}
