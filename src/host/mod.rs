//! The controlled side: a desktop that guests see and, where allowed, use.
//!
//! One loop owns the signaling client, the guests and the desk. Access units pass it by: encoders hand them to the
//! guests' connections on their own threads.

mod desk;
mod guest;
mod identity;
mod router;
mod x11;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use crossdesk_core::control::ControlMessage;
use crossdesk_core::control::wire::{Extensions, GuestMessage, HostInfo};
use crossdesk_core::signaling::{ClientEvent, DeviceId, Failure, IceServer, MAX_GUESTS, Password, Role};
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use self::desk::{Desk, Screen, ScreenOutput, SourceDesk};
pub use self::x11::X11Desk;

use self::guest::Guest;
use self::identity::Identities;
use self::router::Router;
use crate::transport::ice_servers;
use crate::transport::signaling::{Order, ServerAddress, Signaling};
use crate::transport::webrtc::{
    Certificate, ChannelConfig, ChannelEvent, Config, Connection, Direction, Event, Network, PeerOutput,
    VideoConfig,
};

/// Messages waiting for the loop. Events of guests and signaling must not be lost: their threads wait for room, which
/// the loop makes at once.
const WAITING_MESSAGES: usize = 1024;
/// Without a deadline the loop sleeps this long between looks at nothing.
const IDLE: Duration = Duration::from_secs(3600);
/// Constrained baseline, level 4.2: what every browser takes, large enough for 1080p at 60 a second.
const PROFILE_LEVEL_ID: [u8; 3] = [0x42, 0xe0, 0x2a];
/// The label of the one channel, as public hosts have it.
const CHANNEL: &str = "ping-pong";
/// Displays offered at most; each is a video section in the offer.
const MAX_DISPLAYS: usize = 16;

/// How a host is run.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The signaling server.
    pub server: ServerAddress,
    /// Where the identity is kept.
    pub data: PathBuf,
    /// The password guests need; `None` leaves the one it has.
    pub password: Option<Password>,
    /// Nobody's input is taken.
    pub view_only: bool,
    /// End when the first guest has left.
    pub once: bool,
}

/// What a person or a parent program is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Guests can join.
    Joinable {
        /// The id they name.
        id: DeviceId,
        /// The password they need.
        password: Password,
    },
    /// A guest sees the desktop.
    Connected {
        /// Its id.
        guest: String,
    },
    /// A guest is gone.
    Left {
        /// Its id.
        guest: String,
    },
    /// Something is not as it should be.
    Trouble(String),
}

/// What wakes the loop.
enum Message {
    Signaling(ClientEvent),
    Trouble(String),
    Peer(u64, Event),
    Candidate(u64, String, String),
    ScreenEnded(usize, String),
    Stop,
}

/// Shares `desk` until SIGTERM or SIGINT, or until there is no sense in going on.
///
/// # Errors
/// When the host cannot start, the server does not let it in, or the desktop is gone.
pub fn run(
    options: HostOptions,
    mut desk: Box<dyn Desk>,
    mut tell: impl FnMut(Notice) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let certificate = Certificate::generate().context("no certificate can be made")?;
    let server = format!("{}:{}", options.server.host, options.server.port);
    let identities = Identities::open(&options.data, server)?;
    let (messages, inbox) = sync_channel(WAITING_MESSAGES);
    watch_signals(messages.clone())?;
    let signaling = start_signaling(&options, &identities, &messages)?;
    let displays = desk.displays();
    if displays.is_empty() {
        bail!("this desktop has no display");
    }
    let info = HostInfo {
        name: crossdesk_platform::host_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        platform: std::env::consts::OS.to_owned(),
        displays: displays.into_iter().take(MAX_DISPLAYS).collect(),
        extensions: Extensions {
            text_input: desk.takes_input(),
            control_status: true,
        },
    };
    let mut host = Host {
        takes_input: desk.takes_input() && !options.view_only,
        options,
        desk,
        info,
        certificate,
        identities,
        signaling,
        router: Arc::new(Router::new(messages.clone())),
        messages,
        screens: BTreeMap::new(),
        guests: Vec::new(),
        guests_seen: 0,
        joinable: false,
        notices: Vec::new(),
        over: None,
    };
    host.serve(&inbox, &mut tell)
}

fn watch_signals(messages: SyncSender<Message>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("signals cannot be watched")?;
    let thread = thread::Builder::new().name("signals".to_owned());
    let watch = move || {
        for _ in &mut signals {
            // The loop is gone only when the host has ended.
            let _ = messages.send(Message::Stop);
        }
    };
    thread.spawn(watch).context("the signals thread cannot start")?;
    Ok(())
}

