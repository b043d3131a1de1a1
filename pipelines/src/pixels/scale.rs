//! Scaling of eight-bit planes with a Hamming filter, in 16-bit fixed point.
//!
//! Sixteen rows of the result are made at a time: source rows are summed down to sixteen, those are turned to
//! columns of sixteen samples, columns are summed across, and eight results at a time are turned back to rows. Every
//! loop is over neighbours in memory, so it becomes vector code at the baseline of x86-64.

use crossdesk_core::units::PixelSize;

use super::planes::row;
use crate::picture::Plane;

mod taps;

use self::taps::{Hamming, Taps};

/// Rows of the result made at a time.
const ROWS: usize = 16;

/// Bytes of a row summed at a time, so that sixteen such rows stay in the nearest cache.
const STRIP: usize = 512;

/// Columns turned back to rows at a time: as many as a word has bytes.
const GROUP: usize = 8;

/// Rows summed at a time: few enough for the sums to stay in registers.
const TAPS: usize = 6;

/// Pairs of samples summed at a time where rows are many: few enough for the compiler to unroll the loop over them.
const SHORT: usize = 8;

/// The same where rows are few: too many for it to mix up what lies in neighbouring blocks instead.
const LONG: usize = 16;

/// Rows turned to columns at a time: as many as the compiler makes shuffles for.
const QUARTER: usize = 4;

/// A sample of each of sixteen rows, in 256ths of a step.
type Column = [u16; ROWS];

/// A row of a strip in 256ths of a step, first the samples at even places and then those at odd ones: two neighbours
/// in a word come apart with a shift and a mask.
type Line = [[u16; STRIP / 2]; 2];

/// Sixteen rows of a strip.
type Tile = [Line; ROWS];

/// The part of a plane to scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// It has every sample that `crop` touches.
    pub plane: Plane<'a>,
    /// Whether two kinds of samples alternate in it.
    pub paired: bool,
    /// Left, top, width and height in samples of each kind; edges may lie within a sample.
    pub crop: [f64; 4],
}

/// Scales and keeps its working memory.
#[derive(Default)]
pub(super) struct Scaler {
    filter: Hamming,
    down: Taps,
    across: Taps,
    columns: Vec<Column>,
}

impl Scaler {
    /// Scales `part` to `size` without padding in `out`, within a step of exact arithmetic.
    ///
    /// Only samples that the part touches count, so nothing from beyond its edges shows.
    pub fn scale(&mut self, part: &Part<'_>, size: PixelSize, out: &mut Vec<u8>) {
        let [left, top, width, height] = part.crop;
        let (columns, rows) = (size.width as usize, size.height as usize);
        self.across.set(&self.filter, [left, width], columns);
        self.down.set(&self.filter, [top, height], rows);
        let kinds = if part.paired { 2 } else { 1 };
        let line = columns * kinds;
        out.resize(line * rows, 0);
        self.columns.resize(self.across.samples() * kinds, [0; ROWS]);
        let mut tile = [[[0; STRIP / 2]; 2]; ROWS];
        for (i, out) in out.chunks_mut((line * ROWS).max(1)).enumerate() {
            let outputs = i * ROWS..rows.min((i + 1) * ROWS);
            self.sum_rows(part, outputs, kinds, &mut tile);
            if part.paired {
                self.sum_columns::<2>(line, out);
            } else {
                self.sum_columns::<1>(line, out);
            }
        }
    }

    /// Fills `columns` for the given rows of the result.
    fn sum_rows(&mut self, part: &Part<'_>, rows: std::ops::Range<usize>, kinds: usize, tile: &mut Tile) {
        let mut start = self.across.first() * kinds;
        for columns in self.columns.chunks_mut(STRIP) {
            let end = start + columns.len();
            for (i, line) in rows.clone().zip(&mut *tile) {
                let source = |y| &row(&part.plane, y, end)[start..];
                sum_down(&self.down, i, source, columns.len(), line);
            }
            turn_to_columns(tile, columns);
            start = end;
        }
    }

    /// Makes rows of `line` bytes from `columns`, in which `KINDS` kinds of samples alternate.
    fn sum_columns<const KINDS: usize>(&self, line: usize, out: &mut [u8]) {
        match self.across.count() {
            1 => self.across_by::<KINDS, 1>(line, out),
            2 => self.across_by::<KINDS, 2>(line, out),
            3 => self.across_by::<KINDS, 3>(line, out),
            4 => self.across_by::<KINDS, 4>(line, out),
            5 => self.across_by::<KINDS, 5>(line, out),
            6 => self.across_by::<KINDS, 6>(line, out),
            _ => self.across_by::<KINDS, 0>(line, out),
        }
    }

