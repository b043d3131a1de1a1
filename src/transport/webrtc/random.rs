//! Numbers and names from a seed, so that the rules draw nothing themselves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::config::Seed;

/// SHA-256 of the seed and a counter: unguessable as long as the seed is.
pub(super) struct Random {
    seed: Seed,
    drawn: u64,
}

impl Random {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    fn block(&mut self) -> [u8; 32] {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(self.seed.0);
        hash.update(self.drawn.to_be_bytes());
        hash.finalize().into()
    }

    pub(super) fn u64(&mut self) -> u64 {
        let block = self.block();
        u64::from_be_bytes(std::array::from_fn(|at| block[at]))
    }

    pub(super) fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    /// A seed for another part.
    pub(super) fn seed(&mut self) -> Seed {
        Seed(self.block())
    }

    /// Letters of Base64, which are those that ICE allows; 6 bits each.
    pub(super) fn letters(&mut self, count: usize) -> String {
        let mut text = STANDARD.encode(self.block());
        text.truncate(count.min(42));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_and_nothing_repeats() {
        let draw = |seed| {
            let mut random = Random::new(Seed([seed; 32]));
            [
                random.letters(8),
                random.letters(24),
                random.u64().to_string(),
                random.u32().to_string(),
            ]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1)[1].len(), 24);
        assert!(!draw(1)[1].starts_with(&draw(1)[0]));
    }
}
