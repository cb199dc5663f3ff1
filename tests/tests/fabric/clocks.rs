//! Rules by the clocks of zones, carried out by `norfab run` on the real NorFab: what the workers executed is held against a
//! walk over the seconds that uses nothing of ours.

use std::collections::BTreeMap;
use std::time::Duration;

use norfab_client::{Client, JobId, ScheduleKey, ScheduleState, Timestamp};
use norfab_tests::{Peer, Program, Security};

use crate::audit::{all_completed, all_in_order, counters, jobs_of, schedule_id};
use crate::common::{fabric_and_program, now};

with_curve_and_without!(the_workers_execute_each_instant_once);

/// The same for longer: `NORFAB_CLOCKS_SECONDS`, three minutes unless it is given. Prints what it found.
mod for_minutes {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "takes minutes; the short one is of the same kind"]
    async fn curve() {
        super::check(norfab_tests::Security::Curve, super::asked_for()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "takes minutes; the short one is of the same kind"]
    async fn plain() {
        super::check(norfab_tests::Security::Plain, super::asked_for()).await;
    }
}

async fn the_workers_execute_each_instant_once(security: Security) {
    check(security, 12).await;
}

fn asked_for() -> u32 {
    match std::env::var("NORFAB_CLOCKS_SECONDS") {
        Ok(seconds) => seconds.parse().expect("NORFAB_CLOCKS_SECONDS is a number of seconds"),
        Err(_) => 180,
    }
}

/// A rule as a person types it, and the seconds since 1970 that it means.
struct Rule {
    name: &'static str,
    line: Vec<String>,
    instants: Vec<i64>,
}

impl Rule {
    fn new(name: &'static str, line: &[&str], zone: &str, instants: impl Iterator<Item = i64>) -> Self {
        let line = line.iter().chain(&["--timezone", zone]).map(ToString::to_string).collect();
        Self { name, line, instants: instants.collect() }
    }

    /// Every day at the time that the clocks of a zone, always so many seconds ahead of UTC, show at an instant.
    fn daily(name: &'static str, zone: &str, ahead: i64, instant: i64) -> Self {
        let clock = (instant + ahead).rem_euclid(86_400);
        let time = format!("{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60);
        Self::new(name, &["--daily", &time], zone, std::iter::once(instant))
    }
}

/// The rules, with what each means between two seconds, both included; those that mean nothing are left out.
fn rules(from: i64, to: i64) -> Vec<Rule> {
    let every = |seconds: i64| (from..=to).filter(move |at| at % seconds == 0);
    let cron = |expression| ["--cron", expression];
    let mut rules = vec![
        Rule::new("five", &["--cron", "*/5 * * * * *", "--seconds"], "Asia/Kolkata", every(5)),
        Rule::new("minute", &cron("*/1 * * * *"), "Europe/Berlin", every(60)),
        Rule::daily("kathmandu", "Asia/Kathmandu", 5 * 3600 + 45 * 60, from + (to - from) / 3),
        Rule::daily("phoenix", "America/Phoenix", -7 * 3600, from + (to - from) * 2 / 3),
    ];
    rules.retain(|rule| !rule.instants.is_empty());
    rules
}

async fn check(security: Security, seconds: u32) {
    let Some((peer, program, client)) = fabric_and_program(security, 2).await else { return };
    let owner = program.start_owner().await;
    let start = now().ceil_second().plus_seconds(5);
    let end = start.plus_seconds(seconds);
    let whole = |at: Timestamp| at.as_micros() / 1_000_000;
    let rules = rules(whole(start), whole(end));
    let mut keys = Vec::new();
    for rule in &rules {
        keys.push(create(&program, rule, start, end).await);
    }
    let patience = end.since(now()) + Duration::from_secs(60);
    tokio::time::timeout(patience, until_completed(&client, &keys)).await.expect("they come to their end");
    let mut expected = 0;
    for (rule, key) in rules.iter().zip(&keys) {
        executed_once(&peer, &client, rule, key).await;
        expected += rule.instants.len() * 2;
    }
    assert_eq!(peer.executions().len(), expected, "nothing else was executed");
    owner.stop().await;
    client.shutdown().await;
}

/// Creates a schedule by the program; nothing of it may be coalesced or skipped.
async fn create(program: &Program, rule: &Rule, start: Timestamp, end: Timestamp) -> ScheduleKey {
    let (start, end) = (start.to_string(), end.to_string());
    let mut line = vec!["schedule", "create", rule.name, "dummy", "count", "--workers", "all", "--json"];
    line.extend(["--coalesce", "all", "--overlap", "ALLOW", "--max-instances", "100"]);
    line.extend(["--start-at", &start, "--end-at", &end]);
    line.extend(rule.line.iter().map(String::as_str));
    let created = program.run(&line).await;
    assert_eq!(created.code, Some(0), "{created:?}");
    let uuid = created.json()["uuid"].as_str().expect("a UUID").to_owned();
    ScheduleKey::parse(&uuid)
}

async fn until_completed(client: &Client, keys: &[ScheduleKey]) {
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    loop {
        looks.tick().await;
        let mut open = 0;
        for key in keys {
            let view = client.get_job_schedule(key).await.expect("there").view;
            open += u64::from(view.schedule.state != ScheduleState::Completed) + view.active_jobs;
        }
        if open == 0 {
            return;
        }
    }
}

/// Each instant that the rule means was executed once by each of the two workers, not before it, and nothing else of this
/// schedule was. Tells how late.
async fn executed_once(peer: &Peer, client: &Client, rule: &Rule, key: &ScheduleKey) {
    let ids: Vec<JobId> = jobs_of(client, key).await.iter().map(|job| job.uuid.clone()).collect();
    let schedule = schedule_id(key);
    let of = |at: &i64| JobId::of_occurrence(&schedule, Timestamp::from_seconds(*at));
    assert_eq!(ids, rule.instants.iter().map(of).collect::<Vec<_>>(), "{}", rule.name);
    all_completed(&all_in_order(peer, client, &ids).await);
    let mut runs: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
    for run in peer.executions() {
        runs.entry(run.juuid).or_default().push((run.worker, run.time));
    }
    let mut lateness = Vec::new();
    for at in &rule.instants {
        let mut ran = runs.remove(of(at).as_str()).unwrap_or_default();
        ran.sort_by(|(one, _), (other, _)| one.cmp(other));
        let workers: Vec<&str> = ran.iter().map(|(worker, _)| worker.as_str()).collect();
        assert_eq!(workers, ["dummy-worker-1", "dummy-worker-2"], "{} at {at}: {ran:?}", rule.name);
        lateness.extend(ran.iter().map(|(_, time)| *time - *at as f64));
    }
    lateness.sort_by(f64::total_cmp);
    assert!(lateness[0] >= 0.0, "{} ran {} s early", rule.name, -lateness[0]);
    let counted = counters(client, key).await;
    assert_eq!(counted.total_runs, rule.instants.len() as u64, "{counted:?}");
    let (median, most) = (lateness[lateness.len() / 2], lateness[lateness.len() - 1]);
    println!(
        "{}: {} instants, {} executions by two workers, none missing, none twice; late by {:.1} ms at least, {:.1} ms at \
         the median, {:.1} ms at the most",
        rule.name,
        rule.instants.len(),
        lateness.len(),
        lateness[0] * 1e3,
        median * 1e3,
        most * 1e3
    );
}
