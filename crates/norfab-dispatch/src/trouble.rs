//! A database that fails is tried again after growing pauses, and spoken of once.

use std::error::Error;
use std::time::Duration;

use norfab_model::{StoreError, Timestamp};

/// The memory of failures in a row.
#[derive(Debug)]
pub(crate) struct Trouble {
    longest: Duration,
    pause: Duration,
    last: Option<String>,
}

impl Trouble {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, pause: Duration::ZERO, last: None }
    }

    /// What is wrong at the moment.
    pub(crate) fn current(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Notes a failure and tells when to try again.
    pub(crate) fn failed(&mut self, now: Timestamp, error: &StoreError) -> Timestamp {
        let text = describe(error);
        self.pause = (self.pause * 2).clamp(Duration::from_millis(100).min(self.longest), self.longest);
        if self.last.as_ref() == Some(&text) {
            tracing::debug!(pause = ?self.pause, "Still cannot use the job database: {text}");
        } else {
            tracing::error!("Cannot use the job database, nothing is sent until it works again: {text}");
            self.last = Some(text);
        }
        now.saturating_add(self.pause)
    }

    /// Notes that it works.
    pub(crate) fn worked(&mut self) {
        if self.last.take().is_some() {
            tracing::info!("The job database works again");
        }
        self.pause = Duration::ZERO;
    }
}

/// An error with its causes, in one line.
fn describe(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Timestamp = Timestamp::from_seconds(0);

    #[test]
    fn pauses_grow_to_the_longest_and_end_with_success() {
        let mut trouble = Trouble::new(Duration::from_millis(700));
        let error = StoreError::Storage { doing: "claim jobs", source: "disk full".into() };
        let pauses: Vec<_> = (0..5).map(|_| trouble.failed(T0, &error).since(T0).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 700, 700]);
        assert_eq!(trouble.current(), Some("the job database failed to claim jobs: disk full"));
        trouble.worked();
        assert_eq!(trouble.current(), None);
        assert_eq!(trouble.failed(T0, &error).since(T0).as_millis(), 100);
    }
}
