//! Decoded planes into bytes: NV12 for viewers, PNG for screenshots.
//!
//! Nothing here knows GStreamer: the input is borrowed planes (`picture::Planes`), the output is owned bytes.

pub mod desktop;
mod pack;
pub mod png;
mod pool;

pub use pack::{nv12_len, pack_nv12};
pub use pool::{Nv12Buffer, Nv12Pool};
