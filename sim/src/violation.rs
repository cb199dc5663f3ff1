//! What the simulation finds: a rule that was broken.

use std::fmt;
use std::sync::{Arc, Mutex};

use norfab_model::Timestamp;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule; a script is made shorter only as long as it breaks the same.
    pub class: &'static str,
    /// What happened.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.text)
    }
}

/// Where everybody writes down what happens, and the first rule that is broken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    first: Option<Violation>,
    lines: Option<Vec<String>>,
    /// FNV-1a over all lines: two runs of a script must agree in it.
    hash: u64,
}

impl Journal {
    /// One that keeps the lines too.
    pub(crate) fn kept() -> Self {
        let journal = Self::default();
        journal.0.lock().expect("nobody panics with it").lines = Some(Vec::new());
        journal
    }

    pub(crate) fn note(&self, truth: Timestamp, line: impl FnOnce() -> String) {
        let mut pages = self.0.lock().expect("nobody panics with it");
        let line = line();
        for byte in line.bytes() {
            pages.hash = (pages.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(lines) = &mut pages.lines {
            let at = truth.since(crate::clock::START).as_secs_f64();
            lines.push(format!("{at:10.3}  {line}"));
        }
    }

    pub(crate) fn broken(&self, class: &'static str, text: impl FnOnce() -> String) {
        let mut pages = self.0.lock().expect("nobody panics with it");
        if pages.first.is_none() {
            pages.first = Some(Violation { class, text: text() });
        }
    }

    pub(crate) fn first(&self) -> Option<Violation> {
        self.0.lock().expect("nobody panics with it").first.clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics with it").lines.clone().unwrap_or_default()
    }

    pub(crate) fn hash(&self) -> u64 {
        self.0.lock().expect("nobody panics with it").hash
    }
}
