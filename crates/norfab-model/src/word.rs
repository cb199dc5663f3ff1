//! Closed sets of words (states, policies): one table each from which text, parsing and serialisation follow.

/// A text that is none of the words of its set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not {what}; it must be one of {known}")]
pub struct UnknownWord {
    /// What was given, its first 200 characters.
    pub given: String,
    /// What a word of the set is, with its article.
    pub what: &'static str,
    /// The words that there are.
    pub known: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$(Self::$variant,)+];

            /// The text that the database and the JSON forms use.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;
            /// Reads the text form, in any case.
            fn from_str(text: &str) -> Result<Self, $crate::UnknownWord> {
                Self::ALL.iter().copied().find(|word| word.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
                    $crate::UnknownWord {
                        given: text.chars().take(200).collect(),
                        what: $what,
                        known: [$($word,)+].join(", "),
                    }
                })
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use crate::{Coalesce, OverlapPolicy, ScheduleState};

    #[track_caller]
    fn check<T>(all: &[T], other_case: &str, unknown: &str, error: &str)
    where
        T: std::str::FromStr<Err = super::UnknownWord>
            + ToString
            + Copy
            + PartialEq
            + std::fmt::Debug
            + serde::Serialize,
    {
        for word in all {
            assert_eq!(word.to_string().parse(), Ok(*word));
            assert_eq!(serde_json::to_string(word).expect("serialises"), format!("\"{}\"", word.to_string()));
        }
        assert!(other_case.parse::<T>().is_ok());
        assert_eq!(unknown.parse::<T>().map_err(|error| error.to_string()), Err(error.to_owned()));
    }

    #[test]
    fn words() {
        check(
            Coalesce::ALL,
            "Latest",
            "newest",
            "\"newest\" is not a coalesce policy; it must be one of latest, earliest, all",
        );
        check(
            OverlapPolicy::ALL,
            "allow",
            "REPLACE",
            "\"REPLACE\" is not an overlap policy; it must be one of ALLOW, FORBID",
        );
        check(
            ScheduleState::ALL,
            "paused",
            "",
            "\"\" is not a schedule state; it must be one of ACTIVE, PAUSED, COMPLETED, DISABLED",
        );
    }
}
