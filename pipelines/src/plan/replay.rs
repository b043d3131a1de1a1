//! The current group of pictures, kept so that a new decoder can take over where the old one failed.

use std::collections::VecDeque;

/// Most access units kept: one second at 60 pictures a second.
pub const MAX_UNITS: usize = 60;
/// Most bytes kept.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Access units since the last IDR, or nothing when they are more than the buffer holds.
#[derive(Debug)]
pub struct Replay<T> {
    units: VecDeque<T>,
    bytes: usize,
    complete: bool,
}

impl<T> Default for Replay<T> {
    fn default() -> Self {
        Self {
            units: VecDeque::new(),
            bytes: 0,
            complete: false,
        }
    }
}

impl<T> Replay<T> {
    /// Adds a unit of `bytes` bytes; an IDR starts the group anew.
    ///
    /// A group that outgrows the limits is forgotten at once: a part of it decodes to nothing.
    pub fn push(&mut self, unit: T, bytes: usize, idr: bool) {
        if idr {
            self.clear();
            self.complete = true;
        }
        if !self.complete {
            return;
        }
        // One IDR may be larger than all the buffer; it alone is still worth keeping.
        if self.units.len() == MAX_UNITS || (self.bytes + bytes > MAX_BYTES && !self.units.is_empty()) {
            self.clear();
            return;
        }
        self.bytes += bytes;
        self.units.push_back(unit);
    }

    /// Forgets the group; nothing can be replayed before the next IDR.
    pub fn clear(&mut self) {
        self.units.clear();
        self.bytes = 0;
        self.complete = false;
    }

    /// True when the whole current group is here.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The units of the group, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.units.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(replay: &Replay<u32>) -> Vec<u32> {
        replay.iter().copied().collect()
    }

    #[test]
    fn an_idr_starts_the_group_anew() {
        let mut replay = Replay::default();
        replay.push(1, 10, false);
        assert!(!replay.is_complete(), "nothing to start from");
        replay.push(2, 10, true);
        replay.push(3, 10, false);
        assert_eq!(held(&replay), [2, 3]);
        replay.push(4, 10, true);
        assert_eq!(held(&replay), [4]);
    }

    #[test]
    fn a_group_over_the_limits_is_forgotten_until_the_next_idr() {
        let mut replay = Replay::default();
        for n in 0..=MAX_UNITS as u32 {
            replay.push(n, 1, n == 0);
        }
        assert!(!replay.is_complete());
        assert!(held(&replay).is_empty());
        replay.push(100, MAX_BYTES, true);
        assert!(replay.is_complete());
        replay.push(101, 1, false);
        assert!(!replay.is_complete(), "over 8 MiB");
    }
}
