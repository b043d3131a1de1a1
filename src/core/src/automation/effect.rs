//! What the session wants done. The loop carries effects out in the order polled and feeds results back.

use bytes::Bytes;

use crate::control::ControlMessage;
use crate::units::PixelRect;

use super::request::{Connect, Token};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write these bytes to stdout: one JSON object and its newline.
    Reply(Bytes),
    /// Start the transport, the receive graph and, with `--video-ws`, the video generation.
    StartTransport(StartTransport),
    /// Stop the transport and the receive graph; nothing follows from them.
    StopTransport,
    /// Send input. Answered by [`super::Event::ControlSent`] with the same number.
    SendControl {
        /// Number of this send.
        send: u64,
        /// What to send.
        message: ControlMessage,
    },
    /// Select a display and begin a new video generation.
    SelectDisplay {
        /// 0..=63.
        display: u8,
        /// The generation that starts now.
        generation: u32,
    },
    /// Encode the newest picture. Answered by [`super::Event::CaptureDone`] with the same number, always and once.
    Capture(CaptureJob),
    /// The result of this job no longer matters; it is answered all the same, quickly if possible.
    CancelCapture {
        /// Number of the job.
        job: u64,
    },
    /// Grant one viewer. Answered by [`super::Event::VideoOpened`] with the same number.
    OpenVideo(VideoGrant),
    /// Close sockets and void tickets of one view, or of all. Answered by [`super::Event::VideoRevoked`] with the
    /// same number once no byte of video can follow.
    RevokeVideo {
        /// Number to answer with.
        job: u64,
        /// The view; `None` for all.
        view: Option<Token>,
    },
    /// Ask the source for an IDR picture.
    RequestKeyframe,
    /// Write out what is queued and end the process with status 0.
    Exit(ExitReason),
}

/// Why the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The `exit` method.
    Requested,
    /// stdin came to its end.
    InputClosed,
    /// SIGTERM or SIGINT.
    Signal,
    /// Nobody reads stdout.
    OutputBlocked,
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartTransport {
    /// The caller's wishes.
    pub connect: Connect,
    /// The first generation of this connection.
    pub generation: u32,
}

/// What an image is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureKind {
    /// For the model, up to 2 MiB; creates an observation.
    Screenshot,
    /// For a panel, up to 256 KiB.
    Preview,
}

/// One picture to encode as PNG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureJob {
    /// Number to answer with.
    pub job: u64,
    /// What the image is for.
    pub kind: CaptureKind,
    /// Part of the picture in source pixels, inside the picture; `None` for all of it.
    pub region: Option<PixelRect>,
    /// Longest edge of the image; it is never enlarged.
    pub max_edge: u32,
    /// Largest PNG in bytes; the image shrinks until it fits.
    pub max_bytes: usize,
}

/// Permission for one viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoGrant {
    /// Number to answer with.
    pub job: u64,
    /// The one-time secret.
    pub ticket: Token,
    /// The view it is for.
    pub view: Token,
    /// The view's own generation.
    pub view_generation: u64,
    /// The caller's session.
    pub session: Token,
    /// `http://127.0.0.1:PORT`.
    pub origin: String,
    /// True when an opaque (`null`) or HTTPS origin is welcome too.
    pub apps: bool,
    /// The display generation it is bound to.
    pub generation: u32,
}
