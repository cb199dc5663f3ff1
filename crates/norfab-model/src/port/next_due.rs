//! When a pass has something to do next: what a store tells, kept up by what changes from then on.

use crate::{Job, JobStatus, Timestamp};

/// The nearest instants at which a pass has something to do. None: nothing of the kind waits. What a database holds in
/// place of an instant, and is none, counts as the epoch: due, so that a step comes upon it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextDue {
    /// The earliest `scheduled_for` of a SCHEDULED job.
    pub release: Option<Timestamp>,
    /// The earliest `start_deadline` of a SCHEDULED job.
    pub miss: Option<Timestamp>,
    /// The earliest deadline of a job that is NEW.
    pub expire_unsent: Option<Timestamp>,
    /// The earliest deadline of a job in flight.
    pub expire: Option<Timestamp>,
    /// The earliest instant at which a NEW job may be sent; the epoch for one that may be sent at once.
    pub send: Option<Timestamp>,
    /// The longest-ago instant at which a job in flight (other than SUBMITTING) was asked for; the epoch for never.
    pub polled: Option<Timestamp>,
}

impl NextDue {
    /// Takes in a job as it now is, so that nothing of it is due before these instants say so. What it was before is not
    /// taken out again: they may be too early then, never too late.
    pub fn note(&mut self, job: &Job) {
        match job.status {
            JobStatus::Scheduled => {
                earlier(&mut self.release, job.scheduled_for);
                earlier(&mut self.miss, job.start_deadline);
            }
            JobStatus::New => {
                earlier(&mut self.expire_unsent, job.expires_at());
                earlier(&mut self.send, Some(job.next_attempt_at.unwrap_or(Timestamp::EPOCH)));
            }
            _ => {
                earlier(&mut self.expire, job.expires_at());
                if job.status.is_polled() {
                    earlier(&mut self.polled, Some(job.last_poll.unwrap_or(Timestamp::EPOCH)));
                }
            }
        }
    }

    /// Takes in that a job was made and claimed since: it was never known to be NEW.
    pub fn note_sent(&mut self, job: &Job) {
        earlier(&mut self.expire, job.expires_at());
    }

    /// Takes in that NEW jobs were claimed: their deadlines are those of jobs in flight now.
    pub fn note_claimed(&mut self) {
        earlier(&mut self.expire, self.expire_unsent);
    }
}

fn earlier(known: &mut Option<Timestamp>, at: Option<Timestamp>) {
    *known = known.iter().copied().chain(at).min();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, NewJob};

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn after(seconds: u32) -> Option<Timestamp> {
        Some(T0.plus_seconds(seconds))
    }

    fn job(status: JobStatus, change: impl FnOnce(&mut Job)) -> Job {
        let new = NewJob::new("dummy", "echo").at(T0.plus_seconds(60)).grace(10).timeout(100);
        let mut job = Limits::default().check_job(T0, new).expect("valid").row(T0);
        job.status = status;
        change(&mut job);
        job
    }

    #[track_caller]
    fn check(jobs: &[Job], expected: NextDue) {
        let mut due = NextDue::default();
        jobs.iter().for_each(|job| due.note(job));
        assert_eq!(due, expected);
    }

    #[test]
    fn each_status_has_its_instants() {
        let none = NextDue::default();
        let scheduled = NextDue { release: after(60), miss: after(70), ..none };
        check(&[job(JobStatus::Scheduled, |_| {})], scheduled);
        let new = job(JobStatus::New, |job| job.deadline = after(100));
        check(std::slice::from_ref(&new), NextDue { send: Some(Timestamp::EPOCH), expire_unsent: after(100), ..none });
        let waits = Job { next_attempt_at: after(120), ..new.clone() };
        check(&[waits], NextDue { send: after(120), expire_unsent: after(120), ..none });
        let claimed = Job { status: JobStatus::Submitting, ..new };
        check(std::slice::from_ref(&claimed), NextDue { expire: after(100), ..none });
        let sent = Job { status: JobStatus::Started, last_poll: after(1), ..claimed };
        check(std::slice::from_ref(&sent), NextDue { expire: after(100), polled: after(1), ..none });
        check(&[Job { status: JobStatus::Completed, ..sent }], none);
    }

    #[test]
    fn the_earliest_of_all_counts() {
        let at = |seconds| job(JobStatus::New, |job| (job.deadline, job.next_attempt_at) = (after(9), after(seconds)));
        let expected = NextDue { send: after(3), expire_unsent: after(9), ..NextDue::default() };
        check(&[at(5), at(3), at(4)], expected);
    }

    #[test]
    fn what_is_claimed_expires_no_later() {
        let mut due = NextDue { expire_unsent: after(5), ..NextDue::default() };
        due.note_claimed();
        assert_eq!(due, NextDue { expire: after(5), ..due });
        due.expire = after(3);
        due.note_claimed();
        assert_eq!(due.expire, after(3));
    }
}
