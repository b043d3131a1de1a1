//! Tables for people: columns as wide as their words, the last one wrapped to what the terminal leaves.

use super::{Printer, Tone};

/// Blanks between columns.
const GAP: usize = 2;

/// Least room for the wrapped column; below this it would be a column of single words.
const LEAST_ROOM: usize = 24;

/// One cell: its words, and what they mean.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// A cell of plain words.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tone: None,
        }
    }

    /// A cell whose words are also coloured.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tone: Some(tone),
        }
    }

    fn paint(&self, printer: &Printer, text: &str) -> String {
        match self.tone {
            Some(tone) => printer.paint(tone, text),
            None => text.to_owned(),
        }
    }
}

/// Lays out rows of equal length, the first of them being the headings.
pub fn render<const N: usize>(rows: &[[Cell; N]], printer: &Printer) -> String {
    let width_of = |column: usize| {
        let cells = rows.iter().map(|row| row[column].text.chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N - 1).map(width_of).collect();
    let indent = widths.iter().map(|width| width + GAP).sum::<usize>();
    let room = printer.width().saturating_sub(indent).max(LEAST_ROOM);
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width + GAP - cell.text.chars().count();
            line.push_str(&cell.paint(printer, &cell.text));
            line.push_str(&" ".repeat(padding));
        }
        for (number, part) in wrap(&row[N - 1].text, room).iter().enumerate() {
            if number > 0 {
                line.push('\n');
                line.push_str(&" ".repeat(indent));
            }
            line.push_str(&row[N - 1].paint(printer, part));
        }
        for line in line.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

/// Breaks `text` at blanks into lines of at most `width` characters; a longer word stands alone.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("it starts with one line and only grows");
        let used = line.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if used + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let rows = [
            [Cell::plain("name"), Cell::plain("state"), Cell::plain("fix")],
            [
                Cell::plain("vah264dec"),
                Cell::toned(Tone::Bad, "missing"),
                Cell::plain("install gstreamer1.0-plugins-bad and log in again"),
            ],
            [Cell::plain("avdec_h264"), Cell::plain("proven"), Cell::plain("")],
        ];
        expect![[r#"
            name        state    fix
            vah264dec   missing  install gstreamer1.0-plugins-bad and
                                 log in again
            avdec_h264  proven
        "#]]
        .assert_eq(&render(&rows, &Printer::plain(60)));
    }

    #[test]
    fn a_word_longer_than_the_line_stands_alone() {
        assert_eq!(wrap("a very_long_word b", 4), ["a", "very_long_word", "b"]);
    }
}
