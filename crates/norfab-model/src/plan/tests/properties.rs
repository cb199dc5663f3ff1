//! `plan_due` and the calls of a caller against a model that walks the grid second by second, through outages, clock
//! steps, small budgets and changes of the rule.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;

use super::super::*;
use crate::schedule::tests::{NOON, noon};
use crate::{
    Cron, Effect, Interval, Limits, NewSchedule, Overlap, OverlapPolicy, Patch, ScheduleCounters, SchedulePatch,
    Trigger, jitter,
};

const MICROS: i64 = 1_000_000;

/// What became of one occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Created,
    Coalesced,
    Missed,
    Skipped,
    PassedOver,
}

/// When a schedule runs, as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Every so many seconds.
    Every(i64),
    /// In these seconds of every minute: bit n says second n.
    Seconds(u64),
}

impl Rule {
    fn trigger(self) -> Trigger {
        match self {
            Self::Every(seconds) => Interval::new(seconds.unsigned_abs()).expect("valid").into(),
            Self::Seconds(bits) => {
                let seconds = (0..60).filter(|n| bits >> n & 1 == 1).map(|n| n.to_string()).collect::<Vec<_>>();
                Cron::with_seconds(&format!("{} * * * * *", seconds.join(","))).expect("valid").into()
            }
        }
    }

    fn has(self, anchor: i64, second: i64) -> bool {
        match self {
            Self::Every(seconds) => (second - anchor).rem_euclid(seconds) == 0,
            Self::Seconds(bits) => bits >> second.rem_euclid(60) & 1 == 1,
        }
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let few = prop::collection::vec(0..60_u32, 1..6);
    prop_oneof![
        (1..30_i64).prop_map(Rule::Every),
        few.prop_map(|seconds| Rule::Seconds(seconds.into_iter().fold(0, |bits, second| bits | 1 << second))),
    ]
}

/// A schedule as the model sees it: whole seconds after noon, one after the other.
#[derive(Debug, Clone)]
struct Model {
    id: crate::ScheduleId,
    rule: Rule,
    anchor: i64,
    start: Option<i64>,
    end: Option<i64>,
    jitter: u32,
    coalesce: Coalesce,
    overlap: OverlapPolicy,
    max_instances: u32,
    grace: Option<u32>,
    state: ScheduleState,
    cursor: Option<i64>,
    /// Up to when everything is decided, in microseconds after noon; it never goes back.
    decided: i64,
    /// What became of each second that was walked; of some more than once, when the clock went back.
    fates: Vec<(i64, Fate)>,
    by_hand: u64,
    /// The seconds that have a job.
    rows: BTreeSet<i64>,
    /// The seconds that the rule promised so far, up to its last change.
    promised: BTreeSet<i64>,
    /// Since when the present rule holds.
    since: i64,
}

/// How long before the present a call may have read the clock, in microseconds.
const LONGEST_WAIT: i64 = 60 * MICROS;

impl Model {
    fn is_occurrence(&self, second: i64) -> bool {
        self.rule.has(self.anchor, second)
            && self.start.is_none_or(|start| second >= start)
            && self.end.is_none_or(|end| second <= end)
    }

    fn first_after(&self, second: i64) -> Option<i64> {
        // Nothing here is further apart than a minute.
        let from = self.start.map_or(second + 1, |start| start.max(second + 1));
        (from..from + 61).find(|second| self.is_occurrence(*second))
    }

    /// In microseconds after noon.
    fn due(&self, second: i64) -> i64 {
        let delay = jitter(&self.id, noon(second), self.jitter).as_micros() as i64;
        if delay == 0 {
            return second * MICROS;
        }
        let next = self.first_after(second).map_or(i64::MAX, |next| next * MICROS - 1);
        let due = (second * MICROS + delay).min(next);
        self.end.map_or(due, |end| due.min(end * MICROS))
    }

    /// The seconds from the cursor up to an instant, by their nominal time.
    fn undecided(&self, now: i64) -> Vec<i64> {
        let from = self.cursor.unwrap_or(i64::MAX);
        (from..=now.div_euclid(MICROS)).filter(|second| self.is_occurrence(*second)).collect()
    }

