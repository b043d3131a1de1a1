//! What travels from a source to the receive graph and on to viewers.

use bytes::Bytes;

use crate::time::Monotonic;

/// Largest access unit accepted anywhere, in bytes (automation protocol, "Binary messages and flow control").
pub const MAX_ACCESS_UNIT_BYTES: usize = 4 * 1024 * 1024;

/// One whole H.264 access unit in Annex B form, as a source delivers it.
#[derive(Clone, Debug)]
pub struct AccessUnit {
    /// Start codes and NAL units of exactly one coded picture.
    pub data: Bytes,
    /// When the last byte of it arrived here.
    pub received: Monotonic,
}

/// One access unit as it is published to viewers of `h264-annexb/1`.
#[derive(Clone, Debug)]
pub struct TapUnit {
    /// Annex B bytes; an IDR access unit carries its SPS and PPS.
    pub data: Bytes,
    /// True for an IDR access unit.
    pub idr: bool,
    /// Position in the receive order of this connection, starting at 1; a gap means lost units.
    pub sequence: u32,
    /// When the last byte of it arrived here.
    pub received: Monotonic,
}

/// Matrix coefficients that turn Y'CbCr into R'G'B' (ITU-T H.264 table E-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// ITU-R BT.601, also what "nothing signalled" means here whatever the picture size.
    Bt601,
    /// ITU-R BT.709.
    Bt709,
    /// ITU-R BT.2020 non-constant luminance.
    Bt2020,
    /// SMPTE 240M.
    Smpte240,
    /// US FCC 73.682.
    Fcc,
}

/// How decoded sample values map to colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Color {
    /// The matrix in use.
    pub matrix: Matrix,
    /// True when luma spans 0..=255 instead of 16..=235.
    pub full_range: bool,
}

impl Color {
    /// Limited-range BT.601: the colour of `nv12/1`, and the meaning of "nothing signalled".
    pub const BT601_LIMITED: Self = Self {
        matrix: Matrix::Bt601,
        full_range: false,
    };
}
