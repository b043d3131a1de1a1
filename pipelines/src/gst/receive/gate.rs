//! What keeps a decoder from running ahead of its proof.
//!
//! Until its first picture was accepted a decoder gets a few access units only; the others wait in the queue
//! before it. So no picture waits unseen in one of a device's few surfaces, and none is lost when the proof
//! takes long.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gst::prelude::*;

use crate::gst::tag::Tag;

/// Lets access units through up to a sequence number; the queue's thread waits here for more.
pub(super) struct Gate {
    last: Mutex<u32>,
    moved: Condvar,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            last: Mutex::new(u32::MAX),
            moved: Condvar::new(),
        }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, u32> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds back units numbered above `last`.
    pub fn hold_after(&self, last: u32) {
        *self.lock() = last;
    }

    /// Lets everything through, now and later.
    pub fn open(&self) {
        *self.lock() = u32::MAX;
        self.moved.notify_all();
    }

    /// Guards what leaves `queue`.
    pub fn guard(self: Arc<Self>, queue: &gst::Element) {
        let pad = queue.static_pad("src").expect("a queue has a source pad");
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if let Some(tag) = info.buffer().and_then(|buffer| Tag::read(buffer)) {
                let held = |last: &mut u32| tag.sequence > *last;
                drop(self.moved.wait_while(self.lock(), held));
            }
            gst::PadProbeReturn::Ok
        });
    }
}
