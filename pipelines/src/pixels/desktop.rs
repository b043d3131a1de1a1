//! A generated desktop: the same picture for the same number, on every machine.
//!
//! What never moves is drawn once; a picture copies it and draws the counter, the marks, the typed line with
//! its caret, the scrolling log and the travelling window on top.
//!
//! The machine-readable marks are a row of square blocks that starts at the upper left corner: one white,
//! one black, then the picture number as 32 blocks, most significant bit first, white for one. The edge of a
//! block is [`mark_edge`]; pictures narrower than 68 pixels have none.

use crossdesk_core::units::PixelSize;

/// Blocks in the row of marks: white, black, 32 bits.
const MARK_BLOCKS: u32 = 34;
/// A macroblock: larger marks gain nothing.
const MAX_MARK_EDGE: u32 = 16;
/// Pixels of a character at scale 1.
const CELL: u32 = 8;

/// A colour as limited-range BT.601 samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink {
    y: u8,
    u: u8,
    v: u8,
}

impl Ink {
    /// From red, green and blue, with the integer form of the BT.601 equations.
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        let (r, g, b) = (red as i32, green as i32, blue as i32);
        Self {
            y: ((66 * r + 129 * g + 25 * b + 128) / 256 + 16) as u8,
            u: ((-38 * r - 74 * g + 112 * b + 128 + 128 * 256) / 256) as u8,
            v: ((112 * r - 94 * g - 18 * b + 128 + 128 * 256) / 256) as u8,
        }
    }
}

const WHITE: Ink = Ink::rgb(255, 255, 255);
const BLACK: Ink = Ink::rgb(0, 0, 0);
const PAPER: Ink = Ink::rgb(250, 250, 247);
const TEXT: Ink = Ink::rgb(32, 33, 36);
const FAINT: Ink = Ink::rgb(110, 116, 125);
const TITLE: Ink = Ink::rgb(45, 92, 160);
const BAR: Ink = Ink::rgb(24, 28, 36);
const TERMINAL: Ink = Ink::rgb(18, 20, 26);
const GREEN: Ink = Ink::rgb(120, 210, 140);
const ACCENT: Ink = Ink::rgb(214, 92, 64);

/// Where the planes of a 4:2:0 picture lie in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes from one luma row to the next.
    pub y_stride: usize,
    /// Where Cb starts.
    pub u: usize,
    /// Where Cr starts.
    pub v: usize,
    /// Bytes from one chroma row to the next.
    pub c_stride: usize,
    /// Bytes from one chroma sample to the next: 1 in planes of their own, 2 interleaved.
    pub c_step: usize,
    /// Bytes of the whole picture.
    pub len: usize,
}

impl Layout {
    /// Three planes without padding.
    pub const fn i420(size: PixelSize) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let luma = width * height;
        Self {
            y_stride: width,
            u: luma,
            v: luma + luma / 4,
            c_stride: width / 2,
            c_step: 1,
            len: luma * 3 / 2,
        }
    }
}

/// A rectangle; drawing clips it to the picture and rounds it to chroma samples.
#[derive(Clone, Copy)]
struct Area {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

const fn area(x: u32, y: u32, width: u32, height: u32) -> Area {
    Area { x, y, width, height }
}

/// How text looks.
#[derive(Clone, Copy)]
struct Style {
    /// Pixels a dot of the font is wide and high.
    scale: u32,
    ink: Ink,
}

const fn style(scale: u32, ink: Ink) -> Style {
    Style { scale, ink }
}

/// Draws pictures of one size into one layout.
pub struct Desktop {
    size: PixelSize,
    layout: Layout,
    /// Everything that never moves.
    still: Vec<u8>,
    scale: u32,
}

impl std::fmt::Debug for Desktop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desktop")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Picture `number` at `size`, as I420 without padding.
pub fn draw(number: u32, size: PixelSize) -> Vec<u8> {
    let desktop = Desktop::new(size, Layout::i420(size));
    let mut out = vec![0; desktop.layout.len];
    desktop.draw(number, &mut out);
    out
}

/// Edge of a mark in pixels; 0 when the picture is too narrow for marks.
pub const fn mark_edge(size: PixelSize) -> u32 {
    let edge = (size.width / MARK_BLOCKS) & !1;
    if edge > MAX_MARK_EDGE { MAX_MARK_EDGE } else { edge }
}

/// Reads the picture number back from the marks in a plane of luma.
pub fn read_marks(luma: &[u8], stride: usize, size: PixelSize) -> Option<u32> {
    let edge = mark_edge(size) as usize;
    if edge == 0 {
        return None;
    }
    let white = |block: usize| {
        let sample = luma.get((edge / 2) * stride + block * edge + edge / 2)?;
        Some(*sample > 125)
    };
    if !white(0)? || white(1)? {
        return None;
    }
    (2..MARK_BLOCKS as usize).try_fold(0, |number, block| Some(number << 1 | u32::from(white(block)?)))
}

impl Desktop {
    /// Prepares what never moves; `size` is even.
    pub fn new(size: PixelSize, layout: Layout) -> Self {
        let mut desktop = Self {
            size: size.even(),
            layout,
            still: Vec::new(),
            scale: (size.height / 540).max(1),
        };
        let mut still = vec![0; layout.len];
        desktop.wallpaper(&mut still);
        desktop.task_bar(&mut still);
        desktop.editor(&mut still);
        desktop.still = still;
        desktop
    }

