//! A remote host as a transport: found through a signaling server, reached over WebRTC.
//!
//! One thread owns the signaling client and the connection and decides over both. Access units go from the connection's
//! own thread to the output; input goes from the caller's thread to the data channel.

mod line;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossdesk_core::automation::{ControlOutcome, Display, TransportDiagnostics, TransportState};
use crossdesk_core::control::ControlMessage;
use crossdesk_core::control::wire::{self, Extensions, HostInfo, HostMessage};
use crossdesk_core::error::ErrorCode;
use crossdesk_core::media::AccessUnit;
use crossdesk_core::signaling::{ClientEvent, DeviceId, Failure, IceServer, Password, Role};
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;
use crossdesk_pipelines::clock;

use self::line::Line;
use super::backoff::Backoff;
use super::ice_servers;
use super::signaling::{Order, ServerAddress, Signaling};
use super::webrtc::{
    Certificate, ChannelEvent, Config, Connection, Direction, Event, Failure as PeerFailure, Network,
    PeerOutput, VideoConfig,
};
use super::{Transport, TransportEvent, TransportOutput};

/// Messages waiting for the thread. Events of signaling and the connection must not be lost: their threads wait for
/// room, which the thread makes at once.
const WAITING_MESSAGES: usize = 256;
/// Candidates kept until the offer they belong to comes.
const MAX_EARLY_CANDIDATES: usize = 64;
/// A session that broke is begun again for this long.
const RETURN: Duration = Duration::from_secs(60);
/// How long the end of a session waits until the host was told.
const FAREWELL: Duration = Duration::from_millis(700);
/// Without a deadline the thread sleeps this long between looks at nothing.
const IDLE: Duration = Duration::from_secs(3600);
/// High profile, level 5.2: the most that is wanted; hosts offer less.
const PROFILE_LEVEL_ID: [u8; 3] = [0x64, 0x00, 0x34];

/// Whom to see, and how to find it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The signaling server.
    pub server: ServerAddress,
    /// The device.
    pub device: DeviceId,
    /// Its password.
    pub password: Password,
    /// Which display to show first.
    pub display: u8,
}

enum Message {
    Signaling(u64, ClientEvent),
    Trouble(String),
    Peer(u64, Event),
    Candidate(u64, String, String),
    Keyframe,
    Stop,
}

/// What several threads look at.
struct Shared {
    /// Closed by the owner's farewell: nothing is delivered afterwards.
    open: AtomicBool,
    units: AtomicU64,
    bytes: AtomicU64,
    keyframe_requests: AtomicU64,
    reconnects: AtomicU32,
    keyframe_pending: AtomicBool,
    /// The video track that is shown.
    track: AtomicUsize,
    /// Where input goes, while there is a connection.
    line: Mutex<Option<Line>>,
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session with a remote host; dropping it leaves.
pub struct Remote {
    messages: SyncSender<Message>,
    shared: Arc<Shared>,
    /// Ends when the thread does. Behind a lock only so that a session can be shared.
    ended: Mutex<Receiver<()>>,
}

impl Remote {
    /// Starts a session; returns at once, everything else is an event of `output`.
    pub fn start(target: Target, output: Arc<dyn TransportOutput>) -> Self {
        let (messages, inbox) = sync_channel(WAITING_MESSAGES);
        let shared = Arc::new(Shared {
            open: AtomicBool::new(true),
            units: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            keyframe_requests: AtomicU64::new(0),
            reconnects: AtomicU32::new(0),
            keyframe_pending: AtomicBool::new(false),
            track: AtomicUsize::new(target.display.into()),
            line: Mutex::new(None),
        });
        let told = Arc::clone(&output);
        let worker = Worker {
            target,
            output,
            shared: Arc::clone(&shared),
            messages: messages.clone(),
            signaling: None,
            connection: None,
            generation: 0,
            early: Vec::new(),
            trouble: String::new(),
            was_connected: false,
            backoff: Backoff::default(),
            begin_at: None,
            give_up_at: None,
            over: false,
        };
        let thread = thread::Builder::new().name("remote".to_owned());
        let (end, ended) = sync_channel(0);
        let work = move || {
            worker.run(&inbox);
            drop(end);
        };
        if let Err(error) = thread.spawn(work) {
            told.event(TransportEvent::State(TransportState::Failed {
                code: ErrorCode::Internal,
                reason: format!("no thread for the session: {error}"),
            }));
        }
        Self {
            messages,
            shared,
            ended: Mutex::new(ended),
        }
    }
}

impl Transport for Remote {
    fn request_keyframe(&self) {
        self.shared.keyframe_requests.fetch_add(1, Ordering::Relaxed);
        // Wishes coalesce: one that has not been taken yet stands for this one too.
        if !self.shared.keyframe_pending.swap(true, Ordering::AcqRel)
            && self.messages.try_send(Message::Keyframe).is_err()
        {
            self.shared.keyframe_pending.store(false, Ordering::Release);
        }
    }

