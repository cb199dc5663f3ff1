//! Whether jobs in flight may expire. After a start, a lost link or a leap of the clock their results may wait at the
//! workers: they are asked for first, also past their deadline.

use std::time::Duration;

use norfab_model::{Overdue, Timestamp};

/// How long the workers may take to answer, counted from when they were asked.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Between two looks at the clock lies half a second, or the time that a pass takes. More is a leap of the clock, or a
/// machine that slept.
const LEAP: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Hold {
    state: State,
    /// After a leap of the clock, everything that was asked for by this instant is asked for again.
    asked_by: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// They have not been asked.
    Unasked,
    /// They were asked; they have until then.
    Until(Timestamp),
    /// They had their time.
    Over,
}

/// How the clock went since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gait {
    Steady,
    /// It leapt forward, or the machine slept.
    Leap,
}

impl Hold {
    pub(crate) fn new() -> Self {
        Self { state: State::Unasked, asked_by: None }
    }

    pub(crate) fn link_lost(&mut self) {
        self.state = State::Unasked;
    }

    /// Takes a look at the clock, the last one being at `before`; tells how it went. Where every pass takes as long as a
    /// leap, those that were asked and had their time expire all the same.
    pub(crate) fn time(&mut self, before: Timestamp, now: Timestamp) -> Gait {
        let leapt = before != Timestamp::MIN && before.saturating_add(LEAP) < now;
        if matches!(self.state, State::Until(at) if at <= now) {
            self.state = State::Over;
        } else if leapt {
            self.asked_by = Some(before);
            self.state = State::Unasked;
        }
        if leapt { Gait::Leap } else { Gait::Steady }
    }

    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        if let State::Until(at) = &mut self.state {
            *at = (*at).min(now.saturating_add(ANSWER_TIME));
        }
        // What is asked for now must not seem to be asked for too long ago.
        self.asked_by = self.asked_by.map(|at| at.min(now.saturating_sub(Duration::from_micros(1))));
    }

    /// By when a job must have been asked for last to be asked again, when that is later than usual.
    pub(crate) fn asked_by(&self) -> Option<Timestamp> {
        self.asked_by
    }

    /// Everything in flight has been asked for on a link that is up.
    pub(crate) fn asked(&mut self, now: Timestamp) {
        self.asked_by = None;
        if self.state == State::Unasked {
            self.state = State::Until(now.saturating_add(ANSWER_TIME));
        }
    }

    /// Which jobs may expire now.
    pub(crate) fn overdue(&mut self, now: Timestamp) -> Overdue {
        if matches!(self.state, State::Until(at) if at <= now) {
            self.state = State::Over;
        }
        if self.state == State::Over { Overdue::All } else { Overdue::Unsent }
    }

    /// When a deadline of a job in flight is looked at: later than it is, or not before something else happens.
    pub(crate) fn delays(&self, deadline: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Unasked => None,
            State::Until(at) => Some(at.max(deadline)),
            State::Over => Some(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn after(seconds: u32) -> Timestamp {
        T0.plus_seconds(seconds)
    }

    #[test]
    fn they_have_their_time_once_they_were_asked() {
        let mut hold = Hold::new();
        assert_eq!((hold.overdue(T0), hold.delays(T0)), (Overdue::Unsent, None));
        hold.asked(T0);
        hold.asked(after(3));
        assert_eq!((hold.overdue(after(4)), hold.delays(T0)), (Overdue::Unsent, Some(after(5))));
        assert_eq!((hold.overdue(after(5)), hold.delays(T0)), (Overdue::All, Some(T0)));
        hold.asked(after(6));
        assert_eq!(hold.overdue(after(6)), Overdue::All);
        hold.link_lost();
        assert_eq!(hold.overdue(after(60)), Overdue::Unsent);
    }

    #[test]
    fn a_leap_of_the_clock_has_them_asked_again() {
        let mut hold = Hold::new();
        hold.time(Timestamp::MIN, T0);
        hold.asked(T0);
        assert_eq!(hold.time(T0, after(5)), Gait::Steady);
        assert_eq!((hold.asked_by(), hold.overdue(after(5))), (None, Overdue::All));
        assert_eq!(hold.time(after(5), after(11)), Gait::Leap);
        assert_eq!((hold.asked_by(), hold.overdue(after(11))), (Some(after(5)), Overdue::Unsent));
        hold.asked(after(11));
        assert_eq!((hold.asked_by(), hold.overdue(after(16))), (None, Overdue::All));
    }

    #[test]
    fn slow_passes_hold_nothing_for_ever() {
        let mut hold = Hold::new();
        let mut expired = 0;
        for pass in 0..10 {
            let now = after(pass * 6);
            hold.time(if pass == 0 { Timestamp::MIN } else { after(pass * 6 - 6) }, now);
            expired += u32::from(hold.overdue(now) == Overdue::All);
            hold.asked(now);
        }
        assert_eq!(expired, 5);
    }

    #[test]
    fn a_clock_set_back_prolongs_nothing() {
        let mut hold = Hold::new();
        hold.asked(after(3600));
        hold.clock_went_back(T0);
        assert_eq!(hold.overdue(after(5)), Overdue::All);
        hold.time(after(3600), after(7200));
        hold.clock_went_back(T0);
        assert!(hold.asked_by().is_some_and(|at| at < T0));
    }
}