    /// Draws picture `number` into `out`, which is as long as the layout says.
    pub fn draw(&self, number: u32, out: &mut [u8]) {
        let Some(out) = out.get_mut(..self.layout.len) else {
            return;
        };
        out.copy_from_slice(&self.still);
        self.typed_line(number, out);
        self.log(number, out);
        self.traveller(number, out);
        self.counter(number, out);
        self.marks(number, out);
    }

    fn wallpaper(&self, out: &mut [u8]) {
        let PixelSize { width, height } = self.size;
        for y in 0..height {
            let shade = 40 + (y * 90 / height) as u8;
            let row = &mut out[y as usize * self.layout.y_stride..][..width as usize];
            for (x, sample) in row.iter_mut().enumerate() {
                // Soft diagonal folds, so that the wallpaper is no flat colour to an encoder.
                *sample = shade + ((x as u32 + y * 2) / 64 % 4 * 3) as u8;
            }
        }
        for y in 0..height / 2 {
            let warm = (y * 24 / height.max(2)) as u8;
            self.chroma_row(out, y, 0..width / 2, (142 - warm, 112 + warm));
        }
    }

    fn task_bar(&self, out: &mut [u8]) {
        let height = 16 * self.scale;
        let top = self.size.height.saturating_sub(height);
        self.fill(out, area(0, top, self.size.width, height), BAR);
        self.text(
            out,
            (4 * self.scale, top + 4 * self.scale),
            style(self.scale, WHITE),
            "CrossDesk   Files   Editor   Terminal",
        );
    }

    /// The window with text to read: title bar, line numbers, lines in several sizes.
    fn editor(&self, out: &mut [u8]) {
        let (window, s) = (self.editor_area(), self.scale);
        self.window(out, window, "notes.txt - Editor", PAPER);
        let lines = [
            "The quick brown fox jumps over the lazy dog 0123456789",
            "fn main() { let (a, b) = (1, 2); println!(\"{}\", a + b); }",
            "il1|I O0o {}[]() <> => != == && || :: -> #@%^~`'\"",
            "Small text has to stay readable after every step.",
            "Lines, corners and edges show what an encoder does.",
        ];
        for (n, line) in lines.iter().enumerate() {
            let y = window.y + (20 + 12 * n as u32) * s;
            self.text(
                out,
                (window.x + 6 * s, y),
                style(s, FAINT),
                &format!("{:2}", n + 1),
            );
            self.text_within(out, (window.x + 26 * s, y), TEXT, line);
        }
    }

    fn editor_area(&self) -> Area {
        let PixelSize { width, height } = self.size;
        area(
            even(width / 20),
            even(height / 8),
            even(width * 11 / 20),
            even(height * 2 / 5),
        )
    }

    fn text_within(&self, out: &mut [u8], at: (u32, u32), ink: Ink, text: &str) {
        let window = self.editor_area();
        let (right, bottom) = (window.x + window.width, window.y + window.height);
        if at.1 + CELL * self.scale <= bottom {
            let fits = right.saturating_sub(at.0) / (CELL * self.scale);
            let shown: String = text.chars().take(fits as usize).collect();
            self.text(out, at, style(self.scale, ink), &shown);
        }
    }

