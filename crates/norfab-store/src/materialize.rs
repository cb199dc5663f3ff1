//! A batch of due schedules as pure steps, for both stores: what is decided for each, the jobs to add, and, once it is
//! known which of them are really new, what the schedules become.

use std::collections::HashSet;

use norfab_model::{
    Job, JobEvent, JobId, JobStatus, Materialize, Materialized, Plan, Quarantined, Schedule, ScheduleOutcome,
    Timestamp, one_line, plan_due,
};

use crate::transition;

/// A due schedule as it was read.
pub(crate) struct Due {
    /// Its row number.
    pub(crate) number: i64,
    /// As it stands there, where that is not what it is by the zone data of this process.
    stored: Option<Schedule>,
    /// By the zone data of this process.
    pub(crate) schedule: Schedule,
    /// How many of its jobs have not ended.
    unfinished: u64,
}

impl Due {
    /// The schedule of a row as it stands there, and as it is by the zone data of this process where that may be another.
    pub(crate) fn new(number: i64, stored: Schedule, moved: Option<Schedule>, unfinished: u64) -> Self {
        let (stored, schedule) = match moved {
            Some(moved) => (Some(stored), moved),
            None => (None, stored),
        };
        Self { number, stored, schedule, unfinished }
    }
}

/// A job to add.
pub(crate) struct PlannedRow {
    /// The row number of its schedule.
    pub(crate) schedule: i64,
    pub(crate) job: Job,
    /// What is noted of it.
    event: Option<JobEvent>,
}

/// A schedule to write.
pub(crate) struct Changed {
    /// Its row number.
    pub(crate) number: i64,
    /// As it stands there.
    pub(crate) before: Schedule,
    pub(crate) after: Schedule,
}

/// What a batch comes to.
pub(crate) struct Settled {
    pub(crate) changed: Vec<Changed>,
    pub(crate) events: Vec<JobEvent>,
    pub(crate) outcome: Materialized,
}

/// What is decided for a batch.
pub(crate) struct Batch {
    now: Timestamp,
    steps: Vec<(Due, Decision)>,
    budget_used: u32,
}

enum Decision {
    /// This becomes of its occurrences.
    Plan(Plan),
    /// It cannot be used, for this reason.
    SwitchOff(String),
}

impl Batch {
    /// Decides for each of these schedules in turn; they share what is left of the budget.
    pub(crate) fn decide(request: &Materialize<'_>, due: Vec<Due>) -> Self {
        let mut budget_used = 0;
        let decide = |due: Due| {
            let decision = match request.limits.check_runnable(&due.schedule) {
                Ok(()) => {
                    let left = request.budget_left.saturating_sub(budget_used);
                    let plan = plan_due(&due.schedule, request.now, due.unfinished, left);
                    budget_used += plan.budget_used;
                    Decision::Plan(plan)
                }
                Err(refusal) => Decision::SwitchOff(one_line(&refusal.to_string())),
            };
            (due, decision)
        };
        let steps = due.into_iter().map(decide).collect();
        Self { now: request.now, steps, budget_used }
    }

    /// How much of the budget they take.
    pub(crate) fn budget_used(&self) -> u32 {
        self.budget_used
    }

    /// The jobs to add, in their order: what was missed was due before what runs, so it comes first.
    pub(crate) fn jobs(&self) -> Vec<PlannedRow> {
        let plans = self.steps.iter().filter_map(|(due, decision)| match decision {
            Decision::Plan(plan) => Some((due, plan)),
            Decision::SwitchOff(_) => None,
        });
        let missed = plans.clone().flat_map(|(due, plan)| self.missed(due, plan));
        missed.chain(plans.flat_map(|(due, plan)| self.to_run(due, plan))).collect()
    }

    fn missed(&self, Due { number, schedule, .. }: &Due, plan: &Plan) -> impl Iterator<Item = PlannedRow> {
        plan.missed.iter().map(move |missed| {
            let job = schedule.missed_job(self.now, missed);
            let event = transition::missed_occurrences(&job, self.now, missed);
            PlannedRow { schedule: *number, job, event: Some(event) }
        })
    }

    fn to_run(&self, Due { number, schedule, .. }: &Due, plan: &Plan) -> impl Iterator<Item = PlannedRow> {
        plan.create.iter().map(move |planned| {
            let job = schedule.new_job(self.now, planned);
            PlannedRow { schedule: *number, job, event: None }
        })
    }

    /// What becomes of the schedules when, of the jobs to add, these were not there already.
    pub(crate) fn settle(self, jobs: Vec<PlannedRow>, made: &HashSet<JobId>) -> Settled {
        let mut outcome = Materialized { budget_used: self.budget_used, ..Materialized::default() };
        let mut events = Vec::new();
        for PlannedRow { job, event, .. } in jobs.into_iter().filter(|new| made.contains(&new.job.uuid)) {
            events.extend(event);
            let list = if job.status == JobStatus::Missed { &mut outcome.missed } else { &mut outcome.created };
            list.push(job);
        }
        let mut changed = Vec::with_capacity(self.steps.len());
        for (Due { number, stored, schedule: before, .. }, decision) in self.steps {
            let after = match decision {
                Decision::Plan(plan) => {
                    let after = plan.settle(&before, self.now, made);
                    note(&mut outcome, &plan, &after);
                    after
                }
                Decision::SwitchOff(reason) => {
                    let after = before.quarantine(self.now, &reason);
                    let uuid = before.uuid.to_string();
                    outcome.quarantined.push(Quarantined { uuid, name: before.name.clone(), reason });
                    after
                }
            };
            changed.push(Changed { number, before: stored.unwrap_or(before), after });
        }
        changed.retain(|changed| changed.before != changed.after);
        Settled { changed, events, outcome }
    }
}

/// Tells what came of one schedule.
fn note(outcome: &mut Materialized, plan: &Plan, after: &Schedule) {
    if let Some(last) = after.last_outcome.as_ref().filter(|_| plan.due > 0) {
        let (schedule, name) = (after.uuid.clone(), after.name.clone());
        outcome.outcomes.push(ScheduleOutcome { schedule, name, outcome: last.clone() });
    }
    if plan.remaining > 0 {
        outcome.still_due.push(after.uuid.clone());
    }
}
