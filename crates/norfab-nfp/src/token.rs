//! Random identities for what lives only in this process: questions to the broker, temporary files.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// 32 lower-case hexadecimal digits that no other call gives, neither here nor, but for a chance of 1 in 2^64, in
/// another process.
pub(crate) fn random_hex() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The hasher's keys come from the system's random numbers.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(count);
    format!("{:016x}{count:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn they_differ_and_look_like_uuids() {
        let made: HashSet<String> = (0..1000).map(|_| random_hex()).collect();
        assert_eq!(made.len(), 1000);
        assert!(made.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    }
}