    /// A line that is typed, one character every four pictures, with a caret that blinks.
    fn typed_line(&self, number: u32, out: &mut [u8]) {
        const LINE: &str = "Typing one character after another, then starting over.";
        let (window, s) = (self.editor_area(), self.scale);
        let typed = number as usize / 4 % (LINE.len() + 10);
        let typed = typed.min(LINE.len());
        let at = (window.x + 26 * s, window.y + 92 * s);
        self.text_within(out, at, TITLE, &LINE[..typed]);
        if (number / 30).is_multiple_of(2) {
            let x = at.0 + typed as u32 * CELL * s;
            self.fill(out, area(x, at.1, 2 * s, CELL * s), TEXT);
        }
    }

    /// A terminal whose lines scroll, one every eight pictures.
    fn log(&self, number: u32, out: &mut [u8]) {
        let (PixelSize { width, height }, s) = (self.size, self.scale);
        let window = area(
            even(width / 20),
            even(height * 3 / 5),
            even(width * 11 / 20),
            even(height * 3 / 10),
        );
        self.window(out, window, "build - Terminal", TERMINAL);
        let rows = window.height.saturating_sub(20 * s) / (10 * s);
        for row in 0..rows {
            let line = number / 8 + row;
            let noise = line.wrapping_mul(2_654_435_761) >> 8;
            let text = format!(
                "[{line:06}] compiled unit {:04x} in {} ms",
                noise & 0xffff,
                noise % 900 + 12
            );
            let fits = window.width.saturating_sub(6 * s) / (CELL * s);
            let shown: String = text.chars().take(fits as usize).collect();
            self.text(
                out,
                (window.x + 6 * s, window.y + (18 + 10 * row) * s),
                style(s, GREEN),
                &shown,
            );
        }
    }

    /// A window that travels to and fro along the right side, two pixels of its scale each picture.
    fn traveller(&self, number: u32, out: &mut [u8]) {
        let PixelSize { width, height } = self.size;
        let (w, h) = (even(width / 4), even(height / 4));
        let room = (width * 3 / 4).saturating_sub(w).max(2);
        let drop = (height * 5 / 8).saturating_sub(h).max(2);
        let x = width / 4 + bounce(number.wrapping_mul(2 * self.scale), room);
        let y = height / 6 + bounce(number.wrapping_mul(2 * self.scale) / 2, drop);
        self.window(out, area(x & !1, y & !1, w, h), "Moving", ACCENT);
        let s = self.scale;
        self.text(
            out,
            ((x & !1) + 6 * s, (y & !1) + 20 * s),
            style(s, WHITE),
            "drag",
        );
    }

    /// The picture number in large digits, upper right.
    fn counter(&self, number: u32, out: &mut [u8]) {
        let scale = self.scale * 3;
        let (w, h) = (CELL * 9 * scale, 12 * scale);
        let x = self.size.width.saturating_sub(w + 8 * self.scale) & !1;
        let y = even(24 * self.scale);
        self.fill(out, area(x, y, w, h), BLACK);
        self.text(
            out,
            (x + 4 * scale, y + 2 * scale),
            style(scale, WHITE),
            &format!("{number:08}"),
        );
    }

    fn marks(&self, number: u32, out: &mut [u8]) {
        let edge = mark_edge(self.size);
        for block in 0..MARK_BLOCKS {
            let white = match block {
                0 => true,
                1 => false,
                bit => number >> (MARK_BLOCKS - 1 - bit) & 1 == 1,
            };
            let ink = if white { WHITE } else { BLACK };
            self.fill(out, area(block * edge, 0, edge, edge), ink);
        }
    }

    fn window(&self, out: &mut [u8], at: Area, title: &str, paper: Ink) {
        let s = self.scale;
        self.fill(out, at, paper);
        self.fill(out, area(at.x, at.y, at.width, (14 * s).min(at.height)), TITLE);
        let fits = at.width.saturating_sub(8 * s) / (CELL * s);
        let shown: String = title.chars().take(fits as usize).collect();
        self.text(out, (at.x + 4 * s, at.y + 3 * s), style(s, WHITE), &shown);
    }

    fn text(&self, out: &mut [u8], at: (u32, u32), style: Style, text: &str) {
        let Style { scale, ink } = style;
        for (n, character) in text.bytes().enumerate() {
            let x = at.0 + n as u32 * CELL * scale;
            for row in 0..CELL {
                let bits = glyph_row(character, row as usize);
                for column in (0..CELL).filter(|column| bits >> column & 1 == 1) {
                    let dot = area(x + column * scale, at.1 + row * scale, scale, scale);
                    self.luma(out, dot, ink.y);
                }
            }
        }
    }

