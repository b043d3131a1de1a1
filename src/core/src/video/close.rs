//! Why a socket is closed, and what its peer is told.

/// Why the server closes a connection; the order is from admission to the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The HTTP handshake did not finish in time, or its place was needed.
    HandshakeTimeout,
    /// No ticket came in time.
    TicketTimeout,
    /// The first message was no ticket, or the ticket is unknown, spent, expired or not for this origin.
    /// One reason for all, so that nobody learns which.
    TicketRefused,
    /// Eight viewers are connected.
    TooManyViewers,
    /// A message that a viewer may not send.
    BadMessage,
    /// An acknowledgement of something that is not the oldest frame sent.
    BadAck,
    /// The oldest frame was not acknowledged in time.
    AckTimeout,
    /// A binary message; the protocol has text only.
    NotText,
    /// A text message that is not UTF-8.
    NotUtf8,
    /// A message over 1024 bytes.
    TooLarge,
    /// Bytes that are not RFC 6455 client frames.
    ProtocolError,
    /// `video_revoke`, or a newer grant for the same view.
    Revoked,
    /// The display generation changed.
    GenerationChanged,
    /// The session or the process ends.
    SessionEnded,
}

/// The content of a close frame, and how urgent it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// RFC 6455 section 7.4.1 status code.
    pub code: u16,
    /// Short text for whoever debugs a page.
    pub text: &'static str,
    /// True when a frame that is partly written must not be finished.
    pub cancels: bool,
}

impl CloseReason {
    /// What the peer is told.
    pub const fn close(self) -> Close {
        let (code, text, cancels) = match self {
            Self::HandshakeTimeout => (1008, "handshake timed out", false),
            Self::TicketTimeout => (1008, "no ticket in time", false),
            Self::TicketRefused => (1008, "ticket refused", false),
            Self::TooManyViewers => (1013, "too many viewers", false),
            Self::BadMessage => (1008, "message not understood", false),
            Self::BadAck => (1008, "acknowledgement out of order", false),
            Self::AckTimeout => (1008, "acknowledgement timed out", false),
            Self::NotText => (1003, "text messages only", false),
            Self::NotUtf8 => (1007, "text is not UTF-8", false),
            Self::TooLarge => (1009, "message over 1024 bytes", false),
            Self::ProtocolError => (1002, "protocol error", false),
            Self::Revoked => (1008, "revoked", true),
            Self::GenerationChanged => (1001, "display generation changed", true),
            Self::SessionEnded => (1001, "session ended", true),
        };
        Close { code, text, cancels }
    }
}
