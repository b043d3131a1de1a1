//! Two by two pixels become one character cell: the block character and the two colours that lose least.

use super::depth::{ColorDepth, Ink, Rgb, distance};

/// One character of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub glyph: char,
    /// Colour of the glyph.
    pub ink: Ink,
    /// Colour behind it.
    pub paper: Ink,
}

impl Cell {
    /// An empty cell in the user's own colours.
    pub const BLANK: Self = Self {
        glyph: ' ',
        ink: Ink::Default,
        paper: Ink::Default,
    };
}

/// Quadrants by what they fill: bit 0 upper left, 1 upper right, 2 lower left, 3 lower right. The other eight
/// fillings are these with ink and paper exchanged.
const QUADRANTS: [(u8, char); 8] = [
    (0b0000, ' '),
    (0b0001, '▘'),
    (0b0010, '▝'),
    (0b0011, '▀'),
    (0b0100, '▖'),
    (0b0101, '▌'),
    (0b0110, '▞'),
    (0b0111, '▛'),
];

/// Rising brightness for terminals without colour.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// The cell that comes closest to `pixels` (upper left, upper right, lower left, lower right).
pub(super) fn cell(pixels: [Rgb; 4], depth: ColorDepth) -> Cell {
    if depth == ColorDepth::None {
        return shade(pixels);
    }
    let mut best = (u32::MAX, Cell::BLANK);
    for (mask, glyph) in QUADRANTS {
        let ink = depth.nearest(mean(pixels, mask));
        let paper = depth.nearest(mean(pixels, !mask));
        let (ink_rgb, paper_rgb) = (ink.rgb(), paper.rgb());
        let lost = pixels
            .iter()
            .enumerate()
            .map(|(i, &pixel)| distance(pixel, if mask >> i & 1 == 1 { ink_rgb } else { paper_rgb }));
        let lost = lost.sum();
        if lost < best.0 {
            // A blank has no ink to see: keeping the default makes equal cells equal.
            let ink = if mask == 0 { Ink::Default } else { ink };
            best = (lost, Cell { glyph, ink, paper });
        }
    }
    best.1
}

/// Mean of the pixels whose bit is set, black when there are none.
fn mean(pixels: [Rgb; 4], mask: u8) -> Rgb {
    let chosen = || {
        pixels
            .iter()
            .enumerate()
            .filter(|(i, _)| mask >> i & 1 == 1)
            .map(|(_, p)| p)
    };
    let count = chosen().count().max(1) as u16;
    [0, 1, 2].map(|c| ((chosen().map(|p| u16::from(p[c])).sum::<u16>() + count / 2) / count) as u8)
}

fn shade(pixels: [Rgb; 4]) -> Cell {
    let [r, g, b] = mean(pixels, 0b1111).map(u32::from);
    let luma = (3 * r + 6 * g + b) / 10;
    let glyph = SHADES[(luma as usize * SHADES.len() / 256).min(SHADES.len() - 1)];
    Cell { glyph, ..Cell::BLANK }
}

/// Columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub columns: u16,
    pub rows: u16,
}

impl Grid {
    pub fn area(self) -> usize {
        usize::from(self.columns) * usize::from(self.rows)
    }
}

/// The largest part of `grid` with the shape of a picture of `width` by `height`; a cell is twice as high as wide.
pub(super) fn letterbox(grid: Grid, width: u32, height: u32) -> Grid {
    if width == 0 || height == 0 || grid.area() == 0 {
        return Grid { columns: 0, rows: 0 };
    }
    let (columns, rows) = (u64::from(grid.columns), u64::from(grid.rows));
    let (width, height) = (u64::from(width), u64::from(height));
    // Halves of a row are as high as a column is wide.
    let by_width = (columns * height + width) / (2 * width);
    if by_width <= rows {
        return Grid {
            rows: by_width.max(1) as u16,
            ..grid
        };
    }
    let by_height = (2 * rows * width + height / 2) / height;
    Grid {
        columns: by_height.clamp(1, columns) as u16,
        ..grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: Rgb = [255; 3];
    const K: Rgb = [0; 3];

    #[test]
    fn every_black_and_white_pattern_is_kept_exactly() {
        for bits in 0_u8..16 {
            let pixels = [0, 1, 2, 3].map(|i| if bits >> i & 1 == 1 { W } else { K });
            let cell = cell(pixels, ColorDepth::True);
            let mask = QUADRANTS.iter().find(|(_, g)| *g == cell.glyph).unwrap().0;
            for (i, pixel) in pixels.iter().enumerate() {
                let shown = if mask >> i & 1 == 1 { cell.ink } else { cell.paper };
                assert_eq!(shown.rgb(), *pixel, "{bits:04b} {cell:?}");
            }
        }
    }

    #[test]
    fn the_two_colours_are_the_means_of_their_parts() {
        let (red, dark, blue) = ([200, 0, 0], [190, 0, 0], [0, 0, 250]);
        let cell = cell([red, blue, dark, blue], ColorDepth::True);
        assert_eq!(
            cell,
            Cell {
                glyph: '▌',
                ink: Ink::True([195, 0, 0]),
                paper: Ink::True(blue)
            }
        );
    }

    #[test]
    fn flat_pixels_are_a_blank_on_their_colour() {
        let cell = cell([[9, 8, 7]; 4], ColorDepth::True);
        assert_eq!(
            cell,
            Cell {
                glyph: ' ',
                ink: Ink::Default,
                paper: Ink::True([9, 8, 7])
            }
        );
    }

    #[test]
    fn fewer_colours_still_show_the_edge() {
        let green = [0, 210, 0];
        assert_eq!(
            cell([K, K, green, green], ColorDepth::Basic8),
            Cell {
                glyph: '▀',
                ink: Ink::Indexed(0),
                paper: Ink::Indexed(2)
            }
        );
        assert_eq!(
            cell([W, K, K, K], ColorDepth::Palette256),
            Cell {
                glyph: '▘',
                ink: Ink::Indexed(231),
                paper: Ink::Indexed(16)
            }
        );
    }

    #[test]
    fn without_colour_brightness_becomes_a_shade() {
        let glyphs: String = [0, 60, 128, 190, 255]
            .map(|v| cell([[v; 3]; 4], ColorDepth::None).glyph)
            .iter()
            .collect();
        assert_eq!(glyphs, " ░▒▓█");
        assert_eq!(cell([W; 4], ColorDepth::None).ink, Ink::Default);
    }

    #[test]
    fn pictures_keep_their_shape_inside_the_screen() {
        let grid = |columns, rows| Grid { columns, rows };
        assert_eq!(letterbox(grid(160, 45), 1920, 1080), grid(160, 45));
        assert_eq!(letterbox(grid(80, 50), 1920, 1080), grid(80, 23));
        assert_eq!(letterbox(grid(200, 30), 1920, 1080), grid(107, 30));
        assert_eq!(letterbox(grid(100, 50), 100, 100), grid(100, 50));
        assert_eq!(letterbox(grid(80, 24), 4000, 1), grid(80, 1));
        assert_eq!(letterbox(grid(80, 24), 1, 4000), grid(1, 24));
        assert_eq!(letterbox(grid(80, 24), 0, 5), grid(0, 0));
        assert_eq!(letterbox(grid(0, 24), 5, 5), grid(0, 0));
    }
}
