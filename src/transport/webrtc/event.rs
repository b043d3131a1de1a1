//! What a peer reports.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::rtp::receive::ReceivedUnit;

use super::channels::ChannelEvent;
use super::media::AudioPacket;
use super::negotiate::NegotiationError;

/// How an address was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateKind {
    /// A socket of the machine itself.
    Host,
    /// As a STUN server sees it.
    ServerReflexive,
    /// As the other peer sees it.
    PeerReflexive,
    /// An address of a TURN server.
    Relayed,
}

impl From<is::CandidateKind> for CandidateKind {
    fn from(kind: is::CandidateKind) -> Self {
        match kind {
            is::CandidateKind::Host => Self::Host,
            is::CandidateKind::ServerReflexive => Self::ServerReflexive,
            is::CandidateKind::PeerReflexive => Self::PeerReflexive,
            is::CandidateKind::Relayed => Self::Relayed,
        }
    }
}

/// The pair of addresses in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Here.
    pub local: SocketAddr,
    /// How it was found.
    pub local_kind: CandidateKind,
    /// There.
    pub remote: SocketAddr,
    /// How it was found.
    pub remote_kind: CandidateKind,
}

/// Why a connection ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The other side's description does not go with this one's.
    Negotiation(NegotiationError),
    /// No pair of addresses worked in time.
    NoPath(Duration),
    /// A path was there, but the DTLS handshake did not end in time.
    NoHandshake(Duration),
    /// Nothing passed any more, and it did not come back in time.
    ConnectionLost,
    /// The certificate of the other side is not the one whose digest the signaling gave.
    WrongFingerprint,
    /// The DTLS session broke.
    Dtls(String),
    /// Media cannot be protected with what the handshake agreed on.
    Srtp(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negotiation(error) => error.fmt(f),
            Self::NoPath(time) => write!(f, "no pair of addresses worked within {} s", time.as_secs()),
            Self::NoHandshake(time) => {
                write!(f, "the DTLS handshake did not end within {} s", time.as_secs())
            }
            Self::ConnectionLost => f.write_str("the connection was lost"),
            Self::WrongFingerprint => f.write_str("the other side has another certificate than announced"),
            Self::Dtls(error) => write!(f, "DTLS failed: {error}"),
            Self::Srtp(error) => write!(f, "SRTP failed: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Media and data can flow.
    Connected(Path),
    /// They flow over other addresses now.
    PathChanged(Path),
    /// Nothing passes at the moment; an ICE restart may help.
    Interrupted,
    /// It passes again.
    Resumed,
    /// A whole access unit; it depends on nothing that is missing.
    Unit {
        /// Of which video section, the first being 0.
        track: usize,
        /// The unit.
        unit: ReceivedUnit,
    },
    /// An Opus packet.
    Audio(AudioPacket),
    /// The next unit of this track should be an IDR.
    KeyframeRequested {
        /// Which video section, the first being 0.
        track: usize,
    },
    /// A data channel.
    Channel(ChannelEvent),
    /// The other side left, or [`close`](super::Peer::close) was called. Nothing follows.
    Closed,
    /// The connection ended. Nothing follows.
    Failed(Failure),
}

/// A datagram for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The local candidate's socket, or the address of a TURN server that relays.
    pub local: SocketAddr,
    /// Where it goes.
    pub remote: SocketAddr,
    /// What it holds.
    pub data: Bytes,
}
