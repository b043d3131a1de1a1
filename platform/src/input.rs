//! The seam through which a guest's input reaches the desktop.

use crossdesk_core::control::ControlMessage;
use crossdesk_core::time::Monotonic;

use crate::desktop::{DesktopError, DisplayArea};

/// Injects input as if it came from the desk's own keyboard and mouse; never waits for a program to react.
pub trait Input: Send {
    /// Points of later messages refer to this area.
    fn select(&mut self, area: DisplayArea);

    /// Does what `message` says; text that takes several steps, and all that follows it, may wait for
    /// [`handle_timeout`](Self::handle_timeout).
    ///
    /// # Errors
    /// `Busy` when too much waits already, else what the desktop says.
    fn handle(&mut self, now: Monotonic, message: ControlMessage) -> Result<(), DesktopError>;

    /// Goes on with what waited for `now`.
    ///
    /// # Errors
    /// What the desktop says.
    fn handle_timeout(&mut self, now: Monotonic) -> Result<(), DesktopError>;

    /// When [`handle_timeout`](Self::handle_timeout) has something to do; `None` when nothing waits.
    fn next_deadline(&self) -> Option<Monotonic>;

    /// Releases every key and button pressed through this, and forgets everything that waits.
    ///
    /// # Errors
    /// What the desktop says; then nothing counts as held any more.
    fn release_all(&mut self) -> Result<(), DesktopError>;
}
