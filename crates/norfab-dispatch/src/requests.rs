//! What the dispatcher remembers of the requests that it sent: which of them the broker has not answered, which workers
//! do not have a job yet, and when to ask or send again. All of it is lost with the process, and found out again by asking.

mod known;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use norfab_model::{
    Context, FabricEvent, FabricEventKind, FollowUp, Job, JobId, MOST_WORKERS, Moment, Poll, Post, Registry, Reply,
    ReplyKind, Resend, SendAgain, Uptime, Workers,
};

pub(crate) use self::known::{Cause, Timing};
use self::known::{Known, NotFound, Out, What};
use crate::registry::Registrations;

/// How long a worker that does not know a job yet is left alone: its two threads may have raced.
const ASK_PAUSE: Duration = Duration::from_secs(1);

/// Bytes of arguments from which on a job counts as large.
const LARGE: usize = 64 << 10;

/// Bytes in a second of the slowest link that is not taken for a broken one.
const SLOWEST: usize = 128 << 10;

/// So many times the broker's patience after it was late, an answer does not come any more.
const LATEST: u32 = 3;

/// The spans that decide what is late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How long the broker may take to confirm a request.
    pub(crate) answer: Duration,
    /// How long the one worker of a job may be gone before another gets the job, and how long workers may take to register
    /// with a new broker.
    pub(crate) gone: Duration,
}

impl Patience {
    fn doubt_until(&self, now: Uptime) -> Uptime {
        now.saturating_add(self.answer.saturating_mul(LATEST))
    }
}

#[derive(Debug)]
pub(crate) struct Requests {
    patience: Patience,
    jobs: HashMap<JobId, Known>,
    /// Every request in the order in which they were sent; those that were answered drop out at the front.
    sent: VecDeque<(u64, JobId)>,
    /// When something is to be done without a message.
    timers: BTreeSet<(Uptime, JobId)>,
    /// The bytes of large POSTs that the broker has not answered.
    large: HashMap<JobId, usize>,
    last_number: u64,
    posts_out: usize,
    registrations: Registrations,
}

/// What is to be done now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Due {
    pub(crate) ask: Vec<Poll>,
    pub(crate) send: Vec<SendAgain>,
}

