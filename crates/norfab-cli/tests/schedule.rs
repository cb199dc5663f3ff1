//! `norfab schedule`: from creation to deletion, what is refused, and the jobs that `norfab run` makes.

mod common;

use common::Site;
use norfab_client::{Clock, SystemClock};
use serde_json::{Value, json};

const CREATE: [&str; 8] = ["--json", "schedule", "create", "clock", "demo", "echo", "--timeout", "30"];

impl Site {
    /// A paused or active schedule named `clock`, as its creation tells of it.
    async fn clock(&self, options: &[&str]) -> Value {
        self.run(&[&CREATE[..], options].concat()).await.exits(0).json()
    }

    /// What a command tells in JSON.
    async fn told(&self, line: &[&str]) -> Value {
        self.run(&[&["--json", "schedule"], line].concat()).await.exits(0).json()
    }
}

#[tokio::test]
async fn created_and_shown() {
    let site = Site::start().await;
    let options = ["--every", "5m", "--timezone", "Europe/Berlin", "--start-at", "2026-01-01T00:00:00Z", "-k", "n=1"];
    let policies =
        ["--coalesce", "ALL", "--overlap", "allow", "--max-instances", "3", "--grace", "2m", "--jitter", "9"];
    let created = site.clock(&[&options[..], &policies].concat()).await;
    for (column, value) in [
        ("name", json!("clock")),
        ("service", json!("demo")),
        ("trigger_type", json!("interval")),
        ("trigger_config", json!({"seconds": 300, "mode": "fixed_rate"})),
        ("timezone", json!("Europe/Berlin")),
        ("coalesce", json!("all")),
        ("overlap_policy", json!("ALLOW")),
        ("max_instances", json!(3)),
        ("misfire_grace_seconds", json!(120)),
        ("jitter_seconds", json!(9)),
        ("timeout", json!(30)),
        ("state", json!("ACTIVE")),
        ("revision", json!(1)),
        ("warnings", json!([])),
    ] {
        assert_eq!(created[column], value, "{column}: {created}");
    }
    assert_eq!(created["occurrences"].as_array().map(Vec::len), Some(5));
    assert_eq!(created["occurrences"][0], json!({"at": created["next_run_at"], "due": created["next_due_at"]}));
    let uuid = created["uuid"].as_str().expect("text");
    for key in ["clock", uuid] {
        let shown = site.told(&["show", key]).await;
        assert_eq!((&shown["uuid"], &shown["kwargs"]), (&created["uuid"], &json!({"n": 1})), "{shown}");
        assert_eq!((&shown["args"], &shown["active_jobs"]), (&json!([]), &json!(0)), "{shown}");
    }
    let shown = site.run(&["schedule", "show", "clock"]).await;
    for part in ["Europe/Berlin", "rule ", "every 5m", "ALLOW, 3 at a time", "120 s", "locally", "(in ", "\"n\": 1"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let listed = site.told(&["list", "--state", "active", "--service", "demo"]).await;
    assert_eq!(listed["schedules"][0]["uuid"], created["uuid"], "{listed}");
    let listed = site.run(&["schedule", "list"]).await;
    let mut lines = listed.exits(0).stdout.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("NAME") && line.ends_with("SKIPPED")), "{listed:?}");
    assert!(lines.next().is_some_and(|line| line.starts_with("clock") && line.contains("in ")), "{listed:?}");
    assert_eq!(site.told(&["list", "--state", "paused"]).await["schedules"], json!([]));
}

