//! What a peer is told before it negotiates.

use std::fmt;
use std::time::{Duration, Instant};

use crossdesk_pipelines::clock;

use super::certificate::Certificate;

/// Which way media of a kind flow, seen from this peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From here to the other peer.
    Send,
    /// From the other peer to here.
    Receive,
}

/// H.264 video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoConfig {
    /// Which way it flows.
    pub direction: Direction,
    /// One track for each, in this order, when this peer offers: mid, stream id and track id. When it answers, the
    /// tracks are the offer's.
    pub tracks: Vec<String>,
    /// `profile_idc`, constraint flags and `level_idc`: of the stream when sending, the highest wanted when receiving.
    pub profile_level_id: [u8; 3],
}

/// Everything about a peer.
#[derive(Clone, Debug)]
pub struct Config {
    /// Video, or none.
    pub video: Option<VideoConfig>,
    /// Opus audio, 48 kHz, two channels, or none.
    pub audio: Option<Direction>,
    /// True to have data channels.
    pub data: bool,
    /// What is shown in the DTLS handshake.
    pub certificate: Certificate,
    /// Where this peer's own secrets and numbers come from.
    pub seed: Seed,
    /// Any instant. The parts below count in [`Instant`]; this one stands for the time of creation.
    pub epoch: Instant,
    /// After the descriptions were exchanged: how long a connection may take.
    pub connect_timeout: Duration,
    /// How long a connection that nothing passes any more may take to come back.
    pub resume_timeout: Duration,
}

impl Config {
    /// A peer without media and data, for the caller to add to, with a seed of the system.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new(certificate: Certificate) -> Result<Self, getrandom::Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)?;
        Ok(Self {
            video: None,
            audio: None,
            data: false,
            certificate,
            seed: Seed(seed),
            epoch: clock::instant(),
            connect_timeout: Duration::from_secs(20),
            resume_timeout: Duration::from_secs(10),
        })
    }
}

/// 32 random bytes of the system.
#[derive(Clone)]
pub struct Seed(pub [u8; 32]);

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}
