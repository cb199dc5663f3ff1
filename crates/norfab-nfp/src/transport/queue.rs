//! A channel that is bounded in messages and in bytes, so that neither many small nor a few large messages fill the
//! memory when one side does not keep up.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::room::{Place, Room};

/// The sending end.
#[derive(Clone, Debug)]
pub(crate) struct Sender<T> {
    channel: mpsc::Sender<(T, Place)>,
    room: Room,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver<T>(mpsc::Receiver<(T, Place)>);

/// The other end is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// Why a message was not put in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The other end is gone.
    Closed,
    /// There is no room at the moment.
    Full,
}

/// A channel for at most `messages` messages of together about `bytes` bytes. A single larger message passes alone.
pub(crate) fn bounded<T>(messages: usize, bytes: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(messages.max(1));
    (Sender { channel: sender, room: Room::new(bytes) }, Receiver(receiver))
}

impl<T> Sender<T> {
    /// Waits for room and puts the message in, which counts as `bytes` bytes. Nothing is put in when it is dropped while
    /// it waits.
    pub(crate) async fn send(&self, message: T, bytes: usize) -> Result<(), Closed> {
        tokio::select! {
            place = self.room.place(bytes) => {
                let place = place.ok_or(Closed)?;
                self.channel.send((message, place)).await.map_err(|_| Closed)
            }
            () = self.channel.closed() => Err(Closed),
        }
    }

    /// Puts the message in, which counts as `bytes` bytes, if there is room now.
    pub(crate) fn try_send(&self, message: T, bytes: usize) -> Result<(), Refused> {
        if self.channel.is_closed() {
            return Err(Refused::Closed);
        }
        let place = self.room.place_now(bytes).ok_or(Refused::Full)?;
        self.channel.try_send((message, place)).map_err(|error| match error {
            TrySendError::Full(_) => Refused::Full,
            TrySendError::Closed(_) => Refused::Closed,
        })
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

    use super::super::room::UNIT;
    use super::*;

    /// Neither way of sending finds room.
    fn is_full(sender: &Sender<u8>, bytes: usize) -> bool {
        let refused = sender.try_send(0, bytes) == Err(Refused::Full);
        refused && sender.send(0, bytes).now_or_never().is_none()
    }

    #[tokio::test]
    async fn messages_are_bounded() {
        let (sender, mut receiver) = bounded(2, 1 << 20);
        sender.send(1, 10).await.unwrap();
        sender.try_send(2, 10).unwrap();
        assert!(is_full(&sender, 10));
        assert_eq!(receiver.recv().await, Some(1));
        assert!(!is_full(&sender, 10));
    }

    #[tokio::test]
    async fn bytes_are_bounded() {
        let (sender, mut receiver) = bounded(100, 10 * UNIT);
        sender.try_send(1, 6 * UNIT).unwrap();
        assert!(is_full(&sender, 5 * UNIT));
        assert_eq!(receiver.try_recv(), Some(1));
        sender.send(2, 5 * UNIT).await.unwrap();
    }

    #[tokio::test]
    async fn a_message_that_is_refused_takes_no_room() {
        let (sender, mut receiver) = bounded(1, 10 * UNIT);
        sender.try_send(1, UNIT).unwrap();
        for _ in 0..20 {
            assert!(is_full(&sender, 5 * UNIT));
        }
        assert_eq!(receiver.recv().await, Some(1));
        sender.try_send(2, 10 * UNIT).unwrap();
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
        assert_eq!(sender.try_send(3, UNIT), Err(Refused::Closed));
        let (sender, mut receiver) = bounded::<u8>(1, UNIT);
        sender.send(1, 1).await.unwrap();
        drop(sender);
        assert_eq!((receiver.recv().await, receiver.recv().await), (Some(1), None));
    }
}
