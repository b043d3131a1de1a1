//! The rules of CrossDesk: no I/O, no clock, no threads, no environment.
//!
//! Every state machine here has three verbs: `handle_*(now, input)` (a typed refusal, never a panic, on
//! peer data), `poll_*()` until empty, and `next_deadline()`. Time is the [`time::Monotonic`] parameter.
#![forbid(unsafe_code)]

pub mod automation;
pub mod control;
pub mod error;
pub mod h264;
pub mod media;
pub mod rtp;
pub mod screen;
pub mod signaling;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;
pub mod units;
pub mod video;
