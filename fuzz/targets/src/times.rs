//! Times and spans as a person types them on the command line.

use norfab_client::Timestamp;
use norfab_model::{Calendar, Interval, Zone};

#[path = "../../../crates/norfab-cli/src/span.rs"]
#[allow(dead_code, reason = "the command line uses all of it")]
mod span;

/// Reads a text as each kind of time that the command line takes.
pub fn times(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(at) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&at.to_string()), Ok(at), "what is shown can be typed");
    }
    let spans = [span::span(text), span::limit(text), span::seconds(text).map(std::time::Duration::from_secs)];
    for (told, span) in spans.iter().filter_map(|span| span.as_ref().err().map(|error| (error.to_string(), span))) {
        assert!(!told.is_empty(), "{span:?}");
    }
    if let Ok(interval) = text.parse::<Interval>() {
        assert_eq!(interval.to_string().parse(), Ok(interval), "what is shown can be typed");
    }
    for read in [Calendar::daily, Calendar::weekly, Calendar::monthly] {
        if let Err(error) = read(text) {
            assert!(error.to_string().len() < 1000, "an error stays short");
        }
    }
    if let Ok(zone) = Zone::find(text) {
        assert!(Zone::find(zone.name()).is_ok_and(|again| again.is_same(&zone)), "{text:?}");
    }
}
