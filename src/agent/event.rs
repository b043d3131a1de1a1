//! Everything that can wake the loop.

use crossdesk_core::automation::{CaptureFailure, CaptureImage};
use crossdesk_pipelines::receive::ReceiveEvent;

use super::input::Line;
use super::output::Written;
use super::start::Password;
use crate::transport::TransportEvent;

/// One thing that happened outside the loop. All of them arrive on one bounded channel.
#[derive(Debug)]
pub enum AgentEvent {
    /// A request line; its sender waits for a credit before the next.
    Line(Line),
    /// stdin ended.
    InputClosed,
    /// The stdout thread got somewhere.
    Written(Written),
    /// SIGTERM or SIGINT.
    Signal,
    /// The password descriptor was read, or could not be.
    Password(Password),
    /// GStreamer is ready, or cannot be used.
    MediaReady(Result<(), String>),
    /// A newer picture lies in the slot. Coalesced: one wake-up may stand for many pictures.
    Picture,
    /// A viewer needs an IDR picture.
    KeyframeWanted,
    /// From the receive graph of the connection numbered `connection`.
    Receive(ReceiveEvent),
    /// From the transport.
    Transport(TransportEvent),
    /// A capture job ended.
    Captured {
        /// Its number.
        job: u64,
        /// What came of it.
        result: Result<CaptureImage, CaptureFailure>,
    },
}
