//! Whatever is done with schedules and their jobs, in whatever order, with whatever clock and whatever zone data: the store
//! in SQLite and the one in memory say and hold the same.

mod common;

use std::fmt::{Debug, Display};

use norfab_model::{
    Begin, Calendar, Claim, Coalesce, Cron, Interval, Job, JobFilter, JobId, Json, Limits, Link, Materialize,
    NewSchedule, Overdue, Overlap, OverlapPolicy, Patch, Reply, ReplyKind, RetryPolicy, RunNow, Schedule,
    ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey, SchedulePatch, ScheduleState, ScheduleStore, Scope, Store,
    Timestamp, Trigger, ValidSchedule, Workers, Zone,
};
use norfab_store::conformance::LeftCursor;
use norfab_store::{Durability, MemoryStore, SqliteStore, StoreOptions};
use proptest::prelude::*;

/// Few names and short spans, so that things meet.
const NAMES: [&str; 3] = ["one", "two", "three"];
/// A minute before the clocks go back in most of Europe.
const START: Timestamp = Timestamp::from_seconds(1_824_944_340);
/// Some change their clocks at that moment, some never do, one is a part of an hour away.
const ZONES: [&str; 5] = ["UTC", "Europe/Berlin", "europe/lisbon", "America/New_York", "Asia/Kathmandu"];

