//! The bounded meeting point of streaming threads and the video thread.
//!
//! Compressed video: 60 access units / 8 MiB; overflow discards dependent units until an IDR. Decoded video: the
//! latest picture only. The owner puts it behind a lock that is held for a push or a take, never longer.

use std::collections::VecDeque;

use super::{HANDOFF_BYTES, HANDOFF_UNITS, Protocol};
use crate::media::{MAX_ACCESS_UNIT_BYTES, TapUnit};
use crate::time::Monotonic;

/// What waits between the publisher and the video thread; `P` is a reference to a decoded picture.
#[derive(Debug)]
pub struct Handoff<P> {
    protocol: Option<Protocol>,
    units: VecDeque<(TapUnit, Monotonic)>,
    unit_bytes: usize,
    /// A dependent unit was lost; everything up to the next IDR is worthless.
    discarding: bool,
    picture: Option<(P, usize)>,
    watched: bool,
    dropped: u64,
    oversized: u64,
}

impl<P> Default for Handoff<P> {
    fn default() -> Self {
        Self {
            protocol: None,
            units: VecDeque::new(),
            unit_bytes: 0,
            discarding: false,
            picture: None,
            watched: false,
            dropped: 0,
            oversized: 0,
        }
    }
}

impl<P> Handoff<P> {
    /// Empties the handoff and accepts what belongs to `protocol` from now on; `None` accepts nothing.
    pub fn begin(&mut self, protocol: Option<Protocol>) {
        self.protocol = protocol;
        self.units.clear();
        self.unit_bytes = 0;
        self.discarding = false;
        self.picture = None;
    }

    /// Says whether anybody watches: a picture replaced while nobody does is not a drop.
    pub fn set_watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Hands over one access unit. True when the handoff was empty before, so that the taker must be woken.
    pub fn push_unit(&mut self, now: Monotonic, unit: TapUnit) -> bool {
        if self.protocol != Some(Protocol::H264AnnexB) {
            return false;
        }
        if unit.data.len() > MAX_ACCESS_UNIT_BYTES {
            self.oversized += 1;
            self.discarding = true;
            return false;
        }
        let fits = self.units.len() < HANDOFF_UNITS && self.unit_bytes + unit.data.len() <= HANDOFF_BYTES;
        if unit.idr {
            self.discarding = false;
            if !fits {
                // What waits is older than a point where everybody can start.
                self.dropped += self.units.len() as u64;
                self.units.clear();
                self.unit_bytes = 0;
            }
        } else if self.discarding || !fits {
            self.discarding = true;
            self.dropped += 1;
            return false;
        }
        self.unit_bytes += unit.data.len();
        self.units.push_back((unit, now));
        self.units.len() == 1
    }

    /// The oldest access unit and when it was handed over.
    pub fn take_unit(&mut self) -> Option<(TapUnit, Monotonic)> {
        let (unit, handed_over) = self.units.pop_front()?;
        self.unit_bytes -= unit.data.len();
        Some((unit, handed_over))
    }

    /// Hands over a decoded picture that would make a message of `bytes`, replacing one nobody has taken. True when
    /// the taker must be woken. The picture replaced comes back, so that releasing it happens outside the lock.
    pub fn push_picture(&mut self, picture: P, bytes: usize) -> (bool, Option<P>) {
        if self.protocol != Some(Protocol::Nv12) {
            return (false, Some(picture));
        }
        let replaced = self.picture.replace((picture, bytes));
        self.dropped += u64::from(self.watched && replaced.is_some());
        (replaced.is_none(), replaced.map(|(picture, _)| picture))
    }

    /// The latest picture, unless it was taken before.
    pub fn take_picture(&mut self) -> Option<P> {
        self.picture.take().map(|(picture, _)| picture)
    }

    /// Counts a picture that the protocol cannot carry.
    pub fn skip_oversized(&mut self) {
        self.oversized += 1;
    }

    /// Units or pictures waiting.
    pub fn queued(&self) -> usize {
        self.units.len() + usize::from(self.picture.is_some())
    }

    /// Payload bytes waiting.
    pub fn queued_bytes(&self) -> usize {
        self.unit_bytes + self.picture.as_ref().map_or(0, |(_, bytes)| *bytes)
    }

