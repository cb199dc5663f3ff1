//! What a process of this machine takes: processor time and memory, as the system counts them. Linux only.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A process that runs.
pub(crate) struct Process(PathBuf);

impl Process {
    pub(crate) fn this() -> Self {
        Self("/proc/self".into())
    }

    pub(crate) fn of(pid: u32) -> Self {
        Self(format!("/proc/{pid}").into())
    }

    /// The memory that it has at the moment, in MiB.
    pub(crate) fn memory(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    /// The most memory that it ever had, in MiB.
    pub(crate) fn most_memory(&self) -> Result<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> Result<f64> {
        let status = fs::read_to_string(self.0.join("status")).context("this system has no /proc")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        let kibibytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kibibytes / 1024.0)
    }

    /// The processor time of all its threads, in seconds.
    pub(crate) fn processor_time(&self) -> Result<f64> {
        let mut nanoseconds = 0.0;
        for thread in fs::read_dir(self.0.join("task")).context("this system has no /proc")? {
            // One that has ended in the meantime no longer counts.
            let Ok(stat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let running = stat.split_whitespace().next().context("the processor time is missing")?;
            nanoseconds += running.parse::<f64>()?;
        }
        Ok(nanoseconds / 1e9)
    }
}