    fn send_control(&self, message: ControlMessage) -> ControlOutcome {
        let line = self.shared.line();
        line.as_ref()
            .map_or(ControlOutcome::Refused, |line| line.send(&message))
    }

    fn select_display(&self, index: u8) {
        self.shared.track.store(index.into(), Ordering::Release);
        if let Some(line) = self.shared.line().as_ref()
            && !line.say(wire::select_display(index))
        {
            tracing::warn!("the host was not told which display to show");
        }
        self.request_keyframe();
    }

    fn diagnostics(&self) -> TransportDiagnostics {
        TransportDiagnostics {
            kind: "webrtc".to_owned(),
            access_units: self.shared.units.load(Ordering::Relaxed),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            keyframe_requests: self.shared.keyframe_requests.load(Ordering::Relaxed),
            reconnects: self.shared.reconnects.load(Ordering::Relaxed),
            ..TransportDiagnostics::default()
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.open.store(false, Ordering::Release);
        // With a full inbox the thread is about to look at `open` anyway.
        let _ = self.messages.try_send(Message::Stop);
        // Either way there is nothing more to do: the host was told, or that takes too long.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(FAREWELL);
    }
}

/// What one connection delivers to.
struct Feed {
    generation: u64,
    output: Arc<dyn TransportOutput>,
    shared: Arc<Shared>,
    messages: SyncSender<Message>,
}

impl Feed {
    fn tell(&self, message: Message) {
        // The thread is gone only when the session is over.
        let _ = self.messages.send(message);
    }
}

impl PeerOutput for Feed {
    fn event(&self, event: Event) {
        match event {
            Event::Unit { track, unit } => {
                let wanted = track == self.shared.track.load(Ordering::Acquire);
                if wanted && self.shared.open.load(Ordering::Acquire) {
                    self.shared.units.fetch_add(1, Ordering::Relaxed);
                    let bytes = u64::try_from(unit.data.len()).unwrap_or(u64::MAX);
                    self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
                    let (data, received) = (unit.data, unit.received);
                    self.output.unit(AccessUnit { data, received });
                }
            }
            Event::Audio(_) | Event::KeyframeRequested { .. } => {}
            event => self.tell(Message::Peer(self.generation, event)),
        }
    }

    fn candidate(&self, mid: &str, candidate: &str) {
        self.tell(Message::Candidate(
            self.generation,
            mid.to_owned(),
            candidate.to_owned(),
        ));
    }

