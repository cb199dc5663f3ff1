//! All zones times their clock changes times the rules, each by a walk from minute to minute.

use norfab_model::Zone;

use crate::walker::{self, Report, Rule};

/// 1970-01-01 to 2100-01-01, in seconds.
const TIME: std::ops::Range<i64> = 0..4_102_444_800;
/// How many differences are told.
const TOLD: usize = 20;

/// What is walked.
struct Rules {
    all: Vec<Rule>,
    with_seconds: Vec<Rule>,
    rare: Vec<Rule>,
}

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
    let Report { walks, instants, moved, differences } = report;
    println!(
        "walks: {zones} zones, {changes} clock changes from 1970 to 2100, {walks} walks, {instants} instants, {moved} of them moved, {} differences",
        differences.len(),
    );
    differences.iter().take(TOLD).for_each(|difference| println!("  {difference}"));
}

fn compare_zones(zones: &[&Zone]) -> Compared {
    let rules = Rules { all: walker::all(), with_seconds: walker::with_seconds(), rare: walker::rare() };
    let mut compared = Compared::default();
    for zone in zones {
        compare_zone(zone, &rules, &mut compared);
    }
    compared
}

fn compare_zone(zone: &Zone, rules: &Rules, compared: &mut Compared) {
    let changes = walker::changes(zone, TIME.start, TIME.end);
    if changes != walker::transitions(zone, TIME.start, TIME.end) {
        compared.report.differences.push(format!("{zone}: its clock changes are not those of its offsets"));
    }
    compared.zones += 1;
    compared.changes += changes.len() as u64;
    for change in changes {
        compared.report.add(walker::compare(zone, change, &rules.all));
        compared.report.add(walker::compare_seconds(zone, change, &rules.with_seconds));
    }
    for rule in &rules.rare {
        compared.report.add(walker::compare_rare(zone, rule, TIME.start, TIME.end));
    }
}
