//! The other end of a signaling server: a host that can be joined, or a guest that joins one.
//!
//! [`Client`] is a machine on virtual time. The loop that owns the socket tells it what the socket does and carries out
//! the [`ClientEffect`]s it polls. A lost socket is opened again for as long as the client lives: pictures do not pass
//! through it, so a session goes on meanwhile.

mod reply;
mod say;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

pub use reply::{IceServer, IceServerKind};

use self::reply::Reply;
use super::{DeviceId, Password};
use crate::time::Monotonic;

/// How often the server is told that this end lives: the public clients' interval, a tenth of what servers allow.
const PING_INTERVAL: Duration = Duration::from_secs(3);
/// A server that has said nothing for this long is gone (public clients use the same).
const SILENCE: Duration = Duration::from_secs(10);
/// Opening a socket, TLS included, may take this long.
const OPENING: Duration = Duration::from_secs(10);
/// A login may wait behind others on a busy server.
const LOGIN: Duration = Duration::from_secs(20);
/// A guest hears nothing of a join but the host's offer; the public clients wait as long.
const JOIN: Duration = Duration::from_secs(20);
/// Pauses before the second and later attempts to open a socket; the last one repeats.
const PAUSES: [u64; 5] = [1, 2, 4, 8, 16];
/// A guest that never got through to the server gives up after this long, inside a connection's 30 s.
const GUEST_PATIENCE: Duration = Duration::from_secs(25);
/// Tickets kept; a host has no more guests than this.
const MAX_TICKETS: usize = super::MAX_GUESTS;

/// What a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A device that shares its screen.
    Host {
        /// Its id and password from an earlier registration; `None` registers a new device.
        device: Option<(DeviceId, Password)>,
    },
    /// Somebody who wants to see a device; a browser as far as servers and hosts can tell, which is how hosts know that
    /// standard WebRTC is spoken.
    Guest {
        /// Whom to see.
        host: DeviceId,
        /// The password of that device.
        password: Password,
    },
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEffect {
    /// Open a socket; the one before is closed already.
    Open,
    /// Close the socket; nothing of it is wanted any more.
    Close,
    /// Send a text frame.
    Send(SignalingText),
    /// Tell whoever owns the client.
    Tell(ClientEvent),
}

/// A message on its way out; never printed, because logins and joins carry passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct SignalingText(String);

impl SignalingText {
    /// The text, to be written to the socket and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SignalingText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalingText({} bytes)", self.0.len())
    }
}

/// What the owner of a client learns.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// A host can be joined. `password` is there when the server made a new one.
    Online {
        /// The id guests name.
        id: DeviceId,
        /// Told once, to be kept.
        password: Option<Password>,
    },
    /// A host has a guest: make a peer and send one offer.
    Joined {
        /// The guest's id.
        guest: String,
        /// How to be reached.
        servers: Vec<IceServer>,
    },
    /// The host's session description: make a new peer and answer.
    Offer {
        /// SDP.
        sdp: String,
        /// How to be reached.
        servers: Vec<IceServer>,
    },
    /// The guest's session description.
    Answer {
        /// The guest's id.
        guest: String,
        /// SDP.
        sdp: String,
    },
    /// A candidate; it can come before the description it belongs to.
    Candidate {
        /// Whose.
        remote: String,
        /// In the form of a candidate attribute, without `a=`; empty at the end of candidates.
        candidate: String,
    },
    /// The other end has left: a guest left, or the host has ended the session.
    Left {
        /// Who.
        remote: String,
    },
    /// The device's password was changed, or (false) stays as it was.
    PasswordChanged(bool),
    /// The socket is gone and is being opened again; sessions go on.
    Lost {
        /// 1 for the first attempt to get it back.
        attempt: u32,
    },
    /// The client is over.
    Failed(Failure),
}

/// Why a client is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Wrong password, or a device nobody knows; newer servers do not say which.
    Rejected,
    /// The server does not know the device, and says so.
    UnknownDevice,
    /// The device is known and not online.
    Offline,
    /// The server and the device were reached and no offer came.
    NoOffer,
    /// Too many attempts; wait this many seconds at least.
    Throttled {
        /// Seconds.
        retry_after: u64,
    },
    /// The server could not be reached, or did not let this client in.
    Unreachable,
    /// The server's certificate is not one this end trusts; trying again would not help.
    Untrusted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No socket until then.
    Resting(Monotonic),
    /// A socket is being opened.
    Opening(Monotonic),
    /// The answer to a login is awaited.
    LoggingIn(Monotonic),
    /// Logged in.
    Online,
    /// Over.
    Over,
}

