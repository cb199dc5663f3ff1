//! Waiting for other processes. What happens in this process is waited for by its own notifications instead.

use std::time::Duration;

/// How long anything that works may take on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Looks until there is something to see, and gives it; for the files that another process writes.
///
/// # Panics
///
/// After 30 seconds, with `what` was waited for.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = tokio::time::timeout(PATIENCE, async {
        let mut ticks = tokio::time::interval(LOOK_AGAIN);
        loop {
            ticks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("not seen within {PATIENCE:?}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_later_is_seen() {
        let mut looks = 0;
        let seen = eventually("the third look", async || {
            looks += 1;
            (looks == 3).then_some("here")
        });
        assert_eq!(seen.await, "here");
    }
}
