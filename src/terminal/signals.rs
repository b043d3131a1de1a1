//! Signals that ask the process to end, as a question instead of a sudden death.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Takes SIGTERM, SIGHUP and SIGINT for as long as it lives.
#[derive(Debug)]
pub struct EndSignals {
    asked: Arc<AtomicBool>,
    ids: Vec<SigId>,
}

impl EndSignals {
    /// From now on these signals only set a flag.
    ///
    /// # Errors
    /// When the system refuses the handlers.
    pub fn watch() -> io::Result<Self> {
        // What is registered when a later one fails is taken back by the drop.
        let mut signals = Self {
            asked: Arc::default(),
            ids: Vec::new(),
        };
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            let id = signal_hook::flag::register(signal, Arc::clone(&signals.asked))?;
            signals.ids.push(id);
        }
        Ok(signals)
    }

    /// True once a signal asked the process to end.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for EndSignals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
