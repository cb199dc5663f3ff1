//! What happens in a run: a list of steps that follows from a seed, and can be made shorter.

mod raid;

use std::fmt;

use norfab_model::Workers;

use crate::gate::{Charge, Place};
use crate::rng::Rng;

/// The workers of the fabric: name and service.
pub(crate) const WORKERS: [(&str, &str); 4] = [("w1", "dummy"), ("w2", "dummy"), ("w3", "dummy"), ("x1", "other")];

/// A list of steps.
#[derive(Debug, Clone)]
pub struct Script {
    /// What all chance within the run follows from.
    pub(crate) seed: u64,
    /// How rough the network is beyond its delays.
    pub(crate) noise: Noise,
    /// The numbers of the run.
    pub(crate) numbers: Numbers,
    /// The steps with their places in the whole script.
    pub(crate) steps: Vec<(usize, Step)>,
}

/// What the network does by itself; each is off or on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noise {
    /// Single messages are lost.
    pub(crate) loss: bool,
    /// What workers say comes twice.
    pub(crate) double: bool,
    /// Messages take seconds instead of milliseconds now and then.
    pub(crate) slow: bool,
    /// What one worker says comes in another order, as its threads leave it.
    pub(crate) race: bool,
    /// Workers are held up: a GET overtakes a POST that is not stored yet.
    pub(crate) stalls: bool,
    /// Much of what goes to a worker and comes from it is doubled.
    pub(crate) echoes: bool,
}

impl Noise {
    pub(crate) const NONE: Self =
        Self { loss: false, double: false, slow: false, race: false, stalls: false, echoes: false };

    /// What an unsteady network of a seed does besides, by chance of its own: the steps stay the same.
    fn with_strain(self, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x404);
        let (stalls, echoes) = (rng.per_mille(700), rng.per_mille(500));
        if self == Self::NONE { self } else { Self { stalls, echoes, ..self } }
    }
}

/// Numbers that a run keeps to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    /// How long the broker waits for a silent worker, in milliseconds.
    pub(crate) holdtime: u64,
    /// How long a worker of a job to any may be gone, in seconds.
    pub(crate) gone: u64,
    pub(crate) window: usize,
    pub(crate) catch_up: u32,
    pub(crate) poll_batch: u32,
    pub(crate) reply_batch: usize,
    /// How often the database is looked at, in milliseconds.
    pub(crate) watch: u64,
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Time passes, in milliseconds.
    Pass(u64),
    /// A call of the program that dispatches.
    Own(Op),
    /// A call of another process on the same database.
    Foreign(Op),
    BrokerDies,
    BrokerStarts,
    WorkerDies(usize),
    WorkerStarts(usize),
    WorkerPauses(usize),
    WorkerResumes(usize),
    /// The connection breaks and is made again.
    ConnectionBreaks,
    /// Nothing gets through, without a word.
    Cut,
    Mended,
    /// Another client of the same name takes the broker's attention away.
    Stolen,
    /// The queue to the broker takes no more of this many jobs.
    Full(u32),
    /// The broker dies at each of the next so many jobs for all workers that it hands over, and soon comes back.
    Ambush(u32),
    /// The clock is set, by so many milliseconds.
    Clock(i64),
    Crash,
    Stop,
    Start,
    /// Something goes off at the n-th call from here.
    Arm(u32, Charge),
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Add(NewOp),
    Cancel(usize),
    Reschedule(usize, i64),
    Create(Rule),
    Pause(usize),
    Resume(usize),
    Disable(usize),
    Delete(usize),
    RunNow(usize, Forced),
    Update(usize, Change),
    /// Every open question is answered.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forced {
    Yes,
    No,
}

/// A job.
#[derive(Debug, Clone)]
pub(crate) struct NewOp {
    pub(crate) task: Task,
    pub(crate) workers: Workers,
    pub(crate) timeout: u64,
    /// Seconds from now, and the grace.
    pub(crate) at: Option<(i64, Option<u64>)>,
}

/// What a task does at the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Quick,
    Slow,
    /// It never ends.
    Hangs,
    Fails,
    /// It asks something, and goes on by itself when nobody answers.
    Asks,
}

impl Task {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Slow => "slow",
            Self::Hangs => "hangs",
            Self::Fails => "fails",
            Self::Asks => "asks",
        }
    }
}

