//! Screens: where pictures go, and the way back when a person has seen enough.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crossdesk_pipelines::gst::window::{Window, WindowEvent};
use crossdesk_pipelines::picture::Picture;

use crate::cli::Printer;
use crate::terminal::{EndSignals, Feed};

use super::watch::{End, Screen};

/// The terminal, fed through its slot for the newest picture.
#[derive(Default)]
pub struct TerminalScreen {
    /// What the drawing loop reads.
    pub feed: Feed,
    end: OnceLock<End>,
}

impl TerminalScreen {
    /// Why the stream ended, when it did.
    pub fn ended(&self) -> Option<End> {
        self.end.get().cloned()
    }
}

impl Screen for TerminalScreen {
    fn picture(&self, picture: Picture) {
        self.feed.picture(picture);
    }

    fn decoder(&self, name: &str) {
        self.feed.decoder(name);
    }

    fn note(&self, text: &str) {
        self.feed.note(text);
    }

    fn end(&self, end: End) {
        let reason = match &end {
            End::Finished => "the stream ended".to_owned(),
            End::Left(reason) | End::Failed(reason) => reason.clone(),
        };
        // The first reason counts, here as in the feed.
        let _ = self.end.set(end);
        self.feed.end(reason);
    }
}

/// A native window; what there is to say beside it goes to standard error.
pub struct WindowScreen {
    window: Window,
    printer: Printer,
    end: OnceLock<End>,
}

/// How often a loop that waits looks whether the stream has ended or a signal came.
const LOOK: Duration = Duration::from_millis(100);

impl WindowScreen {
    /// Opens the window.
    pub fn open(title: &str, printer: Printer) -> anyhow::Result<Self> {
        Ok(Self {
            window: Window::open(title).map_err(anyhow::Error::msg)?,
            printer,
            end: OnceLock::new(),
        })
    }

    /// Waits until the window is closed, a signal asks for the end or the stream ends; `None` unless it was the stream.
    pub fn run(&self, signals: &EndSignals) -> Option<End> {
        stand(&self.end, || signals.asked(), || self.window.poll(LOOK))
    }
}

fn stand(
    end: &OnceLock<End>,
    asked: impl Fn() -> bool,
    mut poll: impl FnMut() -> Option<WindowEvent>,
) -> Option<End> {
    while !asked() {
        if let Some(end) = end.get() {
            return Some(end.clone());
        }
        match poll() {
            Some(WindowEvent::Closed) => return None,
            Some(WindowEvent::Failed(reason)) => return Some(End::Failed(reason)),
            None => {}
        }
    }
    None
}

impl Screen for WindowScreen {
    fn picture(&self, picture: Picture) {
        if let Err(error) = self.window.show(&picture) {
            tracing::debug!(%error, "a picture was not shown");
        }
    }

    fn decoder(&self, name: &str) {
        tracing::info!(name, "decoder");
    }

    fn note(&self, text: &str) {
        if !text.is_empty() {
            self.printer.note(text);
        }
    }

    fn end(&self, end: End) {
        let _ = self.end.set(end);
    }
}

/// The newest picture for whoever asks, for output on which nothing can be drawn.
pub struct StillScreen {
    printer: Printer,
    state: Mutex<Still>,
    changed: Condvar,
}

#[derive(Default)]
struct Still {
    picture: Option<Picture>,
    /// What was said last, such as why nothing comes.
    note: String,
    end: Option<End>,
}

impl StillScreen {
    /// A screen without a picture that says everything else with `printer`.
    pub fn new(printer: Printer) -> Self {
        Self {
            printer,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for a picture numbered `sequence` or later, at most for `patience` and until `asked` to end; else says
    /// why there is none.
    pub fn next(&self, sequence: u32, patience: Duration, asked: impl Fn() -> bool) -> Result<Picture, End> {
        let mut left = patience;
        loop {
            let look = left.min(LOOK);
            let found = self.look(sequence, look);
            left -= look;
            match found {
                _ if asked() => return Err(End::Finished),
                Some(found) => return found,
                None if left.is_zero() => return Err(End::Failed(self.silence())),
                None => {}
            }
        }
    }

    fn silence(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.note.is_empty() {
            "no picture came; is the source sending?".to_owned()
        } else {
            format!("no picture came; {}", state.note)
        }
    }

    /// The picture or the end, when either is there within `patience`.
    fn look(&self, sequence: u32, patience: Duration) -> Option<Result<Picture, End>> {
        let waits = |still: &mut Still| {
            let fresh = still
                .picture
                .as_ref()
                .is_some_and(|picture| picture.sequence >= sequence);
            !fresh && still.end.is_none()
        };
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, patience, waits)
            .unwrap_or_else(PoisonError::into_inner);
        match (state.picture.take(), &state.end) {
            (Some(picture), _) if picture.sequence >= sequence => Some(Ok(picture)),
            (_, Some(end)) => Some(Err(end.clone())),
            _ => None,
        }
    }

    fn change(&self, change: impl FnOnce(&mut Still)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl Screen for StillScreen {
    fn picture(&self, picture: Picture) {
        self.change(|still| still.picture = Some(picture));
    }

    fn decoder(&self, name: &str) {
        tracing::info!(name, "decoder");
    }

    fn note(&self, text: &str) {
        if !text.is_empty() {
            self.printer.note(text);
        }
        self.change(|still| text.clone_into(&mut still.note));
    }

    fn end(&self, end: End) {
        self.change(|still| {
            still.end.get_or_insert(end);
        });
    }
}

#[cfg(test)]
mod tests {
    use crossdesk_core::time::Monotonic;
    use crossdesk_core::units::PixelSize;
    use crossdesk_pipelines::fake::PlainFrame;

    use super::*;

    fn picture(sequence: u32) -> Picture {
        PlainFrame::solid(PixelSize::new(2, 2), [16, 128, 128]).into_picture(sequence, Monotonic::ZERO)
    }

    fn still() -> StillScreen {
        StillScreen::new(Printer::plain(80))
    }

    #[test]
    fn a_picture_that_came_before_the_end_is_still_shown() {
        let screen = still();
        let next = |sequence| screen.next(sequence, Duration::ZERO, || false);
        screen.picture(picture(3));
        screen.end(End::Finished);
        assert_eq!(next(2).map(|p| p.sequence), Ok(3));
        assert_eq!(next(4).err(), Some(End::Finished));
    }

    #[test]
    fn silence_is_a_failure_with_the_reason_that_was_told_last() {
        let screen = still();
        let next = || screen.next(2, Duration::ZERO, || false).err();
        screen.picture(picture(1));
        assert!(matches!(next(), Some(End::Failed(reason)) if reason.contains("is the source sending")));
        screen.note("reconnecting, attempt 1: gone");
        assert!(matches!(next(), Some(End::Failed(reason)) if reason.ends_with("attempt 1: gone")));
    }

    #[test]
    fn a_signal_ends_every_wait_without_a_complaint() {
        let waited = still().next(1, Duration::from_secs(3600), || true);
        assert_eq!(waited.err(), Some(End::Finished));
        let asked = std::cell::Cell::new(false);
        let poll = || {
            asked.set(true);
            None
        };
        assert_eq!(stand(&OnceLock::new(), || asked.get(), poll), None);
    }

    #[test]
    fn only_the_first_end_counts() {
        let screen = TerminalScreen::default();
        screen.end(End::Failed("gone".to_owned()));
        screen.end(End::Finished);
        assert_eq!(screen.ended(), Some(End::Failed("gone".to_owned())));
    }
}
