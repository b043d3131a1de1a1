//! Screens: where pictures go, and the way back when a person has seen enough.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crossdesk_pipelines::gst::window::{Window, WindowEvent};
use crossdesk_pipelines::picture::Picture;

use crate::terminal::Feed;

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
            End::Failed(reason) => reason.clone(),
        };
        // The first reason counts, here as in the feed.
        let _ = self.end.set(end);
        self.feed.end(reason);
    }
}

/// A native window.
pub struct WindowScreen {
    window: Window,
    end: OnceLock<End>,
}

/// How often the window's loop looks whether the stream has ended.
const LOOK: Duration = Duration::from_millis(100);

impl WindowScreen {
    /// Opens the window.
    pub fn open(title: &str) -> anyhow::Result<Self> {
        Ok(Self {
            window: Window::open(title).map_err(anyhow::Error::msg)?,
            end: OnceLock::new(),
        })
    }

    /// Waits until the window is closed or the stream ends; `None` when the person closed it.
    pub fn run(&self) -> Option<End> {
        loop {
            if let Some(end) = self.end.get() {
                return Some(end.clone());
            }
            match self.window.poll(LOOK) {
                Some(WindowEvent::Closed) => return None,
                Some(WindowEvent::Failed(reason)) => return Some(End::Failed(reason)),
                None => {}
            }
        }
    }
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
        tracing::warn!(text, "the stream");
    }

    fn end(&self, end: End) {
        let _ = self.end.set(end);
    }
}

/// The newest picture for whoever asks, for output that is no terminal.
#[derive(Default)]
pub struct StillScreen {
    state: Mutex<Still>,
    changed: Condvar,
}

#[derive(Default)]
struct Still {
    picture: Option<Picture>,
    end: Option<End>,
}

impl StillScreen {
    /// Waits for a picture numbered `sequence` or later, at most for `patience`; else says why there is none.
    pub fn next(&self, sequence: u32, patience: Duration) -> Result<Picture, End> {
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
            (Some(picture), _) if picture.sequence >= sequence => Ok(picture),
            (_, Some(end)) => Err(end.clone()),
            _ => Err(End::Failed("no picture came; is the source sending?".to_owned())),
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
        tracing::warn!(text, "the stream");
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

    #[test]
    fn a_picture_that_came_before_the_end_is_still_shown() {
        let screen = StillScreen::default();
        screen.picture(picture(3));
        screen.end(End::Finished);
        assert_eq!(screen.next(2, Duration::ZERO).map(|p| p.sequence), Ok(3));
        assert_eq!(screen.next(4, Duration::ZERO).err(), Some(End::Finished));
    }

    #[test]
    fn silence_is_a_failure_with_a_reason() {
        let screen = StillScreen::default();
        screen.picture(picture(1));
        let end = screen.next(2, Duration::ZERO).err();
        assert!(matches!(end, Some(End::Failed(reason)) if reason.contains("no picture")));
    }

    #[test]
    fn only_the_first_end_counts() {
        let screen = TerminalScreen::default();
        screen.end(End::Failed("gone".to_owned()));
        screen.end(End::Finished);
        assert_eq!(screen.ended(), Some(End::Failed("gone".to_owned())));
    }
}