    /// Units discarded and pictures replaced since the process started.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Units and pictures over the size limits since the process started.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn unit(sequence: u32, idr: bool, len: usize) -> TapUnit {
        TapUnit {
            data: Bytes::from(vec![0; len]),
            idr,
            sequence,
            received: Monotonic::ZERO,
        }
    }

    fn open(protocol: Protocol) -> Handoff<u32> {
        let mut handoff = Handoff::default();
        handoff.begin(Some(protocol));
        handoff
    }

    fn sequences(handoff: &mut Handoff<u32>) -> Vec<u32> {
        std::iter::from_fn(|| handoff.take_unit())
            .map(|(unit, _)| unit.sequence)
            .collect()
    }

    #[test]
    fn the_sixty_first_unit_and_its_dependents_are_discarded() {
        let mut handoff = open(Protocol::H264AnnexB);
        assert!(
            handoff.push_unit(Monotonic::ZERO, unit(1, true, 10)),
            "the first one wakes the taker"
        );
        for sequence in 2..=62 {
            assert!(!handoff.push_unit(Monotonic::ZERO, unit(sequence, false, 10)));
        }
        assert_eq!(
            (handoff.queued(), handoff.queued_bytes(), handoff.dropped()),
            (60, 600, 2)
        );
        assert_eq!(handoff.take_unit().unwrap().0.sequence, 1);
        handoff.push_unit(Monotonic::ZERO, unit(63, false, 10));
        assert_eq!(
            sequences(&mut handoff),
            (2..=60).collect::<Vec<_>>(),
            "room does not undo the loss"
        );
        handoff.push_unit(Monotonic::ZERO, unit(64, true, 10));
        handoff.push_unit(Monotonic::ZERO, unit(65, false, 10));
        assert_eq!(sequences(&mut handoff), [64, 65]);
        assert_eq!(handoff.dropped(), 3);
    }

    #[test]
    fn eight_mib_are_the_other_bound_and_a_keyframe_makes_its_own_room() {
        let mut handoff = open(Protocol::H264AnnexB);
        let mib = 1024 * 1024;
        handoff.push_unit(Monotonic::ZERO, unit(1, true, 4 * mib));
        handoff.push_unit(Monotonic::ZERO, unit(2, false, 4 * mib));
        handoff.push_unit(Monotonic::ZERO, unit(3, false, 1));
        assert_eq!(
            (handoff.queued(), handoff.queued_bytes(), handoff.dropped()),
            (2, 8 * mib, 1)
        );
        assert!(handoff.push_unit(Monotonic::ZERO, unit(4, true, 4 * mib)));
        assert_eq!(
            (handoff.queued(), handoff.queued_bytes(), handoff.dropped()),
            (1, 4 * mib, 3)
        );
        handoff.push_unit(Monotonic::ZERO, unit(5, false, 4 * mib + 1));
        handoff.push_unit(Monotonic::ZERO, unit(6, false, 1));
        assert_eq!(
            sequences(&mut handoff),
            [4],
            "what follows an oversized unit depends on it"
        );
        assert_eq!(handoff.oversized(), 1);
    }

    #[test]
    fn only_the_latest_picture_waits() {
        let mut handoff = open(Protocol::Nv12);
        assert_eq!(handoff.push_picture(1, 100), (true, None));
        assert_eq!(handoff.push_picture(2, 100), (false, Some(1)));
        assert_eq!(handoff.dropped(), 0, "nobody watches");
        handoff.set_watched(true);
        assert_eq!(handoff.push_picture(3, 50), (false, Some(2)));
        assert_eq!(
            (handoff.queued(), handoff.queued_bytes(), handoff.dropped()),
            (1, 50, 1)
        );
        assert_eq!(handoff.take_picture(), Some(3));
        assert_eq!(handoff.take_picture(), None);
        assert_eq!(handoff.push_picture(4, 50), (true, None));
    }

    #[test]
    fn nothing_of_another_protocol_or_generation_passes() {
        let mut handoff = open(Protocol::Nv12);
        assert!(!handoff.push_unit(Monotonic::ZERO, unit(1, true, 1)));
        handoff.push_picture(1, 1);
        handoff.begin(Some(Protocol::H264AnnexB));
        assert_eq!(handoff.push_picture(2, 1), (false, Some(2)));
        handoff.push_unit(Monotonic::ZERO, unit(1, true, 1));
        assert_eq!(handoff.queued(), 1);
        handoff.begin(None);
        assert!(!handoff.push_unit(Monotonic::ZERO, unit(2, true, 1)));
        assert_eq!((handoff.queued(), handoff.queued_bytes()), (0, 0));
    }
}
