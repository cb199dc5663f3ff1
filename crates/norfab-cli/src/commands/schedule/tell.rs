//! What the commands of schedules tell: to a person, and in JSON.

use norfab_client::{
    Client, ClientError, Created, Managed, Moved, Schedule, ScheduleDetail, ScheduleState, ScheduleWarning,
    SwitchedOff, Timestamp, Upcoming,
};
use serde::Serialize;

use super::super::{Site, Verdict};
use crate::failure::Failure;
use crate::output::{self, Format, Moments, Output, Room};

/// How many instants a new schedule shows.
const FIRST_INSTANTS: usize = 5;

/// An instant of a schedule, in JSON.
#[derive(Debug, Serialize)]
struct Instant {
    at: Timestamp,
    /// With its jitter; left out where no schedule is there yet, whose identity decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    /// What a clock change left out; left out where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<MovedInstant>,
}

/// What an instant would be without a clock change, in JSON.
#[derive(Debug, Serialize)]
struct MovedInstant {
    /// The first time that the rule names, by the wall clock, without an offset: there is none.
    named: String,
    /// How many such times come to this instant.
    count: u64,
    /// The time of the rule that the clocks show at this instant; left out where that is none of its times.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<String>,
    /// Why it runs at another one.
    reason: String,
}

impl From<Moved> for MovedInstant {
    fn from(moved: Moved) -> Self {
        Self {
            named: moved.named.first().copied().map(output::wall_clock).unwrap_or_default(),
            count: moved.count,
            shared: moved.shared.map(output::wall_clock),
            reason: moved.to_string(),
        }
    }
}

/// The instants of a schedule, in JSON.
#[derive(Debug, Serialize)]
struct Instants {
    occurrences: Vec<Instant>,
}

impl Instants {
    fn of_schedule(schedule: &Schedule, next: &[Upcoming]) -> Self {
        Self::of(schedule, next, |one| Some(one.due))
    }

    fn of_rule(schedule: &Schedule, next: &[Upcoming]) -> Self {
        Self::of(schedule, next, |_| None)
    }

    fn of(schedule: &Schedule, next: &[Upcoming], due: impl Fn(&Upcoming) -> Option<Timestamp>) -> Self {
        let moved = |one: &Upcoming| schedule.occurrences().moved(one.occurrence).map(MovedInstant::from);
        let instant = |one: &Upcoming| Instant { at: one.occurrence, due: due(one), moved: moved(one) };
        Self { occurrences: next.iter().map(instant).collect() }
    }
}

/// Tells the instants of a schedule.
pub(super) fn tell_instants(schedule: &Schedule, next: &[Upcoming], out: &Output) -> Result<(), Failure> {
    out.result(&Instants::of_schedule(schedule, next), || {
        if next.is_empty() {
            String::new()
        } else {
            output::occurrences(schedule, next, &Moments::now(), Room::of_stdout())
        }
    })?;
    tell_end(next, out);
    Ok(())
}

/// Tells what a rule says, its instants, and what may not have been meant.
pub(super) fn tell_rule(schedule: &Schedule, next: &[Upcoming], out: &Output) -> Result<(), Failure> {
    let warnings = schedule.rule_warnings();
    let shown = ShownRule {
        in_words: schedule.trigger.describe(),
        warnings: texts(&warnings),
        instants: Instants::of_rule(schedule, next),
    };
    out.result(&shown, || output::rule(schedule, next, &Moments::now(), Room::of_stdout()))?;
    tell_end(next, out);
    tell_warnings(&warnings, out);
    Ok(())
}

fn tell_end(next: &[Upcoming], out: &Output) {
    if next.is_empty() {
        out.progress("nothing is to come after this time");
    }
}

/// A schedule with what its author should know, in JSON.
#[derive(Debug, Serialize)]
struct ShownDetail<'a> {
    #[serde(flatten)]
    detail: &'a ScheduleDetail,
    warnings: Vec<String>,
}

/// A rule that is no schedule yet, in JSON.
#[derive(Debug, Serialize)]
struct ShownRule {
    in_words: String,
    warnings: Vec<String>,
    #[serde(flatten)]
    instants: Instants,
}

/// A schedule that was changed, in JSON.
#[derive(Debug, Serialize)]
struct ShownUpdated<'a> {
    #[serde(flatten)]
    managed: &'a Managed,
    warnings: Vec<String>,
}

/// A new schedule with its first instants, in JSON.
#[derive(Debug, Serialize)]
struct ShownCreated<'a> {
    #[serde(flatten)]
    created: &'a Created,
    #[serde(flatten)]
    instants: Instants,
}

/// Tells all of a schedule.
pub(super) fn tell_detail(detail: &ScheduleDetail, warnings: &[ScheduleWarning], out: &Output) -> Result<(), Failure> {
    let shown = ShownDetail { detail, warnings: texts(warnings) };
    out.result(&shown, || output::schedule_detail(detail, &Moments::now(), Room::of_stdout()))?;
    tell_warnings(warnings, out);
    Ok(())
}

/// Tells what became of a schedule that was changed.
pub(super) fn tell_updated(managed: &Managed, out: &Output) -> Result<(), Failure> {
    let warnings = managed.schedule.warnings();
    let shown = ShownUpdated { managed, warnings: texts(&warnings) };
    out.result(&shown, || output::managed(managed, &Moments::now()))?;
    tell_warnings(&warnings, out);
    Ok(())
}

/// Tells of a new schedule, and its first instants.
pub(super) fn tell_created(created: &Created, out: &Output) -> Result<(), Failure> {
    let next: Vec<_> = created.schedule.preview(created.schedule.created_at).take(FIRST_INSTANTS).collect();
    let shown = ShownCreated { created, instants: Instants::of_schedule(&created.schedule, &next) };
    out.result(&shown, || output::schedule_created(created, &next, &Moments::now(), Room::of_stdout()))?;
    tell_warnings(&created.warnings, out);
    Ok(())
}

/// Tells what may not have been meant; JSON has it in its value.
fn tell_warnings(warnings: &[ScheduleWarning], out: &Output) {
    if out.format() == Format::Human {
        texts(warnings).iter().for_each(|warning| out.note(warning));
    }
}

fn texts(warnings: &[ScheduleWarning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

/// Ends a client, and tells what its call made of a schedule.
pub(super) async fn tell_managed(
    site: &Site,
    client: Client,
    managed: Result<Managed, ClientError>,
    out: &Output,
) -> Result<Verdict, Failure> {
    client.shutdown().await;
    let managed = managed?;
    out.result(&managed, || output::managed(&managed, &Moments::now()))?;
    tell_who_makes(site, managed.schedule.state, out)
}

/// Ends a client, and tells what its call made of a schedule that may not even be readable.
pub(super) async fn tell_switched_off(
    client: Client,
    switched_off: Result<SwitchedOff, ClientError>,
    out: &Output,
) -> Result<Verdict, Failure> {
    client.shutdown().await;
    let switched_off = switched_off?;
    out.result(&switched_off, || output::switched_off(&switched_off, &Moments::now()))?;
    Ok(Verdict::Done)
}

/// An active schedule needs somebody who makes its jobs.
pub(super) fn tell_who_makes(site: &Site, state: ScheduleState, out: &Output) -> Result<Verdict, Failure> {
    if state == ScheduleState::Active {
        site.tell_who_serves("its jobs are made only while `norfab run` is running", out)?;
    }
    Ok(Verdict::Done)
}
