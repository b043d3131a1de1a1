//! Packets of one video stream into access units, each whole and only after everything it depends on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::assemble::{Assembler, Malformed, Opening, opening_of};
use super::missing::Missing;
use super::packet::Packet;
use super::rtcp::ReportBlock;
use super::sequence::Unwrapper;
use crate::time::Monotonic;

/// Most packets that wait for others, and their bytes. A second of 4K at 80 Mbit/s; beyond it everything is dropped
/// and a key frame asked for.
const MAX_PACKETS: usize = 8192;
const MAX_BYTES: usize = 12 * 1024 * 1024;

/// Least time between two requests for a key frame; they are repeated until one has come whole.
const LEAST_KEYFRAME_RETRY: Duration = Duration::from_millis(100);

/// Access units waiting to be polled: those that one packet can complete.
const MAX_READY: usize = 1024;

/// A whole access unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedUnit {
    /// Annex B bytes.
    pub data: Bytes,
    /// Its media time, 90 kHz, modulo 2^32.
    pub timestamp: u32,
    /// True for an IDR.
    pub idr: bool,
    /// When its last packet arrived.
    pub received: Monotonic,
    /// True when units between the one before and this one were lost; then this one is an IDR.
    pub after_loss: bool,
}

/// What the sender must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// These packets are missing.
    Nack(Vec<u16>),
    /// Nothing can be shown before a key frame.
    KeyframeWanted,
}

/// Counters since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStats {
    /// Packets that arrived, without duplicates.
    pub packets: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Packets that arrived twice or too late.
    pub useless: u64,
    /// Packets that came after they were missed.
    pub recovered: u64,
    /// Times that waiting was given up and a key frame was needed.
    pub breaks: u64,
    /// Packets asked for, repetitions included.
    pub requested: u64,
    /// Access units handed out.
    pub units: u64,
}

struct Waiting {
    packet: Packet,
    arrived: Monotonic,
}

/// The receiver of one stream; see the module's header.
///
/// A clean link adds nothing: an access unit is out with its last packet. Under loss a unit waits for what is asked
/// for; when that takes too long everything up to the next IDR is dropped.
#[derive(Default)]
pub struct Receiver {
    sequence: Unwrapper,
    packets: BTreeMap<u64, Waiting>,
    bytes: usize,
    /// Packets that may begin a unit where decoding can start.
    openings: BTreeSet<u64>,
    missing: Missing,
    /// What lies below is out or given up.
    floor: u64,
    /// The first packet that is not out; `None` while nothing can be shown.
    next: Option<u64>,
    /// How far packets follow each other without a hole.
    end: u64,
    highest: Option<u64>,
    /// True until the IDR at `next` is out.
    starting: bool,
    lost: bool,
    keyframe_asked: Option<Monotonic>,
    ready: VecDeque<ReceivedUnit>,
    stats: ReceiveStats,
    clock: Clock,
}

impl Receiver {
    /// A receiver that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a packet of the stream.
    pub fn handle_packet(&mut self, now: Monotonic, packet: Packet) {
        let sequence = self.sequence.extend(packet.sequence);
        if sequence < self.floor || self.packets.contains_key(&sequence) {
            self.missing.repeated(sequence);
            self.stats.useless += 1;
            return;
        }
        self.stats.packets += 1;
        self.stats.bytes += packet.payload.len() as u64;
        let overtaken = self.highest.is_some_and(|highest| sequence < highest);
        if overtaken {
            self.stats.recovered += u64::from(self.missing.fill(now, sequence));
        } else {
            self.clock.measure(now, packet.timestamp);
            let first = self.highest.map_or(sequence, |highest| highest + 1);
            self.highest = Some(sequence);
            if !self.missing.notice(now, first, sequence) {
                self.lose();
                self.forget_below(sequence);
            }
        }
        self.keep(now, sequence, packet);
        self.advance();
    }