    fn pass(&mut self, now: i64, unfinished: u64, budget: u32) {
        if self.state != ScheduleState::Active {
            return;
        }
        // What lies up to the creation, at noon, is none of the schedule's once it is noon; and what was decided before
        // the clock went back is passed over once the clock has come back to it.
        let (none, again) = (0, self.decided);
        let walked = self.undecided(now).into_iter().filter(|second| now < none || second * MICROS > none);
        let (again, due): (Vec<i64>, Vec<i64>) = walked.partition(|second| now >= again && second * MICROS <= again);
        self.fates.extend(again.iter().map(|second| (*second, Fate::PassedOver)));
        let done = [none, self.decided].into_iter().filter(|done| *done <= now).max();
        if let (Some(cursor), Some(done)) = (self.cursor, done)
            && cursor * MICROS <= done
        {
            self.move_behind(done.div_euclid(MICROS));
        }
        let due: Vec<i64> = due.into_iter().filter(|second| self.due(*second) <= now).collect();
        let room = match self.overlap {
            OverlapPolicy::Forbid => u64::from(unfinished == 0),
            OverlapPolicy::Allow => u64::from(self.max_instances).saturating_sub(unfinished),
        };
        let (mut made, mut last) = (0, None);
        for second in &due {
            let kept = match self.coalesce {
                Coalesce::Latest => Some(second) == due.last(),
                Coalesce::Earliest => Some(second) == due.first(),
                Coalesce::All => true,
            };
            let late = self.grace.is_some_and(|grace| self.due(*second) + i64::from(grace) * MICROS < now);
            let fate = if !kept {
                Fate::Coalesced
            } else if late {
                Fate::Missed
            } else if made == room {
                Fate::Skipped
            } else if self.coalesce == Coalesce::All && made == 1 + u64::from(budget) {
                break;
            } else {
                made += 1;
                if self.rows.insert(*second) { Fate::Created } else { Fate::PassedOver }
            };
            self.fates.push((*second, fate));
            last = Some(*second);
        }
        if let Some(last) = last {
            self.decided = self.decided.max(last * MICROS);
            self.move_behind(last);
        }
    }

    fn move_behind(&mut self, second: i64) {
        self.cursor = self.first_after(second);
        if self.cursor.is_none() {
            self.state = ScheduleState::Completed;
        }
    }

    /// When a call takes place that has read the clock at `now`: it may have waited for its turn since then.
    fn turn(&self, now: i64) -> i64 {
        if self.decided - now <= LONGEST_WAIT { now.max(self.decided) } else { now }
    }

    fn pass_over(&mut self, now: i64) -> u64 {
        let undecided = self.undecided(now);
        self.fates.extend(undecided.iter().map(|second| (*second, Fate::PassedOver)));
        undecided.len() as u64
    }

    fn resume(&mut self, now: i64) -> u64 {
        let now = self.turn(now);
        self.decided = self.decided.max(now);
        let passed_over = self.pass_over(now);
        self.cursor = self.first_after(now.div_euclid(MICROS));
        self.state = if self.cursor.is_some() { ScheduleState::Active } else { ScheduleState::Completed };
        passed_over
    }

    /// Takes a new rule over, when it is a valid one.
    fn update(&mut self, now: i64, rule: Rule, end: Option<i64>, jitter: u32) -> Option<u64> {
        let next = Model { rule, end, jitter, ..self.clone() };
        let ordered = next.start.zip(next.end).is_none_or(|(start, end)| start < end);
        if matches!(rule, Rule::Every(interval) if i64::from(jitter) >= interval) || !ordered {
            return None;
        }
        if (rule, end, jitter) == (self.rule, self.end, self.jitter) {
            return Some(0);
        }
        let now = self.turn(now);
        let second = now.div_euclid(MICROS);
        let cursor = next.first_after(second)?;
        let passed_over = self.pass_over(now);
        self.promise_until(second);
        let (fates, promised) = (std::mem::take(&mut self.fates), std::mem::take(&mut self.promised));
        let state = if self.state == ScheduleState::Completed { ScheduleState::Active } else { self.state };
        let decided = self.decided.max(now);
        *self = Model { cursor: Some(cursor), decided, state, fates, promised, since: second, ..next };
        Some(passed_over)
    }

    fn promise_until(&mut self, second: i64) {
        let seconds: Vec<i64> = (self.since + 1..=second).filter(|second| self.is_occurrence(*second)).collect();
        self.promised.extend(seconds);
    }

