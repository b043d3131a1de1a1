//! The bounded queue in front of stdout: 64 messages, 8 MiB, and 10 s without progress end the process.
//!
//! The loop pushes reply lines, writes from [`OutputQueue::front`], and reports progress. Time without anything
//! to write does not count as blocked.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes};

use crate::time::Monotonic;

/// Most lines waiting (protocol, "Envelope").
pub const MAX_MESSAGES: usize = 64;
/// Most bytes waiting (protocol, "Envelope"): two replies of the largest size.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Longest time without a byte written while something waits (protocol, "Envelope").
pub const BLOCKED_LIMIT: Duration = Duration::from_secs(10);

/// The queue is full; the line is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFull(pub Bytes);

/// Lines waiting to be written to stdout.
#[derive(Debug, Default)]
pub struct OutputQueue {
    lines: VecDeque<Bytes>,
    bytes: usize,
    last_progress: Option<Monotonic>,
}

impl OutputQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `line`.
    ///
    /// # Errors
    /// When 64 messages or 8 MiB would be exceeded. A caller that writes requests without reading replies must be
    /// made to wait: stop reading stdin while [`Self::has_room`] is false.
    pub fn push(&mut self, now: Monotonic, line: Bytes) -> Result<(), OutputFull> {
        if self.lines.len() >= MAX_MESSAGES || self.bytes + line.len() > MAX_BYTES {
            return Err(OutputFull(line));
        }
        if line.is_empty() {
            return Ok(());
        }
        if self.lines.is_empty() {
            self.last_progress = Some(now);
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        Ok(())
    }

    /// The bytes to write next; empty when nothing waits.
    pub fn front(&self) -> &[u8] {
        self.lines.front().map_or(&[], |line| line)
    }

    /// Takes note that `count` bytes of [`Self::front`] were written.
    pub fn wrote(&mut self, now: Monotonic, count: usize) {
        let Some(line) = self.lines.front_mut() else {
            return;
        };
        let count = count.min(line.len());
        if count == 0 {
            return;
        }
        line.advance(count);
        self.bytes -= count;
        if line.is_empty() {
            self.lines.pop_front();
        }
        self.last_progress = (!self.lines.is_empty()).then_some(now);
    }

    /// When the reader of stdout is given up, unless bytes move before.
    pub fn deadline(&self) -> Option<Monotonic> {
        self.last_progress.map(|last| last + BLOCKED_LIMIT)
    }

    /// True when nothing was written for 10 s although something waits.
    pub fn is_blocked(&self, now: Monotonic) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// True when at least half of both limits is free, so that another request may be read.
    pub fn has_room(&self) -> bool {
        self.lines.len() <= MAX_MESSAGES / 2 && self.bytes <= MAX_BYTES / 2
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn it_holds_64_messages() {
        let mut queue = OutputQueue::new();
        for _ in 0..MAX_MESSAGES {
            queue.push(at(0), Bytes::from_static(b"{}\n")).expect("room");
        }
        let refused = queue.push(at(0), Bytes::from_static(b"last\n"));
        assert_eq!(refused, Err(OutputFull(Bytes::from_static(b"last\n"))));
    }

    #[test]
    fn it_holds_8_mib() {
        let mut queue = OutputQueue::new();
        queue
            .push(at(0), Bytes::from(vec![b'x'; MAX_BYTES]))
            .expect("exactly full");
        assert!(queue.push(at(0), Bytes::from_static(b"x")).is_err());
        queue.wrote(at(0), 1);
        assert!(queue.push(at(0), Bytes::from_static(b"x")).is_ok());
    }

    #[test]
    fn ten_seconds_without_a_byte_are_the_end() {
        let mut queue = OutputQueue::new();
        assert_eq!(queue.deadline(), None);
        queue.push(at(5), Bytes::from_static(b"abc\n")).expect("room");
        assert!(!queue.is_blocked(at(14)));
        queue.wrote(at(14), 1);
        assert!(!queue.is_blocked(at(23)));
        assert!(queue.is_blocked(at(24)));
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut queue = OutputQueue::new();
        queue.push(at(0), Bytes::from_static(b"a\n")).expect("room");
        queue.wrote(at(1), 2);
        assert!(queue.is_empty());
        assert_eq!(queue.deadline(), None);
        queue.push(at(100), Bytes::from_static(b"b\n")).expect("room");
        assert_eq!(queue.deadline(), Some(at(110)));
    }

    #[test]
    fn a_second_push_does_not_extend_the_wait() {
        let mut queue = OutputQueue::new();
        queue.push(at(0), Bytes::from_static(b"a\n")).expect("room");
        queue.push(at(9), Bytes::from_static(b"b\n")).expect("room");
        assert_eq!(queue.deadline(), Some(at(10)));
    }
}
