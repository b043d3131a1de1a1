//! What an SPS means: sizes, colour, frame rate, output order, and whether its pictures can be shown.

use std::fmt;

use super::{ChromaFormat, Crop, OrderCount, Sps};
use crate::h264::{MAX_EDGE, MAX_PIXELS, ParseError};
use crate::media::{Color, Matrix};
use crate::units::{FrameRate, PixelSize};

/// Edge of a macroblock, in pixels.
const MACROBLOCK: u32 = 16;

/// Frame rates over this come from encoders that fill in a clock and no rate.
const MAX_FRAMES_PER_SECOND: u64 = 1000;

/// Matrix coefficients of table E-5 that are not Y'CbCr, or that need more than a matrix: YCgCo, Y'D'zD'x and
/// ICtCp. GBR (0) is one only for 4:4:4, where decoders give RGB planes.
const UNSHOWABLE_MATRICES: [u8; 3] = [8, 11, 14];

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
    /// An edge over [`MAX_EDGE`] or more pixels than [`MAX_PIXELS`].
    TooLarge(PixelSize),
}

impl fmt::Display for NotDisplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BitDepth(bits) => write!(f, "{bits} bits a sample cannot be shown, only 8"),
            Self::Matrix(0) => write!(f, "pictures coded as RGB cannot be shown"),
            Self::Matrix(number) => write!(f, "matrix coefficients {number} cannot be shown as Y'CbCr"),
            Self::SeparatePlanes => write!(f, "separately coded colour planes cannot be shown"),
            Self::TooLarge(size) => write!(f, "a picture of {}x{} is too large", size.width, size.height),
        }
    }
}

impl std::error::Error for NotDisplayable {}

impl Sps {
    /// The larger of luma and chroma bits per sample.
    pub fn bit_depth(&self) -> u8 {
        if self.chroma_format == ChromaFormat::Monochrome {
            return self.bit_depth_luma;
        }
        self.bit_depth_luma.max(self.bit_depth_chroma)
    }

    /// Size of the coded picture: whole macroblocks, before cropping.
    pub const fn coded_size(&self) -> PixelSize {
        PixelSize::new(
            self.width_mbs * MACROBLOCK,
            self.height_map_units * MACROBLOCK * self.rows_per_unit(),
        )
    }

    /// What is cut from the coded picture, in luma pixels.
    pub fn crop(&self) -> Crop {
        let (horizontal, vertical) = self.crop_unit();
        let units = self.crop_units.unwrap_or_default();
        Crop {
            left: units.left.saturating_mul(horizontal),
            right: units.right.saturating_mul(horizontal),
            top: units.top.saturating_mul(vertical),
            bottom: units.bottom.saturating_mul(vertical),
        }
    }

    /// Size of the picture people see: coded size less the crop.
    pub fn visible_size(&self) -> PixelSize {
        let (coded, crop) = (self.coded_size(), self.crop());
        PixelSize::new(
            coded.width.saturating_sub(crop.left).saturating_sub(crop.right),
            coded.height.saturating_sub(crop.top).saturating_sub(crop.bottom),
        )
    }

    /// How samples map to colours; limited-range BT.601 where nothing is signalled.
    pub fn color(&self) -> Color {
        let signal = self.vui.as_ref().and_then(|vui| vui.video_signal);
        let colour = signal.and_then(|signal| signal.colour);
        Color {
            matrix: match colour.map(|colour| (colour.matrix, colour.primaries)) {
                Some((1, _) | (12 | 13, 1)) => Matrix::Bt709,
                Some((4, _)) => Matrix::Fcc,
                Some((7, _)) => Matrix::Smpte240,
                // Constant luminance differs from it by less than leaving the colours at BT.601 would.
                Some((9 | 10, _) | (12 | 13, 9)) => Matrix::Bt2020,
                _ => Matrix::Bt601,
            },
            full_range: signal.is_some_and(|signal| signal.full_range),
        }
    }

