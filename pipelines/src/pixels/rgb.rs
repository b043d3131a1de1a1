//! Whole pictures from Y'CbCr to R'G'B', row by row.
//!
//! Each sample is within 0.6 steps of the exact value. What chroma adds to red, green and blue is
//! computed once per chroma sample; a pixel then costs one multiplication and three additions in 16 bits, in loops
//! that become vector code at the baseline of x86-64.

use crossdesk_core::media::Color;

use super::color::{ChromaWeight, SUM_BITS, ToRgb};
use super::planes::{ChromaPlanes, Layers, row};

/// Bytes of one pixel.
pub(super) const RGB: usize = 3;

/// What two products are too small by on average, in steps of sums.
const CUT: i16 = 1;

/// Where the wanted pixels lie in the planes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// Converts and keeps its working memory, a few rows.
#[derive(Default)]
pub(super) struct RgbRows {
    cb: Vec<i16>,
    cr: Vec<i16>,
    /// What each chroma sample adds to one of red, green and blue.
    sums: Vec<i16>,
    /// What chroma adds to red, green and blue of every pixel of a row.
    add: [Vec<i16>; 3],
    channels: [Vec<u8>; 3],
    pairs: Pairs,
}

impl RgbRows {
    /// Converts the pixels of `area` to tight rows of red, green and blue in `out`.
    ///
    /// The planes cover the area; it may start and end anywhere, and each pixel takes the chroma sample it lies in.
    pub fn convert(&mut self, layers: &Layers<'_>, color: Color, area: Area, out: &mut Vec<u8>) {
        out.resize(area.width * area.height * RGB, 0);
        // Pixels are written in pairs; the last may lack its second.
        let even = area.width.next_multiple_of(2);
        self.channels.iter_mut().for_each(|row| row.resize(even, 0));
        self.add.iter_mut().for_each(|add| add.resize(area.width, 0));
        let way = Fixed::new(&ToRgb::new(color));
        if let ChromaPlanes::None = layers.chroma {
            self.add.iter_mut().for_each(|add| add.fill(way.offset));
        }
        let step_y = layers.step.1 as usize;
        let mut chroma_row = None;
        for (i, out) in out.chunks_exact_mut(area.width * RGB).enumerate() {
            let y = area.y + i;
            if chroma_row != Some(y / step_y) {
                chroma_row = Some(y / step_y);
                self.prepare_chroma(layers, &way, y / step_y, area);
            }
            let luma = &row(&layers.luma, y, area.x + area.width)[area.x..];
            for (add, channel) in self.add.iter().zip(&mut self.channels) {
                way.channel(luma, add, channel);
            }
            self.pairs.write(&self.channels, out);
        }
    }

    /// Fills `add` for one row of chroma samples.
    fn prepare_chroma(&mut self, layers: &Layers<'_>, way: &Fixed, chroma_row: usize, area: Area) {
        let step = layers.step.0 as usize;
        let (first, end) = (area.x / step, (area.x + area.width).div_ceil(step));
        let count = end - first;
        self.cb.resize(count, 0);
        self.cr.resize(count, 0);
        let centred = |sample: u8| i16::from(sample) - 128;
        match &layers.chroma {
            ChromaPlanes::None => return,
            ChromaPlanes::Pair(uv) => {
                let (pairs, _) = row(uv, chroma_row, 2 * end)[2 * first..].as_chunks::<2>();
                self.cb
                    .iter_mut()
                    .zip(pairs)
                    .for_each(|(out, pair)| *out = centred(pair[0]));
                self.cr
                    .iter_mut()
                    .zip(pairs)
                    .for_each(|(out, pair)| *out = centred(pair[1]));
            }
            ChromaPlanes::Split(u, v) => {
                for (plane, out) in [(u, &mut self.cb), (v, &mut self.cr)] {
                    let samples = &row(plane, chroma_row, end)[first..];
                    out.iter_mut()
                        .zip(samples)
                        .for_each(|(out, &sample)| *out = centred(sample));
                }
            }
        }
        self.sums.resize(count, 0);
        for (add, weights) in self.add.iter_mut().zip(way.chroma) {
            let sums = if step == 1 { &mut *add } else { &mut self.sums };
            add_chroma(&self.cb, &self.cr, weights, sums);
            sums.iter_mut()
                .for_each(|sum| *sum = sum.saturating_add(way.offset));
            if step == 2 {
                spread(&self.sums, area.x % 2, add);
            }
        }
    }
}

