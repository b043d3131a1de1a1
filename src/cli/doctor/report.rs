//! What `doctor` found, as data; its JSON form is a promise to programs.

use crossdesk_platform::facts::{CredentialStore, DisplayServer, GpuFacts};
use serde::Serialize;

/// The whole report. Field names are stable; new ones may be added.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of this program.
    pub version: &'static str,
    /// Protocol spoken by `agent --stdio`.
    pub automation_protocol: &'static str,
    /// How pictures reach local browsers.
    pub automation_video_transport: &'static str,
    /// In which forms.
    pub automation_video_protocols: [&'static str; 2],
    /// What `connect` takes as `decoder`.
    pub automation_video_decoders: [&'static str; 2],
    /// Version of the GStreamer library, or null when it cannot start.
    pub gstreamer_version: Option<String>,
    /// Kernel and processor.
    pub system: String,
    /// The distribution's own name.
    pub distribution: String,
    /// True when a session on this machine can be watched.
    pub remote_viewing: bool,
    /// Why, in one sentence.
    pub remote_viewing_reason: String,
    /// Every decoder this project knows for this platform, best first.
    pub candidates: Vec<Candidate>,
    /// Every encoder it knows, best first.
    pub encoders: Vec<Encoder>,
    /// What draws windows.
    pub display_server: DisplayServer,
    /// Where passwords can be kept.
    pub credential_store: CredentialStore,
    /// Whether a local WebSocket listener can be opened.
    pub loopback: Loopback,
    /// What could decode in hardware.
    pub gpu: GpuFacts,
    /// Measurements of the file given with `--bench`; null without it.
    pub bench: Option<Bench>,
}

/// One decoder and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// GStreamer factory name.
    pub name: String,
    /// True when the factory is registered here.
    pub installed: bool,
    /// Version of the plugin that registered it; null when it is not installed.
    pub plugin_version: Option<String>,
    /// True when it decodes on a GPU or a codec device.
    pub hardware: bool,
    /// One of `proven`, `listed but not usable`, `wrong pixels`, `too slow`, `missing`.
    pub verdict: &'static str,
    /// What happened, when it is not proven.
    pub reason: Option<String>,
    /// Pictures it keeps back before the first comes out; zero is right for live viewing.
    pub frames_held: Option<u32>,
    /// Milliseconds of wall time per picture at 1920x1080.
    pub ms_per_frame_1080p: Option<f64>,
    /// Milliseconds of wall time per picture at 3840x2160.
    pub ms_per_frame_4k: Option<f64>,
    /// Where its pictures live: `system`, `va`, `cuda`, …
    pub memory: Option<String>,
    /// The one thing to do first, when anything would help.
    pub fix: Option<String>,
}

/// One encoder.
#[derive(Clone, Debug, Serialize)]
pub struct Encoder {
    /// GStreamer factory name.
    pub name: String,
    /// True when the factory is registered here.
    pub installed: bool,
    /// True when it encodes on a GPU or a codec device.
    pub hardware: bool,
}

/// Whether a local WebSocket listener can be opened.
#[derive(Clone, Debug, Serialize)]
pub struct Loopback {
    /// True when a connection to a listener on 127.0.0.1 succeeded.
    pub listening: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// Measurements of a file.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// The file as given.
    pub file: String,
    /// One row per decoder that could be tried.
    pub decoders: Vec<BenchRow>,
}

/// How one decoder coped with a file.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// GStreamer factory name.
    pub name: String,
    /// Pictures that came out.
    pub pictures: u64,
    /// Milliseconds of wall time per picture.
    pub ms_per_frame: Option<f64>,
    /// Why it stopped early.
    pub reason: Option<String>,
}
