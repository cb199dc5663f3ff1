//! Due occurrences become jobs, batch by batch, while the link is up; cursors that a step of the clock left behind are put
//! right.

use norfab_model::{
    Broker, Clock, Link, Materialize, Materialized, Moment, ScheduleError, ScheduleId, ScheduleStore, Scope, Store,
    StoreError, Timestamp, Zone,
};

use crate::Dispatcher;
use crate::dispatcher::Alignment;

/// What a pass has made of due schedules.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// How many jobs it may still make beyond the first of each.
    pub(crate) budget_left: u32,
    /// Schedules that it has looked at and that are due still.
    pub(crate) seen: Vec<ScheduleId>,
}

impl<S: Store + ScheduleStore, B: Broker, C: Clock> Dispatcher<S, B, C> {
    /// Looks at the schedules. What fails with them fails alone: the jobs go on, and the schedules are tried again after
    /// growing pauses.
    pub(crate) async fn schedules(&mut self, now: Moment) {
        if self.schedule_trouble.retry_at(now.up).is_some() {
            return;
        }
        match self.look_at_schedules(now).await {
            Ok(()) => self.schedule_trouble.worked(),
            Err(error) => {
                // What failed may have been committed all the same: its jobs are found by asking.
                self.forget_instants();
                self.schedule_trouble.failed(now.up, &error);
            }
        }
    }

    async fn look_at_schedules(&mut self, now: Moment) -> Result<(), StoreError> {
        self.rezone().await?;
        self.realign(now).await?;
        self.materialize_due(now).await
    }

    /// When the schedules are to be looked at without an event.
    pub(crate) async fn schedules_wake(&mut self, now: Moment) -> Option<Timestamp> {
        if self.config.scope != Scope::All {
            return None;
        }
        if let Some(at) = self.schedule_trouble.retry_at(now.up) {
            return Some(now.wall_at(at));
        }
        match self.schedule_due().await {
            Ok(due) => due.filter(|_| self.link.link() == Link::Up),
            Err(error) => Some(now.wall_at(self.schedule_trouble.failed(now.up, &error))),
        }
    }

    /// Puts right the cursors that were computed by other zone data: after a start, and when another process, which may be
    /// of another release, has changed something.
    async fn rezone(&mut self) -> Result<(), StoreError> {
        if self.zones == Alignment::Done || self.config.scope != Scope::All {
            return Ok(());
        }
        for rezoned in self.store.schedule_rezone(Zone::data_version()).await.map_err(storage)? {
            let to = rezoned.to.map_or_else(|| "none".to_owned(), |to| to.occurrence.to_string());
            tracing::warn!(
                schedule = %rezoned.schedule,
                "Moved a schedule's next occurrence from {} to {to}: the zone data is {} now",
                rezoned.from.occurrence,
                Zone::data_version()
            );
            self.schedule_due = None;
        }
        self.zones = Alignment::Done;
        Ok(())
    }

    /// Puts right the cursors that point beyond the first occurrence to come: after a start, and when the clock went back.
    async fn realign(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.cursors == Alignment::Done || self.config.scope != Scope::All {
            return Ok(());
        }
        for realigned in self.store.schedule_realign(now.wall).await.map_err(storage)? {
            tracing::warn!(
                schedule = %realigned.schedule,
                "Brought a schedule's next occurrence back from {} to {}: the clock went back",
                realigned.from.occurrence,
                realigned.to.occurrence
            );
        }
        self.cursors = Alignment::Done;
        self.schedule_due = None;
        Ok(())
    }

    /// Makes jobs of the occurrences that are due. Every due schedule is looked at once; what the budget leaves over is
    /// due in the next pass, which follows at once. A guest makes none.
    async fn materialize_due(&mut self, now: Moment) -> Result<(), StoreError> {
        if !self.makes_occurrences() || self.schedule_due().await?.is_none_or(|at| at > now.wall) {
            return Ok(());
        }
        loop {
            let (config, Looked { budget_left, seen }) = (&self.config, &self.looked);
            let (limits, budget_left, batch) = (&config.limits, *budget_left, config.schedule_batch);
            let request = Materialize { now: now.wall, limits, budget_left, batch, seen, claim: None };
            let made = self.store.schedule_materialize_due(request).await.map_err(storage)?;
            let more = made.more;
            self.take_in(made);
            if !more {
                return Ok(());
            }
        }
    }

    fn take_in(&mut self, made: Materialized) {
        self.looked.budget_left = self.looked.budget_left.saturating_sub(made.budget_used);
        self.looked.seen.extend(made.still_due.iter().cloned());
        self.schedule_due = Some(made.next_due_at);
        self.tell_materialized(made);
    }

    /// Whether an occurrence is known to be due, and nothing about the schedules has to be seen to before it.
    pub(crate) fn has_occurrence(&self, now: Moment) -> bool {
        let is_due = self.schedule_due.flatten().is_some_and(|at| at <= now.wall);
        let aligned = self.zones == Alignment::Done && self.cursors == Alignment::Done;
        is_due && aligned && self.makes_occurrences() && self.schedule_trouble.current().is_none()
    }

    fn makes_occurrences(&self) -> bool {
        self.config.scope == Scope::All && self.link.link() == Link::Up
    }

    /// Takes in what came of due schedules.
    pub(crate) fn materialized(&mut self, now: Moment, outcome: Result<Materialized, ScheduleError>) {
        match outcome {
            Ok(made) => self.take_in(made),
            Err(error) => {
                self.forget_instants();
                self.schedule_trouble.failed(now.up, &storage(error));
            }
        }
    }

    /// When a schedule is due next, asked for once and kept until something changes.
    async fn schedule_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        match self.schedule_due {
            Some(due) => Ok(due),
            None => {
                let due = self.store.schedule_next_due().await.map_err(storage)?;
                self.schedule_due = Some(due);
                Ok(due)
            }
        }
    }

    fn tell_materialized(&mut self, made: Materialized) {
        self.progress |= !(made.outcomes.is_empty() && made.quarantined.is_empty());
        for outcome in made.outcomes {
            tracing::info!(schedule = %outcome.schedule, "Looked at a schedule: {}", outcome.outcome);
        }
        for quarantined in made.quarantined {
            tracing::error!(schedule = %quarantined.uuid, "Disabled a schedule: {}", quarantined.reason);
        }
        for job in made.created.into_iter().chain(made.missed) {
            self.note_made(&job);
            self.tell_job(job);
        }
    }
}

/// A pass speaks to the storage only: what a schedule refuses ends with that schedule.
fn storage(error: ScheduleError) -> StoreError {
    match error {
        ScheduleError::Store(error) => error,
        other => StoreError::Storage { doing: "look at schedules", source: Box::new(other) },
    }
}
