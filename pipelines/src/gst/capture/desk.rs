//! What a capture's threads share: wishes for the worker, units that came out, and where to deliver.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossdesk_core::screen::Waker;
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::{FrameRate, PixelSize};

use crate::capture::{CaptureEvent, CaptureFailure, CaptureOutput, CapturedUnit};
use crate::plan::source::Bitrate;

/// Units that came out and were not looked at by the worker; it lets no more pictures in than this.
const REPORTS: usize = 16;

/// What the owner wants; a newer wish replaces an older one.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    pub(super) stop: bool,
    pub(super) keyframe: bool,
    pub(super) bitrate: Option<Bitrate>,
    pub(super) rate: Option<FrameRate>,
    pub(super) size: Option<Option<PixelSize>>,
}

/// A unit that came out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// When its picture was taken.
    pub(super) captured: Monotonic,
    pub(super) bytes: usize,
}

#[derive(Default)]
struct State {
    wishes: Wishes,
    reports: VecDeque<Report>,
}

/// Shared by the owner, the worker and the encoder's thread.
pub(super) struct Desk {
    output: Arc<dyn CaptureOutput>,
    waker: Arc<dyn Waker>,
    /// Set by the last event and by the owner's farewell: nothing is delivered any more.
    closed: AtomicBool,
    state: Mutex<State>,
}

impl Desk {
    pub(super) fn new(output: Arc<dyn CaptureOutput>, waker: Arc<dyn Waker>) -> Arc<Self> {
        Arc::new(Self {
            output,
            waker,
            closed: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// Notes a wish and wakes the worker.
    pub(super) fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut self.lock().wishes);
        self.waker.wake();
    }

    /// Takes every wish; `stop` stays.
    pub(super) fn take_wishes(&self) -> Wishes {
        let mut state = self.lock();
        let stop = state.wishes.stop;
        std::mem::replace(
            &mut state.wishes,
            Wishes {
                stop,
                ..Wishes::default()
            },
        )
    }

    /// Takes the units that came out since the last call.
    pub(super) fn take_reports(&self) -> VecDeque<Report> {
        std::mem::take(&mut self.lock().reports)
    }

    /// Delivers one access unit and tells the worker about it.
    pub(super) fn unit(&self, unit: CapturedUnit) {
        let report = Report {
            captured: unit.captured,
            bytes: unit.data.len(),
        };
        if !self.closed.load(Ordering::Acquire) {
            self.output.unit(unit);
        }
        let mut state = self.lock();
        if state.reports.len() == REPORTS {
            state.reports.pop_front();
        }
        state.reports.push_back(report);
        drop(state);
        self.waker.wake();
    }

    /// Delivers an event that is not the last.
    pub(super) fn event(&self, event: CaptureEvent) {
        if !self.closed.load(Ordering::Acquire) {
            self.output.event(event);
        }
    }

    /// Delivers the last event.
    pub(super) fn fail(&self, failure: CaptureFailure) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.output.event(CaptureEvent::Failed(failure));
        }
    }

    /// Nothing is delivered from here on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Wishes and sizes are right whatever a panicking holder did.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
