//! The wish to stop: ctrl-c, and where there is such a thing SIGTERM.

use std::io;

/// What asked the program to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-c.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl StopSignal {
    /// For a person.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "ctrl-c",
            Self::Terminate => "SIGTERM",
        }
    }

    /// The exit code of a command that was stopped before its end, by the custom of shells.
    #[must_use]
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Catches the signals from its making on.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// When the system does not allow it.
    #[cfg(unix)]
    pub(crate) fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Begins to catch them.
    ///
    /// # Errors
    /// When the system does not allow it.
    #[cfg(not(unix))]
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one. Safe to drop while it waits.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }

    /// Waits for the next one. Safe to drop while it waits.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> StopSignal {
        if tokio::signal::ctrl_c().await.is_err() {
            // It cannot be caught: it ends the program in the system's way.
            std::future::pending::<()>().await;
        }
        StopSignal::Interrupt
    }
}
