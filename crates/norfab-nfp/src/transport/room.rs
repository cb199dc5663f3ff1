//! Room for messages, counted in bytes: what a queue may hold, and what a socket may have taken and not yet written.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit; a semaphore counts in `u32` steps. A message takes at least one.
pub(super) const UNIT: usize = 1024;

/// So many bytes. A single message that is larger than all of it may have it alone.
#[derive(Clone, Debug)]
pub(super) struct Room {
    permits: Arc<Semaphore>,
    all: u32,
}

/// A message's part of the room, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place(#[expect(dead_code, reason = "it is held, not looked at")] OwnedSemaphorePermit);

impl Room {
    /// Room for about `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let all = units(bytes, u32::MAX);
        Self { permits: Arc::new(Semaphore::new(all as usize)), all }
    }

    /// Waits for a place of `bytes` bytes. Places are given in the order in which they were asked for.
    pub(super) async fn place(&self, bytes: usize) -> Option<Place> {
        Arc::clone(&self.permits).acquire_many_owned(units(bytes, self.all)).await.ok().map(Place)
    }

    /// A place of `bytes` bytes, if there is one now.
    pub(super) fn place_now(&self, bytes: usize) -> Option<Place> {
        Arc::clone(&self.permits).try_acquire_many_owned(units(bytes, self.all)).ok().map(Place)
    }
}

fn units(bytes: usize, most: u32) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_bytes_and_come_back() {
        let room = Room::new(10 * UNIT);
        let first = room.place_now(6 * UNIT);
        assert!(first.is_some() && room.place_now(5 * UNIT).is_none());
        let second = room.place_now(0);
        assert!(second.is_some() && room.place_now(4 * UNIT).is_none());
        drop(first);
        assert!(room.place_now(9 * UNIT).is_some());
    }

    #[test]
    fn what_is_larger_than_the_room_has_it_alone() {
        let room = Room::new(10 * UNIT);
        let small = room.place_now(1);
        assert!(room.place_now(usize::MAX).is_none());
        drop(small);
        let large = room.place_now(usize::MAX);
        assert!(large.is_some() && room.place_now(1).is_none());
    }
}
