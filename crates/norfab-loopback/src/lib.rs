//! A NorFab broker and its workers in this process, speaking NFP over ZeroMQ on a loopback port: for demonstrations,
//! tests and benchmarks. It answers as the real ones do, quirks included; it has no security.
//!
//! The rooms, in reading order: `config` says what is wanted, `loopback` is the handle; `serve` owns the socket and runs
//! what `broker` and `worker` decide, which are pure; `task` knows the tasks, `run` carries them out; `wire` builds
//! messages, `record` keeps what happened for those who want to check it.
//!
//! | task | arguments | what it does |
//! | --- | --- | --- |
//! | `echo` | any keyword arguments | returns them with the job's other data |
//! | `sleep` | `seconds` | takes that long |
//! | `fail` | `message`, `soft` | raises, or with `soft` returns a failed result |
//! | `emit` | `n`, `interval` | sends `n` progress events, `interval` seconds apart |
//! | `ask` | `question`, `timeout` | asks the client, and returns its answer |
//! | `list_tasks` | `name`, `brief` | describes one task or each; with `brief` only their names |

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod broker;
mod config;
mod loopback;
mod record;
mod run;
mod serve;
mod task;
mod wire;
mod worker;

pub use config::{LoopbackConfig, LoopbackError};
pub use loopback::Loopback;
pub use record::{Execution, SeenMessage};
