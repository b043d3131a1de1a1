//! The receive graph's owner: one worker thread, one disposable GStreamer graph per decoder try.
//!
//! The worker owns the access units: it conditions and numbers them, keeps the current group of pictures for
//! replay, feeds the graph, and matches pictures with their units. What to do about decoders is decided by
//! [`Failover`](crate::plan::failover::Failover). Graphs are opened and stopped on spare threads, because a
//! driver may hang in either.

mod gate;
mod graph;
mod inbox;
mod ledger;
mod tap;
mod worker;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::media::{AccessUnit, MAX_ACCESS_UNIT_BYTES};
use crossdesk_core::time::Monotonic;

pub(crate) use self::inbox::Inbox;
use self::worker::Worker;
use super::InitError;
use crate::plan::shape::StreamShape;
use crate::receive::{Receive, ReceiveConfig, ReceiveOutput, Refused};

/// A conditioned access unit with all that must be known when its picture comes out.
#[derive(Clone, Debug)]
struct Unit {
    sequence: u32,
    received: Monotonic,
    /// Strictly increasing over the connection; follows the receive time.
    pts: gst::ClockTime,
    idr: bool,
    data: Bytes,
    shape: StreamShape,
}

/// A running receive graph.
pub struct Receiver {
    inbox: Arc<Inbox>,
    worker: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts a receiver; the first decoder is chosen when the first IDR arrives.
    ///
    /// # Errors
    /// When GStreamer cannot be initialised, or no thread can be started.
    pub fn start(config: &ReceiveConfig, output: Arc<dyn ReceiveOutput>) -> Result<Self, InitError> {
        super::init()?;
        let inbox = Arc::new(Inbox::new(config.pace));
        let worker = Worker::new(config, inbox.clone(), output);
        let worker = std::thread::Builder::new()
            .name("receive".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| InitError(error.to_string()))?;
        Ok(Self {
            inbox,
            worker: Some(worker),
        })
    }

    /// Waits until an access unit of `bytes` bytes has room, at most `patience`; for lossless pace.
    pub fn wait_for_room(&self, bytes: usize, patience: Duration) {
        self.inbox.wait_for_room(bytes, patience);
    }
}

impl Receive for Receiver {
    fn push(&self, unit: AccessUnit) -> Result<(), Refused> {
        if unit.data.len() > MAX_ACCESS_UNIT_BYTES {
            return Err(Refused::TooLarge);
        }
        if !(unit.data.starts_with(&[0, 0, 1]) || unit.data.starts_with(&[0, 0, 0, 1])) {
            return Err(Refused::NotAccessUnit);
        }
        self.inbox.push(unit)
    }

    fn finish(&self) {
        self.inbox.finish();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.inbox.stop();
        if let Some(worker) = self.worker.take() {
            drop(worker.join());
        }
    }
}
