//! Schedules for a person: in a list, one whole, and their instants in UTC and as the schedule's zone shows them.

use norfab_client::{
    Cadence, Calendar, Created, Managed, OverlapPolicy, Schedule, ScheduleDetail, SchedulePage, ScheduleState,
    SwitchedOff, Timestamp, Trigger, UnreadableSchedule, Upcoming, Zone,
};
use time::PrimitiveDateTime;

use super::moment::{in_utc, in_zone};
use super::pretty::{fields, indent, json, plain};
use super::table::{Cell, Column, Room, Table};
use super::{Moments, Stream, Tint, of_state};

/// A page of schedules, a line each.
#[must_use]
pub(crate) fn schedule_list(page: &SchedulePage, moments: &Moments, room: Room) -> String {
    let mut table = Table::new([
        Column::shortened("NAME", 12),
        Column::whole("RULE"),
        Column::whole("ZONE").leaves(1),
        Column::whole("STATE"),
        Column::whole("NEXT").leaves(5),
        Column::whole("IN").leaves(6),
        Column::whole("LAST").leaves(4),
        Column::shortened("OUTCOME", 16).leaves(2),
        Column::whole("FAILED").leaves(7),
        Column::whole("SKIPPED").leaves(3),
    ]);
    for view in &page.schedules {
        let schedule = &view.schedule;
        let zone = &schedule.timezone;
        let next = to_come(schedule).map(|next| next.due);
        let outcome = schedule.last_error.clone().or(schedule.last_outcome.as_ref().map(ToString::to_string));
        table.add([
            Cell::new(plain(schedule.name.as_deref().unwrap_or(schedule.uuid.as_str()))),
            Cell::new(plain(&short(&schedule.trigger))),
            Cell::new(plain(zone.name())),
            Cell::new(schedule.state.to_string()).tinted(of_state(schedule.state)),
            Cell::new(next.map_or_else(dash, |at| in_zone(at, zone))),
            Cell::new(next.map_or_else(dash, |at| moments.relative(at))),
            schedule
                .last_run_at
                .map_or_else(|| Cell::new(dash()), |at| Cell::of_forms([in_zone(at, zone), moments.relative(at)])),
            Cell::new(outcome.map_or_else(dash, |text| plain(&text))),
            Cell::new(schedule.counters.failed_runs.to_string()),
            Cell::new(schedule.counters.overlap_skips.to_string()),
        ]);
    }
    table.lines(room)
}

/// A page of deleted schedules, a line each, with what is needed to find their jobs.
#[must_use]
pub(crate) fn deleted_list(page: &SchedulePage, moments: &Moments, room: Room) -> String {
    let mut table = Table::new([
        Column::whole("UUID"),
        Column::shortened("NAME", 12),
        Column::shortened("TASK", 12).leaves(2),
        Column::whole("DELETED").leaves(3),
        Column::whole("RUNS").leaves(1),
    ]);
    for Schedule { uuid, name, service, task, timezone, deleted_at, counters, .. } in
        page.schedules.iter().map(|view| &view.schedule)
    {
        table.add([
            Cell::new(plain(uuid.as_str())),
            Cell::new(name.as_deref().map_or_else(dash, plain)),
            Cell::new(plain(&format!("{service}:{task}"))),
            deleted_at
                .map_or_else(|| Cell::new(dash()), |at| Cell::of_forms([in_zone(at, timezone), moments.relative(at)])),
            Cell::new(counters.total_runs.to_string()),
        ]);
    }
    table.lines(room)
}

/// All that is known of a schedule.
#[must_use]
pub(crate) fn schedule_detail(detail: &ScheduleDetail, moments: &Moments, room: Room) -> String {
    let mut lines = head(&detail.view.schedule, moments);
    lines.push(("active jobs", detail.view.active_jobs.to_string()));
    let mut text = fields(&lines, room);
    for (name, payload, empty) in [("args", &detail.args, "[]"), ("kwargs", &detail.kwargs, "{}")] {
        if payload.as_str() != empty {
            text.push_str(&format!("\n{name}:\n{}", indent(&json(payload), "  ")));
        }
    }
    text
}