    fn realign(&mut self, now: i64) {
        let first = self.first_after(self.turn(now).div_euclid(MICROS));
        if let (ScheduleState::Active, Some(cursor), Some(first)) = (self.state, self.cursor, first) {
            self.cursor = Some(cursor.min(first));
        }
    }

    fn counters(&self) -> ScheduleCounters {
        let count = |wanted: Fate| self.fates.iter().filter(|(_, fate)| *fate == wanted).count() as u64;
        ScheduleCounters {
            total_runs: count(Fate::Created) + self.by_hand,
            failed_runs: 0,
            missed_runs: count(Fate::Missed),
            overlap_skips: count(Fate::Skipped),
            coalesced_runs: count(Fate::Coalesced),
            passed_over: count(Fate::PassedOver),
        }
    }

    /// Each promised occurrence before the cursor has exactly one fate, and nothing else has one.
    fn check_that_each_has_one_fate(&mut self, now: i64) -> Result<(), TestCaseError> {
        self.promise_until(now.div_euclid(MICROS));
        let mut fates: BTreeMap<i64, Vec<Fate>> = BTreeMap::new();
        self.fates.iter().for_each(|(second, fate)| fates.entry(*second).or_default().push(*fate));
        for second in &self.promised {
            // What lies behind the cursor is due still, or waits for its jitter, or for a resume.
            let open = self.cursor.is_some_and(|cursor| *second >= cursor) && *second > self.since;
            let number = fates.remove(second).map_or(0, |fates| fates.len());
            prop_assert_eq!(number, usize::from(!open), "occurrence {} of {:?}", second, self);
        }
        prop_assert!(fates.is_empty(), "never promised: {:?}", fates);
        Ok(())
    }
}

/// Something that happens, some seconds after what happened before.
#[derive(Debug, Clone)]
enum Act {
    Pass {
        unfinished: u64,
        budget: u32,
    },
    Pause,
    Resume,
    Disable,
    Save,
    Rule(Rule),
    End(Option<i64>),
    Jitter(u32),
    RunNow,
    /// The clock goes back by so many seconds.
    Back(i64),
    /// The clock goes forward by so many seconds, and then what was due meanwhile is looked at.
    Forward(i64),
    /// A call that has read the clock so many microseconds ago.
    Late(i64, Box<Act>),
}

impl Act {
    /// By how much it moves the clock, in microseconds, when something else would come so much later.
    fn moves(&self, pause: i64) -> i64 {
        match self {
            Act::Back(seconds) => -seconds * MICROS,
            Act::Forward(seconds) => seconds * MICROS,
            _ => pause,
        }
    }
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => (0..4_u64, 0..4_u32).prop_map(|(unfinished, budget)| Act::Pass { unfinished, budget }),
        1 => Just(Act::Pause),
        3 => Just(Act::Resume),
        1 => Just(Act::Disable),
        1 => Just(Act::Save),
        1 => rule().prop_map(Act::Rule),
        2 => prop::option::of(1..3000_i64).prop_map(Act::End),
        1 => (0..20_u32).prop_map(Act::Jitter),
        1 => Just(Act::RunNow),
        3 => (0..LONGEST_WAIT, late()).prop_map(|(wait, act)| Act::Late(wait, Box::new(act))),
    ]
}

fn late() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Resume),
        2 => rule().prop_map(Act::Rule),
        1 => prop::option::of(1..3000_i64).prop_map(Act::End),
        1 => (0..20_u32).prop_map(Act::Jitter),
    ]
}

fn act_or_step() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => act(),
        1 => (1..300_i64).prop_map(Act::Back),
        1 => (1..600_i64).prop_map(Act::Forward),
    ]
}

