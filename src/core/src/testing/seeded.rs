//! Random numbers that are the same in every run.

/// A small generator (SplitMix64): equal seeds give equal sequences on every machine.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Starts the sequence of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`; zero when the bound is zero.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        (self.bits() % u64::from(bound)) as u32
    }

    /// A position below `bound`; zero when the bound is zero.
    pub fn index(&mut self, bound: usize) -> usize {
        if bound == 0 {
            return 0;
        }
        (self.bits() % bound as u64) as usize
    }

    /// True once in `times`, on average.
    pub fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// Heads or tails.
    pub fn flip(&mut self) -> bool {
        self.once_in(2)
    }

    /// The value of `make`, or nothing, at even chances.
    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flip() { Some(make(self)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_another_differs() {
        let take = |seed| {
            std::iter::repeat_with({
                let mut random = Seeded::new(seed);
                move || random.bits()
            })
            .take(4)
            .collect::<Vec<_>>()
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn bounds_hold_even_at_zero() {
        let mut random = Seeded::new(7);
        assert_eq!((random.below(0), random.index(0)), (0, 0));
        assert!((0..100).all(|_| random.below(3) < 3));
    }
}
