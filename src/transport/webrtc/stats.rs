//! Counters of a peer.

use std::time::Duration;

use crossdesk_core::rtp::receive::ReceiveStats;
use crossdesk_core::rtp::rtcp::ReportBlock;
use crossdesk_core::rtp::send::SendStats;

/// What a peer has seen so far; a track that flows the other way counts nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerStats {
    /// Round trip of the path: from the other side's reports, before them from ICE.
    pub round_trip: Option<Duration>,
    /// Each video track that is sent.
    pub sent: Vec<SentTrack>,
    /// Each video track that is received.
    pub received: Vec<ReceivedTrack>,
    /// Bits per second that the other side thinks the path carries, when it says so.
    pub estimate: Option<u64>,
    /// Datagrams and bytes given to the sockets.
    pub datagrams_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Datagrams taken from the sockets.
    pub datagrams_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Of those, the ones dropped because they were forged, damaged or of nobody known.
    pub datagrams_ignored: u64,
    /// Bits per second of the last half second.
    pub bitrate_out: u64,
    /// The same for what arrived.
    pub bitrate_in: u64,
}

/// A video track that is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentTrack {
    /// Which; the first video section is 0.
    pub track: usize,
    /// Packets and retransmissions.
    pub packets: SendStats,
    /// Units refused because an IDR was needed first or too much waited.
    pub refused: u64,
    /// Share of packets that the other side missed in its last report, 0 to 1. What came on request is not missed:
    /// `packets.repeated` tells of the losses that were mended.
    pub loss: f64,
    /// Packets that it missed since the beginning.
    pub lost: i64,
    /// Interarrival jitter in its last report.
    pub jitter: Duration,
}

/// A video track that is received.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceivedTrack {
    /// Which; the first video section is 0.
    pub track: usize,
    /// Packets, retransmissions and units.
    pub packets: ReceiveStats,
    /// Share of packets missed in the last report, 0 to 1, without those that came on request.
    pub loss: f64,
    /// Interarrival jitter in the last report.
    pub jitter: Duration,
}

/// Share of packets lost in a report, 0 to 1.
pub(super) fn loss(report: &ReportBlock) -> f64 {
    f64::from(report.fraction_lost) / 256.0
}

/// Jitter of a report about video.
pub(super) fn jitter(report: &ReportBlock) -> Duration {
    // 90 kHz to microseconds.
    Duration::from_micros(u64::from(report.jitter) * 100 / 9)
}
