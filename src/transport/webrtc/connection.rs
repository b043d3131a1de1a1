//! A peer on a thread of its own, with its sockets and the clock.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

use super::channels::{ChannelId, MAX_BUFFERED_BYTES, SendRefused};
use super::config::Config;
use super::dcep::ChannelConfig;
use super::event::{Event, Failure, Transmit};
use super::media::{OutgoingUnit, UnitRefused};
use super::negotiate::NegotiationError;
use super::peer::Peer;
use super::random::Random;
use super::servers::{Delivery, Found, IceServers, Servers};
use super::sockets::Sockets;
use super::stats::PeerStats;

/// Commands that the thread has not taken yet, and units among them.
const MAX_COMMANDS: usize = 256;
const MAX_UNITS: usize = 8;
/// Longest wait: a second is as good as for ever, and never too long for arithmetic.
const LONGEST_WAIT_US: u64 = 1_000_000;
/// How long the end of a connection waits for its goodbye to be sent.
const FAREWELL: Duration = Duration::from_millis(100);

/// How a connection reaches the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// True to use the addresses that only this machine reaches, too.
    pub loopback: bool,
    /// Servers that help peers behind routers. What they find is signaled as candidates later.
    pub servers: IceServers,
}

/// Where a connection delivers. Called on the connection's thread; must not block.
pub trait PeerOutput: Send + Sync {
    /// What happened, in order. Nothing follows [`Event::Closed`] and [`Event::Failed`].
    fn event(&self, event: Event);
    /// An address of this side to signal, with the name of its section.
    fn candidate(&self, mid: &str, candidate: &str);
    /// A description to signal: the offer of an ICE restart, or the answer to one.
    fn description(&self, sdp: &str);
}

