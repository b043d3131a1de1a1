//! One picture laid out on the screen: pure, so that tests can look at every cell.

use crossdesk_core::media::Color;
use crossdesk_core::units::PixelSize;
use crossdesk_pipelines::picture::{MapError, Picture, Planes};
use crossdesk_pipelines::pixels::{covers, thumbnail};

use super::cells::{Grid, cell, letterbox};
use super::depth::ColorDepth;
use super::screen::Screen;

/// Draws pictures and keeps its working memory.
#[derive(Debug)]
pub(super) struct View {
    depth: ColorDepth,
    pixels: Vec<[u8; 3]>,
}

impl View {
    pub fn new(depth: ColorDepth) -> Self {
        Self {
            depth,
            pixels: Vec::new(),
        }
    }

    /// Lays `picture` out above the last line of the next screen, as large as its shape allows.
    pub fn show(&mut self, picture: &Picture, screen: &mut Screen) -> Result<(), MapError> {
        picture
            .frame
            .map(&mut |planes| self.show_planes(&planes, picture.size, picture.color, screen))
    }

    pub fn show_planes(&mut self, planes: &Planes<'_>, size: PixelSize, color: Color, screen: &mut Screen) {
        let Grid { columns, rows } = screen.grid();
        let room = Grid {
            columns,
            rows: rows.saturating_sub(1),
        };
        let used = letterbox(room, size.width, size.height);
        screen.clear();
        if used.area() == 0 || !covers(planes, size) {
            return;
        }
        let width = 2 * usize::from(used.columns);
        let target = PixelSize::new(2 * u32::from(used.columns), 2 * u32::from(used.rows));
        thumbnail(planes, size, color, target, &mut self.pixels);
        let (left, top) = ((room.columns - used.columns) / 2, (room.rows - used.rows) / 2);
        for (row, pair) in (0..).zip(self.pixels.chunks_exact(2 * width)) {
            let (upper, lower) = pair.split_at(width);
            for (column, (upper, lower)) in (0..).zip(upper.chunks_exact(2).zip(lower.chunks_exact(2))) {
                let pixels = [upper[0], upper[1], lower[0], lower[1]];
                screen.put(left + column, top + row, cell(pixels, self.depth));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crossdesk_pipelines::picture::Plane;
    use expect_test::{Expect, expect};

    use super::*;

    /// A grey picture whose luma is `value(x, y)`, drawn on a screen of `columns` by `rows` without its escapes.
    fn drawn(size: PixelSize, value: impl Fn(u32, u32) -> u8, grid: Grid, depth: ColorDepth) -> String {
        let luma: Vec<u8> = (0..size.height)
            .flat_map(|y| (0..size.width).map(move |x| (x, y)))
            .map(|(x, y)| value(x, y))
            .collect();
        let y = Plane {
            data: &luma,
            stride: size.width as usize,
        };
        let mut screen = Screen::new(grid);
        View::new(depth).show_planes(&Planes::Gray { y }, size, Color::BT601_LIMITED, &mut screen);
        screen.put_text(grid.rows - 1, "status");
        let mut out = Vec::new();
        screen.draw(&mut out);
        String::from_utf8(out).unwrap().replace('\x1b', "^")
    }

    fn check(depth: ColorDepth, expected: &Expect) {
        // A white triangle on black.
        let value = |x: u32, y: u32| if x <= y { 235 } else { 16 };
        let grid = Grid { columns: 10, rows: 4 };
        expected.assert_eq(&drawn(PixelSize::new(12, 12), value, grid, depth));
    }

    #[test]
    fn a_triangle_in_24_bits() {
        check(
            ColorDepth::True,
            &expect![
                "^[?2026h^[0m^[2J^[1;3H^[38;2;128;128;128m^[48;2;255;255;255m▝^[38;2;0;0;0m^[48;2;192;192;192m▀^[48;2;0;0;0m    ^[2;3H^[48;2;255;255;255m  ^[38;2;128;128;128m▝^[38;2;0;0;0m^[48;2;192;192;192m▀^[48;2;0;0;0m  ^[3;3H^[48;2;255;255;255m    ^[38;2;128;128;128m▝^[38;2;0;0;0m^[48;2;192;192;192m▀^[4;1H^[39m^[49mstatus^[0m^[?2026l"
            ],
        );
    }

    #[test]
    fn a_triangle_in_256_colours() {
        check(
            ColorDepth::Palette256,
            &expect![
                "^[?2026h^[0m^[2J^[1;3H^[38;5;244m^[48;5;231m▝^[38;5;16m^[48;5;250m▀^[48;5;16m    ^[2;3H^[48;5;231m  ^[38;5;244m▝^[38;5;16m^[48;5;250m▀^[48;5;16m  ^[3;3H^[48;5;231m    ^[38;5;244m▝^[38;5;16m^[48;5;250m▀^[4;1H^[39m^[49mstatus^[0m^[?2026l"
            ],
        );
    }

    #[test]
    fn a_triangle_in_8_colours() {
        check(
            ColorDepth::Basic8,
            &expect![
                "^[?2026h^[0m^[2J^[1;3H^[39m^[47m ^[30m▀^[40m    ^[2;3H^[47m   ▀^[40m  ^[3;3H^[47m     ▀^[4;1H^[39m^[49mstatus^[0m^[?2026l"
            ],
        );
    }

    #[test]
    fn a_triangle_without_colour() {
        check(
            ColorDepth::None,
            &expect!["^[?2026h^[0m^[2J^[1;3H^[39m^[49m█░^[2;3H███░^[3;3H█████░^[4;1Hstatus^[0m^[?2026l"],
        );
    }

    #[test]
    fn no_screen_is_too_small() {
        for (columns, rows) in [(1, 1), (1, 2), (3, 1), (2, 2)] {
            let grid = Grid { columns, rows };
            drawn(PixelSize::new(5, 3), |_, _| 128, grid, ColorDepth::True);
        }
    }
}