/// What each pair of chroma samples adds to one of red, green and blue.
fn add_chroma(cb: &[i16], cr: &[i16], weights: (ChromaWeight, ChromaWeight), out: &mut [i16]) {
    for ((out, &cb), &cr) in out.iter_mut().zip(cb).zip(cr) {
        *out = weights.0.apply(cb) + weights.1.apply(cr);
    }
}

/// Writes every sum to the two pixels of its chroma sample; the first has one when the area starts in its middle,
/// and the last may have one.
fn spread(sums: &[i16], skip: usize, out: &mut [i16]) {
    let (first, sums) = sums.split_at(skip);
    let (head, out) = out.split_at_mut(skip);
    head.copy_from_slice(first);
    let (pairs, last) = out.as_chunks_mut::<2>();
    for (pair, &sum) in pairs.iter_mut().zip(sums) {
        *pair = [sum; 2];
    }
    last.fill(sums.last().copied().unwrap_or_default());
}

/// `ToRgb` in integers of 16 bits.
struct Fixed {
    luma_scale: u16,
    /// What black luma takes off, plus half a step for rounding.
    offset: i16,
    /// For red, green and blue: from Cb and from Cr.
    chroma: [(ChromaWeight, ChromaWeight); 3],
}

impl Fixed {
    fn new(way: &ToRgb) -> Self {
        let weight = |v: f32| ChromaWeight::new(f64::from(v));
        let chroma = [0, 1, 2].map(|i| (weight(way.from_cb[i]), weight(way.from_cr[i])));
        let offset = 0.5 - (way.luma_zero + 0.5) * way.luma_scale;
        Self {
            luma_scale: (way.luma_scale * f32::from(1_u16 << (SUM_BITS + 8))).round() as u16,
            offset: (offset * f32::from(1_u8 << SUM_BITS)).round() as i16 + CUT,
            chroma,
        }
    }

    /// One of red, green and blue of a row: luma and what chroma adds to it.
    fn channel(&self, luma: &[u8], add: &[i16], out: &mut [u8]) {
        for ((out, &luma), &add) in out.iter_mut().zip(luma).zip(add) {
            *out = (self.scaled(luma).saturating_add(add) >> SUM_BITS).clamp(0, 255) as u8;
        }
    }

    /// `luma` in steps of sums, too large by what half a step makes.
    fn scaled(&self, luma: u8) -> i16 {
        // The lower byte keeps this a product of 16 bits whose upper half is wanted, which vector units have.
        let fine = u16::from(luma) << 8 | 0x80;
        ((u32::from(fine) * u32::from(self.luma_scale)) >> 16) as i16
    }
}

/// The six bytes of each pair of pixels of a row, in words of 16 and 32 bits. A loop for each width: vector units
/// are half as fast where a loop has both.
#[derive(Default)]
struct Pairs {
    words: [Vec<u16>; 3],
    /// The first two words in one.
    low: Vec<u32>,
}

impl Pairs {
    /// Interleaves red, green and blue in `out`, which may end within a pair.
    fn write(&mut self, channels: &[Vec<u8>; 3], out: &mut [u8]) {
        let [red, green, blue] = channels.each_ref().map(|row| row.as_chunks::<2>().0);
        self.words.iter_mut().for_each(|words| words.resize(red.len(), 0));
        self.low.resize(red.len(), 0);
        let [first, second, third] = &mut self.words;
        join(red, green, first, |red, green| red & 0xFF | green << 8);
        join(blue, red, second, |blue, red| blue & 0xFF | red & 0xFF00);
        join(green, blue, third, |green, blue| green >> 8 | blue & 0xFF00);
        for ((low, &first), &second) in self.low.iter_mut().zip(&*first).zip(&*second) {
            *low = u32::from(first) | u32::from(second) << 16;
        }
        let (outs, rest) = out.as_chunks_mut::<{ 2 * RGB }>();
        for ((out, low), third) in outs.iter_mut().zip(&self.low).zip(&*third) {
            out[..4].copy_from_slice(&low.to_le_bytes());
            out[4..].copy_from_slice(&third.to_le_bytes());
        }
        if let (Some(low), false) = (self.low.last(), rest.is_empty()) {
            rest.copy_from_slice(&low.to_le_bytes()[..RGB]);
        }
    }
}

/// A word for each pair of pixels from two channels of it, of which the left pixel is in the lower byte.
fn join(a: &[[u8; 2]], b: &[[u8; 2]], out: &mut [u16], word: impl Fn(u16, u16) -> u16) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = word(u16::from_le_bytes(a), u16::from_le_bytes(b));
    }
}