/// A schedule and the model of it, created at noon. None when it could not be.
fn created() -> impl Strategy<Value = (Schedule, Model)> {
    let rule = (rule(), prop::option::of(-100..100_i64), prop::option::of(1..2000_i64), 0..20_u32);
    let policies = (0..3_usize, any::<bool>(), 1..5_u32, prop::option::of(1..40_u32));
    (rule, policies).prop_filter_map("nothing to come", |((rule, start, end, jitter), policies)| {
        let (coalesce, allow, max_instances, grace) = policies;
        let coalesce = *Coalesce::ALL.get(coalesce)?;
        let overlap = if allow { OverlapPolicy::Allow } else { OverlapPolicy::Forbid };
        let new = NewSchedule {
            start_at: start.map(noon),
            end_at: end.map(noon),
            max_instances: max_instances.into(),
            misfire_grace_seconds: grace.map(u64::from),
            jitter_seconds: jitter.into(),
            ..NewSchedule::new("nornir", "cli", rule.trigger()).coalesce(coalesce).overlap_policy(overlap)
        };
        let schedule = Limits::default().check_schedule(NOON, new).ok()?.schedule().clone();
        let mut model = Model {
            id: schedule.uuid.clone(),
            rule,
            anchor: start.unwrap_or(0),
            start,
            end,
            jitter,
            coalesce,
            overlap,
            max_instances,
            grace,
            state: ScheduleState::Active,
            cursor: None,
            decided: 0,
            fates: Vec::new(),
            by_hand: 0,
            rows: BTreeSet::new(),
            promised: BTreeSet::new(),
            since: 0,
        };
        model.cursor = model.first_after(0);
        Some((schedule, model))
    })
}

fn instant(micros: i64) -> Timestamp {
    Timestamp::from_micros(NOON.as_micros() + micros)
}

fn seconds_of(at: Timestamp) -> i64 {
    (at.as_micros() - NOON.as_micros()) / MICROS
}

/// Does one thing to both, and compares what each says of it.
fn apply(schedule: &mut Schedule, model: &mut Model, now: i64, act: &Act) -> Result<(), TestCaseError> {
    let (limits, mut patch) = (Limits::default(), SchedulePatch::default());
    let (now, act) = match act {
        Act::Late(wait, act) => (now - wait, act.as_ref()),
        Act::Forward(_) => (now, &Act::Pass { unfinished: 0, budget: 3 }),
        act => (now, act),
    };
    let at = instant(now);
    match act {
        Act::Pass { unfinished, budget } => {
            let plan = plan_due(schedule, at, *unfinished, *budget);
            let new = |job: &&PlannedJob| !model.rows.contains(&seconds_of(job.occurrence));
            let made: HashSet<_> = plan.create.iter().filter(new).map(|job| job.uuid.clone()).collect();
            *schedule = plan.settle(schedule, at, &made);
            let (before, rows) = (model.fates.len(), model.rows.len());
            model.pass(now, *unfinished, *budget);
            prop_assert_eq!(plan.due - plan.remaining, (model.fates.len() - before) as u64);
            prop_assert_eq!(made.len(), model.rows.len() - rows);
            prop_assert!(plan.budget_used <= *budget);
            prop_assert!(plan.create.iter().all(|job| job.due <= at && job.start_deadline.is_none_or(|end| end >= at)));
            let newest = plan.missed.as_ref().map(|missed| seconds_of(missed.newest.occurrence));
            let found = model.fates.iter().skip(before).rfind(|(_, fate)| *fate == Fate::Missed);
            prop_assert_eq!(newest, found.map(|(second, _)| *second));
        }
        Act::Pause => {
            if let Ok(managed) = schedule.pause(at) {
                *schedule = managed.schedule;
                model.state = ScheduleState::Paused;
            }
        }
        Act::Resume => {
            if let Ok(managed) = schedule.resume(at, &limits)
                && managed.effect == Effect::Changed
            {
                *schedule = managed.schedule;
                prop_assert_eq!(managed.passed_over, model.resume(now));
            }
        }
        Act::Disable => {
            *schedule = schedule.disable(at).expect("not deleted").schedule;
            model.state = ScheduleState::Disabled;
        }
        Act::RunNow => {
            if let Ok(run) = schedule.run_now(at, &[], Overlap::Force, &limits) {
                *schedule = run.schedule;
                model.by_hand += 1;
            }
        }
        Act::Back(_) => {
            schedule.next = schedule.realigned(at).or(schedule.next);
            model.realign(now);
        }
        Act::Forward(_) | Act::Late(..) => unreachable!("taken apart above"),
        Act::Save => patch.trigger = Some(model.rule.trigger()),
        Act::Rule(new) => patch.trigger = Some(new.trigger()),
        Act::End(end) => patch.end_at = end.map_or(Patch::Clear, |end| Patch::Set(noon(end))),
        Act::Jitter(seconds) => patch.jitter_seconds = Patch::Set(u64::from(*seconds)),
    }
    if !patch.is_empty() {
        let (mut rule, mut end, mut jitter) = (model.rule, model.end, model.jitter);
        match act {
            Act::Rule(new) => rule = *new,
            Act::End(at) => end = *at,
            Act::Jitter(seconds) => jitter = *seconds,
            _ => {}
        }
        let updated = schedule.update(at, patch, &limits).ok().map(|updated| updated.managed);
        prop_assert_eq!(updated.as_ref().map(|managed| managed.passed_over), model.update(now, rule, end, jitter));
        *schedule = updated.map_or_else(|| schedule.clone(), |managed| managed.schedule);
    }
    prop_assert_eq!(schedule.counters, model.counters());
    prop_assert_eq!(schedule.state, model.state);
    prop_assert_eq!(schedule.decided_until, instant(model.decided));
    prop_assert_eq!(schedule.next.map(|next| seconds_of(next.occurrence)), model.cursor);
    prop_assert_eq!(schedule.next.map(|next| next.due), model.cursor.map(|second| instant(model.due(second))));
    Ok(())
}

