//! The machine of a signaling server: who is logged in where, who may talk to whom, and when it ends.
//!
//! A socket is admitted ([`Server::handle_open`]), says things ([`Server::handle_text`]) and goes
//! ([`Server::handle_disconnect`]). After every call the owner carries out [`Server::poll_effect`] until empty, answers
//! [`Effect::Store`] with [`Server::handle_store`], and calls [`Server::handle_timeout`] at [`Server::next_deadline`].

mod account;
mod forward;
mod login;
mod presence;
mod session;
mod socket;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use self::account::Change;
use self::session::Session;
use self::socket::Socket;
use super::keys::{Digest, Keys};
use super::message;
use super::queue::Queue;
use super::rate::Failures;
use super::{
    CloseReason, DeviceId, HEARTBEAT_DEADLINE, IceConfig, Identity, LOGIN_DEADLINE, MAX_ID_FAILURES,
    MAX_MESSAGE_BYTES, MAX_PARKED, MAX_PARKED_TOTAL, MAX_SOURCE_FAILURES, Moment, Request, SWEEP_INTERVAL,
    Source, StoreRequest, Unusable, parse_request,
};
use crate::time::Monotonic;

pub use self::socket::SocketId;
pub use super::message::Refusal;

/// What the operator decides.
pub struct Config {
    /// 32 bytes from the system's random source.
    pub seed: [u8; 32],
    /// Sockets at a time.
    pub max_connections: usize,
    /// Store operations one source may cause a minute.
    pub credential_quota: u32,
    /// What peers are told about reaching each other.
    pub ice: IceConfig,
}

/// What the owner of sockets and store must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this text.
    Send(SocketId, String),
    /// Close this socket; the machine has forgotten it already.
    Close(SocketId, CloseReason),
    /// Ask the store; the next question comes after the answer.
    Store(StoreRequest),
    /// Something worth a line in the log.
    Note(Note),
}

/// What an operator wants to know; nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A new device exists.
    Registered(SocketId, DeviceId),
    /// Somebody has logged in.
    LoggedIn(SocketId, Identity),
    /// A login has failed.
    LoginRefused(SocketId, Refusal),
    /// A guest has reached a host.
    Joined(Identity, DeviceId),
    /// A join has failed.
    JoinRefused(SocketId, Refusal),
    /// A device has another password.
    PasswordChanged(DeviceId),
    /// The store did not answer.
    StoreFailed,
}

/// Counters; those with a plural noun are of now, the others since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sockets.
    pub connections: usize,
    /// Sockets that are logged in.
    pub authenticated: usize,
    /// Devices online.
    pub devices: usize,
    /// Guests bound to hosts.
    pub sessions: usize,
    /// Store operations waiting.
    pub queued: usize,
    /// Messages waiting behind store operations.
    pub parked: usize,
    /// Sockets refused because there were too many.
    pub refused: u64,
    /// Messages that were requests.
    pub received: u64,
    /// Messages that were not, and those that may not be passed on.
    pub dropped: u64,
    /// Messages from one peer to another.
    pub forwarded: u64,
    /// Devices created.
    pub registered: u64,
    /// Logins.
    pub logins: u64,
    /// Logins that failed, by reason.
    pub logins_refused: BTreeMap<Refusal, u64>,
    /// Joins.
    pub joins: u64,
    /// Joins that failed, by reason.
    pub joins_refused: BTreeMap<Refusal, u64>,
    /// Sockets closed by the server, by reason.
    pub closed: BTreeMap<CloseReason, u64>,
    /// Devices that have said what they run on, by platform.
    pub platforms: BTreeMap<&'static str, u64>,
}

/// See the module's description.
pub struct Server {
    config: Config,
    keys: Keys,
    sockets: BTreeMap<SocketId, Socket>,
    sockets_seen: u64,
    login_deadlines: BTreeSet<(Monotonic, SocketId)>,
    sweep_at: Monotonic,
    /// Sockets of everybody who is logged in, the newest last.
    online: BTreeMap<Identity, Vec<SocketId>>,
    /// What is known of the passwords of devices that are online.
    digests: BTreeMap<DeviceId, Digest>,
    sessions: BTreeMap<DeviceId, BTreeMap<Identity, Session>>,
    watchers: BTreeMap<DeviceId, BTreeSet<SocketId>>,
    id_failures: Failures<DeviceId>,
    source_failures: Failures<Source>,
    queue: Queue,
    parked: usize,
    changes: VecDeque<Change>,
    counted: Stats,
    effects: VecDeque<Effect>,
}

