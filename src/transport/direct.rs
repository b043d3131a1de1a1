//! A direct source as a transport: pictures come, input is refused, and a lost network source is tried again.
//!
//! One thread owns the source and the machine that decides over it. Access units do not pass through that
//! thread: they go from the source's own thread to the output, counted on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use crossdesk_core::automation::{ControlOutcome, TransportDiagnostics, TransportState};
use crossdesk_core::control::ControlMessage;
use crossdesk_core::error::ErrorCode;
use crossdesk_core::media::AccessUnit;
use crossdesk_pipelines::clock;
use crossdesk_pipelines::gst::source::{Source, SourceEvent, SourceOutput};
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};

use super::reconnect::{Action, Reconnect};
use super::{Transport, TransportEvent, TransportOutput};

/// Messages waiting for the transport's thread. A source sends a handful in its life and the thread takes
/// them at once; were it ever full, an event of a source would be lost, so the source counts as broken.
const WAITING_MESSAGES: usize = 64;
/// Without a deadline the thread sleeps this long between looks at nothing.
const IDLE: Duration = Duration::from_secs(3600);

enum Message {
    Event(u64, SourceEvent),
    Keyframe,
    Stop,
}

/// Counters behind `diagnostics`.
#[derive(Default)]
struct Counters {
    units: AtomicU64,
    bytes: AtomicU64,
    keyframe_requests: AtomicU64,
    reconnects: AtomicU32,
}

/// A running direct source; dropping it stops the source on a thread of its own.
pub struct Direct {
    kind: &'static str,
    messages: SyncSender<Message>,
    counters: Arc<Counters>,
    /// Closed by the owner's farewell: nothing is delivered afterwards.
    open: Arc<AtomicBool>,
    keyframe_pending: Arc<AtomicBool>,
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Direct {
    /// Starts `spec`; returns at once, everything else is an event of `output`.
    pub fn start(
        spec: SourceSpec,
        credentials: Option<Credentials>,
        output: Arc<dyn TransportOutput>,
    ) -> Self {
        let (messages, inbox) = sync_channel(WAITING_MESSAGES);
        let direct = Self {
            kind: spec.kind(),
            messages: messages.clone(),
            counters: Arc::default(),
            open: Arc::new(AtomicBool::new(true)),
            keyframe_pending: Arc::default(),
        };
        let told = Arc::clone(&output);
        let worker = Worker {
            machine: Reconnect::new(spec.is_network()),
            spec,
            credentials,
            output,
            open: Arc::clone(&direct.open),
            counters: Arc::clone(&direct.counters),
            keyframe_pending: Arc::clone(&direct.keyframe_pending),
            messages,
            source: None,
        };
        let thread = thread::Builder::new().name("transport".to_owned());
        if let Err(error) = thread.spawn(move || worker.run(&inbox)) {
            told.event(TransportEvent::State(TransportState::Failed {
                code: ErrorCode::Internal,
                reason: format!("no thread for the transport: {error}"),
            }));
        }
        direct
    }
}

impl Transport for Direct {
    fn request_keyframe(&self) {
        self.counters.keyframe_requests.fetch_add(1, Ordering::Relaxed);
        // Wishes coalesce: one that has not been taken yet stands for this one too.
        if !self.keyframe_pending.swap(true, Ordering::AcqRel)
            && self.messages.try_send(Message::Keyframe).is_err()
        {
            self.keyframe_pending.store(false, Ordering::Release);
        }
    }

    fn send_control(&self, _message: ControlMessage) -> ControlOutcome {
        ControlOutcome::Refused
    }

    fn select_display(&self, _index: u8) {}

    fn diagnostics(&self) -> TransportDiagnostics {
        TransportDiagnostics {
            kind: self.kind.to_owned(),
            access_units: self.counters.units.load(Ordering::Relaxed),
            bytes: self.counters.bytes.load(Ordering::Relaxed),
            keyframe_requests: self.counters.keyframe_requests.load(Ordering::Relaxed),
            reconnects: self.counters.reconnects.load(Ordering::Relaxed),
            ..TransportDiagnostics::default()
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Release);
        // With a full inbox the thread is about to look at `open` anyway.
        let _ = self.messages.try_send(Message::Stop);
    }
}

/// What one start of the source delivers to.
struct Feed {
    start: u64,
    output: Arc<dyn TransportOutput>,
    open: Arc<AtomicBool>,
    counters: Arc<Counters>,
    messages: SyncSender<Message>,
}

impl SourceOutput for Feed {
    fn unit(&self, unit: AccessUnit) {
        if self.open.load(Ordering::Acquire) {
            self.counters.units.fetch_add(1, Ordering::Relaxed);
            let bytes = u64::try_from(unit.data.len()).unwrap_or(u64::MAX);
            self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.output.unit(unit);
        }
    }

    fn event(&self, event: SourceEvent) {
        match self.messages.try_send(Message::Event(self.start, event)) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => tracing::error!("an event of a source was lost"),
        }
    }
}

struct Worker {
    machine: Reconnect,
    spec: SourceSpec,
    credentials: Option<Credentials>,
    output: Arc<dyn TransportOutput>,
    open: Arc<AtomicBool>,
    counters: Arc<Counters>,
    keyframe_pending: Arc<AtomicBool>,
    messages: SyncSender<Message>,
    source: Option<Source>,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<Message>) {
        loop {
            self.act();
            let now = clock::now();
            let wait = self
                .machine
                .next_deadline()
                .map_or(IDLE, |deadline| deadline.since(now));
            let message = inbox.recv_timeout(wait);
            if !self.open.load(Ordering::Acquire) {
                return;
            }
            match message {
                Ok(Message::Event(start, event)) => self.machine.handle_event(clock::now(), start, event),
                Ok(Message::Keyframe) => self.ask_for_keyframe(),
                Err(RecvTimeoutError::Timeout) => self.machine.handle_timeout(clock::now()),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Start(start) => self.start(start),
                Action::State(state) => {
                    if !matches!(state, TransportState::Connecting | TransportState::Connected) {
                        tracing::info!(?state, "the source changed its state");
                    }
                    self.output.event(TransportEvent::State(state));
                }
            }
        }
        if self.machine.is_over() || self.machine.next_deadline().is_some() {
            self.source = None;
        }
    }

    fn start(&mut self, start: u64) {
        // The old one first: a UDP port can have one owner.
        self.source = None;
        if start > 1 {
            self.counters.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        let feed = Feed {
            start,
            output: Arc::clone(&self.output),
            open: Arc::clone(&self.open),
            counters: Arc::clone(&self.counters),
            messages: self.messages.clone(),
        };
        let source = Source::start(self.spec.clone(), self.credentials.clone(), Arc::new(feed));
        self.source = Some(source);
    }

    fn ask_for_keyframe(&mut self) {
        self.keyframe_pending.store(false, Ordering::Release);
        if let Some(source) = &self.source {
            source.request_keyframe();
        }
    }
}
