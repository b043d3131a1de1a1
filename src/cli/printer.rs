//! The only place that prints: data to standard output, everything for people beside it to standard error.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossdesk_platform::stdio::write_within;

use crate::config::Environment;

/// Narrowest and widest table drawn: below, nothing fits; above, the eye loses the line.
const WIDTH_LIMITS: (u16, u16) = (60, 160);

/// Width assumed when nothing says otherwise.
const DEFAULT_WIDTH: u16 = 100;

/// How long an error waits for a standard error that has no room.
const ERROR_PATIENCE: Duration = Duration::from_secs(1);

/// Meaning of a word, shown by colour in addition to the word itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Works.
    Good,
    /// Works, but worth a look.
    Care,
    /// Does not work.
    Bad,
    /// Beside the point.
    Quiet,
    /// A heading.
    Strong,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Care => "33",
            Self::Bad => "31",
            Self::Quiet => "2",
            Self::Strong => "1",
        }
    }
}

/// Writes text for people and data for machines.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    terminal: bool,
    color_out: bool,
    color_err: bool,
    width: u16,
}

impl Printer {
    /// A printer that fits the terminal this process writes to.
    pub fn new(environment: &Environment) -> Self {
        let may_color = !environment.no_color && environment.term.as_deref() != Some("dumb");
        let terminal = io::stdout().is_terminal();
        let measured = terminal
            .then(crossterm::terminal::size)
            .and_then(Result::ok)
            .map(|(columns, _)| columns);
        let width = measured.or(environment.columns).unwrap_or(DEFAULT_WIDTH);
        Self {
            terminal,
            color_out: may_color && terminal,
            color_err: may_color && io::stderr().is_terminal(),
            width: width.clamp(WIDTH_LIMITS.0, WIDTH_LIMITS.1),
        }
    }

    /// A printer without colours, `width` columns wide.
    pub const fn plain(width: u16) -> Self {
        Self {
            terminal: false,
            color_out: false,
            color_err: false,
            width,
        }
    }

    /// True when a person may be reading standard output.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Columns available for a table on standard output.
    pub const fn width(&self) -> usize {
        self.width as usize
    }

    /// `text` in the colour of `tone` for standard output, or unchanged when colours are off.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        paint(self.color_out, tone, text)
    }

    /// Writes data to standard output; a reader that went away is no error.
    ///
    /// # Errors
    /// When standard output cannot be written for another reason, for example a full disk.
    pub fn data(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// Writes one line about progress to standard error.
    pub fn note(&self, text: &str) {
        // Nowhere is left to report that standard error is gone.
        drop(writeln!(io::stderr().lock(), "{text}"));
    }

    /// Writes an error and the chain of its causes to standard error.
    pub fn error(&self, error: &anyhow::Error) {
        let mark = paint(self.color_err, Tone::Bad, "error:");
        let text = format!("{mark} {error:#}\n");
        // An error ends the program; nobody who stopped reading may keep it from that.
        let _ = write_within(io::stderr().lock(), text.as_bytes(), ERROR_PATIENCE);
    }
}

fn paint(on: bool, tone: Tone, text: &str) -> String {
    if on {
        format!("\x1b[{}m{text}\x1b[0m", tone.code())
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_text_is_left_alone() {
        assert_eq!(Printer::plain(80).paint(Tone::Bad, "missing"), "missing");
    }

    #[test]
    fn colours_wrap_the_word_and_end_after_it() {
        assert_eq!(paint(true, Tone::Good, "proven"), "\x1b[32mproven\x1b[0m");
    }
}
