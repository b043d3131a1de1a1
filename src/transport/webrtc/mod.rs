//! A WebRTC peer: ICE, DTLS, SRTP, data channels, and the media layer of `crossdesk_core::rtp` on top.
//!
//! [`Peer`] does no I/O: datagrams, descriptions, candidates and time go in; datagrams, descriptions and events come
//! out. One side offers, the other answers; either may send or receive video and audio. [`Connection`] gives a peer its
//! sockets, its time and a thread.

mod candidate;
mod certificate;
mod channels;
mod config;
#[cfg(target_os = "linux")]
mod connection;
mod dcep;
mod drive;
mod event;
mod feedback;
mod media;
mod negotiate;
mod peer;
mod random;
mod sdp;
mod secure;
mod servers;
#[cfg(target_os = "linux")]
mod sockets;
mod srtp;
mod stats;
#[cfg(test)]
mod tests;

pub use candidate::CandidateIgnored;
pub use certificate::Certificate;
pub use channels::{ChannelEvent, ChannelId, SendRefused};
pub use config::{Config, Direction, Seed, VideoConfig};
#[cfg(target_os = "linux")]
pub use connection::{Connection, Network, PeerOutput, StartError};
pub use dcep::{ChannelConfig, Reliability};
pub use event::{CandidateKind, Event, Failure, Path, Transmit};
pub use media::{AudioPacket, OutgoingUnit, UnitRefused};
pub use negotiate::NegotiationError;
pub use peer::Peer;
pub use sdp::{MAX_SDP_BYTES, SdpError};
pub use servers::{IceServers, TurnServer};
pub use stats::{PeerStats, ReceivedTrack, SentTrack};

/// Largest datagram sent, in bytes: passes links with an MTU of 1280 and a tunnel's header.
const DATAGRAM_BYTES: usize = 1200;
