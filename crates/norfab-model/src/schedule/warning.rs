//! What is allowed and still hardly meant.

use std::fmt;
use std::time::Duration;

use time::OffsetDateTime;

use super::{Coalesce, OverlapPolicy, Schedule};
use crate::{Moved, TimeOfDay, Timestamp, Trigger, UnevenStep};

/// The longest that a dispatcher sleeps before it looks at the clock again: after a clock step or a suspended machine,
/// work is late by this at most.
pub const SLEEP_CAP_SECONDS: u32 = 60;

/// Longer than any year of the calendar, and not longer than it by a day.
const YEAR: Duration = Duration::from_secs(366 * 86_400);

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
        /// The interval, in seconds; of other triggers, the shortest one of those to come next.
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
    /// Both day fields of a cron expression are restricted: a day need match only one of them.
    EitherDay {
        /// The expression in words.
        words: String,
    },
    /// A step of a cron expression that does not come out even.
    UnevenStep(UnevenStep),
    /// More than a year lies between two occurrences to come.
    RarerThanYearly {
        /// The next one, by the clocks of the zone.
        next: OffsetDateTime,
        /// The one behind it.
        then: Option<OffsetDateTime>,
    },
    /// Within a year an occurrence has a time of day that the clocks go forward over.
    InGap {
        /// When it runs instead, by the clocks of the zone.
        runs: OffsetDateTime,
        /// What is left out.
        moved: Moved,
    },
    /// Within a year an occurrence has a time of day that the clocks show twice.
    InFold {
        /// When it runs, by the clocks of the zone: in the first pass only.
        runs: OffsetDateTime,
    },
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
            Self::EitherDay { words } => {
                write!(f, "both day fields are restricted, and a day need match only one of them: it runs {words}")
            }
            Self::UnevenStep(UnevenStep { field, step, first, last }) => write!(
                f,
                "the step of {step} in the {field} field does not come out even: after {last} it begins anew with {first}",
            ),
            Self::RarerThanYearly { next, then } => match then {
                Some(then) => write!(f, "it runs on {} and then not before {}", next.date(), then.date()),
                None => write!(f, "it runs on {} and then never again", next.date()),
            },
            Self::InGap { runs, moved } => {
                write!(f, "on {} {moved}: it runs at {} then", runs.date(), TimeOfDay::from(runs.time()))
            }
            Self::InFold { runs } => write!(
                f,
                "on {} the clocks show {} twice: it runs in the first pass only",
                runs.date(),
                TimeOfDay::from(runs.time()),
            ),
        }
    }
}

/// The warnings of a schedule, in a fixed order.
pub(super) fn warnings(schedule: &Schedule) -> Vec<ScheduleWarning> {
    use ScheduleWarning as W;
    let forbid = schedule.overlap_policy == OverlapPolicy::Forbid;
    let (max_instances, timeout) = (schedule.max_instances, schedule.timeout);
    let short = shortest_interval(schedule).filter(|interval| forbid && *interval < timeout);
    let grace = schedule.misfire_grace_seconds.filter(|grace| *grace < SLEEP_CAP_SECONDS);
    [
        (forbid && schedule.coalesce == Coalesce::All).then_some(W::AllWithForbid),
        grace.map(|grace| W::GraceBelowSleepCap { grace }),
        short.map(|interval| W::IntervalBelowTimeout { interval, timeout }),
        (forbid && max_instances > 1).then_some(W::ForbidWithInstances { max_instances }),
        (!forbid && max_instances == 1).then_some(W::AllowWithOneInstance),
    ]
    .into_iter()
    .flatten()
    .chain(of_cron(&schedule.trigger))
    .chain(rarer_than_yearly(schedule))
    .chain(clock_changes(schedule))
    .collect()
}

/// The interval; of other triggers the shortest of those that come next.
fn shortest_interval(schedule: &Schedule) -> Option<u32> {
    const LOOKED_AT: usize = 20;
    if let Trigger::Interval(interval) = &schedule.trigger {
        return Some(interval.seconds());
    }
    let next: Vec<_> = schedule.occurrences().after(schedule.updated_at).take(LOOKED_AT).collect();
    let intervals = next.iter().zip(next.iter().skip(1)).map(|(one, next)| next.since(*one).as_secs());
    intervals.min().and_then(|seconds| u32::try_from(seconds).ok())
}

fn of_cron(trigger: &Trigger) -> Vec<ScheduleWarning> {
    let Trigger::Cron(cron) = trigger else { return Vec::new() };
    let either = cron.has_either_day().then(|| ScheduleWarning::EitherDay { words: trigger.describe() });
    either.into_iter().chain(cron.uneven_steps().into_iter().map(ScheduleWarning::UnevenStep)).collect()
}

