//! The receive side as its users see it: access units in, tapped units and pictures out, no GStreamer in sight.
//!
//! [`gst::receive::Receiver`](crate::gst::receive::Receiver) is the real one, [`fake`](crate::fake) the scripted
//! one for tests. One receiver lives as long as one connection: its sequence numbers and geometry epochs start
//! at 1 and survive every change of decoder.

use std::fmt;
use std::str::FromStr;

use crossdesk_core::media::{AccessUnit, TapUnit};

use crate::picture::Picture;
use crate::plan::decoders::{self, Platform};

/// Which decoders a connection may use; fixed for its lifetime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DecoderChoice {
    /// Hardware first, software when none proves itself.
    #[default]
    Auto,
    /// Software only; hardware is never opened.
    Software,
    /// Exactly this GStreamer factory, for diagnosis. Nothing takes over when it fails.
    Named(String),
}

/// A name that stands for no decoder of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDecoder(String);

impl fmt::Display for UnknownDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = decoders::names(Platform::current()).collect();
        let name = &self.0;
        write!(
            f,
            "there is no decoder {name:?} for this system; known are auto, software, {}",
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownDecoder {}

impl FromStr for DecoderChoice {
    type Err = UnknownDecoder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "software" => Ok(Self::Software),
            name if decoders::names(Platform::current()).any(|known| known == name) => {
                Ok(Self::Named(name.to_owned()))
            }
            name => Err(UnknownDecoder(name.to_owned())),
        }
    }
}

/// What happens when access units arrive faster than they are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Live: the decoder skips to the next IDR, and [`ReceiveEvent::KeyframeWanted`] asks for one.
    #[default]
    Live,
    /// Every picture counts (tests, benchmarks): [`Receive::push`] answers [`Refused::Full`] instead.
    Lossless,
}

/// How a receiver is to work.
#[derive(Clone, Debug, Default)]
pub struct ReceiveConfig {
    /// Which decoders may be used.
    pub decoder: DecoderChoice,
    /// What gives way under load.
    pub pace: Pace,
}

/// Why an access unit was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The inbox holds its 60 access units or 8 MiB. In live pace the receiver waits for the next IDR.
    Full,
    /// More bytes than [`MAX_ACCESS_UNIT_BYTES`](crossdesk_core::media::MAX_ACCESS_UNIT_BYTES).
    TooLarge,
    /// No Annex B start code at its beginning.
    NotAccessUnit,
    /// The receiver has ended.
    Stopped,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the receive queue is full",
            Self::TooLarge => "the access unit is larger than 4 MiB",
            Self::NotAccessUnit => "the data is not an H.264 access unit in Annex B form",
            Self::Stopped => "the receiver has ended",
        })
    }
}

impl std::error::Error for Refused {}

/// When a decoder failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureStage {
    /// Its element or device could not be opened.
    Open,
    /// Its first picture had not been accepted yet.
    Proof,
    /// It had delivered good pictures before.
    Running,
}

impl FailureStage {
    /// The word used in `status` and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Proof => "proof",
            Self::Running => "running",
        }
    }
}

/// One decoder that was tried and given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecoderFailure {
    /// GStreamer factory name.
    pub name: String,
    /// When it failed.
    pub stage: FailureStage,
    /// Why, for people.
    pub reason: String,
}

/// Why a receiver cannot show the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveFailure {
    /// No decoder of the kind asked for is installed or usable on this machine.
    DecoderUnavailable,
    /// Every candidate was tried and failed.
    DecoderFailed,
    /// The stream's own properties cannot be shown (bit depth, size, chroma format).
    StreamUnsupported,
}

impl ReceiveFailure {
    /// The error code of the automation protocol.
    pub const fn code(self) -> &'static str {
        match self {
            Self::DecoderUnavailable => "DECODER_UNAVAILABLE",
            Self::DecoderFailed => "DECODER_FAILED",
            Self::StreamUnsupported => "STREAM_UNSUPPORTED",
        }
    }
}

/// What a receiver reports besides units and pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiveEvent {
    /// A decoder was proven and its pictures are being delivered.
    DecoderSelected {
        /// GStreamer factory name.
        name: String,
        /// True when it decodes on a GPU or a codec device.
        hardware: bool,
        /// Where its pictures live: `system`, `va`, `cuda`, ...
        memory: String,
    },
    /// A decoder was given up; another is tried next.
    DecoderFailed(DecoderFailure),
    /// Decoding cannot go on before the next IDR; ask the sender for one.
    KeyframeWanted,
    /// An access unit was dropped because it is no decodable H.264.
    UnitRefused {
        /// Its place in the receive order.
        sequence: u32,
        /// Why, for people.
        reason: String,
    },
    /// The decoder is slower than the stream: pictures are skipped up to the next IDR.
    Overloaded,
    /// Nothing more is shown, unless a later SPS describes a stream that can be.
    Failed {
        /// Which kind of failure.
        code: ReceiveFailure,
        /// Why, for people.
        reason: String,
    },
    /// Everything pushed before [`Receive::finish`] has come out.
    Drained,
}

/// Where a receiver delivers. Called on its own threads; implementations must not block.
pub trait ReceiveOutput: Send + Sync {
    /// One access unit, in receive order, complete with parameter sets on IDRs.
    fn unit(&self, unit: TapUnit);
    /// One decoded picture, in display order.
    fn picture(&self, picture: Picture);
    /// Anything else.
    fn event(&self, event: ReceiveEvent);
}

/// A running receiver; dropping it ends it within a second.
pub trait Receive: Send + Sync {
    /// Hands over one access unit; never blocks.
    ///
    /// # Errors
    /// When it was not taken; see [`Refused`].
    fn push(&self, unit: AccessUnit) -> Result<(), Refused>;

    /// Says that no access unit follows for now: pictures held for reordering come out, then
    /// [`ReceiveEvent::Drained`]. Pushing again afterwards starts at the next IDR.
    fn finish(&self);
}
