//! All zones times their clock changes times the rules, each by a walk from minute to minute.

use norfab_model::{Timestamp, Transition, Zone};

use crate::walker::{self, Change, Report, Rule};

/// 1970-01-01 to 2100-01-01, in seconds.
const TIME: std::ops::Range<i64> = 0..4_102_444_800;
/// How many differences are told.
const TOLD: usize = 20;

/// What was compared in a zone.
#[derive(Default)]
struct Compared {
    zones: u64,
    changes: u64,
    report: Report,
}

/// Compares on all cores; returns how many differences there are.
pub(crate) fn run(zones: &[Zone]) -> usize {
    // Links have the clocks of their zones.
    let zones: Vec<&Zone> = zones.iter().filter(|zone| zone.canonical() == zone.name()).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<Vec<&Zone>> = (0..cores).map(|n| zones.iter().copied().skip(n).step_by(cores).collect()).collect();
    let mut all = Compared::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.iter().map(|zones| scope.spawn(|| compare_zones(zones))).collect();
        for part in threads.into_iter().filter_map(|thread| thread.join().ok()) {
            all.zones += part.zones;
            all.changes += part.changes;
            all.report.add(part.report);
        }
    });
    if all.zones != zones.len() as u64 {
        all.report.differences.push(format!("only {} of {} zones were compared", all.zones, zones.len()));
    }
    tell(&all);
    all.report.differences.len()
}

fn tell(all: &Compared) {
    let Compared { zones, changes, report } = all;
    let Report { walks, instants, differences } = report;
    println!(
        "walks: {zones} zones, {changes} clock changes from 1970 to 2100, {walks} walks, {instants} instants, {} differences",
        differences.len(),
    );
    differences.iter().take(TOLD).for_each(|difference| println!("  {difference}"));
}

fn compare_zones(zones: &[&Zone]) -> Compared {
    let (rules, rare) = (walker::all(), walker::rare());
    let mut compared = Compared::default();
    for zone in zones {
        compare_zone(zone, &rules, &rare, &mut compared);
    }
    compared
}

fn compare_zone(zone: &Zone, rules: &[Rule], rare: &[Rule], compared: &mut Compared) {
    let changes = walker::changes(zone, TIME.start, TIME.end);
    if changes != transitions(zone) {
        compared.report.differences.push(format!("{zone}: its clock changes are not those of its offsets"));
    }
    compared.zones += 1;
    compared.changes += changes.len() as u64;
    for change in changes {
        compared.report.add(walker::compare(zone, change, rules));
    }
    for rule in rare {
        compared.report.add(walker::compare_rare(zone, rule, TIME.start, TIME.end));
    }
}

/// The clock changes that the zone tells itself.
fn transitions(zone: &Zone) -> Vec<Change> {
    let start = zone.next_transition(Timestamp::from_seconds(TIME.start));
    let all = std::iter::successors(start, |change: &Transition| zone.next_transition(change.at));
    let all =
        all.map(|change| Change { at: change.at.as_micros() / 1_000_000, offset: change.after.whole_seconds().into() });
    all.take_while(|change| change.at <= TIME.end).collect()
}
