//! The one table of error codes: what happened, who can mend it, whether trying again helps.
//!
//! Replies of the automation protocol, `status.error` and exit messages all draw from it; `docs/protocol.md`
//! shows the same rows and a test keeps the two equal.

/// Who has to act so that the error goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// The program that sent the request: the request itself is at fault or comes at the wrong time.
    Caller,
    /// The person in front of the panel.
    Person,
    /// The remote host or the media source.
    Peer,
    /// Whoever looks after this machine: plug-ins, drivers, network, credentials.
    Environment,
    /// Nobody at once: a documented limit was reached, wait or ask for less.
    Limit,
    /// The authors of this program.
    Bug,
}

impl Actor {
    /// The word used in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Person => "person",
            Self::Peer => "peer",
            Self::Environment => "environment",
            Self::Limit => "limit",
            Self::Bug => "bug",
        }
    }
}

/// Declares the enum and its table in one place, so that a code cannot exist without its row.
macro_rules! error_codes {
    ($($variant:ident, $code:literal, $actor:ident, $retry:literal, $effect:literal, $cause:literal;)+) => {
        /// A stable error code; its text never changes once published.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $cause] $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code as it appears on the wire, in upper snake case.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Who has to act.
            pub const fn actor(self) -> Actor {
                match self { $(Self::$variant => Actor::$actor,)+ }
            }

            /// True when the same request can succeed later without anybody changing it.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retry,)+ }
            }

            /// True when input may already have reached the remote host.
            pub const fn side_effect_possible(self) -> bool {
                match self { $(Self::$variant => $effect,)+ }
            }

            /// What happened, in one sentence without a full stop.
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$variant => $cause,)+ }
            }
        }
    };
}