    /// Pictures per second, reduced; `None` when the stream does not say, or says something absurd.
    pub fn frame_rate(&self) -> Option<FrameRate> {
        let timing = self.vui.as_ref()?.timing?;
        let (scale, frame) = (u64::from(timing.time_scale), 2 * u64::from(timing.units_in_tick));
        if scale == 0 || frame == 0 || scale > frame * MAX_FRAMES_PER_SECOND {
            return None;
        }
        let divisor = greatest_common_divisor(scale, frame);
        Some(FrameRate {
            num: u32::try_from(scale / divisor).ok()?,
            den: u32::try_from(frame / divisor).ok()?,
        })
    }

    /// What is known about output order.
    pub fn reorder(&self) -> Reorder {
        match self.vui.as_ref().and_then(|vui| vui.restriction) {
            Some(restriction) if restriction.max_reorder_frames > 0 => {
                Reorder::Frames(restriction.max_reorder_frames)
            }
            Some(_) => Reorder::None,
            None if self.order_count == OrderCount::Decoding || self.is_intra_only() => Reorder::None,
            None => Reorder::Unknown,
        }
    }

    /// The codec string of RFC 6381: `avc1.PPCCLL`.
    pub fn codec_string(&self) -> String {
        format!(
            "avc1.{:02X}{:02X}{:02X}",
            self.profile_idc, self.constraints, self.level_idc
        )
    }

    /// Whether its pictures can be shown as 8-bit NV12: 8 bits a sample, Y'CbCr or luma alone, any sampling,
    /// and a size within the limits.
    pub fn displayable(&self) -> Result<(), NotDisplayable> {
        self.check_size().map_err(NotDisplayable::TooLarge)?;
        if self.bit_depth() > 8 {
            return Err(NotDisplayable::BitDepth(self.bit_depth()));
        }
        if self.separate_planes {
            return Err(NotDisplayable::SeparatePlanes);
        }
        let signal = self.vui.as_ref().and_then(|vui| vui.video_signal);
        match signal
            .and_then(|signal| signal.colour)
            .map(|colour| colour.matrix)
        {
            Some(0) if self.chroma_format == ChromaFormat::Yuv444 => Err(NotDisplayable::Matrix(0)),
            Some(matrix) if UNSHOWABLE_MATRICES.contains(&matrix) => Err(NotDisplayable::Matrix(matrix)),
            _ => Ok(()),
        }
    }

    /// The size that breaks the limits, if one does: what people see must keep them exactly, what is decoded
    /// may exceed the number of pixels by the padding to whole macroblocks.
    pub(crate) fn check_size(&self) -> Result<(), PixelSize> {
        let (coded, visible) = (self.coded_size(), self.visible_size());
        let padding = u64::from(coded.width + coded.height) * u64::from(2 * MACROBLOCK);
        if coded.longest_edge() > MAX_EDGE || coded.area() > MAX_PIXELS + padding {
            return Err(coded);
        }
        if visible.area() > MAX_PIXELS {
            return Err(visible);
        }
        Ok(())
    }

    /// True for the profiles of which every picture is an IDR picture.
    pub(crate) fn is_intra_only(&self) -> bool {
        self.profile_idc == 44
            || matches!(self.profile_idc, 100 | 110 | 122 | 244) && self.constraints & 0x10 != 0
    }

    pub(super) fn check_crop(&self) -> Result<(), ParseError> {
        let visible = self.visible_size();
        if visible.width == 0 || visible.height == 0 {
            return Err(ParseError::Invalid("frame_crop_offset"));
        }
        Ok(())
    }

    const fn rows_per_unit(&self) -> u32 {
        if self.frames_only { 1 } else { 2 }
    }

    /// Columns and rows of one crop unit (equations 7-19 to 7-22).
    const fn crop_unit(&self) -> (u32, u32) {
        let (horizontal, vertical) = match self.chroma_format {
            ChromaFormat::Monochrome | ChromaFormat::Yuv444 => (1, 1),
            ChromaFormat::Yuv420 => (2, 2),
            ChromaFormat::Yuv422 => (2, 1),
        };
        (horizontal, vertical * self.rows_per_unit())
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
