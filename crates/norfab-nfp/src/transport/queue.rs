//! A channel that is bounded in messages and in bytes, so that neither many small nor a few large messages fill the
//! memory when one side does not keep up.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes of one permit; a semaphore counts in `u32` steps.
const UNIT: usize = 1024;

/// The sending end.
#[derive(Clone, Debug)]
pub(crate) struct Sender<T> {
    channel: mpsc::Sender<(T, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    units: u32,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver<T>(mpsc::Receiver<(T, OwnedSemaphorePermit)>);

/// The other end is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// A channel for at most `messages` messages of together about `bytes` bytes. A single larger message passes alone.
pub(crate) fn bounded<T>(messages: usize, bytes: usize) -> (Sender<T>, Receiver<T>) {
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
    let (sender, receiver) = mpsc::channel(messages.max(1));
    (Sender { channel: sender, room: Arc::new(Semaphore::new(units as usize)), units }, Receiver(receiver))
}

impl<T> Sender<T> {
    /// Waits for room and puts the message in, which counts as `bytes` bytes. Nothing is put in when it is dropped while
    /// it waits.
    pub(crate) async fn send(&self, message: T, bytes: usize) -> Result<(), Closed> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, self.units);
        let room = Arc::clone(&self.room).acquire_many_owned(units);
        tokio::select! {
            permit = room => {
                let permit = permit.map_err(|_| Closed)?;
                self.channel.send((message, permit)).await.map_err(|_| Closed)
            }
            () = self.channel.closed() => Err(Closed),
        }
    }
}

impl<T> Receiver<T> {
    /// Waits for the next message; `None` when all senders are gone and nothing is left. Safe to drop while it waits.
    pub(crate) async fn recv(&mut self) -> Option<T> {
        self.0.recv().await.map(|(message, _)| message)
    }

    /// The next message, if one is there.
    pub(crate) fn try_recv(&mut self) -> Option<T> {
        self.0.try_recv().ok().map(|(message, _)| message)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_full(sender: &Sender<u8>, bytes: usize) -> bool {
        sender.send(0, bytes).now_or_never().is_none()
    }

    #[tokio::test]
    async fn messages_are_bounded() {
        let (sender, mut receiver) = bounded(2, 1 << 20);
        sender.send(1, 10).await.unwrap();
        sender.send(2, 10).await.unwrap();
        assert!(is_full(&sender, 10));
        assert_eq!(receiver.recv().await, Some(1));
        assert!(!is_full(&sender, 10));
    }

    #[tokio::test]
    async fn bytes_are_bounded() {
        let (sender, mut receiver) = bounded(100, 10 * UNIT);
        sender.send(1, 6 * UNIT).await.unwrap();
        assert!(is_full(&sender, 5 * UNIT));
        assert_eq!(receiver.try_recv(), Some(1));
        sender.send(2, 5 * UNIT).await.unwrap();
    }

    #[tokio::test]
    async fn a_message_above_the_bound_passes_alone() {
        let (sender, mut receiver) = bounded(100, 10 * UNIT);
        sender.send(1, usize::MAX).await.unwrap();
        assert!(is_full(&sender, 1));
        assert_eq!(receiver.recv().await, Some(1));
        sender.send(2, 1).await.unwrap();
        assert!(is_full(&sender, usize::MAX));
    }

    #[tokio::test]
    async fn a_lost_end_is_noticed_also_while_waiting() {
        let (sender, receiver) = bounded(100, UNIT);
        sender.send(1, UNIT).await.unwrap();
        let waiting = sender.send(2, UNIT);
        drop(receiver);
        assert_eq!(waiting.await, Err(Closed));
        let (sender, mut receiver) = bounded::<u8>(1, UNIT);
        sender.send(1, 1).await.unwrap();
        drop(sender);
        assert_eq!((receiver.recv().await, receiver.recv().await), (Some(1), None));
    }
}
