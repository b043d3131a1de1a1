//! `status.result`: everything a caller may want to know, in one object.

use serde::Serialize;

use crate::error::ErrorCode;
use crate::time::Monotonic;
use crate::units::PixelSize;

use super::VIDEO_TRANSPORT;
use super::capture::age_ms;
use super::connection::Connection;
use super::event::{
    DecoderFailure, DecoderReport, Display, LatencyStats, PictureInfo, TransportDiagnostics, VideoOutputStats,
};
use super::session::Session;

/// Facts pushed in by the loop, shown as they are.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) displays: Vec<Display>,
    pub(super) host_platform: Option<String>,
    pub(super) decoder: DecoderReport,
    pub(super) video_output: VideoOutputStats,
    pub(super) transport: TransportDiagnostics,
    pub(super) latency: LatencyStats,
}

/// Why there is no picture, or no longer one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fault {
    code: &'static str,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(code: ErrorCode, reason: String) -> Self {
        Self {
            code: code.as_str(),
            reason,
        }
    }
}

#[derive(Serialize)]
struct Video {
    decode_path: &'static str,
    decoder: &'static str,
}

#[derive(Serialize)]
struct Decoder<'a> {
    name: Option<&'a str>,
    hardware: Option<bool>,
    failures: &'a [DecoderFailure],
}

#[derive(Serialize)]
struct VideoOutput {
    transport: &'static str,
    #[serde(flatten)]
    stats: VideoOutputStats,
}

/// The object itself; member order is part of the page `docs/protocol.md`, not of the protocol.
#[derive(Serialize)]
pub(super) struct Status<'a> {
    state: &'static str,
    transport_state: &'static str,
    device: Option<&'a str>,
    mode: Option<&'static str>,
    generation: u32,
    geometry_epoch: u32,
    frame_id: Option<u64>,
    frame_age_ms: Option<u64>,
    source_size: Option<PixelSize>,
    display_index: Option<u8>,
    displays: Vec<Display>,
    control_allowed: bool,
    control_enabled: bool,
    human_paused: bool,
    host_platform: Option<&'a str>,
    video: Option<Video>,
    native_video_decoder: &'a str,
    decoder: Decoder<'a>,
    video_output: Option<VideoOutput>,
    transport: &'a TransportDiagnostics,
    latency: &'a LatencyStats,
    error: Option<&'a Fault>,
}

impl Session {
    pub(super) fn status(&self, now: Monotonic) -> Status<'_> {
        let connection = self.connection.as_ref();
        let picture = connection.and_then(|connection| connection.picture);
        let decoder = &self.facts.decoder;
        Status {
            state: self.state.as_str(),
            transport_state: self.transport_state(),
            device: connection.map(|connection| connection.request.device.as_str()),
            mode: connection.map(|connection| connection.request.mode.as_str()),
            generation: connection.map_or(0, |connection| connection.generation),
            geometry_epoch: connection.map_or(0, |connection| connection.geometry_epoch),
            frame_id: picture.map(|picture| picture.frame_id),
            frame_age_ms: picture.map(|picture| age_ms(now, &picture)),
            source_size: picture.map(|picture| picture.size),
            display_index: connection.map(|connection| connection.display),
            displays: self.displays(connection, picture),
            control_allowed: self.control_allowed(),
            control_enabled: self.control_enabled,
            human_paused: self.human_paused,
            host_platform: self.facts.host_platform.as_deref(),
            video: connection.map(|connection| Video {
                decode_path: connection.request.decode_path.as_str(),
                decoder: connection.request.decoder.as_str(),
            }),
            native_video_decoder: decoder.name.as_deref().unwrap_or(""),
            decoder: Decoder {
                name: decoder.name.as_deref(),
                hardware: decoder.hardware,
                failures: &decoder.failures,
            },
            video_output: self.config.video_ws.then_some(VideoOutput {
                transport: VIDEO_TRANSPORT,
                stats: self.facts.video_output,
            }),
            transport: &self.facts.transport,
            latency: &self.facts.latency,
            error: self.fault.as_ref(),
        }
    }

    fn transport_state(&self) -> &'static str {
        match &self.connection {
            None => "idle",
            // Whatever the transport was doing when the session ended, it was stopped.
            Some(connection) if !self.state.is_active() && !connection.transport.is_over() => "closed",
            Some(connection) => connection.transport.as_str(),
        }
    }

    /// What the remote host announced; a direct source shows its one picture.
    fn displays(&self, connection: Option<&Connection>, picture: Option<PictureInfo>) -> Vec<Display> {
        match connection {
            Some(connection) if self.config.direct_source => vec![Display {
                index: connection.request.display,
                name: String::new(),
                size: picture.map(|picture| picture.size),
            }],
            _ => self.facts.displays.clone(),
        }
    }
}
