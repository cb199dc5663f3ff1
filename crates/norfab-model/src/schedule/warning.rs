//! What is allowed and still hardly meant.

use std::fmt;

use super::{Coalesce, OverlapPolicy, Schedule};
use crate::Trigger;

/// The longest that a dispatcher sleeps before it looks at the clock again: after a clock step or a suspended machine,
/// work is late by this at most.
pub const SLEEP_CAP_SECONDS: u32 = 60;

/// Something about a schedule that its author should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleWarning {
    /// `all` makes a job of each occurrence, FORBID lets one run at a time: the others are skipped.
    AllWithForbid,
    /// The grace ends before a late look at the clock.
    GraceBelowSleepCap {
        /// The grace, in seconds.
        grace: u32,
    },
    /// FORBID, and a job may take longer than the interval.
    IntervalBelowTimeout {
        /// The interval, in seconds.
        interval: u32,
        /// The timeout, in seconds.
        timeout: u32,
    },
    /// FORBID runs one at a time, whatever `max_instances` says.
    ForbidWithInstances {
        /// `max_instances`.
        max_instances: u32,
    },
    /// ALLOW with one instance does what FORBID does.
    AllowWithOneInstance,
}

impl fmt::Display for ScheduleWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllWithForbid => f.write_str(
                "coalesce \"all\" with FORBID makes one job of several that are due and skips the others; \
                 use ALLOW with max_instances, or coalesce \"latest\"",
            ),
            Self::GraceBelowSleepCap { grace } => write!(
                f,
                "misfire_grace_seconds is {grace}, less than the {SLEEP_CAP_SECONDS} s that a clock step or a sleeping \
                 machine may delay a start: such occurrences are missed",
            ),
            Self::IntervalBelowTimeout { interval, timeout } => write!(
                f,
                "the interval of {interval} s is shorter than the timeout of {timeout} s: while a job takes longer than \
                 the interval, FORBID skips the occurrences that follow",
            ),
            Self::ForbidWithInstances { max_instances } => {
                write!(f, "max_instances is {max_instances}, but FORBID lets one job run at a time; use ALLOW")
            }
            Self::AllowWithOneInstance => {
                f.write_str("ALLOW with max_instances 1 does what FORBID does; give max_instances 2 or more")
            }
        }
    }
}

/// The warnings of a schedule, in a fixed order.
pub(super) fn warnings(schedule: &Schedule) -> Vec<ScheduleWarning> {
    use ScheduleWarning as W;
    let forbid = schedule.overlap_policy == OverlapPolicy::Forbid;
    let (max_instances, timeout) = (schedule.max_instances, schedule.timeout);
    let Trigger::Interval(interval) = schedule.trigger;
    let interval = interval.seconds();
    let grace = schedule.misfire_grace_seconds.filter(|grace| *grace < SLEEP_CAP_SECONDS);
    [
        (forbid && schedule.coalesce == Coalesce::All).then_some(W::AllWithForbid),
        grace.map(|grace| W::GraceBelowSleepCap { grace }),
        (forbid && interval < timeout).then_some(W::IntervalBelowTimeout { interval, timeout }),
        (forbid && max_instances > 1).then_some(W::ForbidWithInstances { max_instances }),
        (!forbid && max_instances == 1).then_some(W::AllowWithOneInstance),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewSchedule;
    use crate::schedule::tests::{every, saved};

    #[track_caller]
    fn check(new: NewSchedule, parts: &[&str]) {
        let found: Vec<String> = saved(new).warnings().iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), parts.len(), "{found:?}");
        for (warning, part) in found.iter().zip(parts) {
            assert!(warning.contains(part), "{warning}");
        }
    }

    #[test]
    fn warned_about() {
        check(every("10m"), &[]);
        check(every("10m").coalesce(Coalesce::All), &["coalesce \"all\" with FORBID"]);
        check(every("10m").grace(59), &["less than the 60 s"]);
        check(every("10m").grace(60), &[]);
        check(every("5m"), &["the interval of 300 s is shorter than the timeout of 600 s"]);
        check(every("5m").timeout(300), &[]);
        check(every("10m").max_instances(2), &["FORBID lets one job run at a time"]);
        let allow = || every("5m").overlap_policy(OverlapPolicy::Allow);
        check(allow(), &["ALLOW with max_instances 1"]);
        check(allow().max_instances(2).coalesce(Coalesce::All), &[]);
        check(every("1s").coalesce(Coalesce::All).grace(1).max_instances(9), &["all", "grace", "timeout", "FORBID"]);
    }
}