fn start_signaling(
    options: &HostOptions,
    identities: &Identities,
    messages: &SyncSender<Message>,
) -> anyhow::Result<Signaling> {
    let role = Role::Host {
        device: identities.device(),
    };
    let (told, complained) = (messages.clone(), messages.clone());
    // The loop is gone only when the host has ended.
    let tell = move |event| drop(told.send(Message::Signaling(event)));
    let complain = move |reason: &str| drop(complained.send(Message::Trouble(reason.to_owned())));
    Signaling::start(options.server.clone(), role, tell, complain)
}

/// What one guest's connection delivers to.
struct Feed {
    guest: u64,
    messages: SyncSender<Message>,
}

impl PeerOutput for Feed {
    fn event(&self, event: Event) {
        // The loop is gone only when the host has ended.
        let _ = self.messages.send(Message::Peer(self.guest, event));
    }

    fn candidate(&self, mid: &str, candidate: &str) {
        let (mid, candidate) = (mid.to_owned(), candidate.to_owned());
        let _ = self.messages.send(Message::Candidate(self.guest, mid, candidate));
    }

    /// The public protocol has no message for a second description of a session.
    fn description(&self, _sdp: &str) {}
}

struct Host {
    options: HostOptions,
    desk: Box<dyn Desk>,
    info: HostInfo,
    takes_input: bool,
    certificate: Certificate,
    identities: Identities,
    signaling: Signaling,
    router: Arc<Router>,
    messages: SyncSender<Message>,
    /// Displays that somebody looks at.
    screens: BTreeMap<usize, Box<dyn Screen>>,
    guests: Vec<Guest>,
    guests_seen: u64,
    /// People were told the id and the password.
    joinable: bool,
    notices: Vec<Notice>,
    over: Option<anyhow::Result<()>>,
}

impl Host {
    fn serve(
        &mut self,
        inbox: &Receiver<Message>,
        tell: &mut impl FnMut(Notice) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            for notice in self.notices.drain(..) {
                tell(notice).context("nobody reads what the host says")?;
            }
            if let Some(end) = self.over.take() {
                self.say_goodbye();
                return end;
            }
            let wait = self.next_deadline().map_or(IDLE, |due| due.since(clock::now()));
            match inbox.recv_timeout(wait) {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.handle_timeouts(clock::now());
        }
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        let held = self.guests.iter().filter_map(|guest| guest.held.next_deadline());
        held.chain(self.desk.next_deadline()).min()
    }

    fn handle_timeouts(&mut self, now: Monotonic) {
        for index in 0..self.guests.len() {
            let releases = self.guests[index].held.handle_timeout(now);
            self.inject_all(index, releases);
        }
        if self.desk.next_deadline().is_some_and(|due| due <= now)
            && let Err(reason) = self.desk.handle_timeout(now)
        {
            self.input_failed(&reason);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Signaling(event) => self.signaled(event),
            Message::Trouble(reason) => self.notices.push(Notice::Trouble(reason)),
            Message::Peer(number, event) => {
                if let Some(index) = self.guests.iter().position(|guest| guest.number == number) {
                    self.peer(index, event);
                }
            }
            Message::Candidate(number, mid, candidate) => {
                if let Some(guest) = self.guests.iter().find(|guest| guest.number == number) {
                    let remote = guest.id.clone();
                    self.signaling.order(Order::Candidate {
                        remote,
                        candidate,
                        mid,
                    });
                }
            }
            Message::ScreenEnded(index, reason) => {
                self.screens.remove(&index);
                let reason = format!("display {} shows nothing any more: {reason}", index + 1);
                self.over = Some(Err(anyhow::anyhow!(reason)));
            }
            Message::Stop => self.over = Some(Ok(())),
        }
    }

