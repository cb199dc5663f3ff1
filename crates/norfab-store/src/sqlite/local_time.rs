//! Local time as the Python client writes it. SQLite knows the local time zone in every kind of process; the time is
//! handed to it, it is not asked for its own.

use std::sync::{Mutex, PoisonError};

use crate::sqlite::statement::scalar;
use norfab_model::Timestamp;
use rusqlite::Connection;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// Every change of a zone's offset in use today falls on a quarter of an hour.
const QUARTER: i64 = 900;

const DATE_TIME: &[BorrowedFormatItem<'_>] =
    format_description!(version = 2, "[year]-[month]-[day] [hour]:[minute]:[second]");
const CTIME: &[BorrowedFormatItem<'_>] = format_description!(
    version = 2,
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);

/// An instant in local time.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalTime(OffsetDateTime);

impl LocalTime {
    /// The instant in UTC.
    pub(super) fn utc(at: Timestamp) -> Self {
        Self(at.into())
    }

    /// `2026-11-29 16:05:05`.
    pub(super) fn date_time(&self) -> String {
        self.0.format(DATE_TIME).unwrap_or_default()
    }

    /// `Sun Nov 29 16:05:05 2026`, as `ctime()` writes it.
    pub(super) fn ctime(&self) -> String {
        self.0.format(CTIME).unwrap_or_default()
    }
}

/// Turns instants into local time, asking SQLite once in a quarter of an hour.
#[derive(Debug, Default)]
pub(super) struct LocalZone {
    known: Mutex<Option<(i64, UtcOffset)>>,
}

impl LocalZone {
    /// The instant in local time; in UTC where the system knows no local time.
    pub(super) fn at(&self, at: Timestamp, connection: &Connection) -> Result<LocalTime, rusqlite::Error> {
        let seconds = at.as_micros().div_euclid(1_000_000);
        let quarter = seconds.div_euclid(QUARTER);
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = match known {
            Some((of, offset)) if of == quarter => offset,
            _ => {
                let asked = scalar!("sql/clock/local_offset.sql", seconds).fetch_one(connection)?;
                let offset = asked
                    .and_then(|seconds| i32::try_from(seconds).ok())
                    .and_then(|seconds| UtcOffset::from_whole_seconds(seconds).ok())
                    .unwrap_or(UtcOffset::UTC);
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((quarter, offset));
                offset
            }
        };
        Ok(LocalTime(OffsetDateTime::from(at).checked_to_offset(offset).unwrap_or_else(|| at.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, date_time: &str, ctime: &str) {
        let time = LocalTime::utc(Timestamp::from_seconds(seconds));
        assert_eq!((time.date_time().as_str(), time.ctime().as_str()), (date_time, ctime));
    }

    #[test]
    fn texts_are_those_of_python() {
        check(1_795_968_305, "2026-11-29 16:05:05", "Sun Nov 29 16:05:05 2026");
        check(1_783_137_599, "2026-07-04 03:59:59", "Sat Jul  4 03:59:59 2026");
        check(0, "1970-01-01 00:00:00", "Thu Jan  1 00:00:00 1970");
    }
}
