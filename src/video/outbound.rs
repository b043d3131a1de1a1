//! What is being written to one socket: a control frame or a shared message, possibly half sent.

use std::io::{self, IoSlice};
use std::sync::Arc;

use crossdesk_core::video::Message;
use crossdesk_core::video::websocket::{Opcode, ServerHeader};

/// One WebSocket frame on its way. The payload is never copied: header and payload go out as one vectored write.
enum Frame {
    Message {
        header: ServerHeader,
        message: Arc<Message>,
    },
    Control(Vec<u8>),
}

/// At most one frame, and how much of it was written.
#[derive(Default)]
pub(super) struct Outbound {
    frame: Option<Frame>,
    written: usize,
}

/// What a write has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The frame is not out yet.
    Partial,
    /// The last byte of a message was written.
    Message,
    /// The last byte of a control frame was written.
    Control,
}

impl Outbound {
    /// True between frames: the only time when another may start.
    pub(super) fn is_idle(&self) -> bool {
        self.frame.is_none()
    }

    /// Starts a message. Only between frames.
    pub(super) fn start_message(&mut self, message: Arc<Message>) {
        debug_assert!(self.is_idle(), "frames must not be mixed");
        let header = ServerHeader::new(Opcode::Binary, message.total_bytes());
        self.frame = Some(Frame::Message { header, message });
        self.written = 0;
    }

    /// Starts a complete control frame. Only between frames.
    pub(super) fn start_control(&mut self, frame: Vec<u8>) {
        debug_assert!(self.is_idle(), "frames must not be mixed");
        self.frame = Some(Frame::Control(frame));
        self.written = 0;
    }

    /// Takes back a message of which nothing was written. False inside a frame that cannot be taken back.
    pub(super) fn cancel_unstarted(&mut self) -> bool {
        if self.written == 0 {
            self.frame = None;
        }
        self.is_idle()
    }

    /// Calls `write` once with what is left and drops the frame when that was all.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Progress> {
        let (parts, done): ([&[u8]; 3], _) = match &self.frame {
            None => return Ok(Progress::Partial),
            Some(Frame::Control(bytes)) => ([bytes, &[], &[]], Progress::Control),
            Some(Frame::Message { header, message }) => (
                [header.as_bytes(), message.header(), message.payload()],
                Progress::Message,
            ),
        };
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut slices = parts.map(IoSlice::new);
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, self.written);
        let count = write(rest)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += count;
        if self.written < total {
            return Ok(Progress::Partial);
        }
        self.frame = None;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use crossdesk_core::media::TapUnit;
    use crossdesk_core::time::Monotonic;

    use super::*;

    fn message(len: usize) -> Arc<Message> {
        let unit = TapUnit {
            data: (0..len).map(|at| at as u8).collect::<Bytes>(),
            idr: true,
            sequence: 3,
            received: Monotonic::from_micros(9),
        };
        Arc::new(Message::h264(2, &unit, Monotonic::ZERO).unwrap())
    }

    /// Writes at most `step` bytes a time, from as many slices as that takes.
    fn drain(outbound: &mut Outbound, step: usize) -> (Vec<u8>, Progress) {
        let mut wire = Vec::new();
        loop {
            let progress = outbound.write(|slices| {
                let mut left = step;
                for slice in slices {
                    let take = left.min(slice.len());
                    wire.extend_from_slice(&slice[..take]);
                    left -= take;
                }
                Ok(step - left)
            });
            match progress.unwrap() {
                Progress::Partial => assert!(!outbound.is_idle()),
                done => return (wire, done),
            }
        }
    }

    #[test]
    fn any_split_of_the_writes_gives_the_same_bytes() {
        for len in [0, 1, 101, 102, 70_000] {
            let message = message(len);
            let mut expected = ServerHeader::new(Opcode::Binary, 24 + len).as_bytes().to_vec();
            expected.extend_from_slice(message.header());
            expected.extend_from_slice(message.payload());
            for step in [1, 2, 9, 11, 25, 4096, 1 << 20] {
                let mut outbound = Outbound::default();
                outbound.start_message(Arc::clone(&message));
                let (wire, done) = drain(&mut outbound, step);
                assert!(wire == expected, "{len} bytes in steps of {step}");
                assert_eq!(done, Progress::Message);
                assert!(outbound.is_idle());
            }
            assert_eq!(Arc::strong_count(&message), 1, "released after the last byte");
        }
    }

    #[test]
    fn a_socket_that_takes_nothing_is_an_error() {
        let mut outbound = Outbound::default();
        outbound.start_control(vec![1, 2]);
        assert_eq!(
            outbound.write(|_| Ok(0)).unwrap_err().kind(),
            io::ErrorKind::WriteZero
        );
    }
}
