//! Embedded clips with the digest of the pictures they decode to, as another decoder shows them.
//!
//! Encoded with x264 from the recorded desktop of `tests/data`, no B-frames, one IDR each (two in `resize`,
//! which is Baseline because a decoder that keeps a picture back loses it when the size changes).

/// A short stream and what must come out of it.
pub(super) struct Clip {
    /// What it is about, in words that fit after "wrong pixels in the".
    pub name: &'static str,
    /// Annex B.
    pub stream: &'static [u8],
    /// [`digest`] over the visible samples of all pictures, in canonical order.
    pub digest: u64,
}

/// The clips every decoder must show right, smallest first.
pub(super) const CLIPS: [Clip; 5] = [
    Clip {
        name: "Baseline clip",
        stream: include_bytes!("clips/baseline.h264"),
        digest: 0xafc1_d3c6_cffe_5876,
    },
    Clip {
        name: "High profile clip with 8x8 transforms",
        stream: include_bytes!("clips/high8x8.h264"),
        digest: 0x2392_935d_69d4_7916,
    },
    Clip {
        name: "BT.709 full-range clip",
        stream: include_bytes!("clips/bt709full.h264"),
        digest: 0x9757_ba36_143a_93ba,
    },
    Clip {
        name: "clip that changes its size",
        stream: include_bytes!("clips/resize.h264"),
        digest: 0xa7ba_6973_3af8_89da,
    },
    Clip {
        name: "1080p clip cut from 1088 rows",
        stream: CROP_1080,
        digest: 0xfdc1_98a2_83ad_5777,
    },
];

/// 1920x1080, 12 pictures; also the measure of speed.
pub(super) const CROP_1080: &[u8] = include_bytes!("clips/crop1080.h264");

/// 3840x2160, 8 pictures; measured only.
pub(super) const PICTURE_4K: &[u8] = include_bytes!("clips/picture4k.h264");

/// Where [`digest`] starts (FNV-1a, 64 bits).
pub(super) const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds one picture's samples to a digest: FNV-1a over words of eight bytes, then over what is left. It tells
/// pictures apart that differ by accident, which is all that is asked of it.
pub(super) fn digest(before: u64, samples: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let (words, rest) = samples.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    words
        .chain(rest)
        .fold(before, |digest, value| (digest ^ value).wrapping_mul(PRIME))
}
