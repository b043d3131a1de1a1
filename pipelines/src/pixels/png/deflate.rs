//! Deflate for filtered rows of a picture: one block whose Huffman code is made for the picture, in which runs of
//! zeros are the only matches.
//!
//! What stayed the same from a row to the next is zeros, so nothing else is worth a search. Bytes are read eight at a
//! time: branches on single bytes, which no processor foretells, would take longer than the rest. The format is RFC
//! 1951 within RFC 1950.

use super::super::rgb::RGB;
use super::huffman::{self, Symbol};

/// Bytes read at a time.
const WORD: usize = 8;

/// Words of zeros in one match at most; deflate's longest has 258 bytes.
const RUN: usize = 32;

/// One of so many rows is counted to make the code; more of them make files hardly smaller.
const COUNTED: usize = 16;

/// How much more than one that is not counted a counted symbol weighs. Less makes files larger that have few kinds of
/// symbols, more those of which few rows are counted.
const SURE: u32 = 4;

/// Literals, the end of the block, and lengths of matches.
const SYMBOLS: usize = 286;

/// The symbol that ends a block.
const END: usize = 256;

/// The head of a zlib stream: deflate with a window of 32 KiB, made fast.
const HEADER: [u8; 2] = [0x78, 0x01];

/// Bits of the longest code: four of them, and seven bits that wait for the rest of their byte, fit into a `u64`.
const LONGEST: u32 = 14;

/// The bits of a symbol or of several in a row, the first of them lowest, and how many they are.
type Run = (u64, u32);

/// Compresses and keeps its working memory.
#[derive(Default)]
pub(super) struct Deflater {
    row: Vec<u8>,
    bits: Bits,
}

impl Deflater {
    /// The zlib stream of tight rows of `line` bytes, each with the filter that is the fastest for it.
    ///
    /// What does not compress can come out longer than the rows, by three quarters and the code at most.
    pub fn compress(&mut self, rows: &[u8], line: usize) -> &[u8] {
        let count = rows.len() / line;
        self.row.resize(line + 1, 0);
        let mut counts = Counts::default();
        for y in counted(count) {
            filter(rows, line, y, &mut self.row);
            read(&self.row, &mut counts);
        }
        let codes = Codes::new(&counts);
        self.bits.start(HEADER);
        codes.describe(&mut self.bits);
        let mut sum = simd_adler32::Adler32::new();
        for y in 0..count {
            filter(rows, line, y, &mut self.row);
            sum.write(&self.row);
            // A byte takes fewer than two.
            self.bits.reserve(2 * self.row.len());
            let mut writer = Writer {
                codes: &codes,
                bits: &mut self.bits,
            };
            read(&self.row, &mut writer);
        }
        self.bits.reserve(WORD);
        self.bits.put(codes.end);
        self.bits.finish(&sum.finish().to_be_bytes())
    }
}

/// The rows to count: one in each block of `COUNTED`, never far from the same number at every height of a line of text,
/// whatever the distance of lines.
fn counted(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows.div_ceil(COUNTED)).map(move |i| (i * COUNTED + (i + 1) * 11 % COUNTED).min(rows - 1))
}

/// Row `y` as its filter's number and what the filter leaves: differences from the row above, or in the first row from
/// the pixel to the left.
fn filter(rows: &[u8], line: usize, y: usize, out: &mut [u8]) {
    const SUB: u8 = 1;
    const UP: u8 = 2;
    let row = &rows[y * line..][..line];
    let (filter, out) = out.split_first_mut().expect("room for the filter's number");
    let other = if y == 0 {
        *filter = SUB;
        out[..RGB].copy_from_slice(&row[..RGB]);
        &row[..line - RGB]
    } else {
        *filter = UP;
        &rows[(y - 1) * line..][..line]
    };
    let start = line - other.len();
    for ((out, &sample), &other) in out[start..].iter_mut().zip(&row[start..]).zip(other) {
        *out = sample.wrapping_sub(other);
    }
}

/// Takes what a filtered row is taken apart to.
trait Sink {
    fn byte(&mut self, byte: u8);
    fn word(&mut self, word: [u8; WORD]);
    /// From 1 to `RUN` words of zeros.
    fn zeros(&mut self, words: usize);
}

/// Takes a filtered row apart.
fn read(row: &[u8], sink: &mut impl Sink) {
    let (words, rest) = row.as_chunks::<WORD>();
    let mut zeros = 0;
    for &word in words {
        if word == [0; WORD] {
            zeros += 1;
            continue;
        }
        read_zeros(zeros, sink);
        zeros = 0;
        sink.word(word);
    }
    read_zeros(zeros, sink);
    for &byte in rest {
        sink.byte(byte);
    }
}

fn read_zeros(mut words: usize, sink: &mut impl Sink) {
    while words > 0 {
        let run = words.min(RUN);
        sink.zeros(run);
        words -= run;
    }
}

