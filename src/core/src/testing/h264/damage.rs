//! What networks and disks do to access units.

use crate::h264::nals;
use crate::testing::Seeded;

/// Bytes of a slice left alone by [`Damage::FlipSliceBits`]: NAL header and slice header.
const SLICE_HEADER_BYTES: usize = 12;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// This many bits flipped, anywhere.
    FlipBits(u32),
    /// This many bits flipped inside slice data, so that only the picture suffers.
    FlipSliceBits(u32),
    /// Everything behind a random place is gone.
    Truncate,
}

impl Damage {
    /// A damaged copy of `unit`.
    pub fn apply(self, unit: &[u8], random: &mut Seeded) -> Vec<u8> {
        let mut damaged = unit.to_vec();
        match self {
            Self::FlipBits(count) => (0..count).for_each(|_| flip(&mut damaged, random)),
            Self::FlipSliceBits(count) => {
                for nal in nals(unit).filter(|nal| nal.kind().is_slice()) {
                    let data = nal.range().start + SLICE_HEADER_BYTES..nal.range().end;
                    if let Some(data) = damaged.get_mut(data) {
                        (0..count).for_each(|_| flip(data, random));
                    }
                }
            }
            Self::Truncate => damaged.truncate(random.index(unit.len())),
        }
        damaged
    }
}

fn flip(bytes: &mut [u8], random: &mut Seeded) {
    let at = random.index(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_damage_spares_everything_in_front() {
        let mut unit = vec![0, 0, 1, 0x67, 1, 2, 3, 0, 0, 1, 0x65];
        unit.extend([0xaa; 64]);
        let damaged = Damage::FlipSliceBits(9).apply(&unit, &mut Seeded::new(3));
        assert_eq!(damaged[..22], unit[..22]);
        assert_ne!(damaged, unit);
    }

    #[test]
    fn truncation_shortens_and_empty_units_stay_empty() {
        let unit = [1, 2, 3];
        assert!(Damage::Truncate.apply(&unit, &mut Seeded::new(1)).len() < 3);
        for damage in [Damage::FlipBits(3), Damage::FlipSliceBits(3), Damage::Truncate] {
            assert!(damage.apply(&[], &mut Seeded::new(1)).is_empty());
        }
    }
}
