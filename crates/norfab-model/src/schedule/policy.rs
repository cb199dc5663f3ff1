//! What becomes of occurrences that come in a heap, or find an earlier job unfinished.

use crate::word::words;

words! {
    /// Which of several occurrences that are due at once become jobs.
    Coalesce, "a coalesce policy", {
        /// The last of them; the others count as coalesced.
        Latest = "latest",
        /// The first of them; the others count as coalesced.
        Earliest = "earliest",
        /// Every one, as far as overlap and the budget of a pass allow.
        All = "all",
    }
}

words! {
    /// Whether an occurrence may become a job while earlier jobs of its schedule are unfinished.
    OverlapPolicy, "an overlap policy", {
        /// As long as fewer than `max_instances` of them are.
        Allow = "ALLOW",
        /// Only when none of them is.
        Forbid = "FORBID",
    }
}

/// Whether a schedule that is run by hand keeps to its overlap policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// It does: with no room it is an error.
    Respect,
    /// It does not.
    Force,
}

impl OverlapPolicy {
    /// How many more jobs may be made while so many are unfinished.
    #[must_use]
    pub fn room(self, max_instances: u32, unfinished: u64) -> u64 {
        match self {
            Self::Forbid => u64::from(unfinished == 0),
            Self::Allow => u64::from(max_instances).saturating_sub(unfinished),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OverlapPolicy::{Allow, Forbid};

    #[test]
    fn room() {
        let room = |policy: super::OverlapPolicy| [0, 1, 3, 4, u64::MAX].map(|unfinished| policy.room(3, unfinished));
        assert_eq!(room(Forbid), [1, 0, 0, 0, 0]);
        assert_eq!(room(Allow), [3, 2, 0, 0, 0]);
    }
}