/// A schedule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) job: NewOp,
    pub(crate) interval: u32,
    pub(crate) jitter: u64,
    pub(crate) grace: Option<u64>,
    /// 0: latest, 1: earliest, 2: all.
    pub(crate) coalesce: u8,
    /// None: FORBID.
    pub(crate) instances: Option<u64>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<u64>,
    pub(crate) paused: bool,
}

/// A change of a schedule.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Interval(u32),
    Jitter(u64),
    Coalesce(u8),
    Instances(Option<u64>),
    Grace(Option<u64>),
    End(Option<u64>),
    Nothing,
}

impl Script {
    /// The script of a seed, with so many steps.
    #[must_use]
    pub fn of_seed(seed: u64, steps: usize) -> Self {
        let mut rng = Rng::new(seed);
        let numbers = Numbers {
            holdtime: rng.pick(&[1500, 6000, 15_000]),
            gone: rng.pick(&[12, 30]),
            window: rng.pick(&[1, 4, 500]),
            catch_up: rng.pick(&[1, 3, 100]),
            poll_batch: rng.pick(&[1, 5, 500]),
            reply_batch: rng.pick(&[1, 7, 1000]),
            watch: rng.pick(&[500, 1000]),
        };
        let noise = match rng.between(0, 3) {
            0 => Noise::NONE,
            1 => Noise { slow: true, race: true, ..Noise::NONE },
            _ => {
                let (loss, double) = (rng.per_mille(500), rng.per_mille(500));
                Noise { loss, double, slow: true, race: true, ..Noise::NONE }
            }
        };
        let mut dice = Dice { rng, open: Vec::new() };
        let steps = (0..steps).map(|place| (place, dice.step())).collect();
        Self { seed, noise: noise.with_strain(seed), numbers, steps: raid::woven_into(steps, seed) }
    }

    /// The same script with only the steps at these places, in a network as rough as this.
    #[must_use]
    pub fn only(&self, places: &[usize], noise: Noise) -> Self {
        let steps = self.steps.iter().filter(|(place, _)| places.contains(place)).cloned().collect();
        Self { steps, noise, ..self.clone() }
    }

    pub(crate) fn places(&self) -> Vec<usize> {
        self.steps.iter().map(|(place, _)| *place).collect()
    }
}

/// Chance with a memory of what it has broken, so that it is mended again.
struct Dice {
    rng: Rng,
    open: Vec<Step>,
}

impl Dice {
    fn step(&mut self) -> Step {
        match self.rng.between(0, 99) {
            0..40 => self.time(),
            40..62 => Step::Own(self.op()),
            62..68 => Step::Foreign(self.op()),
            68..76 if !self.open.is_empty() => {
                let place = self.rng.between(0, self.open.len() as u64 - 1);
                self.open.swap_remove(place as usize)
            }
            68..87 => self.outage(),
            87..92 => Step::Clock(self.leap()),
            _ => self.charge(),
        }
    }

    fn time(&mut self) -> Step {
        Step::Pass(match self.rng.between(0, 9) {
            0..3 => self.rng.between(1, 400),
            3..7 => self.rng.between(400, 5000),
            7..9 => self.rng.between(5000, 30_000),
            _ => self.rng.between(30_000, 90_000),
        })
    }

    fn leap(&mut self) -> i64 {
        let most = self.rng.pick(&[3_000, 60_000, 600_000, 7_200_000, 200_000_000]);
        let by = i64::try_from(self.rng.between(1, most)).unwrap_or(0);
        if self.rng.per_mille(500) { by } else { -by }
    }

    fn outage(&mut self) -> Step {
        let worker = self.rng.between(0, WORKERS.len() as u64 - 1) as usize;
        let (step, end) = match self.rng.between(0, 11) {
            0..2 => (Step::BrokerDies, Some(Step::BrokerStarts)),
            2..5 => (Step::WorkerDies(worker), Some(Step::WorkerStarts(worker))),
            5..7 => (Step::WorkerPauses(worker), Some(Step::WorkerResumes(worker))),
            7..8 => (Step::ConnectionBreaks, None),
            8..9 => (Step::Cut, Some(Step::Mended)),
            9..10 => (Step::Stolen, None),
            10..11 => (if self.rng.per_mille(500) { Step::Crash } else { Step::Stop }, Some(Step::Start)),
            _ => (Step::Full(self.rng.between(1, 5) as u32), None),
        };
        self.open.extend(end);
        step
    }

