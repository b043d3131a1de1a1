//! What a viewer is owed: tickets, admission, flow control and the binary frames of live video.
//!
//! [`Hub`] is the machine: every rule of "Live video" in the automation protocol on virtual time, without a socket.
//! The listener in the root package owns sockets and carries out [`Effect`]s. [`Handoff`] is the bounded meeting
//! point between streaming threads and that listener. Nothing here reads a clock, logs, or copies a payload.

mod frame;
mod grant;
mod limits;
mod message;

pub use frame::{
    CDN1_HEADER_BYTES, CDV1_HEADER_BYTES, Message, MessageError, Nv12Picture, cdn1_message_bytes, cdv1_header,
};
pub use grant::{Grant, GrantRefusal, OriginRule, PanelOrigin, SessionId, Ticket, ViewId};
pub use limits::*;
pub use message::{ClientMessage, NotAMessage, parse_client_message, parse_ticket_message};

use serde::Serialize;

/// What the binary messages of a connection carry; fixed when the session connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Protocol {
    /// Compressed access units behind a `CDV1` header.
    #[serde(rename = "h264-annexb/1")]
    H264AnnexB,
    /// Decoded pictures behind a `CDN1` header.
    #[serde(rename = "nv12/1")]
    Nv12,
}

impl Protocol {
    /// The name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::H264AnnexB => "h264-annexb/1",
            Self::Nv12 => "nv12/1",
        }
    }
}

/// The transport name in `doctor`, `hello`, `video_open` and `status`.
pub const VIDEO_TRANSPORT: &str = "loopback-websocket/1";

/// The `video_output` object of `status`: counters only, never payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VideoOutput {
    /// Always [`VIDEO_TRANSPORT`].
    pub transport: TransportName,
    /// Authorised viewers connected now.
    pub viewers: usize,
    /// Access units or pictures waiting in the handoff.
    pub queued: usize,
    /// Bytes of those, as messages would carry them.
    pub queued_bytes: usize,
    /// Message bytes sent or being sent to viewers and not acknowledged yet, over all viewers.
    pub unacknowledged_bytes: usize,
    /// Handoff replacements and overflow, plus what single viewers skipped, since the process started.
    pub dropped: u64,
}

/// Serializes as [`VIDEO_TRANSPORT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportName;

impl Serialize for TransportName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(VIDEO_TRANSPORT)
    }
}
