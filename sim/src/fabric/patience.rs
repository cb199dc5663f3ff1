//! For how long a job's worker has been gone, as the client can know it: since the broker first refused what was asked of it.

use std::collections::BTreeMap;

use norfab_model::{Context, JobId, Reply, ReplyKind, Workers};

use super::Micros;

/// What the client knows of the workers that jobs were refused to.
#[derive(Debug, Default)]
pub(super) struct Patience {
    refusals: BTreeMap<JobId, Refusal>,
    /// For how long a worker had been gone when a POST was to leave, at the most.
    longest: BTreeMap<JobId, Micros>,
}

/// Everything about a job has been refused since then.
#[derive(Debug, Clone)]
struct Refusal {
    since: Micros,
    /// Whom it was asked of; None: whoever there was.
    names: Option<Vec<String>>,
}

impl Patience {
    /// A POST of the job is to leave.
    pub(super) fn posts(&mut self, job: &JobId, now: Micros) {
        let since = self.refusals.get(job).map_or(now, |refusal| refusal.since);
        let longest = self.longest.entry(job.clone()).or_default();
        *longest = now.saturating_sub(since).max(*longest);
    }

    /// The client gets a reply. What another worker says does not bring back the one that is gone.
    pub(super) fn hears(&mut self, reply: &Reply, now: Micros) {
        if let ReplyKind::Refused { .. } = &reply.kind {
            let asked = if let Context::Answer { target } = &reply.context { target } else { &Workers::Any };
            let names = asked.names().map(<[String]>::to_vec);
            let refusal = Refusal { since: now, names };
            let known = self.refusals.entry(reply.job.clone()).or_insert_with(|| refusal.clone());
            if known.names != refusal.names {
                *known = refusal;
            }
            return;
        }
        let is_back = |refusal: &Refusal| {
            let names = refusal.names.as_ref();
            names.is_none_or(|names| speaks_of(&reply.kind).iter().any(|worker| names.contains(worker)))
        };
        if self.refusals.get(&reply.job).is_some_and(is_back) {
            self.refusals.remove(&reply.job);
        }
    }

    /// The longest that a worker of the job had been gone when a POST of it was to leave.
    pub(super) fn longest(&self, job: &JobId) -> Micros {
        self.longest.get(job).copied().unwrap_or(0)
    }
}

/// The workers that are there, by a reply.
fn speaks_of(kind: &ReplyKind) -> &[String] {
    match kind {
        ReplyKind::Refused { .. } => &[],
        ReplyKind::Accepted { workers } => workers,
        ReplyKind::Stored { worker }
        | ReplyKind::Pending { worker }
        | ReplyKind::WaitingInput { worker, .. }
        | ReplyKind::Result { worker, .. }
        | ReplyKind::NotFound { worker } => std::slice::from_ref(worker),
        ReplyKind::Event(event) => std::slice::from_ref(&event.worker),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::SECOND;

    fn job() -> JobId {
        JobId::parse("00000000000000000000000000000001").expect("an identity")
    }

    fn refused(at: u64, name: &str) -> (Micros, Reply) {
        let context = Context::Answer { target: Workers::One(name.into()) };
        (at * SECOND, Reply { context, ..Reply::new(job(), ReplyKind::Refused { errors: Vec::new() }) })
    }

    fn accepted(at: u64, name: &str) -> (Micros, Reply) {
        (at * SECOND, Reply::new(job(), ReplyKind::Accepted { workers: vec![name.into()] }))
    }

    /// For how many seconds the worker is gone at the twentieth.
    #[track_caller]
    fn check(replies: impl IntoIterator<Item = (Micros, Reply)>, seconds: u64) {
        let mut patience = Patience::default();
        for (at, reply) in replies {
            patience.hears(&reply, at);
        }
        patience.posts(&job(), 20 * SECOND);
        assert_eq!(patience.longest(&job()), seconds * SECOND);
    }

    #[test]
    fn a_worker_is_gone_from_the_first_refusal() {
        check([], 0);
        check([refused(5, "w1"), refused(9, "w1")], 15);
        check([refused(5, "w1"), accepted(6, "w1"), refused(9, "w1")], 11);
        check([refused(5, "w1"), refused(9, "w2")], 11);
    }

    #[test]
    fn another_worker_does_not_bring_it_back() {
        check([refused(5, "w1"), accepted(12, "w2")], 15);
    }
}
