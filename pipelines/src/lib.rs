//! Every GStreamer graph and pixel of CrossDesk.
//!
//! `plan` decides and knows no GStreamer, `gst` builds and decides nothing, `pixels` turns decoded planes into
//! bytes for people and programs, and `clock` is the one file that reads the monotonic clock. `unsafe` is allowed in
//! `gst/lent.rs` alone, to give GStreamer memory of our own.
#![deny(unsafe_code)]

pub mod capture;
pub mod clock;
pub mod fake;
pub mod gst;
pub mod picture;
pub mod pixels;
pub mod plan;
pub mod receive;
