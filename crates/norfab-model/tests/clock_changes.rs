//! A sample of the oracle that runs within seconds: the zones with the oddest clocks, around some of their changes. The
//! whole of it is `cargo xtask oracle`.

#![allow(clippy::expect_used)]

mod walker;

use norfab_model::{Timestamp, Zone};
use walker::Report;

fn at(text: &str) -> i64 {
    Timestamp::parse(text).expect(text).as_micros() / 1_000_000
}

#[test]
fn a_walk_finds_the_same_instants() {
    let (rules, with_seconds) = (walker::all(), walker::with_seconds());
    let mut report = Report::default();
    for (name, from, until) in [
        ("America/New_York", "2025-01-01T00:00:00Z", "2026-12-31T00:00:00Z"),
        ("Europe/Berlin", "2093-01-01T00:00:00Z", "2094-01-01T00:00:00Z"),
        ("Australia/Lord_Howe", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("Africa/Cairo", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("Africa/Casablanca", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("America/Havana", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("Pacific/Apia", "2011-01-01T00:00:00Z", "2012-06-01T00:00:00Z"),
        ("Pacific/Kwajalein", "1993-01-01T00:00:00Z", "1994-01-01T00:00:00Z"),
        ("Asia/Kathmandu", "1985-01-01T00:00:00Z", "1987-01-01T00:00:00Z"),
        ("Antarctica/Troll", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("Africa/Monrovia", "1971-01-01T00:00:00Z", "1973-01-01T00:00:00Z"),
    ] {
        let (zone, from, until) = (Zone::find(name).expect(name), at(from), at(until));
        let changes = walker::changes(&zone, from, until);
        assert!(!changes.is_empty(), "{name}");
        assert_eq!(changes, walker::transitions(&zone, from, until), "{name}");
        for change in changes {
            report.add(walker::compare(&zone, change, &rules));
            report.add(walker::compare_seconds(&zone, change, &with_seconds));
        }
    }
    assert!(report.walks > 650 && report.instants > 15_000 && report.moved > 150, "{report:?}");
    assert!(report.differences.is_empty(), "{:#?}", report.differences);
}

#[test]
fn rare_dates_are_found_across_decades() {
    let mut report = Report::default();
    for name in ["UTC", "America/New_York", "Pacific/Apia"] {
        let zone = Zone::find(name).expect(name);
        for rule in walker::rare() {
            let (from, until) = (at("2000-01-01T00:00:00Z"), at("2045-01-01T00:00:00Z"));
            report.add(walker::compare_rare(&zone, &rule, from, until));
        }
    }
    assert!(report.instants > 300, "{report:?}");
    assert!(report.differences.is_empty(), "{:#?}", report.differences);
}
