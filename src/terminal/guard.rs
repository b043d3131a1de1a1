//! The terminal as it was found, given back whatever happens.

use std::io::{self, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use super::signals::EndSignals;

/// Alternate screen, cursor hidden, no wrap at the right edge.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
/// The opposite, in the opposite order, with any synchronized update ended first.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Holds the terminal in raw mode on the alternate screen; dropping it restores everything.
///
/// A panic of the thread that made it restores first and reports after, so that the report can be read. SIGTERM,
/// SIGHUP and SIGINT set a flag instead of ending the process with the terminal in disorder.
pub(super) struct Guard {
    signals: EndSignals,
    restored: Arc<AtomicBool>,
}

impl Guard {
    pub fn enter() -> io::Result<Self> {
        let guard = Self {
            signals: EndSignals::watch()?,
            restored: Arc::default(),
        };
        restore_before_panic_report(Arc::clone(&guard.restored));
        enable_raw_mode()?;
        let mut out = io::stdout().lock();
        out.write_all(ENTER)?;
        out.flush()?;
        Ok(guard)
    }

    /// True once a signal asked the process to end.
    pub fn signalled(&self) -> bool {
        self.signals.asked()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore(&self.restored);
    }
}

/// Restores the terminal unless that has happened; a terminal that is gone needs nothing.
fn restore(restored: &AtomicBool) {
    if restored.swap(true, Ordering::AcqRel) {
        return;
    }
    let mut out = io::stdout();
    let _ = out.write_all(LEAVE).and_then(|()| out.flush());
    let _ = disable_raw_mode();
}

/// Panics of other threads do not end the picture, so only this thread's are waited for.
fn restore_before_panic_report(restored: Arc<AtomicBool>) {
    let drawing = thread::current().id();
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == drawing {
            restore(&restored);
        }
        report(info);
    }));
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Runs on the terminal that the test below makes for it.
    #[test]
    #[ignore = "panics on purpose, as a child of the test below"]
    fn panics_while_it_draws() {
        let _guard = Guard::enter().unwrap();
        panic!("told to");
    }

    /// `script` gives its command a terminal; `stty` then says in which state that was left.
    #[test]
    fn a_panic_restores_the_terminal_before_it_is_reported() {
        let test = std::env::current_exe().unwrap();
        let name = "terminal::guard::tests::panics_while_it_draws";
        let command = format!(
            "'{}' {name} --exact --ignored --nocapture; stty -a",
            test.display()
        );
        let output = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let at = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("no {part:?} in {text:?}"))
        };
        let (enter, leave) = (str::from_utf8(ENTER).unwrap(), str::from_utf8(LEAVE).unwrap());
        assert!(at(enter) < at(leave) && at(leave) < at("told to"), "{text:?}");
        assert!(text.contains(" icanon") && !text.contains("-icanon"), "{text:?}");
    }
}