    /// The public protocol has no message for a second description of a session.
    fn description(&self, _sdp: &str) {}
}

struct Worker {
    target: Target,
    output: Arc<dyn TransportOutput>,
    shared: Arc<Shared>,
    messages: SyncSender<Message>,
    signaling: Option<Signaling>,
    connection: Option<Arc<Connection>>,
    /// Numbers signaling clients and connections; events of earlier ones are stale.
    generation: u64,
    /// Candidates that came before the offer.
    early: Vec<String>,
    /// What stood in the way of the signaling socket last.
    trouble: String,
    /// A connection was there once.
    was_connected: bool,
    backoff: Backoff,
    /// When the session is begun again.
    begin_at: Option<Monotonic>,
    /// When a broken session is given up.
    give_up_at: Option<Monotonic>,
    over: bool,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<Message>) {
        self.state(TransportState::Connecting);
        self.begin();
        while !self.over {
            let now = clock::now();
            let wait = self.begin_at.map_or(IDLE, |due| due.since(now));
            let message = inbox.recv_timeout(wait);
            if !self.shared.open.load(Ordering::Acquire) {
                break;
            }
            match message {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => self.begin(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        *self.shared.line() = None;
        // The host learns of the end from signaling and from the connection; both say goodbye when they are dropped.
        self.order(|worker| Order::EndSession {
            remote: worker.device(),
        });
    }

    fn device(&self) -> String {
        self.target.device.to_string()
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Signaling(generation, event) if generation == self.generation => self.signaled(event),
            Message::Peer(generation, event) if generation == self.generation => self.peer(event),
            Message::Candidate(generation, mid, candidate) if generation == self.generation => {
                self.order(|worker| Order::Candidate {
                    remote: worker.device(),
                    candidate,
                    mid,
                });
            }
            Message::Signaling(..) | Message::Peer(..) | Message::Candidate(..) => {}
            Message::Trouble(reason) => {
                tracing::info!(reason, "no signaling");
                self.trouble = reason;
            }
            Message::Keyframe => {
                self.shared.keyframe_pending.store(false, Ordering::Release);
                if let Some(connection) = &self.connection {
                    connection.request_keyframe(self.shared.track.load(Ordering::Acquire));
                }
            }
            // Seen by its flag.
            Message::Stop => {}
        }
    }

    /// Joins, for the first time or again.
    fn begin(&mut self) {
        self.begin_at = None;
        self.hang_up();
        self.generation += 1;
        let generation = self.generation;
        let role = Role::Guest {
            host: self.target.device,
            password: self.target.password.clone(),
        };
        let (told, complained) = (self.messages.clone(), self.messages.clone());
        // The thread is gone only when the session is over.
        let tell = move |event| drop(told.send(Message::Signaling(generation, event)));
        let complain = move |reason: &str| drop(complained.send(Message::Trouble(reason.to_owned())));
        match Signaling::start(self.target.server.clone(), role, tell, complain) {
            Ok(signaling) => self.signaling = Some(signaling),
            Err(error) => self.fail(ErrorCode::SignalingTimeout, error.to_string()),
        }
    }

    fn hang_up(&mut self) {
        *self.shared.line() = None;
        self.connection = None;
        self.signaling = None;
        self.early.clear();
    }

    fn signaled(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Offer { sdp, servers } => self.offered(&sdp, &servers),
            ClientEvent::Candidate { candidate, .. } if candidate.is_empty() => {}
            ClientEvent::Candidate { candidate, .. } => match &self.connection {
                Some(connection) => connection.add_remote_candidate(&candidate),
                None if self.early.len() < MAX_EARLY_CANDIDATES => self.early.push(candidate),
                None => {}
            },
            ClientEvent::Left { .. } => self.end(),
            ClientEvent::Lost { attempt } => tracing::info!(attempt, "signaling is lost"),
            // Pictures do not pass through the server: with a connection its refusal changes nothing.
            ClientEvent::Failed(failure) if self.connection.is_some() => {
                tracing::info!(?failure, "signaling is over");
            }
            ClientEvent::Failed(failure) => self.refused(failure),
            ClientEvent::Online { .. }
            | ClientEvent::Joined { .. }
            | ClientEvent::Answer { .. }
            | ClientEvent::PasswordChanged(_) => {}
        }
    }

    fn offered(&mut self, sdp: &str, servers: &[IceServer]) {
        // A host makes one offer for each join; whatever was before it has thrown away.
        *self.shared.line() = None;
        self.connection = None;
        let feed = Feed {
            generation: self.generation,
            output: Arc::clone(&self.output),
            shared: Arc::clone(&self.shared),
            messages: self.messages.clone(),
        };
        let network = Network {
            loopback: self.target.server.is_local(),
            servers: ice_servers::resolve(servers),
        };
        let answered = config().and_then(|config| {
            Connection::answer(config, sdp, &network, Arc::new(feed)).map_err(|error| error.to_string())
        });
        let (connection, answer) = match answered {
            Ok(answered) => answered,
            Err(reason) => return self.fail(ErrorCode::StreamUnsupported, reason),
        };
        for candidate in self.early.drain(..) {
            connection.add_remote_candidate(&candidate);
        }
        let connection = Arc::new(connection);
        *self.shared.line() = Some(Line::new(Arc::clone(&connection)));
        self.connection = Some(connection);
        self.order(|_| Order::Answer { sdp: answer });
    }

    fn peer(&mut self, event: Event) {
        match event {
            Event::Connected(path) => {
                tracing::info!(local = ?path.local_kind, remote = ?path.remote_kind, "connected");
                if self.was_connected {
                    self.shared.reconnects.fetch_add(1, Ordering::Relaxed);
                }
                self.was_connected = true;
                self.backoff.succeed();
                self.give_up_at = None;
                self.order(|worker| Order::MediaUp {
                    remote: worker.device(),
                });
                self.state(TransportState::Connected);
            }
            Event::PathChanged(path) => {
                tracing::info!(local = ?path.local_kind, remote = ?path.remote_kind, "another path");
            }
            Event::Interrupted => self.state(TransportState::Reconnecting {
                attempt: 1,
                code: ErrorCode::ConnectionLost,
                reason: "nothing passes between this end and the host".to_owned(),
            }),
            Event::Resumed => self.state(TransportState::Connected),
            Event::Channel(event) => self.channel(event),
            // A host that is merely cut off says no goodbye.
            Event::Closed => self.end(),
            Event::Failed(failure) if self.was_connected => self.broken(failure.to_string()),
            Event::Failed(failure) => self.fail(failure_code(&failure), failure.to_string()),
            Event::Unit { .. } | Event::Audio(_) | Event::KeyframeRequested { .. } => {}
        }
    }

    fn channel(&mut self, event: ChannelEvent) {
        let mut guard = self.shared.line();
        let Some(line) = guard.as_mut() else { return };
        let was_open = line.is_open();
        match event {
            ChannelEvent::Opened {
                id, stream, config, ..
            } => line.opened(id, stream, &config.label),
            ChannelEvent::Closed { id } => line.closed(id),
            ChannelEvent::Message { data, .. } => {
                drop(guard);
                return self.told(&data);
            }
        }
        let (open, text) = (line.is_open(), line.text);
        if open && !was_open {
            let display = self.target.display;
            if display > 0 && !line.say(wire::select_display(display)) {
                tracing::warn!("the host was not told which display to show");
            }
        }
        drop(guard);
        if open != was_open {
            // Public hosts say nothing about control: whoever is connected has it.
            self.output.event(TransportEvent::Control { allowed: open, text });
        }
    }

    fn told(&mut self, data: &[u8]) {
        match HostMessage::parse(data) {
            Some(HostMessage::Info(info)) => self.introduced(info),
            Some(HostMessage::ControlStatus { allowed }) => {
                let text = self.shared.line().as_ref().is_some_and(|line| line.text);
                self.output.event(TransportEvent::Control { allowed, text });
            }
            None => {}
        }
    }

    fn introduced(&mut self, info: HostInfo) {
        if !info.platform.is_empty() {
            self.output.event(TransportEvent::HostPlatform(info.platform));
        }
        let displays = info.displays.iter().enumerate().filter_map(|(index, display)| {
            let side = |from: i32, to: i32| u32::try_from(i64::from(to) - i64::from(from)).ok();
            let (width, height) = (
                side(display.left, display.right)?,
                side(display.top, display.bottom)?,
            );
            Some(Display {
                index: u8::try_from(index).ok()?,
                name: display.name.clone(),
                size: Some(PixelSize { width, height }),
            })
        });
        self.output.event(TransportEvent::Displays(displays.collect()));
        if info.extensions == Extensions::default() {
            return;
        }
        let text = info.extensions.text_input;
        if let Some(line) = self.shared.line().as_mut() {
            line.text = text;
            let ours = Extensions {
                text_input: false,
                control_status: true,
            };
            if !line.say(wire::guest_extensions(ours)) {
                tracing::warn!("the host was not told what this end understands");
            }
        }
        self.output.event(TransportEvent::Control { allowed: true, text });
    }

    /// A connection that was there is gone: join again, for a while.
    fn broken(&mut self, reason: String) {
        let now = clock::now();
        let give_up_at = *self.give_up_at.get_or_insert(now + RETURN);
        if now >= give_up_at {
            return self.fail(ErrorCode::ConnectionLost, reason);
        }
        self.hang_up();
        self.output.event(TransportEvent::Control {
            allowed: false,
            text: false,
        });
        let (attempt, wait) = self.backoff.fail();
        self.begin_at = Some(now + wait);
        self.state(TransportState::Reconnecting {
            attempt,
            code: ErrorCode::ConnectionLost,
            reason,
        });
    }

    fn refused(&mut self, failure: Failure) {
        let (code, reason) = explain(failure, &self.trouble);
        let passing = matches!(
            failure,
            Failure::Offline | Failure::NoOffer | Failure::Unreachable
        );
        if self.was_connected && passing {
            self.broken(reason);
        } else {
            self.fail(code, reason);
        }
    }

    /// The host wants no more of this session.
    fn end(&mut self) {
        self.over = true;
        self.state(TransportState::Ended {
            code: ErrorCode::SourceEnded,
            reason: "the host has ended the session".to_owned(),
        });
    }

    fn fail(&mut self, code: ErrorCode, reason: String) {
        self.over = true;
        self.state(TransportState::Failed { code, reason });
    }

    fn state(&self, state: TransportState) {
        tracing::info!(?state, "the session changed its state");
        self.output.event(TransportEvent::State(state));
    }

    fn order(&self, order: impl FnOnce(&Self) -> Order) {
        if let Some(signaling) = &self.signaling {
            signaling.order(order(self));
        }
    }
}

fn config() -> Result<Config, String> {
    let certificate = Certificate::generate().map_err(|error| error.to_string())?;
    let config = Config::new(certificate).map_err(|error| error.to_string())?;
    Ok(Config {
        video: Some(VideoConfig {
            direction: Direction::Receive,
            tracks: Vec::new(),
            profile_level_id: PROFILE_LEVEL_ID,
        }),
        data: true,
        ..config
    })
}

fn failure_code(failure: &PeerFailure) -> ErrorCode {
    match failure {
        PeerFailure::NoPath(_) => ErrorCode::NoRoute,
        PeerFailure::Negotiation(_) => ErrorCode::StreamUnsupported,
        _ => ErrorCode::ConnectionLost,
    }
}

/// `trouble` is what stood in the way of the socket.
fn explain(failure: Failure, trouble: &str) -> (ErrorCode, String) {
    let because = |text: &str| {
        if trouble.is_empty() {
            text.to_owned()
        } else {
            trouble.to_owned()
        }
    };
    match failure {
        Failure::Rejected => (
            ErrorCode::AuthenticationFailed,
            "the id or the password is wrong; servers of this generation do not say which".to_owned(),
        ),
        Failure::UnknownDevice => (
            ErrorCode::DeviceUnavailable,
            "the signaling server does not know this device".to_owned(),
        ),
        Failure::Offline => (ErrorCode::DeviceUnavailable, "the device is offline".to_owned()),
        Failure::NoOffer => (
            ErrorCode::DeviceUnavailable,
            "the device did not answer; it may be offline".to_owned(),
        ),
        Failure::Throttled { retry_after } => (
            ErrorCode::RateLimited,
            format!("too many attempts; the signaling server asks to wait {retry_after} s"),
        ),
        Failure::Unreachable => (
            ErrorCode::SignalingTimeout,
            because("the signaling server did not let this program in"),
        ),
        Failure::Untrusted => (
            ErrorCode::SignalingUntrusted,
            because("the certificate of the signaling server is not trusted"),
        ),
    }
}
