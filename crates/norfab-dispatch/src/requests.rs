//! What the dispatcher remembers of the requests that it sent: which of them the broker has not answered, which workers
//! do not have a job yet, and when to ask or send again. All of it is lost with the process, and found out again by asking.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use norfab_model::{
    Context, FabricEvent, FabricEventKind, FollowUp, Job, JobId, MOST_WORKERS, Poll, Post, Reply, ReplyKind, Resend,
    SendAgain, Timestamp, Workers,
};

/// How long a worker that does not know a job yet is left alone: its two threads may have raced.
const ASK_PAUSE: Duration = Duration::from_secs(1);

/// Bytes of arguments from which on a job counts as large.
const LARGE: usize = 64 << 10;

/// Bytes in a second of the slowest link that is not taken for a broken one.
const SLOWEST: usize = 128 << 10;

/// The spans that decide what is late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How long the broker may take to confirm a request.
    pub(crate) answer: Duration,
    /// How long the one worker of a job may be gone before another gets the job.
    pub(crate) gone: Duration,
}

#[derive(Debug)]
pub(crate) struct Requests {
    patience: Patience,
    jobs: HashMap<JobId, Known>,
    /// Every request in the order in which they were sent; those that were answered drop out at the front.
    sent: VecDeque<(u64, JobId)>,
    /// When something is to be done without a message.
    timers: BTreeSet<(Timestamp, JobId)>,
    /// The bytes of large POSTs that the broker has not answered.
    large: HashMap<JobId, usize>,
    last_number: u64,
    posts_out: usize,
}

/// What is known of one job's requests.
#[derive(Debug, Default)]
struct Known {
    service: String,
    /// Requests that the broker has not answered. It answers each, and in this order.
    out: VecDeque<Out>,
    /// How often each worker has said 404 in a row, and when it last counted.
    not_found: BTreeMap<String, (u32, Timestamp)>,
    /// How many attempts to reach each worker have failed.
    failed: BTreeMap<String, u32>,
    ask: BTreeMap<String, Timestamp>,
    send: BTreeMap<String, Timestamp>,
    /// How often the broker was late with the answer to a POST.
    late: u32,
    gone_since: Option<Timestamp>,
    elsewhere: Option<Timestamp>,
    /// When to send a job again whose message did not get away.
    unsent: Option<Timestamp>,
    /// Whether a POST left on this connection and the job has not ended since.
    posted: bool,
    /// The workers that were asked for their results before what they said was stored.
    fetched: BTreeSet<String>,
    timer: Option<Timestamp>,
}

#[derive(Debug)]
struct Out {
    number: u64,
    at: Timestamp,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    Post(Workers),
    Get(Workers),
}

impl What {
    fn went_to(&self, target: &Workers) -> bool {
        let (Self::Post(own) | Self::Get(own)) = self;
        // One name is written in two ways.
        own == target || own.names().is_some() && own.names() == target.names()
    }
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
    pub(crate) fn posted(&mut self, now: Timestamp, post: &Post) {
        let bytes = post.args.as_str().len().saturating_add(post.kwargs.as_str().len());
        if bytes >= LARGE {
            self.large.insert(post.job.clone(), bytes);
        }
        self.note(now, &post.job, &post.service, What::Post(post.target.clone()));
    }

    /// Notes a GET that was just handed over.
    pub(crate) fn asked(&mut self, now: Timestamp, poll: &Poll) {
        self.note(now, &poll.job, &poll.service, What::Get(poll.target.clone()));
    }

    fn note(&mut self, now: Timestamp, job: &JobId, service: &str, what: What) {
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
        known.out.push_back(Out { number, at: now, what });
    }

    /// The request of a job that was noted last did not get away.
    pub(crate) fn never_left(&mut self, job: &JobId) {
        let Some(known) = self.jobs.get_mut(job) else { return };
        if let Some(Out { what: What::Post(_), .. }) = known.out.pop_back() {
            self.posts_out = self.posts_out.saturating_sub(1);
            known.posted = false;
        }
        self.settle(job);
    }