/// The length of the match that follows the first zero of a run: its symbol, and its extra bits.
fn length_of(words: usize) -> (usize, Symbol) {
    let from_shortest = words * WORD - 1 - 3;
    // From the ninth on, four symbols share each number of extra bits.
    let count = from_shortest.ilog2().saturating_sub(2);
    let symbol = END + 1 + 4 * count as usize + (from_shortest >> count);
    let bits = (from_shortest & ((1 << count) - 1)) as u32;
    (symbol, Symbol { bits, count })
}

/// How often each symbol is likely to come up.
struct Counts([u32; SYMBOLS]);

impl Default for Counts {
    fn default() -> Self {
        // Rows that are not counted may have any literal and any run. Each counted one stands for as many of them.
        let mut counts = [0; SYMBOLS];
        counts[..=END].fill(1);
        for words in 1..=RUN {
            counts[length_of(words).0] = 1;
        }
        Self(counts)
    }
}

impl Sink for Counts {
    fn byte(&mut self, byte: u8) {
        self.0[usize::from(byte)] += SURE;
    }

    fn word(&mut self, word: [u8; WORD]) {
        word.into_iter().for_each(|byte| self.byte(byte));
    }

    fn zeros(&mut self, words: usize) {
        self.0[0] += SURE;
        self.0[length_of(words).0] += SURE;
    }
}

/// Ready bits for what a row is taken apart to.
struct Codes {
    symbols: [Symbol; SYMBOLS],
    /// The first of `symbols` again, because a byte cannot be too large an index for them.
    literals: [Symbol; 256],
    /// For each number of words less one.
    runs: [Run; RUN],
    end: Run,
}

impl Codes {
    fn new(counts: &Counts) -> Self {
        let symbols = huffman::code(&counts.0, LONGEST);
        let run = |words| {
            let (length, extra) = length_of(words);
            // One byte back: the only distance there is, so it takes one bit.
            let distance = Symbol { bits: 0, count: 1 };
            join([symbols[0], symbols[length], extra, distance])
        };
        Self {
            literals: std::array::from_fn(|i| symbols[i]),
            runs: std::array::from_fn(|i| run(i + 1)),
            end: symbols[END].alone(),
            symbols,
        }
    }

    /// The head of the only block.
    fn describe(&self, bits: &mut Bits) {
        /// Bits of each length of a code; all lengths below 16 have as many.
        const LENGTH: u32 = 4;
        bits.reserve(SYMBOLS);
        // The last block, with codes of its own for 286 symbols and one distance; 19 lengths of codes of lengths.
        bits.put((0b1 | 0b10 << 1, 3));
        bits.put((SYMBOLS as u64 - 257, 5));
        bits.put((0, 5));
        bits.put((19 - 4, 4));
        // The first three are for repeated lengths, of which nothing is made.
        bits.put((0, 3 * 3));
        (3..19).for_each(|_| bits.put((u64::from(LENGTH), 3)));
        let lengths = self.symbols.iter().map(|symbol| symbol.count);
        for length in lengths.chain([1]) {
            let code = length.reverse_bits() >> (u32::BITS - LENGTH);
            bits.put((u64::from(code), LENGTH));
        }
    }
}

struct Writer<'a> {
    codes: &'a Codes,
    bits: &'a mut Bits,
}

impl Sink for Writer<'_> {
    fn byte(&mut self, byte: u8) {
        self.bits.put(self.codes.literals[usize::from(byte)].alone());
    }

    #[inline(always)]
    fn word(&mut self, word: [u8; WORD]) {
        let [a, b, c, d, e, f, g, h] = word.map(|byte| self.codes.literals[usize::from(byte)]);
        self.bits.put(join([a, b, c, d]));
        self.bits.put(join([e, f, g, h]));
    }

    fn zeros(&mut self, words: usize) {
        self.bits.put(self.codes.runs[words - 1]);
    }
}

/// Joined in pairs, so that no shift waits for more than one other.
fn join([a, b, c, d]: [Symbol; 4]) -> Run {
    let left = u64::from(a.bits) | u64::from(b.bits) << a.count;
    let right = u64::from(c.bits) | u64::from(d.bits) << c.count;
    let count = a.count + b.count;
    (left | right << count, count + c.count + d.count)
}

/// Bits on their way to bytes.
#[derive(Default)]
struct Bits {
    /// Longer than what is written.
    out: Vec<u8>,
    written: usize,
    waiting: u64,
    /// Below 8 between calls.
    count: u32,
}

impl Bits {
    fn start(&mut self, head: [u8; 2]) {
        self.out.clear();
        self.out.extend(head);
        self.written = head.len();
        (self.waiting, self.count) = (0, 0);
    }

