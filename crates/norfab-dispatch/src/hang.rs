//! A database that neither works nor fails: while it does not answer, the health says so. Once it answers, all goes on.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;

use crate::Health;

/// Waits for work on the database, however long it takes; when that is longer than `patience`, it is told. The next report
/// of the health takes it back.
pub(crate) async fn watched<T>(work: impl Future<Output = T>, patience: Duration, health: &watch::Sender<Health>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = tokio::time::timeout(patience, work.as_mut()).await {
        return done;
    }
    let trouble = format!("the job database has not answered for {patience:?}");
    tracing::error!("Cannot go on, nothing is sent until it works again: {trouble}");
    health.send_modify(|health| health.storage_error = Some(trouble));
    let done = work.await;
    tracing::info!("The job database answers again");
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkState;

    /// What the health says of the database while the work lasts, and what the work gives.
    async fn check(patience: Duration) -> (Option<String>, i32) {
        let (health, mut seen) =
            watch::channel(Health { link: LinkState::Up, strays: 0, ignored: 0, storage_error: None });
        let work = async {
            // It goes on when the health has changed, or at once when there is all the time.
            if patience.is_zero() {
                seen.changed().await.expect("the health is kept");
            }
            7
        };
        let done = watched(work, patience, &health).await;
        (health.borrow().storage_error.clone(), done)
    }

    #[tokio::test]
    async fn what_hangs_is_told_and_still_waited_for() {
        assert_eq!(check(Duration::from_secs(600)).await, (None, 7));
        let told = "the job database has not answered for 0ns".to_owned();
        assert_eq!(check(Duration::ZERO).await, (Some(told), 7));
    }
}
