//! Which rows a step of a pass looks at. An owner of everything walks along an index that begins with what is due; a guest
//! starts from its own jobs, however many others there are. Both also find the rows whose instants are none.

use norfab_model::{JobId, Link, Overdue, Scope, StoreError, Timestamp};
use rusqlite::Connection;

use super::row::Cell;
use super::{encode, storage};
use crate::sqlite::statement::{query, row, scalar};

row! {
    /// A row whose payload is about to be loaded, and how many bytes of that are stored.
    #[derive(Debug)]
    pub(super) struct Found {
        row: i64,
        bytes: i64,
    }
}

/// The bytes of stored payloads that one step loads, unless a single row has more.
const MOST_STORED_BYTES: i64 = 32 << 20;

/// The leading rows whose payloads may be loaded together.
pub(super) fn fitting(found: &[Found]) -> Vec<i64> {
    let mut bytes = 0_i64;
    let fits = found.iter().enumerate().take_while(|(place, found)| {
        bytes = bytes.saturating_add(found.bytes);
        *place == 0 || bytes <= MOST_STORED_BYTES
    });
    fits.map(|(_, found)| found.row).collect()
}

fn ids(jobs: &[JobId], doing: &'static str) -> Result<String, StoreError> {
    encode::ids(jobs).map_err(storage(doing))
}

/// Delayed jobs to release (while the link is up), to mark as missed, or to give up as unreadable.
pub(super) fn due(
    connection: &Connection,
    now: Timestamp,
    scope: &Scope,
    link: Link,
    limit: u32,
    doing: &'static str,
) -> Result<Vec<i64>, StoreError> {
    let before = now.as_seconds_f64();
    let until = match link {
        Link::Up => before,
        // Nothing is due then but what lies before the calendar.
        Link::Down => Timestamp::MIN.as_seconds_f64().next_down(),
    };
    match scope {
        Scope::All => scalar!("sql/job/due.sql", until, before, limit).fetch_all(connection),
        Scope::Jobs(jobs) => {
            let jobs = ids(jobs, doing)?;
            scalar!("sql/guest/due.sql", jobs, until, before, limit).fetch_all(connection)
        }
    }
    .map_err(storage(doing))
}

/// Jobs to expire, with the size of their results.
pub(super) fn to_expire(
    connection: &Connection,
    now: Timestamp,
    scope: &Scope,
    overdue: Overdue,
    limit: u32,
    doing: &'static str,
) -> Result<Vec<Found>, StoreError> {
    let (now, unsent_only) = (now.as_seconds_f64(), overdue == Overdue::Unsent);
    match scope {
        Scope::All => query!(Found, "sql/job/to_expire.sql", now, limit, unsent_only).fetch_all(connection),
        Scope::Jobs(jobs) => {
            let jobs = ids(jobs, doing)?;
            query!(Found, "sql/guest/to_expire.sql", jobs, now, limit, unsent_only).fetch_all(connection)
        }
    }
    .map_err(storage(doing))
}

/// Jobs to claim, with the size of their arguments.
pub(super) fn to_claim(
    connection: &Connection,
    now: Timestamp,
    scope: &Scope,
    limit: u32,
    doing: &'static str,
) -> Result<Vec<Found>, StoreError> {
    let now = now.as_seconds_f64();
    match scope {
        Scope::All => query!(Found, "sql/job/to_claim.sql", now, limit).fetch_all(connection),
        Scope::Jobs(jobs) => {
            let jobs = ids(jobs, doing)?;
            query!(Found, "sql/guest/to_claim.sql", jobs, now, limit).fetch_all(connection)
        }
    }
    .map_err(storage(doing))
}

/// Jobs to ask for.
pub(super) fn to_poll(
    connection: &Connection,
    before: Timestamp,
    scope: &Scope,
    limit: u32,
    doing: &'static str,
) -> Result<Vec<i64>, StoreError> {
    let before = before.as_seconds_f64();
    match scope {
        Scope::All => scalar!("sql/job/to_poll.sql", before, limit).fetch_all(connection),
        Scope::Jobs(jobs) => {
            let jobs = ids(jobs, doing)?;
            scalar!("sql/guest/to_poll.sql", jobs, before, limit).fetch_all(connection)
        }
    }
    .map_err(storage(doing))
}

row! {
    /// What `sql/job/next_due.sql` returns.
    pub(super) struct Due {
        pub(super) release: Cell,
        pub(super) miss: Cell,
        pub(super) expire_unsent: Cell,
        pub(super) expire: Cell,
        pub(super) send: Cell,
        pub(super) polled: Cell,
    }
}

/// The nearest instants of each kind, as they are stored.
pub(super) fn next_due(connection: &Connection, scope: &Scope, doing: &'static str) -> Result<Due, StoreError> {
    match scope {
        Scope::All => query!(Due, "sql/job/next_due.sql").fetch_one(connection),
        Scope::Jobs(jobs) => {
            let jobs = ids(jobs, doing)?;
            query!(Due, "sql/guest/next_due.sql", jobs).fetch_one(connection)
        }
    }
    .map_err(storage(doing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sizes: &[i64], fits: usize) {
        let found: Vec<Found> = (0..).zip(sizes).map(|(row, bytes)| Found { row, bytes: *bytes }).collect();
        assert_eq!(fitting(&found), (0..).take(fits).collect::<Vec<i64>>(), "{sizes:?}");
    }

    #[test]
    fn as_much_is_loaded_as_fits_and_one_row_always() {
        check(&[], 0);
        check(&[1, 0, 2], 3);
        check(&[MOST_STORED_BYTES + 1, 1], 1);
        check(&[MOST_STORED_BYTES - 1, 1, 1], 2);
        check(&[1, i64::MAX, 1], 1);
    }

    #[test]
    fn the_calendar_of_the_statements_is_that_of_the_model() {
        assert!(Timestamp::from_seconds_f64(253_402_300_800.0).is_err());
        assert!(Timestamp::from_seconds_f64(253_402_300_800.0_f64.next_down()).is_ok());
        assert!(Timestamp::from_seconds_f64(Timestamp::MIN.as_seconds_f64().next_down()).is_err());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
        for name in ["due", "to_expire", "to_claim", "to_poll", "next_due"] {
            for folder in ["job", "guest"] {
                let sql = std::fs::read_to_string(root.join(folder).join(name).with_extension("sql")).unwrap();
                assert!(sql.contains(">= 253402300800"), "{folder}/{name}");
            }
        }
    }
}
