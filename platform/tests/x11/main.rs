//! The X11 desktop against a real X server.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../../../tests/support/xvfb.rs"]
mod xvfb;

mod displays;
mod input;
mod screen;
mod text;
mod window;
