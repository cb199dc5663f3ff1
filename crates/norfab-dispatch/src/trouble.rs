//! A database that fails is tried again after growing pauses, and spoken of once.

use std::error::Error;
use std::time::Duration;

use norfab_model::{StoreError, Uptime};

/// The memory of failures in a row.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What a person is told before the cause.
    says: &'static str,
    longest: Duration,
    pause: Duration,
    last: Option<String>,
    retry_at: Option<Uptime>,
}

impl Trouble {
    pub(crate) fn new(says: &'static str, longest: Duration) -> Self {
        Self { says, longest, pause: Duration::ZERO, last: None, retry_at: None }
    }

    /// What is wrong at the moment.
    pub(crate) fn current(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// When to try again; None while all is well.
    pub(crate) fn retry_at(&self, now: Uptime) -> Option<Uptime> {
        self.retry_at.filter(|at| *at > now)
    }

    /// Notes a failure and tells when to try again.
    pub(crate) fn failed(&mut self, now: Uptime, error: &StoreError) -> Uptime {
        let text = describe(error);
        self.pause = (self.pause * 2).clamp(Duration::from_millis(100).min(self.longest), self.longest);
        // One outage is told once, whichever steps it makes fail.
        if self.last.is_some() {
            tracing::debug!(pause = ?self.pause, "Still the same: {}: {text}", self.says);
        } else {
            tracing::error!("{}: {text}", self.says);
        }
        self.last = Some(text);
        let retry_at = now.saturating_add(self.pause);
        self.retry_at = Some(retry_at);
        retry_at
    }

    /// Notes that it works.
    pub(crate) fn worked(&mut self) {
        if let Some(text) = self.last.take() {
            tracing::info!("It works again, what failed was: {text}");
        }
        self.pause = Duration::ZERO;
        self.retry_at = None;
    }
}

/// An error with its causes, in one line.
fn describe(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors show their cause themselves.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Uptime = Uptime::START;

    #[test]
    fn pauses_grow_to_the_longest_and_end_with_success() {
        let mut trouble = Trouble::new("Cannot", Duration::from_millis(700));
        let error = StoreError::Storage { doing: "claim jobs", source: "disk full".into() };
        let pauses: Vec<_> = (0..5).map(|_| trouble.failed(T0, &error).since(T0).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 700, 700]);
        assert_eq!(trouble.current(), Some("the job database failed to claim jobs: disk full"));
        assert_eq!(trouble.retry_at(T0), Some(T0.saturating_add(Duration::from_millis(700))));
        assert_eq!(trouble.retry_at(T0.saturating_add(Duration::from_secs(1))), None);
        trouble.worked();
        assert_eq!(trouble.current(), None);
        assert_eq!(trouble.failed(T0, &error).since(T0).as_millis(), 100);
    }
}
