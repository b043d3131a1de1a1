//! Sources built: each yields whole H.264 access units in Annex B form, in real time.
//!
//! A source runs on its own threads. Stopping one never waits for GStreamer: its threads take their
//! pipeline down on their own, and a closed port already keeps everything late from being delivered.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossdesk_core::error::ErrorCode;
use crossdesk_core::media::AccessUnit;

use crate::plan::source::{Credentials, SourceFailure, SourceSpec};

pub(super) mod elements;
mod file;
mod generate;
mod network;
mod port;
mod reach;

use port::Port;

/// An owner that lets go waits this long for the usual quick end, so that sockets and files are free again
/// when it goes on; a source that hangs finishes later, alone.
const FAREWELL: Duration = Duration::from_millis(300);

/// Sources that were let go and have not finished; each has threads, and maybe a socket. A server that feeds every
/// try just enough to keep it from ending must not fill the process with them.
const MOST_STRAGGLERS: usize = 8;

/// The sources that were let go before they finished, each by what its end closes.
struct Stragglers(Vec<Receiver<()>>);

static STRAGGLERS: Mutex<Stragglers> = Mutex::new(Stragglers(Vec::new()));

impl Stragglers {
    fn add(&mut self, done: Receiver<()>) {
        self.0.push(done);
    }

    /// Forgets those that have finished; true when one more may be added.
    fn has_room(&mut self) -> bool {
        self.0.retain(|done| done.try_recv() == Err(TryRecvError::Empty));
        self.0.len() < MOST_STRAGGLERS
    }

    fn lock() -> std::sync::MutexGuard<'static, Self> {
        STRAGGLERS.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened to a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceEvent {
    /// The first access unit is about to be delivered.
    Opened {
        /// What was opened, in words fit for `status`: no credentials, no query.
        description: String,
    },
    /// Nothing arrives, and the source goes on waiting; `Opened` says when something does.
    Waiting {
        /// What is missing, in words fit for `status`.
        reason: String,
    },
    /// A source that plays once reached its end; nothing follows.
    Ended,
    /// The source is over; nothing follows.
    Failed(SourceFailure),
}

/// Where a source delivers. Called on its own threads; must not block.
pub trait SourceOutput: Send + Sync {
    /// One whole access unit.
    fn unit(&self, unit: AccessUnit);
    /// One event; `Ended` and `Failed` come at most once and last.
    fn event(&self, event: SourceEvent);
}

/// A running source; dropping it stops it, and nothing is delivered afterwards.
pub struct Source {
    port: Arc<Port>,
    /// Closed by the end of its thread. Behind a lock only so that a source can be shared.
    done: Mutex<Option<Receiver<()>>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl Source {
    /// Starts `spec`; returns at once, everything else is an event.
    pub fn start(spec: SourceSpec, credentials: Option<Credentials>, output: Arc<dyn SourceOutput>) -> Self {
        let port = Port::new(output, spec.to_string());
        if !Stragglers::lock().has_room() {
            let reason = format!("{MOST_STRAGGLERS} earlier tries have not ended yet");
            port.fail(SourceFailure::passing(ErrorCode::SourceUnreachable, reason));
            return Self {
                port,
                done: Mutex::default(),
            };
        }
        // One slot, filled once by a thread that ends right after: it never blocks.
        let (finished, done) = sync_channel(1);
        let worker = Arc::clone(&port);
        let thread = thread::Builder::new().name("source".to_owned());
        let spawned = thread.spawn(move || {
            run(spec, credentials.as_ref(), &worker);
            let _ = finished.send(());
        });
        if let Err(error) = spawned {
            let reason = format!("no thread for the source: {error}");
            port.fail(SourceFailure::passing(ErrorCode::SourceUnreachable, reason));
        }
        Self {
            port,
            done: Mutex::new(Some(done)),
        }
    }

    /// Asks for a keyframe soon, where the source can do that; never blocks.
    pub fn request_keyframe(&self) {
        self.port.request_keyframe();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.port.stop();
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done
            && done.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout)
        {
            tracing::warn!("a source is slow to stop; it finishes on its own");
            Stragglers::lock().add(done);
        }
    }
}

fn run(spec: SourceSpec, credentials: Option<&Credentials>, port: &Arc<Port>) {
    if let Err(error) = crate::gst::init() {
        port.fail(SourceFailure::lasting(
            ErrorCode::PluginMissing,
            error.to_string(),
        ));
        return;
    }
    let result = match spec {
        SourceSpec::File(file) => file::run(file, port),
        SourceSpec::Test(test) => generate::run(&test, port),
        SourceSpec::Rtsp(rtsp) => network::rtsp(&rtsp, credentials, port),
        SourceSpec::Rtp(rtp) => network::rtp(&rtp, port),
        SourceSpec::Sdp(file) => network::sdp(&file, port),
    };
    if let Err(failure) = result {
        port.fail(failure);
    }
}

#[cfg(test)]
mod tests;