// variant, code, who acts, retryable, side effect possible, cause
error_codes! {
    InvalidJson, "INVALID_JSON", Caller, false, false,
        "the line is not one UTF-8 JSON object, or a number or escape in it stands for no value";
    RequestTooLarge, "REQUEST_TOO_LARGE", Caller, false, false,
        "the line is longer than 65536 bytes, its newline included";
    RequestTooDeep, "REQUEST_TOO_DEEP", Caller, false, false,
        "the request nests deeper than 32 levels";
    InvalidRequest, "INVALID_REQUEST", Caller, false, false,
        "`id` or `method` is missing or of the wrong type, or a key appears twice in one object";
    UnknownMethod, "UNKNOWN_METHOD", Caller, false, false,
        "there is no method of that name";
    InvalidArgument, "INVALID_ARGUMENT", Caller, false, false,
        "an argument is missing, unknown, of the wrong type or out of its range";
    DuplicateId, "DUPLICATE_ID", Caller, false, false,
        "a request with this id is still in flight";
    ProtocolUnsupported, "PROTOCOL_UNSUPPORTED", Caller, false, false,
        "`hello` names a protocol this program does not speak";
    AlreadyConnected, "ALREADY_CONNECTED", Caller, false, false,
        "this process has used its one connection attempt; start a new process";
    NotConnected, "NOT_CONNECTED", Caller, false, false,
        "there is no connection: `connect` was not called, or the connection has ended";
    NotReady, "NOT_READY", Caller, true, false,
        "no picture of the current display generation has arrived yet; poll `status` until `ready`";
    ControlUnsupported, "CONTROL_UNSUPPORTED", Caller, false, false,
        "a direct source takes no input; connect with mode `observe`";
    ControlDenied, "CONTROL_DENIED", Caller, false, false,
        "the connection is observe-only, or the remote host does not grant control";
    ControlDisabled, "CONTROL_DISABLED", Caller, false, false,
        "input was switched off with `control`; switch it on first";
    HumanPaused, "HUMAN_PAUSED", Person, false, false,
        "a person has paused control; only `viewer_control` `resume` lifts it";
    TextUnsupported, "TEXT_UNSUPPORTED", Peer, false, false,
        "the remote host did not negotiate text input";
    DisplayUnavailable, "DISPLAY_UNAVAILABLE", Caller, false, false,
        "the remote host has no display of that index";
    ObservationInvalid, "OBSERVATION_INVALID", Caller, false, false,
        "the observation is unknown, older than 30 s, or from another generation or geometry; take a new screenshot";
    CoordinateOutOfBounds, "COORDINATE_OUT_OF_BOUNDS", Caller, false, false,
        "a coordinate lies outside the observation's image";
    RegionOutOfBounds, "REGION_OUT_OF_BOUNDS", Caller, false, false,
        "the region lies wholly outside the picture";
    OperationConflict, "OPERATION_CONFLICT", Caller, false, false,
        "the operation id was used before with other arguments";
    Busy, "BUSY", Limit, true, false,
        "an input sequence is running, or too many captures or grants are waiting";
    FrameTimeout, "FRAME_TIMEOUT", Peer, true, false,
        "no usable picture arrived within `timeout_ms`";
    VideoStale, "VIDEO_STALE", Peer, true, false,
        "the newest picture is older than 2 s, so input would be blind";
    GenerationChanged, "GENERATION_CHANGED", Caller, true, false,
        "the display generation is not, or no longer, the current one";
    Cancelled, "CANCELLED", Caller, false, false,
        "`cancel` ended the request";
    ImageTooLarge, "IMAGE_TOO_LARGE", Limit, false, false,
        "the image does not fit its byte limit even at the smallest size";
    CaptureFailed, "CAPTURE_FAILED", Environment, true, false,
        "decoder memory could not be read or encoded";
    VideoDisabled, "VIDEO_DISABLED", Caller, false, false,
        "the program runs without `--video-ws`";
    VideoUnavailable, "VIDEO_UNAVAILABLE", Environment, true, false,
        "the loopback video listener is not running";
    TicketConflict, "TICKET_CONFLICT", Caller, false, false,
        "the ticket was granted before";
    SendFailed, "SEND_FAILED", Peer, false, true,
        "an input message failed to leave; it may have been submitted all the same";
    ControlLost, "CONTROL_LOST", Peer, false, true,
        "control ended while an input sequence was running";
    ConnectTimeout, "CONNECT_TIMEOUT", Peer, false, false,
        "no picture arrived within 30 s of `connect`";
    ConnectionLost, "CONNECTION_LOST", Peer, false, false,
        "the connection broke and could not be restored";
    Disconnected, "DISCONNECTED", Caller, false, false,
        "the connection was ended on request";
    TransportUnavailable, "TRANSPORT_UNAVAILABLE", Caller, false, false,
        "this program has no way to reach the device; name a signaling server with `--server` or a direct source with `--source`";
    AuthenticationFailed, "AUTHENTICATION_FAILED", Person, false, false,
        "the other side refused the credentials";
    CredentialsMissing, "CREDENTIALS_MISSING", Person, false, false,
        "credentials are needed and the password descriptor held none";
    SignalingTimeout, "SIGNALING_TIMEOUT", Environment, false, false,
        "the signaling server could not be reached, or did not let this program in, in time";
    SignalingUntrusted, "SIGNALING_UNTRUSTED", Environment, false, false,
        "the certificate of the signaling server is not trusted";
    RateLimited, "RATE_LIMITED", Limit, false, false,
        "the signaling server refuses further attempts for a while";
    DeviceUnavailable, "DEVICE_UNAVAILABLE", Peer, false, false,
        "the device is offline or unknown, or did not answer";
    NoRoute, "NO_ROUTE", Environment, false, false,
        "both ends know each other and no network path between them works";
    SourceEnded, "SOURCE_ENDED", Peer, false, false,
        "the source came to its end";
    SourceRefused, "SOURCE_REFUSED", Peer, false, false,
        "the source refused the connection or the request";
    SourceUnreachable, "SOURCE_UNREACHABLE", Environment, false, false,
        "the source could not be reached or opened";
    SourceStalled, "SOURCE_STALLED", Peer, false, false,
        "the source stopped delivering access units";
    SourceInvalid, "SOURCE_INVALID", Caller, false, false,
        "the source address is malformed or names something that holds no H.264";
    StreamUnsupported, "STREAM_UNSUPPORTED", Peer, false, false,
        "the stream uses a size or chroma format that cannot be shown";
    DecoderUnavailable, "DECODER_UNAVAILABLE", Environment, false, false,
        "no installed decoder shows this stream correctly; run `doctor`";
    PluginMissing, "PLUGIN_MISSING", Environment, false, false,
        "a GStreamer plug-in the request needs is not installed; run `doctor`";
    Internal, "INTERNAL", Bug, false, false,
        "a rule inside this program was broken";
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_upper_snake_case() {
        let mut seen = HashSet::new();
        for code in ErrorCode::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} appears twice");
            assert!(
                text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'),
                "{text}"
            );
            assert!(
                !text.starts_with('_') && !text.ends_with('_') && !text.contains("__"),
                "{text}"
            );
        }
    }

    #[test]
    fn causes_are_clauses() {
        for code in ErrorCode::ALL {
            let cause = code.cause();
            assert!(!cause.ends_with('.') && !cause.contains('|'), "{cause}");
        }
    }

    #[test]
    fn an_uncertain_effect_is_never_retryable() {
        for code in ErrorCode::ALL {
            assert!(!(code.retryable() && code.side_effect_possible()), "{code}");
        }
    }
}