    /// The same for `COUNT` taps, or for any number of them where that is zero.
    fn across_by<const KINDS: usize, const COUNT: usize>(&self, line: usize, out: &mut [u8]) {
        let mut group = [[0; ROWS]; GROUP];
        for x in (0..line).step_by(GROUP) {
            for (byte, result) in (x..line).zip(&mut group) {
                let (start, weights) = self.across.of(byte / KINDS);
                let columns = &self.columns[start * KINDS + byte % KINDS..];
                let sums = match weights.first_chunk::<COUNT>() {
                    _ if COUNT == 1 => columns[0],
                    Some(weights) if COUNT > 0 => {
                        sum_across::<KINDS>(columns, weights, self.across.cut() as u16)
                    }
                    _ if self.across.extra() == 0 => {
                        sum_across::<KINDS>(columns, weights, self.across.cut() as u16)
                    }
                    _ => sum_many_across::<KINDS>(columns, weights, &self.across),
                };
                *result = sums.map(|sum| (sum >> 8) as u8);
            }
            let words = turn_to_rows(&group);
            for (row, word) in out.chunks_exact_mut(line).zip(words) {
                let row = &mut row[x..];
                if let Some(eight) = row.first_chunk_mut() {
                    *eight = word.to_le_bytes();
                } else {
                    row.copy_from_slice(&word.to_le_bytes()[..row.len()]);
                }
            }
        }
    }
}

/// `sample` in 256ths of a step. The middle of the step, so that the result is rounded by cutting it off.
fn fine(sample: u8) -> u16 {
    u16::from(sample) << 8 | 0x80
}

/// `value` times a weight of which 65536 is one.
fn weigh(value: u16, weight: u16) -> u16 {
    ((u32::from(value) * u32::from(weight)) >> 16) as u16
}

/// The first `length` samples of row `index` of the result, before columns are summed, from rows of the plane.
fn sum_down<'a>(taps: &Taps, index: usize, row: impl Fn(usize) -> &'a [u8], length: usize, out: &mut Line) {
    let (start, weights) = taps.of(index);
    let start = taps.first() + start;
    if taps.extra() > 0 {
        let mut sums = [taps.cut(); STRIP];
        for (y, &weight) in (start..).zip(weights) {
            for (sum, &sample) in sums.iter_mut().zip(row(y)) {
                *sum += u32::from(weigh(fine(sample), weight));
            }
        }
        for (i, sum) in sums[..length].iter().enumerate() {
            out[i % 2][i / 2] = (sum >> taps.extra()) as u16;
        }
        return;
    }
    // All weights together are one, so half a step can be added once instead of to each sample.
    let begin = taps.cut() as u16 + fine(0);
    out.iter_mut()
        .for_each(|half| half[..length.div_ceil(2)].fill(begin));
    for (y, weights) in (start..).step_by(TAPS).zip(weights.chunks(TAPS)) {
        let row = |i| &row(y + i)[..length];
        match weights.len() {
            1 => add_rows::<1, LONG>(row, weights, out),
            2 => add_rows::<2, LONG>(row, weights, out),
            3 => add_rows::<3, LONG>(row, weights, out),
            4 => add_rows::<4, SHORT>(row, weights, out),
            5 => add_rows::<5, SHORT>(row, weights, out),
            _ => add_rows::<TAPS, SHORT>(row, weights, out),
        }
    }
}

/// Adds `COUNT` weighted rows of one length in blocks of `LANES` pairs of samples.
fn add_rows<'a, const COUNT: usize, const LANES: usize>(
    row: impl Fn(usize) -> &'a [u8],
    weights: &[u16],
    [even, odd]: &mut Line,
) {
    let rows: [&[u8]; COUNT] = std::array::from_fn(row);
    let weights: [u16; COUNT] = std::array::from_fn(|i| weights[i]);
    let rows = rows.map(|row| row.as_chunks::<2>());
    let (whole, _) = rows[0].0.as_chunks::<LANES>();
    let blocks = rows.map(|(pairs, _)| &pairs.as_chunks().0[..whole.len()]);
    add_blocks::<COUNT, LANES>(
        blocks,
        &weights.map(|weight| [weight; LANES]),
        even.as_chunks_mut().0,
        odd.as_chunks_mut().0,
    );
    let done = whole.len() * LANES;
    for ((pairs, last), weight) in rows.into_iter().zip(weights) {
        let add = |sum: &mut u16, sample: u8| *sum = sum.wrapping_add(weigh(u16::from(sample) << 8, weight));
        for ((pair, even), odd) in pairs[done..].iter().zip(&mut even[done..]).zip(&mut odd[done..]) {
            add(even, pair[0]);
            add(odd, pair[1]);
        }
        if let [last] = *last {
            add(&mut even[pairs.len()], last);
        }
    }
}

