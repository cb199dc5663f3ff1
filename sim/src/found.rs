//! The shortest scripts of what the simulation found: each broke a rule once.

use norfab_model::Workers;

use crate::gate::{Charge, Place};
use crate::script::{NewOp, Noise, Numbers, Op, Rule, Script, Step, Task};
use crate::{Keep, Kind, play};

const NUMBERS: Numbers =
    Numbers { holdtime: 6000, gone: 30, window: 500, catch_up: 100, poll_batch: 500, reply_batch: 1000, watch: 500 };

#[track_caller]
fn check(steps: Vec<Step>) {
    check_with(1, NUMBERS, steps);
}

/// The worker that is chosen for a job follows from the seed.
#[track_caller]
fn check_with(seed: u64, numbers: Numbers, steps: Vec<Step>) {
    let script = Script { seed, noise: Noise::NONE, numbers, steps: steps.into_iter().enumerate().collect() };
    for kind in [Kind::Memory, Kind::Sqlite] {
        check_script(kind, &script);
    }
}

#[track_caller]
fn check_script(kind: Kind, script: &Script) {
    let outcome = play(kind, script, Keep::Lines);
    assert_eq!(outcome.violation, None, "{kind:?}\n{script}{}", outcome.lines.join("\n"));
}

fn job(task: Task, workers: Workers) -> NewOp {
    NewOp { task, workers, timeout: 180, at: None }
}

fn one(name: &str) -> Workers {
    Workers::One(name.to_owned())
}

fn fails(place: Place, times: u32) -> Charge {
    Charge::Fail { place, times, what: "the disk is full" }
}

#[test]
fn the_clock_leaps_while_the_link_is_down_and_goes_back() {
    check(vec![
        Step::Own(Op::Add(job(Task::Slow, one("w2")))),
        Step::Pass(2000),
        Step::BrokerDies,
        Step::Pass(2000),
        Step::Clock(60_000),
        Step::Pass(100),
        Step::Clock(-600_000),
        Step::BrokerStarts,
        Step::Pass(10_000),
    ]);
}

#[test]
fn the_clock_goes_back_while_the_store_fails() {
    for calls in 0..8 {
        check(vec![
            Step::Pass(5000),
            Step::Arm(calls, fails(Place::Before, 4)),
            Step::Own(Op::Add(NewOp { at: Some((30, None)), ..job(Task::Quick, one("w1")) })),
            Step::Clock(-7_200_000),
            Step::Own(Op::Create(Rule {
                job: job(Task::Quick, Workers::Any),
                interval: 20,
                jitter: 0,
                grace: None,
                coalesce: 0,
                instances: None,
                start: None,
                end: None,
                paused: false,
            })),
        ]);
    }
}

#[test]
fn a_claim_is_committed_and_reported_as_failed() {
    for calls in 0..8 {
        check(vec![
            Step::Pass(5000),
            Step::Arm(calls, fails(Place::After, 1)),
            Step::Own(Op::Add(job(Task::Quick, one("w1")))),
            Step::Pass(40_000),
        ]);
    }
}

#[test]
fn the_client_dies_between_the_post_and_the_202_and_the_worker_is_away_then() {
    for calls in 0..10 {
        check(vec![
            Step::Pass(5000),
            Step::Arm(calls, Charge::Crash(Place::After)),
            Step::Own(Op::Add(job(Task::Quick, Workers::List(vec!["w1".into(), "w3".into()])))),
            Step::WorkerPauses(0),
            Step::Pass(10_000),
            Step::Start,
            Step::Pass(5000),
        ]);
    }
}

#[test]
fn the_question_for_the_workers_is_lost() {
    check(vec![
        Step::Own(Op::Add(job(Task::Quick, one("w1")))),
        Step::Pass(5000),
        Step::Cut,
        Step::Own(Op::Add(job(Task::Quick, Workers::Any))),
        Step::Pass(2000),
    ]);
}

#[test]
fn a_leap_of_the_clock_makes_a_worker_that_went_look_long_gone() {
    let any = || Step::Own(Op::Add(job(Task::Slow, Workers::Any)));
    check(vec![
        Step::Pass(5000),
        any(),
        any(),
        any(),
        Step::Pass(5),
        Step::WorkerPauses(0),
        Step::WorkerPauses(1),
        Step::Pass(11_000),
        Step::Clock(100_000),
        Step::Pass(3000),
        Step::WorkerResumes(0),
        Step::WorkerResumes(1),
    ]);
}

#[test]
fn a_small_step_of_the_clock_makes_a_worker_look_gone_for_longer() {
    let numbers =
        Numbers { holdtime: 1500, gone: 30, window: 4, catch_up: 1, poll_batch: 1, reply_batch: 1, watch: 1000 };
    let steps = vec![
        Step::WorkerPauses(2),
        Step::Own(Op::Add(job(Task::Quick, Workers::Any))),
        Step::Pass(29_107),
        Step::Clock(2928),
        Step::Pass(3088),
        Step::Pass(7013),
    ];
    check_with(78_394, numbers, steps);
}

