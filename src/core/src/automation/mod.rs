//! The automation protocol on stdin and stdout: strict requests, replies, and the session they drive.
//!
//! [`Session`] is a machine on virtual time. The loop that owns stdin, the transport, the pipeline and the video
//! service feeds it lines and [`Event`]s, carries out the [`Effect`]s it polls, and wakes it at `next_deadline()`.
//! What a request may say is in [`request`], how a line is read in [`parse`], what comes back in `reply`.

mod acting;
mod capture;
mod connection;
pub mod effect;
pub mod event;
mod fields;
mod json;
mod observation;
mod operation;
pub mod output;
pub mod parse;
mod parse_action;
mod reply;
pub mod request;
mod sequence;
pub mod session;
mod status;
mod viewing;

pub use effect::{CaptureJob, CaptureKind, Effect, ExitReason, StartTransport, VideoGrant};
pub use event::{
    CaptureFailure, CaptureImage, ControlOutcome, DecoderFailure, DecoderReport, Display, Event,
    LatencyStats, Percentiles, PictureInfo, TransportDiagnostics, TransportState, VideoOutputStats,
    ViewerLatency,
};
pub use output::OutputQueue;
pub use parse::{Refusal, parse_line};
pub use request::{
    Action, Connect, DecodePath, DecoderPreference, Method, Mode, Request, Screenshot, Token, VideoOpen,
    ViewerOperation,
};
pub use session::{Session, SessionConfig, SessionState};

/// The protocol's name, in `hello` and in `doctor --json`.
pub const PROTOCOL: &str = "crossdesk-automation/1";
/// How live video travels, in `hello`, `video_open` and `doctor --json`.
pub const VIDEO_TRANSPORT: &str = "loopback-websocket/1";
/// What the loopback video listener can serve, in `hello` and `doctor --json`.
pub const VIDEO_PROTOCOLS: [&str; 2] = ["h264-annexb/1", "nv12/1"];
/// What `connect.decoder` accepts, in `hello` and `doctor --json`.
pub const VIDEO_DECODERS: [&str; 2] = ["auto", "software"];

/// Longest request line in bytes, newline included (protocol, "Envelope").
pub const MAX_REQUEST_BYTES: usize = 65_536;
/// Longest reply line in bytes (`hello.max_response_bytes`): a 2 MiB PNG in base64 plus its metadata fits.
pub const MAX_RESPONSE_BYTES: usize = 4_194_304;
/// Deepest nesting of a request, its outer object included (protocol, "Envelope").
pub const MAX_DEPTH: usize = 32;
