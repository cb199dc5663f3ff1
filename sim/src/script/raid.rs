//! Blows that are aimed: what a script needs luck upon luck for, some seeds are given besides. They have chance of their own,
//! so that all other steps of a seed are the same with and without, and places behind those of all others.

use norfab_model::Workers;

use super::{Dice, NewOp, Op, Rule, Step, Task};
use crate::gate::{Charge, Place};
use crate::rng::Rng;

/// How many seeds of a thousand have the broker die under a job for all workers.
const AMBUSHES_PER_MILLE: u64 = 60;
/// How many have the client die while it makes the jobs of a schedule.
const CRASHES_PER_MILLE: u64 = 40;

/// The steps of a seed with those of its raids between them.
pub(super) fn woven_into(steps: Vec<(usize, Step)>, seed: u64) -> Vec<(usize, Step)> {
    let mut dice = Dice { rng: Rng::new(seed ^ 0x4a1d), open: Vec::new() };
    let mut raids = Vec::new();
    if dice.rng.per_mille(AMBUSHES_PER_MILLE) {
        raids.extend(dice.ambush(steps.len()));
    }
    if dice.rng.per_mille(CRASHES_PER_MILLE) {
        raids.extend(dice.crash_at_making(steps.len()));
    }
    weave(steps, raids)
}

/// Puts each step of the raids before the step of the script that it names.
fn weave(steps: Vec<(usize, Step)>, raids: Vec<(usize, Step)>) -> Vec<(usize, Step)> {
    let behind = steps.len();
    let numbered = raids.into_iter().enumerate().map(|(number, (at, step))| (at, behind + number, step));
    let own = steps.into_iter().map(|(place, step)| (place, place, step));
    let mut all: Vec<_> = numbered.chain(own).collect();
    all.sort_by_key(|(at, ..)| *at);
    all.into_iter().map(|(_, place, step)| (place, step)).collect()
}

impl Dice {
    /// A job for all is on its way when a broker dies that worked, and the next one gets to know the workers one by one.
    fn ambush(&mut self, steps: usize) -> Vec<(usize, Step)> {
        let at = self.place(steps);
        let task = self.rng.pick(&[Task::Quick, Task::Quick, Task::Quick, Task::Slow, Task::Asks]);
        let timeout = self.rng.pick(&[30, 90, 180]);
        let job = NewOp { task, workers: Workers::All, timeout, at: None };
        let (times, quiet) = (self.rng.pick(&[1, 1, 2]), self.rng.between(3000, 20_000));
        let mended = [Step::Start, Step::Mended, Step::BrokerStarts, Step::Pass(quiet)];
        let blow = [Step::Ambush(times), Step::Own(Op::Add(job)), Step::Pass(quiet)];
        mended.into_iter().chain(blow).map(|step| (at, step)).collect()
    }

    /// The client dies when an occurrence gets its job, and is started again later.
    fn crash_at_making(&mut self, steps: usize) -> Vec<(usize, Step)> {
        let at = self.place(steps);
        let rule = Rule { interval: self.rng.pick(&[5, 10, 20]), start: None, paused: false, ..self.rule() };
        let place = self.rng.pick(&[Place::Before, Place::After, Place::After, Place::After]);
        let again = (at + self.rng.between(1, 12) as usize).min(steps);
        vec![(at, Step::Own(Op::Create(rule))), (at, Step::Arm(0, Charge::CrashAtMaking(place))), (again, Step::Start)]
    }

    fn place(&mut self, steps: usize) -> usize {
        self.rng.between(0, steps as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::Script;
    use super::*;

    const STEPS: usize = 80;

    fn shown(steps: &[(usize, Step)]) -> Vec<String> {
        steps.iter().map(|step| format!("{step:?}")).collect()
    }

    /// How many of a thousand seeds have a step like this.
    fn count(is_like: impl Fn(&Step) -> bool) -> usize {
        let has_one = |seed: &u64| Script::of_seed(*seed, STEPS).steps.iter().any(|(_, step)| is_like(step));
        (0..1000).filter(has_one).count()
    }

    #[test]
    fn some_seeds_are_raided() {
        let ambushes = count(|step| matches!(step, Step::Ambush(_)));
        let crashes = count(|step| matches!(step, Step::Arm(0, Charge::CrashAtMaking(_))));
        assert!((30..120).contains(&ambushes) && (20..80).contains(&crashes), "{ambushes} {crashes}");
    }

    #[test]
    fn the_other_steps_of_a_seed_stay_as_they_are() {
        let own: Vec<_> = (0..STEPS).map(|place| (place, Step::Pass(place as u64))).collect();
        for seed in 0..200 {
            let all = woven_into(own.clone(), seed);
            let (before, raids): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|(place, _)| *place < STEPS);
            assert_eq!(shown(&before), shown(&own), "seed {seed}");
            let mut places: Vec<usize> = raids.iter().map(|(place, _)| *place).collect();
            places.sort_unstable();
            assert_eq!(places, (STEPS..all.len()).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
