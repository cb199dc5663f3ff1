//! What must hold of any bytes that come from the wire, the disk or a person: one function for each way in, which panics
//! when something does not hold. `cargo xtask fuzz` feeds them what libFuzzer invents; `tests/corpus.rs` feeds them, as a
//! plain test, every input that is kept in `fuzz/corpus`.

mod frames;
mod inventory;
mod keys;
mod payloads;
mod rows;
mod times;
mod triggers;

pub use frames::frames;
pub use inventory::inventory;
pub use keys::keys;
pub use payloads::payloads;
pub use rows::rows;
pub use times::times;
pub use triggers::triggers;

/// One way in.
pub type Target = fn(&[u8]);

/// Every way in, by the name of its corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("frames", frames),
    ("inventory", inventory),
    ("keys", keys),
    ("payloads", payloads),
    ("rows", rows),
    ("times", times),
    ("triggers", triggers),
];

/// Runs what needs no other thread.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(future)
}
