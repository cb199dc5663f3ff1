//! Schedules as callers manage them: added, found, listed, changed, run by hand.

use norfab_model::{
    Begin, Claim, Coalesce, Effect, JobFilter, JobStatus, Link, Listed, NewSchedule, Origin, Overdue, Overlap,
    OverlapPolicy, Patch, ScheduleCounters, ScheduleError, ScheduleFilter, ScheduleId, ScheduleKey, SchedulePatch,
    ScheduleState, ScheduleStore, Scope, Store, ValidationError, Workers,
};

use super::Database;
use super::support::{
    MICRO, START, add_schedule, at, claim, detail, every, find, json, limits, messages, pass, result, schedule, tell,
    trigger, valid_schedule,
};

pub(super) async fn a_schedule_comes_back_to_the_letter(database: &impl Database) {
    let store = database.open().await;
    let new = every(300)
        .name("collect-clock")
        .workers(Workers::List(vec!["w1".to_owned(), "w2".to_owned()]))
        .args(json("[ 1.50 ]"))
        .kwargs(json(r#"{ "commands": ["show clock"], "n": 123456789012345678901 }"#))
        .timeout(60)
        .timezone("europe/berlin")
        .start_at(at(1000))
        .end_at(at(100_000))
        .coalesce(Coalesce::All)
        .overlap_policy(OverlapPolicy::Allow)
        .max_instances(7)
        .grace(30)
        .jitter(299);
    let added = add_schedule(&store, START, new).await;
    let found = store.schedule_detail(&ScheduleKey::Name("collect-clock".to_owned())).await.expect("found");
    let found = found.expect("it is there");
    assert_eq!((&found.view.schedule, found.view.active_jobs), (&added, 0));
    assert_eq!(found.args.as_str(), "[ 1.50 ]");
    assert_eq!(found.kwargs.as_str(), r#"{ "commands": ["show clock"], "n": 123456789012345678901 }"#);
    assert_eq!(added.next.map(|next| next.occurrence), Some(at(1000)));
    let plain = add_schedule(&store, at(1), NewSchedule { begin: Begin::Paused, ..every(5) }).await;
    assert_eq!((schedule(&store, &plain.uuid).await, plain.state), (plain.clone(), ScheduleState::Paused));
    store.close().await;
    assert_eq!(schedule(&database.open().await, &added.uuid).await, added, "after a restart");
}

pub(super) async fn a_name_is_taken_once(database: &impl Database) {
    let store = database.open().await;
    let first = add_schedule(&store, START, every(60).name("nightly")).await;
    let again = valid_schedule(at(1), every(5).name("nightly"));
    match store.schedule_add(&again).await {
        Err(ScheduleError::NameTaken { existing }) => assert_eq!(*existing, first),
        other => panic!("{other:?}"),
    }
    add_schedule(&store, START, every(60)).await;
    let other = add_schedule(&store, START, every(60).name("other")).await;
    let patch = SchedulePatch { name: Patch::Set("nightly".to_owned()), ..SchedulePatch::default() };
    let renamed = store.schedule_update(at(2), &other.uuid, &patch, &limits()).await;
    assert!(matches!(renamed, Err(ScheduleError::NameTaken { existing }) if existing.uuid == first.uuid));
    assert_eq!(schedule(&store, &other.uuid).await, other, "nothing of it happened");
    store.schedule_update(at(2), &first.uuid, &patch, &limits()).await.expect("its own name");
    store.schedule_delete(at(3), &first.uuid.clone().into()).await.expect("deleted");
    store.schedule_update(at(4), &other.uuid, &patch, &limits()).await.expect("the name is free");
    let found = store.schedule_find(&ScheduleKey::parse("nightly")).await.expect("found").expect("it is there");
    assert_eq!(found.schedule.uuid, other.uuid);
}

pub(super) async fn the_same_schedule_is_added_once(database: &impl Database) {
    let store = database.open().await;
    let valid = valid_schedule(START, every(60));
    store.schedule_add(&valid).await.expect("added");
    let again = store.schedule_add(&valid).await;
    assert!(matches!(again, Err(ScheduleError::Exists(id)) if id == valid.schedule().uuid));
}

pub(super) async fn an_unknown_schedule_is_none_or_an_error(database: &impl Database) {
    let store = database.open().await;
    let nobody = ScheduleId::new("b91ffcf2623a43f4a28e478b65c0647a").expect("an identity");
    for key in [ScheduleKey::Id(nobody.clone()), ScheduleKey::Name("nobody".to_owned())] {
        assert_eq!(store.schedule_find(&key).await.expect("answers"), None);
        assert_eq!(store.schedule_detail(&key).await.expect("answers"), None);
    }
    let patch = SchedulePatch::default();
    let unknown = |error: ScheduleError| matches!(error, ScheduleError::Unknown(ScheduleKey::Id(id)) if id == nobody);
    assert!(unknown(store.schedule_pause(START, &nobody).await.expect_err("unknown")));
    assert!(unknown(store.schedule_resume(START, &nobody, &limits()).await.expect_err("unknown")));
    assert!(unknown(store.schedule_update(START, &nobody, &patch, &limits()).await.expect_err("unknown")));
    assert!(unknown(store.schedule_disable(START, &nobody.clone().into()).await.expect_err("unknown")));
    assert!(unknown(store.schedule_delete(START, &nobody.clone().into()).await.expect_err("unknown")));
    let run = store.schedule_run_now(START, &nobody, Overlap::Force, &limits()).await;
    assert!(unknown(run.expect_err("unknown")));
}

pub(super) async fn a_pause_is_passed_over(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60)).await.uuid;
    let paused = store.schedule_pause(at(30), &id).await.expect("it is active");
    assert_eq!((paused.schedule.state, paused.effect), (ScheduleState::Paused, Effect::Changed));
    assert_eq!(schedule(&store, &id).await, paused.schedule);
    let again = store.schedule_pause(at(31), &id).await.expect("no change");
    assert_eq!((&again.schedule, again.effect), (&paused.schedule, Effect::None));
    assert_eq!(pass(&store, at(200)).await.outcomes, []);
    let resumed = store.schedule_resume(at(200), &id, &limits()).await.expect("it is paused");
    assert_eq!((resumed.passed_over, resumed.schedule.counters.passed_over), (3, 3));
    assert_eq!(resumed.schedule.next.map(|next| next.occurrence), Some(at(240)));
    assert_eq!(schedule(&store, &id).await, resumed.schedule);
    assert_eq!(store.schedule_next_due().await.expect("answers"), Some(at(240)));
}

pub(super) async fn a_change_of_timing_moves_the_cursor_at_once(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).kwargs(json(r#"{"a":1}"#))).await.uuid;
    let patch = SchedulePatch { trigger: Some(trigger(7)), ..SchedulePatch::default() };
    let updated = store.schedule_update(at(65), &id, &patch, &limits()).await.expect("updated");
    assert_eq!(updated.schedule.next.map(|next| next.due), Some(at(70)));
    assert_eq!((updated.passed_over, updated.schedule.revision), (1, 2));
    assert_eq!(schedule(&store, &id).await, updated.schedule);
    let kept = store.schedule_detail(&ScheduleKey::Id(id.clone())).await.expect("found").expect("it is there");
    assert_eq!(kept.kwargs.as_str(), r#"{"a":1}"#);
    let patch = SchedulePatch {
        revision: Some(2),
        kwargs: Patch::Set(json(r#"{"b":2}"#)),
        args: Patch::Set(json("[3]")),
        trigger: Some(trigger(7)),
        ..SchedulePatch::default()
    };
    let again = store.schedule_update(at(75), &id, &patch, &limits()).await.expect("updated");
    assert_eq!((again.schedule.next, again.passed_over), (updated.schedule.next, 0), "the same timing");
    let changed = store.schedule_detail(&ScheduleKey::Id(id.clone())).await.expect("found").expect("it is there");
    assert_eq!((changed.kwargs.as_str(), changed.args.as_str()), (r#"{"b":2}"#, "[3]"));
    let stale = store.schedule_update(at(76), &id, &patch, &limits()).await;
    assert!(matches!(stale, Err(ScheduleError::Stale { expected: 2, actual: 3, .. })));
}

pub(super) async fn a_call_that_waited_for_its_turn_moves_nothing_back(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60)).await.uuid;
    store.schedule_run_now(at(58), &id, Overlap::Respect, &limits()).await.expect("nothing runs");
    let skipped = pass(&store, at(60)).await.outcomes.remove(0).outcome;
    assert_eq!((skipped.created, skipped.skipped), (0, 1));
    store.job_expire_due(at(10_000), &Scope::All, Overdue::All).await.expect("it ends");
    let late = at(60).saturating_sub(MICRO);
    let patch = SchedulePatch { end_at: Patch::Set(at(600)), ..SchedulePatch::default() };
    let updated = store.schedule_update(late, &id, &patch, &limits()).await.expect("updated");
    assert_eq!((updated.schedule.next.map(|next| next.due), updated.passed_over), (Some(at(120)), 0));
    assert_eq!(schedule(&store, &id).await, updated.schedule);
    store.schedule_pause(late, &id).await.expect("it is active");
    let resumed = store.schedule_resume(late, &id, &limits()).await.expect("it is paused");
    assert_eq!((resumed.schedule.next.map(|next| next.due), resumed.passed_over), (Some(at(120)), 0));
    assert_eq!(pass(&store, at(61)).await.outcomes, [], "what was decided is decided");
}

pub(super) async fn what_is_deleted_is_history(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).name("nightly")).await.uuid;
    let made = pass(&store, at(60)).await.created;
    let deleted = store.schedule_delete(at(61), &id.clone().into()).await.expect("deleted");
    let deleted = deleted.managed().expect("it can be read");
    assert_eq!((deleted.schedule.state, deleted.schedule.deleted_at), (ScheduleState::Disabled, Some(at(61))));
    assert_eq!(schedule(&store, &id).await, deleted.schedule, "found by its identity");
    assert_eq!(store.schedule_find(&ScheduleKey::parse("nightly")).await.expect("answers"), None);
    assert_eq!(store.schedule_list(&ScheduleFilter::default()).await.expect("listed").schedules, []);
    assert!(matches!(store.schedule_delete(at(62), &id.clone().into()).await, Err(ScheduleError::Deleted { .. })));
    assert!(matches!(store.schedule_resume(at(62), &id, &limits()).await, Err(ScheduleError::Deleted { .. })));
    assert_eq!(pass(&store, at(1000)).await.created, []);
    claim(&store, at(62), &made[0].uuid).await;
    tell(&store, at(63), &made[0].uuid, vec![result("w1", r#"{"failed":true}"#)]).await;
    let job = find(&store, &made[0].uuid).await;
    assert_eq!((job.status, job.schedule_id.as_ref()), (JobStatus::Completed, Some(&id)));
    assert_eq!(schedule(&store, &id).await.counters.failed_runs, 1, "its end is counted still");
    let filter = JobFilter { schedule: Some(id), ..JobFilter::default() };
    assert_eq!(store.job_list(&filter).await.expect("listed").jobs.len(), 1);
    add_schedule(&store, at(64), every(60).name("nightly")).await;
}

pub(super) async fn history_outlives_every_call(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).timeout(3000)).await.uuid;
    let ended = pass(&store, at(60)).await.created.remove(0).uuid;
    claim(&store, at(60), &ended).await;
    tell(&store, at(61), &ended, vec![result("w1", r#"{"result":"kept","failed":false}"#)]).await;
    let running = pass(&store, at(120)).await.created.remove(0).uuid;
    claim(&store, at(120), &running).await;
    let history = async || (detail(&store, &ended).await, detail(&store, &running).await);
    let before = history().await;
    let patch = SchedulePatch {
        service: Some("other".to_owned()),
        timeout: Patch::Set(1),
        kwargs: Patch::Set(json(r#"{"k":"new"}"#)),
        trigger: Some(trigger(7)),
        ..SchedulePatch::default()
    };
    store.schedule_update(at(121), &id, &patch, &limits()).await.expect("updated");
    assert_eq!(history().await, before, "an update is for what is to come");
    store.schedule_pause(at(122), &id).await.expect("paused");
    store.schedule_resume(at(123), &id, &limits()).await.expect("resumed");
    assert_eq!(history().await, before, "a pause stops nothing");
    store.schedule_disable(at(124), &id.clone().into()).await.expect("disabled");
    assert_eq!(history().await, before, "nor does a disabled schedule");
    store.schedule_delete(at(125), &id.clone().into()).await.expect("deleted");
    assert_eq!(history().await, before, "nor a deleted one");
    tell(&store, at(126), &running, vec![result("w1", r#"{"failed":false}"#)]).await;
    assert_eq!(find(&store, &running).await.status, JobStatus::Completed);
    let filter = JobFilter { schedule: Some(id), ..JobFilter::default() };
    assert_eq!(store.job_list(&filter).await.expect("listed").jobs.len(), 2);
}

pub(super) async fn what_is_disabled_makes_nothing(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60)).await.uuid;
    store.schedule_disable(at(10), &id.clone().into()).await.expect("disabled");
    assert_eq!(pass(&store, at(100)).await.created, []);
    assert_eq!(store.schedule_next_due().await.expect("answers"), None);
    assert!(matches!(store.schedule_pause(at(101), &id).await, Err(ScheduleError::Refused { .. })));
    let run = store.schedule_run_now(at(101), &id, Overlap::Force, &limits()).await;
    assert!(matches!(run, Err(ScheduleError::Refused { .. })));
    let resumed = store.schedule_resume(at(130), &id, &limits()).await.expect("it is valid");
    assert_eq!((resumed.schedule.state, resumed.passed_over), (ScheduleState::Active, 2));
}

pub(super) async fn run_by_hand_it_takes_no_occurrence(database: &impl Database) {
    let store = database.open().await;
    let new =
        every(3600).kwargs(json(r#"{"x":"y"}"#)).timeout(60).overlap_policy(OverlapPolicy::Allow).max_instances(5);
    let id = add_schedule(&store, START, new).await.uuid;
    let mut jobs = Vec::new();
    for second in [1200, 1500] {
        let run = store.schedule_run_now(at(second), &id, Overlap::Respect, &limits()).await.expect("there is room");
        assert_eq!((run.job.status, run.job.scheduled_for), (JobStatus::New, None));
        assert_eq!((run.job.origin, run.job.schedule_id.as_ref()), (Origin::RunNow, Some(&id)));
        assert_eq!(run.job.deadline, Some(at(second + 60)));
        let found = detail(&store, &run.job.uuid).await;
        assert_eq!((&found.job, found.kwargs.as_str()), (&run.job, r#"{"x":"y"}"#));
        assert_eq!(schedule(&store, &id).await, run.schedule);
        jobs.push(run.job.uuid);
    }
    assert_ne!(jobs[0], jobs[1]);
    let hourly = pass(&store, at(3600)).await.created;
    assert_eq!(hourly.iter().map(|job| job.scheduled_for).collect::<Vec<_>>(), [Some(at(3600))]);
    let later = store.schedule_run_now(at(3700), &id, Overlap::Respect, &limits()).await.expect("there is room");
    assert_eq!(later.schedule.counters, ScheduleCounters { total_runs: 4, ..ScheduleCounters::default() });
    assert_eq!(later.schedule.next.map(|next| next.due), Some(at(7200)));
}

pub(super) async fn run_by_hand_it_keeps_to_its_overlap_policy(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).name("nightly")).await.uuid;
    let running = pass(&store, at(60)).await.created.remove(0);
    match store.schedule_run_now(at(70), &id, Overlap::Respect, &limits()).await {
        Err(ScheduleError::Overlap { job, since, .. }) => assert_eq!((job, since), (running.uuid.clone(), at(60))),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.stats().await.expect("counted").total_jobs, 1, "nothing was added");
    store.schedule_run_now(at(70), &id, Overlap::Force, &limits()).await.expect("it is forced");
    let view = store.schedule_find(&ScheduleKey::Id(id.clone())).await.expect("found").expect("it is there");
    assert_eq!((view.active_jobs, view.schedule.counters.total_runs), (2, 2));
    store.schedule_pause(at(71), &id).await.expect("it is active");
    store.job_expire_due(at(10_000), &Scope::All, Overdue::All).await.expect("they end");
    store.schedule_run_now(at(10_000), &id, Overlap::Respect, &limits()).await.expect("also while it is paused");
}

pub(super) async fn a_forbidden_task_is_not_run_by_hand(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60)).await.uuid;
    let limits = norfab_model::Limits { forbidden_tasks: vec!["dummy:*".to_owned()], ..limits() };
    let run = store.schedule_run_now(at(1), &id, Overlap::Force, &limits).await;
    assert!(matches!(run, Err(ScheduleError::Invalid(ValidationError::Forbidden { .. }))), "{run:?}");
    assert_eq!(store.stats().await.expect("counted").total_jobs, 0);
}

pub(super) async fn schedules_are_listed_page_by_page(database: &impl Database) {
    let store = database.open().await;
    let mut added = Vec::new();
    for number in 0..7 {
        let new = every(60 + number);
        let new = if number % 2 == 0 { new.paused() } else { new };
        let service = if number < 4 { "dummy" } else { "other" };
        added.push(add_schedule(&store, START, NewSchedule { service: service.to_owned(), ..new }).await.uuid);
    }
    let gone = added.remove(3);
    store.schedule_delete(at(1), &gone.clone().into()).await.expect("deleted");
    let mut filter = ScheduleFilter { limit: 2, ..ScheduleFilter::default() };
    let mut listed = Vec::new();
    loop {
        let page = store.schedule_list(&filter).await.expect("listed");
        assert!(page.schedules.len() <= 2 && page.unreadable.is_empty());
        listed.extend(page.schedules.into_iter().map(|view| view.schedule.uuid));
        filter.cursor = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(listed, added);
    let count = async |filter: ScheduleFilter| store.schedule_list(&filter).await.expect("listed").schedules.len();
    let all = ScheduleFilter::default();
    assert_eq!(count(ScheduleFilter { states: vec![ScheduleState::Paused], ..all.clone() }).await, 4);
    assert_eq!(count(ScheduleFilter { service: Some("other".to_owned()), ..all.clone() }).await, 3);
    assert_eq!(count(ScheduleFilter { task: Some("other".to_owned()), ..all.clone() }).await, 0);
    let deleted = ScheduleFilter { listed: Listed::Deleted, ..ScheduleFilter::default() };
    let history = store.schedule_list(&deleted).await.expect("listed").schedules;
    assert_eq!(history.iter().map(|view| &view.schedule.uuid).collect::<Vec<_>>(), [&gone]);
    let both = vec![ScheduleState::Paused, ScheduleState::Active];
    assert_eq!(count(ScheduleFilter { states: both, service: Some("dummy".to_owned()), ..all }).await, 3);
}

pub(super) async fn unfinished_jobs_are_counted(database: &impl Database) {
    let store = database.open().await;
    let new = every(10).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(10);
    let busy = add_schedule(&store, START, new).await.uuid;
    let idle = add_schedule(&store, START, every(1000)).await.uuid;
    let made = pass(&store, at(30)).await.created;
    assert_eq!(made.len(), 3);
    claim(&store, at(31), &made[0].uuid).await;
    tell(&store, at(31), &made[0].uuid, vec![result("w1", "{}")]).await;
    claim(&store, at(31), &made[1].uuid).await;
    let page = store.schedule_list(&ScheduleFilter::default()).await.expect("listed");
    let counts: Vec<_> = page.schedules.iter().map(|view| (view.schedule.uuid.clone(), view.active_jobs)).collect();
    assert_eq!(counts, [(busy, 2), (idle, 0)]);
}

pub(super) async fn a_change_of_a_schedule_is_seen_by_others(database: &impl Database) {
    let (ours, theirs) = (database.open().await, database.open().await);
    let id = add_schedule(&ours, START, every(60)).await.uuid;
    let mark = ours.change_mark().await.expect("a mark");
    schedule(&theirs, &id).await;
    assert_eq!(ours.change_mark().await.expect("a mark"), mark);
    theirs.schedule_pause(at(1), &id).await.expect("it is active");
    assert_ne!(ours.change_mark().await.expect("a mark"), mark);
    assert_eq!(schedule(&ours, &id).await.state, ScheduleState::Paused);
}

pub(super) async fn jobs_of_schedules_live_as_others_do(database: &impl Database) {
    let store = database.open().await;
    let id = add_schedule(&store, START, every(60).kwargs(json(r#"{"k":[1]}"#))).await.uuid;
    let job = pass(&store, at(60)).await.created.remove(0);
    let claimed = store.job_claim(Claim::new(at(60), &Scope::All, 10)).await.expect("claimed");
    assert_eq!((claimed.posts[0].job.clone(), claimed.posts[0].kwargs.as_str()), (job.uuid.clone(), r#"{"k":[1]}"#));
    tell(&store, at(61), &job.uuid, vec![result("w1", r#"{"failed":false}"#)]).await;
    let done = find(&store, &job.uuid).await;
    assert_eq!((done.status, done.schedule_id.as_ref()), (JobStatus::Completed, Some(&id)));
    assert_eq!(store.job_release_due(at(62), &Scope::All, Link::Up).await.expect("looks").released, []);
    assert!(messages(&store, &job.uuid).await.is_empty());
    let filter = JobFilter { schedule: Some(id), ..JobFilter::default() };
    assert_eq!(store.job_list(&filter).await.expect("listed").jobs, [done]);
}
