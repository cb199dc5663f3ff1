//! What is remembered of the requests of one job.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use norfab_model::{Context, JobId, Poll, Registry, Resend, ScheduleId, SendAgain, Uptime, Workers};

use super::Due;
use crate::registry::Registrations;

/// What is known of one job's requests.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) service: String,
    /// Requests that the broker has not answered. It answers each, and in this order.
    pub(super) out: VecDeque<Out>,
    /// The workers that said 404.
    pub(super) not_found: BTreeMap<String, NotFound>,
    /// How many attempts to reach each worker have failed.
    pub(super) failed: BTreeMap<String, u32>,
    pub(super) ask: BTreeMap<String, Uptime>,
    /// When to ask all workers that there are.
    pub(super) ask_all: Option<Uptime>,
    pub(super) send: BTreeMap<String, Uptime>,
    /// How often the broker was late with the answer to a POST.
    pub(super) late: u32,
    /// Until when the answer to a request may come that left before all workers had registered and was late, or whose place
    /// such an answer has taken. It would be taken for that to a later one. The doubt ends when something is looked for that is
    /// due, and not by the clock alone: what has come by then must have been read.
    pub(super) doubt_until: Option<Uptime>,
    pub(super) gone_since: Option<Uptime>,
    pub(super) elsewhere: Option<Uptime>,
    /// When to send a job again whose message did not get away.
    pub(super) unsent: Option<Uptime>,
    /// Whether a POST left on this connection and the job has not ended since.
    pub(super) posted: bool,
    /// The workers that were asked for their results before what they said was stored.
    pub(super) fetched: BTreeSet<String>,
    pub(super) timer: Option<Uptime>,
    /// What made the job; None when it was sent before this process began.
    pub(super) cause: Option<Cause>,
}

/// What made a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The schedule that it belongs to.
    pub(crate) schedule: Option<ScheduleId>,
    /// Whether it had a time of its own.
    pub(crate) timing: Timing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// It was to run at once: somebody may be waiting for it.
    Immediate,
    Timed,
}

/// A worker that said 404, and nothing else since.
#[derive(Debug)]
pub(super) struct NotFound {
    /// How often in a row.
    pub(super) times: u32,
    /// When that last counted.
    pub(super) at: Uptime,
    /// Whether the broker has handed it a GET that left since: what comes before cannot be the answer to that.
    pub(super) asked: bool,
}

#[derive(Debug)]
pub(super) struct Out {
    pub(super) number: u64,
    pub(super) left: Uptime,
    /// Since when its answer is waited for.
    pub(super) at: Uptime,
    pub(super) what: What,
}

#[derive(Debug, PartialEq)]
pub(super) enum What {
    Post(Workers),
    Get(Workers),
}

impl What {
    pub(super) fn went_to(&self, target: &Workers) -> bool {
        let (Self::Post(own) | Self::Get(own)) = self;
        // One name is written in two ways.
        own == target || own.names().is_some() && own.names() == target.names()
    }
}

impl Known {
    pub(super) fn posts_out(&self) -> usize {
        self.out.iter().filter(|out| matches!(out.what, What::Post(_))).count()
    }

    /// What is answered until then may be the answer to something that was asked before all workers had registered.
    pub(super) fn doubt(&mut self, until: Uptime) {
        self.doubt_until = self.doubt_until.max(Some(until));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
            && self.not_found.is_empty()
            && self.failed.is_empty()
            && self.timer.is_none()
            && self.gone_since.is_none()
            && self.late == 0
            && self.doubt_until.is_none()
            && !self.posted
            && self.cause.is_none()
    }

    pub(super) fn next(&self) -> Option<Uptime> {
        let named = self.ask.values().chain(self.send.values());
        let others = [self.ask_all, self.elsewhere, self.unsent, self.doubt_until];
        named.copied().chain(others.into_iter().flatten()).min()
    }

    /// The oldest request to this target is answered; an answer to something else (a refused PUT) is none of these. Where
    /// the answer does not tell its target, one before it may have been lost: it counts when all requests are alike. `left_out`
    /// tells which of its workers the broker does not know.
    pub(super) fn answered(
        &mut self,
        target: Option<&Workers>,
        doubt_until: Uptime,
        (posts_out, registrations): (&mut usize, &Registrations),
        left_out: impl Fn(&str) -> bool,
    ) -> Context {
        let place = match target {
            Some(target) => self.out.iter().position(|out| out.what.went_to(target)),
            None => self.out.front().filter(|first| self.out.iter().all(|out| out.what == first.what)).map(|_| 0),
        };
        let Some(Out { left, what, .. }) = place.and_then(|place| self.out.remove(place)) else {
            return Context::Unknown;
        };
        let mut registry = registrations.at(left);
        if self.doubt_until.is_some() {
            if registry == Registry::Filling {
                self.doubt(doubt_until);
            }
            registry = Registry::Filling;
        }
        if registry == Registry::Settled && what.went_to(&Workers::All) {
            self.ask_all = None;
        }
        match what {
            What::Get(target) => {
                for (worker, said) in &mut self.not_found {
                    let is_to_it = target.names().is_none_or(|names| names.contains(worker)) && !left_out(worker);
                    said.asked |= is_to_it && left > said.at;
                }
                Context::Get { target, registry }
            }
            What::Post(target) => {
                self.late = 0;
                *posts_out = posts_out.saturating_sub(1);
                let names = target.names().unwrap_or_default();
                let failed_before = names.iter().filter_map(|name| self.failed.get(name)).max().copied().unwrap_or(0);
                for name in names {
                    if left_out(name) {
                        *self.failed.entry(name.clone()).or_default() = failed_before.saturating_add(1);
                    } else {
                        self.failed.remove(name);
                    }
                }
                Context::Post { target, failed_before, registry }
            }
        }
    }

    /// A worker shows that it has the job.
    pub(super) fn has_it(&mut self, worker: &str) -> Context {
        self.not_found.remove(worker);
        self.failed.remove(worker);
        self.ask.remove(worker);
        self.send.remove(worker);
        (self.gone_since, self.elsewhere) = (None, None);
        Context::Unknown
    }

    pub(super) fn take_due(&mut self, now: Uptime, job: &JobId, due: &mut Due) {
        self.doubt_until.take_if(|until| *until <= now);
        let ask = take_until(&mut self.ask, now);
        let all = self.ask_all.take_if(|at| *at <= now).map(|_| Workers::All);
        let target = all.or_else(|| (!ask.is_empty()).then_some(Workers::List(ask)));
        due.ask.extend(target.map(|target| Poll { job: job.clone(), service: self.service.clone(), target }));
        if self.unsent.take_if(|at| *at <= now).is_some() {
            due.send.push(SendAgain { job: job.clone(), why: Resend::Unanswered });
            return;
        }
        let lost = take_until(&mut self.send, now);
        // One reason at a time: whoever goes elsewhere need not go back.
        if self.elsewhere.take_if(|at| *at <= now).is_some() {
            due.send.push(SendAgain { job: job.clone(), why: Resend::Elsewhere });
        } else if !lost.is_empty() {
            due.send.push(SendAgain { job: job.clone(), why: Resend::Lost(lost) });
        }
    }
}

/// Takes out the workers whose instant has come.
fn take_until(instants: &mut BTreeMap<String, Uptime>, now: Uptime) -> Vec<String> {
    let due: Vec<String> = instants.iter().filter(|(_, at)| **at <= now).map(|(worker, _)| worker.clone()).collect();
    instants.retain(|_, at| *at > now);
    due
}
