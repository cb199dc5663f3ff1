//! Each limit at its edge, and what the error says.

use super::*;
use serde_json::json;

const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);

fn job() -> NewJob {
    NewJob::new("nornir", "cli")
}

#[track_caller]
fn accepts(job: NewJob) -> ValidJob {
    Limits::default().check_job(NOW, job).expect("accepted")
}

#[track_caller]
fn refuses(job: NewJob, part: &str) {
    let error = Limits::default().check_job(NOW, job).expect_err(part).to_string();
    assert!(error.contains(part), "{error}");
}

fn list(names: &[&str]) -> Workers {
    Workers::List(names.iter().map(|name| (*name).to_owned()).collect())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(NOW.as_micros() / 1_000_000 + seconds)
}

#[test]
fn names() {
    accepts(NewJob::new("日本語-🚀", "a/b.c?d#e"));
    accepts(NewJob::new("x".repeat(255), " leading"));
    refuses(NewJob::new("", "cli"), "service must have 1 to 255 bytes");
    refuses(NewJob::new("nornir", "x".repeat(256)), "task must have");
    refuses(NewJob::new("nornir", "a\nb"), "no control characters");
}

#[test]
fn workers() {
    accepts(job().workers(list(&["w1", "w2"])));
    accepts(job().workers(Workers::Any));
    refuses(job().workers(list(&[])), "empty list");
    refuses(job().workers(list(&["w1", "w2", "w1"])), "\"w1\" twice");
    refuses(job().workers(Workers::One(String::new())), "workers must have");
}

#[test]
fn payloads() {
    accepts(job().args(json!([1])).kwargs(json!({"commands": ["show clock"]})));
    refuses(job().args(json!({})), "args must be a JSON array");
    refuses(job().kwargs(json!(["secret"])), "kwargs must be a JSON object");
    refuses(NewJob { args: Json::parse("[1e400]").expect("JSON"), ..job() }, "args cannot be sent");
    refuses(job().kwargs(json!({"x": "y".repeat(17 << 20)})), "kwargs has 17825800 bytes");
}

#[test]
fn seconds() {
    accepts(job().timeout(1));
    accepts(job().timeout(604_800));
    refuses(job().timeout(0), "timeout must be 1 to 604800 whole seconds, but it is 0");
    refuses(job().timeout(604_801), "but it is 604801");
    accepts(job().at(at(60)).grace(31_536_000));
    refuses(job().at(at(60)).grace(0), "misfire_grace_seconds must be");
    refuses(job().at(at(60)).grace(u64::MAX), "misfire_grace_seconds must be");
}

#[test]
fn times() {
    accepts(job().at(at(9 * 366 * 86_400)));
    accepts(job().at(at(-86_400)));
    accepts(job().at(at(-60)).grace(60));
    refuses(job().at(at(11 * 366 * 86_400)), "more than 3653 days ahead");
    refuses(job().at(at(-86_401)), "more than 24 hours in the past");
    refuses(job().at(at(-61)).grace(60), "could only be missed");
    refuses(job().at(Timestamp::from_seconds(179_599_680_000)), "ahead");
}

#[test]
fn milliseconds_for_seconds_shows_both_readings() {
    let given = Timestamp::from_micros(NOW.as_micros().saturating_mul(100));
    let early = Timestamp::from_micros(given.as_micros() / 1000);
    let limits = Limits { behind: Duration::from_secs(100 * 366 * DAY), ..Limits::default() };
    let error = limits.check_job(NOW, job().at(given)).expect_err("too far").to_string();
    assert!(error.contains(&given.to_string()) && error.contains(&early.to_string()), "{error}");
}

#[test]
fn forbidden_tasks() {
    let limits = Limits { forbidden_tasks: vec!["nornir:cfg".into(), "*:reload".into()], ..Limits::default() };
    assert!(limits.check_job(NOW, job()).is_ok());
    for (service, task) in [("nornir", "cfg"), ("other", "reload")] {
        let error = limits.check_job(NOW, NewJob::new(service, task)).expect_err("forbidden").to_string();
        assert!(error.contains("forbidden_tasks"), "{error}");
    }
}

#[test]
fn rows() {
    let now = accepts(job()).row(NOW);
    assert_eq!((now.status, now.deadline, now.released_at), (crate::JobStatus::New, Some(at(600)), Some(NOW)));
    let later = accepts(job().at(at(60)).grace(5)).row(NOW);
    assert_eq!((later.status, later.deadline, later.released_at), (crate::JobStatus::Scheduled, None, None));
    assert_eq!((later.scheduled_for, later.start_deadline), (Some(at(60)), Some(at(65))));
}