impl Server {
    /// A server without sockets.
    pub fn new(config: Config) -> Self {
        Self {
            keys: Keys::new(config.seed),
            queue: Queue::new(config.credential_quota),
            config,
            sockets: BTreeMap::new(),
            sockets_seen: 0,
            login_deadlines: BTreeSet::new(),
            sweep_at: Monotonic::ZERO,
            online: BTreeMap::new(),
            digests: BTreeMap::new(),
            sessions: BTreeMap::new(),
            watchers: BTreeMap::new(),
            id_failures: Failures::new(MAX_ID_FAILURES),
            source_failures: Failures::new(MAX_SOURCE_FAILURES),
            parked: 0,
            changes: VecDeque::new(),
            counted: Stats::default(),
            effects: VecDeque::new(),
        }
    }

    /// A socket from `address` is open; `None` when there are too many.
    pub fn handle_open(&mut self, now: Moment, address: IpAddr) -> Option<SocketId> {
        if self.sockets.len() >= self.config.max_connections {
            self.counted.refused += 1;
            return None;
        }
        if self.sockets.is_empty() {
            self.sweep_at = now.at + SWEEP_INTERVAL;
        }
        self.sockets_seen += 1;
        let id = SocketId(self.sockets_seen);
        let deadline = now.at + LOGIN_DEADLINE;
        self.login_deadlines.insert((deadline, id));
        self.sockets
            .insert(id, Socket::new(address.into(), now.at, deadline));
        Some(id)
    }

    /// True until a socket is closed or gone.
    pub fn knows(&self, id: SocketId) -> bool {
        self.sockets.contains_key(&id)
    }

