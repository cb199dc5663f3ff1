//! The states of a schedule, and the only table of what each call does in each of them.

use std::fmt;

use crate::word::words;

words! {
    /// Where a schedule stands.
    ScheduleState, "a schedule state", {
        /// Its occurrences become jobs. Entered by creation, by resuming, or from COMPLETED by an update that leaves
        /// something to come. A crash leaves it as it is: cursor and jobs are written together.
        Active = "ACTIVE",
        /// Nothing is made until it is resumed; what would have been is passed over. Entered by pausing, or by
        /// creation.
        Paused = "PAUSED",
        /// Nothing is left up to its `end_at`. Entered by the pass that made its last job, or by resuming too late.
        Completed = "COMPLETED",
        /// Switched off, by a person, by deletion, or because its row cannot be used: then `last_error` tells why.
        Disabled = "DISABLED",
    }
}

/// What a caller does to a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScheduleCall {
    /// Let nothing become due for now.
    Pause,
    /// Go on, from now.
    Resume,
    /// Change the rule or what it runs.
    Update,
    /// Switch off.
    Disable,
    /// Make one job at once, beside the cadence.
    RunNow,
    /// Take it out of the lists for good.
    Delete,
}

/// What a call does in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// What it is for.
    Act,
    /// Nothing: it is so already.
    NoChange,
    /// An error.
    Refuse,
}

impl ScheduleCall {
    /// Every call.
    pub const ALL: [ScheduleCall; 6] =
        [Self::Pause, Self::Resume, Self::Update, Self::Disable, Self::RunNow, Self::Delete];
}

impl fmt::Display for ScheduleCall {
    /// What the schedule would have been: `paused`, `run` and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Update => "updated",
            Self::Disable => "disabled",
            Self::RunNow => "run",
            Self::Delete => "deleted",
        })
    }
}

impl ScheduleState {
    /// What a call does to a schedule in this state. A deleted schedule refuses all of them, whatever its state.
    #[must_use]
    pub const fn on(self, call: ScheduleCall) -> Verdict {
        use ScheduleCall as C;
        match (self, call) {
            (_, C::Update | C::Delete) => Verdict::Act,
            (Self::Active, C::Pause) | (Self::Paused | Self::Disabled, C::Resume) => Verdict::Act,
            (Self::Paused, C::Pause) | (Self::Active, C::Resume) => Verdict::NoChange,
            (Self::Completed | Self::Disabled, C::Pause) | (Self::Completed, C::Resume) => Verdict::Refuse,
            (Self::Disabled, C::Disable) => Verdict::NoChange,
            (_, C::Disable) => Verdict::Act,
            (Self::Active | Self::Paused, C::RunNow) => Verdict::Act,
            (Self::Completed | Self::Disabled, C::RunNow) => Verdict::Refuse,
        }
    }

    /// What makes a refused call possible.
    pub(super) const fn way_out(self) -> &'static str {
        match self {
            Self::Active | Self::Paused => "look at it again",
            Self::Completed => "give it a later end_at or none",
            Self::Disabled => "resume it first",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(call: ScheduleCall, verdicts: [Verdict; 4]) {
        let found: Vec<_> = ScheduleState::ALL.iter().map(|state| state.on(call)).collect();
        assert_eq!(found, verdicts, "{call}");
    }

    #[test]
    fn table() {
        use Verdict::{Act, NoChange, Refuse};
        //                         ACTIVE    PAUSED    COMPLETED DISABLED
        check(ScheduleCall::Pause, [Act, NoChange, Refuse, Refuse]);
        check(ScheduleCall::Resume, [NoChange, Act, Refuse, Act]);
        check(ScheduleCall::Update, [Act, Act, Act, Act]);
        check(ScheduleCall::Disable, [Act, Act, Act, NoChange]);
        check(ScheduleCall::RunNow, [Act, Act, Refuse, Refuse]);
        check(ScheduleCall::Delete, [Act, Act, Act, Act]);
    }
}