    fn signaled(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Online { id, password } => self.online(id, password.as_ref()),
            ClientEvent::PasswordChanged(done) => self.password_changed(done),
            ClientEvent::Joined { guest, servers } => self.joined(guest, &servers),
            ClientEvent::Answer { guest, sdp } => {
                if let Some(guest) = self.guests.iter().find(|known| known.id == guest) {
                    guest.connection.handle_answer(&sdp);
                }
            }
            ClientEvent::Candidate { remote, candidate } => {
                if let Some(guest) = self.guests.iter().find(|known| known.id == remote) {
                    guest.connection.add_remote_candidate(&candidate);
                }
            }
            ClientEvent::Left { remote } => {
                if let Some(index) = self.guests.iter().position(|guest| guest.id == remote) {
                    self.remove(index);
                }
            }
            ClientEvent::Lost { attempt } => {
                let state = if self.joinable { "lost" } else { "not reached" };
                let text = format!("the signaling server is {state}; attempt {attempt} to reach it follows");
                self.notices.push(Notice::Trouble(text));
            }
            ClientEvent::Failed(failure) => self.over = Some(Err(anyhow::anyhow!(refusal(failure)))),
            ClientEvent::Offer { .. } => {}
        }
    }

    fn online(&mut self, id: DeviceId, password: Option<&Password>) {
        if let Some(password) = password
            && let Err(error) = self.identities.keep(id, password)
        {
            self.over = Some(Err(error));
            return;
        }
        if self.joinable {
            return;
        }
        match self.options.password.clone() {
            Some(wanted) if self.identities.device().map(|(_, known)| known) != Some(wanted.clone()) => {
                self.signaling.order(Order::ChangePassword(wanted));
            }
            _ => self.announce(),
        }
    }

    fn password_changed(&mut self, done: bool) {
        let kept = match (self.identities.device(), self.options.password.clone()) {
            (Some((id, _)), Some(password)) if done => self.identities.keep(id, &password),
            _ => Err(anyhow::anyhow!(
                "the signaling server did not take the password; it has to have exactly 6 bytes"
            )),
        };
        match kept {
            Ok(()) => self.announce(),
            Err(error) => self.over = Some(Err(error)),
        }
    }

    fn announce(&mut self) {
        if let Some((id, password)) = self.identities.device() {
            self.joinable = true;
            self.notices.push(Notice::Joinable { id, password });
        }
    }

    /// A guest that joins again wants a new connection.
    fn joined(&mut self, id: String, servers: &[IceServer]) {
        if let Some(index) = self.guests.iter().position(|guest| guest.id == id) {
            self.forget(index);
        }
        // Guests of the native kind speak a transport of their own over the same signaling.
        if !id.contains("web") || self.guests.len() >= MAX_GUESTS {
            self.signaling.order(Order::EndSession { remote: id });
            return;
        }
        self.guests_seen += 1;
        let feed = Feed {
            guest: self.guests_seen,
            messages: self.messages.clone(),
        };
        let network = Network {
            loopback: self.options.server.is_local(),
            servers: ice_servers::resolve(servers),
        };
        let offered = self.config().and_then(|config| {
            Connection::offer(config, &network, Arc::new(feed)).map_err(anyhow::Error::from)
        });
        match offered {
            Ok((connection, sdp)) => {
                connection.open_channel(ChannelConfig::reliable(CHANNEL));
                self.signaling.order(Order::Offer {
                    guest: id.clone(),
                    sdp,
                });
                self.guests
                    .push(Guest::new(self.guests_seen, id, Arc::new(connection)));
            }
            Err(error) => {
                self.notices
                    .push(Notice::Trouble(format!("{id} cannot be connected: {error:#}")));
                self.signaling.order(Order::EndSession { remote: id });
            }
        }
    }

    fn config(&self) -> anyhow::Result<Config> {
        let tracks = (1..=self.info.displays.len()).map(|number| format!("Display{number}"));
        let config = Config::new(self.certificate.clone()).context("no random numbers")?;
        Ok(Config {
            video: Some(VideoConfig {
                direction: Direction::Send,
                tracks: tracks.collect(),
                profile_level_id: PROFILE_LEVEL_ID,
            }),
            data: true,
            ..config
        })
    }

    fn peer(&mut self, index: usize, event: Event) {
        match event {
            Event::Connected(path) => {
                let guest = &mut self.guests[index];
                tracing::info!(guest = guest.id, local = ?path.local_kind, remote = ?path.remote_kind, "connected");
                guest.connected = true;
                let id = guest.id.clone();
                self.notices.push(Notice::Connected { guest: id.clone() });
                self.signaling.order(Order::MediaUp { remote: id });
                self.show(index, 0);
            }
            Event::KeyframeRequested { track } => {
                if let Some(screen) = self.screens.get(&track) {
                    screen.request_keyframe();
                }
            }
            Event::Channel(ChannelEvent::Opened { id, .. }) => {
                let info = &self.info;
                self.guests[index].opened(id, info);
            }
            Event::Channel(ChannelEvent::Closed { id }) => self.guests[index].closed(id),
            Event::Channel(ChannelEvent::Message { data, .. }) => {
                if let Some(message) = GuestMessage::parse(&data) {
                    self.obey(index, message);
                }
            }
            Event::Interrupted => {
                // Whatever it holds now would stay down until it comes back.
                let releases = self.guests[index].held.release_all();
                self.inject_all(index, releases);
            }
            Event::Closed | Event::Failed(_) => {
                if let Event::Failed(failure) = &event {
                    let text = format!("{}: {failure}", self.guests[index].id);
                    self.notices.push(Notice::Trouble(text));
                }
                self.remove(index);
            }
            Event::PathChanged(_) | Event::Resumed | Event::Unit { .. } | Event::Audio(_) => {}
        }
    }

    fn obey(&mut self, index: usize, message: GuestMessage) {
        let now = clock::now();
        let takes_input = self.takes_input;
        let guest = &mut self.guests[index];
        if !guest.connected {
            return;
        }
        match message {
            GuestMessage::Input(message) if takes_input => {
                if guest.held.handle_input(now, &message) {
                    self.inject_all(index, vec![message]);
                }
            }
            GuestMessage::KeyboardState { seq, keys } if takes_input => {
                let changes = guest.held.handle_list(now, seq, &keys);
                self.inject_all(index, changes);
            }
            GuestMessage::SelectDisplay(display) => self.show(index, display.into()),
            GuestMessage::Extensions(extensions) => {
                guest.extensions = extensions;
                guest.tell_control(takes_input);
            }
            // Sound is not sent yet, so there is nothing to start or to stop.
            GuestMessage::Input(_) | GuestMessage::KeyboardState { .. } | GuestMessage::AudioCapture(_) => {}
        }
    }

    fn inject_all(&mut self, index: usize, messages: Vec<ControlMessage>) {
        let display = self.guests[index].display;
        for message in messages {
            if let Err(reason) = self.desk.inject(clock::now(), display, message) {
                self.input_failed(&reason);
            }
        }
    }

    fn input_failed(&mut self, reason: &str) {
        tracing::warn!(reason, "input was not injected");
    }

    /// Shows `display` to a guest from its next key frame on; one that is not there is ignored.
    fn show(&mut self, index: usize, display: usize) {
        if display >= self.info.displays.len() {
            return;
        }
        if !self.screens.contains_key(&display) {
            let output: Arc<dyn ScreenOutput> = Arc::clone(&self.router) as _;
            match self.desk.capture(display, output) {
                Ok(screen) => {
                    self.screens.insert(display, screen);
                }
                Err(reason) => {
                    let text = format!("display {} cannot be captured: {reason}", display + 1);
                    self.notices.push(Notice::Trouble(text));
                    return;
                }
            }
        }
        let guest = &mut self.guests[index];
        guest.display = display;
        let connection = Arc::clone(&guest.connection);
        self.router.show(guest.number, display, connection);
        if let Some(screen) = self.screens.get(&display) {
            screen.request_keyframe();
        }
        self.stop_unwatched();
    }

    fn stop_unwatched(&mut self) {
        let router = Arc::clone(&self.router);
        self.screens.retain(|display, _| router.is_watched(*display));
    }

    /// Ends a guest's session.
    fn remove(&mut self, index: usize) {
        let guest = self.forget(index);
        self.signaling.order(Order::EndSession {
            remote: guest.id.clone(),
        });
        if guest.connected {
            self.notices.push(Notice::Left { guest: guest.id });
            if self.options.once {
                self.over = Some(Ok(()));
            }
        }
    }

    /// Lets go of what a guest holds and of its connection, without a word to the signaling server: one that joins again
    /// has its new session there already.
    fn forget(&mut self, index: usize) -> Guest {
        let releases = self.guests[index].held.release_all();
        self.inject_all(index, releases);
        let guest = self.guests.remove(index);
        self.router.forget(guest.number);
        self.stop_unwatched();
        guest
    }

    /// Nothing stays down, and guests learn at once that it is over.
    fn say_goodbye(&mut self) {
        while !self.guests.is_empty() {
            self.remove(self.guests.len() - 1);
        }
    }
}

fn refusal(failure: Failure) -> String {
    match failure {
        Failure::Rejected => {
            "the signaling server does not know this device's id and password any more; delete the kept identity to register anew"
                .to_owned()
        }
        Failure::Untrusted => "the signaling server is not the one it should be".to_owned(),
        other => format!("the signaling server does not let this host in: {other:?}"),
    }
}
