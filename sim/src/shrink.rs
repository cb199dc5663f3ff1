//! Making a script that fails as short as it gets, as long as it breaks the same rule.

use crate::script::{Noise, Script};
use crate::{Keep, Kind, Outcome, play};

/// How many runs a search may take.
const MOST_RUNS: usize = 600;

/// The shortest script found that breaks the same rule, and its run.
#[must_use]
pub fn shrink(kind: Kind, script: &Script, class: &str) -> (Script, Outcome) {
    let mut search = Search { kind, class, best: script.clone(), runs: 0 };
    search.calm();
    let mut size = search.best.steps.len().div_ceil(2);
    while size > 0 && search.runs < MOST_RUNS {
        let dropped = search.drop_runs_of(size);
        if !dropped || size > 1 {
            size /= 2;
        }
    }
    search.calm();
    let outcome = play(kind, &search.best, Keep::Lines);
    (search.best, outcome)
}

struct Search<'a> {
    kind: Kind,
    class: &'a str,
    best: Script,
    runs: usize,
}

impl Search<'_> {
    fn takes(&mut self, candidate: Script) -> bool {
        self.runs += 1;
        let fails = play(self.kind, &candidate, Keep::Hash).violation.is_some_and(|found| found.class == self.class);
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
