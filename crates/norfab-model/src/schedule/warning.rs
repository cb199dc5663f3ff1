//! What is allowed and still hardly meant.

use std::fmt;
use std::time::Duration;

use time::OffsetDateTime;

use super::{Coalesce, OverlapPolicy, Schedule};
use crate::trigger::{FEW, some_of};
use crate::{Moved, TimeOfDay, Transition, Trigger, UnevenStep};

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
    /// A cron expression for days that some of its months do not have, such as the 31st.
    MonthsWithoutDay {
        /// Those months, in words.
        months: String,
    },
    /// The name of the zone is an abbreviation that the data has kept: it means one place, and hardly the one that is
    /// meant.
    AbbreviatedZone {
        /// The name as it was given.
        given: String,
        /// The zone that it means.
        canonical: String,
    },
    /// More than a year lies between two occurrences to come.
    RarerThanYearly {
        /// The next one, by the clocks of the zone.
        next: OffsetDateTime,
        /// The one behind it.
        then: Option<OffsetDateTime>,
    },
    /// Within a year an occurrence has times of day that the clocks go forward over.
    InGap {
        /// When it runs instead, by the clocks of the zone.
        runs: OffsetDateTime,
        /// What is left out.
        moved: Moved,
    },
    /// Within a year occurrences have times of day that the clocks show twice.
    InFold {
        /// The first few of them, by the clocks of the zone, in the first pass.
        runs: Vec<OffsetDateTime>,
        /// How many there are.
        count: u64,
        /// In which of the two passes it runs.
        passes: Passes,
    },
}

/// The passes of a repeated hour in which a schedule runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// The first alone: its times are times of day.
    First,
    /// Both: it follows elapsed time.
    Both,
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
            Self::MonthsWithoutDay { months } => write!(
                f,
                "it does not run in {months}, for want of such a day; L in the day of month is the last day of every month",
            ),
            Self::AbbreviatedZone { given, canonical } => write!(
                f,
                "the time zone {given:?} is an old name of {canonical}, whatever else it may stand for; name the place whose \
                 clocks are meant",
            ),
            Self::RarerThanYearly { next, then } => match then {
                Some(then) => write!(f, "it runs on {} and then not before {}", next.date(), then.date()),
                None => write!(f, "it runs on {} and then never again", next.date()),
            },
            Self::InGap { runs, moved } => {
                write!(f, "on {} {moved}: it runs at {} then", runs.date(), TimeOfDay::from(runs.time()))
            }
            Self::InFold { runs, count, passes } => {
                let date = runs.first().map(|at| at.date().to_string()).unwrap_or_default();
                let times: Vec<_> = runs.iter().map(|at| TimeOfDay::from(at.time()).to_string()).collect();
                let passes = match passes {
                    Passes::First => "in the first pass only",
                    Passes::Both => "in both passes",
                };
                write!(f, "on {date} the clocks show {} twice: it runs {passes}", some_of(&times, *count))
            }
        }
    }
}

