//! A decoded picture held by reference: nothing is downloaded, packed or converted until someone asks.

use std::sync::Arc;

use crossdesk_core::media::Color;
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;

/// One plane of samples, already cropped: its first byte is the picture's upper left sample.
#[derive(Clone, Copy, Debug)]
pub struct Plane<'a> {
    /// Rows of `stride` bytes; the last row may be shorter than `stride`.
    pub data: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// Decoded samples of one picture, eight bits each.
#[derive(Clone, Copy, Debug)]
pub enum Planes<'a> {
    /// 4:2:0, chroma interleaved as Cb Cr.
    Nv12 {
        /// Luma.
        y: Plane<'a>,
        /// Interleaved chroma, half size in both directions (rounded up).
        uv: Plane<'a>,
    },
    /// 4:2:0 in three planes.
    I420 {
        /// Luma.
        y: Plane<'a>,
        /// Cb, half size in both directions (rounded up).
        u: Plane<'a>,
        /// Cr, half size in both directions (rounded up).
        v: Plane<'a>,
    },
    /// 4:2:2 in three planes.
    I422 {
        /// Luma.
        y: Plane<'a>,
        /// Cb, half width (rounded up).
        u: Plane<'a>,
        /// Cr, half width (rounded up).
        v: Plane<'a>,
    },
    /// 4:4:4 in three planes.
    I444 {
        /// Luma.
        y: Plane<'a>,
        /// Cb, full size.
        u: Plane<'a>,
        /// Cr, full size.
        v: Plane<'a>,
    },
    /// Luma only.
    Gray {
        /// Luma.
        y: Plane<'a>,
    },
}

/// Why decoded memory could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapError(pub &'static str);

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MapError {}

/// Decoder memory that can be read on request; mapping may download from a GPU.
///
/// `Any` lets the room that made a frame recognise its own memory again.
pub trait Frame: std::any::Any + Send + Sync {
    /// Calls `read` once with the visible samples.
    ///
    /// # Errors
    /// When the memory cannot be mapped for reading.
    fn map(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError>;
}

/// A decoded picture; cloning shares the decoder's buffer.
#[derive(Clone)]
pub struct Picture {
    /// Visible size; may be odd.
    pub size: PixelSize,
    /// How its samples map to colours.
    pub color: Color,
    /// Position among all decoded pictures of this connection, starting at 1.
    pub sequence: u32,
    /// Counts changes of size, crop or colour on this connection, starting at 1.
    pub geometry_epoch: u32,
    /// When its access unit arrived.
    pub received: Monotonic,
    /// When the decoder handed it over.
    pub decoded: Monotonic,
    /// The memory it lives in.
    pub frame: Arc<dyn Frame>,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Picture")
            .field("sequence", &self.sequence)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
