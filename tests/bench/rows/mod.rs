//! Everything that is measured, in the order of the table.

mod fanout;
mod hello;
mod latency;
mod memory;
mod png;
mod receive;
mod signal;
mod slices;
mod webrtc;

use crate::Options;
use crate::report::{Figure, Spec};

/// Rows measured together.
pub struct Work {
    pub specs: &'static [Spec],
    /// One figure for each of `specs`, in their order.
    pub run: fn(&Options) -> anyhow::Result<Vec<Figure>>,
}

/// The whole table.
pub const ALL: &[Work] = &[
    receive::DESKTOP_1080P,
    receive::HD60,
    receive::DESKTOP_4K,
    receive::UHD60,
    fanout::RAW_HD60,
    fanout::RAW_UHD60,
    fanout::COMPRESSED_HD60,
    slices::WORK,
    latency::ONE,
    latency::EIGHT,
    png::HD,
    png::UHD,
    png::CROP,
    hello::WORK,
    memory::WORK,
    signal::WORK,
    webrtc::HD,
    webrtc::UHD,
    webrtc::CONNECT,
    webrtc::DATA,
];