impl Schedule {
    /// What is allowed and still hardly meant of when it runs, whatever it runs, as of its last change.
    #[must_use]
    pub fn rule_warnings(&self) -> Vec<ScheduleWarning> {
        let of_zone = || {
            self.timezone.is_abbreviation().then(|| ScheduleWarning::AbbreviatedZone {
                given: self.timezone.name().to_owned(),
                canonical: self.timezone.canonical().to_owned(),
            })
        };
        let of_zone = self.trigger.is_zone_bound().then(of_zone).flatten();
        of_cron(&self.trigger)
            .into_iter()
            .chain(of_zone)
            .chain(rarer_than_yearly(self))
            .chain(clock_changes(self))
            .collect()
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
    .chain(schedule.rule_warnings())
    .collect()
}

/// How many occurrences are looked at, where it might be any number.
const LOOKED_AT: usize = 20;

/// The interval; of other triggers the shortest of those that come next.
fn shortest_interval(schedule: &Schedule) -> Option<u32> {
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
    let uneven = cron.uneven_steps().iter().copied().map(ScheduleWarning::UnevenStep);
    let without = cron.months_without_its_days().map(|months| ScheduleWarning::MonthsWithoutDay { months });
    either.into_iter().chain(uneven).chain(without).collect()
}

fn rarer_than_yearly(schedule: &Schedule) -> Option<ScheduleWarning> {
    let local = |at| schedule.timezone.local(at);
    let next = schedule.occurrences().next_after(schedule.updated_at).filter(|_| schedule.trigger.is_zone_bound())?;
    let then = schedule.occurrences().next_after(next);
    let rare = then.map_or(schedule.end_at.is_none(), |then| then.since(next) > YEAR);
    rare.then(|| ScheduleWarning::RarerThanYearly { next: local(next), then: then.map(local) })
}

/// The first gap and the first repeated hour that matter, within a year of the last change of the schedule. What runs in
/// every hour goes on as ever, as is to be expected of it.
fn clock_changes(schedule: &Schedule) -> Vec<ScheduleWarning> {
    let (zone, start) = (&schedule.timezone, schedule.updated_at);
    let changes = std::iter::successors(zone.next_transition(start), |change| zone.next_transition(change.at))
        .take_while(|change| schedule.trigger.heeds_clock_changes() && change.at <= start.saturating_add(YEAR));
    let (mut gap, mut fold) = (None, None);
    for change in changes {
        gap = gap.or_else(|| in_gap(schedule, change));
        fold = fold.or_else(|| in_fold(schedule, change));
    }
    gap.into_iter().chain(fold).collect()
}

fn in_gap(schedule: &Schedule, change: Transition) -> Option<ScheduleWarning> {
    let occurrences = schedule.occurrences();
    let end = change.at.saturating_add(seconds(change.forward_seconds()));
    let first = occurrences.first_at_or_after(change.at);
    let mut near = std::iter::successors(first, |at| occurrences.next_after(*at)).take_while(|at| *at < end);
    let found = near.by_ref().take(LOOKED_AT).find_map(|at| Some((at, occurrences.moved(at)?)));
    found.map(|(at, moved)| ScheduleWarning::InGap { runs: schedule.timezone.local(at), moved })
}

fn in_fold(schedule: &Schedule, change: Transition) -> Option<ScheduleWarning> {
    let occurrences = schedule.occurrences();
    let first_pass = change.at.saturating_sub(seconds(-change.forward_seconds())).max(schedule.updated_at);
    let first = occurrences.first_at_or_after(first_pass).filter(|at| *at < change.at)?;
    let near = std::iter::successors(Some(first), |at| occurrences.next_after(*at)).take_while(|at| *at < change.at);
    let count = occurrences.count_in(first_pass, change.at.saturating_sub(Duration::from_micros(1)));
    let is_free = matches!(&schedule.trigger, Trigger::Cron(cron) if cron.has_free_hours());
    let passes = if is_free { Passes::Both } else { Passes::First };
    let runs = near.take(FEW).map(|at| schedule.timezone.local(at)).collect();
    Some(ScheduleWarning::InFold { runs, count, passes })
}

/// So many seconds, none when they are negative.
fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::from(seconds.max(0).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tests::{every, saved};
    use crate::{NewSchedule, Timestamp};

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
        let months = "it does not run in February, April, June, September and November, for want of such a day; L in";
        check(cron("0 0 31 * *", "UTC"), &[months]);
        check(cron("0 0 31W * *", "UTC"), &[months]);
        check(cron("0 0 30,31 * *", "UTC"), &["it does not run in February, for"]);
        check(cron("0 0 29-31 * *", "UTC"), &["it does not run in February of most years, for"]);
        check(cron("0 0 31 6,7 *", "UTC"), &["it does not run in June, for"]);
        for every_month in ["0 0 28 * *", "0 0 28-31 * *", "0 0 1,31 * *", "0 0 31,L * *", "0 0 31 1,3 *"] {
            check(cron(every_month, "UTC"), &[]);
        }
        check(cron("0 0 31 * 1", "UTC"), &["both day fields"]);
        check(NewSchedule::new("nornir", "cli", crate::Calendar::monthly("31@03:00").expect("valid")), &[]);
        check(cron("0 3 * * *", "est"), &["the time zone \"est\" is an old name of America/Panama, whatever else"]);
        check(cron("0 12 * * *", "CET"), &["the time zone \"CET\" is an old name of Europe/Brussels"]);
        check(every("10m").timezone("EST"), &[]);
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
        // All that comes to one run is told, also what is shown.
        let gap = "on 2027-03-14 02:00 is left out when the clocks go forward from 02:00 to 03:00, and comes to one run with \
                   03:00: it runs at 03:00 then";
        check(cron("0 2,3 * * *", "America/New_York"), &[gap]);
        check(cron("0 3-9 * * *", "America/New_York"), &[]);
        let gap = "on 2027-03-14 02:00, 02:15, 02:30 and 02:45 are left out when the clocks go forward from 02:00 to 03:00, \
                   and come to one run: it runs at 03:00 then";
        check(cron("*/15 2 * * *", "America/New_York"), &[gap]);
        let fold = "on 2027-11-07 the clocks show 01:00, 01:15, 01:30 and 01:45 twice: it runs in the first pass only";
        check(cron("*/15 1 * * *", "America/New_York"), &[fold]);
        let fold = "the clocks show 01:00, 01:05, 01:10, 01:15 and 8 more twice: it runs in the first pass only";
        check(cron("*/5 1 * * *", "America/New_York"), &[fold]);
        // Hours that are stepped over follow elapsed time, but not evenly on such a day.
        let twice = "the clocks show 02:30 twice: it runs in both passes";
        let gap =
            "on 2027-03-28 02:30 is left out when the clocks go forward from 02:00 to 03:00: it runs at 03:30 then";
        check(cron("30 */2 * * *", "Europe/Berlin"), &[gap, twice]);
        check(cron("0 */12 * * *", "America/Havana"), &["00:00 twice: it runs in both passes"]);
        check(cron("0 0,12 * * *", "America/Havana"), &["00:00 twice: it runs in the first pass"]);
        check(cron("30 2/12 * * *", "Europe/Berlin"), &["02:30 is left out", "02:30 twice: it runs in the first pass"]);
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
