//! The one integration test binary.

mod agent;
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