/// For how long a worker is held up follows from the seed: of so many, some store the job after two answers that they do not
/// know it.
#[test]
fn a_worker_is_behind_with_storing_a_job_that_may_not_start_any_more() {
    let steps = [
        Step::Pass(3000),
        Step::Own(Op::Add(NewOp { at: Some((1, Some(1))), ..job(Task::Quick, one("w1")) })),
        Step::Pass(1500),
        Step::Clock(60_000),
        Step::Pass(30_000),
    ];
    let noise = Noise { stalls: true, ..Noise::NONE };
    for seed in 0..100 {
        let steps = steps.iter().cloned().enumerate().collect();
        check_script(Kind::Memory, &Script { seed, noise, numbers: NUMBERS, steps });
    }
}

/// Each broke a rule once, in a way that no shorter script shows, when workers were not held up yet.
#[test]
fn seeds_that_found_something() {
    const STEPS: usize = 80;

    for seed in [545, 8335, 56_958, 59_270, 60_747, 78_394] {
        let script = Script::of_seed(seed, STEPS);
        let noise = Noise { stalls: false, echoes: false, ..script.noise };
        // Nor were blows aimed.
        let places: Vec<usize> = script.places().into_iter().filter(|place| *place < STEPS).collect();
        check_script(Kind::Memory, &script.only(&places, noise));
        check_script(Kind::Memory, &script);
    }
}

#[test]
fn another_client_takes_the_answers_while_a_job_waits_for_the_list_of_workers() {
    for next in [10, 9000] {
        check(vec![Step::Pass(next), Step::Own(Op::Add(job(Task::Quick, Workers::Any))), Step::Stolen]);
    }
}

#[test]
fn an_occurrence_gets_its_job_and_that_is_reported_as_failed() {
    for (calls, workers) in (0..24).flat_map(|calls| [(calls, Workers::Any), (calls, one("w1"))]) {
        let rule = Rule {
            job: NewOp { timeout: 180, ..job(Task::Quick, workers) },
            interval: 3600,
            jitter: 0,
            grace: None,
            coalesce: 0,
            instances: None,
            start: Some(10),
            end: None,
            paused: false,
        };
        check(vec![
            Step::Own(Op::Create(rule)),
            Step::Pass(9000),
            Step::Arm(calls, fails(Place::After, 1)),
            Step::Pass(5000),
        ]);
    }
}

#[test]
fn another_client_makes_a_schedule_while_the_first_look_fails() {
    for calls in 0..16 {
        let rule = Rule {
            job: job(Task::Quick, Workers::Any),
            interval: 10,
            jitter: 0,
            grace: None,
            coalesce: 1,
            instances: None,
            start: Some(7),
            end: None,
            paused: false,
        };
        check(vec![
            Step::Stop,
            Step::Arm(calls, Charge::Interlope(Op::Create(rule))),
            Step::Arm(0, fails(Place::After, 1)),
            Step::Start,
            Step::Pass(1000),
        ]);
    }
}

/// When each worker registers follows from the seed.
#[test]
fn a_worker_never_registers_with_the_second_of_three_brokers() {
    let steps = [
        Step::Ambush(1),
        Step::Own(Op::Add(NewOp { timeout: 90, ..job(Task::Slow, Workers::All) })),
        Step::Pass(11_936),
        Step::WorkerPauses(0),
        Step::Pass(22_871),
        Step::BrokerDies,
    ];
    let numbers = Numbers { holdtime: 15_000, poll_batch: 5, reply_batch: 1, ..NUMBERS };
    for seed in (0..50).chain([6591]) {
        let steps = steps.iter().cloned().enumerate().collect();
        let noise = Noise { slow: true, ..Noise::NONE };
        check_script(Kind::Memory, &Script { seed, noise, numbers, steps });
    }
}

/// A job is given to another worker, and that is reported as failed: the other is asked for it before it gets it.
#[test]
fn a_job_goes_elsewhere_and_that_is_reported_as_failed() {
    let numbers = Numbers { holdtime: 1500, gone: 12, ..NUMBERS };
    for calls in 0..8 {
        let steps = vec![
            Step::Pass(5000),
            Step::WorkerPauses(0),
            Step::WorkerPauses(2),
            Step::Pass(3000),
            Step::WorkerPauses(1),
            Step::Own(Op::Add(job(Task::Quick, Workers::Any))),
            Step::Pass(27_500),
            Step::WorkerResumes(2),
            Step::Pass(2000),
            Step::Arm(calls, fails(Place::After, 1)),
            Step::Pass(40_000),
        ];
        check_with(1, numbers, steps);
    }
}