/// Why a connection did not begin.
#[derive(Debug)]
pub enum StartError {
    /// The system gave no sockets or no thread.
    Io(io::Error),
    /// The offer does not go with what this side has.
    Negotiation(NegotiationError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "no connection can be made: {error}"),
            Self::Negotiation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<NegotiationError> for StartError {
    fn from(error: NegotiationError) -> Self {
        Self::Negotiation(error)
    }
}

enum Command {
    Answer(String),
    Offer(String),
    Candidate(String),
    Restart,
    Unit(usize, OutgoingUnit),
    Audio(Bytes, u32),
    Keyframe(usize),
    Open(ChannelConfig),
    CloseChannel(ChannelId),
    Message(ChannelId, bool, Bytes),
}

/// What both sides of the command queue see.
struct Shared {
    wake: OwnedFd,
    closing: AtomicBool,
    /// Units were refused because the thread is behind.
    units_lost: AtomicBool,
    units: AtomicUsize,
    /// Bytes of messages in the queue, and in the peer.
    queued: AtomicUsize,
    buffered: AtomicUsize,
    stats: Mutex<PeerStats>,
}

impl Shared {
    fn wake(&self) {
        // It only fails when it is signaled more often than it can count, and then it is signaled.
        let _ = write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// A running peer; dropping it says goodbye to the other side.
pub struct Connection {
    commands: SyncSender<Command>,
    shared: Arc<Shared>,
    /// Ends when the thread does. Behind a lock only so that a connection can be shared.
    ended: Mutex<Receiver<()>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Begins as the side that offers; returns the offer, which holds the machine's own addresses.
    ///
    /// # Errors
    /// When the system gives no sockets or no thread.
    pub fn offer(
        config: Config,
        network: &Network,
        output: Arc<dyn PeerOutput>,
    ) -> Result<(Self, String), StartError> {
        let (mut peer, sockets, servers) = prepare(config, network)?;
        let offer = peer.offer(clock::now())?;
        Ok((Self::start(peer, (sockets, servers), output)?, offer))
    }

    /// Begins as the side that answers `offer`; returns the answer, which holds the machine's own addresses.
    ///
    /// # Errors
    /// When the offer is of no use, or the system gives no sockets or no thread.
    pub fn answer(
        config: Config,
        offer: &str,
        network: &Network,
        output: Arc<dyn PeerOutput>,
    ) -> Result<(Self, String), StartError> {
        let (mut peer, sockets, servers) = prepare(config, network)?;
        let answer = peer.handle_offer(clock::now(), offer)?;
        Ok((Self::start(peer, (sockets, servers), output)?, answer))
    }

    fn start(
        peer: Peer,
        (sockets, servers): (Sockets, Servers),
        output: Arc<dyn PeerOutput>,
    ) -> Result<Self, StartError> {
        let (commands, inbox) = sync_channel(MAX_COMMANDS);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Arc::new(Shared {
            wake: eventfd(0, flags).map_err(io::Error::from)?,
            closing: AtomicBool::new(false),
            units_lost: AtomicBool::new(false),
            units: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            buffered: AtomicUsize::new(0),
            stats: Mutex::default(),
        });
        let worker = Worker {
            peer,
            sockets,
            servers,
            output,
            inbox,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new().name("webrtc".to_owned());
        let (end, ended) = sync_channel(0);
        thread.spawn(move || {
            worker.run();
            drop(end);
        })?;
        Ok(Self {
            commands,
            shared,
            ended: Mutex::new(ended),
        })
    }

    /// Takes the answer to the offer; one of no use ends the connection with [`Failure::Negotiation`].
    pub fn handle_answer(&self, sdp: &str) {
        self.command(Command::Answer(sdp.to_owned()));
    }

    /// Takes an offer that restarts ICE; the answer comes out as a description.
    pub fn handle_offer(&self, sdp: &str) {
        self.command(Command::Offer(sdp.to_owned()));
    }

    /// Takes a candidate of the other side; one of no use is ignored.
    pub fn add_remote_candidate(&self, candidate: &str) {
        self.command(Command::Candidate(candidate.to_owned()));
    }

    /// Looks for a new path; on the side that offers, the offer for it comes out as a description.
    pub fn restart_ice(&self) {
        self.command(Command::Restart);
    }

    /// Sends an access unit on a video track.
    ///
    /// # Errors
    /// When the thread is behind or gone; an IDR is asked for then.
    pub fn send_unit(&self, track: usize, unit: OutgoingUnit) -> Result<(), UnitRefused> {
        let room = self.shared.units.fetch_add(1, Ordering::AcqRel) < MAX_UNITS;
        if room && self.command(Command::Unit(track, unit)) {
            return Ok(());
        }
        self.shared.units.fetch_sub(1, Ordering::AcqRel);
        self.shared.units_lost.store(true, Ordering::Release);
        self.shared.wake();
        Err(UnitRefused::Full)
    }

    /// Sends an Opus packet with its media time, 48 kHz; false when the thread is behind or gone.
    pub fn send_audio(&self, data: Bytes, timestamp: u32) -> bool {
        self.command(Command::Audio(data, timestamp))
    }

    /// Asks the other side for a key frame.
    pub fn request_keyframe(&self, track: usize) {
        self.command(Command::Keyframe(track));
    }

    /// Opens a data channel; an event tells its name when it is open.
    pub fn open_channel(&self, config: ChannelConfig) -> bool {
        self.command(Command::Open(config))
    }

    /// Closes a data channel.
    pub fn close_channel(&self, channel: ChannelId) {
        self.command(Command::CloseChannel(channel));
    }

    /// Sends a message on an open channel; at most 512 KiB wait.
    ///
    /// # Errors
    /// When too much waits.
    pub fn send_message(&self, channel: ChannelId, binary: bool, data: Bytes) -> Result<(), SendRefused> {
        let bytes = data.len();
        let queued = self.shared.queued.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let waiting = queued + self.shared.buffered.load(Ordering::Acquire);
        if waiting <= MAX_BUFFERED_BYTES && self.command(Command::Message(channel, binary, data)) {
            return Ok(());
        }
        self.shared.queued.fetch_sub(bytes, Ordering::AcqRel);
        Err(SendRefused::Full)
    }

    /// The counters, as of the last half second.
    pub fn stats(&self) -> PeerStats {
        let stats = self.shared.stats.lock();
        stats.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn command(&self, command: Command) -> bool {
        let taken = self.commands.try_send(command).is_ok();
        self.shared.wake();
        taken
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.wake();
        // Either way there is nothing more to do: the goodbye was sent, or the thread is held up.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(FAREWELL);
    }
}

fn prepare(mut config: Config, network: &Network) -> Result<(Peer, Sockets, Servers), StartError> {
    let now = clock::now();
    let sockets = Sockets::open(network.loopback)?;
    let addresses: Vec<SocketAddr> = sockets.addresses().collect();
    let mut random = Random::new(config.seed);
    config.seed = random.seed();
    let servers = Servers::new(now, &network.servers, &addresses, &mut random);
    let mut peer = Peer::new(now, config);
    for address in addresses {
        // An address that ICE has no use for costs nothing.
        let _ = peer.add_host_candidate(address);
    }
    Ok((peer, sockets, servers))
}

struct Worker {
    peer: Peer,
    sockets: Sockets,
    servers: Servers,
    output: Arc<dyn PeerOutput>,
    inbox: Receiver<Command>,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(mut self) {
        while !self.peer.is_over() {
            self.take_commands();
            let now = clock::now();
            if self.peer.next_deadline().is_some_and(|due| due <= now) {
                self.peer.handle_timeout(now);
                self.publish();
            }
            self.servers.handle_timeout(now);
            self.turn();
            if let Err(error) = self.wait() {
                tracing::error!(%error, "a connection cannot wait for its sockets");
                self.peer.close(clock::now());
            }
        }
        self.turn();
        self.servers.close(clock::now());
        self.turn();
    }

    /// Gives away what came out.
    fn turn(&mut self) {
        while let Some(found) = self.servers.poll_found() {
            self.found(found);
        }
        let now = clock::now();
        let (peer, servers) = (&mut self.peer, &mut self.servers);
        self.sockets.send(|| next_transmit(now, peer, servers));
        while let Some(event) = self.peer.poll_event() {
            self.output.event(event);
        }
    }

    fn found(&mut self, found: Found) {
        let line = match found {
            Found::Reflexive { address, socket } => self.peer.add_reflexive_candidate(address, socket),
            Found::Relayed { address, socket } => self.peer.add_relayed_candidate(address, socket),
        };
        if let (Some(line), Some(mid)) = (line, self.peer.candidate_mid()) {
            self.output.candidate(mid, &line);
        }
    }

    fn take_commands(&mut self) {
        if self.shared.units_lost.swap(false, Ordering::AcqRel) {
            self.peer.lose_units();
        }
        while let Ok(command) = self.inbox.try_recv() {
            self.obey(command);
        }
        let buffered = self.peer.buffered_bytes();
        self.shared.buffered.store(buffered, Ordering::Release);
        if self.shared.closing.load(Ordering::Acquire) {
            self.peer.close(clock::now());
        }
    }

    fn obey(&mut self, command: Command) {
        let now = clock::now();
        match command {
            Command::Answer(sdp) => {
                if let Err(error) = self.peer.handle_answer(now, &sdp) {
                    self.peer.fail(Failure::Negotiation(error));
                }
            }
            Command::Offer(sdp) => match self.peer.handle_offer(now, &sdp) {
                Ok(answer) => self.output.description(&answer),
                Err(error) => self.peer.fail(Failure::Negotiation(error)),
            },
            Command::Candidate(text) => {
                if let Err(reason) = self.peer.add_remote_candidate(now, &text) {
                    tracing::debug!(%reason, "a candidate is ignored");
                }
            }
            Command::Restart => match self.peer.restart_ice(now) {
                Ok(offer) => self.output.description(&offer),
                Err(error) => tracing::debug!(%error, "ICE is not restarted"),
            },
            Command::Unit(track, unit) => {
                self.shared.units.fetch_sub(1, Ordering::AcqRel);
                // The peer asks for what it needs instead.
                let _ = self.peer.send_unit(now, track, &unit);
            }
            Command::Audio(data, timestamp) => {
                // Sound that comes too early or too fast is left out.
                let _ = self.peer.send_audio(now, data, timestamp);
            }
            Command::Keyframe(track) => self.peer.request_keyframe(track),
            Command::Open(config) => {
                if self.peer.open_channel(config).is_none() {
                    tracing::warn!("too many data channels");
                }
            }
            Command::CloseChannel(channel) => self.peer.close_channel(channel),
            Command::Message(channel, binary, data) => {
                if let Err(reason) = self.peer.send_message(channel, binary, &data) {
                    tracing::debug!(%reason, "a message is lost");
                }
                // In this order, so that what waits is never counted too low.
                self.shared
                    .buffered
                    .store(self.peer.buffered_bytes(), Ordering::Release);
                self.shared.queued.fetch_sub(data.len(), Ordering::AcqRel);
            }
        }
    }

    fn publish(&self) {
        let stats = self.shared.stats.lock();
        *stats.unwrap_or_else(PoisonError::into_inner) = self.peer.stats();
    }

    /// Waits for datagrams, commands or the next deadline, and takes the datagrams.
    fn wait(&mut self) -> io::Result<()> {
        let blocked = self.sockets.blocked();
        let mut readable = Vec::with_capacity(4);
        {
            let sockets = self.sockets.io().enumerate().map(|(index, socket)| {
                let writable = (blocked == Some(index)).then_some(PollFlags::OUT);
                PollFd::new(socket, PollFlags::IN | writable.unwrap_or(PollFlags::empty()))
            });
            let mut polled: Vec<PollFd<'_>> = sockets.collect();
            polled.push(PollFd::new(&self.shared.wake, PollFlags::IN));
            let timeout = self.timeout();
            match poll(&mut polled, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let woken = polled.pop().is_some_and(|wake| !wake.revents().is_empty());
            if woken {
                // It only counts; what it is about lies in the queue.
                let _ = read(&self.shared.wake, &mut [0; 8]);
            }
            let ready = polled
                .iter()
                .enumerate()
                .filter(|(_, socket)| socket.revents().intersects(PollFlags::IN | PollFlags::ERR));
            readable.extend(ready.map(|(index, _)| index));
        }
        for index in readable {
            let now = clock::now();
            let (peer, servers) = (&mut self.peer, &mut self.servers);
            self.sockets.receive(index, |local, remote, data| {
                match servers.handle_datagram(now, local, remote, data) {
                    Delivery::Direct => peer.handle_datagram(now, local, remote, data),
                    Delivery::Relayed {
                        relay,
                        peer: from,
                        data,
                    } => peer.handle_datagram(now, relay, from, &data),
                    Delivery::Taken => {}
                }
            });
        }
        Ok(())
    }

    fn timeout(&self) -> Timespec {
        let now = clock::now();
        let due = self
            .peer
            .next_deadline()
            .into_iter()
            .chain(self.servers.next_deadline())
            .min();
        let wait = due.map_or(0, |due| due.since(now).as_micros() as u64);
        let wait = wait.min(LONGEST_WAIT_US);
        Timespec {
            tv_sec: (wait / 1_000_000) as i64,
            tv_nsec: (wait % 1_000_000 * 1000) as i64,
        }
    }
}

/// The servers' own business first: it is little, and the rest may depend on it.
fn next_transmit(now: Monotonic, peer: &mut Peer, servers: &mut Servers) -> Option<Transmit> {
    loop {
        if let Some(transmit) = servers.poll_transmit() {
            return Some(transmit);
        }
        let transmit = peer.poll_transmit()?;
        if let Some(transmit) = servers.relay(now, transmit) {
            return Some(transmit);
        }
    }
}
