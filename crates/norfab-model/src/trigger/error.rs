//! Why something is no trigger. Each message says what was given and what would be right.

use crate::{Cron, Interval};

/// Why something is no trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// Not a JSON object with the right keys.
    #[error(
        "{given} is not a trigger; write {{\"type\":\"interval\",\"seconds\":300}} or {{\"type\":\"cron\",\"expression\":\"0 3 * * *\"}}"
    )]
    Malformed {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A kind that this release does not know.
    #[error("the trigger type {given:?} is unknown; the types are \"interval\", \"cron\" and \"calendar\"")]
    UnknownType {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A key that this release does not know: it might change the meaning, so that it cannot be left out.
    #[error("the key {given:?} of the {kind} trigger is unknown; its keys are {}", .keys.join(", "))]
    UnknownKey {
        /// The type of the trigger.
        kind: &'static str,
        /// What was given, its first 200 characters.
        given: String,
        /// The keys that there are.
        keys: &'static [&'static str],
    },
    /// A version that this release does not know: written by a later one.
    #[error("version {given} of the {kind} trigger is unknown; this release knows version {known}")]
    Version {
        /// The type of the trigger.
        kind: &'static str,
        /// What was given, as JSON, its first 200 characters.
        given: String,
        /// The version that this release writes.
        known: u64,
    },
    /// A value that is none for its key.
    #[error("{key} of the {kind} trigger must be {wanted}, but it is {given}")]
    Value {
        /// The type of the trigger.
        kind: &'static str,
        /// The key.
        key: &'static str,
        /// What was given, as JSON, its first 200 characters.
        given: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// A mode that this release does not know.
    #[error("the mode {given} of an interval trigger is unknown; the only one is \"fixed_rate\"")]
    UnknownMode {
        /// What was given, as JSON, its first 200 characters.
        given: String,
    },
    /// Not a number of seconds that an interval can have.
    #[error("an interval must be 1 to {limit} whole seconds, but it is {given}", limit = Interval::MAX_SECONDS)]
    Seconds {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A text that is no length of time.
    #[error("{given:?} is not an interval; write seconds, or numbers with units such as 90s, 5m, 1h30m, 2d, 1w")]
    Text {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A cron expression that is too long.
    #[error("the cron expression has {bytes} bytes, more than the limit of {limit}", limit = Cron::MAX_BYTES)]
    CronLength {
        /// Its bytes.
        bytes: usize,
    },
    /// A cron expression with another number of fields.
    #[error("the cron expression {given:?} has {found} fields; {needs}")]
    CronFields {
        /// What was given, its first 200 characters.
        given: String,
        /// How many fields it has.
        found: usize,
        /// Which ones it needs.
        needs: &'static str,
    },
    /// An `@` with a name that has no times.
    #[error("{given:?} is no cron expression; the names are @yearly, @monthly, @weekly, @daily and @hourly")]
    CronName {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A field of a cron expression that cannot be read.
    #[error("the {field} field {given:?} of the cron expression is wrong: {reason}; it takes {takes}")]
    CronField {
        /// The name of the field.
        field: &'static str,
        /// What was given, its first 200 characters.
        given: String,
        /// What is wrong with it.
        reason: String,
        /// What it may be.
        takes: &'static str,
    },
    /// A cron expression without any occurrence in any year.
    #[error("the cron expression {given:?} never fires: none of its months has such a day")]
    NeverFires {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// A text that is no calendar interval.
    #[error("{given:?} cannot be read; write {form}")]
    CalendarText {
        /// What was given, its first 200 characters.
        given: String,
        /// The form, by an example.
        form: &'static str,
    },
    /// A day that no month has.
    #[error("the day of the month must be 1 to 31, but it is {given}")]
    DayOfMonth {
        /// What was given.
        given: u64,
    },
    /// More or fewer days, weeks or months than a calendar interval can have.
    #[error("a calendar interval must be of 1 to {limit} {unit}s, but it is of {given}")]
    Every {
        /// `day`, `week` or `month`.
        unit: &'static str,
        /// What was given.
        given: u64,
        /// The most.
        limit: u64,
    },
}