#[tokio::test]
async fn creation_tells_a_person_what_comes_and_warns() {
    let site = Site::start().await;
    let line = ["schedule", "create", "clock", "demo", "echo", "--every", "1m", "--coalesce", "all", "--grace", "5"];
    let ended = site.run(&[&line[..], &["--timezone", "Asia/Kolkata"]].concat()).await;
    ended.exits(0);
    let instants = ended.stdout.lines().filter(|line| line.contains("+05:30") && line.starts_with("20")).count();
    assert_eq!(instants, 5, "{ended:?}");
    assert!(ended.stdout.contains("UTC") && ended.stdout.contains("in 1 min"), "{ended:?}");
    for part in ["coalesce \"all\" with FORBID", "less than the 60 s", "shorter than the timeout", "`norfab run`"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
}

#[tokio::test]
async fn previewed() {
    let site = Site::start().await;
    // A rule needs no database, and makes none.
    let rule = ["preview", "--every", "1w", "--start-at", "2026-01-01T00:00:00Z", "--from", "2026-01-01T00:00:00Z"];
    let shown = site.told(&[&rule[..], &["-n", "2"]].concat()).await;
    let occurrences = json!([{"at": "2026-01-08T00:00:00Z"}, {"at": "2026-01-15T00:00:00Z"}]);
    assert_eq!(shown, json!({"in_words": "every 1w", "warnings": [], "occurrences": occurrences}));
    // Asked for the past, it is as if it had been created then.
    let rule = ["preview", "--every", "1h", "--end-at", "2026-01-01T02:00:00Z", "--from", "2026-01-01T00:30:00Z"];
    let shown = site.told(&rule).await;
    assert_eq!(shown["occurrences"], json!([{"at": "2026-01-01T01:30:00Z"}]));
    assert_eq!(std::fs::read_dir(site.folder.path()).expect("reads").count(), 0);
    site.run(&["schedule", "preview", "clock"]).await.fails(4, "there is no job database");
    let created = site.clock(&["--every", "5m"]).await;
    let shown = site.told(&["preview", "clock", "--from", created["created_at"].as_str().expect("text")]).await;
    assert_eq!(shown["occurrences"], created["occurrences"]);
    // Nothing ran before its creation.
    let shown = site.told(&["preview", "clock", "--from", "2026-01-01T00:00:00Z"]).await;
    assert_eq!(shown["occurrences"], created["occurrences"]);
    site.told(&["update", "clock", "--every", "7m"]).await;
    let (shown, updated) =
        (site.told(&["preview", "clock", "--from", "2026-01-01T00:00:00Z"]).await, site.told(&["show", "clock"]).await);
    assert_eq!(shown["occurrences"][0]["at"], updated["next_run_at"]);
    site.run(&["schedule", "preview", "clock", "--jitter", "5"]).await.fails(2, "--every");
    site.run(&["schedule", "preview"]).await.exits(2);
    site.run(&["schedule", "preview", "clock", "--every", "5m"]).await.exits(2);
}

#[tokio::test]
async fn paused_resumed_switched_off_and_deleted() {
    let site = Site::start().await;
    let created = site.clock(&["--every", "5m", "--paused"]).await;
    assert_eq!(created["state"], "PAUSED");
    for (call, state) in [
        ("resume", "ACTIVE"),
        ("resume", "ACTIVE"),
        ("pause", "PAUSED"),
        ("pause", "PAUSED"),
        ("disable", "DISABLED"),
        ("resume", "ACTIVE"),
    ] {
        let managed = site.told(&[call, "clock"]).await;
        assert_eq!((&managed["state"], &managed["uuid"]), (&json!(state), &created["uuid"]), "{call}");
        assert_eq!(site.told(&["show", "clock"]).await["state"], state, "{call}");
    }
    site.told(&["disable", "clock"]).await;
    site.run(&["schedule", "pause", "clock"]).await.fails(3, "is DISABLED and cannot be paused; resume it first");
    site.run(&["schedule", "run-now", "clock"]).await.fails(3, "cannot be run");
    let deleted = site.told(&["delete", "clock"]).await;
    assert!(deleted["deleted_at"].is_string(), "{deleted}");
    assert_eq!(site.told(&["list"]).await["schedules"], json!([]));
    site.run(&["schedule", "show", "clock"]).await.fails(4, "there is no schedule \"clock\"");
    let uuid = created["uuid"].as_str().expect("text");
    assert_eq!(site.told(&["show", uuid]).await["deleted_at"], deleted["deleted_at"]);
    site.run(&["--json", "schedule", "resume", uuid]).await.fails_in_json(4, "not_found", "was deleted at");
    let history = site.told(&["list", "--deleted"]).await;
    assert_eq!(history["schedules"][0]["uuid"], created["uuid"], "{history}");
    let listed = site.run(&["schedule", "list", "--deleted"]).await;
    assert!(listed.stdout.contains(uuid) && listed.stdout.contains("demo:echo"), "{listed:?}");
    let jobs = site.run(&["job", "list", "--schedule", "clock"]).await;
    jobs.fails(4, "there is no schedule \"clock\"").fails(4, "norfab schedule list --deleted");
    site.run(&["job", "list", "--schedule", uuid]).await.exits(0);
    // The name is free.
    assert_ne!(site.clock(&["--every", "1h"]).await["uuid"], created["uuid"]);
    let deleted = site.run(&["schedule", "delete", "clock"]).await;
    assert!(deleted.exits(0).stderr.contains("norfab job list --schedule "), "{deleted:?}");
}

#[tokio::test]
async fn updated() {
    let site = Site::start().await;
    site.clock(&["--every", "5m", "--grace", "2m", "--jitter", "5", "-k", "n=1"]).await;
    let changes = ["--every", "10m", "--grace", "none", "--jitter", "none", "--workers", "any", "-k", "n=2"];
    let updated = site.told(&[&["update", "clock", "--revision", "1"], &changes[..]].concat()).await;
    for (column, value) in [
        ("trigger_config", json!({"seconds": 600, "mode": "fixed_rate"})),
        ("misfire_grace_seconds", json!(null)),
        ("jitter_seconds", json!(0)),
        ("timeout", json!(30)),
        ("revision", json!(2)),
    ] {
        assert_eq!(updated[column], value, "{column}: {updated}");
    }
    assert_eq!(site.told(&["show", "clock"]).await["kwargs"], json!({"n": 2}));
    let stale = site.run(&["schedule", "update", "clock", "--timeout", "5m", "--revision", "1"]).await;
    stale.fails(3, "is at revision 2, not 1");
    let end = SystemClock.now().plus_seconds(86_400).to_string();
    site.told(&["update", "clock", "--end-at", &end, "--name", "watch"]).await;
    assert!(site.told(&["show", "watch"]).await["end_at"].is_string());
    let updated = site.told(&["update", "watch", "--end-at", "none", "--no-name"]).await;
    assert_eq!((&updated["end_at"], &updated["name"]), (&json!(null), &json!(null)), "{updated}");
    let uuid = updated["uuid"].as_str().expect("text");
    site.run(&["schedule", "update", uuid]).await.fails(2, "nothing is to be changed");
    site.run(&["schedule", "update", uuid, "--jitter", "10m"]).await.fails(2, "must be smaller than the interval");
    site.run(&["schedule", "update", "nobody", "--every", "1m"]).await.fails(4, "there is no schedule \"nobody\"");
}

#[tokio::test]
async fn a_taken_name_comes_with_who_has_it() {
    let site = Site::start().await;
    let first = site.clock(&["--every", "5m"]).await;
    let second = site.run(&[&CREATE[..], &["--every", "9m"]].concat()).await;
    second.fails_in_json(3, "conflict", "a schedule named \"clock\" exists already");
    let existing = &second.json()["schedule"];
    assert_eq!((&existing["uuid"], &existing["trigger_config"]), (&first["uuid"], &first["trigger_config"]));
    site.run(&["schedule", "create", "clock", "demo", "echo", "--every", "9m"]).await.fails(3, "choose another name");
}

#[tokio::test]
async fn bad_input() {
    let site = Site::start().await;
    for (options, part) in [
        (&["--every", "0"][..], "must be 1 to"),
        (&["--every", "-5"], "but it is -5"),
        (&["--every", "-5m"], "is not an interval"),
        (&["--every", "0.5"], "whole seconds, but it is 0.5"),
        (&["--every", "x"], "\"x\" is not an interval"),
        (&["--every", "1000w"], "must be 1 to"),
        (&["--every", "5m", "--timezone", "Europe/Berln"], "did you mean Europe/Berlin?"),
        (&["--every", "5m", "--timezone", "+02:00"], "is an offset, not a time zone"),
        (&["--every", "5m", "--coalesce", "newest"], "is not a coalesce policy"),
        (&["--every", "5m", "--overlap", "QUEUE"], "is not an overlap policy"),
        (&["--every", "5m", "--max-instances", "0"], "max_instances must be 1 to"),
        (&["--every", "5m", "--grace", "0"], "misfire_grace_seconds must be 1 to"),
        (&["--every", "5m", "--jitter", "300"], "must be smaller than the interval"),
        (&["--every", "5m", "--start-at", "2027-01-01T00:00:00"], "2027-01-01T00:00:00Z"),
        (&["--every", "5m", "--end-at", "2020-01-01T00:00:00Z"], "nothing is to come"),
        (&[], "--every"),
        (&["--every", "5m", "--daily", "03:00"], "cannot be used with"),
        (&["--daily", "03:00", "--cron", "0 3 * * *"], "cannot be used with"),
        (&["--every", "5m", "--seconds"], "--cron"),
        (&["--cron", "0 3 * * *", "--timezone", "CST"], "\"CST\" is an abbreviation"),
        (&["--cron", "0 3 * * *", "--timezone", "+05:30"], "is an offset, not a time zone"),
        (&["--cron", "0 3 * * *", "--timezone", "America/New_Yrok"], "did you mean America/New_York?"),
        (&["--cron", "0 3 * * *", "--timezone", ""], "time zone \"\" is unknown"),
        (&["--daily", "24:00"], "a time of day such as 03:00"),
        (&["--daily", "3"], "a time of day such as 03:00"),
        (&["--weekly", "03:00"], "such as mon,thu@03:00"),
        (&["--weekly", "mo@03:00"], "such as mon,thu@03:00 or mon-fri@03:00"),
        (&["--weekly", "mon-@03:00"], "such as mon,thu@03:00"),
        (&["--weekly", "@03:00"], "such as mon,thu@03:00"),
        (&["--monthly", "32@03:00"], "the day of the month must be 1 to 31, but it is 32"),
        (&["--daily", "03:00", "--step", "0"], "a calendar interval must be of 1 to 3653 days, but it is of 0"),
        (&["--monthly", "1@03:00", "--step", "121"], "of 1 to 120 months, but it is of 121"),
        (&["--daily", "03:00", "--step", "-1"], "--step"),
        (&["--every", "5m", "--step", "2"], "--step belongs to --daily, --weekly or --monthly"),
        (&["--cron", "0 3 * * *", "--step", "2"], "--step belongs to --daily"),
        (&["--trigger", "5m"], "--trigger is not valid JSON"),
        (&["--trigger", "{}"], "--trigger cannot be used: {} is not a trigger"),
        (&["--trigger", "5"], "--trigger cannot be used: 5 is not a trigger"),
        (&["--trigger", r#"{"type":"solar"}"#], "the trigger type \"solar\" is unknown"),
        (&["--trigger", r#"{"type":"cron","expression":"0 3 * *"}"#], "has 4 fields"),
        (&["--trigger", r#"{"type":"interval","seconds":5,"seconds":6}"#], "has an object with the same key twice"),
        (&["--trigger", r#"{"type":"interval","seconds":300}"#, "--every", "5m"], "cannot be used with"),
        (&["--trigger", r#"{"type":"interval","seconds":300}"#, "--seconds"], "--seconds belongs to --cron"),
        (&["--trigger", "@no/such/file"], "cannot read the value of --trigger from no/such/file"),
        (&["--trigger", "-", "--kwargs", "-"], "standard input can give one value only"),
        (&["--cron", "0 3 * * *", "--timezone", "pst"], "name a zone such as America/Los_Angeles"),
        (&["--monthly", "-1@03:00"], "such as 31@03:00"),
    ] {
        let line = [&["schedule", "create", "clock", "demo", "echo"], options].concat();
        let human = site.run(&line).await;
        assert!(human.code == Some(2) && human.stderr.contains(part), "{options:?}: {human:?}");
        site.run(&[&line[..], &["--json"]].concat()).await.fails_in_json(2, "usage", part);
    }
    for (name, part) in [
        ("", "name must have 1 to 255 bytes"),
        ("a\nb", "no control characters"),
        ("0190b1ec-0000-7000-8000-000000000000", "name looks like a UUID"),
    ] {
        site.run(&["schedule", "create", name, "demo", "echo", "--every", "5m"]).await.fails(2, part);
    }
    // Nothing was made of any of it.
    assert!(!site.database().exists());
}

/// Each names the expression, or the field of it.
#[tokio::test]
async fn bad_expressions() {
    let site = Site::start().await;
    let long = "0 3 * * *,".repeat(10_000);
    for (expression, part) in [
        ("", "has 0 fields; it needs five"),
        ("0 3 * *", "has 4 fields; it needs five"),
        ("0 0 3 * * *", "has 6 fields; it needs five"),
        ("0 0 0 3 * * *", "has 7 fields"),
        ("60 3 * * *", "the minute field \"60\""),
        ("0 24 * * *", "the hour field \"24\""),
        ("0 3 0 * *", "the day of month field \"0\""),
        ("0 3 * 13 *", "the month field \"13\""),
        ("0 3 * * 8", "the day of week field \"8\""),
        ("30-10 3 * * *", "the minute field \"30-10\""),
        ("*/0 3 * * *", "the minute field \"*/0\""),
        ("0-100000000 3 * * *", "the minute field \"0-100000000\""),
        ("-1 3 * * *", "the minute field \"-1\""),
        ("a 3 * * *", "the minute field \"a\""),
        ("0 3 * * mon,", "the day of week field"),
        ("*,5 3 * * *", "* stands alone"),
        ("0 3 1WW * *", "the day of month field \"1WW\""),
        ("0 3 * * 5LL", "the day of week field \"5LL\""),
        ("@never", "\"@never\" is no cron expression"),
        ("0 0 31 2 *", "\"0 0 31 2 *\" never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        (&long, "has 100000 bytes, more than the limit of 1000"),
    ] {
        let line = ["schedule", "create", "clock", "demo", "echo", "--cron", expression];
        let human = site.run(&line).await;
        assert!(human.code == Some(2) && human.stderr.contains(part), "{expression:.60?}: {human:?}");
        assert!(human.stderr.contains("cron"), "{human:?}");
        site.run(&[&line[..], &["--json"]].concat()).await.fails_in_json(2, "usage", part);
    }
    let five = ["schedule", "preview", "--cron", "0 3 * * *", "--seconds"];
    site.run(&five).await.fails(2, "has 5 fields; with seconds it needs six");
    assert!(!site.database().exists());
}

#[tokio::test]
async fn rules_by_the_clock() {
    let site = Site::start().await;
    let zone = ["--timezone", "Europe/Berlin"];
    for (rule, kind, config, short, words) in [
        (
            &["--cron", "30 6 * * mon-fri"][..],
            "cron",
            json!({"expression": "30 6 * * mon-fri", "seconds": false, "version": 1}),
            "30 6 * * mon-fri",
            "06:30",
        ),
        (
            &["--cron", "*/5 * * * * *", "--seconds"],
            "cron",
            json!({"expression": "*/5 * * * * *", "seconds": true, "version": 1}),
            "*/5 * * * * *",
            "every 5 seconds",
        ),
        (
            &["--daily", "3:00"],
            "calendar",
            json!({"every": 1, "unit": "day", "at": "03:00", "version": 1}),
            "day@03:00",
            "at 03:00 every day",
        ),
        (
            &["--weekly", "thu,MON@03:00"],
            "calendar",
            json!({"every": 1, "unit": "week", "at": "03:00", "weekdays": ["mon", "thu"], "version": 1}),
            "mon,thu@03:00",
            "on Mondays and Thursdays at 03:00",
        ),
        (
            &["--monthly", "31@03:00"],
            "calendar",
            json!({"every": 1, "unit": "month", "at": "03:00", "day": 31, "version": 1}),
            "31@03:00",
            "on the 31st, or else the last day, of every month at 03:00",
        ),
        (
            &["--daily", "03:00:30", "--step", "2"],
            "calendar",
            json!({"every": 2, "unit": "day", "at": "03:00:30", "version": 1}),
            "2 days@03:00:30",
            "at 03:00:30 every 2 days",
        ),
        (
            &["--weekly", "Monday-wed@03:00", "--step", "2"],
            "calendar",
            json!({"every": 2, "unit": "week", "at": "03:00", "weekdays": ["mon", "tue", "wed"], "version": 1}),
            "2 weeks mon,tue,wed@03:00",
            "on Mondays to Wednesdays of every 2 weeks at 03:00",
        ),
        (
            &["--trigger", r#"{"type":"calendar","every":3,"unit":"month","at":"03:00","day":31}"#],
            "calendar",
            json!({"every": 3, "unit": "month", "at": "03:00", "day": 31, "version": 1}),
            "3 months 31@03:00",
            "on the 31st, or else the last day, of every 3 months at 03:00",
        ),
    ] {
        let created = site.clock(&[rule, &zone].concat()).await;
        assert_eq!((&created["trigger_type"], &created["trigger_config"]), (&json!(kind), &config), "{created}");
        assert_eq!((&created["timezone"], &created["state"]), (&json!("Europe/Berlin"), &json!("ACTIVE")));
        assert_eq!(created["occurrences"][0]["at"], created["next_run_at"]);
        let shown = site.told(&["show", "clock"]).await;
        assert_eq!((&shown["trigger_type"], &shown["trigger_config"]), (&json!(kind), &config));
        let shown = site.run(&["schedule", "show", "clock"]).await;
        assert!(shown.stdout.contains(words) && shown.stdout.contains(short), "{shown:?}");
        let listed = site.run(&["schedule", "list"]).await;
        assert!(listed.stdout.contains(short), "{listed:?}");
        // From what a preview shows of the rule comes what the schedule does.
        let from = created["created_at"].as_str().expect("a time");
        let preview = site.told(&[&["preview", "--from", from][..], rule, &zone].concat()).await;
        let at = |of: &Value| -> Vec<Value> {
            of["occurrences"].as_array().expect("instants").iter().map(|one| one["at"].clone()).collect()
        };
        assert_eq!(at(&preview), at(&created));
        site.told(&["delete", "clock"]).await;
    }
    site.clock(&["--every", "1h"]).await;
    let updated = site.told(&["update", "clock", "--daily", "03:00", "--timezone", "Asia/Tokyo"]).await;
    assert_eq!((&updated["trigger_type"], &updated["timezone"]), (&json!("calendar"), &json!("Asia/Tokyo")));
    assert!(updated["next_run_at"].as_str().is_some_and(|at| at.ends_with("T18:00:00Z")), "{updated}");
    let line = site.run(&["schedule", "update", "clock", "--daily", "04:00"]).await;
    assert!(line.exits(0).stdout.contains(" demo:echo day@04:00, next at "), "{line:?}");
    site.run(&["schedule", "update", "clock", "--cron", "0 0 30 2 *"]).await.fails(2, "never fires");
    let updated = site.told(&["update", "clock", "--every", "1h"]).await;
    assert_eq!(updated["trigger_config"], json!({"seconds": 3600, "mode": "fixed_rate"}));
}

#[tokio::test]
async fn a_preview_marks_what_a_clock_change_moved() {
    let site = Site::start().await;
    let line = ["preview", "--cron", "30 2 * * *", "--timezone", "America/New_York", "-n", "3"];
    let shown = site.told(&[&line[..], &["--from", "2025-03-08T00:00:00Z"]].concat()).await;
    let reason = "02:30 is left out when the clocks go forward from 02:00 to 03:00";
    let moved = json!({"named": "2025-03-09T02:30:00", "count": 1, "reason": reason});
    let expected = json!([
        {"at": "2025-03-08T07:30:00Z"},
        {"at": "2025-03-09T07:00:00Z", "moved": moved},
        {"at": "2025-03-10T06:30:00Z"},
    ]);
    assert_eq!(shown["occurrences"], expected);
    let human = site.run(&[&["schedule"], &line[..], &["--from", "2025-03-08T00:00:00Z"]].concat()).await;
    let lines: Vec<_> = human.exits(0).stdout.lines().skip_while(|line| !line.is_empty()).skip(1).collect();
    assert!(lines[0].ends_with("MOVED") && lines[2].ends_with(reason) && lines[3].ends_with('-'), "{human:?}");
    // What comes to a run of its own and to another one's is told too.
    let line = ["preview", "--cron", "0 1-5 * * *", "--timezone", "America/New_York", "-n", "2"];
    let shown = site.told(&[&line[..], &["--from", "2027-03-14T05:30:00Z"]].concat()).await;
    let moved = &shown["occurrences"][1]["moved"];
    assert_eq!((&moved["named"], &moved["shared"]), (&json!("2027-03-14T02:00:00"), &json!("2027-03-14T03:00:00")));
}

#[tokio::test]
async fn a_preview_of_a_rule_says_it_in_words_and_warns() {
    let site = Site::start().await;
    let line = ["preview", "--cron", "*/7 2 13 * fri", "--timezone", "Europe/Berlin", "-n", "1"];
    let human = site.run(&[&["schedule"], &line[..]].concat()).await;
    for part in ["rule ", "*/7 2 13 * fri", "in words", "on the 13th or on Fridays", "Europe/Berlin", "LOCAL"] {
        assert!(human.exits(0).stdout.contains(part), "{part}: {human:?}");
    }
    for part in ["a day need match only one of them", "the step of 7 in the minute field"] {
        assert!(human.stderr.contains(part) && !human.stdout.contains(part), "{part}: {human:?}");
    }
    let json = site.told(&line).await;
    assert!(json["in_words"].as_str().is_some_and(|words| words.starts_with("on the 13th or on Fridays")), "{json}");
    assert!(json["warnings"].to_string().contains("the step of 7 in the minute field"), "{json}");
    // What it would run is not looked at: a minute is no short interval here.
    let quiet = site.run(&["schedule", "preview", "--every", "1m"]).await;
    assert!(quiet.exits(0).stderr.is_empty() && quiet.stdout.contains("every 1m"), "{quiet:?}");
}

#[tokio::test]
async fn a_rule_stands_in_a_file() {
    let site = Site::start().await;
    let trigger = json!({"type": "calendar", "every": 2, "unit": "week", "at": "03:00", "weekdays": ["mon"]});
    let file = site.folder.path().join("rule.json");
    std::fs::write(&file, trigger.to_string()).expect("written");
    let created = site.clock(&["--trigger", &format!("@{}", file.display())]).await;
    assert_eq!((&created["trigger_type"], &created["trigger_config"]["every"]), (&json!("calendar"), &json!(2)));
    let updated = site.told(&["update", "clock", "--weekly", "tue@03:00", "--step", "3"]).await;
    assert_eq!(updated["trigger_config"]["every"], json!(3));
}

#[tokio::test]
async fn warnings_of_rules_by_the_clock() {
    let site = Site::start().await;
    let created = site.clock(&["--cron", "*/7 2 13 * fri", "--timezone", "Europe/Berlin"]).await;
    let warnings = created["warnings"].to_string();
    for part in ["a day need match only one of them", "the step of 7 in the minute field does not come out even"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let shown = site.run(&["schedule", "show", "clock"]).await;
    assert!(shown.stderr.contains("the step of 7") && shown.stdout.contains("on the 13th or on Fridays"), "{shown:?}");
    assert!(site.told(&["show", "clock"]).await["warnings"].to_string().contains("the step of 7"));
    let updated = site.told(&["update", "clock", "--cron", "0 0 31 * *"]).await;
    assert!(updated["warnings"][0].as_str().is_some_and(|text| text.starts_with("it does not run in February")));
    let old = site.told(&["update", "clock", "--timezone", "CET"]).await;
    assert!(old["warnings"].to_string().contains("is an old name of Europe/Brussels"), "{old}");
    let rare = site.run(&["schedule", "update", "clock", "--cron", "0 0 29 2 *"]).await;
    assert!(rare.exits(0).stderr.contains("and then not before"), "{rare:?}");
    let fold = site.run(&["schedule", "update", "clock", "--daily", "02:30"]).await;
    assert!(fold.exits(0).stderr.contains("it runs in the first pass only"), "{fold:?}");
    assert!(fold.stderr.contains("02:30 is left out when the clocks go forward"), "{fold:?}");
}

#[tokio::test]
async fn what_the_inventory_forbids_is_refused() {
    let site = Site::start().await;
    let inventory = |text: &str| {
        let path = site.folder.path().join("inventory.yaml");
        std::fs::write(path, format!("broker: {{endpoint: 'tcp://h:1', zmq_auth: false}}\n{text}")).expect("written");
    };
    inventory("scheduler: {forbidden_tasks: ['*:echo']}");
    let create = [&CREATE[..], &["--every", "1s"]].concat();
    site.run(&create).await.fails_in_json(2, "usage", "is forbidden by the pattern \"*:echo\"");
    assert!(!site.database().exists());
    site.run(&["job", "run", "demo", "echo"]).await.fails(2, "is forbidden");
    // What was saved before is looked at again.
    inventory("");
    let allowed = site.clock(&["--every", "1h"]).await;
    inventory("scheduler: {forbidden_tasks: ['other:*', 'demo:echo']}");
    site.run(&["schedule", "run-now", "clock"]).await.fails(2, "is forbidden by the pattern \"demo:echo\"");
    site.run(&["schedule", "update", "clock", "--every", "2h"]).await.fails(2, "is forbidden");
    assert_eq!(site.told(&["show", "clock"]).await["revision"], allowed["revision"]);
    for (section, part) in [
        ("scheduler: {forbidden_tasks: echo}", "must be a list of texts SERVICE:TASK"),
        ("scheduler: {forbidden_tasks: [echo]}", "\"echo\" of forbidden_tasks is no pattern"),
    ] {
        inventory(section);
        site.run(&["schedule", "create", "other", "demo", "echo", "--every", "5m"]).await.fails(1, part);
        site.run(&["schedule", "pause", "clock"]).await.fails(1, part);
        site.run(&["run"]).await.fails(1, part);
        site.run(&["schedule", "show", "clock"]).await.exits(0);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_owner_switches_off_what_the_inventory_forbids() {
    let site = Site::start().await;
    site.clock(&["--every", "1s"]).await;
    let inventory = "broker: {endpoint: 'tcp://h:1', zmq_auth: false}\nscheduler: {forbidden_tasks: ['demo:echo']}";
    std::fs::write(site.folder.path().join("inventory.yaml"), inventory).expect("written");
    let mut owner = common::Owner::start(&site).await;
    owner.wait_for("Disabled a schedule: task \"echo\" of service \"demo\" is forbidden").await;
    owner.stop().await.exits(0);
    let off = site.told(&["show", "clock"]).await;
    assert_eq!((&off["state"], &off["total_runs"]), (&json!("DISABLED"), &json!(0)), "{off}");
    assert_eq!(site.fabric.executions().len(), 0);
}

#[tokio::test]
async fn run_by_hand() {
    let site = Site::start().await;
    site.clock(&["--every", "1h", "-k", "n=7", "--workers", "any"]).await;
    let ended = site.run(&["--json", "schedule", "run-now", "clock", "--wait"]).await;
    let job = ended.exits(0).json();
    assert_eq!((&job["status"], &job["kwargs"]), (&json!("COMPLETED"), &json!({"n": 7})), "{job}");
    // Nobody sends the next one, so that it stays in the way of a third.
    let ended = site.run(&["--json", "schedule", "run-now", "clock"]).await;
    assert!(ended.stderr.contains("sent only if `norfab run` is started before its deadline"), "{ended:?}");
    let waiting = ended.exits(0).json();
    let refused = site.run(&["schedule", "run-now", "clock"]).await;
    refused.fails(3, waiting["uuid"].as_str().expect("text"));
    site.run(&["schedule", "run-now", "clock", "--force"]).await.exits(0);
    let jobs = site.run(&["--json", "job", "list", "--schedule", "clock"]).await.exits(0).json();
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(3), "{jobs}");
    site.run(&["job", "list", "--schedule", "nobody"]).await.fails(4, "there is no schedule \"nobody\"");
    assert_eq!(site.fabric.executions().len(), 1);
}

#[tokio::test]
async fn a_task_is_looked_for_before() {
    let site = Site::start().await;
    let line = ["schedule", "create", "clock", "nobody", "echo", "--every", "5m", "--verify"];
    site.run(&line).await.fails(1, "the workers of service \"nobody\" did not tell their tasks");
    let nobody = common::Nobody::listens();
    let unreached = [&line[..], &["--connect-timeout", "1"]].concat();
    let ended = common::end(&mut common::at(site.folder.path(), &nobody.endpoint(), &unreached)).await;
    ended.fails(5, "the fabric was not reached");
    let named = |task| ["schedule", "create", "clock", "demo", task, "--every", "5m", "--verify"];
    site.run(&named("nosuch")).await.fails(4, "has no task \"nosuch\"");
    let elsewhere = [&named("echo")[..], &["--workers", "demo-worker-1", "--workers", "demo-worker-9"]].concat();
    site.run(&elsewhere).await.fails(1, "the workers demo-worker-9 of service \"demo\" did not tell their tasks");
    site.run(&["schedule", "show", "clock"]).await.fails(4, "there is no schedule \"clock\"");
    site.run(&[&named("echo")[..], &["--workers", "demo-worker-1"]].concat()).await.exits(0);
    // Only who was named was asked.
    let asked = |worker: &str| site.fabric.executions().iter().filter(|done| done.worker == worker).count();
    assert_eq!((asked("demo-worker-1"), asked("demo-worker-2")), (3, 1));
}

#[cfg(unix)]
#[tokio::test]
async fn an_owner_makes_the_jobs() {
    let site = Site::start().await;
    let mut owner = common::Owner::start(&site).await;
    // Every occurrence becomes a job, however slow the machine is.
    let policies = ["--coalesce", "all", "--overlap", "ALLOW", "--max-instances", "100"];
    let ended = site.run(&[&CREATE[..], &["--every", "1s", "--workers", "any"], &policies].concat()).await;
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let created = ended.exits(0).json();
    for _ in 0..2 {
        owner.wait_for("Completed a job").await;
    }
    assert_eq!(site.told(&["pause", "clock"]).await["state"], "PAUSED");
    let jobs = site.run(&["--json", "job", "list", "--schedule", "clock"]).await.exits(0).json();
    let jobs = jobs["jobs"].as_array().expect("jobs");
    assert!(jobs.len() >= 2 && jobs.iter().all(|job| job["schedule_id"] == created["uuid"]), "{jobs:?}");
    let mut times: Vec<_> = jobs.iter().map(|job| job["scheduled_for"].as_str().expect("a time")).collect();
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), jobs.len(), "{times:?}");
    assert_eq!(Some(times[0]), created["next_run_at"].as_str());
    let shown = site.told(&["show", "clock"]).await;
    assert_eq!(shown["total_runs"].as_u64(), u64::try_from(jobs.len()).ok(), "{shown}");
    owner.stop().await.exits(0);
}

#[tokio::test]
async fn the_zone_of_the_process_changes_no_instant() {
    let site = Site::start().await;
    let created = site.clock(&["--every", "1d", "--timezone", "Europe/Berlin"]).await;
    for zone in ["UTC", "America/New_York", "Pacific/Kiritimati"] {
        let show = async |line: &[&str]| {
            let ended = common::end(site.command(line).env("TZ", zone)).await;
            ended.exits(0).json()
        };
        let shown = show(&["--json", "schedule", "show", "clock"]).await;
        assert_eq!((&shown["next_run_at"], &shown["next_due_at"]), (&created["next_run_at"], &created["next_due_at"]));
        let from = created["created_at"].as_str().expect("a time");
        let preview = show(&["--json", "schedule", "preview", "clock", "--from", from]).await;
        assert_eq!(preview["occurrences"], created["occurrences"], "{zone}");
    }
}
