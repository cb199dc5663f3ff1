//! How long, and how often, a job that could not be delivered is tried again: a worker that registers anew for a few
//! seconds must not cost the nightly run.

use std::time::Duration;

use crate::{Job, Origin, Timestamp};

/// The pauses after the first refusals, in seconds; all later ones are as long as the last.
const PAUSES: [u64; 5] = [1, 2, 4, 8, 10];

/// How long before the start deadline the last attempt is made: it must get away before.
const LAST_CALL: Duration = Duration::from_millis(500);

/// How patient the client is with a fabric that cannot take a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How long a job without a start deadline is tried again, from the first refusal on. Default 60 s.
    pub give_up_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { give_up_after: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// When to send a job again that was refused `refusals` times, the last time at `now`: after 1, 2, 4, 8, then always
    /// 10 s, until its start deadline, or without one until [`give_up_after`](Self::give_up_after) has passed. None: no
    /// more. An immediate job is never tried again, as its caller waits for the answer.
    #[must_use]
    pub fn next_attempt(&self, job: &Job, now: Timestamp, refusals: u32) -> Option<Timestamp> {
        if job.is_immediate() {
            return None;
        }
        let at = now.saturating_add(pause(refusals));
        match job.start_deadline {
            Some(latest) if at > latest => Some(latest.saturating_sub(LAST_CALL)).filter(|at| *at > now),
            Some(_) => Some(at),
            None => {
                let left = self.give_up_after.checked_sub(waited(refusals))?;
                Some(at.min(now.saturating_add(left))).filter(|at| *at > now)
            }
        }
    }
}

impl RetryPolicy {
    /// Whether another refusal is worth telling: the first five, and then one an hour.
    #[must_use]
    pub const fn is_news(refusals: u32) -> bool {
        refusals <= 5 || refusals.is_multiple_of(360)
    }
}

/// The pause after so many refusals.
fn pause(refusals: u32) -> Duration {
    let place = usize::try_from(refusals.saturating_sub(1)).unwrap_or(usize::MAX).min(PAUSES.len() - 1);
    Duration::from_secs(PAUSES.get(place).copied().unwrap_or(10))
}

/// The pauses before the last of so many refusals.
fn waited(refusals: u32) -> Duration {
    let before = u64::from(refusals.saturating_sub(1));
    let first: u64 = PAUSES.iter().take(usize::try_from(before).unwrap_or(usize::MAX)).sum();
    Duration::from_secs(first.saturating_add(before.saturating_sub(PAUSES.len() as u64).saturating_mul(10)))
}

impl Job {
    /// Whether it was added to run at once by somebody who waits for it. Delayed jobs, occurrences of schedules and
    /// schedules run by hand are none: nobody stands by to repeat them.
    #[must_use]
    pub fn is_immediate(&self) -> bool {
        self.origin == Origin::Direct && self.scheduled_for.is_none()
    }

    /// Whether a worker may have it: not every POST of it was refused.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        self.posts_sent > self.posts_refused
    }

    /// Whether the last instant at which it may start has passed.
    #[must_use]
    pub fn is_too_late_to_start(&self, now: Timestamp) -> bool {
        self.start_deadline.is_some_and(|latest| latest < now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, NewJob};

    const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);

    /// The instants of all attempts after the first, in seconds after it.
    #[track_caller]
    fn check(new: NewJob, policy: RetryPolicy, expected: &[u64]) {
        let job = Limits::default().check_job(NOW, new).expect("valid").row(NOW);
        let (mut now, mut attempts) = (NOW, Vec::new());
        for refusals in 1..100 {
            let Some(at) = policy.next_attempt(&job, now, refusals) else { break };
            now = at;
            attempts.push(now.since(NOW).as_secs());
        }
        assert_eq!(attempts, expected);
    }

    fn delayed() -> NewJob {
        NewJob::new("dummy", "echo").at(NOW)
    }

    #[test]
    fn an_immediate_job_is_never_tried_again() {
        check(NewJob::new("dummy", "echo"), RetryPolicy::default(), &[]);
    }

    #[test]
    fn pauses_grow_until_the_patience_is_over() {
        check(delayed(), RetryPolicy::default(), &[1, 3, 7, 15, 25, 35, 45, 55, 60]);
        check(delayed(), RetryPolicy { give_up_after: Duration::from_secs(2) }, &[1, 2]);
        check(delayed(), RetryPolicy { give_up_after: Duration::ZERO }, &[]);
    }

    #[test]
    fn a_start_deadline_alone_decides_where_there_is_one() {
        check(delayed().grace(7), RetryPolicy::default(), &[1, 3, 7]);
        check(delayed().grace(6), RetryPolicy::default(), &[1, 3, 5]);
        let many = [1, 3, 7, 15, 25, 35, 45, 55, 65, 75, 85, 89];
        check(delayed().grace(90), RetryPolicy { give_up_after: Duration::ZERO }, &many);
    }

    #[test]
    fn no_count_of_refusals_overflows() {
        let job = Limits::default().check_job(NOW, delayed().grace(60)).expect("valid").row(NOW);
        assert_eq!(RetryPolicy::default().next_attempt(&job, NOW, u32::MAX), Some(NOW.plus_seconds(10)));
    }
}
