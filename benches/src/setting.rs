//! How much is measured, and how often.

use anyhow::{Result, ensure};

/// What the caller asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    runs: usize,
    scale: f64,
}

impl Setting {
    pub(crate) fn new(runs: usize, scale: f64) -> Result<Self> {
        ensure!(runs > 0, "--runs must be at least 1");
        ensure!(scale > 0.0 && scale <= 10.0, "--scale must be above 0 and at most 10, not {scale}");
        Ok(Self { runs, scale })
    }

    /// How often each figure is measured.
    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    /// How often something is done that takes its time, where `full` is the number of docs/performance.md; at least once.
    pub(crate) fn rounds(&self, full: u32) -> u32 {
        ((f64::from(full) * self.scale) as u32).max(1)
    }

    /// The number of rows or calls to measure with, where `full` is the number of docs/performance.md; at least 10.
    pub(crate) fn size(&self, full: usize) -> usize {
        ((full as f64 * self.scale) as usize).max(10.min(full))
    }
}
