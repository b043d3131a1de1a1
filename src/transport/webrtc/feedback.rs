//! Reports and wishes as compound RTCP packets, and the clock in them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use crossdesk_core::rtp::receive::Feedback;
use crossdesk_core::rtp::rtcp::{self, ReportBlock};
use crossdesk_core::time::Monotonic;

/// Sequence numbers in one request, so that it fits a datagram however they are scattered.
const NACKS_IN_PACKET: usize = 250;

/// Writes a wish as compound packets; a reduced one would have to be negotiated.
pub(super) fn ask(own: u32, ssrc: u32, wish: &Feedback, out: &mut VecDeque<BytesMut>) {
    let compound = |write: &dyn Fn(&mut BytesMut)| {
        let mut packet = BytesMut::new();
        rtcp::write_receiver_report(own, &[], &mut packet);
        write(&mut packet);
        packet
    };
    match wish {
        Feedback::Nack(sequences) => {
            for part in sequences.chunks(NACKS_IN_PACKET) {
                out.push_back(compound(&|packet| rtcp::write_nack(own, ssrc, part, packet)));
            }
        }
        Feedback::KeyframeWanted => {
            out.push_back(compound(&|packet| rtcp::write_picture_loss(own, ssrc, packet)));
        }
    }
}

/// A report of what was sent. `clock` is a moment on the stream's clock, which counts `kilohertz`.
pub(super) fn sender_report(
    now: Monotonic,
    ssrc: u32,
    (at, timestamp): (Monotonic, u32),
    kilohertz: u64,
    counts: (u32, u32),
) -> BytesMut {
    let passed = now.since(at).as_micros() as u64 * kilohertz / 1000;
    let mut out = BytesMut::new();
    let media = timestamp.wrapping_add(passed as u32);
    rtcp::write_sender_report(ssrc, (ntp(now), media), counts, &mut out);
    out
}

/// Any clock will do: the other side only gives it back, and sets streams against each other.
fn ntp(now: Monotonic) -> u64 {
    let micros = now.as_micros();
    let fraction = ((micros % 1_000_000) << 32) / 1_000_000;
    (micros / 1_000_000) << 32 | fraction
}

/// A span in 1/65536 s.
pub(super) fn fixed(span: Duration) -> u64 {
    (span.as_micros() as u64 * 65_536) / 1_000_000
}

pub(super) fn round_trip(now: Monotonic, report: &ReportBlock) -> Option<Duration> {
    if report.last_report == 0 {
        return None;
    }
    let now = (ntp(now) >> 16) as u32;
    let trip = now.wrapping_sub(report.last_report).wrapping_sub(report.delay);
    // A nonsensical report makes more than a minute of it.
    let trip = u64::from(trip);
    (trip < 60 << 16).then(|| Duration::from_micros(trip * 1_000_000 / 65_536))
}
