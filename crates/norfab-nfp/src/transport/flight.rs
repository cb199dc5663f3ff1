//! What a socket has taken and not yet written. A socket queues by the message, whatever its size; this counts
//! the bytes, so that a broker that stops reading leaves the rest in our own queue, where it is bounded and counted.

use bytes::Bytes;

use super::room::{Place, Room};
use super::size;
use crate::frame::Frames;

/// Bytes in flight on one connection, above what the system and the crate's write buffer hold. Enough to keep a fast
/// network busy; all of it is late or lost when the connection breaks.
const FLIGHT_BYTES: usize = 1 << 20;

/// The bytes in flight on one connection.
#[derive(Debug)]
pub(super) struct Flight(Room);

impl Flight {
    pub(super) fn new() -> Self {
        Self(Room::new(FLIGHT_BYTES))
    }

    /// Waits for room and makes a message's frames ready for the socket. The room is free again once the socket has
    /// written the message into its buffer, or thrown it away: both drop the frames.
    pub(super) async fn board(&self, frames: Frames) -> Vec<Bytes> {
        let place = self.0.place(size(&frames)).await;
        let longest = frames.iter().enumerate().max_by_key(|(_, frame)| frame.len()).map(|(at, _)| at);
        let mut place = place.filter(|_| longest.is_some());
        frames
            .into_iter()
            .enumerate()
            .map(|(at, frame)| match place.take_if(|_| Some(at) == longest) {
                Some(place) => Bytes::from_owner(Aboard { frame, _place: place }),
                None => frame.into(),
            })
            .collect()
    }
}

/// The longest frame of a message, which holds its place: short ones are copied at once by a socket.
struct Aboard {
    frame: Vec<u8>,
    _place: Place,
}

impl AsRef<[u8]> for Aboard {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn message(bytes: usize) -> Frames {
        vec![Vec::new(), b"header".to_vec(), vec![7; bytes], b"{}".to_vec()]
    }

    fn board(flight: &Flight, bytes: usize) -> Option<Vec<Bytes>> {
        flight.board(message(bytes)).now_or_never()
    }

    #[test]
    fn the_frames_stay_as_they_are() {
        for bytes in [0, 1, 100_000] {
            assert_eq!(board(&Flight::new(), bytes).unwrap(), message(bytes));
        }
        assert!(Flight::new().board(Vec::new()).now_or_never().unwrap().is_empty());
    }

    #[test]
    fn bytes_are_in_flight_until_their_frames_are_dropped() {
        let flight = Flight::new();
        let first = board(&flight, FLIGHT_BYTES / 2).unwrap();
        assert!(board(&flight, FLIGHT_BYTES / 2).is_none());
        let second = board(&flight, FLIGHT_BYTES / 4).unwrap();
        drop(first);
        assert!(board(&flight, FLIGHT_BYTES / 2).is_some());
        drop(second);
    }

    #[test]
    fn a_large_message_flies_alone() {
        let flight = Flight::new();
        let large = board(&flight, 10 * FLIGHT_BYTES).unwrap();
        assert!(board(&flight, 1).is_none());
        drop(large);
        assert!(board(&flight, 1).is_some());
    }
}
