//! What is wanted and what this machine offers become a plan with a stable text form; pure, no GStreamer.

pub mod capture;
pub mod decode;
pub mod decoders;
pub mod encoder;
pub mod failover;
pub mod replay;
pub mod shape;
pub mod source;
pub mod still;