    fn charge(&mut self) -> Step {
        let after = self.rng.between(0, 40) as u32;
        let place = if self.rng.between(0, 5) < 2 { Place::Before } else { Place::After };
        let charge = match self.rng.between(0, 3) {
            0 => {
                self.open.push(Step::Start);
                Charge::Crash(place)
            }
            which @ (1 | 2) => {
                let what = self.rng.pick(&["the database is locked", "the disk is full", "the disk has an error"]);
                let times = self.rng.between(1, 4) as u32;
                if which == 1 { Charge::Fail { place, times, what } } else { Charge::FailAtMaking { place, what } }
            }
            _ => Charge::Interlope(self.op()),
        };
        Step::Arm(after, charge)
    }

    fn op(&mut self) -> Op {
        let which = self.rng.between(0, 15) as usize;
        match self.rng.between(0, 29) {
            0..14 => Op::Add(self.job()),
            14 => Op::Cancel(which),
            15 => Op::Reschedule(which, self.rng.between(0, 60) as i64 - 20),
            16..20 => Op::Create(self.rule()),
            20 => Op::Pause(which),
            21 | 22 => Op::Resume(which),
            23 => Op::Disable(which),
            24 => Op::Delete(which),
            25 | 26 => Op::RunNow(which, if self.rng.per_mille(300) { Forced::Yes } else { Forced::No }),
            27 | 28 => Op::Update(which, self.change()),
            _ => Op::Answer,
        }
    }

    fn job(&mut self) -> NewOp {
        let at = match self.rng.between(0, 3) {
            0 | 1 => None,
            _ => {
                let grace = self.rng.pick(&[None, None, Some(1), Some(20), Some(90)]);
                Some((self.rng.pick(&[0, 0, 1, 5, 30, 200]), grace))
            }
        };
        NewOp { task: self.task(), workers: self.workers(), timeout: self.rng.pick(&[5, 30, 90, 180]), at }
    }

    fn task(&mut self) -> Task {
        use Task::{Asks, Fails, Hangs, Quick, Slow};
        self.rng.pick(&[Quick, Quick, Quick, Quick, Quick, Quick, Slow, Slow, Fails, Asks, Hangs])
    }

    fn workers(&mut self) -> Workers {
        let name = self.rng.pick(&["w1", "w2", "w3"]).to_owned();
        match self.rng.between(0, 9) {
            0..4 => Workers::Any,
            4..6 => Workers::All,
            6..8 => Workers::One(name),
            8 => Workers::List(vec!["w1".into(), "w3".into()]),
            _ => Workers::List(vec!["w2".into(), "gone".into()]),
        }
    }

    fn rule(&mut self) -> Rule {
        Rule {
            job: NewOp { timeout: self.rng.pick(&[10, 40, 90, 180]), at: None, ..self.job() },
            interval: self.rng.pick(&[5, 10, 20, 30, 60, 3600]),
            jitter: self.rng.pick(&[0, 0, 0, 4]),
            grace: self.rng.pick(&[None, None, Some(1), Some(15)]),
            coalesce: self.rng.pick(&[0, 0, 1, 2]),
            instances: self.rng.pick(&[None, None, Some(1), Some(4)]),
            start: self.rng.pick(&[None, None, Some(7), Some(-100)]),
            end: self.rng.pick(&[None, None, None, Some(120)]),
            paused: self.rng.per_mille(100),
        }
    }

    fn change(&mut self) -> Change {
        match self.rng.between(0, 6) {
            0 => Change::Interval(self.rng.pick(&[5, 15, 60])),
            1 => Change::Jitter(self.rng.pick(&[0, 3])),
            2 => Change::Coalesce(self.rng.pick(&[0, 1, 2])),
            3 => Change::Instances(self.rng.pick(&[None, Some(3)])),
            4 => Change::Grace(self.rng.pick(&[None, Some(10)])),
            5 => Change::End(self.rng.pick(&[None, Some(90)])),
            _ => Change::Nothing,
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {:?}, {:?}", self.seed, self.noise, self.numbers)?;
        for (place, step) in &self.steps {
            writeln!(f, "{place:5}  {step:?}")?;
        }
        Ok(())
    }
}
