//! The screen as cells, and the least bytes that turn what is shown into what should be.

use std::io::Write;

use super::cells::{Cell, Grid};
use super::depth::Ink;

/// What the terminal shows and what it shall show next.
#[derive(Debug)]
pub(super) struct Screen {
    grid: Grid,
    shown: Vec<Cell>,
    next: Vec<Cell>,
    /// False until the whole screen has been drawn once at this size.
    known: bool,
}

impl Screen {
    pub fn new(grid: Grid) -> Self {
        Self {
            grid,
            shown: vec![Cell::BLANK; grid.area()],
            next: vec![Cell::BLANK; grid.area()],
            known: false,
        }
    }

    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Takes another size; everything is drawn anew.
    pub fn resize(&mut self, grid: Grid) {
        if grid != self.grid {
            *self = Self::new(grid);
        }
    }

    /// Makes every cell of the next screen blank.
    pub fn clear(&mut self) {
        self.next.fill(Cell::BLANK);
    }

    /// Sets one cell of the next screen; cells outside are ignored.
    pub fn put(&mut self, column: u16, row: u16, cell: Cell) {
        if column < self.grid.columns && row < self.grid.rows {
            self.next[usize::from(row) * usize::from(self.grid.columns) + usize::from(column)] = cell;
        }
    }

    /// Writes `text` into a row of the next screen, padded with blanks and cut at the right edge.
    ///
    /// Control characters are left out, since the text may come from elsewhere.
    pub fn put_text(&mut self, row: u16, text: &str) {
        let mut glyphs = text.chars().filter(|c| !c.is_control());
        for column in 0..self.grid.columns {
            let glyph = glyphs.next().unwrap_or(' ');
            self.put(column, row, Cell { glyph, ..Cell::BLANK });
        }
    }

    /// The next screen as lines of glyphs without colours or trailing blanks.
    pub fn text(&self) -> String {
        let rows = self.next.chunks(usize::from(self.grid.columns).max(1));
        let lines = rows.map(|row| row.iter().map(|cell| cell.glyph).collect::<String>());
        lines.map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Appends what changes the terminal from the shown to the next screen, which then counts as shown.
    pub fn draw(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        // Terminals that know synchronized output show all changes at once; others ignore it.
        out.extend_from_slice(b"\x1b[?2026h");
        if !self.known {
            out.extend_from_slice(b"\x1b[0m\x1b[2J");
            self.shown.fill(Cell::BLANK);
            self.known = true;
        }
        let body = out.len();
        let mut pen = Pen::default();
        for row in 0..self.grid.rows {
            for column in 0..self.grid.columns {
                let i = usize::from(row) * usize::from(self.grid.columns) + usize::from(column);
                if self.shown[i] != self.next[i] {
                    pen.write(out, (column, row), self.next[i]);
                }
            }
        }
        self.shown.copy_from_slice(&self.next);
        if out.len() == body && body == start + b"\x1b[?2026h".len() {
            out.truncate(start);
            return;
        }
        out.extend_from_slice(b"\x1b[0m\x1b[?2026l");
    }
}

/// Where the cursor stands and which colours are set while a screen is written.
#[derive(Default)]
struct Pen {
    at: Option<(u16, u16)>,
    colors: Option<(Ink, Ink)>,
}

impl Pen {
    fn write(&mut self, out: &mut Vec<u8>, (column, row): (u16, u16), cell: Cell) {
        if self.at != Some((column, row)) {
            put(out, format_args!("\x1b[{};{}H", row + 1, column + 1));
        }
        let (ink, paper) = self.colors.unzip();
        // The ink of a blank cannot be seen, so it need not be set.
        if ink != Some(cell.ink) && (cell.glyph != ' ' || self.colors.is_none()) {
            set_ink(out, cell.ink, 30);
        }
        if paper != Some(cell.paper) {
            set_ink(out, cell.paper, 40);
        }
        let kept_ink = if cell.glyph == ' ' {
            ink.unwrap_or(cell.ink)
        } else {
            cell.ink
        };
        self.colors = Some((kept_ink, cell.paper));
        put(out, format_args!("{}", cell.glyph));
        // No wrap is assumed: after the last column the next cell moves the cursor itself.
        self.at = column.checked_add(1).map(|next| (next, row));
    }
}

/// Selects a colour; `base` is 30 for ink and 40 for paper (ECMA-48 SGR).
fn set_ink(out: &mut Vec<u8>, ink: Ink, base: u8) {
    match ink {
        Ink::Default => put(out, format_args!("\x1b[{}m", base + 9)),
        Ink::Indexed(i @ 0..8) => put(out, format_args!("\x1b[{}m", base + i)),
        Ink::Indexed(i) => put(out, format_args!("\x1b[{};5;{i}m", base + 8)),
        Ink::True([r, g, b]) => put(out, format_args!("\x1b[{};2;{r};{g};{b}m", base + 8)),
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes every write");
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const RED: Ink = Ink::True([200, 0, 0]);

    fn drawn(screen: &mut Screen) -> String {
        let mut out = Vec::new();
        screen.draw(&mut out);
        String::from_utf8(out).unwrap().replace('\x1b', "^")
    }

    fn small() -> Screen {
        let mut screen = Screen::new(Grid { columns: 4, rows: 2 });
        screen.put(
            1,
            0,
            Cell {
                glyph: '▌',
                ink: RED,
                paper: Ink::Indexed(4),
            },
        );
        screen.put(
            2,
            0,
            Cell {
                glyph: '▀',
                ink: RED,
                paper: Ink::Indexed(240),
            },
        );
        screen.put_text(1, "a\nbcdef");
        screen
    }

    #[test]
    fn the_first_screen_is_drawn_whole() {
        expect!["^[?2026h^[0m^[2J^[1;2H^[38;2;200;0;0m^[44m▌^[48;5;240m▀^[2;1H^[39m^[49mabcd^[0m^[?2026l"]
            .assert_eq(&drawn(&mut small()));
    }

    #[test]
    fn only_what_changed_is_written() {
        let mut screen = small();
        drawn(&mut screen);
        assert_eq!(drawn(&mut screen), "");
        screen.put(
            3,
            1,
            Cell {
                glyph: 'X',
                ..Cell::BLANK
            },
        );
        expect!["^[?2026h^[2;4H^[39m^[49mX^[0m^[?2026l"].assert_eq(&drawn(&mut screen));
    }

    #[test]
    fn another_size_is_drawn_anew() {
        let mut screen = small();
        drawn(&mut screen);
        screen.resize(Grid { columns: 2, rows: 1 });
        screen.put(
            0,
            0,
            Cell {
                glyph: ' ',
                ink: Ink::Default,
                paper: Ink::Indexed(1),
            },
        );
        screen.put(
            7,
            7,
            Cell {
                glyph: 'X',
                ..Cell::BLANK
            },
        );
        expect!["^[?2026h^[0m^[2J^[1;1H^[39m^[41m ^[0m^[?2026l"].assert_eq(&drawn(&mut screen));
    }
}