/// A schedule that was created, and its first instants.
#[must_use]
pub(crate) fn schedule_created(created: &Created, next: &[Upcoming], moments: &Moments, room: Room) -> String {
    let schedule = &created.schedule;
    let head = fields(&head(schedule, moments), room);
    format!("{head}\n\n{}", occurrences(schedule, next, moments, room))
}

/// A rule that is no schedule yet, and its instants.
#[must_use]
pub(crate) fn rule(schedule: &Schedule, next: &[Upcoming], moments: &Moments, room: Room) -> String {
    let head = fields(&rule_fields(schedule), room);
    if next.is_empty() { head } else { format!("{head}\n\n{}", occurrences(schedule, next, moments, room)) }
}

/// Instants of a schedule, a line each: in UTC, as its zone shows them, how far away they are, and what a clock change left
/// out.
#[must_use]
pub(crate) fn occurrences(schedule: &Schedule, next: &[Upcoming], moments: &Moments, room: Room) -> String {
    let (zone, occurrences) = (&schedule.timezone, schedule.occurrences());
    let has_moved = next.iter().any(|one| occurrences.moved(one.occurrence).is_some());
    let has_local = !zone.is_same(&Zone::utc());
    let has_jitter = next.iter().any(|one| one.due != one.occurrence);
    let columns = [
        (Column::whole("UTC"), true),
        (Column::whole("LOCAL").leaves(1), has_local),
        (Column::whole("DUE (UTC)").leaves(2), has_jitter),
        (Column::whole("IN"), true),
        (Column::shortened("MOVED", 12).leaves(3), has_moved),
    ];
    let kept = columns.map(|(_, is_there)| is_there);
    let columns: Vec<_> = columns.into_iter().filter_map(|(column, is_there)| is_there.then_some(column)).collect();
    let mut table = Table::new(columns);
    for one in next {
        let at = one.occurrence;
        let moved = occurrences.moved(at).map_or_else(dash, |moved| moved.to_string());
        let cells = [in_utc(at), in_zone(at, zone), in_utc(one.due), moments.relative(one.due), moved];
        let row = cells.into_iter().zip(kept).filter_map(|(text, is_there)| is_there.then(|| Cell::new(text)));
        table.add(row.collect::<Vec<_>>());
    }
    table.lines(room)
}

/// One line for a schedule that was just changed.
#[must_use]
pub(crate) fn managed(managed: &Managed, moments: &Moments) -> String {
    let schedule = &managed.schedule;
    let state = state(schedule);
    let mut text = format!(
        "{state} {} {}:{} {}",
        schedule.label(),
        plain(&schedule.service),
        plain(&schedule.task),
        plain(&short(&schedule.trigger))
    );
    if let Some(next) = to_come(schedule) {
        text.push_str(&format!(", next at {}", instant(next.due, &schedule.timezone, moments)));
    }
    match managed.passed_over {
        0 => {}
        1 => text.push_str(", 1 occurrence was passed over"),
        more => text.push_str(&format!(", {more} occurrences were passed over")),
    }
    text
}

/// What a schedule is now that was switched off or deleted.
#[must_use]
pub(crate) fn switched_off(switched_off: &SwitchedOff, moments: &Moments) -> String {
    match switched_off {
        SwitchedOff::Schedule(managed) => self::managed(managed, moments),
        SwitchedOff::Unreadable(row) => unreadable_schedule(row),
    }
}

/// A row that is no schedule, in a line.
#[must_use]
pub(crate) fn unreadable_schedule(row: &UnreadableSchedule) -> String {
    plain(&format!("schedule {} is {} and cannot be read: {}", row.label(), row.state, row.reason))
}

/// When a schedule runs; in words where it does not say so itself.
fn rule_fields(schedule: &Schedule) -> Vec<(&'static str, String)> {
    let words = schedule.trigger.is_zone_bound().then(|| ("in words", schedule.trigger.describe()));
    let rule = ("rule", plain(&short(&schedule.trigger)));
    [rule].into_iter().chain(words).chain([("zone", plain(schedule.timezone.name()))]).collect()
}