fn rarer_than_yearly(schedule: &Schedule) -> Option<ScheduleWarning> {
    let local = |at| schedule.timezone.local(at);
    let next = schedule.occurrences().next_after(schedule.updated_at).filter(|_| schedule.trigger.is_zone_bound())?;
    let then = schedule.occurrences().next_after(next);
    let rare = then.map_or(schedule.end_at.is_none(), |then| then.since(next) > YEAR);
    rare.then(|| ScheduleWarning::RarerThanYearly { next: local(next), then: then.map(local) })
}

/// The first occurrence in a gap and the first in a repeated hour, within a year of the last change of the schedule.
/// Free hours follow elapsed time, as is to be expected of them.
fn clock_changes(schedule: &Schedule) -> Vec<ScheduleWarning> {
    let fixed = match &schedule.trigger {
        Trigger::Interval(_) => false,
        Trigger::Cron(cron) => !cron.has_free_hours(),
        Trigger::Calendar(_) => true,
    };
    let (zone, start) = (&schedule.timezone, schedule.updated_at);
    let changes = std::iter::successors(zone.next_transition(start), |change| zone.next_transition(change.at))
        .take_while(|change| fixed && change.at <= start.saturating_add(YEAR));
    let (mut gap, mut fold) = (None, None);
    for change in changes {
        let occurrences = schedule.occurrences();
        let runs_at = zone.local(change.at);
        let repeated = Duration::from_secs(u64::from(change.forward_seconds().min(0).unsigned_abs()));
        let first_pass = change.at.saturating_sub(repeated).max(start);
        let first_in_it = || occurrences.first_at_or_after(first_pass).filter(|at| *at < change.at);
        gap = gap.or_else(|| {
            within(schedule, change.at).then(|| occurrences.moved(change.at)).flatten().map(|moved| (runs_at, moved))
        });
        fold = fold.or_else(first_in_it);
    }
    let gap = gap.map(|(runs, moved)| ScheduleWarning::InGap { runs, moved });
    let fold = fold.map(|at| ScheduleWarning::InFold { runs: zone.local(at) });
    gap.into_iter().chain(fold).collect()
}

/// Whether an instant lies within the bounds of a schedule.
fn within(schedule: &Schedule, at: Timestamp) -> bool {
    schedule.start_at.is_none_or(|start| start <= at) && schedule.end_at.is_none_or(|end| at <= end)
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

    fn cron(expression: &str, zone: &str) -> NewSchedule {
        let cron = crate::Cron::new(expression).expect(expression);
        NewSchedule::new("nornir", "cli", cron).timezone(zone).timeout(1)
    }

    /// Saved on 2026-11-30.
    #[test]
    fn warned_about_rules_by_the_clock() {
        check(cron("0 3 * * *", "UTC"), &[]);
        check(cron("0 3 * * *", "America/New_York"), &[]);
        check(
            cron("0 0 13 * 5", "UTC"),
            &[
                "both day fields are restricted, and a day need match only one of them: it runs on the 13th or on Fridays at 00:00",
            ],
        );
        check(
            cron("*/7 * * * *", "UTC"),
            &["the step of 7 in the minute field does not come out even: after 56 it begins anew with 0"],
        );
        check(cron("0 0 29 2 *", "UTC"), &["it runs on 2028-02-29 and then not before 2032-02-29"]);
        check(cron("0 0 1 1 *", "UTC"), &[]);
        check(cron("0 0 1 1 *", "UTC").end_at(crate::schedule::tests::noon(60 * 86_400)), &[]);
        check(cron("* * * * *", "UTC").timeout(60), &[]);
        check(cron("* * * * *", "UTC").timeout(61), &["the interval of 60 s is shorter than the timeout of 61 s"]);
    }

    #[test]
    fn warned_about_clock_changes_of_the_coming_year() {
        let gap =
            "on 2027-03-14 02:30 is left out when the clocks go forward from 02:00 to 03:00: it runs at 03:00 then";
        check(cron("30 2 * * *", "America/New_York"), &[gap]);
        let fold = "on 2027-11-07 the clocks show 01:30 twice: it runs in the first pass only";
        check(cron("30 1 * * *", "America/New_York"), &[fold]);
        check(cron("30 1,2 * * *", "America/New_York"), &[gap, fold]);
        check(cron("30 1,2 * * *", "Asia/Tokyo"), &[]);
        // Free hours go on as ever; other weekdays are not touched.
        check(cron("30 * * * *", "America/New_York"), &[]);
        check(cron("30 2 * * 1-5", "America/New_York"), &[]);
        let daily = crate::Calendar::daily("02:30").expect("valid");
        let daily = || NewSchedule::new("nornir", "cli", daily).timezone("Europe/Berlin");
        check(daily(), &["on 2027-03-28 02:30 is left out", "on 2027-10-31 the clocks show 02:30 twice"]);
        check(daily().end_at(Timestamp::parse("2027-03-01T00:00:00Z").expect("time")), &[]);
        check(daily().start_at(Timestamp::parse("2027-04-01T00:00:00Z").expect("time")), &["on 2027-10-31 the clocks"]);
    }
}
