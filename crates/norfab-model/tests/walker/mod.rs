//! The rule for clock changes, stated anew: a walk from minute to minute, or second to second, that asks a zone for nothing but the offset of
//! an instant, and a table of rules whose times are told in words of their own. Slow, and simple enough to be believed.

mod rules;

use norfab_model::{Occurrences, Timestamp, Transition, Trigger, Zone};

pub(crate) use rules::{Rule, all, rare, with_seconds};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// How far around a clock change is walked, and for how long before, so that it is known what the clocks have shown.
const AROUND: i64 = 30 * HOUR;
const BEFORE: i64 = 2 * DAY;

/// Whether the times of a rule are times of day, or follow elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Each runs once: when the clocks first show it or, since they went forward over it, a later time.
    Fixed,
    /// Each runs whenever the clocks show it; one that they go forward over, when they would have shown it without that.
    Free,
}

/// One instant of a walk, in seconds since 1970, and what the clocks show then.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: i64,
    wall: i64,
}

/// An instant at which a rule runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    at: i64,
    left_out: Option<LeftOut>,
}

/// What the clocks never show and comes to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LeftOut {
    /// The first of these times of the wall clock.
    first: i64,
    count: u64,
    /// The time that the clocks show at that run, when it is one of the rule too.
    shared: Option<i64>,
}

/// A clock change, found by looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    /// Its instant, in seconds since 1970.
    pub(crate) at: i64,
    /// The offset from then on, in seconds.
    pub(crate) offset: i64,
}

/// What was compared, and what was found to differ.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Walks around a clock change or a date, one for each rule.
    pub(crate) walks: u64,
    /// Instants that were found both ways.
    pub(crate) instants: u64,
    /// Those of them to which times come that the clocks never show.
    pub(crate) moved: u64,
    /// Descriptions of what differs.
    pub(crate) differences: Vec<String>,
}

impl Report {
    pub(crate) fn add(&mut self, other: Report) {
        self.walks += other.walks;
        self.instants += other.instants;
        self.moved += other.moved;
        self.differences.extend(other.differences);
    }
}

pub(crate) fn offset(zone: &Zone, at: i64) -> i64 {
    zone.offset_at(Timestamp::from_seconds(at)).whole_seconds().into()
}

/// The clock changes of a zone in a time, by looking at every hour and halving the hours in which the offset differs.
pub(crate) fn changes(zone: &Zone, from: i64, until: i64) -> Vec<Change> {
    let mut found = Vec::new();
    let (mut at, mut before) = (from, offset(zone, from));
    while at < until {
        let next = at + HOUR;
        let after = offset(zone, next);
        if after != before {
            let (mut low, mut high) = (at, next);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if offset(zone, middle) == before { low = middle } else { high = middle }
            }
            found.push(Change { at: high, offset: after });
        }
        (at, before) = (next, after);
    }
    found
}

/// The clock changes of a zone in a time, as it tells them itself.
pub(crate) fn transitions(zone: &Zone, from: i64, until: i64) -> Vec<Change> {
    let start = zone.next_transition(Timestamp::from_seconds(from));
    let all = std::iter::successors(start, |change: &Transition| zone.next_transition(change.at));
    let all = all.map(|change| Change { at: seconds(change.at), offset: change.after.whole_seconds().into() });
    all.take_while(|change| change.at <= until).collect()
}

/// Compares all rules around one clock change.
pub(crate) fn compare(zone: &Zone, change: Change, rules: &[Rule]) -> Report {
    compare_around(zone, change, rules, AROUND, BEFORE)
}

/// Compares rules with seconds around one clock change: not further than the clocks move, and an hour.
pub(crate) fn compare_seconds(zone: &Zone, change: Change, rules: &[Rule]) -> Report {
    let around = (change.offset - offset(zone, change.at - 1)).abs() + HOUR;
    compare_around(zone, change, rules, around, around)
}

fn compare_around(zone: &Zone, change: Change, rules: &[Rule], around: i64, before: i64) -> Report {
    let mut report = Report::default();
    let grain = rules.iter().map(Rule::grain).min().unwrap_or(60);
    let moments = moments(zone, change.at - around - before, change.at + around, grain);
    for rule in rules {
        let from = change.at - around;
        let walked = walked(&moments, rule).into_iter().filter(|run| run.at >= from).collect();
        compare_instants(zone, rule, from, change.at + around, walked, &mut report);
    }
    report
}

/// Compares a rule of rare dates from one instant to another, walking around its dates only.
pub(crate) fn compare_rare(zone: &Zone, rule: &Rule, from: i64, until: i64) -> Report {
    let mut report = Report::default();
    let mut walked_all = Vec::new();
    for day in from.div_euclid(DAY) - 2..until.div_euclid(DAY) + 2 {
        if rule.has_date(day) {
            let moments = moments(zone, day * DAY - AROUND - BEFORE, day * DAY + AROUND + DAY, rule.grain());
            let near = day * DAY - AROUND..day * DAY + AROUND + DAY;
            walked_all.extend(walked(&moments, rule).into_iter().filter(|run| near.contains(&run.at)));
        }
    }
    walked_all.dedup();
    walked_all.retain(|run| (from..until).contains(&run.at));
    compare_instants(zone, rule, from, until, walked_all, &mut report);
    report
}

/// What the clocks show from one instant to another: at every so many seconds or, where they are not whole minutes away
/// from UTC, every second.
fn moments(zone: &Zone, from: i64, until: i64, grain: i64) -> Vec<Moment> {
    let (from, until) = (from.div_euclid(60) * 60, until.div_euclid(60) * 60);
    let odd = (from..until).step_by(HOUR as usize).any(|at| offset(zone, at) % 60 != 0);
    let step = if odd { 1 } else { grain };
    (from..until).step_by(step as usize).map(|at| Moment { at, wall: at + offset(zone, at) }).collect()
}

