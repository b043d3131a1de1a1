//! The access units since the last IDR, so that a viewer can start, or catch up, without waiting for the source.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{GROUP_BYTES, GROUP_UNITS, Message};

/// Position of an access unit in the order of arrival; unlike sequences it never has gaps and never wraps.
pub(super) type Index = u64;

/// What stands at an index.
#[derive(Debug)]
pub(super) enum Lookup<'a> {
    /// The unit, which follows the unit before the index.
    Unit(&'a Arc<Message>),
    /// Nothing yet: everything before was seen.
    Live,
    /// Gone, but a keyframe at this later index starts anew.
    Restart(Index),
    /// Gone, and only a keyframe yet to come helps.
    Lost,
}

/// A contiguous run of units. It starts with an IDR, or holds the newest unit only.
#[derive(Debug, Default)]
pub(super) struct Group {
    units: VecDeque<Arc<Message>>,
    bytes: usize,
    /// Index of the first unit held.
    first: Index,
    /// True when the first unit held is an IDR.
    starts: bool,
}

impl Group {
    /// Appends a unit that directly follows the last one, or is an IDR.
    pub(super) fn push(&mut self, message: Arc<Message>) {
        if message.starts {
            self.forget();
            self.starts = true;
        } else if !self.starts || self.is_full(message.total_bytes()) {
            self.forget();
        }
        self.bytes += message.total_bytes();
        self.units.push_back(message);
    }

    /// Units were lost before the next one: nothing held can be continued.
    pub(super) fn break_chain(&mut self) {
        self.forget();
        // Whoever had seen everything has missed something now.
        self.first += 1;
    }

    /// Where a new viewer starts; `None` when it must wait for a keyframe.
    pub(super) fn start(&self) -> Option<Index> {
        self.starts.then_some(self.first)
    }

    /// The index the next unit will get.
    pub(super) fn end(&self) -> Index {
        self.first + self.units.len() as Index
    }

    /// Units held.
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    pub(super) fn look(&self, index: Index) -> Lookup<'_> {
        let Some(offset) = index.checked_sub(self.first) else {
            return self.start().map_or(Lookup::Lost, Lookup::Restart);
        };
        usize::try_from(offset)
            .ok()
            .and_then(|offset| self.units.get(offset))
            .map_or(Lookup::Live, Lookup::Unit)
    }

    fn is_full(&self, more: usize) -> bool {
        self.units.len() >= GROUP_UNITS || self.bytes + more > GROUP_BYTES
    }

    fn forget(&mut self) {
        self.first = self.end();
        self.units.clear();
        self.bytes = 0;
        self.starts = false;
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn check_invariants(&self) {
        assert!(
            self.units.len() <= GROUP_UNITS
                && self.bytes <= GROUP_BYTES.max(crate::media::MAX_ACCESS_UNIT_BYTES + 64)
        );
        assert_eq!(
            self.bytes,
            self.units.iter().map(|unit| unit.total_bytes()).sum::<usize>()
        );
        assert_eq!(self.starts, self.units.front().is_some_and(|unit| unit.starts));
        assert!(self.units.iter().skip(1).all(|unit| !unit.starts));
    }
}
