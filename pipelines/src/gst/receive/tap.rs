//! The compressed tap: access units from the running graph to viewers, each exactly once and in order.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use crossdesk_core::media::TapUnit;

use crate::gst::tag::Tag;
use crate::receive::ReceiveOutput;

/// Lets through what the current try delivers and no try has delivered before: a replayed group passes the
/// tap a second time.
pub(super) struct Tap {
    output: Arc<dyn ReceiveOutput>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attempt: u32,
    newest: u32,
}

impl Tap {
    pub fn new(output: Arc<dyn ReceiveOutput>) -> Self {
        Self {
            output,
            state: Mutex::default(),
        }
    }

    /// From now on only `attempt` is heard.
    pub fn switch_to(&self, attempt: u32) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).attempt = attempt;
    }

    /// Publishes a buffer of try `attempt`; a streaming thread calls this.
    pub fn publish(&self, attempt: u32, buffer: gst::Buffer) {
        let Some(tag) = Tag::read(&buffer) else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.attempt != attempt || tag.sequence <= state.newest {
            return;
        }
        let Ok(mapped) = buffer.into_mapped_buffer_readable() else {
            return;
        };
        state.newest = tag.sequence;
        // Under the lock, so that a dying graph cannot deliver after its successor.
        self.output.unit(TapUnit {
            data: Bytes::from_owner(mapped),
            idr: tag.idr,
            sequence: tag.sequence,
            received: tag.received,
        });
    }
}
