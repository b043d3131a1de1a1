//! A password typed by a person, without showing it.

use std::io::{self, IsTerminal as _, Write as _};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// Longer than any password, shorter than a paste of the wrong thing.
const MAX_CHARACTERS: usize = 256;

/// Asks for a password on the terminal; `None` when the person gives up with Ctrl-C or Esc.
///
/// # Errors
/// `NotConnected` when nobody sits at a terminal, else what the terminal says.
pub fn ask_password(question: &str) -> io::Result<Option<String>> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let mut out = io::stderr().lock();
    write!(out, "{question}: ")?;
    out.flush()?;
    enable_raw_mode()?;
    let typed = read_keys();
    let restored = disable_raw_mode();
    writeln!(out)?;
    restored?;
    typed
}

fn read_keys() -> io::Result<Option<String>> {
    let mut typed = String::new();
    loop {
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match key.code {
            KeyCode::Enter => return Ok(Some(typed)),
            KeyCode::Esc => return Ok(None),
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(None),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char(character) if typed.chars().count() < MAX_CHARACTERS => typed.push(character),
            _ => {}
        }
    }
}
