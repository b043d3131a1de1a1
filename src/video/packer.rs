//! How a decoded picture becomes the samples of an `nv12/1` message.

use std::fmt;

use bytes::Bytes;
use crossdesk_core::units::PixelSize;
use crossdesk_pipelines::picture::Picture;

/// Packs pictures on the video thread, and only when a viewer can take one.
pub trait PicturePacker: Send {
    /// Returns `size.width * size.height * 3 / 2` bytes: tightly packed limited-range BT.601 NV12 of the upper left
    /// `size` pixels. `size` is `picture.size.even()` and keeps the limits of the protocol.
    ///
    /// # Errors
    /// When the decoder's memory cannot be read or its format cannot be packed; the picture is skipped.
    fn pack(&mut self, picture: &Picture, size: PixelSize) -> Result<Bytes, PackError>;
}

/// A picture that could not be packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackError;

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the picture cannot be packed as NV12")
    }
}

impl std::error::Error for PackError {}
