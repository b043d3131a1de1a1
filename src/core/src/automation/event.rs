//! What happens to a session from outside: facts the loop pushes in.

use bytes::Bytes;
use serde::Serialize;

use crate::error::ErrorCode;
use crate::time::Monotonic;
use crate::units::{PixelRect, PixelSize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The transport moved to another state.
    Transport(TransportState),
    /// The remote host's displays; a direct source has none to announce.
    Displays(Vec<Display>),
    /// The remote host's operating system (`windows`, `macos`, `linux`, …).
    HostPlatform(String),
    /// The remote host takes, or no longer takes, input.
    Control {
        /// True when input is accepted.
        allowed: bool,
        /// True when text can be typed in one message.
        text: bool,
    },
    /// The newest decoded picture changed.
    Picture(PictureInfo),
    /// A capture job ended.
    CaptureDone {
        /// Number of the job.
        job: u64,
        /// The image, or why there is none.
        result: Result<CaptureImage, CaptureFailure>,
    },
    /// An input message left, or did not.
    ControlSent {
        /// Number of the send.
        send: u64,
        /// What became of it.
        outcome: ControlOutcome,
    },
    /// A grant was made or refused.
    VideoOpened {
        /// Number of the grant.
        job: u64,
        /// The loopback port to connect to, or why there is none.
        result: Result<u16, ErrorCode>,
    },
    /// Nothing of the revoked views can be sent any more.
    VideoRevoked {
        /// Number of the revocation.
        job: u64,
    },
    /// The decoder in use changed.
    Decoder(DecoderReport),
    /// Counters of the loopback video listener; push them before a `status` request is handled.
    VideoOutput(VideoOutputStats),
    /// Counters of the transport; push them before a `status` request is handled.
    Diagnostics(TransportDiagnostics),
    /// How long access units take through this program; push it before a `status` request is handled.
    Latency(LatencyStats),
    /// What keeps the first picture from coming, in words fit for `status`, or that nothing does any more. Told only when
    /// no picture comes in time.
    Obstacle(Option<String>),
    /// The connection cannot go on: no decoder, a stream that cannot be shown, …
    Failed {
        /// What kind of failure.
        code: ErrorCode,
        /// A short lower-case token or sentence for people; no secrets.
        reason: String,
    },
    /// stdin came to its end.
    InputClosed,
    /// SIGTERM or SIGINT arrived.
    Signal,
    /// Nobody reads stdout any more.
    OutputBlocked,
}

/// Where the transport stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportState {
    /// Being set up.
    Connecting,
    /// Delivering access units, or about to.
    Connected,
    /// Broken and trying again.
    Reconnecting {
        /// 1 for the first attempt.
        attempt: u32,
        /// What broke it.
        code: ErrorCode,
        /// For people.
        reason: String,
    },
    /// At its end without fault, for example a file played once.
    Ended {
        /// Why.
        code: ErrorCode,
        /// For people.
        reason: String,
    },
    /// Broken for good.
    Failed {
        /// Why.
        code: ErrorCode,
        /// For people.
        reason: String,
    },
}

impl TransportState {
    /// The word in `status.transport_state`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Reconnecting { .. } => "reconnecting",
            Self::Ended { .. } => "ended",
            Self::Failed { .. } => "failed",
        }
    }

    /// True when the transport itself came to an end.
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::Failed { .. })
    }
}

/// One display of the remote host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Display {
    /// 0..=63.
    pub index: u8,
    /// The host's name for it; may be empty.
    pub name: String,
    /// Its size when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<PixelSize>,
}

/// The newest decoded picture, without its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureInfo {
    /// Position among all decoded pictures of the connection, from 1.
    pub frame_id: u64,
    /// Visible size.
    pub size: PixelSize,
    /// When its access unit arrived.
    pub received: Monotonic,
    /// When the decoder handed it over.
    pub decoded: Monotonic,
    /// Counts changes of size, crop or colour, from 1.
    pub geometry_epoch: u32,
}

/// An encoded image.
#[derive(Clone, PartialEq, Eq)]
pub struct CaptureImage {
    /// The picture it shows; size and epoch are of that picture.
    pub picture: PictureInfo,
    /// The part of the picture it shows, in source pixels.
    pub source_rect: PixelRect,
    /// Size of the PNG.
    pub image_size: PixelSize,
    /// The PNG file.
    pub png: Bytes,
}

impl std::fmt::Debug for CaptureImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureImage")
            .field("picture", &self.picture)
            .field("source_rect", &self.source_rect)
            .field("image_size", &self.image_size)
            .field("png_bytes", &self.png.len())
            .finish()
    }
}

/// Why a capture gave no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFailure {
    /// The loop holds no picture.
    NoPicture,
    /// The region lies outside the picture.
    RegionOutOfBounds,
    /// Even the smallest image exceeds the byte limit.
    TooLarge,
    /// Decoder memory could not be read, or encoding failed.
    Failed,
    /// The job was cancelled before it ran.
    Cancelled,
}

/// What became of an input message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOutcome {
    /// Handed to the transport.
    Sent,
    /// Certainly not handed over (queue full, channel closed before).
    Refused,
    /// Perhaps handed over.
    Failed,
}

/// A decoder that was tried and given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecoderFailure {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The decoder in use and those given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecoderReport {
    /// Name of the decoder in use; `None` before the first proof.
    pub name: Option<String>,
    /// True when it is hardware; `None` before the first proof.
    pub hardware: Option<bool>,
    /// Those given up on this connection, oldest first.
    pub failures: Vec<DecoderFailure>,
}

/// Counters of the loopback video listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VideoOutputStats {
    /// Authorised viewers.
    pub viewers: u32,
    /// Frames in the hand-off to the I/O thread.
    pub queued: u64,
    /// Bytes of them.
    pub queued_bytes: u64,
    /// Bytes sent and not acknowledged, all viewers together.
    pub unacknowledged_bytes: u64,
    /// Hand-off replacements plus frames skipped for slow viewers.
    pub dropped: u64,
}

/// Counters of the transport.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransportDiagnostics {
    /// `file`, `rtsp`, `rtp`, `sdp`, `test`, …; empty before `connect`.
    pub kind: String,
    /// Access units received.
    pub access_units: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Access units refused or dropped on the way to the decoder.
    pub dropped: u64,
    /// IDR pictures asked for.
    pub keyframe_requests: u64,
    /// Times the connection was built again.
    pub reconnects: u32,
}

/// Two points of a distribution, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half of the samples are at most this.
    pub p50_us: u64,
    /// 95 % of the samples are at most this.
    pub p95_us: u64,
}

/// How long things take for one viewer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ViewerLatency {
    /// Counts viewers of this process, from 1; not the secret view name.
    pub viewer: u64,
    /// Access unit received to last byte written.
    pub receive_to_send: Option<Percentiles>,
    /// Last byte written to acknowledgement.
    pub send_to_ack: Option<Percentiles>,
}

/// How long access units take through this program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LatencyStats {
    /// Access unit received to picture decoded.
    pub receive_to_decode: Option<Percentiles>,
    /// One row per authorised viewer.
    pub viewers: Vec<ViewerLatency>,
}