/// When a rule runs.
fn walked(moments: &[Moment], rule: &Rule) -> Vec<Run> {
    match rule.pace {
        Pace::Fixed => fixed(moments, rule),
        Pace::Free => free(moments, rule),
    }
}

/// A fixed time runs at the first instant at which the clocks show it or a later time.
fn fixed(moments: &[Moment], rule: &Rule) -> Vec<Run> {
    let mut found = Vec::new();
    let mut shown = moments.first().map_or(0, |first| first.wall);
    for moment in moments {
        let mut times = times(rule, shown, moment.wall + 1).peekable();
        if let Some(first) = times.peek().copied() {
            let shared = times.clone().last().filter(|last| *last == moment.wall);
            let count = times.count() as u64 - u64::from(shared.is_some());
            let left_out = (first < moment.wall).then_some(LeftOut { first, count, shared });
            found.push(Run { at: moment.at, left_out });
        }
        shown = shown.max(moment.wall + 1);
    }
    found
}

/// A free time runs when the clocks show it, and what they leave out when it would have been shown: that is told where
/// they show no other time of the rule then.
fn free(moments: &[Moment], rule: &Rule) -> Vec<Run> {
    let (mut shown, mut found) = (Vec::new(), Vec::new());
    for (before, moment) in moments.iter().zip(moments.iter().skip(1)) {
        let expected = before.wall + (moment.at - before.at);
        if rule.has(moment.wall) {
            shown.push(moment.at);
        }
        found.extend(times(rule, expected, moment.wall).map(|wall| Run {
            at: moment.at + wall - expected,
            left_out: Some(LeftOut { first: wall, count: 1, shared: None }),
        }));
    }
    found.retain(|run| shown.binary_search(&run.at).is_err());
    found.extend(shown.into_iter().map(|at| Run { at, left_out: None }));
    found.sort_by_key(|run| run.at);
    found
}

/// The times of a rule from one time of the wall clock on, until another.
fn times(rule: &Rule, from: i64, until: i64) -> impl Iterator<Item = i64> + Clone {
    let grain = rule.grain();
    (from + (-from).rem_euclid(grain)..until).step_by(grain as usize).filter(|wall| rule.has(*wall))
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros() / 1_000_000
}

/// The same instants must be found forwards, backwards, by number, and from any instant in between.
fn compare_instants(zone: &Zone, rule: &Rule, from: i64, until: i64, runs: Vec<Run>, report: &mut Report) {
    let walked: Vec<i64> = runs.iter().map(|run| run.at).collect();
    let occurrences = Occurrences::new(&rule.trigger, zone, anchor(zone), None, None);
    let micros = |at: i64| Timestamp::from_micros(at * 1_000_000);
    let forwards: Vec<i64> = occurrences.after(micros(from - 1)).map(seconds).take_while(|at| *at < until).collect();
    let last = occurrences.last_before(micros(until));
    let backwards = std::iter::successors(last, |at| occurrences.last_before(*at));
    let mut backwards: Vec<i64> = backwards.map(seconds).take_while(|at| *at >= from).collect();
    backwards.reverse();
    let count = occurrences.count_in(micros(from), micros(until - 1));
    report.walks += 1;
    report.instants += walked.len() as u64;
    report.moved += runs.iter().filter(|run| run.left_out.is_some()).count() as u64;
    let mut differs = |what: &str, found: String| {
        report.differences.push(format!("{} in {zone} from {}: {what}: {found}", rule.name, micros(from)));
    };
    if forwards.windows(2).any(|pair| pair[0] >= pair[1]) {
        differs("not strictly increasing", format!("{forwards:?}"));
    }
    if forwards != walked {
        differs("forwards", difference(&forwards, &walked));
    }
    if backwards != walked {
        differs("backwards", difference(&backwards, &walked));
    }
    if count != walked.len() as u64 {
        differs("number", format!("{count} instead of {}", walked.len()));
    }
    let left_out = |at: i64| {
        let wall = |time: &time::PrimitiveDateTime| time.assume_utc().unix_timestamp();
        let moved = occurrences.moved(micros(at))?;
        let first = moved.named.first().map(wall)?;
        Some(LeftOut { first, count: moved.count, shared: moved.shared.as_ref().map(wall) })
    };
    for run in runs.iter().filter(|run| left_out(run.at) != run.left_out) {
        differs("left out", format!("{:?} instead of {:?}", left_out(run.at), run.left_out));
    }
    for (one, next) in walked.iter().zip(walked.iter().skip(1)) {
        let (first, between, end) = (micros(*one), micros((one + next) / 2), micros(*next));
        let after = occurrences.next_after(between.max(first));
        if after != Some(end) || (first < between && occurrences.last_at_or_before(between) != Some(first)) {
            differs("in between", format!("{between}: {after:?}"));
        }
    }
}

fn difference(found: &[i64], walked: &[i64]) -> String {
    let shown = |at: &i64| Timestamp::from_seconds(*at).to_string();
    let extra: Vec<_> = found.iter().filter(|at| !walked.contains(at)).map(shown).take(3).collect();
    let missing: Vec<_> = walked.iter().filter(|at| !found.contains(at)).map(shown).take(3).collect();
    format!("too many {extra:?}, missing {missing:?}")
}

/// Noon of 1970-01-01 by the clocks of a zone: what counts from a date counts from this one.
fn anchor(zone: &Zone) -> Timestamp {
    Timestamp::from_seconds(DAY / 2 - offset(zone, 0))
}

/// The trigger of a cron expression.
fn cron(expression: &str) -> Trigger {
    norfab_model::Cron::new(expression).expect(expression).into()
}
