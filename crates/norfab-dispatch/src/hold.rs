//! Whether jobs in flight may expire. After a start, a lost link or a leap of the clock their results may wait at the
//! workers: they are asked for first, also past their deadline.

use std::time::Duration;

use norfab_model::{Moment, Overdue, Timestamp, Uptime};

/// How long the workers may take to answer, counted from when they were asked.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Between two looks at the clock lies less than a second, or the time that a pass takes. More by either clock is a leap: the
/// wall clock was set, or the machine or this process slept. These cannot be told apart where the other clock sleeps too.
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
    Until(Uptime),
    /// They had their time.
    Over,
}

/// How the clock went since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gait {
    Steady,
    /// It leapt forward, or nobody looked for a while.
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
    pub(crate) fn time(&mut self, before: Moment, now: Moment) -> Gait {
        let leapt = now.longest_since(before) > LEAP;
        if matches!(self.state, State::Until(at) if at <= now.up) {
            self.state = State::Over;
        } else if leapt {
            self.asked_by = Some(before.wall);
            self.state = State::Unasked;
        }
        if leapt { Gait::Leap } else { Gait::Steady }
    }

    /// The wall clock shows an earlier time: what is asked for now must not seem to be asked for too long ago.
    pub(crate) fn clock_went_back(&mut self, now: Timestamp) {
        self.asked_by = self.asked_by.map(|at| at.min(now.saturating_sub(Duration::from_micros(1))));
    }

    /// By when a job must have been asked for last to be asked again, when that is later than usual.
    pub(crate) fn asked_by(&self) -> Option<Timestamp> {
        self.asked_by
    }

    /// Everything in flight has been asked for on a link that is up.
    pub(crate) fn asked(&mut self, now: Uptime) {
        self.asked_by = None;
        if self.state == State::Unasked {
            self.state = State::Until(now.saturating_add(ANSWER_TIME));
        }
    }

    /// Which jobs may expire now.
    pub(crate) fn overdue(&mut self, now: Uptime) -> Overdue {
        if matches!(self.state, State::Until(at) if at <= now) {
            self.state = State::Over;
        }
        if self.state == State::Over { Overdue::All } else { Overdue::Unsent }
    }

    /// When a deadline of a job in flight is looked at: later than it is, or not before something else happens.
    pub(crate) fn delays(&self, now: Moment, deadline: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Unasked => None,
            State::Until(at) => Some(now.wall_at(at).max(deadline)),
            State::Over => Some(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_seconds(1_795_996_800);

    fn up(seconds: u32) -> Uptime {
        Uptime::START.saturating_add(Duration::from_secs(seconds.into()))
    }

    /// After so many seconds, the wall clock never having been set.
    fn after(seconds: u32) -> Moment {
        Moment { wall: T0.plus_seconds(seconds), up: up(seconds) }
    }

    #[test]
    fn they_have_their_time_once_they_were_asked() {
        let mut hold = Hold::new();
        let late = |hold: &Hold, seconds| hold.delays(after(seconds), T0);
        assert_eq!((hold.overdue(up(0)), late(&hold, 0)), (Overdue::Unsent, None));
        hold.asked(up(0));
        hold.asked(up(3));
        assert_eq!((hold.overdue(up(4)), late(&hold, 4)), (Overdue::Unsent, Some(after(5).wall)));
        assert_eq!((hold.overdue(up(5)), late(&hold, 5)), (Overdue::All, Some(T0)));
        hold.asked(up(6));
        assert_eq!(hold.overdue(up(6)), Overdue::All);
        hold.link_lost();
        assert_eq!(hold.overdue(up(60)), Overdue::Unsent);
    }

    /// One look at 5 s, and the next one at `next`: those that had their time by then are asked again.
    #[track_caller]
    fn leaps(next: Moment) {
        let mut hold = Hold::new();
        hold.asked(up(0));
        assert_eq!(hold.time(after(0), after(5)), Gait::Steady);
        assert_eq!((hold.asked_by(), hold.overdue(up(5))), (None, Overdue::All));
        assert_eq!(hold.time(after(5), next), Gait::Leap);
        assert_eq!((hold.asked_by(), hold.overdue(next.up)), (Some(after(5).wall), Overdue::Unsent));
        hold.asked(next.up);
        let answered = next.up.saturating_add(ANSWER_TIME);
        assert_eq!((hold.asked_by(), hold.overdue(answered)), (None, Overdue::All));
    }

    #[test]
    fn a_leap_of_the_clock_has_them_asked_again() {
        leaps(after(11));
        // The wall clock was set, or the other one slept with the machine.
        leaps(Moment { wall: after(11).wall, up: up(5) });
        // The process slept, and the wall clock was set back meanwhile.
        leaps(Moment { wall: T0, up: up(11) });
    }

    /// However the wall clock is set, they have five seconds.
    #[test]
    fn a_step_of_the_clock_takes_no_time_from_them() {
        let mut hold = Hold::new();
        hold.asked(up(0));
        let step = Moment { wall: after(5).wall, up: up(1) };
        assert_eq!(hold.time(after(1), step), Gait::Steady);
        assert_eq!((hold.overdue(up(4)), hold.overdue(up(5))), (Overdue::Unsent, Overdue::All));
    }

    #[test]
    fn slow_passes_hold_nothing_for_ever() {
        let mut hold = Hold::new();
        let mut expired = 0;
        for pass in 0..10 {
            let now = after(pass * 6);
            if pass > 0 {
                hold.time(after(pass * 6 - 6), now);
            }
            expired += u32::from(hold.overdue(now.up) == Overdue::All);
            hold.asked(now.up);
        }
        assert_eq!(expired, 5);
    }

    #[test]
    fn a_clock_set_back_prolongs_nothing() {
        let mut hold = Hold::new();
        hold.asked(up(3600));
        hold.clock_went_back(T0);
        assert_eq!(hold.overdue(up(3605)), Overdue::All);
        hold.time(after(3605), after(7200));
        hold.clock_went_back(T0);
        assert!(hold.asked_by().is_some_and(|at| at < T0));
    }
}
