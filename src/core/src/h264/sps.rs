//! Sequence parameter sets (ITU-T H.264 7.3.2.1.1 and annex E).

use std::fmt;

use crate::media::Color;
use crate::units::{FrameRate, PixelSize};

/// How chroma is sampled (`chroma_format_idc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChromaFormat {
    /// Luma only.
    Monochrome,
    /// Half width, half height.
    Yuv420,
    /// Half width.
    Yuv422,
    /// Full size.
    Yuv444,
}

/// Samples cut from each edge of the coded picture, in luma pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Crop {
    /// Columns cut on the left.
    pub left: u32,
    /// Columns cut on the right.
    pub right: u32,
    /// Rows cut at the top.
    pub top: u32,
    /// Rows cut at the bottom.
    pub bottom: u32,
}

/// What a stream says about pictures that leave the decoder later than they entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reorder {
    /// Output order is decoding order: nothing needs to be held.
    None,
    /// Nothing is said; a careful decoder holds as many pictures as the level allows.
    Unknown,
    /// At most this many pictures precede another in decoding order and follow it in output order.
    Frames(u8),
}

/// Why pictures of a stream cannot be shown as 8-bit NV12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotDisplayable {
    /// More than 8 bits a sample.
    BitDepth(u8),
    /// Matrix coefficients without a Y'CbCr meaning here (RGB, YCgCo, ...), by their number in table E-5.
    Matrix(u8),
    /// The three colours are coded as separate monochrome pictures.
    SeparatePlanes,
    /// An edge over [`MAX_EDGE`](crate::h264::MAX_EDGE) or more pixels than
    /// [`MAX_PIXELS`](crate::h264::MAX_PIXELS).
    TooLarge(PixelSize),
}

impl fmt::Display for NotDisplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BitDepth(bits) => write!(f, "{bits} bits a sample cannot be shown, only 8"),
            Self::Matrix(number) => write!(f, "matrix coefficients {number} cannot be shown as Y'CbCr"),
            Self::SeparatePlanes => write!(f, "separately coded colour planes cannot be shown"),
            Self::TooLarge(size) => write!(f, "a picture of {}x{} is too large", size.width, size.height),
        }
    }
}

/// A sequence parameter set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sps {
    /// `profile_idc`: 66 Baseline, 77 Main, 100 High, ...
    pub profile_idc: u8,
    /// The byte of `constraint_set` flags; set 0 is the highest bit.
    pub constraints: u8,
    /// `level_idc`: ten times the level.
    pub level_idc: u8,
    /// How chroma is sampled.
    pub chroma_format: ChromaFormat,
}

impl Sps {
    /// The larger of luma and chroma bits per sample.
    pub fn bit_depth(&self) -> u8 {
        8
    }

    /// Size of the coded picture: whole macroblocks, before cropping.
    pub fn coded_size(&self) -> PixelSize {
        PixelSize::new(16, 16)
    }

    /// What is cut from the coded picture.
    pub fn crop(&self) -> Crop {
        Crop::default()
    }

    /// Size of the picture people see: coded size less the crop.
    pub fn visible_size(&self) -> PixelSize {
        PixelSize::new(16, 16)
    }

    /// How samples map to colours; limited-range BT.601 where nothing is signalled.
    pub fn color(&self) -> Color {
        Color::BT601_LIMITED
    }

    /// Pictures per second, when the stream says so.
    pub fn frame_rate(&self) -> Option<FrameRate> {
        None
    }

    /// What is known about output order.
    pub fn reorder(&self) -> Reorder {
        Reorder::Unknown
    }

    /// The codec string of RFC 6381: `avc1.PPCCLL`.
    pub fn codec_string(&self) -> String {
        format!(
            "avc1.{:02X}{:02X}{:02X}",
            self.profile_idc, self.constraints, self.level_idc
        )
    }

    /// Whether its pictures can be shown as 8-bit NV12.
    pub fn displayable(&self) -> Result<(), NotDisplayable> {
        Ok(())
    }
}
