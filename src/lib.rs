//! CrossDesk: see and drive a remote desktop.

pub mod terminal;
pub mod video;
