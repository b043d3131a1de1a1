//! Access units of one video stream into packets, and those again that were lost.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::packet::Packet;
use super::packetize::packetize;
use crate::time::Monotonic;

/// Packets kept for requests: at 40 Mbit/s more than a second, and never more bytes than this.
const MAX_HISTORY: usize = 8192;
const MAX_HISTORY_BYTES: usize = 12 * 1024 * 1024;
/// A request for a packet that was sent again this recently is a repetition on its way.
const LEAST_REPEAT: Duration = Duration::from_millis(8);
/// Times that one packet is sent again.
const MAX_REPEATS: u32 = 16;
/// When nothing follows a unit, its last packet is sent again after these: a loss at the very end cannot be noticed
/// by the receiver, and a still screen would stay wrong.
const TAIL: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(80)];

struct Sent {
    packet: Packet,
    last: Monotonic,
    repeats: u32,
}

/// Counters since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStats {
    /// Packets sent for the first time.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Packets sent again on request.
    pub repeated: u64,
    /// Packets sent again because nothing followed.
    pub tail_repeats: u64,
}

/// The sender of one stream.
pub struct Sender {
    ssrc: u32,
    payload_type: u8,
    max_payload: usize,
    sequence: u16,
    queue: VecDeque<Packet>,
    history: VecDeque<Sent>,
    history_bytes: usize,
    /// When the last unit was pushed, and how often its tail was repeated.
    tail: Option<(Monotonic, usize)>,
    stats: SendStats,
}

impl Sender {
    /// A sender of `ssrc` whose first packet has the number `sequence`; payloads are at most `max_payload` bytes.
    pub fn new(ssrc: u32, payload_type: u8, max_payload: usize, sequence: u16) -> Self {
        Self {
            ssrc,
            payload_type,
            max_payload,
            sequence,
            queue: VecDeque::new(),
            history: VecDeque::new(),
            history_bytes: 0,
            tail: None,
            stats: SendStats::default(),
        }
    }

    /// Takes an access unit (Annex B) with its media time, 90 kHz.
    pub fn push(&mut self, now: Monotonic, unit: &Bytes, timestamp: u32) {
        let payloads = packetize(unit, self.max_payload);
        let count = payloads.len();
        for (n, payload) in payloads.into_iter().enumerate() {
            self.stats.packets += 1;
            self.stats.bytes += payload.len() as u64;
            let packet = Packet {
                payload_type: self.payload_type,
                marker: n + 1 == count,
                sequence: self.sequence,
                timestamp,
                ssrc: self.ssrc,
                payload,
            };
            self.sequence = self.sequence.wrapping_add(1);
            self.remember(now, packet.clone());
            self.queue.push_back(packet);
        }
        self.tail = (count > 0).then_some((now, 0)).or(self.tail);
    }

    /// The next packet to send; poll until `None` after each call.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.queue.pop_front()
    }

    /// The receiver misses these.
    pub fn handle_nack(&mut self, now: Monotonic, sequences: &[u16]) {
        let Some(newest) = self.history.back().map(|sent| sent.packet.sequence) else {
            return;
        };
        for sequence in sequences {
            let back = usize::from(newest.wrapping_sub(*sequence));
            let index = self.history.len().checked_sub(back + 1);
            let Some(sent) = index.and_then(|index| self.history.get_mut(index)) else {
                continue;
            };
            let again = sent.repeats == 0 || now.since(sent.last) >= LEAST_REPEAT;
            if again && sent.repeats < MAX_REPEATS {
                sent.repeats += 1;
                sent.last = now;
                self.stats.repeated += 1;
                self.queue.push_back(sent.packet.clone());
            }
        }
    }

    /// Repeats the last packet when nothing followed it.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        if self.next_deadline().is_some_and(|due| due <= now)
            && let (Some((_, done)), Some(sent)) = (&mut self.tail, self.history.back())
        {
            *done += 1;
            self.stats.tail_repeats += 1;
            self.queue.push_back(sent.packet.clone());
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let (pushed, done) = self.tail?;
        TAIL.get(done).map(|pause| pushed + *pause)
    }

    /// The counters.
    pub fn stats(&self) -> SendStats {
        self.stats
    }

    fn remember(&mut self, now: Monotonic, packet: Packet) {
        self.history_bytes += packet.payload.len();
        self.history.push_back(Sent {
            packet,
            last: now,
            repeats: 0,
        });
        while self.history.len() > MAX_HISTORY || self.history_bytes > MAX_HISTORY_BYTES {
            let Some(oldest) = self.history.pop_front() else {
                break;
            };
            self.history_bytes -= oldest.packet.payload.len();
        }
    }
}
