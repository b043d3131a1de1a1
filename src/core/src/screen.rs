//! The seam between a desktop that is shown and the graph that encodes it.
//!
//! The platform crate implements [`Screen`], the capture graph reads from one; neither knows the other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::units::{PixelRect, PixelSize};

/// Pixels of a screen: four bytes each, blue, green, red and one without meaning.
#[derive(Clone, Copy)]
pub struct ScreenPixels<'a> {
    /// Rows from top to bottom.
    pub data: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Visible columns and rows.
    pub size: PixelSize,
}

impl fmt::Debug for ScreenPixels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScreenPixels")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Why a screen cannot be shown any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenError {
    /// What draws the desktop is gone, or does not let us look any more.
    ServerGone(String),
    /// The display is gone while the desktop goes on.
    DisplayGone(String),
}

impl fmt::Display for ScreenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerGone(reason) => write!(f, "the desktop is gone: {reason}"),
            Self::DisplayGone(name) => write!(f, "the display {name} is gone"),
        }
    }
}

impl std::error::Error for ScreenError {}

/// Ends a [`Screen::wait`] on another thread, at once or the next one.
pub trait Waker: Send + Sync {
    /// Never blocks.
    fn wake(&self);
}

/// One display that can be looked at.
pub trait Screen: Send {
    /// Its size as of the newest [`grab`](Self::grab).
    fn size(&self) -> PixelSize;

    /// Waits until something changes, the waker is used or `timeout` is over; true when something changed since this
    /// said so last, and since the newest grab.
    ///
    /// # Errors
    /// When there is nothing to wait for any more.
    fn wait(&mut self, timeout: Duration) -> Result<bool, ScreenError>;

    /// Takes the picture as it is now and has `read` look at it, with the areas that may differ from the picture
    /// before: all of it after a change of size.
    ///
    /// # Errors
    /// When there is no picture any more.
    fn grab(&mut self, read: &mut dyn FnMut(ScreenPixels<'_>, &[PixelRect])) -> Result<(), ScreenError>;

    /// Wakes this screen's waiter.
    fn waker(&self) -> Arc<dyn Waker>;
}
