//! Making a script that fails as short as it gets, as long as it breaks the same rule.

use crate::script::{Noise, Script};
use crate::{Keep, Kind, Outcome, play};

/// How many runs a search may take.
const MOST_RUNS: usize = 600;

/// The shortest script found that breaks the same rule, and its run.
#[must_use]
pub fn shrink(kind: Kind, script: &Script, class: &str) -> (Script, Outcome) {
    shrink_by(&|script, keep| play(kind, script, keep), script, class)
}

/// Plays a script.
type Play<'a> = &'a dyn Fn(&Script, Keep) -> Outcome;

fn shrink_by(play: Play<'_>, script: &Script, class: &str) -> (Script, Outcome) {
    let mut search = Search { play, class, best: script.clone(), runs: 0 };
    search.calm();
    let mut size = search.best.steps.len().div_ceil(2);
    while size > 0 && search.runs < MOST_RUNS {
        let dropped = search.drop_runs_of(size);
        if !dropped || size > 1 {
            size /= 2;
        }
    }
    search.calm();
    let outcome = play(&search.best, Keep::Lines);
    (search.best, outcome)
}

struct Search<'a> {
    play: Play<'a>,
    class: &'a str,
    best: Script,
    runs: usize,
}

impl Search<'_> {
    fn takes(&mut self, candidate: Script) -> bool {
        self.runs += 1;
        let fails = (self.play)(&candidate, Keep::Hash).violation.is_some_and(|found| found.class == self.class);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Switches off what the network does by itself.
    fn calm(&mut self) {
        let places = self.best.places();
        for calm in [
            |noise| Noise { loss: false, ..noise },
            |noise| Noise { double: false, ..noise },
            |noise| Noise { slow: false, ..noise },
            |noise| Noise { race: false, ..noise },
            |noise| Noise { stalls: false, ..noise },
            |noise| Noise { echoes: false, ..noise },
        ] as [fn(Noise) -> Noise; 6]
        {
            let noise = calm(self.best.noise);
            if noise != self.best.noise {
                self.takes(self.best.only(&places, noise));
            }
        }
    }

    /// Leaves out as many steps in a row wherever that is possible; tells whether it was anywhere.
    fn drop_runs_of(&mut self, size: usize) -> bool {
        let (mut from, mut dropped) = (0, false);
        while from < self.best.steps.len() && self.runs < MOST_RUNS {
            let mut places = self.best.places();
            places.drain(from..(from + size).min(places.len()));
            if self.takes(self.best.only(&places, self.best.noise)) {
                dropped = true;
            } else {
                from += size;
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Violation;

    /// A run in which it counts as a broken rule that the client dies after the broker did, and as another one that a worker
    /// runs a job before that.
    fn play_planted(script: &Script, _: Keep) -> Outcome {
        let outcome = play(Kind::Memory, script, Keep::Lines);
        assert_eq!(outcome.violation, None, "{script}");
        let broker_died = |at: usize| outcome.lines[..at].iter().any(|line| line.ends_with("  broker dies"));
        let class = |(at, line): (usize, &String)| match line {
            line if line.ends_with("  the client dies") && broker_died(at) => Some(("planted", at)),
            line if line.contains(" runs ") && !broker_died(at) => Some(("another", at)),
            _ => None,
        };
        let first = outcome.lines.iter().enumerate().find_map(class);
        let violation = first.map(|(class, at)| Violation { class, text: outcome.lines[at].clone() });
        Outcome { violation, ..outcome }
    }

    /// A script that breaks the planted rule becomes one of so many steps that still does, again and again.
    #[track_caller]
    fn check(seed: u64, steps: &[&str]) {
        let script = Script::of_seed(seed, 80);
        let before = play_planted(&script, Keep::Lines).violation.map(|broken| broken.class);
        assert_eq!(before, Some("planted"), "seed {seed}");

        let (short, outcome) = shrink_by(&play_planted, &script, "planted");
        let found: Vec<String> = short.steps.iter().map(|(_, step)| format!("{step:?}")).collect();
        assert_eq!((found, short.noise), (steps.iter().map(|step| (*step).to_owned()).collect(), Noise::NONE));
        let again = play_planted(&short, Keep::Lines);
        assert_eq!(outcome.violation.as_ref().map(|broken| broken.class), Some("planted"));
        assert_eq!((again.violation, again.lines, again.hash), (outcome.violation, outcome.lines, outcome.hash));
    }

    #[test]
    fn the_steps_that_matter_are_left() {
        check(97, &["BrokerDies", "Crash"]);
        check(92, &["BrokerDies", "Arm(23, Crash(Before))", "Pass(48757)"]);
        let for_all = r#"Own(Add(NewOp { task: Quick, workers: All, timeout: 90, at: None }))"#;
        check(322, &["Ambush(2)", for_all, "Pass(80875)", "Crash"]);
    }
}
