//! A database that neither works nor fails: while it does not answer, the health says so. Once it answers, all goes on.
//!
//! There are two who notice: the dispatcher itself, where the database works elsewhere, and a [`Watch`] in another thread,
//! where the dispatcher's own thread waits for the disk.

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
        let is_first = self.tell(patience, self.under_way());
        let done = pass.await;
        if is_first {
            tell_end();
        }
        done
    }

    /// Tells that the database does not answer this pass, unless that was told or it has ended. Whether it was told now.
    fn tell(&self, patience: Duration, pass: Option<u64>) -> bool {
        let trouble = format!("the job database has not answered for {patience:?}");
        let is_first = self.health.send_if_modified(|health| {
            let is_first = health.storage_error.is_none() && self.under_way() == pass;
            if !is_first {
                return false;
            }
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

/// How often a watch looks while the patience lasts.
const LOOKS: u32 = 4;

/// A watch over the passes of a dispatcher that may keep its own thread waiting: have another thread [look](Self::look) every
/// [`interval`](Self::interval). It tells in the health, and in the log, when a pass does not end.
#[derive(Debug)]
pub struct Watch {
    passes: Weak<Passes>,
    patience: Duration,
    /// The pass that was under way at the last look, and at how many looks before.
    seen: Option<(u64, u32)>,
    told: Option<u64>,
}

impl Watch {
    pub(crate) fn new(passes: &Arc<Passes>, patience: Duration) -> Self {
        Self { passes: Arc::downgrade(passes), patience, seen: None, told: None }
    }

    /// How long to wait from one look to the next: a quarter of
    /// [`Config::storage_patience`](crate::Config::storage_patience). What hangs is told as much later at the most.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.patience / LOOKS
    }

    /// Looks whether the pass under way is so for too long.
    pub fn look(&mut self) {
        // Where it is gone, the dispatcher has ended.
        let Some(passes) = self.passes.upgrade() else { return };
        let now = passes.under_way();
        if self.told.is_some() && self.told != now {
            self.told = None;
            tell_end();
        }
        self.seen = now.map(|pass| match self.seen {
            Some((before, looks)) if before == pass => (pass, looks.saturating_add(1)),
            _ => (pass, 0),
        });
        let is_long = self.seen.is_some_and(|(_, looks)| looks >= LOOKS);
        if is_long && self.told.is_none() && passes.tell(self.patience, now) {
            self.told = now;
        }
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

    /// What the watch tells by the last of its looks, each of which finds the passes at this turn.
    fn check_watch(turns: &[u64], told: Option<&str>) {
        let (passes, seen) = passes();
        let mut watch = Watch::new(&passes, PATIENCE);
        assert_eq!(watch.interval() * LOOKS, PATIENCE);
        for turn in turns {
            passes.turns.store(*turn, Ordering::Relaxed);
            watch.look();
        }
        assert_eq!(seen.borrow().storage_error.as_deref(), told, "{turns:?}");
        drop(passes);
        watch.look();
    }

    /// The thread of the dispatcher waits for the disk itself, and cannot tell.
    #[test]
    fn a_pass_that_does_not_end_is_told() {
        check_watch(&[0, 1, 1, 1, 1], None);
        check_watch(&[0, 1, 1, 1, 1, 1], Some(TOLD));
        check_watch(&[1, 1, 1, 3, 3, 3, 3], None);
        check_watch(&[2; 9], None);
    }

    #[test]
    fn a_pass_that_ends_meanwhile_is_not_told() {
        let (passes, seen) = passes();
        passes.turns.store(2, Ordering::Relaxed);
        assert!(!passes.tell(PATIENCE, Some(1)));
        assert_eq!(seen.borrow().storage_error, None);
    }
}
