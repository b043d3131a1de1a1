//! The connection's moving parts: a transport, the receive graph it feeds, and where both deliver.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossdesk_core::automation::TransportDiagnostics;
use crossdesk_core::media::{AccessUnit, TapUnit};
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::receive::{Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput};

use super::event::AgentEvent;
use crate::transport::{Transport, TransportEvent, TransportOutput};
use crate::video::Publisher;

/// The newest decoded picture: a channel of one place where a newer picture replaces an older one.
#[derive(Debug, Default)]
pub struct LatestPicture {
    slot: Mutex<Option<Picture>>,
    /// True while the loop has not seen the picture in the slot.
    fresh: AtomicBool,
}

impl LatestPicture {
    /// Replaces the picture; true when the one before had been seen, so that the loop needs a wake-up.
    fn put(&self, picture: Picture) -> bool {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(picture);
        !self.fresh.swap(true, Ordering::AcqRel)
    }

    /// The picture when it was not seen before.
    pub fn take_fresh(&self) -> Option<Picture> {
        self.fresh
            .swap(false, Ordering::AcqRel)
            .then(|| self.get())
            .flatten()
    }

    /// The picture, seen or not.
    pub fn get(&self) -> Option<Picture> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the picture.
    pub fn clear(&self) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Where the receive graph delivers.
struct Pictures {
    latest: Arc<LatestPicture>,
    publisher: Option<Publisher>,
    events: SyncSender<AgentEvent>,
}

impl ReceiveOutput for Pictures {
    fn unit(&self, unit: TapUnit) {
        if let Some(publisher) = &self.publisher {
            publisher.publish_unit(unit);
        }
    }

    fn picture(&self, picture: Picture) {
        if let Some(publisher) = &self.publisher {
            publisher.publish_picture(picture.clone());
        }
        if self.latest.put(picture) {
            // Full means that the loop is awake: it looks at the slot after every event.
            let _ = self.events.try_send(AgentEvent::Picture);
        }
    }

    fn event(&self, event: ReceiveEvent) {
        send(&self.events, AgentEvent::Receive(event));
    }
}

/// Where the transport delivers.
struct Units {
    receiver: Arc<Receiver>,
    dropped: Arc<AtomicU64>,
    events: SyncSender<AgentEvent>,
}

impl TransportOutput for Units {
    fn unit(&self, unit: AccessUnit) {
        if self.receiver.push(unit).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn event(&self, event: TransportEvent) {
        send(&self.events, AgentEvent::Transport(event));
    }
}

/// Events are few and must not be lost; the loop empties its inbox within milliseconds, so waiting here is short.
fn send(events: &SyncSender<AgentEvent>, event: AgentEvent) {
    // The loop is gone only when the process is about to end: nobody is left to tell.
    let _ = events.send(event);
}

/// Makes the transport of a connection; given where it delivers.
pub type Dial<'a> = &'a dyn Fn(Arc<dyn TransportOutput>) -> Box<dyn Transport>;

/// One connection.
pub struct Media {
    transport: Box<dyn Transport>,
    receiver: Arc<Receiver>,
    /// Access units the receive graph did not take.
    dropped: Arc<AtomicU64>,
}

/// What a connection is made of.
pub struct MediaParts {
    /// How access units are decoded.
    pub receive: ReceiveConfig,
    /// Where the newest picture is kept.
    pub latest: Arc<LatestPicture>,
    /// Where live video goes, with `--video-ws`.
    pub publisher: Option<Publisher>,
    /// The loop's inbox.
    pub events: SyncSender<AgentEvent>,
}

impl Media {
    /// Starts the receive graph, then the transport that feeds it.
    ///
    /// # Errors
    /// When GStreamer cannot be used.
    pub fn start(parts: MediaParts, dial: Dial<'_>) -> Result<Self, String> {
        let pictures = Pictures {
            latest: parts.latest,
            publisher: parts.publisher,
            events: parts.events.clone(),
        };
        let receiver =
            Receiver::start(&parts.receive, Arc::new(pictures)).map_err(|error| error.to_string())?;
        let receiver = Arc::new(receiver);
        let dropped = Arc::new(AtomicU64::new(0));
        let units = Units {
            receiver: Arc::clone(&receiver),
            dropped: Arc::clone(&dropped),
            events: parts.events,
        };
        Ok(Self {
            transport: dial(Arc::new(units)),
            receiver,
            dropped,
        })
    }

    /// The transport.
    pub fn transport(&self) -> &dyn Transport {
        self.transport.as_ref()
    }

    /// Nothing more comes from the transport: lets pictures still on their way come out, then says so with
    /// [`ReceiveEvent::Drained`].
    pub fn finish(&self) {
        self.receiver.finish();
    }

    /// Counters for `status`.
    pub fn diagnostics(&self) -> TransportDiagnostics {
        let mut diagnostics = self.transport.diagnostics();
        diagnostics.dropped += self.dropped.load(Ordering::Relaxed);
        diagnostics
    }

    /// Ends both on a thread of their own: a source or decoder that hangs must not hold up the session. The other end of
    /// what is returned closes once the transport has said goodbye.
    pub fn stop(self) -> Goodbye {
        let (end, ended) = sync_channel(0);
        let ending = thread::Builder::new().name("media-end".into()).spawn(move || {
            drop(self.transport);
            drop(end);
            drop(self.receiver);
        });
        // Without a thread the parts were dropped right here, slower but just as well.
        drop(ending);
        Goodbye(ended)
    }
}

/// A transport that is being ended.
pub struct Goodbye(mpsc::Receiver<()>);

impl Goodbye {
    /// Waits until the other side was told, or for `limit`.
    pub fn wait(self, limit: Duration) {
        // Closed is what it waits for, and too late cannot be helped.
        let _ = self.0.recv_timeout(limit);
    }
}
