//! The loopback WebSocket listener that carries live video to local browsers.
//!
//! [`VideoService`] owns one thread with every socket on it; the rules live in [`crossdesk_core::video`]. Nothing
//! here logs: tickets pass through these sockets.

mod packer;
mod service;

pub use packer::{PackError, PicturePacker};
pub use service::{Publisher, VideoConfig, VideoService, VideoServiceError, VideoStats, ViewerLatency};