    /// Tries later to send a job whose message did not get away.
    pub(crate) fn post_later(&mut self, now: Timestamp, job: &JobId) {
        self.jobs.entry(job.clone()).or_default().unsent = Some(now.saturating_add(ASK_PAUSE));
        self.settle(job);
    }

    /// Adds to a reply what is remembered of the request that it answers, and notes what it tells. What is noted of a job
    /// that is none, or has ended, stays until [`ended`](Self::ended) says so.
    pub(crate) fn context_of(&mut self, now: Timestamp, reply: Reply) -> Reply {
        let target = match &reply.context {
            Context::Answer { target } => Some(target),
            _ => None,
        };
        if matches!(reply.kind, ReplyKind::NotFound { .. }) {
            self.jobs.entry(reply.job.clone()).or_default();
        }
        let Some(known) = self.jobs.get_mut(&reply.job) else { return reply };
        let context = match &reply.kind {
            ReplyKind::Accepted { workers } => {
                known.gone_since = None;
                known.answered(&mut self.posts_out, target, |worker| !workers.iter().any(|named| named == worker))
            }
            ReplyKind::Refused { .. } => known.answered(&mut self.posts_out, target, |_| true),
            // Such a job has no further workers; who names them all the same is not remembered.
            ReplyKind::NotFound { worker }
                if known.not_found.len() >= MOST_WORKERS && !known.not_found.contains_key(worker) =>
            {
                Context::Repeated(0)
            }
            ReplyKind::NotFound { worker } => {
                let (times, at) = known.not_found.entry(worker.clone()).or_insert((0, now));
                // Several of them at a time may all have been overtaken by the job.
                let counts = *times == 0 || at.saturating_add(ASK_PAUSE) <= now;
                let context = Context::Repeated(if counts { *times } else { 0 });
                if counts {
                    (*times, *at) = (times.saturating_add(1), now);
                }
                context
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
    pub(crate) fn follow(&mut self, now: Timestamp, job: &Job, follow_up: FollowUp) {
        let known = self.jobs.entry(job.uuid.clone()).or_default();
        job.service.clone_into(&mut known.service);
        match follow_up {
            FollowUp::AskAgain(worker) => {
                known.ask.insert(worker, now.saturating_add(ASK_PAUSE));
            }
            FollowUp::SendAgain { workers, at } => known.send.extend(workers.into_iter().map(|worker| (worker, at))),
            FollowUp::Gone => {
                let since = *known.gone_since.get_or_insert(now);
                if since.saturating_add(self.patience.gone) <= now {
                    known.gone_since = None;
                    known.elsewhere = Some(now);
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

    /// The connection is gone: what was asked on it is not answered any more, and all that is in flight will be asked for.
    /// The attempts to reach workers that are missing from a list go on.
    pub(crate) fn link_lost(&mut self) {
        let known = std::mem::replace(self, Self::new(self.patience));
        for (job, Known { service, failed, send, .. }) in known.jobs {
            self.jobs.insert(job.clone(), Known { service, failed, send, ..Known::default() });
            self.settle(&job);
        }
    }

    /// When the oldest request left that the broker has not answered.
    pub(crate) fn owed_since(&mut self) -> Option<Timestamp> {
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
    pub(crate) fn next(&mut self) -> Option<Timestamp> {
        let answer_time = self.answer_time();
        let late = self.owed_since().map(|at| at.saturating_add(answer_time));
        let timer = self.timers.first().map(|(at, _)| *at);
        late.into_iter().chain(timer).min()
    }

    /// Takes out what is to be done now. What the broker has not answered in time although it is there is sent again, or,
    /// of a GET, forgotten: the next poll asks anew.
    pub(crate) fn due(&mut self, now: Timestamp) -> Due {
        let mut due = Due::default();
        let answer_time = self.answer_time();
        while let Some(at) = self.owed_since().filter(|at| at.saturating_add(answer_time) <= now) {
            let Some((number, job)) = self.sent.pop_front() else { break };
            tracing::debug!(%job, "The broker did not answer a request of {at}");
            let Some(known) = self.jobs.get_mut(&job) else { continue };
            let place = known.out.iter().position(|out| out.number == number);
            let Some(out) = place.and_then(|place| known.out.remove(place)) else { continue };
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

    /// After a step of the clock into the past, what was to happen by the old time happens by the new one.
    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        let jobs: Vec<JobId> = self.jobs.keys().cloned().collect();
        for known in self.jobs.values_mut() {
            known.out.iter_mut().for_each(|out| out.at = out.at.min(now));
            let instants = known.ask.values_mut().chain(known.send.values_mut());
            let instants = instants.chain(&mut known.gone_since).chain(&mut known.elsewhere).chain(&mut known.unsent);
            let instants = instants.chain(known.not_found.values_mut().map(|(_, at)| at));
            instants.for_each(|at| *at = (*at).min(now));
        }
        jobs.iter().for_each(|job| self.settle(job));
    }

    /// After a leap of the clock it is not known how long a worker was really gone: that counts from the next refusal on.
    pub(crate) fn clock_leapt(&mut self) {
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

impl Known {
    fn posts_out(&self) -> usize {
        self.out.iter().filter(|out| matches!(out.what, What::Post(_))).count()
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty()
            && self.not_found.is_empty()
            && self.failed.is_empty()
            && self.timer.is_none()
            && self.gone_since.is_none()
            && self.late == 0
            && !self.posted
    }

    fn next(&self) -> Option<Timestamp> {
        self.ask.values().chain(self.send.values()).chain(&self.elsewhere).chain(&self.unsent).min().copied()
    }

    /// The oldest request to this target is answered; an answer to something else (a refused PUT) is none of these. Where
    /// the answer does not tell its target, one before it may have been lost: it counts when all requests are alike. `left_out` tells which of its workers the broker does not know.
    fn answered(
        &mut self,
        posts_out: &mut usize,
        target: Option<&Workers>,
        left_out: impl Fn(&str) -> bool,
    ) -> Context {
        let place = match target {
            Some(target) => self.out.iter().position(|out| out.what.went_to(target)),
            None => self.out.front().filter(|first| self.out.iter().all(|out| out.what == first.what)).map(|_| 0),
        };
        match place.and_then(|place| self.out.remove(place)) {
            None => Context::Unknown,
            Some(Out { what: What::Get(target), .. }) => Context::Get { target },
            Some(Out { what: What::Post(target), .. }) => {
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
                Context::Post { target, failed_before }
            }
        }
    }

    /// A worker shows that it has the job.
    fn has_it(&mut self, worker: &str) -> Context {
        self.not_found.remove(worker);
        self.failed.remove(worker);
        self.ask.remove(worker);
        self.send.remove(worker);
        (self.gone_since, self.elsewhere) = (None, None);
        Context::Unknown
    }

    fn take_due(&mut self, now: Timestamp, job: &JobId, due: &mut Due) {
        let ask = take_until(&mut self.ask, now);
        if !ask.is_empty() {
            due.ask.push(Poll { job: job.clone(), service: self.service.clone(), target: Workers::List(ask) });
        }
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
fn take_until(instants: &mut BTreeMap<String, Timestamp>, now: Timestamp) -> Vec<String> {
    let due: Vec<String> = instants.iter().filter(|(_, at)| **at <= now).map(|(worker, _)| worker.clone()).collect();
    instants.retain(|_, at| *at > now);
    due
}

#[cfg(test)]
mod tests {
    use norfab_model::{Json, Limits, NewJob};

    use super::*;

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn requests() -> Requests {
        Requests::new(Patience { answer: Duration::from_secs(10), gone: Duration::from_secs(30) })
    }

    fn after(seconds: u32) -> Timestamp {
        T0.plus_seconds(seconds)
    }

    fn id() -> JobId {
        JobId::new("job").expect("valid")
    }

    fn job() -> Job {
        let new = NewJob { id: Some(id()), ..NewJob::new("dummy", "echo") };
        Limits::default().check_job(T0, new).expect("valid").row(T0)
    }

    fn list(names: &[&str]) -> Workers {
        Workers::List(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn post(target: Workers) -> Post {
        let (args, kwargs) = (Json::empty_array(), Json::empty_object());
        Post { job: id(), service: "dummy".into(), target, task: "echo".into(), args, kwargs, timeout: 1 }
    }

    fn poll() -> Poll {
        Poll { job: id(), service: "dummy".into(), target: list(&["w1"]) }
    }

    fn got() -> Context {
        Context::Get { target: list(&["w1"]) }
    }

    #[track_caller]
    fn check(requests: &mut Requests, kind: ReplyKind, context: Context) {
        check_at(requests, T0, kind, context);
    }

    #[track_caller]
    fn check_at(requests: &mut Requests, now: Timestamp, kind: ReplyKind, context: Context) {
        assert_eq!(requests.context_of(now, Reply::new(id(), kind)).context, context);
    }

    fn accepted(workers: &[&str]) -> ReplyKind {
        ReplyKind::Accepted { workers: names(workers) }
    }

    fn ready(worker: &str) -> Reply {
        let event = FabricEvent {
            worker: worker.to_owned(),
            kind: FabricEventKind::ResultReady,
            message: String::new(),
            severity: "INFO".to_owned(),
            task: None,
            data: Json::empty_object(),
        };
        Reply::new(id(), ReplyKind::Event(event))
    }

    #[test]
    fn a_result_is_fetched_at_once_when_the_broker_has_taken_the_post() {
        let mut requests = requests();
        assert_eq!(requests.fetch(&ready("w1")), None);
        requests.posted(T0, &post(list(&["w1"])));
        assert_eq!(requests.fetch(&ready("w1")), None);
        check(&mut requests, accepted(&["w1"]), Context::Post { target: list(&["w1"]), failed_before: 0 });
        assert!(requests.is_under_way(&id()));
        assert_eq!(requests.fetch(&ready("w1")), Some(poll()));
        // One for each announcement that is stored, and none twice.
        assert_eq!(requests.fetch(&ready("w1")), None);
        assert!(!requests.was_fetched(&id(), "w2"));
        assert!(requests.was_fetched(&id(), "w1") && !requests.was_fetched(&id(), "w1"));
        requests.ended(&id());
        assert!(!requests.is_under_way(&id()));
        assert_eq!(requests.fetch(&ready("w1")), None);
    }

    #[test]
    fn nothing_is_fetched_at_once_on_a_new_connection() {
        let mut requests = requests();
        requests.posted(T0, &post(list(&["w1"])));
        check(&mut requests, accepted(&["w1"]), Context::Post { target: list(&["w1"]), failed_before: 0 });
        requests.link_lost();
        assert_eq!(requests.fetch(&ready("w1")), None);
        assert!(!requests.is_under_way(&id()));
    }

    fn refused() -> ReplyKind {
        ReplyKind::Refused { errors: Vec::new() }
    }

    fn not_found() -> ReplyKind {
        ReplyKind::NotFound { worker: "w1".into() }
    }

    fn send(why: Resend) -> Vec<SendAgain> {
        vec![SendAgain { job: id(), why }]
    }

    #[test]
    fn answers_belong_to_the_requests_in_their_order() {
        let mut requests = requests();
        check(&mut requests, accepted(&["w1"]), Context::Unknown);
        requests.posted(T0, &post(Workers::All));
        requests.posted(T0, &post(Workers::All));
        requests.asked(T0, &poll());
        assert_eq!(requests.posts_out(), 2);
        // The answers to both POSTs may have been lost.
        check(&mut requests, accepted(&["w1"]), Context::Unknown);
        let to_all = Reply { context: Context::Answer { target: Workers::All }, ..Reply::new(id(), accepted(&["w1"])) };
        for posts_out in [1, 0] {
            let reply = requests.context_of(T0, to_all.clone());
            assert_eq!(reply.context, Context::Post { target: Workers::All, failed_before: 0 });
            assert_eq!(requests.posts_out(), posts_out);
        }
        check(&mut requests, refused(), got());
        check(&mut requests, refused(), Context::Unknown);
        assert!(requests.owed_since().is_none() && requests.sent.is_empty());
        requests.ended(&id());
        assert!(requests.jobs.is_empty());
    }

    #[test]
    fn a_large_job_may_take_its_time_on_the_way() {
        let mut requests = requests();
        let kwargs = Json::of(&"x".repeat(40 * SLOWEST)).expect("valid");
        requests.posted(T0, &Post { kwargs, ..post(list(&["w1"])) });
        assert_eq!((requests.answer_time(), requests.next()), (Duration::from_secs(50), Some(after(50))));
        assert_eq!(requests.due(after(49)), Due::default());
        check(&mut requests, accepted(&["w1"]), Context::Post { target: list(&["w1"]), failed_before: 0 });
        assert_eq!(requests.answer_time(), Duration::from_secs(10));
        requests.posted(T0, &post(list(&["w1"])));
        assert_eq!(requests.next(), Some(after(10)));
    }

    #[test]
    fn failed_attempts_are_counted_by_worker() {
        let mut requests = requests();
        let posted = |target: &Workers, failed_before| Context::Post { target: target.clone(), failed_before };
        let (both, second) = (list(&["w1", "w2"]), list(&["w2"]));
        requests.posted(T0, &post(both.clone()));
        check(&mut requests, accepted(&["w1"]), posted(&both, 0));
        for failed_before in 1..4 {
            requests.posted(T0, &post(second.clone()));
            check(&mut requests, refused(), posted(&second, failed_before));
        }
        requests.posted(T0, &post(second.clone()));
        check(&mut requests, accepted(&["w2"]), posted(&second, 4));
        requests.posted(T0, &post(second.clone()));
        check(&mut requests, refused(), posted(&second, 0));
    }

    #[test]
    fn what_is_not_answered_is_late_after_its_time() {
        let mut requests = requests();
        requests.posted(T0, &post(Workers::All));
        requests.asked(after(1), &poll());
        assert_eq!((requests.owed_since(), requests.next()), (Some(T0), Some(after(10))));
        assert_eq!(requests.due(after(9)), Due::default());
        assert_eq!(requests.due(after(10)).send, send(Resend::Unanswered));
        assert_eq!((requests.owed_since(), requests.posts_out()), (Some(after(1)), 0));
        assert_eq!(requests.due(after(11)), Due::default());
        assert_eq!(requests.next(), None);
    }

    #[test]
    fn what_did_not_get_away_is_owed_no_answer() {
        let mut requests = requests();
        requests.asked(T0, &poll());
        requests.posted(T0, &post(Workers::All));
        requests.never_left(&id());
        assert_eq!(requests.posts_out(), 0);
        check(&mut requests, refused(), got());
        requests.post_later(T0, &id());
        assert_eq!(requests.due(T0), Due::default());
        assert_eq!(requests.due(after(1)).send, send(Resend::Unanswered));
        assert!(requests.jobs.is_empty());
    }

    #[test]
    fn what_stays_unanswered_is_sent_again_after_longer_and_longer() {
        let mut requests = requests();
        let mut sent_at = Vec::new();
        requests.posted(T0, &post(Workers::All));
        for seconds in 1..=160 {
            if !requests.due(after(seconds)).send.is_empty() {
                sent_at.push(seconds);
                requests.posted(after(seconds), &post(Workers::All));
            }
        }
        assert_eq!((sent_at, requests.posts_out()), (vec![10, 20, 40, 80, 160], 1));
    }

    #[test]
    fn a_worker_that_does_not_know_the_job_is_asked_and_then_given_it() {
        let mut requests = requests();
        requests.asked(T0, &poll());
        check(&mut requests, accepted(&["w1"]), got());
        check(&mut requests, not_found(), Context::Repeated(0));
        requests.follow(T0, &job(), FollowUp::AskAgain("w1".into()));
        assert_eq!((requests.next(), requests.due(T0)), (Some(after(1)), Due::default()));
        assert_eq!(requests.due(after(1)).ask, [poll()]);
        // One that left with the first says no more than that.
        check(&mut requests, not_found(), Context::Repeated(0));
        check_at(&mut requests, after(1), not_found(), Context::Repeated(1));
        let workers = names(&["w1"]);
        requests.follow(after(1), &job(), FollowUp::SendAgain { workers: workers.clone(), at: after(2) });
        assert_eq!(requests.due(after(2)).send, send(Resend::Lost(workers)));
        requests.posted(after(2), &post(list(&["w1"])));
        check(&mut requests, not_found(), Context::Repeated(0));
    }

    #[test]
    fn a_sign_of_the_worker_ends_all_doubt() {
        let mut requests = requests();
        check(&mut requests, not_found(), Context::Repeated(0));
        requests.follow(T0, &job(), FollowUp::AskAgain("w1".into()));
        requests.follow(T0, &job(), FollowUp::Gone);
        check(&mut requests, ReplyKind::Stored { worker: "w1".into() }, Context::Unknown);
        assert_eq!((requests.next(), requests.jobs.len()), (None, 0));
    }

    #[test]
    fn a_leap_of_the_clock_makes_no_worker_gone_for_long() {
        let mut requests = requests();
        requests.follow(T0, &job(), FollowUp::Gone);
        requests.clock_leapt();
        assert_eq!(requests.jobs.len(), 0);
        requests.follow(after(3600), &job(), FollowUp::Gone);
        requests.follow(after(3629), &job(), FollowUp::Gone);
        assert_eq!(requests.next(), None);
    }

    #[test]
    fn another_worker_only_after_it_was_gone_for_long() {
        let mut requests = requests();
        for seconds in [0, 10, 29] {
            requests.follow(after(seconds), &job(), FollowUp::Gone);
            assert_eq!(requests.due(after(seconds)), Due::default());
        }
        requests.follow(after(30), &job(), FollowUp::Gone);
        assert_eq!(requests.due(after(30)).send, send(Resend::Elsewhere));
        // Back for a moment, and gone again: it counts from then.
        requests.follow(after(40), &job(), FollowUp::Gone);
        check(&mut requests, accepted(&["w1"]), Context::Unknown);
        requests.follow(after(60), &job(), FollowUp::Gone);
        requests.follow(after(80), &job(), FollowUp::Gone);
        assert_eq!(requests.due(after(80)), Due::default());
    }

    #[test]
    fn what_ends_is_forgotten() {
        let mut requests = requests();
        requests.posted(T0, &post(Workers::All));
        requests.follow(T0, &job(), FollowUp::AskAgain("w1".into()));
        requests.ended(&id());
        assert_eq!((requests.posts_out(), requests.next(), requests.timers.len()), (0, None, 0));
        requests.posted(T0, &post(Workers::All));
        requests.link_lost();
        assert_eq!((requests.posts_out(), requests.next()), (0, None));
    }

    #[test]
    fn an_answer_is_told_apart_by_whom_it_is_for() {
        let mut requests = requests();
        let (second, other) = (list(&["w2"]), Workers::One("w1".into()));
        requests.posted(T0, &post(second.clone()));
        let of = |target: &Workers| Reply {
            context: Context::Answer { target: target.clone() },
            ..Reply::new(id(), refused())
        };
        // A refused answer to a question of w1.
        assert_eq!(requests.context_of(T0, of(&other)).context, Context::Unknown);
        assert_eq!(requests.posts_out(), 1);
        requests.asked(T0, &poll());
        assert_eq!(requests.context_of(T0, of(&list(&["w1"]))).context, got());
        assert_eq!(requests.context_of(T0, of(&second)).context, Context::Post { target: second, failed_before: 0 });
    }

    #[test]
    fn a_lost_link_ends_no_attempt_to_reach_a_missing_worker() {
        let mut requests = requests();
        requests.posted(T0, &post(list(&["w1", "w2"])));
        requests.follow(T0, &job(), FollowUp::SendAgain { workers: names(&["w2"]), at: after(1) });
        requests.link_lost();
        assert_eq!((requests.posts_out(), requests.owed_since()), (0, None));
        assert_eq!(requests.due(after(1)).send, send(Resend::Lost(names(&["w2"]))));
    }

    #[test]
    fn a_clock_set_back_delays_nothing() {
        let mut requests = requests();
        requests.posted(after(3600), &post(Workers::All));
        requests.follow(after(3600), &job(), FollowUp::AskAgain("w1".into()));
        requests.clock_went_back(T0);
        assert_eq!(requests.due(T0).ask.len(), 1);
        assert_eq!(requests.due(after(10)).send, send(Resend::Unanswered));
    }
}
