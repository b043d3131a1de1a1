//! H.264 as far as CrossDesk must read it (ITU-T H.264): NAL units, parameter sets, access-unit checks.
//!
//! Nothing here decodes a picture. [`Conditioner`] is what the receive graph uses: one access unit in, one
//! out, with parameter sets on every IDR and with the reorder promise decoders need to hold no picture back.

mod conditioner;
mod nal;
mod sps;

pub use conditioner::{Conditioned, Conditioner, UnitRefusal};
pub use nal::{Nal, NalKind, Nals, nals};
pub use sps::{ChromaFormat, Crop, NotDisplayable, Reorder, Sps};

/// Longest edge of a picture accepted, in pixels.
pub const MAX_EDGE: u32 = 8192;
/// Most pixels of a picture accepted: 4096 squared, or 8192x2048.
pub const MAX_PIXELS: u64 = 16_777_216;