/// Nothing for a while, or an outage, in microseconds.
fn pause_before() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0..20 * MICROS, 1 => 0..200 * MICROS, 2 => (0..60_i64).prop_map(|seconds| seconds * MICROS)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn each_occurrence_has_exactly_one_fate(
        (mut schedule, mut model) in created(),
        acts in prop::collection::vec((pause_before(), act()), 1..40),
    ) {
        let mut now = 0;
        for (pause, act) in &acts {
            now += pause;
            apply(&mut schedule, &mut model, now, act)?;
        }
        model.check_that_each_has_one_fate(now)?;
    }

    #[test]
    fn no_clock_step_makes_anything_run_twice(
        (mut schedule, mut model) in created(),
        acts in prop::collection::vec((pause_before(), act_or_step()), 1..60),
    ) {
        let mut now = 0;
        for (pause, act) in &acts {
            now += act.moves(*pause);
            let (before, decided) = (model.fates.len(), schedule.decided_until);
            apply(&mut schedule, &mut model, now, act)?;
            // It never goes back, and is behind nothing that was decided.
            prop_assert!(schedule.decided_until >= decided);
            prop_assert!(model.fates.iter().all(|(second, _)| noon(*second) <= schedule.decided_until));
            // Once the clock has come to it again, none up to it is run; nor, once it has come to the creation, any from
            // before.
            for (second, fate) in model.fates.iter().skip(before).filter(|(_, fate)| *fate == Fate::Created) {
                let done = [NOON, decided].into_iter().filter(|done| *done <= instant(now)).max();
                prop_assert!(done.is_none_or(|done| noon(*second) > done), "{act:?} at {now}: {second} is {fate:?}");
            }
            // Nor does it cause silence: the next occurrence after now, or after what was decided within a minute of it, is
            // never beyond the cursor of an ACTIVE schedule.
            if let (Act::Back(_), ScheduleState::Active) = (act, schedule.state) {
                let first = model.first_after(model.turn(now).div_euclid(MICROS));
                prop_assert!(first.is_none() || model.cursor <= first);
            }
        }
        let mut made: Vec<_> = model.fates.iter().filter(|(_, fate)| *fate == Fate::Created).map(|(s, _)| *s).collect();
        let number = made.len();
        made.sort_unstable();
        made.dedup();
        prop_assert_eq!(made.len(), number);
    }

    #[test]
    fn what_a_preview_shows_is_what_runs(
        (schedule, _) in created(),
        pauses in prop::collection::vec(pause_before(), 1..40),
    ) {
        let (coalesce, overlap_policy) = (Coalesce::All, OverlapPolicy::Allow);
        let fresh = Schedule { coalesce, overlap_policy, max_instances: 1000, misfire_grace_seconds: None, ..schedule };
        let (mut running, mut now, mut ran) = (fresh.clone(), 0, Vec::new());
        for pause in pauses {
            now += pause;
            let plan = plan_due(&running, instant(now), 0, 1000);
            ran.extend(plan.create.iter().map(|job| (job.occurrence, job.due)));
            running = plan.settle(&running, instant(now), &HashSet::new());
        }
        let shown = fresh.preview(NOON).map(|up| (up.occurrence, up.due)).take_while(|(_, due)| *due <= instant(now));
        prop_assert_eq!(ran, shown.collect::<Vec<_>>());
    }
}
