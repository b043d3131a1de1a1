//! The loopback WebSocket listener that carries live video to local browsers.
//!
//! [`VideoService`] owns one thread with every socket on it; the rules live in [`crossdesk_core::video`]. Nothing
//! here logs: tickets pass through these sockets.

mod connection;
mod handshake;
mod outbound;
mod picture;
mod publisher;
mod service;
mod worker;

pub use publisher::Publisher;
pub use service::{VideoConfig, VideoService, VideoServiceError, VideoStats};