    /// A text message has arrived.
    pub fn handle_text(&mut self, now: Moment, id: SocketId, text: &str) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if text.len() > MAX_MESSAGE_BYTES {
            return self.close(now, id, CloseReason::TooLarge);
        }
        match parse_request(text) {
            Err(Unusable::Malformed) => self.close(now, id, CloseReason::InvalidMessage),
            Err(Unusable::Ignored) => self.counted.dropped += 1,
            // Answered at once: a store that is busy must not look like a link that is dead.
            Ok(Request::Ping) => {
                socket.heartbeat = now.at;
                self.send(id, message::PONG.to_owned());
            }
            Ok(request) if socket.waiting => self.park(now, id, request),
            Ok(request) => self.act(now, id, request),
        }
        self.work(now);
    }

    /// A WebSocket ping or pong has arrived.
    pub fn handle_heartbeat(&mut self, now: Moment, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.heartbeat = now.at;
        }
    }

    /// The peer broke the WebSocket protocol or a limit of the connection.
    pub fn handle_violation(&mut self, now: Moment, id: SocketId, reason: CloseReason) {
        self.close(now, id, reason);
    }

    /// The socket is gone or the peer asked for its end.
    pub fn handle_disconnect(&mut self, now: Moment, id: SocketId) {
        self.forget(now, id);
    }

    /// The server stops: every socket is told.
    pub fn handle_shutdown(&mut self, now: Moment) {
        while let Some(id) = self.sockets.keys().next().copied() {
            self.close(now, id, CloseReason::Shutdown);
        }
    }

    /// Ends what has lasted too long and starts work that had to wait.
    pub fn handle_timeout(&mut self, now: Moment) {
        while let Some((at, id)) = self.login_deadlines.first().copied()
            && at <= now.at
        {
            self.login_deadlines.remove(&(at, id));
            self.login_is_due(now, id);
        }
        if self.sweep_at <= now.at && !self.sockets.is_empty() {
            self.sweep_at = now.at + SWEEP_INTERVAL;
            self.sweep(now);
        }
        self.drop_late_work(now);
        self.work(now);
    }

    /// Work that waits is not the peer's fault, so it gets more time.
    fn login_is_due(&mut self, now: Moment, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if socket.waiting {
            socket.login_deadline = now.at + LOGIN_DEADLINE;
            self.login_deadlines.insert((socket.login_deadline, id));
        } else {
            self.close(now, id, CloseReason::LoginTimeout);
        }
    }

    fn sweep(&mut self, now: Moment) {
        let mute =
            |socket: &Socket| socket.identity.is_some() && socket.heartbeat + HEARTBEAT_DEADLINE <= now.at;
        let mute: Vec<SocketId> = self
            .sockets
            .iter()
            .filter(|(_, socket)| mute(socket))
            .map(|(id, _)| *id)
            .collect();
        for id in mute {
            self.close(now, id, CloseReason::HeartbeatTimeout);
        }
        self.expire_sessions(now);
        self.id_failures.expire(now.at);
        self.source_failures.expire(now.at);
        self.queue.expire(now.at);
    }

    /// When [`Server::handle_timeout`] has something to do.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let login = self.login_deadlines.first().map(|(at, _)| *at);
        let sweep = (!self.sockets.is_empty()).then_some(self.sweep_at);
        login
            .into_iter()
            .chain(sweep)
            .chain(self.queue.next_deadline())
            .min()
    }

    /// What to do next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        Stats {
            connections: self.sockets.len(),
            authenticated: self.online.values().map(Vec::len).sum(),
            devices: self.online.keys().filter_map(Identity::device).count(),
            sessions: self.sessions.values().map(BTreeMap::len).sum(),
            queued: self.queue.len(),
            parked: self.parked,
            ..self.counted.clone()
        }
    }

    fn act(&mut self, now: Moment, id: SocketId, request: Request) {
        self.counted.received += 1;
        match request {
            Request::Ping => {}
            Request::Login(login) => self.login(now, id, login),
            Request::Join(join) => self.join(now, id, &join),
            Request::Leave { user, transmission } => self.leave(id, &user, &transmission),
            Request::Forward(forward) => self.forward(now, id, forward),
            Request::DisconnectPeer {
                user,
                transmission,
                remote,
            } => self.disconnect_peer(id, &user, &transmission, &remote),
            Request::ChangePassword { request_id, password } => {
                self.change_password(now, id, request_id, password);
            }
            Request::ClientInfo { platform } => self.note_client(id, &platform),
            Request::Presence(presence) => self.presence(id, &presence),
            Request::TurnCredentials => self.turn_credentials(now, id),
            Request::ListUsers { host } => self.list_users(now, id, host.as_ref()),
            Request::Report(report) => self.report(now, id, &report),
            Request::RevokeToken => self.revoke_token(now, id),
        }
    }

    fn park(&mut self, now: Moment, id: SocketId, request: Request) {
        if self.parked >= MAX_PARKED_TOTAL {
            return self.close(now, id, CloseReason::Busy);
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if socket.parked.len() >= MAX_PARKED {
            return self.close(now, id, CloseReason::Parked);
        }
        socket.parked.push_back(request);
        self.parked += 1;
    }

    /// The store has answered a socket: what came meanwhile has its turn, up to the next that needs the store.
    fn unpark(&mut self, now: Moment, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.waiting = false;
        }
        while let Some(socket) = self.sockets.get_mut(&id)
            && !socket.waiting
            && let Some(request) = socket.parked.pop_front()
        {
            self.parked -= 1;
            self.act(now, id, request);
        }
    }

    fn send(&mut self, id: SocketId, text: String) {
        self.effects.push_back(Effect::Send(id, text));
    }

    fn note(&mut self, note: Note) {
        self.effects.push_back(Effect::Note(note));
    }

    fn close(&mut self, now: Moment, id: SocketId, reason: CloseReason) {
        if self.forget(now, id) {
            *self.counted.closed.entry(reason).or_default() += 1;
            self.effects.push_back(Effect::Close(id, reason));
        }
    }

    /// True when the socket was known.
    fn forget(&mut self, now: Moment, id: SocketId) -> bool {
        let Some(socket) = self.sockets.remove(&id) else {
            return false;
        };
        self.login_deadlines.remove(&(socket.login_deadline, id));
        self.parked -= socket.parked.len();
        self.queue.forget(id);
        for device in &socket.watched {
            self.unwatch(id, *device);
        }
        if let Some(identity) = &socket.identity {
            for host in &socket.joined {
                self.detach(now, *host, identity, id);
            }
            self.log_out(id, identity);
        }
        true
    }

    /// The newest socket on which `host` can be joined.
    fn route(&self, host: DeviceId) -> Option<SocketId> {
        let sockets = self.online.get(&Identity::Device(host))?;
        let joinable = |id: &&SocketId| self.sockets.get(id).is_some_and(|socket| socket.joinable);
        sockets.iter().rev().find(joinable).copied()
    }

    /// Asserts what must hold between any two calls.
    #[cfg(any(test, feature = "testing"))]
    pub fn check_invariants(&self) {
        assert!(self.sockets.len() <= self.config.max_connections);
        let parked: usize = self.sockets.values().map(|socket| socket.parked.len()).sum();
        assert_eq!(parked, self.parked);
        assert!(self.parked <= MAX_PARKED_TOTAL);
        for (id, socket) in &self.sockets {
            let due = self.login_deadlines.contains(&(socket.login_deadline, *id));
            assert_eq!(
                due,
                socket.identity.is_none(),
                "{id} is due for login or logged in"
            );
            assert!(socket.parked.is_empty() || socket.waiting);
            let online = |identity| self.online.get(identity).is_some_and(|all| all.contains(id));
            assert!(socket.identity.as_ref().is_none_or(online));
        }
        assert!(
            self.online
                .values()
                .flatten()
                .all(|id| self.sockets.contains_key(id))
        );
        assert!(
            self.digests
                .keys()
                .all(|id| self.online.contains_key(&Identity::Device(*id)))
        );
        assert!(self.changes.len() <= super::MAX_CHANGES);
        self.check_sessions();
        self.check_watchers();
    }
}