/// See the module's description.
#[derive(Debug)]
pub struct Client {
    role: Role,
    state: State,
    /// Attempts to get a socket since one was good for something.
    attempt: u32,
    /// The id the server knows this client by.
    id: Option<String>,
    /// What the server told a guest to come back with.
    return_as: Option<Password>,
    next_ping: Monotonic,
    heard: Monotonic,
    /// Until when the host's offer may come; a guest's.
    offer_until: Option<Monotonic>,
    /// A guest that has not been let in gives up then.
    patience: Option<Monotonic>,
    /// Per remote id: what a session is reported with, and whether its media is up.
    tickets: BTreeMap<String, (Password, bool)>,
    new_password: Option<Password>,
    effects: VecDeque<ClientEffect>,
}

impl Client {
    /// A client that opens its first socket at once.
    pub fn new(now: Monotonic, role: Role) -> Self {
        let patience = matches!(role, Role::Guest { .. }).then(|| now + GUEST_PATIENCE);
        let mut client = Self {
            role,
            state: State::Resting(now),
            attempt: 0,
            id: None,
            return_as: None,
            next_ping: now,
            heard: now,
            offer_until: None,
            patience,
            tickets: BTreeMap::new(),
            new_password: None,
            effects: VecDeque::new(),
        };
        client.open(now);
        client
    }

    /// What to do next; ask until empty.
    pub fn poll_effect(&mut self) -> Option<ClientEffect> {
        self.effects.pop_front()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let state = match self.state {
            State::Resting(until) | State::Opening(until) => Some(until),
            State::LoggingIn(until) => Some(until.min(self.next_ping)),
            State::Online => Some(self.next_ping.min(self.heard + SILENCE)),
            State::Over => return None,
        };
        [state, self.offer_until, self.patience]
            .into_iter()
            .flatten()
            .min()
    }

    /// The socket is open.
    pub fn handle_open(&mut self, now: Monotonic) {
        if !matches!(self.state, State::Opening(_)) {
            return;
        }
        self.state = State::LoggingIn(now + LOGIN);
        self.heard = now;
        self.next_ping = now + PING_INTERVAL;
        let login = match &self.role {
            Role::Host { device } => say::login_host(device.as_ref()),
            Role::Guest { .. } => say::login_guest(self.return_as.as_ref()),
        };
        self.say(login);
    }

    /// The socket is gone, or could not be opened.
    pub fn handle_closed(&mut self, now: Monotonic) {
        if matches!(self.state, State::Resting(_) | State::Over) {
            return;
        }
        self.rest(now, None);
    }

