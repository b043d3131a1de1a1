//! What the operating system gives CrossDesk: descriptors, displays, devices, credentials.
//!
//! Facts about a machine are plain data ([`facts`]); each system has a folder that collects them, and [`fake`]
//! has machines for tests. [`desktop`] and [`input`] are what a host shows and lets a guest do. [`stdio`] and [`secret`] are about the descriptors a parent process hands down.
//! `unsafe` is allowed in `secret.rs`, to take over a descriptor that is known by its number only, and in
//! `linux/x11/shm.rs`, for memory that the X server writes into.
#![deny(unsafe_code)]

pub mod desktop;
pub mod facts;
pub mod fake;
pub mod input;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
pub mod secret;
#[cfg(unix)]
pub mod stdio;
#[cfg(windows)]
mod windows;

use facts::Machine;

/// The name this machine goes by, for people; empty when it does not say.
pub fn host_name() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    return std::env::var("COMPUTERNAME").unwrap_or_default();
}

/// Looks at the machine this process runs on; takes milliseconds and changes nothing.
pub fn look() -> Machine {
    #[cfg(target_os = "linux")]
    return linux::System::here().machine();
    #[cfg(target_os = "macos")]
    return macos::machine();
    #[cfg(windows)]
    return windows::machine();
    #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
    return Machine::unknown();
}
