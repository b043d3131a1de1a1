//! The picture in a terminal: two colours and four quadrants per character cell.
//!
//! `depth`, `cells`, `screen`, `status` and `view` compute and can be tested cell by cell; only `guard`,
//! `password` and the loop in this file touch the terminal.

mod cells;
mod depth;
mod feed;
mod guard;
mod password;
mod screen;
mod signals;
mod status;
mod view;

use std::io::{self, Write};
use std::time::Duration;

use crossdesk_pipelines::clock;
use crossdesk_pipelines::picture::{MapError, Picture};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub use depth::{ColorDepth, TerminalEnv};
pub use feed::Feed;
pub use password::read_password;
pub use signals::EndSignals;

use self::cells::Grid;
use self::guard::Guard;
use self::screen::Screen;
use self::status::Status;
use self::view::View;

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
    /// SIGTERM, SIGHUP or SIGINT asked the process to end.
    Signal,
    /// The feed ended, with the reason it gave.
    Ended(String),
}

/// Pause between looks at keys and pictures: 30 screens a second, about what terminals draw without falling behind.
const TICK: Duration = Duration::from_millis(33);

/// Shows what `feed` receives on the terminal of standard output until the user quits or the feed ends.
///
/// The terminal is restored before this returns, when it panics, and on SIGTERM, SIGHUP and SIGINT.
///
/// # Errors
/// When the terminal cannot be read or written, for example because there is none.
pub fn run(feed: &Feed, options: &Options) -> io::Result<ExitReason> {
    let guard = Guard::enter()?;
    let mut display = Display::new(options, terminal_grid()?);
    loop {
        let ended = display.update(feed);
        display.draw()?;
        if let Some(reason) = ended {
            return Ok(ExitReason::Ended(reason));
        }
        if keys_say_quit(TICK)? {
            return Ok(ExitReason::Quit);
        }
        if guard.signalled() {
            return Ok(ExitReason::Signal);
        }
        display.screen.resize(terminal_grid()?);
    }
}

/// One picture as `rows` lines of at most `columns` characters without colours or control sequences, for output
/// that is no terminal.
///
/// # Errors
/// When the picture's memory cannot be read.
pub fn still(picture: &Picture, columns: u16, rows: u16) -> Result<String, MapError> {
    // `View` leaves the last line to the status, which a still has none of.
    let mut screen = Screen::new(Grid {
        columns,
        rows: rows.saturating_add(1),
    });
    View::new(ColorDepth::None).show(picture, &mut screen)?;
    let text = screen.text();
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

fn terminal_grid() -> io::Result<Grid> {
    let (columns, rows) = crossterm::terminal::size()?;
    Ok(Grid { columns, rows })
}

/// Waits up to `patience` for a key and reads all that are there.
fn keys_say_quit(patience: Duration) -> io::Result<bool> {
    let mut patience = patience;
    while event::poll(patience)? {
        if let Event::Key(key) = event::read()?
            && means_quit(key)
        {
            return Ok(true);
        }
        patience = Duration::ZERO;
    }
    Ok(false)
}

fn means_quit(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind != KeyEventKind::Release
        && match key.code {
            KeyCode::Char('q' | 'Q') => !control,
            KeyCode::Char('c') => control,
            KeyCode::Esc => true,
            _ => false,
        }
}

/// Everything the loop keeps between two screens.
struct Display {
    screen: Screen,
    view: View,
    status: Status,
    picture: Option<Picture>,
    /// The picture and the screen size that are laid out already.
    laid_out: Option<(u32, Grid)>,
    out: Vec<u8>,
}

impl Display {
    fn new(options: &Options, grid: Grid) -> Self {
        Self {
            screen: Screen::new(grid),
            view: View::new(options.depth),
            status: Status::new(&options.title),
            picture: None,
            laid_out: None,
            out: Vec::new(),
        }
    }

    /// Takes what is new and prepares the next screen; returns why the feed ended, if it has.
    fn update(&mut self, feed: &Feed) -> Option<String> {
        let news = feed.take();
        self.status.decoder = news.decoder.or(self.status.decoder.take());
        self.status.note = news.note.or(self.status.note.take());
        if let Some(picture) = news.picture {
            self.status
                .picture(picture.size, picture.sequence, picture.received, picture.decoded);
            self.picture = Some(picture);
        }
        let grid = self.screen.grid();
        if let Some(picture) = &self.picture
            && self.laid_out != Some((picture.sequence, grid))
        {
            if let Err(error) = self.view.show(picture, &mut self.screen) {
                self.status.note = Some(error.to_string());
            }
            self.laid_out = Some((picture.sequence, grid));
        }
        if let Some(last) = grid.rows.checked_sub(1) {
            self.screen
                .put_text(last, &self.status.line(clock::now(), grid.columns));
        }
        news.ended
    }

    fn draw(&mut self) -> io::Result<()> {
        self.out.clear();
        self.screen.draw(&mut self.out);
        let mut terminal = io::stdout().lock();
        terminal.write_all(&self.out)?;
        terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use crossdesk_core::time::Monotonic;
    use crossdesk_core::units::PixelSize;
    use crossdesk_pipelines::fake::PlainFrame;

    use super::*;

    #[test]
    fn a_still_has_the_asked_number_of_lines_and_no_control_sequences() {
        let size = PixelSize::new(64, 32);
        let frame = PlainFrame::from_fn(size, |x, _| if x < 32 { 235 } else { 16 }, |_, _| [128, 128]);
        let text = still(&frame.into_picture(1, Monotonic::ZERO), 16, 4).expect("ordinary memory");
        assert_eq!(text.lines().count(), 4);
        assert!(text.starts_with("████████\n"), "{text}");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn q_escape_and_control_c_quit() {
        let key = |code, modifiers| means_quit(KeyEvent::new(code, modifiers));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(key(KeyCode::Char('Q'), KeyModifiers::SHIFT));
        assert!(key(KeyCode::Esc, KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(!key(KeyCode::Char('x'), KeyModifiers::NONE));
    }
}
