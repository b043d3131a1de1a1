//! Where access units come from: the forms of `--source`, their limits and the reasons they end.

use std::path::PathBuf;
use std::time::Duration;

use crossdesk_core::error::ErrorCode;
use crossdesk_core::units::{FrameRate, PixelSize};

use super::encoder::EncoderSettings;

mod credentials;
mod parse;
pub mod sdp;
pub mod sniff;
pub mod timeline;

pub use credentials::{Credentials, CredentialsError};
pub use parse::SourceSpecError;

/// A source as it was asked for; nothing has been opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    /// A recording, paced by its own timestamps.
    File(FileSource),
    /// An RTSP server.
    Rtsp(RtspSource),
    /// Bare RTP over UDP.
    Rtp(RtpSource),
    /// Bare RTP over UDP, described by a session description file.
    Sdp(FileSource),
    /// A generated desktop, encoded here.
    Test(TestSource),
}

/// A recording on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSource {
    /// Names to try in this order: as written, then with its percent escapes decoded.
    pub candidates: Vec<PathBuf>,
    /// Play once and end, instead of looping.
    pub once: bool,
}

/// An RTSP address without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtspSource {
    /// The address as given.
    pub uri: String,
    /// Name or address of the server, without brackets.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
}

/// A UDP socket that receives H.264 in RTP (RFC 6184).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtpSource {
    /// Local address to bind, or a multicast group to join.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// The only RTP payload type accepted, or any.
    pub payload_type: Option<u8>,
    /// RTP clock rate in Hz; RFC 6184 fixes it at 90 000.
    pub clock_rate: u32,
    /// How long a missing packet is waited for.
    pub latency: Duration,
    /// `sprop-parameter-sets` from a session description: SPS and PPS in base64.
    pub parameter_sets: Option<String>,
}

/// The generated desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestSource {
    /// Picture size, both edges even.
    pub size: PixelSize,
    /// Pictures per second.
    pub rate: FrameRate,
    /// Most pictures from one keyframe to the next.
    pub gop: u32,
    /// Encoder target.
    pub bitrate: Bitrate,
    /// Slices per picture; 0 leaves it to the encoder.
    pub slices: u32,
    /// End after this many pictures.
    pub frames: Option<u64>,
}

impl TestSource {
    /// What its encoder is asked for.
    pub const fn encoder(&self) -> EncoderSettings {
        EncoderSettings {
            gop: self.gop,
            bitrate: self.bitrate,
            slices: self.slices,
        }
    }
}

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bitrate(u64);

impl Bitrate {
    /// `n` thousand bits per second.
    pub const fn from_kbit(n: u32) -> Self {
        Self(n as u64 * 1000)
    }

    /// Thousands of bits per second.
    pub const fn kbit(self) -> u64 {
        self.0 / 1000
    }

    /// Bits per second.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// Why a source is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFailure {
    /// The kind of trouble.
    pub code: ErrorCode,
    /// What happened, in words fit for `status`; no credentials.
    pub reason: String,
    /// True when the same source may work later without anyone changing anything here.
    pub retryable: bool,
}

impl SourceFailure {
    /// A failure that stays until someone acts.
    pub fn lasting(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            retryable: false,
        }
    }

    /// A failure that may pass by itself.
    pub fn passing(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            retryable: true,
        }
    }
}

impl RtspSource {
    /// The path asked for, without query or fragment.
    pub fn path(&self) -> &str {
        let place = self.uri.split_once("://").map_or("", |(_, place)| place);
        let place = place.split(['?', '#']).next().unwrap_or(place);
        place.find('/').map_or("/", |at| &place[at..])
    }
}

impl SourceSpec {
    /// Reads the text of `--source`.
    ///
    /// # Errors
    /// A sentence naming the part that is wrong; it never repeats user information from an address.
    pub fn parse(text: &str) -> Result<Self, SourceSpecError> {
        parse::parse(text)
    }

    /// True when losing it is worth reconnecting: there is another side that may come back.
    pub const fn is_network(&self) -> bool {
        matches!(self, Self::Rtsp(_) | Self::Rtp(_) | Self::Sdp(_))
    }

    /// What it is, in one word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Rtsp(_) => "rtsp",
            Self::Rtp(_) => "rtp",
            Self::Sdp(_) => "sdp",
            Self::Test(_) => "test",
        }
    }
}

impl std::fmt::Display for SourceSpec {
    /// Says what it is without any credentials or query.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |file: &FileSource| file.candidates.first().map(|path| path.display().to_string());
        match self {
            Self::File(file) => write!(f, "file {}", name(file).unwrap_or_default()),
            Self::Sdp(file) => write!(f, "session description {}", name(file).unwrap_or_default()),
            Self::Rtsp(rtsp) => f.write_str(rtsp.uri.split(['?', '#']).next().unwrap_or_default()),
            Self::Rtp(rtp) => write!(f, "rtp on {} port {}", rtp.host, rtp.port),
            Self::Test(test) => write!(
                f,
                "generated desktop {}x{} at {}/s",
                test.size.width, test.size.height, test.rate.num
            ),
        }
    }
}
