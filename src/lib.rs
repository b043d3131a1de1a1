//! CrossDesk: see and drive a remote desktop.
//!
//! `cli` parses what was typed and prints, `config` resolves it against the environment, `agent` speaks the
//! automation protocol, `video` publishes pictures to local browsers, `transport` brings access units, `terminal` draws them for people,
//! `host` shares a desktop, `signal` is the server through which hosts and guests find each other.
//! Rules live in `crossdesk_core`, graphs and pixels in `crossdesk_pipelines`.

pub mod agent;
pub mod cli;
pub mod config;
#[cfg(target_os = "linux")]
pub mod host;
mod log;
pub mod signal;
pub mod terminal;
pub mod transport;
pub mod video;
