//! The seam between a session and whatever brings its pictures: direct sources now, remote hosts later.
//!
//! A transport yields access units and takes input; nothing above this seam knows which one it has.

use crossdesk_core::automation::{ControlOutcome, Display, TransportDiagnostics, TransportState};
use crossdesk_core::control::ControlMessage;
use crossdesk_core::media::AccessUnit;

mod backoff;
pub mod direct;
#[cfg(target_os = "linux")]
pub(crate) mod ice_servers;
mod reconnect;
#[cfg(target_os = "linux")]
pub mod remote;
pub mod signaling;
pub mod webrtc;

/// A running connection; dropping it closes it without blocking for longer than a moment.
pub trait Transport: Send + Sync {
    /// Asks the sender for a keyframe soon; never blocks, and senders that cannot ignore it.
    fn request_keyframe(&self);

    /// Hands one input message over; never blocks.
    fn send_control(&self, message: ControlMessage) -> ControlOutcome;

    /// Asks for another display; a transport with one display ignores it.
    fn select_display(&self, index: u8);

    /// Counters of this connection, as they stand.
    fn diagnostics(&self) -> TransportDiagnostics;
}

/// Where a transport delivers. Called on its own threads; must not block.
pub trait TransportOutput: Send + Sync {
    /// One whole access unit.
    fn unit(&self, unit: AccessUnit);
    /// One event, in order.
    fn event(&self, event: TransportEvent);
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportEvent {
    /// It moved to another state; after `Ended` or `Failed` nothing follows.
    State(TransportState),
    /// The displays the remote side offers; a direct source announces none.
    Displays(Vec<Display>),
    /// The remote operating system; a direct source announces none.
    HostPlatform(String),
    /// The remote side takes, or no longer takes, input; a direct source never does.
    Control {
        /// True when input is accepted.
        allowed: bool,
        /// True when text can be typed in one message.
        text: bool,
    },
}
