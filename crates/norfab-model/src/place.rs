//! Where a job goes whose caller takes any worker: to one of those that are alive, and to the same one again when the
//! choice is repeated, since a worker never runs a job twice and two workers would.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Job, JobId, Json, Timestamp, Workers};

/// The workers that were registered with the broker at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveWorkers {
    asked_at: Timestamp,
    /// Service and name.
    workers: Vec<(String, String)>,
    /// For how long the broker has known one of those in its list.
    known_for: Duration,
}

impl LiveWorkers {
    /// Reads the broker's answer to `show_workers`, which was asked at this instant. None when it is no such answer.
    /// Workers that the broker counts as dead, and the empty entry by which it says that there are none, are left out.
    #[must_use]
    pub fn from_answer(asked_at: Timestamp, answer: &Json) -> Option<Self> {
        let Ok(Value::Array(entries)) = serde_json::from_str(answer.as_str()) else { return None };
        let workers = entries.iter().map(live).collect::<Option<Vec<_>>>()?;
        let known_for = entries.iter().filter_map(known_for).max().unwrap_or_default();
        Some(Self { asked_at, workers: workers.into_iter().flatten().collect(), known_for })
    }

    /// When the broker was asked.
    #[must_use]
    pub fn asked_at(&self) -> Timestamp {
        self.asked_at
    }

    /// For how long the broker has known the worker of its list that it has known longest, in whole seconds: so old it is
    /// at least. Zero where it does not say.
    #[must_use]
    pub fn known_for(&self) -> Duration {
        self.known_for
    }

    /// The worker for a job to any worker of a service (all services for `all`), these left out: the one with the highest
    /// hash of job and name, so that the choice changes only when that worker comes or goes. None when there is none.
    #[must_use]
    pub fn choose(&self, job: &JobId, service: &str, except: &[String]) -> Option<&str> {
        let of_service = self.workers.iter().filter(|(of, _)| service == "all" || service == of);
        let names = of_service.map(|(_, name)| name.as_str()).filter(|name| !except.iter().any(|not| not == name));
        names.max_by_key(|name| weight(job, name))
    }
}

/// A worker of the broker's list; the inner None for one that is not there, the outer for no entry at all.
fn live(entry: &Value) -> Option<Option<(String, String)>> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let (service, name) = (text("service")?, text("name")?);
    let alive = !name.is_empty() && text("status").is_none_or(|status| status == "alive");
    Some(alive.then(|| (service.to_owned(), name.to_owned())))
}

/// For how long the broker has known a worker, which it says in text.
fn known_for(entry: &Value) -> Option<Duration> {
    let seconds = match entry.get("alive (s)")? {
        Value::String(text) => text.parse().ok()?,
        number => number.as_u64()?,
    };
    Some(Duration::from_secs(seconds))
}

/// SHA-256 of `norfab-place:JOB:WORKER`.
fn weight(job: &JobId, worker: &str) -> [u8; 32] {
    Sha256::digest(format!("norfab-place:{job}:{worker}")).into()
}

/// Where to send a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// To these.
    To(Workers),
    /// To nobody: any worker would do, and there is none.
    Nobody,
    /// The live workers must be asked for first.
    Ask,
}

