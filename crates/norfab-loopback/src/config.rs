//! What a loopback fabric is made of.

use std::collections::HashSet;

/// A fabric to start: one service, its workers, and where the broker listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopbackConfig {
    /// The service of all workers. Default `demo`.
    pub service: String,
    /// The workers' names. Default `demo-worker-1` and `demo-worker-2`.
    pub workers: Vec<String>,
    /// The TCP port on 127.0.0.1; 0, the default, takes a free one.
    pub port: u16,
    /// Jobs that one worker runs at once. Default 5, as in NorFab.
    pub concurrency: usize,
}

impl Default for LoopbackConfig {
    fn default() -> Self {
        Self::new("demo", 2)
    }
}

impl LoopbackConfig {
    /// `count` workers of a service, named as NorFab's usually are: `SERVICE-worker-1` and so on.
    #[must_use]
    pub fn new(service: &str, count: usize) -> Self {
        Self {
            service: service.to_owned(),
            workers: (1..=count).map(|number| format!("{service}-worker-{number}")).collect(),
            port: 0,
            concurrency: 5,
        }
    }

    /// The same on a certain port.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    pub(crate) fn check(&self) -> Result<(), LoopbackError> {
        let mut seen = HashSet::new();
        match self.workers.iter().find(|name| name.is_empty() || !seen.insert(name.as_str())) {
            Some(name) => Err(LoopbackError::WorkerName { name: name.clone() }),
            None if self.concurrency == 0 => Err(LoopbackError::NoConcurrency),
            None => Ok(()),
        }
    }
}

/// Why a fabric cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopbackError {
    /// A worker without a name, or two of one name.
    #[error("worker name {name:?} is empty or given twice; give each worker a name of its own")]
    WorkerName {
        /// The name.
        name: String,
    },
    /// Workers that could never run anything.
    #[error("concurrency is 0; let each worker run at least one job at once")]
    NoConcurrency,
    /// The port is taken, or the system refuses it.
    #[error("port {port} of 127.0.0.1 cannot be listened on; choose another, or 0 for a free one")]
    Bind {
        /// The port.
        port: u16,
        /// What the system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert!(LoopbackConfig::default().check().is_ok() && LoopbackConfig::new("x", 0).check().is_ok());
        for workers in [vec![String::new()], vec!["a".to_owned(), "a".to_owned()]] {
            let config = LoopbackConfig { workers, ..LoopbackConfig::default() };
            assert!(matches!(config.check(), Err(LoopbackError::WorkerName { .. })));
        }
        let config = LoopbackConfig { concurrency: 0, ..LoopbackConfig::default() };
        assert!(matches!(config.check(), Err(LoopbackError::NoConcurrency)));
    }
}
