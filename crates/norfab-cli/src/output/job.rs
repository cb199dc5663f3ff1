//! Jobs for a person: in a list, one whole, and line by line as they go on.

use norfab_client::{Job, JobDetail, JobEvent, JobPage, JobStatus, Json, Results, Timestamp, WorkerResult, Workers};
use serde::Deserialize;

use super::pretty::{hanging, indent, json, plain};
use super::table::{Cell, Column, Room, Table};
use super::{Moments, Stream, Tint, of_status};

/// A page of jobs, a line each.
#[must_use]
pub(crate) fn job_list(page: &JobPage, moments: &Moments, room: Room) -> String {
    let delayed = page.jobs.iter().any(|job| job.scheduled_for.is_some());
    let mut columns = vec![
        Column::whole("JOB"),
        Column::shortened("SERVICE", 8).leaves(4),
        Column::shortened("TASK", 10).leaves(5),
        Column::shortened("WORKERS", 7).leaves(2),
        Column::whole("STATUS"),
    ];
    if delayed {
        columns.push(Column::whole("DUE").leaves(3));
    }
    columns.push(Column::whole("ADDED").leaves(1));
    let moment = |at: Option<Timestamp>| at.map_or_else(|| Cell::new("-"), |at| Cell::of_forms(moments.forms(at)));
    let mut table = Table::new(columns);
    for job in &page.jobs {
        let mut row = vec![
            Cell::new(plain(job.uuid.as_str())),
            Cell::new(plain(&job.service)),
            Cell::new(plain(&job.task)),
            Cell::new(target(job)),
            Cell::new(job.status.to_string()).tinted(of_status(job.status)),
        ];
        if delayed {
            row.push(moment(job.scheduled_for));
        }
        row.push(moment(job.created_at));
        table.add(row);
    }
    table.lines(room)
}

/// One line for a job that was just added or changed.
#[must_use]
pub(crate) fn added(job: &Job, moments: &Moments) -> String {
    let what = format!("{} {}:{} for {}", job.uuid, plain(&job.service), plain(&job.task), target(job));
    let status = of_status(job.status).on(Stream::Stdout, job.status);
    match (job.status, job.scheduled_for) {
        (JobStatus::Scheduled, Some(at)) => format!("{status} {what} at {}", moments.show(at)),
        _ => format!("{status} {what}"),
    }
}

/// All that is known of a job, its events if they were asked for.
#[must_use]
pub(crate) fn detail(detail: &JobDetail, events: Option<&[JobEvent]>, moments: &Moments, room: Room) -> String {
    let mut text = head(&detail.job, moments, room);
    for (name, payload, empty) in [("args", &detail.args, "[]"), ("kwargs", &detail.kwargs, "{}")] {
        if payload.as_str() != empty {
            text.push_str(&format!("\n{name}:\n{}", indent(&json(payload), "  ")));
        }
    }
    if !detail.results.is_empty() {
        text.push_str(&format!("\nresults:\n{}", indent(&results(&detail.results), "  ")));
    }
    if let Some(events) = events {
        text.push_str("\nevents:");
        for event in events {
            let at = event.created_at.map_or_else(|| "-".to_owned(), |at| moments.absolute(at));
            text.push_str(&format!("\n{}", hanging(&format!("  {at}  "), &event_line(event), room)));
        }
    }
    text
}

/// The fields of a job that say something, a line each.
fn head(job: &Job, moments: &Moments, room: Room) -> String {
    let at = |instant: Option<_>| instant.map(|at| moments.show(at));
    let some = |text: &str| Some(plain(text));
    let names = |names: Vec<&str>| (!names.is_empty()).then(|| plain(&names.join(", ")));
    let fields = [
        ("job", some(job.uuid.as_str())),
        ("service", some(&job.service)),
        ("task", some(&job.task)),
        ("status", Some(of_status(job.status).on(Stream::Stdout, job.status).to_string())),
        ("workers", Some(target(job))),
        ("sent to", names(job.workers_dispatched.iter().map(String::as_str).collect())),
        ("stored by", names(job.workers_started.iter().map(String::as_str).collect())),
        ("answered by", names(job.workers_completed.iter().map(String::as_str).collect())),
        ("waiting for an answer", names(job.pending_inputs.keys().map(String::as_str).collect())),
        ("schedule", job.schedule_id.as_ref().and_then(|id| some(id.as_str()))),
        ("added", at(job.created_at)),
        ("scheduled for", at(job.scheduled_for)),
        ("start deadline", at(job.start_deadline)),
        ("released", at(job.released_at)),
        ("started", at(job.started_at)),
        ("ended", at(job.finished_at)),
        ("deadline", at(job.deadline)),
        ("timeout", Some(format!("{} s", job.timeout))),
        ("sent", (job.posts_sent > 0).then(|| times(job.posts_sent))),
        ("refused", (job.posts_refused > 0).then(|| times(job.posts_refused))),
    ];
    let errors = job.errors.iter().map(|error| ("error", plain(error)));
    let said = fields.into_iter().filter_map(|(name, text)| Some((name, text?)));
    super::pretty::fields(&said.chain(errors).collect::<Vec<_>>(), room)
}

