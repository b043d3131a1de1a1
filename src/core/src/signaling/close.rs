//! Why the server ends a socket, and what its peer is told.

/// Why a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CloseReason {
    /// No login in time.
    LoginTimeout,
    /// No heartbeat in time.
    HeartbeatTimeout,
    /// A text that is no JSON object with a `type`.
    InvalidMessage,
    /// Too many messages behind one that waits for the store.
    Parked,
    /// Too many messages wait on the whole server.
    Busy,
    /// The peer reads more slowly than messages for it arrive.
    SendBacklog,
    /// The server stops.
    Shutdown,
    /// A binary message.
    NotText,
    /// Text that is not UTF-8.
    NotUtf8,
    /// A message over the limit.
    TooLarge,
    /// Not RFC 6455.
    ProtocolError,
}

/// The content of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// RFC 6455 section 7.4.1 status code.
    pub code: u16,
    /// The reason as text.
    pub text: &'static str,
}

impl CloseReason {
    /// What the peer is told.
    pub const fn close(self) -> Close {
        let (code, text) = match self {
            Self::LoginTimeout => (1008, "Authentication timeout"),
            Self::HeartbeatTimeout => (1001, "Heartbeat timeout"),
            Self::InvalidMessage => (1007, "Invalid signaling message"),
            Self::Parked => (1008, "Message backlog limit"),
            Self::Busy => (1013, "Server busy"),
            Self::SendBacklog => (1008, "Send backlog limit"),
            Self::Shutdown => (1001, "Server shutdown"),
            Self::NotText => (1003, "Text messages only"),
            Self::NotUtf8 => (1007, "Text is not UTF-8"),
            Self::TooLarge => (1009, "Message over 65536 bytes"),
            Self::ProtocolError => (1002, "Protocol error"),
        };
        Close { code, text }
    }
}
