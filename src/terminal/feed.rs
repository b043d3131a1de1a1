//! The newest picture and state on their way from streaming threads to the drawing loop.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossdesk_pipelines::picture::Picture;

/// Writes what the terminal shows; cheap to clone and never blocks longer than a pointer swap.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    slot: Arc<Mutex<Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    picture: Option<Picture>,
    decoder: Option<String>,
    note: Option<String>,
    ended: Option<String>,
}

/// Everything that changed since the last look.
#[derive(Debug, Default)]
pub(super) struct News {
    pub picture: Option<Picture>,
    pub decoder: Option<String>,
    pub note: Option<String>,
    pub ended: Option<String>,
}

impl Feed {
    /// A feed with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows `picture` next; a picture nobody drew yet is replaced.
    pub fn picture(&self, picture: Picture) {
        self.lock().picture = Some(picture);
    }

    /// Names the decoder in the status line.
    pub fn decoder(&self, name: impl Into<String>) {
        self.lock().decoder = Some(name.into());
    }

    /// Says something in the status line, such as why pictures are missing; an empty text clears it.
    pub fn note(&self, text: impl Into<String>) {
        self.lock().note = Some(text.into());
    }

    /// Ends the drawing loop after what was fed so far is drawn; the first reason counts.
    pub fn end(&self, reason: impl Into<String>) {
        self.lock().ended.get_or_insert_with(|| reason.into());
    }

    pub(super) fn take(&self) -> News {
        let mut slot = self.lock();
        News {
            picture: slot.picture.take(),
            decoder: slot.decoder.take(),
            note: slot.note.take(),
            ended: slot.ended.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        // The slot is valid after every statement, so a panic elsewhere does not spoil it.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
