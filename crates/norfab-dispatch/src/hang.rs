//! A database that neither works nor fails: while it does not answer, the health says so. Once it answers, all goes on.
//!
//! There are two who notice: the dispatcher itself, where the database works elsewhere, and a watch in another thread, where
//! the dispatcher's own thread waits for the disk.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use crate::Health;

/// The passes of a dispatcher, for its watch.
#[derive(Debug)]
pub(crate) struct Passes {
    /// How many were begun or ended: odd while one is under way.
    turns: AtomicU64,
    health: watch::Sender<Health>,
}

impl Passes {
    pub(crate) fn new(health: watch::Sender<Health>) -> Arc<Self> {
        Arc::new(Self { turns: AtomicU64::new(0), health })
    }

    /// Waits for a pass, however long it takes; when that is longer than `patience`, it is told. The next report of the
    /// health takes it back.
    pub(crate) async fn watched<T>(&self, pass: impl Future<Output = T>, patience: Duration) -> T {
        self.turns.fetch_add(1, Ordering::Relaxed);
        let done = self.waited_for(pass, patience).await;
        self.turns.fetch_add(1, Ordering::Relaxed);
        done
    }

    async fn waited_for<T>(&self, pass: impl Future<Output = T>, patience: Duration) -> T {
        let mut pass = pin!(pass);
        if let Ok(done) = tokio::time::timeout(patience, pass.as_mut()).await {
            return done;
        }
        let is_first = self.tell(patience);
        let done = pass.await;
        if is_first {
            tell_end();
        }
        done
    }

    /// Tells that the database does not answer, unless that was told. Whether it was not.
    fn tell(&self, patience: Duration) -> bool {
        let trouble = format!("the job database has not answered for {patience:?}");
        let is_first = self.health.send_if_modified(|health| {
            let is_first = health.storage_error.is_none();
            health.storage_error.get_or_insert_with(|| trouble.clone());
            is_first
        });
        if is_first {
            tracing::error!("Cannot go on, nothing is sent until it works again: {trouble}");
        }
        is_first
    }

    /// The pass that is under way.
    fn under_way(&self) -> Option<u64> {
        Some(self.turns.load(Ordering::Relaxed)).filter(|turns| turns % 2 == 1)
    }
}

fn tell_end() {
    tracing::info!("The job database answers again");
}

/// Looks each time that `patience` has passed whether a pass is under way that was so before, and tells it. Ends when its
/// dispatcher has.
pub(crate) async fn watch(passes: Weak<Passes>, patience: Duration) {
    let (mut before, mut told) = (None, None);
    loop {
        tokio::time::sleep(patience).await;
        let Some(passes) = passes.upgrade() else { return };
        let now = passes.under_way();
        if told.is_some() && told != now {
            told = None;
            tell_end();
        }
        if now.is_some() && now == before && told.is_none() && passes.tell(patience) {
            told = now;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkState;

    const PATIENCE: Duration = Duration::from_secs(30);
    const TOLD: &str = "the job database has not answered for 30s";

    fn passes() -> (Arc<Passes>, watch::Receiver<Health>) {
        let (health, seen) = watch::channel(Health { link: LinkState::Up, strays: 0, ignored: 0, storage_error: None });
        (Passes::new(health), seen)
    }

    /// What the health says of the database after a pass that took so long.
    async fn check(takes: Duration, told: Option<&str>) {
        let (passes, seen) = passes();
        let work = async {
            tokio::time::sleep(takes).await;
            7
        };
        assert_eq!(passes.watched(work, PATIENCE).await, 7);
        assert_eq!(seen.borrow().storage_error.as_deref(), told, "{takes:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_told_and_still_waited_for() {
        check(Duration::from_secs(29), None).await;
        check(Duration::from_secs(31), Some(TOLD)).await;
    }

    /// What the watch tells by the end of these turns, one each time that the patience is over.
    async fn check_watch(turns: &[u64], told: Option<&str>) {
        let (passes, seen) = passes();
        let watching = tokio::spawn(watch(Arc::downgrade(&passes), PATIENCE));
        tokio::task::yield_now().await;
        for turn in turns {
            passes.turns.store(*turn, Ordering::Relaxed);
            tokio::time::sleep(PATIENCE).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(seen.borrow().storage_error.as_deref(), told, "{turns:?}");
        drop(passes);
        watching.await.expect("it ends with the dispatcher");
    }

    /// The thread of the dispatcher waits for the disk itself, and cannot tell.
    #[tokio::test(start_paused = true)]
    async fn a_pass_that_was_under_way_at_the_last_look_is_told() {
        check_watch(&[1, 1], Some(TOLD)).await;
        check_watch(&[1, 3, 5], None).await;
        check_watch(&[0, 2, 2, 2], None).await;
        check_watch(&[1], None).await;
    }
}
