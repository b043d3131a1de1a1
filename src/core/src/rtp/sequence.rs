//! Sequence numbers that do not wrap.

/// Extends 16-bit sequence numbers to 64 bits, each to the value nearest to the newest one seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unwrapper {
    newest: Option<u64>,
}

/// Room below the first number, so that packets that were overtaken by it have one, too.
const ORIGIN: u64 = 1 << 32;

impl Unwrapper {
    /// The extended number of `sequence`; remembers it when it is the newest.
    pub fn extend(&mut self, sequence: u16) -> u64 {
        let extended = self.nearest(sequence);
        if self.newest.is_none_or(|newest| extended > newest) {
            self.newest = Some(extended);
        }
        extended
    }

    /// The extended number of `sequence`, not remembered.
    pub fn nearest(&self, sequence: u16) -> u64 {
        let Some(newest) = self.newest else {
            return ORIGIN + u64::from(sequence);
        };
        // The low bits of `newest`, and a step between half a cycle back and half a cycle ahead.
        let step = i64::from(sequence.wrapping_sub(newest as u16).cast_signed());
        newest.saturating_add_signed(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_over_the_end_of_a_cycle_and_back() {
        let mut unwrapper = Unwrapper::default();
        let first = unwrapper.extend(65_534);
        assert_eq!(unwrapper.extend(65_535), first + 1);
        assert_eq!(unwrapper.extend(1), first + 3);
        assert_eq!(unwrapper.extend(0), first + 2);
        assert_eq!(unwrapper.extend(65_534), first);
        assert_eq!(unwrapper.extend(2), first + 4);
    }
}
