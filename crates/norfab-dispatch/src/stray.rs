//! Messages that cannot be used: counted, and told of once a kind, since a broken or hostile broker sends as many as it likes.

use std::collections::HashMap;

/// More kinds than there are; beyond, all are one.
const MOST_KINDS: usize = 64;

/// The messages that were dropped.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    total: u64,
    kinds: HashMap<String, u64>,
}

impl Strays {
    /// How many there were.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Counts one, and tells of it when it is the first of its kind, or the tenth, the hundredth and so on.
    pub(crate) fn drop_one(&mut self, what: &str) {
        self.total = self.total.saturating_add(1);
        let kind = kind(what);
        let kind = if self.kinds.contains_key(kind) || self.kinds.len() < MOST_KINDS { kind } else { "" };
        let count = self.kinds.entry(kind.to_owned()).or_default();
        *count = count.saturating_add(1);
        match *count {
            1 => tracing::warn!("Dropped a message: {what}"),
            count if is_power_of_ten(count) => tracing::warn!("Dropped {count} messages of one kind, the last: {what}"),
            _ => tracing::debug!("Dropped a message: {what}"),
        }
    }
}

/// What is the same in all texts of a kind: what comes before the first value, which is a number, a name in quotes or in
/// brackets, or stands behind a colon.
fn kind(what: &str) -> &str {
    let end = what.find(|character: char| character.is_ascii_digit() || matches!(character, '"' | '(' | ':'));
    what.get(..end.unwrap_or(what.len())).unwrap_or(what)
}

fn is_power_of_ten(count: u64) -> bool {
    count > 1 && count.ilog10() > count.saturating_sub(1).ilog10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_make_no_kinds() {
        for (what, expected) in [
            ("message has 5 of 7 frames", "message has "),
            ("status \"777\" is unknown", "status "),
            ("payload is not JSON (line 1, column 2)", "payload is not JSON "),
            ("broker refused a command: anything", "broker refused a command"),
            ("first frame is not empty", "first frame is not empty"),
            ("", ""),
        ] {
            assert_eq!(kind(what), expected);
        }
    }

    #[test]
    fn kinds_are_bounded() {
        let mut strays = Strays::default();
        for number in 0..10_000_u32 {
            strays.drop_one(&"x".repeat(usize::try_from(number % 1000).unwrap()));
        }
        assert_eq!((strays.total(), strays.kinds.len()), (10_000, MOST_KINDS));
        assert_eq!(strays.kinds.values().sum::<u64>(), 10_000);
    }

    #[test]
    fn powers_of_ten() {
        let powers: Vec<_> = (0..2000).filter(|count| is_power_of_ten(*count)).collect();
        assert_eq!(powers, [10, 100, 1000]);
    }
}
