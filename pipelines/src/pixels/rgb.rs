//! Whole pictures from Y'CbCr to R'G'B', row by row.
//!
//! Each sample is within 0.6 steps of the exact value. What chroma adds to red, green and blue is
//! computed once per chroma sample; a pixel then costs one multiplication and three additions in 16 bits, in loops
//! that become vector code at the baseline of x86-64.

use crossdesk_core::media::Color;

use super::color::{ChromaWeight, LumaScale, SUM_BITS, ToRgb};
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
    /// What chroma adds to red, green and blue of every pixel of a row.
    add: [Vec<i16>; 3],
    channels: [Vec<u8>; 3],
    pixels: Vec<u32>,
}

impl RgbRows {
    /// Converts the pixels of `area` to tight rows of red, green and blue in `out`.
    ///
    /// The planes cover the area; it may start and end anywhere, and each pixel takes the chroma sample it lies in.
    pub fn convert(&mut self, layers: &Layers<'_>, color: Color, area: Area, out: &mut Vec<u8>) {
        out.resize(area.width * area.height * RGB, 0);
        self.pixels.resize(area.width, 0);
        self.channels.iter_mut().for_each(|row| row.resize(area.width, 0));
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
            join(&self.channels, &mut self.pixels);
            pack_pixels(&self.pixels, out);
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
                let pairs = row(uv, chroma_row, 2 * end)[2 * first..].chunks_exact(2);
                for ((cb, cr), pair) in self.cb.iter_mut().zip(&mut self.cr).zip(pairs) {
                    *cb = centred(pair[0]);
                    *cr = centred(pair[1]);
                }
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
        for (add, (from_cb, from_cr)) in self.add.iter_mut().zip(way.chroma) {
            let samples = self.cb.iter().zip(&self.cr);
            let sums =
                samples.map(|(&cb, &cr)| (from_cb.apply(cb) + from_cr.apply(cr)).saturating_add(way.offset));
            if step == 1 {
                add.iter_mut().zip(sums).for_each(|(add, sum)| *add = sum);
            } else {
                spread(sums, area.x % 2, add);
            }
        }
    }
}

/// Writes every sum to the two pixels of its chroma sample; the first has one when the area starts in its middle.
fn spread(mut sums: impl Iterator<Item = i16>, skip: usize, out: &mut [i16]) {
    let (head, rest) = out.split_at_mut(skip);
    if let [first] = head {
        *first = sums.next().unwrap_or_default();
    }
    let mut pairs = rest.chunks_exact_mut(2);
    // By reference, so that the sum of an odd last pixel is still there afterwards.
    for (pair, sum) in pairs.by_ref().zip(sums.by_ref()) {
        pair[0] = sum;
        pair[1] = sum;
    }
    if let [last] = pairs.into_remainder() {
        *last = sums.next().unwrap_or_default();
    }
}

/// `ToRgb` in integers of 16 bits.
struct Fixed {
    luma: LumaScale,
    /// What black luma takes off, plus half a step for rounding.
    offset: i16,
    /// For red, green and blue: from Cb and from Cr.
    chroma: [(ChromaWeight, ChromaWeight); 3],
}

impl Fixed {
    fn new(way: &ToRgb) -> Self {
        let weight = |v: f32| ChromaWeight::new(f64::from(v));
        let chroma = [0, 1, 2].map(|i| (weight(way.from_cb[i]), weight(way.from_cr[i])));
        let offset = 0.5 - way.luma_zero * way.luma_scale;
        Self {
            luma: LumaScale::new(f64::from(way.luma_scale)),
            offset: (offset * f32::from(1_u8 << SUM_BITS)).round() as i16 + CUT,
            chroma,
        }
    }

    /// One of red, green and blue of a row: luma and what chroma adds to it.
    fn channel(&self, luma: &[u8], add: &[i16], out: &mut [u8]) {
        for ((out, &luma), &add) in out.iter_mut().zip(luma).zip(add) {
            *out = (self.luma.apply(luma).saturating_add(add) >> SUM_BITS).clamp(0, 255) as u8;
        }
    }
}

/// Joins red, green and blue to words with red in the lowest byte.
fn join(channels: &[Vec<u8>; 3], out: &mut [u32]) {
    let [red, green, blue] = channels;
    for ((out, &red), (&green, &blue)) in out.iter_mut().zip(red).zip(green.iter().zip(blue)) {
        *out = u32::from(u16::from(red) | u16::from(green) << 8) | u32::from(blue) << 16;
    }
}

/// Drops the empty byte of every pixel: four words become three.
fn pack_pixels(pixels: &[u32], out: &mut [u8]) {
    let mut groups = pixels.chunks_exact(4);
    let mut outs = out.chunks_exact_mut(4 * RGB);
    for (pixels, out) in groups.by_ref().zip(outs.by_ref()) {
        let [a, b, c, d] = [pixels[0], pixels[1], pixels[2], pixels[3]];
        out[..4].copy_from_slice(&(a | b << 24).to_le_bytes());
        out[4..8].copy_from_slice(&(b >> 8 | c << 16).to_le_bytes());
        out[8..].copy_from_slice(&(c >> 16 | d << 8).to_le_bytes());
    }
    for (pixel, out) in groups
        .remainder()
        .iter()
        .zip(outs.into_remainder().chunks_exact_mut(RGB))
    {
        out.copy_from_slice(&pixel.to_le_bytes()[..RGB]);
    }
}