#[derive(Debug, Clone)]
enum Step {
    /// The clock moves by so many microseconds, also backwards.
    Clock(i64),
    Add(Rule),
    /// The schedule is one of those that were added, by its place.
    Pause(usize),
    Resume(usize),
    Update(usize, Change),
    Disable(usize),
    Delete(usize),
    RunNow(usize, Overlap),
    Materialize {
        budget: u32,
        batch: u32,
        seen: Vec<usize>,
        forbidden: bool,
        /// How many jobs are claimed behind it.
        claim: Option<u32>,
    },
    Realign,
    /// The cursor of a schedule becomes what a release has left by whose data the zone is so many quarters of an hour ahead
    /// of UTC, and the occurrence so many seconds away; by nobody knows which data when it has none.
    Leave(usize, Option<i8>, i64),
    /// By this process's data, or as if it had newer data that tell the same.
    Rezone(&'static str),
    Claim(u32),
    /// The job is one of those that there are, by its place.
    Answer(usize, Answer),
    Expire,
    GiveUp(usize),
    Recover,
}

#[derive(Debug, Clone)]
struct Rule {
    name: Option<usize>,
    when: When,
    zone: usize,
    start: Option<i64>,
    end: Option<i64>,
    jitter: u64,
    grace: Option<u64>,
    coalesce: Coalesce,
    overlap: OverlapPolicy,
    instances: u64,
    timeout: u64,
    begin: Begin,
}

#[derive(Debug, Clone)]
enum When {
    Every(u64),
    /// Every so many seconds of the clock; with fixed hours, only around the change.
    Cron(u64, &'static str),
    /// Every day at so many seconds after the change by the clocks of Berlin.
    Daily(u32),
}

impl When {
    fn trigger(&self) -> Trigger {
        match self {
            Self::Every(seconds) => Interval::new(*seconds).unwrap().into(),
            Self::Cron(seconds, hours) => Cron::with_seconds(&format!("*/{seconds} * {hours} * * *")).unwrap().into(),
            Self::Daily(second) => Calendar::daily(&format!("02:00:{second:02}")).unwrap().into(),
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Name(Patch<usize>),
    When(When),
    Zone(usize),
    End(Patch<i64>),
    Jitter(u64),
    Policy(Coalesce, OverlapPolicy, u64),
    Arguments(u8),
    Revision(u64),
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Well,
    Badly,
    Refused,
    Started,
}

fn place() -> impl Strategy<Value = usize> {
    0..64_usize
}

fn span() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => (1..4_i64).prop_map(|seconds| seconds * 1_000_000),
        3 => 0..5_000_000_i64,
        2 => (5..60_i64).prop_map(|seconds| seconds * 1_000_000),
        1 => -20_000_000..0_i64,
    ]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        3 => (1..6_u64).prop_map(When::Every),
        3 => (1..6_u64, prop::sample::select(vec!["*", "0-3", "1,2,21"])).prop_map(|(n, hours)| When::Cron(n, hours)),
        1 => (0..60_u32).prop_map(When::Daily),
    ]
}

fn coalesce() -> impl Strategy<Value = Coalesce> {
    prop::sample::select(Coalesce::ALL)
}

fn overlap_policy() -> impl Strategy<Value = OverlapPolicy> {
    prop::sample::select(OverlapPolicy::ALL)
}

fn rule() -> impl Strategy<Value = Rule> {
    let when = (
        prop::option::of(0..NAMES.len()),
        (when(), 0..ZONES.len()),
        prop::option::weighted(0.3, -20..20_i64),
        prop::option::weighted(0.3, 1..40_i64),
        0..3_u64,
    );
    let how = (prop::option::of(1..4_u64), coalesce(), overlap_policy(), 1..4_u64, 1..8_u64);
    let begin = prop_oneof![4 => Just(Begin::Active), 1 => Just(Begin::Paused)];
    (when, how, begin).prop_map(|((name, (when, zone), start, end, jitter), how, begin)| {
        let (grace, coalesce, overlap, instances, timeout) = how;
        Rule { name, when, zone, start, end, jitter, grace, coalesce, overlap, instances, timeout, begin }
    })
}

fn patch<T: Debug + Clone>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Patch<T>> {
    value.prop_flat_map(|value| prop_oneof![2 => Just(Patch::Set(value)), 1 => Just(Patch::Clear)])
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        patch(0..NAMES.len()).prop_map(Change::Name),
        when().prop_map(Change::When),
        (0..ZONES.len()).prop_map(Change::Zone),
        patch(0..60_i64).prop_map(Change::End),
        (0..3_u64).prop_map(Change::Jitter),
        (coalesce(), overlap_policy(), 1..4_u64).prop_map(|(one, other, n)| Change::Policy(one, other, n)),
        any::<u8>().prop_map(Change::Arguments),
        (1..4_u64).prop_map(Change::Revision),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let answer =
        prop::sample::select(vec![Answer::Well, Answer::Well, Answer::Badly, Answer::Refused, Answer::Started]);
    let claim = prop_oneof![2 => Just(None), 1 => (1..3_u32).prop_map(Some), 2 => (3..9_u32).prop_map(Some)];
    let pass = (0..5_u32, 1..5_u32, prop::collection::vec(place(), 0..4), prop::bool::weighted(0.03), claim);
    prop_oneof![
        8 => span().prop_map(Step::Clock),
        3 => rule().prop_map(Step::Add),
        1 => place().prop_map(Step::Pause),
        2 => place().prop_map(Step::Resume),
        2 => (place(), change()).prop_map(|(place, change)| Step::Update(place, change)),
        1 => place().prop_map(Step::Disable),
        1 => place().prop_map(Step::Delete),
        2 => (place(), prop_oneof![Just(Overlap::Respect), Just(Overlap::Force)])
            .prop_map(|(place, overlap)| Step::RunNow(place, overlap)),
        10 => pass.prop_map(|(budget, batch, seen, forbidden, claim)| {
            Step::Materialize { budget, batch, seen, forbidden, claim }
        }),
        1 => Just(Step::Realign),
        2 => (place(), prop::option::of(-8..20_i8), -30..60_i64)
            .prop_map(|(place, quarters, seconds)| Step::Leave(place, quarters, seconds)),
        1 => prop::sample::select(vec![Zone::data_version(), "9999"]).prop_map(Step::Rezone),
        4 => (1..5_u32).prop_map(Step::Claim),
        6 => (any::<prop::sample::Index>(), answer).prop_map(|(job, answer)| Step::Answer(job.index(8), answer)),
        2 => Just(Step::Expire),
        1 => any::<prop::sample::Index>().prop_map(|job| Step::GiveUp(job.index(8))),
        1 => Just(Step::Recover),
    ]
}

/// The rule as a schedule that may be added, where it makes one.
fn valid(now: Timestamp, rule: &Rule) -> Option<ValidSchedule> {
    let at = |seconds: i64| Timestamp::from_micros(now.as_micros() + seconds * 1_000_000);
    let new = NewSchedule::new("dummy", "echo", rule.when.trigger()).timezone(ZONES[rule.zone]);
    let most_jitter = if let When::Every(seconds) = rule.when { seconds - 1 } else { 2 };
    let new = NewSchedule {
        name: rule.name.map(|name| NAMES[name].to_owned()),
        workers: Workers::One("w1".to_owned()),
        kwargs: Json::of(&serde_json::json!({ "zone": rule.zone })).unwrap(),
        timeout: rule.timeout,
        start_at: rule.start.map(at),
        end_at: rule.end.map(at),
        coalesce: rule.coalesce,
        overlap_policy: rule.overlap,
        max_instances: rule.instances,
        misfire_grace_seconds: rule.grace,
        jitter_seconds: rule.jitter.min(most_jitter),
        begin: rule.begin,
        ..new
    };
    Limits::default().check_schedule(now, new).ok()
}

fn patch_of(now: Timestamp, change: &Change) -> SchedulePatch {
    let none = SchedulePatch::default();
    let named = |patch: &Patch<usize>| match patch {
        Patch::Set(name) => Patch::Set(NAMES[*name].to_owned()),
        Patch::Clear => Patch::Clear,
        Patch::Keep => Patch::Keep,
    };
    match change {
        Change::Name(name) => SchedulePatch { name: named(name), ..none },
        Change::When(when) => SchedulePatch { trigger: Some(when.trigger()), jitter_seconds: Patch::Clear, ..none },
        Change::Zone(zone) => SchedulePatch { timezone: Patch::Set(ZONES[*zone].to_owned()), ..none },
        Change::End(Patch::Set(seconds)) => {
            let end_at = Timestamp::from_micros(now.as_micros() + seconds * 1_000_000);
            SchedulePatch { end_at: Patch::Set(end_at), ..none }
        }
        Change::End(_) => SchedulePatch { end_at: Patch::Clear, ..none },
        Change::Jitter(seconds) => SchedulePatch { jitter_seconds: Patch::Set(*seconds), ..none },
        Change::Policy(coalesce, overlap_policy, instances) => SchedulePatch {
            coalesce: Patch::Set(*coalesce),
            overlap_policy: Patch::Set(*overlap_policy),
            max_instances: Patch::Set(*instances),
            ..none
        },
        Change::Arguments(number) => SchedulePatch {
            args: Patch::Set(Json::of(&[number]).unwrap()),
            kwargs: if *number % 2 == 0 { Patch::Keep } else { Patch::Clear },
            ..none
        },
        Change::Revision(revision) => {
            SchedulePatch { revision: Some(*revision), timeout: Patch::Set(*revision), ..none }
        }
    }
}

/// One of the two stores, and the names of the jobs that each store gave an identity of its own.
struct Side<S> {
    store: S,
    by_hand: Vec<JobId>,
}

impl<S: Store + ScheduleStore> Side<S> {
    fn new(store: S) -> Self {
        Self { store, by_hand: Vec::new() }
    }

