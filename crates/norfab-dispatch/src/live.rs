//! Which workers are alive: the broker is asked when a job to any worker needs one, and its answer holds for seconds.

use std::time::Duration;

use norfab_model::{JobId, Json, LiveWorkers, Timestamp};

#[derive(Debug)]
pub(crate) struct Live {
    fresh_for: Duration,
    workers: Option<LiveWorkers>,
    answered_at: Timestamp,
    /// The question that is out.
    asked: Option<(JobId, Timestamp)>,
    /// When the first question left of those that nothing was answered to: each may be lost, all of them say something
    /// of the broker.
    unanswered_since: Option<Timestamp>,
}

impl Live {
    pub(crate) fn new(fresh_for: Duration) -> Self {
        Self { fresh_for, workers: None, answered_at: Timestamp::MIN, asked: None, unanswered_since: None }
    }

    /// The workers, while what is known of them holds.
    pub(crate) fn fresh(&self, now: Timestamp) -> Option<&LiveWorkers> {
        let until = self.answered_at.saturating_add(self.fresh_for);
        self.workers.as_ref().filter(|_| self.answered_at <= now && now <= until)
    }

    /// When an answer is not waited for any longer.
    pub(crate) fn gives_up_at(&self, patience: Duration) -> Option<Timestamp> {
        self.owed_since().map(|at| at.saturating_add(patience))
    }

    /// Notes that the broker is asked now.
    pub(crate) fn asked(&mut self, now: Timestamp, question: JobId) {
        self.asked = Some((question, now));
        self.unanswered_since.get_or_insert(now);
    }

    /// When the question left that is out. Nothing that needs its answer is sent before.
    pub(crate) fn owed_since(&self) -> Option<Timestamp> {
        self.asked.as_ref().map(|(_, at)| *at)
    }

    /// Since when the broker has answered no question, however often it was asked.
    pub(crate) fn unanswered_since(&self) -> Option<Timestamp> {
        self.unanswered_since
    }

    /// Takes an answer, when it is one to this question. Err when it tells of no workers: the next one is asked for when
    /// this one would have been given up.
    pub(crate) fn answered(&mut self, now: Timestamp, id: &JobId, answer: &Json) -> Option<Result<(), ()>> {
        let (_, at) = self.asked.take_if(|(question, _)| question == id)?;
        self.unanswered_since = None;
        self.workers = LiveWorkers::from_answer(at, answer);
        self.answered_at = now;
        if self.workers.is_none() {
            self.asked = Some((id.clone(), at));
            return Some(Err(()));
        }
        Some(Ok(()))
    }

    /// Forgets a question that was not answered in time: it is lost, and another may be asked.
    pub(crate) fn forget_late(&mut self, now: Timestamp, patience: Duration) {
        self.asked.take_if(|(_, at)| at.saturating_add(patience) <= now);
    }

    /// Forgets the workers: one that was among them is gone.
    pub(crate) fn outdated(&mut self) {
        self.workers = None;
    }

    /// Forgets all: the connection is gone, or the clock went back.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.fresh_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    #[test]
    fn an_answer_holds_for_seconds() {
        let mut live = Live::new(Duration::from_secs(3));
        let question = JobId::new("q").expect("valid");
        assert_eq!(live.answered(T0, &question, &Json::empty_array()), None);
        live.asked(T0, question.clone());
        assert_eq!((live.owed_since(), live.fresh(T0)), (Some(T0), None));
        assert_eq!(live.answered(T0, &question, &Json::empty_array()), Some(Ok(())));
        assert!(live.owed_since().is_none() && live.fresh(T0.plus_seconds(3)).is_some());
        assert!(
            live.fresh(T0.plus_seconds(4)).is_none() && live.fresh(T0.saturating_sub(Duration::from_secs(1))).is_none()
        );
        live.asked(T0, question.clone());
        assert_eq!(live.answered(T0, &question, &Json::empty_object()), Some(Err(())));
        // Neither a senseless answer nor none is asked for again at once, nor waited for without end.
        let patience = Duration::from_secs(5);
        assert_eq!(live.gives_up_at(patience), Some(T0.plus_seconds(5)));
        live.forget_late(T0.plus_seconds(4), patience);
        assert!(live.owed_since().is_some());
        live.forget_late(T0.plus_seconds(5), patience);
        assert!(live.owed_since().is_none());
    }

    #[test]
    fn a_question_that_is_lost_is_not_waited_for_for_ever() {
        let mut live = Live::new(Duration::from_secs(3));
        live.asked(T0, JobId::new("q").expect("valid"));
        live.forget_late(T0.plus_seconds(9), Duration::from_secs(10));
        assert_eq!(live.owed_since(), Some(T0));
        live.forget_late(T0.plus_seconds(10), Duration::from_secs(10));
        assert_eq!(live.owed_since(), None);
        // That it is asked again makes the broker no less silent.
        let question = JobId::new("q2").expect("valid");
        live.asked(T0.plus_seconds(10), question.clone());
        assert_eq!(live.unanswered_since(), Some(T0));
        assert_eq!(live.answered(T0.plus_seconds(11), &question, &Json::empty_array()), Some(Ok(())));
        assert_eq!(live.unanswered_since(), None);
    }
}