/// What each worker answered.
#[must_use]
pub(crate) fn results(results: &Results) -> String {
    results.iter().map(|(worker, raw)| result(worker, raw)).collect::<Vec<_>>().join("\n")
}

fn result(worker: &str, raw: &Json) -> String {
    let Ok(answer) = WorkerResult::read(raw) else {
        return format!("{}:\n{}", plain(worker), indent(&json(raw), "  "));
    };
    let tint = if answer.failed { Tint::Bad } else { Tint::Good };
    let word = answer.status.unwrap_or_else(|| if answer.failed { "failed" } else { "completed" }.to_owned());
    let mut text = format!("{}: {}", plain(worker), tint.on(Stream::Stdout, plain(&word)));
    let told = answer.errors.iter().chain(&answer.messages);
    for line in told {
        text.push_str(&format!("\n{}", indent(&plain(line), "  ")));
    }
    if answer.result.as_str() != "null" {
        text.push_str(&format!("\n{}", indent(&json(&answer.result), "  ")));
    }
    text
}

/// The new status of a job, and what there is to say of it.
#[must_use]
pub(crate) fn status_line(job: &Job, moments: &Moments, stream: Stream) -> String {
    let about = match job.status {
        JobStatus::Scheduled => job.scheduled_for.map(|at| format!("starts at {}", moments.show(at))),
        JobStatus::Submitting | JobStatus::Dispatched => Some(format!("to {}", target(job))),
        JobStatus::WaitingClientInput => {
            let asking: Vec<_> = job.pending_inputs.keys().map(String::as_str).collect();
            Some(format!("for {}", plain(&asking.join(", "))))
        }
        JobStatus::Missed => job.start_deadline.map(|at| format!("it had to start by {}", moments.absolute(at))),
        _ => None,
    };
    let status = of_status(job.status).on(stream, job.status);
    about.map_or_else(|| status.to_string(), |about| format!("{status} {about}"))
}

/// An event of a job.
#[must_use]
pub(crate) fn event_line(event: &JobEvent) -> String {
    #[derive(Deserialize)]
    struct Sender {
        worker: Option<String>,
    }
    let worker = event.data.to::<Sender>().ok().and_then(|sender| sender.worker);
    let severity = match event.severity.as_str() {
        "" | "INFO" => String::new(),
        other => format!("{} ", plain(other)),
    };
    let message = plain(event.message.trim_end());
    match worker {
        Some(worker) => format!("{}: {severity}{message}", plain(&worker)),
        None => format!("{severity}{message}"),
    }
}

