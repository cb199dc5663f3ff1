//! Whether the broker knows all workers that are there. One that was started again knows none: they notice it by its silence,
//! and register each in its own time. What such a broker names is not all that may have a job.

use std::time::Duration;

use norfab_model::{Registry, Uptime};

/// What is known of the broker's registry on this connection.
#[derive(Debug)]
pub(crate) struct Registrations {
    /// How long workers may take to register with a new broker.
    patience: Duration,
    /// From when on all have had that time.
    settled_at: Uptime,
    /// Whether a job waits for that instant, and the broker was not asked for its age since.
    unsure: bool,
}

impl Registrations {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, settled_at: Uptime::START, unsure: false }
    }

    /// The broker answers on a new connection, and may be a new one.
    pub(crate) fn link_up(&mut self, now: Uptime) {
        self.settled_at = now.saturating_add(self.patience);
    }

    /// What the broker knew when a request left.
    pub(crate) fn at(&self, sent: Uptime) -> Registry {
        if sent < self.settled_at { Registry::Filling } else { Registry::Settled }
    }

    /// A job waits for all workers to register; tells when they have had the time.
    pub(crate) fn wait(&mut self, now: Uptime) -> Uptime {
        self.unsure |= now < self.settled_at;
        self.settled_at.max(now)
    }

    /// Whether a job waits since this was last asked: then it is worth to know how old the broker is.
    pub(crate) fn take_unsure(&mut self) -> bool {
        std::mem::take(&mut self.unsure)
    }

    /// The broker is as old as this or older, however new the connection is. Tells whether that ends the waiting.
    pub(crate) fn broker_is_as_old_as(&mut self, now: Uptime, age: Duration) -> bool {
        let ends = age >= self.patience && now < self.settled_at;
        if ends {
            self.settled_at = now;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn after(seconds: u64) -> Uptime {
        Uptime::START.saturating_add(Duration::from_secs(seconds))
    }

    /// The link came up at the tenth second.
    fn up() -> Registrations {
        let mut registrations = Registrations::new(PATIENCE);
        registrations.link_up(after(10));
        registrations
    }

    #[test]
    fn workers_have_their_time_from_each_new_link() {
        let mut registrations = up();
        assert_eq!((registrations.at(after(39)), registrations.at(after(40))), (Registry::Filling, Registry::Settled));
        registrations.link_up(after(50));
        assert_eq!((registrations.at(after(79)), registrations.at(after(80))), (Registry::Filling, Registry::Settled));
    }

    #[test]
    fn the_age_of_the_broker_is_asked_for_while_a_job_waits() {
        let mut registrations = up();
        assert!(!registrations.take_unsure());
        assert_eq!(registrations.wait(after(11)), after(40));
        assert!(registrations.take_unsure() && !registrations.take_unsure());
        assert_eq!(registrations.wait(after(41)), after(41));
        assert!(!registrations.take_unsure());
    }

    #[test]
    fn an_old_broker_knows_its_workers() {
        let mut registrations = up();
        assert!(!registrations.broker_is_as_old_as(after(12), Duration::from_secs(29)));
        assert_eq!(registrations.at(after(12)), Registry::Filling);
        assert!(registrations.broker_is_as_old_as(after(12), PATIENCE));
        assert_eq!((registrations.at(after(11)), registrations.at(after(12))), (Registry::Filling, Registry::Settled));
        assert!(!registrations.broker_is_as_old_as(after(13), PATIENCE));
        // What another broker knew says nothing of the next.
        registrations.link_up(after(20));
        assert_eq!(registrations.at(after(20)), Registry::Filling);
    }
}
