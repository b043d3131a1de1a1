//! Captures built: a screen is watched, its pictures are encoded, access units come out.
//!
//! One thread owns the screen and the encoder. It sleeps while the screen is still; commands and units wake it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossdesk_core::screen::Screen;
use crossdesk_core::units::{FrameRate, PixelSize};

use crate::capture::{CaptureFailure, CaptureOutput};
use crate::plan::capture::CaptureSettings;
use crate::plan::source::Bitrate;

mod desk;
mod graph;
mod worker;

use desk::{Desk, Wishes};

/// An owner that lets go waits this long for the usual quick end; an encoder that hangs finishes later, alone.
const FAREWELL: Duration = Duration::from_millis(300);

/// A running capture; dropping it ends it, and nothing is delivered afterwards.
pub struct Capture {
    desk: Arc<Desk>,
    /// Behind a lock only so that a capture can be shared.
    done: Mutex<Receiver<()>>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl Capture {
    /// Starts to encode `screen`; returns at once, everything else is an event.
    pub fn start(screen: Box<dyn Screen>, settings: CaptureSettings, output: Arc<dyn CaptureOutput>) -> Self {
        let desk = Desk::new(output, screen.waker());
        // One slot, filled once by a thread that ends right after: it never blocks.
        let (finished, done) = sync_channel(1);
        let worker = Arc::clone(&desk);
        let thread = thread::Builder::new().name("capture".to_owned());
        let spawned = thread.spawn(move || {
            if let Err(failure) = worker::run(screen, settings, &worker) {
                worker.fail(failure);
            }
            drop(worker);
            let _ = finished.send(());
        });
        if let Err(error) = spawned {
            desk.fail(CaptureFailure::Unusable(format!("no thread: {error}")));
        }
        Self {
            desk,
            done: Mutex::new(done),
        }
    }

    /// Makes the next picture an IDR, at once when the screen is still. Never blocks, nor do the others.
    pub fn request_keyframe(&self) {
        self.desk.wish(|wishes| wishes.keyframe = true);
    }

    /// Changes the encoder's target.
    pub fn set_bitrate(&self, bitrate: Bitrate) {
        self.desk.wish(|wishes| wishes.bitrate = Some(bitrate));
    }

    /// Changes how many pictures are taken at most per second; starts with an IDR.
    pub fn set_frame_rate(&self, rate: FrameRate) {
        self.desk.wish(|wishes| wishes.rate = Some(rate));
    }

    /// Changes the size of the encoded pictures, to the screen's own with `None`; starts with an IDR.
    pub fn set_size(&self, size: Option<PixelSize>) {
        self.desk.wish(|wishes| wishes.size = Some(size));
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.desk.close();
        self.desk.wish(|wishes: &mut Wishes| wishes.stop = true);
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        if done.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("a capture is slow to stop; it finishes on its own");
        }
    }
}

#[cfg(test)]
mod tests;