    /// All that a store says, with names for identities that differ.
    fn told<T: Debug, E: Display>(&self, outcome: Result<T, E>) -> String {
        self.named(match outcome {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("error: {error}"),
        })
    }

    fn named(&self, text: String) -> String {
        let names = self.by_hand.iter().enumerate();
        names.fold(text, |text, (number, id)| text.replace(id.as_str(), &format!("by-hand-{number}")))
    }

    /// The jobs, the newest first.
    async fn jobs(&self) -> Vec<Job> {
        self.store.job_list(&JobFilter { limit: 1000, ..JobFilter::default() }).await.unwrap().jobs
    }

    async fn run_now(&mut self, now: Timestamp, id: &ScheduleId, overlap: Overlap) -> String {
        let outcome = self.store.schedule_run_now(now, id, overlap, &Limits::default()).await;
        if let Ok(RunNow { job, .. }) = &outcome {
            self.by_hand.push(job.uuid.clone());
        }
        self.told(outcome)
    }

    async fn answer(&self, now: Timestamp, job: &Job, answer: Answer) -> String {
        let result = |text: &str| ReplyKind::Result { worker: "w1".to_owned(), result: Json::parse(text).unwrap() };
        let kind = match answer {
            Answer::Well => result("{}"),
            Answer::Badly => result(r#"{"failed":true}"#),
            Answer::Refused => ReplyKind::Refused { errors: vec!["nobody".to_owned()] },
            Answer::Started => ReplyKind::Stored { worker: "w1".to_owned() },
        };
        self.told(self.store.job_apply(now, RetryPolicy::default(), vec![Reply::new(job.uuid.clone(), kind)]).await)
    }

    /// Carries one step out, and tells all that the store says of it.
    async fn carry_out(&mut self, now: Timestamp, step: &Step, added: &[ScheduleId]) -> String {
        let limits = Limits::default();
        let store = &self.store;
        let of = |place: &usize| added.get(*place % added.len().max(1));
        match step {
            Step::Clock(_) | Step::Add(_) | Step::Leave(..) => String::new(),
            Step::Materialize { budget, batch, seen, forbidden, claim } => {
                let seen: Vec<ScheduleId> = seen.iter().filter_map(|place| of(place).cloned()).collect();
                let forbidden_tasks = if *forbidden { vec!["dummy:echo".to_owned()] } else { Vec::new() };
                let limits = Limits { forbidden_tasks, ..limits };
                let (budget_left, batch) = (*budget, *batch);
                let claim = claim.map(|limit| Claim::new(now, &Scope::All, limit));
                let claim = claim.as_ref();
                let request = Materialize { now, limits: &limits, budget_left, batch, seen: &seen, claim };
                self.told(store.schedule_materialize_due(request).await)
            }
            Step::Realign => self.told(store.schedule_realign(now).await),
            Step::Rezone(data) => self.told(store.schedule_rezone(data).await),
            Step::Claim(limit) => self.told(store.job_claim(Claim::new(now, &Scope::All, *limit)).await),
            Step::Expire => self.told(store.job_expire_due(now, &Scope::All, Overdue::All).await),
            Step::Recover => self.told(store.job_recover(now, &Scope::All).await),
            Step::Answer(place, answer) => match self.jobs().await.get(*place) {
                Some(job) => self.answer(now, job, *answer).await,
                None => String::new(),
            },
            Step::GiveUp(place) => {
                let jobs: Vec<JobId> = self.jobs().await.get(*place).map(|job| job.uuid.clone()).into_iter().collect();
                self.told(store.job_give_up(now, &jobs, "no link").await)
            }
            managed => match managed_place(managed).and_then(|place| of(&place)) {
                Some(id) => self.manage(now, managed, id).await,
                None => String::new(),
            },
        }
    }

    async fn manage(&mut self, now: Timestamp, step: &Step, id: &ScheduleId) -> String {
        let (store, limits) = (&self.store, Limits::default());
        match step {
            Step::Pause(_) => self.told(store.schedule_pause(now, id).await),
            Step::Resume(_) => self.told(store.schedule_resume(now, id, &limits).await),
            Step::Update(_, change) => self.told(store.schedule_update(now, id, &patch_of(now, change), &limits).await),
            Step::Disable(_) => self.told(store.schedule_disable(now, &id.clone().into()).await),
            Step::Delete(_) => self.told(store.schedule_delete(now, &id.clone().into()).await),
            Step::RunNow(_, overlap) => self.run_now(now, id, *overlap).await,
            other => unreachable!("{other:?} is about no schedule"),
        }
    }

    async fn add(&self, valid: &ValidSchedule) -> (Option<Schedule>, String) {
        let added: Result<Schedule, ScheduleError> = self.store.schedule_add(valid).await;
        (added.as_ref().ok().cloned(), self.told(added))
    }

    /// Everything that a store holds.
    async fn contents(&self, added: &[ScheduleId]) -> Vec<String> {
        let store = &self.store;
        let paused = ScheduleFilter { states: vec![ScheduleState::Paused], limit: 1, ..ScheduleFilter::default() };
        let mut contents = vec![
            self.told(store.stats().await),
            self.told(store.schedule_next_due().await),
            self.told(store.schedule_list(&ScheduleFilter::default()).await),
            self.told(store.schedule_list(&paused).await),
            self.told(store.job_next_due(&Scope::All).await),
            self.told(store.job_release_due(START, &Scope::All, Link::Up).await),
        ];
        let ids = added.iter().cloned().map(ScheduleKey::Id);
        for key in ids.chain(NAMES.iter().map(|name| ScheduleKey::parse(name))) {
            let detail = store.schedule_detail(&key).await.unwrap();
            contents.push(serde_json::to_string(&detail).unwrap());
        }
        for job in self.jobs().await {
            let detail = serde_json::to_string(&store.job_detail(&job.uuid).await.unwrap()).unwrap();
            let events = serde_json::to_string(&store.event_list(&job.uuid, 0, 1000).await.unwrap()).unwrap();
            contents.push(self.named(format!("{detail} {events}")));
        }
        contents
    }
}

/// What another release has left of a schedule by the clocks of a zone. None: it is none, or it has no next occurrence.
fn left(now: Timestamp, schedule: &Schedule, quarters: Option<i8>, seconds: i64) -> Option<LeftCursor> {
    schedule.next.filter(|_| schedule.trigger.is_zone_bound() && schedule.deleted_at.is_none())?;
    let next = Timestamp::from_micros(now.floor_second().as_micros() + seconds * 1_000_000);
    Some(LeftCursor {
        zone_data: quarters.map(|_| "2020a".to_owned()),
        zone_offset: quarters.map(|quarters| i32::from(quarters) * 900),
        next: schedule.upcoming(next),
        decided_until: schedule.decided_until,
    })
}

/// The place of the schedule that a step is about.
fn managed_place(step: &Step) -> Option<usize> {
    match step {
        Step::Pause(place) | Step::Resume(place) | Step::Update(place, _) => Some(*place),
        Step::Disable(place) | Step::Delete(place) | Step::RunNow(place, _) => Some(*place),
        _ => None,
    }
}

async fn check(steps: &[Step]) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { durability: Durability::Normal, ..StoreOptions::default() };
    let path = folder.path().join("jobs.db");
    let mut sqlite = Side::new(SqliteStore::open(path.clone(), &options).await.unwrap());
    let mut memory = Side::new(MemoryStore::new());
    let (mut now, mut added) = (START, Vec::new());
    for (number, step) in steps.iter().enumerate() {
        if let Step::Clock(span) = step {
            now = Timestamp::from_micros(now.as_micros() + span);
        }
        if let Step::Add(rule) = step
            && let Some(valid) = valid(now, rule)
        {
            let ((schedule, one), (_, other)) = (sqlite.add(&valid).await, memory.add(&valid).await);
            assert_eq!(one, other, "step {number}: {step:?}");
            added.extend(schedule.map(|schedule| schedule.uuid));
        }
        if let Step::Leave(place, quarters, seconds) = step
            && let Some(id) = added.get(*place % added.len().max(1))
        {
            let found = sqlite.store.schedule_find(&id.clone().into()).await.unwrap().unwrap().schedule;
            if let Some(cursor) = left(now, &found, *quarters, *seconds) {
                common::leave(&path, id, cursor.clone()).await;
                memory.store.schedule_leave(id, cursor);
            }
        }
        let one = sqlite.carry_out(now, step, &added).await;
        let other = memory.carry_out(now, step, &added).await;
        assert_eq!(one, other, "step {number}: {step:?}");
    }
    assert_eq!(sqlite.contents(&added).await, memory.contents(&added).await);
    sqlite.store.close().await;
}

fn run(steps: &[Step]) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check(steps));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_agree(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, failure_persistence: None, ..ProptestConfig::default() })]

    /// One long life.
    #[test]
    #[ignore = "takes minutes; the short lives above are of the same kind"]
    fn both_stores_agree_after_ten_thousand_steps(steps in prop::collection::vec(step(), 10_000)) {
        run(&steps);
    }
}