/// Decides where a job goes that is about to be sent at `now`: where it went before, else where its caller wants it, else
/// to a live worker. That there is none counts only when the broker was asked after the job became ready.
#[must_use]
pub fn place(job: &Job, now: Timestamp, live: Option<&LiveWorkers>) -> Placement {
    if let Some(recorded) = job.dispatch_target.as_ref().filter(|target| **target != Workers::Any) {
        return Placement::To(recorded.clone());
    }
    if job.workers_requested != Workers::Any {
        return Placement::To(job.workers_requested.clone());
    }
    let Some(live) = live else { return Placement::Ask };
    // After a refusal the list that led to it is worth nothing.
    let ready_at = job.next_attempt_at.or(job.released_at).map_or(Timestamp::MIN, |at| at.min(now));
    let refused = job.posts_refused > 0 && live.asked_at < ready_at;
    match live.choose(&job.uuid, &job.service, &[]) {
        Some(worker) if !refused => Placement::To(Workers::One(worker.to_owned())),
        None if live.asked_at >= ready_at => Placement::Nobody,
        _ => Placement::Ask,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{JobStatus, Limits, NewJob};

    const NOW: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn live(asked_at: Timestamp, workers: &[(&str, &str)]) -> LiveWorkers {
        let workers = workers.iter().map(|(service, name)| ((*service).to_owned(), (*name).to_owned())).collect();
        LiveWorkers { asked_at, workers, known_for: Duration::ZERO }
    }

    fn job(workers: Workers) -> Job {
        let new = NewJob::new("dummy", "echo").workers(workers);
        let mut job = Limits::default().check_job(NOW, new).expect("valid").row(NOW);
        job.uuid = JobId::new("a").expect("valid");
        job
    }

    fn one(name: &str) -> Placement {
        Placement::To(Workers::One(name.to_owned()))
    }

    #[test]
    fn the_brokers_answer_is_read() {
        let answer = r#"[{"name":"w1","service":"dummy","status":"alive","holdtime":"1.8"},
            {"name":"w2","service":"dummy","status":"dead"},{"name":"","service":"","status":""}]"#;
        let read = |text| LiveWorkers::from_answer(NOW, &Json::parse(text).expect("JSON"));
        assert_eq!(read(answer), Some(live(NOW, &[("dummy", "w1")])));
        assert_eq!(read("[]"), Some(live(NOW, &[])));
        assert_eq!(read("\"Unsupported task\""), None);
        assert_eq!(read("[1]"), None);
    }

    #[test]
    fn the_broker_is_as_old_as_what_it_has_known_longest() {
        let check = |ages: &[Value], seconds| {
            let entry = |age: &Value| json!({ "name": "w", "service": "dummy", "status": "dead", "alive (s)": age });
            let answer = Json::from(Value::Array(ages.iter().map(entry).collect()));
            let read = LiveWorkers::from_answer(NOW, &answer).expect("a list");
            assert_eq!(read.known_for(), Duration::from_secs(seconds), "{ages:?}");
        };
        check(&[], 0);
        check(&["12".into(), 22.into(), "7".into()], 22);
        check(&["".into(), (-3).into(), "-3".into(), "1e9".into(), Value::Null], 0);
    }

    #[test]
    fn named_workers_and_recorded_ones_need_no_choice() {
        for workers in [Workers::All, Workers::One("w1".into()), Workers::List(vec!["w1".into(), "w2".into()])] {
            assert_eq!(place(&job(workers.clone()), NOW, None), Placement::To(workers));
        }
        let mut recorded = job(Workers::Any);
        recorded.dispatch_target = Some(Workers::One("w9".into()));
        assert_eq!(place(&recorded, NOW, Some(&live(NOW, &[("dummy", "w1")]))), one("w9"));
    }

    #[test]
    fn any_is_one_of_the_service_that_is_alive() {
        let any = job(Workers::Any);
        let workers = [("other", "w0"), ("dummy", "w1")];
        assert_eq!(place(&any, NOW, None), Placement::Ask);
        assert_eq!(place(&any, NOW, Some(&live(NOW, &workers))), one("w1"));
        let mut of_all = any;
        of_all.service = "all".to_owned();
        assert_eq!(place(&of_all, NOW, Some(&live(NOW, &[("other", "w0")]))), one("w0"));
    }

    #[test]
    fn nobody_is_only_who_was_asked_for_in_time() {
        let any = job(Workers::Any);
        let before = NOW.saturating_sub(std::time::Duration::from_micros(1));
        assert_eq!(place(&any, NOW, Some(&live(before, &[]))), Placement::Ask);
        assert_eq!(place(&any, NOW, Some(&live(NOW, &[]))), Placement::Nobody);
        // A clock that went back must not let it be asked for ever.
        let mut ahead = any;
        ahead.released_at = Some(NOW.plus_seconds(3600));
        assert_eq!(place(&ahead, NOW, Some(&live(NOW, &[]))), Placement::Nobody);
    }

    #[test]
    fn after_a_refusal_the_old_list_counts_no_more() {
        let mut refused = job(Workers::Any);
        (refused.posts_sent, refused.posts_refused) = (1, 1);
        (refused.next_attempt_at, refused.status) = (Some(NOW.plus_seconds(1)), JobStatus::New);
        let later = NOW.plus_seconds(1);
        assert_eq!(place(&refused, later, Some(&live(NOW, &[("dummy", "w1")]))), Placement::Ask);
        assert_eq!(place(&refused, later, Some(&live(later, &[("dummy", "w1")]))), one("w1"));
    }

    #[test]
    fn the_choice_is_spread_and_stays_when_others_come_and_go() {
        let three = live(NOW, &[("dummy", "w1"), ("dummy", "w2"), ("dummy", "w3")]);
        let two = live(NOW, &[("dummy", "w3"), ("dummy", "w1")]);
        let mut chosen = BTreeMap::<&str, usize>::new();
        for number in 0..3000 {
            let job = JobId::new(format!("job-{number}")).expect("valid");
            let among_three = three.choose(&job, "dummy", &[]).expect("one");
            let among_two = two.choose(&job, "dummy", &[]).expect("one");
            assert!(among_three == "w2" || among_three == among_two);
            assert_eq!(three.choose(&job, "dummy", &["w2".to_owned()]), Some(among_two));
            *chosen.entry(among_three).or_default() += 1;
        }
        assert!(chosen.values().all(|count| (900..1100).contains(count)), "{chosen:?}");
    }
}