/// The same for whole blocks. Not inlined, so that the compiler takes vectors of equal weights
/// as they are: it would keep them in a form that costs two instructions wherever one is used.
#[inline(never)]
fn add_blocks<const COUNT: usize, const LANES: usize>(
    rows: [&[[[u8; 2]; LANES]]; COUNT],
    weights: &[[u16; LANES]; COUNT],
    even: &mut [[u16; LANES]],
    odd: &mut [[u16; LANES]],
) {
    let count = rows[0].len();
    let rows = rows.map(|row| &row[..count]);
    for (i, (even, odd)) in even[..count].iter_mut().zip(&mut odd[..count]).enumerate() {
        let (mut evens, mut odds) = (*even, *odd);
        for (row, weights) in rows.iter().zip(weights) {
            let pairs = row[i].map(u16::from_le_bytes);
            evens = std::array::from_fn(|i| evens[i].wrapping_add(weigh(pairs[i] << 8, weights[i])));
            odds = std::array::from_fn(|i| odds[i].wrapping_add(weigh(pairs[i] & 0xFF00, weights[i])));
        }
        (*even, *odd) = (evens, odds);
    }
}

/// Every `KINDS`th of `columns`, weighted and added up.
fn sum_across<const KINDS: usize>(columns: &[Column], weights: &[u16], cut: u16) -> Column {
    let mut sums = [cut; ROWS];
    for (column, &weight) in columns.iter().step_by(KINDS).zip(weights) {
        for (sum, &value) in sums.iter_mut().zip(column) {
            *sum = sum.wrapping_add(weigh(value, weight));
        }
    }
    sums
}

/// The same where weights have more bits.
fn sum_many_across<const KINDS: usize>(columns: &[Column], weights: &[u16], taps: &Taps) -> Column {
    let mut sums = [taps.cut(); ROWS];
    for (column, &weight) in columns.iter().step_by(KINDS).zip(weights) {
        for (sum, &value) in sums.iter_mut().zip(column) {
            *sum += u32::from(weigh(value, weight));
        }
    }
    sums.map(|sum| (sum >> taps.extra()) as u16)
}

/// The halves of each row one after the other, because a loop over all of one becomes vector code.
fn turn_to_columns(tile: &Tile, columns: &mut [Column]) {
    let mut quarters = [[[0; QUARTER]; STRIP / 2]; ROWS / QUARTER];
    let length = columns.len().div_ceil(2);
    for place in 0..2 {
        for (quarter, lines) in quarters.iter_mut().zip(tile.as_chunks::<QUARTER>().0) {
            let [a, b, c, d] = lines.each_ref().map(|line| &line[place][..length]);
            for ((((out, &a), &b), &c), &d) in quarter.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *out = [a, b, c, d];
            }
        }
        let [a, b, c, d] = &quarters;
        let columns = columns.iter_mut().skip(place).step_by(2);
        for ((((column, a), b), c), d) in columns.zip(a).zip(b).zip(c).zip(d) {
            for (part, quarter) in column.as_chunks_mut().0.iter_mut().zip([a, b, c, d]) {
                *part = *quarter;
            }
        }
    }
}

/// Words of eight neighbours in a row, the leftmost in the lowest byte. Widths double step by step, because that is
/// what vector units can interleave.
fn turn_to_rows(columns: &[[u8; ROWS]; GROUP]) -> [u64; ROWS] {
    let [a, b, c, d, e, f, g, h] = columns;
    let two = |a: &[u8; ROWS], b: &[u8; ROWS]| -> [u16; ROWS] {
        std::array::from_fn(|i| u16::from(a[i]) | u16::from(b[i]) << 8)
    };
    let four = |a: [u16; ROWS], b: [u16; ROWS]| -> [u32; ROWS] {
        std::array::from_fn(|i| u32::from(a[i]) | u32::from(b[i]) << 16)
    };
    let (left, right) = (four(two(a, b), two(c, d)), four(two(e, f), two(g, h)));
    std::array::from_fn(|i| u64::from(left[i]) | u64::from(right[i]) << 32)
}

#[cfg(test)]
mod tests;