    /// Does what is due: gives up, or asks again.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        while self.missing.is_hopeless(now)
            && let Some(hole) = self.missing.forget_oldest()
        {
            if self.next.is_some_and(|next| next <= hole) {
                self.lose();
            }
            self.advance();
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_feedback`](Self::poll_feedback) is due.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let again = self.next.is_none().then(|| self.keyframe_due()).flatten();
        self.missing.next_deadline().into_iter().chain(again).min()
    }

    /// The next access unit.
    pub fn poll_unit(&mut self) -> Option<ReceivedUnit> {
        self.ready.pop_front()
    }

    /// What to tell the sender now, until `None`.
    pub fn poll_feedback(&mut self, now: Monotonic) -> Option<Feedback> {
        let wanted = self.missing.ask(now);
        if !wanted.is_empty() {
            self.stats.requested += wanted.len() as u64;
            return Some(Feedback::Nack(
                wanted.into_iter().map(|sequence| sequence as u16).collect(),
            ));
        }
        if self.next.is_none() && self.keyframe_due().is_none_or(|due| due <= now) {
            self.keyframe_asked = Some(now);
            return Some(Feedback::KeyframeWanted);
        }
        None
    }

    /// The counters.
    pub fn stats(&self) -> ReceiveStats {
        self.stats
    }

    /// What the next report says about the stream `ssrc`, with what was lost since the report before.
    pub fn report(&mut self, ssrc: u32) -> ReportBlock {
        let highest = self.highest.unwrap_or_default();
        let first = *self.clock.first.get_or_insert(highest);
        let expected = highest.saturating_sub(first) + u64::from(self.highest.is_some());
        let lost = expected.saturating_sub(self.stats.packets);
        let (expected_before, lost_before) = std::mem::replace(&mut self.clock.reported, (expected, lost));
        let (expected_now, lost_now) = (
            expected.saturating_sub(expected_before),
            lost.saturating_sub(lost_before),
        );
        let fraction = (lost_now << 8).checked_div(expected_now).unwrap_or_default();
        ReportBlock {
            ssrc,
            fraction_lost: fraction.min(255) as u8,
            lost: i32::try_from(lost).unwrap_or(i32::MAX),
            highest: highest as u32,
            jitter: (self.clock.jitter / 16) as u32,
            ..ReportBlock::default()
        }
    }

    /// Packets and bytes that wait for others, and packets that are waited for.
    pub fn held(&self) -> (usize, usize, usize) {
        (self.packets.len(), self.bytes, self.missing.len())
    }

    fn keyframe_due(&self) -> Option<Monotonic> {
        let pause = (self.missing.round_trip() * 3 / 2).max(LEAST_KEYFRAME_RETRY);
        self.keyframe_asked.map(|asked| asked + pause)
    }

    fn keep(&mut self, now: Monotonic, sequence: u64, packet: Packet) {
        self.clock.first.get_or_insert(sequence);
        if opening_of(&packet.payload) != Opening::None {
            self.openings.insert(sequence);
        }
        self.bytes += packet.payload.len();
        let waiting = Waiting { packet, arrived: now };
        self.packets.insert(sequence, waiting);
        if self.packets.len() > MAX_PACKETS || self.bytes > MAX_BYTES {
            self.lose();
            // Whatever waits has no beginning that could be shown, or it would be out.
            self.forget_below(sequence + 1);
        }
    }

    /// Nothing that depends on what is missing can be shown any more; an IDR behind it may be here already.
    fn lose(&mut self) {
        if self.next.take().is_some() {
            self.stats.breaks += 1;
            self.lost = self.stats.units > 0;
            self.keyframe_asked = None;
            self.forget_below(self.end);
        }
    }

    /// Hands out what is whole.
    fn advance(&mut self) {
        loop {
            if self.next.is_none() && !self.start() {
                return;
            }
            while self.packets.contains_key(&self.end) {
                let whole = self.closes(self.end);
                self.end += 1;
                if whole && self.hand_out().is_err() {
                    self.lose();
                    break;
                }
            }
            if self.next.is_some() {
                let given_up = self.highest.is_some_and(|highest| self.end <= highest)
                    && !self.missing.contains(self.end);
                if !given_up {
                    return;
                }
                self.lose();
            }
        }
    }

    /// Finds the unit at which decoding starts; false when there is none.
    fn start(&mut self) -> bool {
        let openings: Vec<u64> = self.openings.iter().copied().collect();
        for opening in openings {
            let Some((first, certain)) = self.beginning(opening) else {
                continue;
            };
            if certain {
                self.forget_below(first);
                (self.next, self.end) = (Some(first), first);
                self.starting = true;
                return true;
            }
            // The packet before may be its parameter sets. Before the very first packet nobody has missed it yet.
            if self.clock.first == Some(first) {
                self.clock.first = Some(first - 1);
                self.missing
                    .notice(self.packets[&first].arrived, first - 1, first);
            }
            if !self.missing.contains(first - 1) {
                self.openings.remove(&opening);
            }
        }
        false
    }

    /// The first packet of the unit that `opening` is part of, and whether that is certain.
    fn beginning(&self, opening: u64) -> Option<(u64, bool)> {
        let timestamp = self.timestamp(opening)?;
        let mut first = opening;
        while self.timestamp(first - 1) == Some(timestamp) {
            first -= 1;
        }
        let has_sets = (first..=opening)
            .filter_map(|at| self.packets.get(&at))
            .any(|waiting| opening_of(&waiting.packet.payload) == Opening::ParameterSets);
        Some((first, has_sets || self.packets.contains_key(&(first - 1))))
    }

    fn timestamp(&self, sequence: u64) -> Option<u32> {
        self.packets
            .get(&sequence)
            .map(|waiting| waiting.packet.timestamp)
    }

    /// True when the packet is the last of its unit: it says so, or the next one belongs to another.
    fn closes(&self, sequence: u64) -> bool {
        let Some(Waiting { packet, .. }) = self.packets.get(&sequence) else {
            return false;
        };
        packet.marker
            || self
                .timestamp(sequence + 1)
                .is_some_and(|next| next != packet.timestamp)
    }

    /// Joins the packets from `next` to `end`.
    fn hand_out(&mut self) -> Result<(), Malformed> {
        let first = self.next.ok_or(Malformed)?;
        let rest = self.packets.split_off(&self.end);
        let unit = std::mem::replace(&mut self.packets, rest);
        (self.next, self.floor) = (Some(self.end), self.end);
        self.openings = self.openings.split_off(&self.end);
        debug_assert!(unit.keys().next() == Some(&first), "everything older is out");
        let bytes: usize = unit.values().map(|waiting| waiting.packet.payload.len()).sum();
        self.bytes -= bytes;
        let mut assembler = Assembler::with_capacity(bytes + 4 * unit.len().min(16));
        for waiting in unit.values() {
            assembler.push(&waiting.packet.payload)?;
        }
        let (data, idr) = assembler.finish()?;
        if self.starting && !idr {
            return Err(Malformed);
        }
        let last = unit.values().map(|waiting| waiting.arrived).max();
        let timestamp = unit.values().next().map(|waiting| waiting.packet.timestamp);
        self.starting = false;
        self.keyframe_asked = None;
        if self.ready.len() == MAX_READY {
            return Err(Malformed);
        }
        self.stats.units += 1;
        self.ready.push_back(ReceivedUnit {
            data,
            timestamp: timestamp.unwrap_or_default(),
            idr,
            received: last.unwrap_or_default(),
            after_loss: std::mem::take(&mut self.lost),
        });
        Ok(())
    }

    fn forget_below(&mut self, sequence: u64) {
        self.floor = self.floor.max(sequence);
        self.missing.forget_below(sequence);
        let rest = self.packets.split_off(&sequence);
        let dropped = std::mem::replace(&mut self.packets, rest);
        self.bytes -= dropped
            .values()
            .map(|waiting| waiting.packet.payload.len())
            .sum::<usize>();
        self.openings = self.openings.split_off(&sequence);
    }
}

/// Interarrival jitter (RFC 3550, appendix A.8) and what reports were made of before.
#[derive(Debug, Default)]
struct Clock {
    /// The last packet in order: its arrival and its media time.
    last: Option<(Monotonic, u32)>,
    /// Sixteen times the jitter in units of 90 kHz.
    jitter: u64,
    first: Option<u64>,
    reported: (u64, u64),
}

impl Clock {
    fn measure(&mut self, now: Monotonic, timestamp: u32) {
        let Some((before, old)) = self.last.replace((now, timestamp)) else {
            return;
        };
        // Microseconds to 90 kHz.
        let passed = now.since(before).as_micros() as i64 * 9 / 100;
        let step = i64::from(timestamp.wrapping_sub(old).cast_signed());
        let difference = (passed - step).unsigned_abs();
        self.jitter = self.jitter + difference - (self.jitter + 8) / 16;
    }
}
