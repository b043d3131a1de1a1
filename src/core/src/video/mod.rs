//! What a viewer is owed: tickets, admission, flow control and the binary frames of live video.
//!
//! [`Hub`] is the machine: every rule of "Live video" in the automation protocol on virtual time, without a socket.
//! The listener in the root package owns sockets and carries out [`Effect`]s. [`Handoff`] is the bounded meeting
//! point between streaming threads and that listener. Nothing here reads a clock, logs, or copies a payload.

mod close;
mod flow;
mod frame;
mod grant;
mod group;
mod handoff;
mod hub;
mod latency;
mod limits;
mod message;
mod tickets;
pub mod websocket;

pub use close::{Close, CloseReason};
pub use frame::{
    CDN1_HEADER_BYTES, CDV1_HEADER_BYTES, Message, MessageError, Nv12Picture, cdn1_message_bytes, cdv1_header,
};
pub use grant::{Grant, GrantRefusal, OriginRule, PanelOrigin, SessionId, Ticket, ViewId};
pub use handoff::Handoff;
pub use hub::{Admission, ConnectionId, Effect, Hub, HubStats, ViewerReport};
pub use latency::Percentiles;
pub use limits::*;
pub use message::{ClientMessage, NotAMessage, parse_client_message, parse_ticket_message};

/// What the binary messages of a connection carry; fixed when the session connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Compressed access units behind a `CDV1` header.
    H264AnnexB,
    /// Decoded pictures behind a `CDN1` header.
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