    /// Makes room for `bytes` and the word in which the last of them is written.
    fn reserve(&mut self, bytes: usize) {
        let needed = self.written + bytes + WORD;
        if self.out.len() < needed {
            self.out.resize(needed.max(2 * self.written), 0);
        }
    }

    /// Writes up to 56 bits, for which there is room.
    #[inline(always)]
    fn put(&mut self, (bits, count): Run) {
        self.waiting |= bits << self.count;
        self.count += count;
        self.out[self.written..][..WORD].copy_from_slice(&self.waiting.to_le_bytes());
        self.written += self.count as usize / 8;
        self.waiting >>= self.count & !7;
        self.count &= 7;
    }

    /// Fills up the last byte and adds `end`.
    fn finish(&mut self, end: &[u8]) -> &[u8] {
        self.written += usize::from(self.count > 0);
        self.out.truncate(self.written);
        self.out.extend(end);
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// What a reader makes of the stream.
    fn inflate(stream: &[u8], line: usize, rows: usize) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, (line / RGB) as u32, rows as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, stream).unwrap();
        writer.finish().unwrap();
        let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
        let mut samples = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut samples).unwrap();
        samples
    }

    /// The stream's length.
    fn check(deflater: &mut Deflater, samples: &[u8], line: usize) -> usize {
        let stream = deflater.compress(samples, line);
        assert!(
            inflate(stream, line, samples.len() / line) == samples,
            "rows of {line} changed"
        );
        stream.len()
    }

    /// Bytes that look random and are the same each time.
    fn noise(i: usize) -> u8 {
        let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 56) as u8
    }

    proptest! {
        #[test]
        fn every_row_comes_back(
            width in 1_usize..230, rows in 1_usize..50, zeros in 0_u8..=255, samples in any::<[u8; 64]>(),
        ) {
            let line = width * RGB;
            let sample = |i: usize| if noise(i / 8) < zeros { 0 } else { samples[usize::from(noise(i)) % 64] };
            let samples: Vec<u8> = (0..line * rows).map(sample).collect();
            check(&mut Deflater::default(), &samples, line);
        }
    }

    #[test]
    fn runs_of_every_length_come_back_from_every_place() {
        let mut deflater = Deflater::default();
        for place in 0..8_usize {
            for run in 0..=600 {
                // Two rows that differ except in the run.
                let line = (place + run + 9).next_multiple_of(RGB);
                let mut samples = vec![7; 2 * line];
                samples[line..][..place].fill(8);
                samples[line + place + run..].fill(9);
                check(&mut deflater, &samples, line);
            }
        }
    }

    #[test]
    fn what_no_counted_row_has_comes_back_and_grows_by_three_quarters_at_most() {
        let (line, rows) = (255, 200);
        let mut samples = vec![0; line * rows];
        let uncounted: Vec<usize> = (1..rows)
            .filter(|y| counted(rows).all(|c| c != *y && c != y + 1))
            .collect();
        for &y in &uncounted {
            samples[y * line..][..line]
                .iter_mut()
                .enumerate()
                .for_each(|(x, sample)| *sample = noise(y * line + x));
        }
        let length = check(&mut Deflater::default(), &samples, line);
        assert!(uncounted.len() > 150);
        assert!(length < samples.len() * 7 / 4, "{length} bytes");
    }

    #[test]
    fn lines_of_text_are_counted_whatever_their_distance() {
        let (line, rows) = (600, 480);
        let mut lengths = Vec::new();
        for distance in 12..=32 {
            // The lower two thirds of each line are text in a few shades.
            let text = |y: usize| y % distance >= distance / 3;
            let sample = |i: usize| if text(i / line) { noise(i) % 8 * 30 } else { 255 };
            let samples: Vec<u8> = (0..line * rows).map(sample).collect();
            let changed = (0..rows).filter(|&y| text(y) || y > 0 && text(y - 1)).count();
            lengths.push(check(&mut Deflater::default(), &samples, line) as f64 / (changed * line) as f64);
        }
        let (least, most) = lengths
            .iter()
            .fold((f64::MAX, 0.0_f64), |(a, b), &v| (a.min(v), b.max(v)));
        assert!(most < 1.2 * least, "bytes for each byte of text: {lengths:?}");
    }

    #[test]
    fn rows_that_stay_the_same_take_a_few_bytes() {
        let samples = vec![9; 3840 * 720];
        let length = check(&mut Deflater::default(), &samples, 3840);
        assert!(length < 720 * 20, "{length} bytes");
    }

    #[test]
    fn the_same_rows_give_the_same_stream_whatever_came_before() {
        let samples: Vec<u8> = (0..90 * 40).map(|i| noise(i / 5)).collect();
        let mut deflater = Deflater::default();
        let first = deflater.compress(&samples, 90).to_vec();
        deflater.compress(&vec![1; 4800], 960);
        deflater.compress(&[2; 6], 3);
        assert_eq!(deflater.compress(&samples, 90), first);
    }
}