/// The fields of a schedule that say something.
fn head(schedule: &Schedule, moments: &Moments) -> Vec<(&'static str, String)> {
    let zone = &schedule.timezone;
    let at = |instant: Option<Timestamp>| instant.map(|at| self::instant(at, zone, moments));
    let seconds = |seconds: u32| format!("{seconds} s");
    let next = to_come(schedule);
    let what = [
        ("schedule", Some(schedule.uuid.to_string())),
        ("name", schedule.name.as_deref().map(plain)),
        ("service", Some(plain(&schedule.service))),
        ("task", Some(plain(&schedule.task))),
        ("workers", Some(plain(&schedule.workers.to_string()))),
        ("state", Some(state(schedule))),
    ];
    let rest = [
        ("starts", at(schedule.start_at)),
        ("ends", at(schedule.end_at)),
        ("next", at(next.map(|next| next.occurrence))),
        ("due", at(next.filter(|next| next.due != next.occurrence).map(|next| next.due))),
        ("last run", at(schedule.last_run_at)),
        ("coalesce", Some(schedule.coalesce.to_string())),
        ("overlap", Some(overlap(schedule))),
        ("grace", Some(schedule.misfire_grace_seconds.map_or_else(|| "none".to_owned(), seconds))),
        ("jitter", (schedule.jitter_seconds > 0).then(|| seconds(schedule.jitter_seconds))),
        ("timeout", Some(seconds(schedule.timeout))),
        ("runs", Some(counters(schedule))),
        (
            "last outcome",
            schedule.last_outcome.as_ref().map(|outcome| format!("{outcome}, {}", moments.relative(outcome.when))),
        ),
        ("last error", schedule.last_error.as_deref().map(plain)),
        ("created", at(Some(schedule.created_at))),
        ("deleted", at(schedule.deleted_at)),
        ("revision", Some(schedule.revision.to_string())),
    ];
    let rule = rule_fields(schedule).into_iter().map(|(name, text)| (name, Some(text)));
    what.into_iter().chain(rule).chain(rest).filter_map(|(name, text)| Some((name, text?))).collect()
}

/// The cursor, while it means something: a schedule that stands still has none to wait for.
fn to_come(schedule: &Schedule) -> Option<Upcoming> {
    schedule.next.filter(|_| schedule.state == ScheduleState::Active)
}

fn state(schedule: &Schedule) -> String {
    match schedule.deleted_at {
        Some(_) => Tint::Quiet.on(Stream::Stdout, "DELETED").to_string(),
        None => of_state(schedule.state).on(Stream::Stdout, schedule.state).to_string(),
    }
}

/// An instant in UTC, in the zone where that is another one, and how far away it is.
fn instant(at: Timestamp, zone: &Zone, moments: &Moments) -> String {
    let relative = moments.relative(at);
    if zone.is_same(&Zone::utc()) {
        format!("{} ({relative})", in_utc(at))
    } else {
        format!("{}, locally {} ({relative})", in_utc(at), in_zone(at, zone))
    }
}

/// The rule in short, much as the options take it: `every 5m`, a cron expression, `mon,thu@03:00`.
fn short(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Calendar(calendar) => short_calendar(calendar),
        other => other.to_string(),
    }
}

/// `day@03:00`, `mon,thu@03:00`, `31@03:00`; with more than one `2 weeks mon,thu@03:00`.
fn short_calendar(calendar: &Calendar) -> String {
    let at = calendar.at();
    match calendar.cadence() {
        Cadence::Days { every: 1 } => format!("day@{at}"),
        Cadence::Days { every } => format!("{every} days@{at}"),
        Cadence::Weeks { every, weekdays } => {
            let several = if every == 1 { String::new() } else { format!("{every} weeks ") };
            format!("{several}{}@{at}", weekdays.names().collect::<Vec<_>>().join(","))
        }
        Cadence::Months { every, day } => {
            let several = if every == 1 { String::new() } else { format!("{every} months ") };
            format!("{several}{day}@{at}")
        }
    }
}

