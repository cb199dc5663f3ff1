//! The identities of jobs and schedules, as the database writes them: 32 lower-case hexadecimal digits.

use std::cell::Cell;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::Digest;
use uuid::{Builder, NoContext, Uuid};

use crate::Timestamp;
use crate::jitter::digest;

/// Why a text cannot be an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} cannot be a job or schedule UUID: it must have 1 to 255 bytes and no control characters")]
pub struct IdError {
    /// What was given, its first 300 characters.
    pub text: String,
}

thread_local! {
    /// Where the identities of this thread come from, once it is seeded.
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes the identities that this thread generates from now on a function of a seed, so that a program which schedules
/// can be run again and do exactly the same: for simulations and tests. They are unique within the thread only.
pub fn seed_ids(seed: u64) {
    SEED.set(Some(seed));
}

fn version_7(now: Timestamp) -> Uuid {
    let micros = now.as_micros().max(0).unsigned_abs();
    let Some(seed) = SEED.get() else {
        let stamp = uuid::Timestamp::from_unix(NoContext, micros / 1_000_000, (micros % 1_000_000) as u32 * 1000);
        return Uuid::new_v7(stamp);
    };
    SEED.set(Some(seed.wrapping_add(1)));
    let digest = sha2::Sha256::digest(format!("norfab-seeded-id:{seed}"));
    let mut bytes = [0; 10];
    bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    Builder::from_unix_timestamp_millis(micros / 1000, &bytes).into_uuid()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// A new identity: a version 7 UUID, which sorts by the time it was made at (to the millisecond).
            #[must_use]
            pub fn generate(now: Timestamp) -> Self {
                Self(version_7(now).simple().to_string())
            }

            /// Takes an identity exactly as it stands in a database or a message.
            ///
            /// # Errors
            /// [`IdError`] when it is empty, longer than 255 bytes or has control characters.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                if text.is_empty() || text.len() > 255 || text.chars().any(char::is_control) {
                    return Err(IdError { text: text.chars().take(300).collect() });
                }
                Ok(Self(text))
            }

            /// Takes what a person typed: a UUID in any of its usual spellings becomes the stored one, anything else
            /// is taken as it is (a Python caller may have chosen it).
            ///
            /// # Errors
            /// As [`new`](Self::new).
            pub fn parse(text: &str) -> Result<Self, IdError> {
                match Uuid::try_parse(text.trim()) {
                    Ok(uuid) => Ok(Self(uuid.simple().to_string())),
                    Err(_) => Self::new(text.trim()),
                }
            }

            /// The identity as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

id! {
    /// The identity of one execution. NorFab lets a caller choose it, so that any short text is possible in a database;
    /// the ones made here are UUIDs.
    JobId
}

id! {
    /// The identity of a schedule: a rule that makes jobs. It never equals a job's.
    ScheduleId
}

impl JobId {
    /// The identity of the job of an occurrence, the same whenever it is derived: should the row be lost (a power
    /// cut, a restored backup), the one that replaces it has this identity again, and workers, which never run one
    /// twice, refuse the double.
    ///
    /// It is a version 8 UUID: 48 bits of the occurrence in milliseconds since 1970 (0 before it), then the first ten
    /// bytes of the SHA-256 of the text `norfab-occurrence:UUID:MICROS`, less the bits of version and variant. `UUID`
    /// is the schedule's as it is stored, `MICROS` the occurrence in microseconds since 1970, in decimal. It sorts by
    /// the occurrence, to the millisecond.
    #[must_use]
    pub fn of_occurrence(schedule: &ScheduleId, occurrence: Timestamp) -> Self {
        let millis = u64::try_from(occurrence.as_micros() / 1000).unwrap_or(0);
        let mut bytes = [0; 16];
        let (time, rest) = bytes.split_at_mut(6);
        time.iter_mut().zip(millis.to_be_bytes().into_iter().skip(2)).for_each(|(to, from)| *to = from);
        rest.iter_mut().zip(digest("norfab-occurrence", schedule, occurrence)).for_each(|(to, from)| *to = from);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid().simple().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_ones_are_hex_and_sort_by_time() {
        let early = JobId::generate(Timestamp::from_seconds(1_795_996_800));
        let late = JobId::generate(Timestamp::from_seconds(1_795_996_801));
        assert!(early.as_str().len() == 32 && early.as_str().bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(early < late && early.as_str().as_bytes()[12] == b'7');
        assert_ne!(late, JobId::generate(Timestamp::from_seconds(1_795_996_801)));
    }

    #[test]
    fn seeded_ones_come_again() {
        let now = Timestamp::from_seconds(1_795_996_800);
        let three = move || {
            seed_ids(7);
            [JobId::generate(now), JobId::generate(now), JobId::generate(now.plus_seconds(1))]
        };
        let [one, two, three] = std::thread::spawn(move || {
            assert_eq!(three(), three());
            three()
        })
        .join()
        .unwrap();
        assert!(one != two && two < three && one.as_str().as_bytes()[12] == b'7');
        assert_ne!(one, JobId::generate(now));
    }

    /// Computed apart from this code, by the recipe of the documentation in Python.
    #[test]
    fn derived_ones_stay_what_they_were() {
        let schedule = ScheduleId::new("b91ffcf2623a43f4a28e478b65c0647a").expect("valid");
        for (seconds, uuid) in [
            (1_795_996_800, "01a229c054008fbf885102a14f323a30"),
            (1_795_996_860, "01a229c13e608b209bfd6277713ddc5b"),
            (-1, "0000000000008128a3ead96401670051"),
            (0, "00000000000082a0a148285b53d4f57e"),
        ] {
            assert_eq!(JobId::of_occurrence(&schedule, Timestamp::from_seconds(seconds)).as_str(), uuid);
        }
    }

    #[test]
    fn derived_ones_differ_and_sort_by_time() {
        let schedules = ["a", "b"].map(|text| ScheduleId::new(text).expect("valid"));
        let ids: Vec<JobId> = (0..1000)
            .flat_map(|k| schedules.iter().map(move |id| (id, Timestamp::from_seconds(1_795_996_800 + k))))
            .map(|(id, at)| JobId::of_occurrence(id, at))
            .collect();
        assert!(ids.chunks(2).is_sorted_by(|a, b| a.iter().max() < b.iter().min()));
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 2000);
        assert!(ids.iter().all(|id| Uuid::try_parse(id.as_str()).is_ok_and(|uuid| uuid.get_version_num() == 8)));
    }

    #[test]
    fn spellings() {
        let stored = JobId::new("b91ffcf2623a43f4a28e478b65c0647a").expect("valid");
        assert_eq!(JobId::parse(" B91FFCF2-623A-43F4-A28E-478B65C0647A "), Ok(stored));
        assert_eq!(JobId::parse("nightly").expect("valid").as_str(), "nightly");
        assert!(JobId::new("").is_err() && JobId::new("a\nb").is_err() && JobId::new("x".repeat(256)).is_err());
    }
}
