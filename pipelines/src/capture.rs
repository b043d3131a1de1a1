//! Capture as its users see it: a screen goes in, access units come out, no GStreamer in sight.
//!
//! [`gst::capture::Capture`](crate::gst::capture::Capture) is the one that does it.

use bytes::Bytes;
use crossdesk_core::screen::ScreenError;
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;

/// One encoded picture of the screen.
#[derive(Clone, Debug)]
pub struct CapturedUnit {
    /// A whole access unit in Annex B form; an IDR carries its SPS and PPS.
    pub data: Bytes,
    /// True for an IDR access unit.
    pub idr: bool,
    /// When the picture was taken.
    pub captured: Monotonic,
}

/// What happened to a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureEvent {
    /// The first access unit of this encoder is about to be delivered.
    Started {
        /// Name of the encoder.
        encoder: &'static str,
        /// True for hardware.
        hardware: bool,
        /// Size of its pictures.
        size: PixelSize,
    },
    /// The next access unit has another size than the one before.
    SizeChanged(PixelSize),
    /// An encoder does not work, or not any more; the next one is tried.
    EncoderFailed {
        /// Name of the encoder.
        encoder: &'static str,
        /// What it said.
        reason: String,
    },
    /// The capture is over; nothing follows.
    Failed(CaptureFailure),
}

/// Why a capture is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureFailure {
    /// There is no picture any more.
    Screen(ScreenError),
    /// No encoder works here; says what each of them said.
    NoEncoder(String),
    /// There is no thread or no GStreamer for it.
    Unusable(String),
}

impl std::fmt::Display for CaptureFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Screen(error) => error.fmt(f),
            Self::NoEncoder(reason) => write!(f, "no H.264 encoder works here: {reason}"),
            Self::Unusable(reason) => write!(f, "capturing cannot start: {reason}"),
        }
    }
}

impl std::error::Error for CaptureFailure {}

/// Where a capture delivers. Called on its own threads; must not block.
pub trait CaptureOutput: Send + Sync {
    /// One access unit, in decoding order, which is the order of the pictures.
    fn unit(&self, unit: CapturedUnit);
    /// One event; `Failed` comes at most once and last.
    fn event(&self, event: CaptureEvent);
}