/// A time of the wall clock that has no offset, as RFC 3339 writes it but for that.
#[must_use]
pub(crate) fn wall_clock(at: PrimitiveDateTime) -> String {
    let (hour, minute, second) = at.as_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}", at.date())
}

fn overlap(schedule: &Schedule) -> String {
    match schedule.overlap_policy {
        OverlapPolicy::Forbid => schedule.overlap_policy.to_string(),
        OverlapPolicy::Allow => format!("{}, {} at a time", schedule.overlap_policy, schedule.max_instances),
    }
}

fn counters(schedule: &Schedule) -> String {
    let counters = &schedule.counters;
    let others = [
        (counters.failed_runs, "failed"),
        (counters.missed_runs, "missed"),
        (counters.overlap_skips, "skipped"),
        (counters.coalesced_runs, "coalesced"),
        (counters.passed_over, "passed over"),
    ];
    let mut text = counters.total_runs.to_string();
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    text
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use norfab_client::{Interval, Limits, NewSchedule, ScheduleView};

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn schedule(change: impl FnOnce(&mut Schedule)) -> Schedule {
        let every: Interval = "5m".parse().expect("valid");
        let new = NewSchedule::new("demo", "echo", every).name("clock").timezone("Europe/Berlin");
        let mut schedule = Limits::default().check_schedule(T0, new).expect("valid").schedule().clone();
        change(&mut schedule);
        schedule
    }

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn instants_stand_in_utc_and_in_the_zone() {
        let schedule = schedule(|_| {});
        let next: Vec<_> = schedule.preview(T0).take(2).collect();
        let table = |schedule: &Schedule| {
            let shown = occurrences(schedule, &next, &Moments::at(T0), Room::Endless);
            console::strip_ansi_codes(&shown).into_owned()
        };
        let berlin = table(&schedule);
        let lines: Vec<_> = berlin.lines().map(words).collect();
        assert_eq!(lines[0], words("UTC LOCAL IN"));
        assert_eq!(lines[1], words("2026-11-30 00:05:00Z 2026-11-30 01:05:00+01:00 in 5 min"));
        assert_eq!(lines[2], words("2026-11-30 00:10:00Z 2026-11-30 01:10:00+01:00 in 10 min"));
        let utc = Schedule { timezone: Zone::utc(), ..schedule };
        assert_eq!(table(&utc).lines().nth(1).map(words), Some(words("2026-11-30 00:05:00Z in 5 min")));
    }

    #[test]
    fn rules_in_short() {
        #[track_caller]
        fn check(json: &str, expected: &str) {
            let trigger = Trigger::from_json(&serde_json::from_str(json).expect("JSON")).expect("a trigger");
            assert_eq!(short(&trigger), expected);
        }
        check(r#"{"type":"interval","seconds":90}"#, "every 1m30s");
        check(r#"{"type":"cron","expression":"0 3 * * mon"}"#, "0 3 * * mon");
        check(r#"{"type":"calendar","unit":"day","at":"03:00"}"#, "day@03:00");
        check(r#"{"type":"calendar","unit":"day","at":"03:00:30","every":2}"#, "2 days@03:00:30");
        check(r#"{"type":"calendar","unit":"week","at":"03:00","weekdays":["thu","mon"]}"#, "mon,thu@03:00");
        check(r#"{"type":"calendar","unit":"week","at":"03:00","weekdays":["mon"],"every":2}"#, "2 weeks mon@03:00");
        check(r#"{"type":"calendar","unit":"month","at":"03:00","day":31}"#, "31@03:00");
        check(r#"{"type":"calendar","unit":"month","at":"03:00","day":1,"every":3}"#, "3 months 1@03:00");
    }

    #[test]
    fn what_a_clock_change_moved_says_so() {
        let schedule = schedule(|schedule| {
            schedule.trigger = Calendar::daily("02:30").expect("a time").into();
        });
        let from = Timestamp::parse("2027-03-27T12:00:00Z").expect("an instant");
        let next: Vec<_> = schedule.preview(from).take(2).collect();
        let shown = occurrences(&schedule, &next, &Moments::at(from), Room::Endless);
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[1].contains("2027-03-28 03:00:00+02:00"), "{shown}");
        assert!(lines[1].ends_with("02:30 is left out when the clocks go forward from 02:00 to 03:00"), "{shown}");
        assert!(lines[2].ends_with('-'), "{shown}");
        let moved = schedule.occurrences().moved(next[0].occurrence).expect("it is moved");
        assert_eq!(wall_clock(moved.named[0]), "2027-03-28T02:30:00");
    }

    #[test]
    fn a_list_has_a_line_a_schedule() {
        let paused = schedule(|schedule| {
            (schedule.state, schedule.name) = (ScheduleState::Paused, Some("\u{1b}[2J".to_owned()));
            (schedule.counters.failed_runs, schedule.counters.overlap_skips) = (1, 3);
        });
        let views = [schedule(|_| {}), paused].map(|schedule| ScheduleView { schedule, active_jobs: 0 });
        let page = SchedulePage { schedules: views.to_vec(), unreadable: Vec::new(), next: None };
        let shown = schedule_list(&page, &Moments::at(T0), Room::Endless);
        let shown = console::strip_ansi_codes(&shown);
        let lines: Vec<_> = shown.lines().map(words).collect();
        assert_eq!(lines[0], words("NAME RULE ZONE STATE NEXT IN LAST OUTCOME FAILED SKIPPED"));
        assert_eq!(lines[1], words("clock every 5m Europe/Berlin ACTIVE 2026-11-30 01:05:00+01:00 in 5 min - - 0 0"));
        assert_eq!(lines[2], words("\\u{1b}[2J every 5m Europe/Berlin PAUSED - - - - 1 3"));
        let narrow = schedule_list(&page, &Moments::at(T0), Room::Characters(40));
        assert!(console::strip_ansi_codes(&narrow).lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn a_change_is_a_line() {
        #[track_caller]
        fn check(passed_over: u64, change: impl FnOnce(&mut Schedule), end: &str) {
            // What a call makes of a schedule is the model's; only its showing is looked at here.
            let base = schedule(|_| {}).pause(T0).expect("is active");
            let schedule = schedule(change);
            let uuid = schedule.uuid.clone();
            let line = managed(&Managed { schedule, passed_over, ..base }, &Moments::at(T0));
            let line = console::strip_ansi_codes(&line).replace(uuid.as_str(), "UUID");
            assert_eq!(line, end);
        }
        check(
            2,
            |_| {},
            "ACTIVE \"clock\" (UUID) demo:echo every 5m, next at 2026-11-30 00:05:00Z, locally 2026-11-30 \
             01:05:00+01:00 (in 5 min), 2 occurrences were passed over",
        );
        check(0, |schedule| schedule.state = ScheduleState::Paused, "PAUSED \"clock\" (UUID) demo:echo every 5m");
        let delete = |schedule: &mut Schedule| {
            (schedule.state, schedule.deleted_at) = (ScheduleState::Disabled, Some(T0));
        };
        check(1, delete, "DELETED \"clock\" (UUID) demo:echo every 5m, 1 occurrence was passed over");
    }

    #[test]
    fn a_row_that_cannot_be_read_is_a_line() {
        let row = UnreadableSchedule {
            uuid: "b91ffcf2623a43f4a28e478b65c0647a".to_owned(),
            name: Some("clock".to_owned()),
            state: "DISABLED".to_owned(),
            last_error: None,
            reason: "its timezone cannot be used\u{1b}".to_owned(),
        };
        let line = "schedule \"clock\" (b91ffcf2623a43f4a28e478b65c0647a) is DISABLED and cannot be read: its timezone \
                    cannot be used";
        assert!(unreadable_schedule(&row).starts_with(line) && !unreadable_schedule(&row).contains('\u{1b}'));
        assert_eq!(switched_off(&SwitchedOff::Unreadable(row.clone()), &Moments::at(T0)), unreadable_schedule(&row));
    }
}
