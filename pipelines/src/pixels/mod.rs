//! Decoded planes into bytes: NV12 for viewers, PNG for screenshots.
//!
//! Nothing here knows GStreamer: the input is borrowed planes (`picture::Planes`), the output is owned bytes.

mod bt601;
mod color;
pub mod desktop;
mod i420;
mod pack;
mod planes;
pub mod png;
mod pool;
mod rgb;
mod scale;
pub mod screen;
mod thumbnail;

pub use i420::append_planar;
pub use pack::{nv12_len, pack_nv12};
pub use planes::covers;
pub use pool::{Nv12Buffer, Nv12Pool};
pub use thumbnail::thumbnail;
