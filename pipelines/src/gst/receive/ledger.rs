//! Access units whose pictures may still come, and the numbers pictures carry.

use std::collections::VecDeque;

use crossdesk_core::time::Monotonic;

use super::Unit;
use crate::plan::shape::StreamShape;

/// Units remembered: a replayed group, a full decoder queue and the deepest reordering together.
const MAX_RECORDS: usize = 256;

/// What a picture needs to know of its access unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub sequence: u32,
    pub pts: gst::ClockTime,
    pub received: Monotonic,
    pub shape: StreamShape,
    delivered: bool,
}

/// The numbers of a picture that is delivered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub sequence: u32,
    pub geometry_epoch: u32,
}

/// The ledger of one connection; see the module's header.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    records: VecDeque<Record>,
    pictures: u32,
    epoch: u32,
    shown: Option<StreamShape>,
}

impl Ledger {
    /// Enters a unit; sequence numbers only grow.
    pub fn enter(&mut self, unit: &Unit) {
        if self.records.len() == MAX_RECORDS {
            self.records.pop_front();
        }
        self.records.push_back(Record {
            sequence: unit.sequence,
            pts: unit.pts,
            received: unit.received,
            shape: unit.shape,
            delivered: false,
        });
    }

    /// The unit numbered `sequence`.
    pub fn by_sequence(&self, sequence: u32) -> Option<Record> {
        let index = self
            .records
            .binary_search_by_key(&sequence, |record| record.sequence)
            .ok()?;
        self.records.get(index).copied()
    }

    /// The unit with this timestamp, for decoders that drop the note on the buffer.
    pub fn by_pts(&self, pts: gst::ClockTime) -> Option<Record> {
        let index = self
            .records
            .binary_search_by_key(&pts, |record| record.pts)
            .ok()?;
        self.records.get(index).copied()
    }

    /// Numbers for the picture of unit `sequence`; `None` when it was delivered before or is forgotten.
    pub fn deliver(&mut self, sequence: u32) -> Option<Numbers> {
        let index = self
            .records
            .binary_search_by_key(&sequence, |record| record.sequence)
            .ok()?;
        let record = self.records.get_mut(index).filter(|record| !record.delivered)?;
        record.delivered = true;
        let shape = record.shape;
        if self.shown.is_none_or(|shown| shown.looks_different(&shape)) {
            self.epoch += 1;
        }
        self.shown = Some(shape);
        self.pictures = self.pictures.wrapping_add(1);
        Some(Numbers {
            sequence: self.pictures,
            geometry_epoch: self.epoch,
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::plan::shape::tests::shape;

    fn unit(sequence: u32, width: u32) -> Unit {
        Unit {
            sequence,
            received: Monotonic::ZERO,
            pts: gst::ClockTime::from_nseconds(u64::from(sequence) * 10),
            idr: false,
            data: Bytes::new(),
            shape: shape(width, 64),
        }
    }

    #[test]
    fn pictures_count_once_and_geometry_changes_bump_the_epoch() {
        let mut ledger = Ledger::default();
        for (sequence, width) in [(3, 64), (4, 64), (7, 80), (8, 80), (9, 64)] {
            ledger.enter(&unit(sequence, width));
        }
        let mut deliver = |n| {
            ledger
                .deliver(n)
                .map(|numbers| (numbers.sequence, numbers.geometry_epoch))
        };
        assert_eq!(deliver(3), Some((1, 1)));
        assert_eq!(deliver(4), Some((2, 1)));
        assert_eq!(deliver(4), None, "a replay shows it again");
        assert_eq!(deliver(5), None, "never entered");
        assert_eq!(deliver(7), Some((3, 2)));
        assert_eq!(deliver(8), Some((4, 2)));
        assert_eq!(deliver(9), Some((5, 3)));
        assert_eq!(
            ledger.by_pts(gst::ClockTime::from_nseconds(70)).unwrap().sequence,
            7
        );
    }

    #[test]
    fn old_units_are_forgotten() {
        let mut ledger = Ledger::default();
        for sequence in 1..=MAX_RECORDS as u32 + 1 {
            ledger.enter(&unit(sequence, 64));
        }
        assert!(ledger.by_sequence(1).is_none());
        assert!(ledger.by_sequence(2).is_some());
    }
}
