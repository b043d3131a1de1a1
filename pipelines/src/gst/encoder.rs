//! Encoders built from their plans, and what they take.

use crossdesk_core::units::{FrameRate, PixelSize};
use gst::prelude::*;

use crate::pixels::desktop::Layout;
use crate::plan::encoder::{EncoderRow, PixelLayout};

/// The encoder of `row`, with its defaults.
pub(super) fn make(row: &EncoderRow) -> Result<gst::Element, String> {
    gst::ElementFactory::make(row.element)
        .build()
        .map_err(|error| error.to_string())
}

/// Sets what this version of the encoder knows; the rest is for other versions.
pub(super) fn configure(encoder: &gst::Element, row: &EncoderRow, properties: &[(&'static str, String)]) {
    for (name, value) in properties {
        let Some(property) = encoder.find_property(name) else {
            tracing::debug!(encoder = row.element, name, "no such property in this version");
            continue;
        };
        match gst::glib::Value::deserialize_with_pspec(value, &property) {
            Ok(value) => encoder.set_property_from_value(name, &value),
            Err(_) => tracing::warn!(encoder = row.element, name, value, "a setting is refused"),
        }
    }
}

/// Makes the next picture that `encoder` takes a keyframe.
pub(super) fn ask_for_keyframe(encoder: &gst::Element) {
    let event = gst_video::UpstreamForceKeyUnitEvent::builder()
        .all_headers(true)
        .build();
    if let Some(pad) = encoder.static_pad("src") {
        pad.send_event(event);
    }
}

/// Pictures of `layout`, as this project makes them.
pub(super) fn picture_caps(layout: PixelLayout, size: PixelSize, rate: FrameRate) -> gst::Caps {
    let edge = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let rate = gst::Fraction::new(edge(rate.num), edge(rate.den));
    gst::Caps::builder("video/x-raw")
        .field("format", layout.caps_name())
        .field("width", edge(size.width))
        .field("height", edge(size.height))
        .field("framerate", rate)
        .field("pixel-aspect-ratio", gst::Fraction::new(1, 1))
        .field("interlace-mode", "progressive")
        .field("colorimetry", "bt601")
        .build()
}

/// Where GStreamer expects the planes.
pub(super) fn layout(layout: PixelLayout, info: &gst_video::VideoInfo) -> Layout {
    let stride = |plane: usize| usize::try_from(info.stride()[plane]).unwrap_or(0);
    let offset = info.offset();
    match layout {
        PixelLayout::I420 => Layout {
            y_stride: stride(0),
            u: offset[1],
            v: offset[2],
            c_stride: stride(1),
            c_step: 1,
            len: info.size(),
        },
        PixelLayout::Nv12 => Layout {
            y_stride: stride(0),
            u: offset[1],
            v: offset[1] + 1,
            c_stride: stride(1),
            c_step: 2,
            len: info.size(),
        },
    }
}

/// Buffers that are used again: touching a fresh 4K buffer costs more than drawing it.
pub(super) fn pool(caps: &gst::Caps, info: &gst_video::VideoInfo) -> Result<gst::BufferPool, String> {
    let pool = gst::BufferPool::new();
    let mut config = pool.config();
    let size = u32::try_from(info.size()).map_err(|error| error.to_string())?;
    config.set_params(Some(caps), size, 2, 0);
    pool.set_config(config).map_err(|error| error.to_string())?;
    pool.set_active(true).map_err(|error| error.to_string())?;
    Ok(pool)
}
