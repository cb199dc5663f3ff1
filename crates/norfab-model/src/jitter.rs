//! The delay that spreads schedules: a pure function of the schedule and the occurrence, the same for ever.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::{ScheduleId, Timestamp};

/// How long after its nominal instant an occurrence is due: 0 to `jitter_seconds`, both included, in whole
/// microseconds.
///
/// It is `h * (j + 1) / 2^64`, cut to a whole number, where `j` is `jitter_seconds` in microseconds and `h` the first
/// eight bytes, the most significant first, of the SHA-256 of the text `norfab-jitter:UUID:MICROS`: the schedule's
/// UUID as it is stored, and the occurrence in microseconds since 1970, in decimal. So a restart, another process and
/// another release find the same delay, and it grows in step with `jitter_seconds`.
#[must_use]
pub fn jitter(schedule: &ScheduleId, occurrence: Timestamp, jitter_seconds: u32) -> Duration {
    if jitter_seconds == 0 {
        return Duration::ZERO;
    }
    let [a, b, c, d, e, f, g, h, ..] = digest("norfab-jitter", schedule, occurrence);
    let hash = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let most = u64::from(jitter_seconds) * 1_000_000;
    let micros = (u128::from(hash) * u128::from(most + 1)) >> 64;
    Duration::from_micros(u64::try_from(micros).unwrap_or(most))
}

/// SHA-256 of `purpose:schedule:occurrence`. What is derived from it is stored or promised: it must never change.
pub(crate) fn digest(purpose: &str, schedule: &ScheduleId, occurrence: Timestamp) -> [u8; 32] {
    Sha256::digest(format!("{purpose}:{schedule}:{}", occurrence.as_micros())).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule() -> ScheduleId {
        ScheduleId::new("b91ffcf2623a43f4a28e478b65c0647a").expect("valid")
    }

    #[track_caller]
    fn check(occurrence: i64, jitter_seconds: u32, micros: u64) {
        let found = jitter(&schedule(), Timestamp::from_seconds(occurrence), jitter_seconds);
        assert_eq!(found, Duration::from_micros(micros));
    }

    /// Computed apart from this code: `int(sha256(text).hexdigest()[:16], 16) * (j + 1) >> 64` in Python.
    #[test]
    fn stays_what_it_was() {
        check(1_795_996_800, 0, 0);
        check(1_795_996_800, 1, 455_957);
        check(1_795_996_800, 300, 136_787_016);
        check(1_795_996_860, 300, 144_620_656);
        check(-60, 86_400, 30_612_149_827);
    }

    #[test]
    fn spreads() {
        let delays: Vec<u64> = (0..10_000)
            .map(|k| jitter(&schedule(), Timestamp::from_seconds(k * 60), 30).as_micros())
            .map(|micros| u64::try_from(micros).expect("small"))
            .collect();
        for tenth in 0..10 {
            let within = delays.iter().filter(|d| **d / 3_000_000 == tenth).count();
            assert!((850..1150).contains(&within), "{tenth}: {within}");
        }
    }

    proptest! {
        #[test]
        fn within_bounds(micros in any::<i64>(), seconds in 0..=86_400_u32) {
            let occurrence = Timestamp::from_micros(micros);
            let delay = jitter(&schedule(), occurrence, seconds);
            prop_assert!(delay <= Duration::from_secs(u64::from(seconds)));
            prop_assert!(delay <= jitter(&schedule(), occurrence, seconds + 1));
        }
    }
}
