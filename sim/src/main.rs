//! Plays the scripts of many seeds, and shows the shortest one of each that breaks a rule.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use norfab_sim::{Keep, Kind, Script, command, play, shrink};

const HELP: &str = "--seeds A..B [--steps N] [--store memory|sqlite] [--most-failures N] [--lines]";

/// Of a run that breaks a rule, so many lines are shown.
const MOST_LINES: usize = 400;

struct Task {
    seeds: std::ops::Range<u64>,
    steps: usize,
    kind: Kind,
    most_failures: usize,
    keep: Keep,
}

fn main() -> ExitCode {
    match task(std::env::args().skip(1)).map(|task| work(&task)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn task(mut words: impl Iterator<Item = String>) -> Result<Task> {
    let mut task = Task { seeds: 0..0, steps: 80, kind: Kind::Memory, most_failures: 5, keep: Keep::Hash };
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value; {HELP}"));
        match word.as_str() {
            "--seeds" => task.seeds = seeds(&value()?)?,
            "--steps" => task.steps = value()?.parse().context("--steps")?,
            "--most-failures" => task.most_failures = value()?.parse().context("--most-failures")?,
            "--lines" => task.keep = Keep::Lines,
            "--store" => {
                task.kind = match value()?.as_str() {
                    "memory" => Kind::Memory,
                    "sqlite" => Kind::Sqlite,
                    other => bail!("no store {other:?}; {HELP}"),
                }
            }
            _ => bail!("not understood: {word}; {HELP}"),
        }
    }
    if task.seeds.is_empty() {
        bail!("no seeds; {HELP}");
    }
    Ok(task)
}

/// `A..B`, the last one left out, or a single one.
fn seeds(text: &str) -> Result<std::ops::Range<u64>> {
    let number = |text: &str| text.parse::<u64>().with_context(|| format!("--seeds: {text:?} is no number"));
    match text.split_once("..") {
        Some((from, to)) => Ok(number(from)?..number(to)?),
        None => number(text).map(|one| one..one + 1),
    }
}

/// How many seeds failed.
fn work(task: &Task) -> usize {
    let mut failures = 0;
    for seed in task.seeds.clone() {
        let script = Script::of_seed(seed, task.steps);
        let outcome = play(task.kind, &script, task.keep);
        if task.keep == Keep::Lines {
            println!("{script}{}", outcome.lines.join("\n"));
        }
        let Some(violation) = outcome.violation else { continue };
        failures += 1;
        println!("== seed {seed} broke a rule: {violation}\n-- {}", command(task.kind, seed, task.steps));
        let (script, outcome) = shrink(task.kind, &script, violation.class);
        let last = outcome.violation.map_or_else(String::new, |violation| violation.to_string());
        println!("-- the shortest script:\n{script}-- what happened:");
        for line in outcome.lines.iter().take(MOST_LINES) {
            println!("{line}");
        }
        println!("-- {last}\n");
        if failures >= task.most_failures {
            println!("stopped at seed {seed}, after {failures} failures");
            return failures;
        }
    }
    println!("{} seeds of {} steps, {failures} failures", task.seeds.end - task.seeds.start, task.steps);
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_failure_plays_the_same_script() {
        for kind in [Kind::Memory, Kind::Sqlite] {
            let line = command(kind, 17, 25);
            let words = line.strip_prefix("cargo xtask sim ").expect("it starts the simulation").split(' ');
            let task = task(words.map(str::to_owned)).expect("it is understood");
            assert_eq!((task.seeds, task.steps, task.kind), (17..18, 25, kind));
        }
    }
}
