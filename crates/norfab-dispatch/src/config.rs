//! The dispatcher's numbers.

use std::time::Duration;

use norfab_model::{Limits, RetryPolicy, Scope};

/// What a dispatcher can be told. The defaults suit a fabric of any size; a number outside its bounds counts as the
/// nearest within them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Which jobs it serves. Default all.
    pub scope: Scope,
    /// How often a job in flight is asked for when nothing is heard of it. Default 10 s.
    pub poll_interval: Duration,
    /// How long the broker may take to answer the question by which a connection is known to work, before it is asked
    /// again. Default 5 s.
    pub probe_timeout: Duration,
    /// How long the broker may take to confirm a request before it is asked whether it is there at all, and the request is
    /// sent again; longer while large jobs are on their way, as a link of 1 Mbit/s would need. Default 10 s.
    pub answer_timeout: Duration,
    /// How long the one worker of a job to any worker may be gone, without having said that it has the job, before another
    /// gets the job. It is the one case in which a job may run on two workers. And how long workers may take to register with
    /// a broker that was started again, before a job to all whose first answer was lost is believed to have no others:
    /// longer than their keepalives (15 s in NorFab) take to notice it. Default 30 s.
    pub gone_timeout: Duration,
    /// How long the broker's list of live workers holds. Default 3 s.
    pub workers_fresh_for: Duration,
    /// How patient the client is with a fabric that cannot take a job.
    pub retry: RetryPolicy,
    /// How often the database is looked at for changes of other processes, which then show within a second. Default 700 ms.
    pub watch_interval: Duration,
    /// How many jobs may be sent and not yet taken by the broker: at least 1. Further ones are sent once a quarter of it is
    /// free. Default 500.
    pub window: usize,
    /// How many jobs are asked for in one go: at least 1. Default 500.
    pub poll_batch: u32,
    /// How many messages are applied in one transaction at the most: at least 1. Default 1,000.
    pub reply_batch: usize,
    /// How many jobs a pass makes of long backlogs, beyond the first of each schedule: 1 to 10,000. Default 100.
    pub catch_up_limit: u32,
    /// How many due schedules are looked at in one transaction: 1 to 10,000. Default 10,000.
    pub schedule_batch: u32,
    /// What a schedule must keep to when its occurrences become jobs, forbidden tasks included.
    pub limits: Limits,
    /// The longest pause between attempts while the database fails. Default 30 s.
    pub longest_pause: Duration,
    /// How long the database may keep a pass waiting before the health says that it does not answer. Default 30 s.
    pub storage_patience: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scope: Scope::All,
            poll_interval: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(10),
            gone_timeout: Duration::from_secs(30),
            workers_fresh_for: Duration::from_secs(3),
            retry: RetryPolicy::default(),
            watch_interval: Duration::from_millis(700),
            window: 500,
            poll_batch: 500,
            reply_batch: 1000,
            catch_up_limit: 100,
            schedule_batch: 10_000,
            limits: Limits::default(),
            longest_pause: Duration::from_secs(30),
            storage_patience: Duration::from_secs(30),
        }
    }
}

impl Config {
    /// The same with each number within its bounds: with a batch or a window of nothing no pass would ever end.
    #[must_use]
    pub(crate) fn clamped(self) -> Self {
        Self {
            window: self.window.max(1),
            poll_batch: self.poll_batch.max(1),
            reply_batch: self.reply_batch.max(1),
            catch_up_limit: self.catch_up_limit.clamp(1, MOST_AT_ONCE),
            schedule_batch: self.schedule_batch.clamp(1, MOST_AT_ONCE),
            workers_fresh_for: self.workers_fresh_for.max(Duration::from_millis(100)),
            ..self
        }
    }
}

/// The most jobs or schedules of one transaction; more would keep other processes from the database for long.
const MOST_AT_ONCE: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The window, the batches of polls, replies and schedules, and the catch-up limit.
    fn config(numbers: [u32; 5]) -> Config {
        let [window, poll_batch, reply_batch, schedule_batch, catch_up_limit] = numbers;
        let (window, reply_batch) = (window as usize, reply_batch as usize);
        Config { window, poll_batch, reply_batch, schedule_batch, catch_up_limit, ..Config::default() }
    }

    #[track_caller]
    fn check(given: [u32; 5], expected: [u32; 5]) {
        assert_eq!(config(given).clamped(), config(expected));
    }

    #[test]
    fn numbers_are_put_within_their_bounds() {
        check([0; 5], [1; 5]);
        check([1; 5], [1; 5]);
        check([10_000; 5], [10_000; 5]);
        check([10_001; 5], [10_001, 10_001, 10_001, 10_000, 10_000]);
        assert_eq!(Config::default().clamped(), Config::default());
    }
}
