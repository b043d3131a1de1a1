//! A password typed at the terminal, without being shown.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crossdesk_core::signaling::{MAX_PASSWORD_BYTES, Password};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use super::EndSignals;

/// How often the wait for a key looks whether a signal came.
const LOOK: Duration = Duration::from_millis(100);

/// Raw mode, and with it no echo, until it is dropped.
struct Hidden;

impl Hidden {
    fn begin() -> io::Result<Self> {
        enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = disable_raw_mode();
    }
}

/// Reads a password from the terminal of standard input; `None` when the person gave up or a signal asks for the end.
///
/// `prompt` is called once nothing that is typed shows any more; what it writes has to end a line with `\r\n`.
///
/// # Errors
/// When standard input is no terminal, or it cannot be read.
pub fn read_password(prompt: impl FnOnce()) -> io::Result<Option<Password>> {
    if !io::stdin().is_terminal() {
        return Err(io::Error::other(
            "standard input is no terminal to type a password at",
        ));
    }
    let signals = EndSignals::watch()?;
    let _hidden = Hidden::begin()?;
    prompt();
    let mut typing = Typing::default();
    while !signals.asked() {
        if !event::poll(LOOK)? {
            continue;
        }
        if let Event::Key(key) = event::read()? {
            match typing.key(key) {
                Step::More => {}
                Step::Done => return Ok(Some(Password::new(typing.text))),
                Step::GivenUp => return Ok(None),
            }
        }
    }
    Ok(None)
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    More,
    Done,
    GivenUp,
}

/// The password so far.
struct Typing {
    text: String,
}

impl Default for Typing {
    fn default() -> Self {
        // Room for all of it at once, so that growing leaves no copies behind.
        Self {
            text: String::with_capacity(MAX_PASSWORD_BYTES),
        }
    }
}

impl Typing {
    fn key(&mut self, key: KeyEvent) -> Step {
        if key.kind == KeyEventKind::Release {
            return Step::More;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Step::Done,
            KeyCode::Esc => return Step::GivenUp,
            KeyCode::Char('c' | 'd') if control => return Step::GivenUp,
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char(c) if !control && self.text.len() + c.len_utf8() <= MAX_PASSWORD_BYTES => {
                self.text.push(c);
            }
            KeyCode::Backspace => drop(self.text.pop()),
            _ => {}
        }
        Step::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[(KeyCode, KeyModifiers)]) -> (String, Option<Step>) {
        let mut typing = Typing::default();
        let last = keys
            .iter()
            .map(|(code, modifiers)| typing.key(KeyEvent::new(*code, *modifiers)))
            .last();
        (typing.text, last)
    }

    fn plain(text: &str) -> Vec<(KeyCode, KeyModifiers)> {
        text.chars()
            .map(|c| (KeyCode::Char(c), KeyModifiers::NONE))
            .collect()
    }

    #[test]
    fn what_is_typed_can_be_corrected_until_return() {
        let mut keys = plain("wrong");
        keys.push((KeyCode::Char('u'), KeyModifiers::CONTROL));
        keys.extend(plain("abcdx"));
        keys.push((KeyCode::Backspace, KeyModifiers::NONE));
        keys.push((KeyCode::Enter, KeyModifiers::NONE));
        assert_eq!(typed(&keys), ("abcd".to_owned(), Some(Step::Done)));
    }

    #[test]
    fn escape_and_control_c_give_up() {
        for key in [
            (KeyCode::Esc, KeyModifiers::NONE),
            (KeyCode::Char('c'), KeyModifiers::CONTROL),
        ] {
            assert_eq!(typed(&[key]).1, Some(Step::GivenUp));
        }
        assert_eq!(typed(&plain("cd")).1, Some(Step::More));
    }

    #[test]
    fn an_endless_password_is_cut() {
        let (text, _) = typed(&plain(&"x".repeat(MAX_PASSWORD_BYTES + 9)));
        assert_eq!(text.len(), MAX_PASSWORD_BYTES);
    }
}