/// The workers as asked for, and those that the broker chose.
fn target(job: &Job) -> String {
    let asked = &job.workers_requested;
    match (asked, job.workers_dispatched.as_slice()) {
        (Workers::Any, [one]) => plain(&format!("any ({one})")),
        _ => plain(&asked.to_string()),
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use norfab_client::{JobId, Limits, NewJob};
    use std::collections::BTreeMap;

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn job(change: impl FnOnce(&mut Job)) -> Job {
        let asked = NewJob { id: Some(JobId::new("a1").expect("valid")), ..NewJob::new("demo", "echo") };
        let mut job = Limits::default().check_job(T0, asked.at(T0.plus_seconds(300)).grace(60)).expect("valid").row(T0);
        change(&mut job);
        job
    }

    fn json(text: &str) -> Json {
        Json::parse(text).expect("valid")
    }

    #[track_caller]
    fn check(status: JobStatus, change: impl FnOnce(&mut Job), line: &str) {
        let job = job(|job| {
            job.status = status;
            change(job);
        });
        assert_eq!(console::strip_ansi_codes(&status_line(&job, &Moments::at(T0), Stream::Stderr)), line);
    }

    #[test]
    fn statuses_tell_what_matters() {
        check(JobStatus::Scheduled, |_| {}, "SCHEDULED starts at 2026-11-30 00:05:00Z (in 5 min)");
        check(JobStatus::New, |_| {}, "NEW");
        check(JobStatus::Dispatched, |job| job.workers_requested = Workers::One("w1".into()), "DISPATCHED to w1");
        let chosen = |job: &mut Job| {
            job.workers_requested = Workers::Any;
            job.workers_dispatched = vec!["w2".into()];
        };
        check(JobStatus::Dispatched, chosen, "DISPATCHED to any (w2)");
        check(JobStatus::Failed, |job| job.errors = vec!["told at the end".into()], "FAILED");
        let foul = |job: &mut Job| job.workers_requested = Workers::One("\u{1b}[2J".into());
        check(JobStatus::Submitting, foul, "SUBMITTING to \\u{1b}[2J");
        check(JobStatus::Missed, |_| {}, "MISSED it had to start by 2026-11-30 00:06:00Z");
        check(JobStatus::Completed, |_| {}, "COMPLETED");
    }

    #[test]
    fn a_list_has_a_line_a_job() {
        let immediate = job(|job| (job.scheduled_for, job.start_deadline) = (None, None));
        let mut page = JobPage { jobs: vec![immediate], unreadable: Vec::new(), next: None };
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let shown = job_list(&page, &Moments::at(T0), Room::Endless);
        assert_eq!(words(&shown)[..6], words("JOB SERVICE TASK WORKERS STATUS ADDED"));
        page.jobs.push(job(|_| {}));
        let shown = job_list(&page, &Moments::at(T0), Room::Endless);
        let rows: Vec<_> = shown.lines().map(words).collect();
        assert_eq!(rows[0], words("JOB SERVICE TASK WORKERS STATUS DUE ADDED"));
        assert_eq!(rows[1], words("a1 demo echo all SCHEDULED - 2026-11-30 00:00:00Z (now)"));
        assert_eq!(
            rows[2],
            words("a1 demo echo all SCHEDULED 2026-11-30 00:05:00Z (in 5 min) 2026-11-30 00:00:00Z (now)")
        );
    }

    #[test]
    fn a_list_fits_a_terminal() {
        let full = |job: &mut Job| {
            job.uuid = JobId::new("0190b1ec000070008000000000000000").expect("valid");
            job.status = JobStatus::Completed;
            job.workers_requested = Workers::List(vec!["core-1".into(), "core-2".into(), "core-3".into()]);
            job.created_at = Some(Timestamp::from_seconds(T0.as_micros() / 1_000_000 - 12_345));
        };
        let mut page = JobPage { jobs: vec![job(full)], unreadable: Vec::new(), next: None };
        let list = |page: &JobPage, columns: usize| {
            let shown = job_list(page, &Moments::at(T0), Room::Characters(columns));
            let shown = console::strip_ansi_codes(&shown).into_owned();
            assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
            shown.lines().last().expect("a line").to_owned()
        };
        let uuid = page.jobs[0].uuid.clone();
        assert_eq!(list(&page, 80), format!("{uuid}  demo     echo  core-1, c…  COMPLETED  in 5 min"));
        assert_eq!(list(&page, 70), format!("{uuid}  demo     echo  COMPLETED  in 5 min"));
        assert_eq!(list(&page, 60), format!("{uuid}  demo     echo  COMPLETED"));
        assert_eq!(list(&page, 45), format!("{uuid}  COMPLETED"));
        page.jobs[0].scheduled_for = None;
        assert_eq!(list(&page, 80), format!("{uuid}  demo     echo  core-1, co…  COMPLETED  3 h ago"));
    }

    #[test]
    fn results_of_any_shape() {
        let results: Results = BTreeMap::from([
            ("w1".to_owned(), json(r#"{"result": "up\ndown", "failed": false, "status": "completed"}"#)),
            (
                "w2".to_owned(),
                json(r#"{"result": null, "failed": true, "errors": ["timed out"], "messages": ["sorry"]}"#),
            ),
            ("w3".to_owned(), json(r#"["no result"]"#)),
        ]);
        let shown = super::results(&results);
        assert_eq!(
            console::strip_ansi_codes(&shown),
            "w1: completed\n  up\n  down\nw2: failed\n  timed out\n  sorry\nw3:\n  [\n    \"no result\"\n  ]"
        );
    }

    #[test]
    fn all_of_a_job() {
        let job = job(|job| {
            job.errors = vec!["worker \"w9\" is not registered".into()];
            job.posts_sent = 1;
        });
        let shown = JobDetail { job, args: json("[]"), kwargs: json(r#"{"n":1}"#), results: Results::new() };
        let event = JobEvent {
            id: 1,
            job_uuid: JobId::new("a1").expect("valid"),
            message: "step 1\n".into(),
            severity: "WARNING".into(),
            task: None,
            data: json(r#"{"worker": "w1"}"#),
            created_at: Some(T0),
        };
        let shown = detail(&shown, Some(&[event]), &Moments::at(T0), Room::Endless);
        let shown = console::strip_ansi_codes(&shown);
        for line in [
            "start deadline  2026-11-30 00:06:00Z (in 6 min)",
            "sent            once",
            "error           worker \"w9\" is not registered",
            "  \"n\": 1",
            "  2026-11-30 00:00:00Z  w1: WARNING step 1",
        ] {
            assert!(shown.lines().any(|there| there == line || there == format!("  {line}")), "{line}: {shown}");
        }
        assert!(!shown.contains("args:\n  []") && !shown.contains("released"), "{shown}");
    }
}
