//! The one integration test binary.

mod agent;
mod descriptors;
#[cfg(target_os = "linux")]
mod desktop;
mod docs;
mod doctor;
mod endurance;
mod fuzz_inputs;
mod protocol;
mod remote;
mod signal;
mod sources;
mod streams;
mod support;
mod tidy;
mod video;
mod view;
#[cfg(target_os = "linux")]
mod webrtc;

#[cfg(target_os = "linux")]
#[expect(dead_code, reason = "the platform's tests use more of it")]
#[expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#[path = "../../platform/tests/x11/window.rs"]
mod window;
#[cfg(target_os = "linux")]
#[path = "../support/xvfb.rs"]
mod xvfb;
