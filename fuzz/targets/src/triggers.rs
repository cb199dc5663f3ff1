//! The configuration of triggers, and the cron expressions in it: what is taken has instants that hold together, at any
//! time and in zones whose clocks change.

use norfab_model::{Cron, Occurrences, Timestamp, Trigger, Zone};

/// One at a clock change, the rest beside and far from any.
const INSTANTS: [i64; 5] = [-5_000_000_000, 0, 1_774_746_000, 1_795_996_800, 200_000_000_000];
const ZONES: [&str; 3] = ["Europe/Berlin", "Australia/Lord_Howe", "UTC"];
const DAY: i64 = 86_400;

/// Reads the input as the JSON form, as the column of each kind, and as an expression.
pub fn triggers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let json = serde_json::from_str(text).ok().map(|value| Trigger::from_json(&value));
    let columns = ["interval", "cron", "calendar"].map(|kind| Trigger::from_columns(kind, text));
    let crons = [Cron::new(text), Cron::with_seconds(text)].map(|cron| cron.map(Trigger::from));
    for trigger in json.into_iter().chain(columns).chain(crons) {
        match trigger {
            Ok(trigger) => holds(&trigger),
            Err(error) => assert!(error.to_string().len() < 2000, "an error stays short"),
        }
    }
}

fn holds(trigger: &Trigger) {
    let config = serde_json::from_str::<serde_json::Value>(&trigger.config()).expect("a configuration is JSON");
    assert!(config.is_object() && !trigger.describe().is_empty());
    for zone in ZONES {
        let zone = Zone::find(zone).expect("the zone is there");
        for instant in INSTANTS {
            in_zone(trigger, &zone, Timestamp::from_seconds(instant));
        }
    }
}

fn in_zone(trigger: &Trigger, zone: &Zone, instant: Timestamp) {
    let anchor = Timestamp::from_seconds(1_700_000_000);
    let occurrences = Occurrences::new(trigger, zone, anchor, None, None);
    let later: Vec<Timestamp> = occurrences.after(instant).take(3).collect();
    let occurrences = Occurrences::new(trigger, zone, anchor, None, None);
    let mut before = instant;
    for at in later.iter().copied() {
        assert!(at > before, "{trigger} {} {instant}: {at} after {before}", zone.name());
        assert_eq!(occurrences.last_at_or_before(at), Some(at), "{trigger} {} {instant}", zone.name());
        assert_eq!(occurrences.first_at_or_after(at), Some(at), "{trigger} {} {instant}", zone.name());
        if before > instant {
            assert_eq!(occurrences.last_before(at), Some(before), "{trigger} {} {instant}", zone.name());
        }
        before = at;
    }
    if let Some((first, last)) = later.first().zip(later.last()) {
        assert_eq!(occurrences.count_in(*first, *last), later.len() as u64, "{trigger} {} {instant}", zone.name());
    }
    let day_later = Timestamp::from_micros(instant.as_micros() + DAY * 1_000_000);
    assert!(occurrences.count_in(instant, day_later) <= DAY as u64 + 1);
}
