//! What a source's threads share with its owner: where to deliver, and when to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;
use crossdesk_core::media::AccessUnit;
use crossdesk_core::time::Monotonic;

use super::{SourceEvent, SourceOutput};
use crate::clock;
use crate::plan::source::SourceFailure;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The owner is gone.
    Stop,
    /// The owner wants a keyframe.
    Keyframe,
    /// The deadline passed.
    Time,
}

#[derive(Default)]
struct Wishes {
    stop: bool,
    keyframe: bool,
}

/// Shared by a source's owner and its threads.
pub(super) struct Port {
    output: Arc<dyn SourceOutput>,
    description: String,
    /// Set by the last event and by the owner's farewell: nothing is delivered any more.
    closed: AtomicBool,
    opened: AtomicBool,
    last_unit: AtomicU64,
    last_keyframe: AtomicU64,
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

impl Port {
    pub(super) fn new(output: Arc<dyn SourceOutput>, description: String) -> Arc<Self> {
        Arc::new(Self {
            output,
            description,
            closed: AtomicBool::new(false),
            opened: AtomicBool::new(false),
            last_unit: AtomicU64::new(0),
            last_keyframe: AtomicU64::new(0),
            wishes: Mutex::new(Wishes::default()),
            changed: Condvar::new(),
        })
    }

    /// Delivers one access unit, announcing the source first.
    pub(super) fn unit(&self, data: Bytes, keyframe: bool) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let received = clock::now();
        self.last_unit.store(received.as_micros(), Ordering::Release);
        if keyframe {
            self.last_keyframe.store(received.as_micros(), Ordering::Release);
        }
        if !self.opened.swap(true, Ordering::AcqRel) {
            let description = self.description.clone();
            self.output.event(SourceEvent::Opened { description });
        }
        self.output.unit(AccessUnit { data, received });
        self.changed.notify_all();
    }

    /// When the newest access unit was delivered.
    pub(super) fn last_unit(&self) -> Option<Monotonic> {
        stored(&self.last_unit)
    }

    /// When the newest keyframe was delivered.
    pub(super) fn last_keyframe(&self) -> Option<Monotonic> {
        stored(&self.last_keyframe)
    }

    /// Nothing arrives, but the source goes on waiting: the next access unit opens it anew.
    pub(super) fn waiting(&self, reason: String) {
        self.opened.store(false, Ordering::Release);
        if !self.closed.load(Ordering::Acquire) {
            self.output.event(SourceEvent::Waiting { reason });
        }
    }

    /// The source played to its end.
    pub(super) fn end(&self) {
        self.last_event(SourceEvent::Ended);
    }

    /// The source is over.
    pub(super) fn fail(&self, failure: SourceFailure) {
        self.last_event(SourceEvent::Failed(failure));
    }

    fn last_event(&self, event: SourceEvent) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.output.event(event);
        }
    }

    /// The owner leaves: nothing more is delivered, every wait ends.
    pub(super) fn stop(&self) {
        self.closed.store(true, Ordering::Release);
        self.wish(|wishes| wishes.stop = true);
    }

    /// The owner wants a keyframe.
    pub(super) fn request_keyframe(&self) {
        self.wish(|wishes| wishes.keyframe = true);
    }

    /// True once the owner left.
    pub(super) fn stopped(&self) -> bool {
        self.lock().stop
    }

    /// Waits until `deadline`, a keyframe wish (which this takes) or the end.
    pub(super) fn wait_until(&self, deadline: Monotonic) -> Wake {
        let mut wishes = self.lock();
        loop {
            if wishes.stop {
                return Wake::Stop;
            }
            if std::mem::take(&mut wishes.keyframe) {
                return Wake::Keyframe;
            }
            let left = deadline.since(clock::now());
            if left.is_zero() {
                return Wake::Time;
            }
            let waited = self.changed.wait_timeout(wishes, left);
            wishes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Wishes> {
        // Two booleans are right whatever a panicking holder did.
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stored(cell: &AtomicU64) -> Option<Monotonic> {
    match cell.load(Ordering::Acquire) {
        0 => None,
        micros => Some(Monotonic::from_micros(micros)),
    }
}