    fn fill(&self, out: &mut [u8], at: Area, ink: Ink) {
        self.luma(out, at, ink.y);
        let (left, right) = (at.x / 2, (at.x + at.width).min(self.size.width) / 2);
        let (top, bottom) = (at.y / 2, (at.y + at.height).min(self.size.height) / 2);
        for y in top..bottom {
            self.chroma_row(out, y, left..right.max(left), (ink.u, ink.v));
        }
    }

    fn luma(&self, out: &mut [u8], at: Area, value: u8) {
        let (left, right) = (at.x.min(self.size.width), (at.x + at.width).min(self.size.width));
        for y in at.y..(at.y + at.height).min(self.size.height) {
            let row = y as usize * self.layout.y_stride;
            out[row + left as usize..row + right as usize].fill(value);
        }
    }

    fn chroma_row(&self, out: &mut [u8], y: u32, columns: std::ops::Range<u32>, (u, v): (u8, u8)) {
        let Layout { c_stride, c_step, .. } = self.layout;
        let row = y as usize * c_stride;
        for (plane, value) in [(self.layout.u, u), (self.layout.v, v)] {
            let from = plane + row + columns.start as usize * c_step;
            let to = (plane + row + columns.end as usize * c_step).min(out.len());
            for sample in out[from.min(to)..to].iter_mut().step_by(c_step) {
                *sample = value;
            }
        }
    }
}

/// The pixels of one row of a character, leftmost in the lowest bit.
fn glyph_row(character: u8, row: usize) -> u8 {
    let glyphs = &font8x8::legacy::BASIC_LEGACY;
    let known = glyphs.get(usize::from(character));
    known.unwrap_or(&glyphs[usize::from(b'?')])[row]
}

/// Rounds down to a chroma sample.
const fn even(n: u32) -> u32 {
    n & !1
}

/// Runs from 0 up to `range` and back.
const fn bounce(step: u32, range: u32) -> u32 {
    let phase = step % (2 * range);
    if phase < range { phase } else { 2 * range - phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> PixelSize {
        PixelSize::new(width, height)
    }

    #[test]
    fn the_marks_say_the_number_at_every_size_that_has_them() {
        for size in [size(68, 16), size(320, 240), size(1920, 1080), size(8192, 16)] {
            for number in [0, 1, 0x8000_0001, u32::MAX] {
                let picture = draw(number, size);
                assert_eq!(
                    read_marks(&picture, size.width as usize, size),
                    Some(number),
                    "{size:?}"
                );
            }
        }
        assert_eq!(read_marks(&draw(3, size(16, 16)), 16, size(16, 16)), None);
    }

    #[test]
    fn both_layouts_show_the_same_samples() {
        let size = size(322, 182);
        let planar = draw(77, size);
        let (w, h) = (size.width as usize, size.height as usize);
        let layout = Layout {
            v: w * h + 1,
            c_stride: w,
            c_step: 2,
            ..Layout::i420(size)
        };
        let mut packed = vec![0; layout.len];
        Desktop::new(size, layout).draw(77, &mut packed);
        assert!(planar[..w * h] == packed[..w * h]);
        for n in 0..w * h / 4 {
            assert_eq!(
                [planar[w * h + n], planar[w * h * 5 / 4 + n]],
                packed[w * h + 2 * n..][..2]
            );
        }
    }

    #[test]
    fn every_size_draws_without_leaving_the_picture() {
        for (w, h) in [(16, 16), (16, 1080), (8192, 16), (640, 480), (130, 98)] {
            for number in [0, 29, 30, 1000, u32::MAX] {
                assert_eq!(draw(number, size(w, h)).len(), (w * h * 3 / 2) as usize);
            }
        }
    }

    #[test]
    fn pictures_repeat_exactly_and_differ_from_each_other() {
        let size = size(640, 360);
        assert!(draw(5, size) == draw(5, size));
        for n in 0..70 {
            assert!(draw(n, size) != draw(n + 1, size), "{n}");
        }
    }

    #[test]
    fn grey_colours_are_limited_range() {
        assert_eq!(
            WHITE,
            Ink {
                y: 235,
                u: 128,
                v: 128
            }
        );
        assert_eq!(
            BLACK,
            Ink {
                y: 16,
                u: 128,
                v: 128
            }
        );
    }
}