    /// The socket could not be opened because the server is not who it should be.
    pub fn handle_untrusted(&mut self) {
        if matches!(self.state, State::Opening(_)) {
            self.state = State::Over;
            self.tell(ClientEvent::Failed(Failure::Untrusted));
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        if self.patience.is_some_and(|until| now >= until) {
            return self.fail(Failure::Unreachable);
        }
        if self.offer_until.is_some_and(|until| now >= until) {
            return self.fail(Failure::NoOffer);
        }
        match self.state {
            State::Resting(until) if now >= until => self.open(now),
            State::Opening(until) | State::LoggingIn(until) if now >= until => self.drop_socket(now),
            State::Online if now >= self.heard + SILENCE => self.drop_socket(now),
            State::LoggingIn(_) | State::Online if now >= self.next_ping => {
                self.next_ping = now + PING_INTERVAL;
                self.say(say::PING.to_owned());
            }
            _ => {}
        }
    }

    /// A text frame has arrived. What cannot be used is ignored, as servers of several generations speak.
    pub fn handle_text(&mut self, now: Monotonic, text: &str) {
        if !matches!(self.state, State::LoggingIn(_) | State::Online) {
            return;
        }
        self.heard = now;
        let Some(reply) = Reply::parse(text) else { return };
        match reply {
            Reply::Pong => {}
            Reply::LoggedIn { user, password } => self.logged_in(now, &user, password),
            Reply::LoginFailed { retry_after } => self.login_failed(now, retry_after),
            Reply::JoinFailed { why } if self.offer_until.is_some() => self.fail(why),
            Reply::Joined { guest, servers } if self.is_host() => {
                self.tell(ClientEvent::Joined { guest, servers });
            }
            Reply::Offer { remote, sdp, servers } if self.expects(&remote) && !self.is_host() => {
                self.offer_until = None;
                self.tell(ClientEvent::Offer { sdp, servers });
            }
            Reply::Answer { remote, sdp } if self.is_host() => {
                self.tell(ClientEvent::Answer { guest: remote, sdp });
            }
            Reply::Candidate { remote, candidate } if self.expects(&remote) => {
                self.tell(ClientEvent::Candidate { remote, candidate });
            }
            Reply::Left { user } if self.expects(&user) => {
                self.tickets.remove(&user);
                self.tell(ClientEvent::Left { remote: user });
            }
            Reply::Ticket { host, guest, token } => {
                let remote = if self.is_host() { guest } else { host };
                if self.tickets.len() < MAX_TICKETS && self.expects(&remote) {
                    self.tickets.insert(remote, (token, false));
                }
            }
            Reply::PasswordChanged(done) => self.password_changed(done),
            Reply::JoinFailed { .. }
            | Reply::Joined { .. }
            | Reply::Offer { .. }
            | Reply::Answer { .. }
            | Reply::Candidate { .. }
            | Reply::Left { .. } => {}
        }
    }

    /// Sends a host's session description to `guest`.
    pub fn send_offer(&mut self, guest: &str, sdp: &str) {
        self.forward("offer", guest, &[("sdp", sdp)]);
    }

    /// Sends a guest's session description to its host.
    pub fn send_answer(&mut self, sdp: &str) {
        if let Role::Guest { host, .. } = &self.role {
            let host = host.to_string();
            self.forward("answer", &host, &[("sdp", sdp)]);
        }
    }

    /// Sends a candidate, without `a=`, of the media section `mid`.
    pub fn send_candidate(&mut self, remote: &str, candidate: &str, mid: &str) {
        let content = [("candidate", candidate), ("mid", mid)];
        self.forward("new_candidate_mid", remote, &content);
    }

    /// The media of the session with `remote` flows, so that a server that forgot it can take it up again.
    pub fn media_up(&mut self, remote: &str) {
        if let Some((_, up)) = self.tickets.get_mut(remote) {
            *up = true;
            self.report(remote, true);
        }
    }

    /// The session with `remote` is over. A guest leaves by it; a host stays joinable for others.
    pub fn end_session(&mut self, remote: &str) {
        let Some((me, host)) = self.names() else { return };
        let text = if self.is_host() {
            say::disconnect_peer(&host, remote)
        } else {
            say::leave(&me, &host)
        };
        // The report comes last: a server that has forgotten the session by it tells the other end nothing.
        self.say_online(text);
        self.report(remote, false);
        self.tickets.remove(remote);
    }

    /// Gives the device another password; only hosts have one.
    pub fn change_password(&mut self, request: &str, password: Password) {
        if self.is_host() {
            self.say_online(say::change_password(request, &password));
            self.new_password = Some(password);
        }
    }

    /// Says goodbye; a host cannot be joined any more.
    pub fn shut_down(&mut self) {
        if let Some((me, host)) = self.names() {
            self.say_online(say::leave(&me, &host));
        }
        if matches!(
            self.state,
            State::Opening(_) | State::LoggingIn(_) | State::Online
        ) {
            self.effects.push_back(ClientEffect::Close);
        }
        self.state = State::Over;
    }

    /// True while a socket is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }

    fn is_host(&self) -> bool {
        matches!(self.role, Role::Host { .. })
    }

    /// A guest deals with its host only; a host with anybody the server lets through.
    fn expects(&self, remote: &str) -> bool {
        match &self.role {
            Role::Host { .. } => true,
            Role::Guest { host, .. } => remote == host.to_string(),
        }
    }

    /// This client's id and the host's.
    fn names(&self) -> Option<(String, String)> {
        let me = self.id.clone()?;
        let host = match &self.role {
            Role::Host { .. } => me.clone(),
            Role::Guest { host, .. } => host.to_string(),
        };
        Some((me, host))
    }

    fn logged_in(&mut self, now: Monotonic, user: &str, password: Option<Password>) {
        if !matches!(self.state, State::LoggingIn(_)) {
            return;
        }
        let device = DeviceId::parse(user);
        if self.is_host() && device.is_none() {
            return self.drop_socket(now);
        }
        self.state = State::Online;
        self.attempt = 0;
        self.id = Some(user.to_owned());
        match (&mut self.role, device) {
            (Role::Host { device: known }, Some(id)) => {
                let kept = known.take().map(|(_, password)| password);
                *known = password.clone().or(kept).map(|password| (id, password));
                self.tell(ClientEvent::Online { id, password });
            }
            (Role::Host { .. }, None) => {}
            (
                Role::Guest {
                    host,
                    password: secret,
                },
                _,
            ) => {
                self.return_as =
                    password.map(|password| Password::new(format!("{user}@{}", password.expose())));
                let join = say::join(user, *host, secret);
                // A session that has begun is not begun again: its host would throw the peer away.
                if self.patience.take().is_some() {
                    self.offer_until = Some(now + JOIN);
                    self.say(join);
                }
            }
        }
        let up: Vec<String> = self
            .tickets
            .iter()
            .filter(|(_, (_, up))| *up)
            .map(|(id, _)| id.clone())
            .collect();
        for remote in up {
            self.report(&remote, true);
        }
    }

    fn login_failed(&mut self, now: Monotonic, retry_after: Option<u64>) {
        match (&self.role, retry_after) {
            (Role::Host { .. }, Some(seconds)) => {
                self.effects.push_back(ClientEffect::Close);
                self.rest(now, Some(Duration::from_secs(seconds)));
            }
            (Role::Guest { .. }, Some(retry_after)) => self.fail(Failure::Throttled { retry_after }),
            // The server has forgotten a browser's name: come back as a new one.
            (Role::Guest { .. }, None) if self.return_as.take().is_some() => self.drop_socket(now),
            (Role::Host { .. }, None) => self.fail(Failure::Rejected),
            (Role::Guest { .. }, None) => self.fail(Failure::Unreachable),
        }
    }

    fn password_changed(&mut self, done: bool) {
        let Some(password) = self.new_password.take() else {
            return;
        };
        if let (
            true,
            Role::Host {
                device: Some((_, kept)),
            },
        ) = (done, &mut self.role)
        {
            *kept = password;
        }
        self.tell(ClientEvent::PasswordChanged(done));
    }

    fn report(&mut self, remote: &str, alive: bool) {
        let Some((_, host)) = self.names() else { return };
        let Some((token, _)) = self.tickets.get(remote) else {
            return;
        };
        let guest = if self.is_host() {
            remote.to_owned()
        } else {
            self.id.clone().unwrap_or_default()
        };
        let text = say::report(&host, &guest, token, alive);
        self.say_online(text);
    }

    fn forward(&mut self, kind: &str, remote: &str, content: &[(&str, &str)]) {
        if let Some((me, host)) = self.names() {
            self.say_online(say::forward(kind, &me, &host, remote, content));
        }
    }

    fn open(&mut self, now: Monotonic) {
        self.state = State::Opening(now + OPENING);
        self.effects.push_back(ClientEffect::Open);
    }

    fn drop_socket(&mut self, now: Monotonic) {
        self.effects.push_back(ClientEffect::Close);
        self.rest(now, None);
    }

    fn rest(&mut self, now: Monotonic, at_least: Option<Duration>) {
        let index = usize::try_from(self.attempt)
            .unwrap_or(usize::MAX)
            .min(PAUSES.len() - 1);
        let pause = Duration::from_secs(PAUSES[index]).max(at_least.unwrap_or_default());
        self.attempt += 1;
        self.state = State::Resting(now + pause);
        self.tell(ClientEvent::Lost {
            attempt: self.attempt,
        });
        // A join whose socket broke is not answered any more: ask again.
        if self.offer_until.take().is_some() {
            self.patience = Some(now + JOIN);
        }
    }

    fn fail(&mut self, failure: Failure) {
        if matches!(
            self.state,
            State::Opening(_) | State::LoggingIn(_) | State::Online
        ) {
            self.effects.push_back(ClientEffect::Close);
        }
        self.state = State::Over;
        self.tell(ClientEvent::Failed(failure));
    }

    fn tell(&mut self, event: ClientEvent) {
        self.effects.push_back(ClientEffect::Tell(event));
    }

    fn say(&mut self, text: String) {
        self.effects.push_back(ClientEffect::Send(SignalingText(text)));
    }

    /// What cannot be said now is not said later: after a new login the server knows nothing of what went before.
    fn say_online(&mut self, text: String) {
        if self.state == State::Online {
            self.say(text);
        }
    }
}
