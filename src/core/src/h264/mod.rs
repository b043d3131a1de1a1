//! H.264 as far as CrossDesk must read it (ITU-T H.264): NAL units, parameter sets, access-unit checks.
//!
//! Nothing here decodes a picture. [`Conditioner`] is what the receive graph uses: one access unit in, one
//! out, with parameter sets on every IDR and with the reorder promise decoders need to hold no picture back.
//! [`AccessUnits`] cuts a raw file into what the conditioner takes.

pub(crate) mod bits;
mod conditioner;
mod nal;
mod order;
mod pps;
mod repair;
mod sets;
mod slice;
mod split;
mod sps;

use std::fmt;

pub use conditioner::{Conditioned, Conditioner, UnitRefusal};
pub use nal::{Nal, NalKind, Nals, nals};
pub use pps::Pps;
pub use split::AccessUnits;
pub use sps::{
    AspectRatio, ChromaFormat, ChromaLocation, ColourDescription, CpbEntry, Crop, Hrd, NotDisplayable,
    OrderCount, Reorder, Restriction, ScalingList, Sps, Timing, VideoSignal, Vui,
};

/// Longest edge of a picture accepted, in pixels (automation protocol, "Live video": `nv12/1`).
pub const MAX_EDGE: u32 = 8192;

/// Most pixels of a picture accepted: 4096 squared, or 8192x2048 (same place).
pub const MAX_PIXELS: u64 = 16_777_216;

/// Why a parameter set or slice header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// The bytes end before the syntax does.
    Truncated,
    /// This syntax element has a value outside its range.
    Invalid(&'static str),
    /// The NAL unit is of another type, or its header is damaged.
    WrongKind,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the NAL unit ends too early"),
            Self::Invalid(element) => write!(f, "{element} is out of range"),
            Self::WrongKind => write!(f, "not the expected kind of NAL unit"),
        }
    }
}

impl std::error::Error for ParseError {}
