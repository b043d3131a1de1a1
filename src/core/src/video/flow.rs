//! One viewer's window: what is on its way, what was acknowledged, and whether one more frame may follow.

use std::collections::VecDeque;
use std::sync::Arc;

use super::latency::{Percentiles, Samples};
use super::{ACK_DEADLINE, MAX_UNACKED_BYTES, MAX_UNACKED_FRAMES, MAX_UNACKED_PICTURES, Message, Protocol};
use crate::time::Monotonic;

/// An acknowledgement that does not name the oldest frame sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongAck;

struct Outstanding {
    sequence: u32,
    bytes: usize,
    received: Monotonic,
    published: Monotonic,
    queued: Monotonic,
    written: Option<Monotonic>,
}

/// Frames given to a viewer and not acknowledged yet, oldest first.
pub(super) struct Flow {
    max_frames: usize,
    outstanding: VecDeque<Outstanding>,
    bytes: usize,
    /// The part of `outstanding` that the writer has not fetched.
    queue: VecDeque<Arc<Message>>,
    receive_to_send: Samples,
    tap_to_send: Samples,
    send_to_ack: Samples,
}

impl Flow {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            max_frames: match protocol {
                Protocol::H264AnnexB => MAX_UNACKED_FRAMES,
                Protocol::Nv12 => MAX_UNACKED_PICTURES,
            },
            outstanding: VecDeque::new(),
            bytes: 0,
            queue: VecDeque::new(),
            receive_to_send: Samples::default(),
            tap_to_send: Samples::default(),
            send_to_ack: Samples::default(),
        }
    }

    /// True when a message of `bytes` may follow now. One alone always may: a keyframe can exceed the byte limit,
    /// and whatever else is that large could never be sent otherwise.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.outstanding.is_empty()
            || (self.outstanding.len() < self.max_frames && self.bytes + bytes <= MAX_UNACKED_BYTES)
    }

    /// Queues a message; true when the writer had nothing to fetch before.
    pub(super) fn send(&mut self, now: Monotonic, message: Arc<Message>) -> bool {
        self.bytes += message.total_bytes();
        self.outstanding.push_back(Outstanding {
            sequence: message.sequence,
            bytes: message.total_bytes(),
            received: message.received,
            published: message.published,
            queued: now,
            written: None,
        });
        self.queue.push_back(message);
        self.queue.len() == 1
    }

    /// The next message to write.
    pub(super) fn fetch(&mut self) -> Option<Arc<Message>> {
        self.queue.pop_front()
    }

    /// The last byte of the oldest fetched message was written.
    pub(super) fn written(&mut self, now: Monotonic) {
        if let Some(frame) = self.outstanding.iter_mut().find(|frame| frame.written.is_none()) {
            frame.written = Some(now);
            self.receive_to_send.add(now.since(frame.received));
            self.tap_to_send.add(now.since(frame.published));
        }
    }

    /// Takes an acknowledgement, which must be of the oldest frame and of nothing the peer cannot have whole.
    pub(super) fn acknowledge(&mut self, now: Monotonic, sequence: u32) -> Result<(), WrongAck> {
        let oldest = self.outstanding.front().ok_or(WrongAck)?;
        let written = oldest
            .written
            .filter(|_| oldest.sequence == sequence)
            .ok_or(WrongAck)?;
        self.send_to_ack.add(now.since(written));
        self.bytes -= oldest.bytes;
        self.outstanding.pop_front();
        Ok(())
    }

    /// When the oldest frame must be acknowledged, counted from when it became this viewer's.
    pub(super) fn deadline(&self) -> Option<Monotonic> {
        self.outstanding
            .front()
            .map(|oldest| oldest.queued + ACK_DEADLINE)
    }

    /// Message bytes not acknowledged.
    pub(super) fn unacknowledged_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn receive_to_send(&self) -> Option<Percentiles> {
        self.receive_to_send.percentiles()
    }

    pub(super) fn tap_to_send(&self) -> Option<Percentiles> {
        self.tap_to_send.percentiles()
    }

    pub(super) fn send_to_ack(&self) -> Option<Percentiles> {
        self.send_to_ack.percentiles()
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn check_invariants(&self) {
        assert!(self.outstanding.len() <= self.max_frames);
        assert!(self.bytes <= MAX_UNACKED_BYTES || self.outstanding.len() == 1);
        assert_eq!(
            self.bytes,
            self.outstanding.iter().map(|frame| frame.bytes).sum::<usize>()
        );
        assert!(self.queue.len() <= self.outstanding.len());
        assert!(
            self.outstanding
                .iter()
                .is_sorted_by_key(|frame| frame.written.is_none()),
            "written in order"
        );
    }
}