impl Requests {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            jobs: HashMap::new(),
            sent: VecDeque::new(),
            timers: BTreeSet::new(),
            large: HashMap::new(),
            last_number: 0,
            posts_out: 0,
            registrations: Registrations::new(patience.gone),
        }
    }

    /// Of how many jobs something is remembered, which is about as many as are under way.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// How many POSTs the broker has not answered.
    pub(crate) fn posts_out(&self) -> usize {
        self.posts_out
    }

    /// Whether a POST of this job is not answered.
    pub(crate) fn is_posted(&self, job: &JobId) -> bool {
        self.jobs.get(job).is_some_and(|known| known.posts_out() > 0)
    }

    /// Whether a POST of this job left on this connection and it has not ended since.
    pub(crate) fn is_under_way(&self, job: &JobId) -> bool {
        self.jobs.get(job).is_some_and(|known| known.posted)
    }

    /// Notes a POST that was just handed over.
    pub(crate) fn posted(&mut self, now: Uptime, post: &Post) {
        let bytes = post.args.as_str().len().saturating_add(post.kwargs.as_str().len());
        if bytes >= LARGE {
            self.large.insert(post.job.clone(), bytes);
        }
        self.note(now, &post.job, &post.service, What::Post(post.target.clone()));
        if let Some(known) = self.jobs.get_mut(&post.job) {
            let timing = if post.scheduled_for.is_some() { Timing::Timed } else { Timing::Immediate };
            known.cause = Some(Cause { schedule: post.schedule_id.clone(), timing });
        }
    }

    /// What made a job, if it was sent by this process.
    pub(crate) fn cause(&self, job: &JobId) -> Option<&Cause> {
        self.jobs.get(job)?.cause.as_ref()
    }

    /// Notes a GET that was just handed over.
    pub(crate) fn asked(&mut self, now: Uptime, poll: &Poll) {
        self.note(now, &poll.job, &poll.service, What::Get(poll.target.clone()));
    }

    fn note(&mut self, now: Uptime, job: &JobId, service: &str, what: What) {
        self.last_number += 1;
        let number = self.last_number;
        self.posts_out += usize::from(matches!(what, What::Post(_)));
        self.sent.push_back((number, job.clone()));
        let known = self.jobs.entry(job.clone()).or_default();
        service.clone_into(&mut known.service);
        if let What::Post(target) = &what {
            // Whatever they said before, they are given it anew.
            known.not_found.retain(|worker, _| target.names().is_some_and(|names| !names.contains(worker)));
            known.posted = true;
        }
        known.out.push_back(Out { number, left: now, at: now, what });
    }

    /// The request of a job that was noted last did not get away.
    pub(crate) fn never_left(&mut self, job: &JobId) {
        let Some(known) = self.jobs.get_mut(job) else { return };
        if let Some(Out { what: What::Post(_), .. }) = known.out.pop_back() {
            self.posts_out = self.posts_out.saturating_sub(1);
            known.posted = false;
            known.cause = None;
        }
        self.settle(job);
    }

    /// Tries later to send a job whose message did not get away.
    pub(crate) fn post_later(&mut self, now: Uptime, job: &JobId) {
        self.jobs.entry(job.clone()).or_default().unsent = Some(now.saturating_add(ASK_PAUSE));
        self.settle(job);
    }

    /// Adds to a reply what is remembered of the request that it answers, and notes what it tells. What is noted of a job
    /// that is none, or has ended, stays until [`ended`](Self::ended) says so.
    pub(crate) fn context_of(&mut self, now: Uptime, reply: Reply) -> Reply {
        let target = match &reply.context {
            Context::Answer { target } => Some(target),
            _ => None,
        };
        if matches!(reply.kind, ReplyKind::NotFound { .. }) {
            self.jobs.entry(reply.job.clone()).or_default();
        }
        let Some(known) = self.jobs.get_mut(&reply.job) else { return reply };
        let (posts_out, registrations) = (&mut self.posts_out, &self.registrations);
        let doubt_until = self.patience.doubt_until(now);
        let context = match &reply.kind {
            ReplyKind::Accepted { workers } => {
                known.gone_since = None;
                let left_out = |worker: &str| !workers.iter().any(|named| named == worker);
                known.answered(target, doubt_until, (posts_out, registrations), left_out)
            }
            ReplyKind::Refused { .. } => known.answered(target, doubt_until, (posts_out, registrations), |_| true),
            // Such a job has no further workers; who names them all the same is not remembered.
            ReplyKind::NotFound { worker }
                if known.not_found.len() >= MOST_WORKERS && !known.not_found.contains_key(worker) =>
            {
                Context::Repeated(0)
            }
            ReplyKind::NotFound { worker } => {
                let first = NotFound { times: 0, at: now, asked: false };
                let said = known.not_found.entry(worker.clone()).or_insert(first);
                // Several that were under way at a time may all have been overtaken by the job, however late they come.
                if said.times == 0 || said.asked && said.at.saturating_add(ASK_PAUSE) <= now {
                    *said = NotFound { times: said.times.saturating_add(1), at: now, asked: false };
                }
                Context::Repeated(said.times.saturating_sub(1))
            }
            ReplyKind::Stored { worker }
            | ReplyKind::Pending { worker }
            | ReplyKind::WaitingInput { worker, .. }
            | ReplyKind::Result { worker, .. } => known.has_it(worker),
            ReplyKind::Event(event) => known.has_it(&event.worker),
        };
        self.settle(&reply.job);
        Reply { context, ..reply }
    }

    /// What to ask for when a worker says that its result is ready, where that need not wait until this is stored: the
    /// broker has taken the POST, so that an answer of its own to the GET is not taken for one to the POST.
    pub(crate) fn fetch(&mut self, reply: &Reply) -> Option<Poll> {
        let ReplyKind::Event(FabricEvent { kind: FabricEventKind::ResultReady, worker, .. }) = &reply.kind else {
            return None;
        };
        let known = self.jobs.get_mut(&reply.job).filter(|known| known.posted && known.posts_out() == 0)?;
        let target = Workers::List(vec![worker.clone()]);
        known.fetched.insert(worker.clone()).then(|| Poll {
            job: reply.job.clone(),
            service: known.service.clone(),
            target,
        })
    }

    /// Whether this worker was asked for its result when it said that it is ready; once for each time that it was.
    pub(crate) fn was_fetched(&mut self, job: &JobId, worker: &str) -> bool {
        self.jobs.get_mut(job).is_some_and(|known| known.fetched.remove(worker))
    }

    /// Notes what the decision on a reply asks for. A result to be fetched is for the caller.
    pub(crate) fn follow(&mut self, now: Moment, job: &Job, follow_up: FollowUp) {
        let known = self.jobs.entry(job.uuid.clone()).or_default();
        job.service.clone_into(&mut known.service);
        match follow_up {
            FollowUp::AskAgain(worker) => {
                known.ask.insert(worker, now.up.saturating_add(ASK_PAUSE));
            }
            FollowUp::AskAll => known.ask_all = Some(self.registrations.wait(now.up)).max(known.doubt_until),
            FollowUp::SendAgain { workers, at } => {
                let at = now.up_at(at);
                known.send.extend(workers.into_iter().map(|worker| (worker, at)));
            }
            FollowUp::Gone => {
                let since = *known.gone_since.get_or_insert(now.up);
                if since.saturating_add(self.patience.gone) <= now.up {
                    known.gone_since = None;
                    known.elsewhere = Some(now.up);
                }
            }
            FollowUp::Fetch(_) => {}
        }
        self.settle(&job.uuid);
    }

    /// Forgets a job that has ended.
    pub(crate) fn ended(&mut self, job: &JobId) {
        let Some(known) = self.jobs.remove(job) else { return };
        self.large.remove(job);
        self.posts_out = self.posts_out.saturating_sub(known.posts_out());
        if let Some(timer) = known.timer {
            self.timers.remove(&(timer, job.clone()));
        }
    }

    /// The broker answers on a new connection. It may be a new one, with which the workers have to register first.
    pub(crate) fn link_up(&mut self, now: Uptime) {
        self.registrations.link_up(now);
    }

    /// The broker is as old as this or older. When that is long enough, all are asked at once who wait for the workers to
    /// register.
    pub(crate) fn broker_is_as_old_as(&mut self, now: Uptime, age: Duration) {
        if !self.registrations.broker_is_as_old_as(now, age) {
            return;
        }
        let mut waiting = Vec::new();
        for (job, known) in self.jobs.iter_mut().filter(|(_, known)| known.ask_all.is_some()) {
            known.ask_all = Some(now).max(known.doubt_until);
            waiting.push(job.clone());
        }
        waiting.iter().for_each(|job| self.settle(job));
    }

    /// Whether a job waits for the workers to register, since this was last asked.
    pub(crate) fn take_unsure(&mut self) -> bool {
        self.registrations.take_unsure()
    }

    /// The connection is gone: what was asked on it is not answered any more, and all that is in flight will be asked for.
    /// The attempts to reach workers that are missing from a list go on.
    pub(crate) fn link_lost(&mut self) {
        let known = std::mem::replace(self, Self::new(self.patience));
        for (job, Known { service, failed, send, cause, .. }) in known.jobs {
            self.jobs.insert(job.clone(), Known { service, failed, send, cause, ..Known::default() });
            self.settle(&job);
        }
    }

    /// Since when the oldest request is waited for that the broker has not answered.
    pub(crate) fn owed_since(&mut self) -> Option<Uptime> {
        while let Some((number, job)) = self.sent.front() {
            let out = self.jobs.get(job).and_then(|known| known.out.iter().find(|out| out.number == *number));
            if let Some(out) = out {
                return Some(out.at);
            }
            self.sent.pop_front();
        }
        None
    }

    /// How long the broker may take to answer: on a slow link large jobs are on their way to it for a while, and nothing
    /// that is sent behind them overtakes them.
    pub(crate) fn answer_time(&self) -> Duration {
        let bytes: usize = self.large.values().sum();
        self.patience.answer.saturating_add(Duration::from_secs((bytes / SLOWEST) as u64))
    }

    /// When there is something to do without a message.
    pub(crate) fn next(&mut self) -> Option<Uptime> {
        let answer_time = self.answer_time();
        let late = self.owed_since().map(|at| at.saturating_add(answer_time));
        let timer = self.timers.first().map(|(at, _)| *at);
        late.into_iter().chain(timer).min()
    }

    /// Takes out what is to be done now. What the broker has not answered in time although it is there is sent again, or,
    /// of a GET, forgotten: the next poll asks anew.
    pub(crate) fn due(&mut self, now: Uptime) -> Due {
        let mut due = Due::default();
        let answer_time = self.answer_time();
        while let Some(at) = self.owed_since().filter(|at| at.saturating_add(answer_time) <= now) {
            let Some((number, job)) = self.sent.pop_front() else { break };
            tracing::debug!(%job, late = ?now.since(at), "The broker did not answer a request");
            let Some(known) = self.jobs.get_mut(&job) else { continue };
            let place = known.out.iter().position(|out| out.number == number);
            let Some(out) = place.and_then(|place| known.out.remove(place)) else { continue };
            if self.registrations.at(out.left) == Registry::Filling {
                known.doubt(self.patience.doubt_until(now));
            }
            if matches!(out.what, What::Post(_)) {
                known.late = known.late.saturating_add(1);
                if known.late.is_power_of_two() {
                    self.posts_out = self.posts_out.saturating_sub(1);
                    due.send.push(SendAgain { job: job.clone(), why: Resend::Unanswered });
                } else {
                    // A large job takes its time on a slow link: it is sent again after 10, 20, 40 s and so on.
                    known.out.push_front(Out { at: now, ..out });
                    self.sent.push_back((number, job.clone()));
                }
            }
            self.settle(&job);
        }
        while let Some((at, job)) = self.timers.first().filter(|(at, _)| *at <= now).cloned() {
            self.timers.remove(&(at, job.clone()));
            let Some(known) = self.jobs.get_mut(&job) else { continue };
            known.timer = None;
            known.take_due(now, &job, &mut due);
            self.settle(&job);
        }
        due
    }

    /// Nobody looked for a while: a worker may have been there meanwhile. For how long it is gone counts from the next refusal
    /// on.
    pub(crate) fn leapt(&mut self) {
        let jobs: Vec<JobId> = self.jobs.keys().cloned().collect();
        for known in self.jobs.values_mut() {
            (known.gone_since, known.elsewhere) = (None, None);
        }
        jobs.iter().for_each(|job| self.settle(job));
    }

    /// Sets a job's timer right, and forgets the job when nothing is known of it.
    fn settle(&mut self, job: &JobId) {
        let Some(known) = self.jobs.get_mut(job) else { return };
        if !self.large.is_empty() && known.posts_out() == 0 {
            self.large.remove(job);
        }
        let timer = known.next();
        if timer != known.timer {
            if let Some(old) = std::mem::replace(&mut known.timer, timer) {
                self.timers.remove(&(old, job.clone()));
            }
            self.timers.extend(timer.map(|at| (at, job.clone())));
        }
        if known.is_empty() {
            self.jobs.remove(job);
        }
    }
}

#[cfg(test)]
mod tests;
