//! The program and the client library on the loopback fabric, where the rest of the machine makes trouble: how it stops,
//! and what it does without its database.

#![cfg(unix)]

mod another_program;
mod common;
mod crash;
mod files;
#[cfg(target_os = "linux")]
mod giants;
mod hostile;
mod script;
mod secrets;
#[cfg(target_os = "linux")]
mod soak;
mod stop;
mod storage;
