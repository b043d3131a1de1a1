//! The handle the rest of the program holds: it starts the video thread, asks it things and feeds it.

use std::fmt;
use std::io;

use crossdesk_core::media::TapUnit;
use crossdesk_core::video::{Grant, GrantRefusal, Protocol, VideoOutput, ViewId};
use crossdesk_pipelines::picture::Picture;
use serde::Serialize;

use super::PicturePacker;

/// What the service needs from its surroundings.
pub struct VideoConfig {
    /// Packs pictures for `nv12/1`.
    pub packer: Box<dyn PicturePacker>,
    /// Called on the video thread, at most once a second, when a viewer needs a keyframe; must not block.
    pub keyframe_wanted: Box<dyn Fn() + Send>,
}

/// Why the service did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoServiceError {
    /// The grant was refused.
    Grant(GrantRefusal),
    /// The video thread has ended or did not answer within 2 s; what it had granted must be considered open.
    NotAnswering,
}

impl fmt::Display for VideoServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grant(refusal) => refusal.fmt(f),
            Self::NotAnswering => f.write_str("the video service does not answer"),
        }
    }
}

impl std::error::Error for VideoServiceError {}

/// 50th, 95th and 99th percentile of recent samples, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
}

/// How long frames take to reach one viewer; `None` before the first sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewerLatency {
    /// Whose it is.
    pub view: ViewId,
    /// Access unit received to picture decoded (`nv12/1` only).
    pub receive_to_decode: Option<Percentiles>,
    /// Access unit received (`nv12/1`: picture decoded) to last byte written.
    pub to_send: Option<Percentiles>,
    /// Last byte written to acknowledged.
    pub send_to_ack: Option<Percentiles>,
}

/// What `status` reports about live video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoStats {
    /// The `video_output` object.
    pub output: VideoOutput,
    /// One entry per viewer.
    pub latency: Vec<ViewerLatency>,
    /// Pictures and access units over the protocol's size limits, skipped.
    pub oversized: u64,
}

/// The loopback listener and its thread; dropping it closes every socket and joins the thread.
pub struct VideoService {
    port: u16,
    publisher: Publisher,
}

impl VideoService {
    /// Listens on an ephemeral port of 127.0.0.1 and starts the video thread.
    ///
    /// # Errors
    /// When no loopback port or thread can be had.
    pub fn start(config: VideoConfig) -> io::Result<Self> {
        drop(config);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The port of the listener.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address for the reply to `video_open`.
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/api/video", self.port)
    }

    /// Where streaming threads deliver.
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// Starts a display generation: earlier tickets and sockets end, and publishing starts from nothing.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`].
    pub fn begin(&self, generation: u32, protocol: Protocol) -> Result<(), VideoServiceError> {
        let _ = (generation, protocol);
        Err(VideoServiceError::NotAnswering)
    }

    /// Ends the session: tickets and sockets end, publishing is ignored.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`].
    pub fn end(&self) -> Result<(), VideoServiceError> {
        Err(VideoServiceError::NotAnswering)
    }

    /// Lets one socket become a viewer.
    ///
    /// # Errors
    /// The refusal, or [`VideoServiceError::NotAnswering`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the ticket moves to the video thread"
    )]
    pub fn grant(&self, grant: Grant) -> Result<(), VideoServiceError> {
        let _ = grant;
        Err(VideoServiceError::NotAnswering)
    }

    /// Revokes tickets and sockets of `view`, or all; returns once no further byte is written to them.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`]: then revocation is not confirmed.
    pub fn revoke(&self, view: Option<ViewId>) -> Result<(), VideoServiceError> {
        let _ = view;
        Err(VideoServiceError::NotAnswering)
    }

    /// Counters and latencies.
    ///
    /// # Errors
    /// [`VideoServiceError::NotAnswering`].
    pub fn stats(&self) -> Result<VideoStats, VideoServiceError> {
        Err(VideoServiceError::NotAnswering)
    }
}

/// Delivers to the video thread from streaming threads without ever blocking on it; clones share one handoff.
#[derive(Clone)]
pub struct Publisher {}

impl Publisher {
    /// Publishes one access unit of `h264-annexb/1`; ignored outside a session of that protocol.
    #[expect(clippy::needless_pass_by_value, reason = "the unit moves to the video thread")]
    pub fn publish_unit(&self, unit: TapUnit) {
        let _ = unit;
    }

    /// Publishes one decoded picture of `nv12/1`; ignored outside a session of that protocol.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the picture moves to the video thread"
    )]
    pub fn publish_picture(&self, picture: Picture) {
        let _ = picture;
    }
}
