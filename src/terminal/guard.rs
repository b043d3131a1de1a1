//! The terminal as it was found, given back whatever happens.

use std::io::{self, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Alternate screen, cursor hidden, no wrap at the right edge.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
/// The opposite, in the opposite order, with any synchronized update ended first.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Holds the terminal in raw mode on the alternate screen; dropping it restores everything.
///
/// A panic of the thread that made it restores first and reports after, so that the report can be read. SIGTERM,
/// SIGHUP and SIGINT set a flag instead of ending the process with the terminal in disorder.
pub(super) struct Guard {
    signalled: Arc<AtomicBool>,
    signals: Vec<SigId>,
    restored: Arc<AtomicBool>,
}

impl Guard {
    pub fn enter() -> io::Result<Self> {
        let restored = Arc::new(AtomicBool::new(false));
        let mut guard = Self {
            signalled: Arc::default(),
            signals: Vec::new(),
            restored: Arc::clone(&restored),
        };
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            guard
                .signals
                .push(signal_hook::flag::register(signal, Arc::clone(&guard.signalled))?);
        }
        restore_before_panic_report(restored);
        enable_raw_mode()?;
        let mut out = io::stdout().lock();
        out.write_all(ENTER)?;
        out.flush()?;
        Ok(guard)
    }

    /// True once a signal asked the process to end.
    pub fn signalled(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore(&self.restored);
        for id in self.signals.drain(..) {
            signal_hook::low_level::unregister(id);
        }
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
