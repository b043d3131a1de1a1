//! Samples of other colours into limited-range BT.601, without leaving Y'CbCr.

use crossdesk_core::media::Color;

use super::color::{ChromaWeight, LumaScale, SUM_BITS, ToBt601};
use super::pack::{NEUTRAL, Output, block_sums, interleave, two_rows};
use super::planes::{Layers, row};
use crate::picture::Planes;

/// `ToBt601` in integers of 16 bits, in which vector units multiply fastest.
struct Fixed {
    luma_scale: LumaScale,
    /// `SUM_BITS` fraction bits.
    luma_offset: i16,
    /// From Cb and from Cr.
    luma_from: [ChromaWeight; 2],
    cb_from: [ChromaWeight; 2],
    cr_from: [ChromaWeight; 2],
}

/// What two products are too small by on average, in steps of sums.
const CUT: i16 = 1;

impl Fixed {
    fn new(way: &ToBt601) -> Self {
        let weight = ChromaWeight::new;
        Self {
            luma_scale: LumaScale::new(way.luma_scale),
            // Half a step so that the final shift rounds.
            luma_offset: ((way.luma_offset + 0.5) * f64::from(1 << SUM_BITS)).round() as i16 + CUT,
            luma_from: [weight(way.luma_from_cb), weight(way.luma_from_cr)],
            cb_from: [weight(way.cb_from_cb), weight(way.cb_from_cr)],
            cr_from: [weight(way.cr_from_cb), weight(way.cr_from_cr)],
        }
    }

    /// Converts one row of chroma sites: what they add to luma, for both columns of each, and their own samples.
    ///
    /// One loop for each result, since a loop with several interleaved ones does not become vector code.
    fn chroma_row(&self, rows: &mut Rows, out: &mut [u8]) {
        const OFFSET: i16 = ((NEUTRAL as i16) << SUM_BITS) + (1 << (SUM_BITS - 1)) + CUT;
        let sample = |sum: i16| (sum.saturating_add(OFFSET) >> SUM_BITS).clamp(0, 255) as u8;
        let samples = [&rows.u[..], &rows.v[..]];
        weigh(self.cb_from, samples, &mut rows.cb, sample);
        weigh(self.cr_from, samples, &mut rows.cr, sample);
        weigh(self.luma_from, samples, &mut rows.sums, |sum| {
            sum + self.luma_offset
        });
        interleave(&rows.cb, &rows.cr, out);
        for (pair, &sum) in rows.to_luma.chunks_exact_mut(2).zip(&rows.sums) {
            pair[0] = sum;
            pair[1] = sum;
        }
    }

    /// Converts one row of luma, every sample with what chroma adds to it.
    fn luma_row(&self, luma: &[u8], from_chroma: &[i16], out: &mut [u8]) {
        for ((out, &luma), &add) in out.iter_mut().zip(luma).zip(from_chroma) {
            *out = ((self.luma_scale.apply(luma) + add) >> SUM_BITS).clamp(0, 255) as u8;
        }
    }
}

/// One row of chroma sites on its way.
struct Rows {
    /// Source chroma without its offset.
    u: Vec<i16>,
    v: Vec<i16>,
    cb: Vec<u8>,
    cr: Vec<u8>,
    /// What each site adds to luma, and the same for each column.
    sums: Vec<i16>,
    to_luma: Vec<i16>,
}

impl Rows {
    fn new(width: usize) -> Self {
        let sites = width / 2;
        Self {
            u: vec![0; sites],
            v: vec![0; sites],
            cb: vec![0; sites],
            cr: vec![0; sites],
            sums: vec![0; sites],
            to_luma: vec![0; width],
        }
    }
}

/// Fills `out` with what `finish` makes of the weighed sum of every pair of chroma samples.
fn weigh<T>(weights: [ChromaWeight; 2], samples: [&[i16]; 2], out: &mut [T], finish: impl Fn(i16) -> T) {
    let [u, v] = samples;
    for ((out, &u), &v) in out.iter_mut().zip(u).zip(v) {
        *out = finish(weights[0].apply(u) + weights[1].apply(v));
    }
}

/// Writes `planes`, whose samples are of another `color`, to `out`.
pub(super) fn convert(planes: &Planes<'_>, color: Color, out: Output<'_>) {
    let Output { width, luma, chroma } = out;
    let way = Fixed::new(&ToBt601::new(color));
    let source = Layers::of(planes).luma;
    let mut rows = Rows::new(width);
    let outs = luma
        .chunks_exact_mut(2 * width)
        .zip(chroma.chunks_exact_mut(width));
    for (i, (luma, chroma)) in outs.enumerate() {
        gather_chroma(planes, i, &mut rows.u, &mut rows.v);
        way.chroma_row(&mut rows, chroma);
        let (upper, lower) = luma.split_at_mut(width);
        way.luma_row(row(&source, 2 * i, width), &rows.to_luma, upper);
        way.luma_row(row(&source, 2 * i + 1, width), &rows.to_luma, lower);
    }
}

/// Row `index` of chroma at the sites of 4:2:0, without its offset; finer chroma is averaged.
fn gather_chroma(planes: &Planes<'_>, index: usize, u_out: &mut [i16], v_out: &mut [i16]) {
    const ZERO: i16 = NEUTRAL as i16;
    let width = u_out.len();
    let single = |sample: &u8| i16::from(*sample) - ZERO;
    match planes {
        Planes::Nv12 { uv, .. } => {
            let pairs = row(uv, index, 2 * width).chunks_exact(2);
            for ((u, v), pair) in u_out.iter_mut().zip(v_out).zip(pairs) {
                *u = single(&pair[0]);
                *v = single(&pair[1]);
            }
        }
        Planes::I420 { u, v, .. } => {
            assign(u_out, row(u, index, width).iter().map(single));
            assign(v_out, row(v, index, width).iter().map(single));
        }
        Planes::I422 { u, v, .. } => {
            let mean = |[a, b]: [&'_ [u8]; 2], out: &mut [i16]| {
                let sums = a.iter().zip(b).map(|(&a, &b)| i16::from(a) + i16::from(b));
                assign(out, sums.map(|sum| ((sum + 1) >> 1) - ZERO));
            };
            mean(two_rows(u, index, width), u_out);
            mean(two_rows(v, index, width), v_out);
        }
        Planes::I444 { u, v, .. } => {
            let mean = |sum: i16| ((sum + 2) >> 2) - ZERO;
            assign(u_out, block_sums(two_rows(u, index, 2 * width)).map(mean));
            assign(v_out, block_sums(two_rows(v, index, 2 * width)).map(mean));
        }
        Planes::Gray { .. } => {
            u_out.fill(0);
            v_out.fill(0);
        }
    }
}

fn assign(out: &mut [i16], values: impl Iterator<Item = i16>) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
}
