//! The names of the months and of the days of the week: the short ones of expressions, the long ones of sentences.

/// A month or a weekday by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    /// Three small letters: `mon`.
    pub(super) short: &'static str,
    /// As a sentence has it: `Monday`.
    pub(super) long: &'static str,
}

/// The months, January first.
pub(super) const MONTHS: &[Name] = &[
    name("jan", "January"),
    name("feb", "February"),
    name("mar", "March"),
    name("apr", "April"),
    name("may", "May"),
    name("jun", "June"),
    name("jul", "July"),
    name("aug", "August"),
    name("sep", "September"),
    name("oct", "October"),
    name("nov", "November"),
    name("dec", "December"),
];

/// The weekdays in the order of their numbers: Sunday is 0.
pub(super) const WEEKDAYS: &[Name] = &[
    name("sun", "Sunday"),
    name("mon", "Monday"),
    name("tue", "Tuesday"),
    name("wed", "Wednesday"),
    name("thu", "Thursday"),
    name("fri", "Friday"),
    name("sat", "Saturday"),
];

const fn name(short: &'static str, long: &'static str) -> Name {
    Name { short, long }
}

impl Name {
    /// Whether a text is its short form, in any case.
    pub(super) fn is_short(&self, text: &str) -> bool {
        self.short.eq_ignore_ascii_case(text)
    }

    /// Whether a text is either form, in any case.
    pub(super) fn is(&self, text: &str) -> bool {
        self.is_short(text) || self.long.eq_ignore_ascii_case(text)
    }
}
