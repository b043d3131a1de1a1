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

/// A sample of each of sixteen rows, in 256ths of a step.
type Column = [u16; ROWS];

/// Sixteen rows of a strip, in 256ths of a step.
type Tile = [[u16; STRIP]; ROWS];

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
        let mut tile = [[0; STRIP]; ROWS];
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
                sum_down(&self.down, i, source, &mut line[..columns.len()]);
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

/// Row `index` of the result, before columns are summed, from rows of the plane.
fn sum_down<'a>(taps: &Taps, index: usize, row: impl Fn(usize) -> &'a [u8], out: &mut [u16]) {
    let (start, weights) = taps.of(index);
    let start = taps.first() + start;
    if taps.count() == 1 {
        out.iter_mut()
            .zip(row(start))
            .for_each(|(out, &sample)| *out = fine(sample));
    } else if taps.extra() > 0 {
        let mut sums = [taps.cut(); STRIP];
        for (y, &weight) in (start..).zip(weights) {
            for (sum, &sample) in sums.iter_mut().zip(row(y)) {
                *sum += u32::from(weigh(fine(sample), weight));
            }
        }
        out.iter_mut()
            .zip(sums)
            .for_each(|(out, sum)| *out = (sum >> taps.extra()) as u16);
    } else {
        out.fill(taps.cut() as u16);
        for (y, weights) in (start..).step_by(4).zip(weights.chunks(4)) {
            match *weights {
                [a] => add_rows([row(y)], [a], out),
                [a, b] => add_rows([row(y), row(y + 1)], [a, b], out),
                [a, b, c] => add_rows([row(y), row(y + 1), row(y + 2)], [a, b, c], out),
                [a, b, c, d] => add_rows([row(y), row(y + 1), row(y + 2), row(y + 3)], [a, b, c, d], out),
                _ => {}
            }
        }
    }
}

/// Adds weighted rows; few at a time, so that all weights stay in registers.
fn add_rows<const COUNT: usize>(rows: [&[u8]; COUNT], weights: [u16; COUNT], out: &mut [u16]) {
    const LANES: usize = 16;
    let rows = rows.map(|row| row[..out.len()].as_chunks::<LANES>());
    let (chunks, rest) = out.as_chunks_mut::<LANES>();
    for (i, out) in chunks.iter_mut().enumerate() {
        let mut sums = *out;
        for ((chunks, _), weight) in rows.iter().zip(weights) {
            let row = chunks[i].map(fine);
            sums = std::array::from_fn(|lane| sums[lane].wrapping_add(weigh(row[lane], weight)));
        }
        *out = sums;
    }
    for ((_, row), weight) in rows.iter().zip(weights) {
        for (out, &sample) in rest.iter_mut().zip(*row) {
            *out = out.wrapping_add(weigh(fine(sample), weight));
        }
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

fn turn_to_columns(tile: &Tile, columns: &mut [Column]) {
    for (x, column) in columns.iter_mut().enumerate().take(STRIP) {
        for (value, line) in column.iter_mut().zip(tile) {
            *value = line[x];
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
