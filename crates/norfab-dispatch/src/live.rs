//! Which workers are alive: the broker is asked when a job to any worker needs one, and its answer holds for seconds.

use std::time::Duration;

use norfab_model::{JobId, Json, LiveWorkers, Moment, Timestamp, Uptime};

#[derive(Debug)]
pub(crate) struct Live {
    fresh_for: Duration,
    workers: Option<LiveWorkers>,
    answered_at: Uptime,
    /// The question that is out.
    asked: Option<(JobId, Moment)>,
    /// When the first question left of those that nothing was answered to: each may be lost, all of them say something
    /// of the broker.
    unanswered_since: Option<Uptime>,
}

impl Live {
    pub(crate) fn new(fresh_for: Duration) -> Self {
        Self { fresh_for, workers: None, answered_at: Uptime::START, asked: None, unanswered_since: None }
    }

    /// The workers, while what is known of them holds.
    pub(crate) fn fresh(&self, now: Uptime) -> Option<&LiveWorkers> {
        let until = self.answered_at.saturating_add(self.fresh_for);
        self.workers.as_ref().filter(|_| now <= until)
    }

    /// When an answer is not waited for any longer.
    pub(crate) fn gives_up_at(&self, patience: Duration) -> Option<Uptime> {
        self.owed_since().map(|at| at.saturating_add(patience))
    }

    /// Notes that the broker is asked now.
    pub(crate) fn asked(&mut self, now: Moment, question: JobId) {
        self.asked = Some((question, now));
        self.unanswered_since.get_or_insert(now.up);
    }

    /// When the question left that is out. Nothing that needs its answer is sent before.
    pub(crate) fn owed_since(&self) -> Option<Uptime> {
        self.asked.as_ref().map(|(_, at)| at.up)
    }

    /// Since when the broker has answered no question, however often it was asked.
    pub(crate) fn unanswered_since(&self) -> Option<Uptime> {
        self.unanswered_since
    }

    /// Takes an answer, when it is one to this question. Err when it tells of no workers: the next one is asked for when
    /// this one would have been given up.
    pub(crate) fn answered(&mut self, now: Uptime, id: &JobId, answer: &Json) -> Option<Result<(), ()>> {
        let (_, at) = self.asked.take_if(|(question, _)| question == id)?;
        self.unanswered_since = None;
        self.workers = LiveWorkers::from_answer(at.wall, answer);
        self.answered_at = now;
        if self.workers.is_none() {
            self.asked = Some((id.clone(), at));
            return Some(Err(()));
        }
        Some(Ok(()))
    }

    /// Forgets a question that was not answered in time: it is lost, and another may be asked.
    pub(crate) fn forget_late(&mut self, now: Uptime, patience: Duration) {
        self.asked.take_if(|(_, at)| at.up.saturating_add(patience) <= now);
    }

    /// Forgets the workers: one that was among them is gone.
    pub(crate) fn outdated(&mut self) {
        self.workers = None;
    }

    /// Forgets the workers when they were told by then: since that look the machine may have slept.
    pub(crate) fn leapt(&mut self, last_look: Uptime) {
        self.workers.take_if(|_| self.answered_at <= last_look);
    }

    /// The wall clock was set back. What is known seems to come from a time ahead, after all that it led to.
    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        self.workers = None;
        if let Some((_, at)) = &mut self.asked {
            at.wall = at.wall.min(now);
        }
    }

    /// Forgets all: the connection is gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.fresh_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Moment = Moment { wall: Timestamp::from_seconds(1_795_996_800), up: Uptime::START };

    fn after(seconds: u64) -> Uptime {
        T0.up.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn an_answer_holds_for_seconds() {
        let mut live = Live::new(Duration::from_secs(3));
        let question = JobId::new("q").expect("valid");
        assert_eq!(live.answered(T0.up, &question, &Json::empty_array()), None);
        live.asked(T0, question.clone());
        assert_eq!((live.owed_since(), live.fresh(T0.up)), (Some(T0.up), None));
        assert_eq!(live.answered(T0.up, &question, &Json::empty_array()), Some(Ok(())));
        assert!(live.owed_since().is_none() && live.fresh(after(3)).is_some());
        assert!(live.fresh(after(4)).is_none());
        live.asked(T0, question.clone());
        assert_eq!(live.answered(T0.up, &question, &Json::empty_object()), Some(Err(())));
        // Neither a senseless answer nor none is asked for again at once, nor waited for without end.
        let patience = Duration::from_secs(5);
        assert_eq!(live.gives_up_at(patience), Some(after(5)));
        live.forget_late(after(4), patience);
        assert!(live.owed_since().is_some());
        live.forget_late(after(5), patience);
        assert!(live.owed_since().is_none());
    }

    #[test]
    fn a_question_that_is_lost_is_not_waited_for_for_ever() {
        let mut live = Live::new(Duration::from_secs(3));
        live.asked(T0, JobId::new("q").expect("valid"));
        live.forget_late(after(9), Duration::from_secs(10));
        assert_eq!(live.owed_since(), Some(T0.up));
        live.forget_late(after(10), Duration::from_secs(10));
        assert_eq!(live.owed_since(), None);
        // That it is asked again makes the broker no less silent.
        let question = JobId::new("q2").expect("valid");
        live.asked(Moment { up: after(10), ..T0 }, question.clone());
        assert_eq!(live.unanswered_since(), Some(T0.up));
        assert_eq!(live.answered(after(11), &question, &Json::empty_array()), Some(Ok(())));
        assert_eq!(live.unanswered_since(), None);
    }

    #[test]
    fn what_was_known_before_a_step_of_the_clock_is_asked_for_again() {
        let question = JobId::new("q").expect("valid");
        let mut live = Live::new(Duration::from_secs(3));
        let answer = |live: &mut Live, asked, seconds| {
            live.asked(asked, question.clone());
            live.answered(after(seconds), &question, &Json::empty_array());
        };
        answer(&mut live, T0, 1);
        // What came after the last look is no older than this one.
        live.leapt(T0.up);
        assert!(live.fresh(after(1)).is_some());
        live.leapt(after(1));
        assert!(live.fresh(after(1)).is_none());
        answer(&mut live, T0, 1);
        live.clock_went_back(Timestamp::EPOCH);
        assert!(live.fresh(after(1)).is_none());
    }

    /// A question that is out is not waited for longer, and its answer is no older than what happens from then on.
    #[test]
    fn a_clock_set_back_leaves_the_question() {
        let question = JobId::new("q").expect("valid");
        let mut live = Live::new(Duration::from_secs(3));
        live.asked(T0, question.clone());
        live.clock_went_back(Timestamp::EPOCH);
        assert_eq!((live.owed_since(), live.unanswered_since()), (Some(T0.up), Some(T0.up)));
        live.answered(after(1), &question, &Json::empty_array());
        assert_eq!(live.fresh(after(1)).map(LiveWorkers::asked_at), Some(Timestamp::EPOCH));
    }
}
