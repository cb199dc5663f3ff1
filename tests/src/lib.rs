//! What the end-to-end tests share: the real NorFab in processes of its own, the real Python client, our own program in
//! processes that may be killed, and waiting for what other processes write.
//!
//! Tests of the real NorFab get it from `cargo xtask test` (or `cargo xtask peer`, once, for a plain `cargo test`).
//! With `NORFAB_NO_PEER` set they leave themselves out and say so; without it a missing peer is a failure.

#![deny(missing_docs)]

mod chance;
mod peer;
mod program;
mod python;
mod record;
mod relay;
mod wait;

pub use chance::Chance;
pub use peer::{About, Builder, Peer, Process, Registered, Security, Started, Stats};
pub use program::{Ended, OwnerProcess, Program, Stopped};
pub use python::{PythonClient, PythonJob, PythonReport, interpreter};
pub use record::{ClientMessage, Execution, Tally};
pub use relay::Relay;
pub use wait::eventually;
