//! Who is whose guest: joining, leaving, and coming back to a session with its ticket.

use std::collections::BTreeMap;

use super::{Note, Refusal, Server, SocketId};
use crate::signaling::identity::{Claim, Password};
use crate::signaling::keys::same;
use crate::signaling::message::{self, Refused};
use crate::signaling::queue::Purpose;
use crate::signaling::request::{Join, Report};
use crate::signaling::{DeviceId, Identity, MAX_GUESTS, MAX_JOINED, Moment, RESUME_DEADLINE};
use crate::time::Monotonic;

/// A guest bound to a host. What is sent to the guest goes to the socket that proved to know the password, or the
/// ticket, and to no other socket of the same name.
#[derive(Debug)]
pub(super) struct Session {
    /// `None` while the guest may come back with its ticket.
    pub(super) socket: Option<SocketId>,
    token: Option<Password>,
    detached_at: Monotonic,
    reported_by_host: bool,
    reported_by_guest: bool,
}

/// What a guest asks for: a host, or why there is none.
type Asked = Result<(DeviceId, Password), Refusal>;

impl Server {
    pub(super) fn join(&mut self, now: Moment, id: SocketId, join: &Join) {
        let named = join.host.as_ref().map_or("", |claim| claim.id.as_str());
        if !self.sockets.get(&id).is_some_and(|socket| socket.is(&join.user)) {
            return self.refuse_join(id, named, Refusal::NotAuthenticated.into());
        }
        match asked(join.host.as_ref()) {
            Err(why) => self.refuse_join(id, named, why.into()),
            Ok((host, password)) => match self.know(now, id, host, &password) {
                None => self.enqueue(now, id, Purpose::Join { host, password }),
                Some(Err(refused)) => self.refuse_join(id, named, refused),
                Some(Ok(())) => self.complete_join(now, id, host),
            },
        }
    }

    /// Checks a password without the store, when its device is online and has shown it. `None` asks the store.
    fn know(
        &mut self,
        now: Moment,
        id: SocketId,
        host: DeviceId,
        password: &Password,
    ) -> Option<Result<(), Refused>> {
        let source = self.sockets.get(&id)?.source;
        if let Some(refused) = self.blocked(now, source, Some(host)) {
            return Some(Err(refused));
        }
        let right = self.digests.get(&host).copied()?;
        if right == self.keys.digest(host, password) {
            return Some(Ok(()));
        }
        self.note_failure(now, source, Some(host));
        Some(Err(Refusal::AuthenticationFailed.into()))
    }

    pub(super) fn refuse_join(&mut self, id: SocketId, host: &str, refused: Refused) {
        *self.counted.joins_refused.entry(refused.why).or_default() += 1;
        self.note(Note::JoinRefused(id, refused.why));
        self.send(id, message::join_failed(host, refused));
    }

    /// The password was right.
    pub(super) fn complete_join(&mut self, now: Moment, id: SocketId, host: DeviceId) {
        let Some(guest) = self.sockets.get(&id).and_then(|socket| socket.identity.clone()) else {
            return;
        };
        let host_socket = self.route(host).filter(|_| guest.device() != Some(host));
        let bound = host_socket.is_some_and(|_| self.attach(host, &guest, id));
        let Some(host_socket) = host_socket.filter(|_| bound) else {
            return self.refuse_join(id, &host.to_string(), Refusal::RemoteUnavailable.into());
        };
        self.issue_ticket(host, &guest, [host_socket, id]);
        let ice_id = self.keys.ice_id();
        let delivery = self
            .config
            .ice
            .deliver(now.unix, &Identity::Device(host), &ice_id);
        self.counted.joins += 1;
        self.send(host_socket, message::joined(host, &guest, delivery));
        self.note(Note::Joined(guest, host));
    }

    fn issue_ticket(&mut self, host: DeviceId, guest: &Identity, sockets: [SocketId; 2]) {
        let resumes = |id: &SocketId| self.sockets.get(id).is_some_and(|socket| socket.features.resume);
        if !sockets.iter().all(resumes) {
            return;
        }
        let token = self.keys.token();
        for id in sockets {
            self.send(id, message::ticket(host, guest, &token));
        }
        if let Some(session) = self.session_mut(host, guest) {
            session.token = Some(token);
        }
    }

    fn session_mut(&mut self, host: DeviceId, guest: &Identity) -> Option<&mut Session> {
        self.sessions.get_mut(&host)?.get_mut(guest)
    }

    /// Binds a guest's socket to a host; false when either has too many.
    fn attach(&mut self, host: DeviceId, guest: &Identity, id: SocketId) -> bool {
        let joined = self.sockets.get(&id).map(|socket| &socket.joined);
        if joined.is_none_or(|joined| joined.len() >= MAX_JOINED && !joined.contains(&host)) {
            return false;
        }
        let guests = self.sessions.entry(host).or_default();
        if !guests.contains_key(guest) && !make_room(guests) {
            return false;
        }
        let session = Session {
            socket: Some(id),
            token: None,
            detached_at: Monotonic::ZERO,
            reported_by_host: false,
            reported_by_guest: false,
        };
        let before = guests.insert(guest.clone(), session);
        self.link(host, before.and_then(|session| session.socket), id);
        true
    }

    /// Moves the note that a socket is `host`'s guest.
    fn link(&mut self, host: DeviceId, from: Option<SocketId>, to: SocketId) {
        self.unlink(host, from);
        if let Some(socket) = self.sockets.get_mut(&to) {
            socket.joined.push(host);
        }
    }

    fn unlink(&mut self, host: DeviceId, from: Option<SocketId>) {
        if let Some(socket) = from.and_then(|id| self.sockets.get_mut(&id)) {
            socket.joined.retain(|other| *other != host);
        }
    }

    /// A guest's socket is gone: nobody is told, and with a ticket the guest may come back.
    pub(super) fn detach(&mut self, now: Moment, host: DeviceId, guest: &Identity, id: SocketId) {
        let Some(session) = self.session_mut(host, guest) else {
            return;
        };
        if session.socket != Some(id) {
            return;
        }
        session.socket = None;
        session.detached_at = now.at;
        if session.token.is_none() {
            self.remove_session(host, guest);
        }
    }

    fn remove_session(&mut self, host: DeviceId, guest: &Identity) {
        let Some(guests) = self.sessions.get_mut(&host) else {
            return;
        };
        let removed = guests.remove(guest);
        if guests.is_empty() {
            self.sessions.remove(&host);
        }
        self.unlink(host, removed.and_then(|session| session.socket));
    }

    /// The socket that is bound to `host` as `guest`.
    pub(super) fn guest_socket(&self, host: DeviceId, guest: &Identity) -> Option<SocketId> {
        self.sessions.get(&host)?.get(guest)?.socket
    }

    pub(super) fn leave(&mut self, id: SocketId, user: &str, transmission: &str) {
        let Some((host, identity)) = self.speaker(id, user, transmission) else {
            self.counted.dropped += 1;
            return;
        };
        if identity.device() == Some(host) {
            self.release(id, host);
        } else if self.guest_socket(host, &identity) == Some(id) {
            self.remove_session(host, &identity);
            let others = self.guest_sockets(host).into_iter().chain(self.route(host));
            for other in others.collect::<Vec<_>>() {
                self.send(other, message::left(host, &identity));
            }
        } else {
            self.counted.dropped += 1;
        }
    }

    /// The host takes leave of all guests and cannot be joined here again.
    fn release(&mut self, id: SocketId, host: DeviceId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.joinable = false;
        }
        // Another socket of the same device goes on serving them.
        if self.route(host).is_some() {
            return;
        }
        let guests = self.guest_sockets(host);
        for guest in self
            .sessions
            .remove(&host)
            .into_iter()
            .flat_map(BTreeMap::into_values)
        {
            self.unlink(host, guest.socket);
        }
        for guest in guests {
            self.send(guest, message::left(host, &Identity::Device(host)));
        }
    }

    fn guest_sockets(&self, host: DeviceId) -> Vec<SocketId> {
        let guests = self.sessions.get(&host).into_iter().flat_map(BTreeMap::values);
        guests.filter_map(|session| session.socket).collect()
    }

    /// Who `id` is, when that is `user`, and the host of `transmission`.
    fn speaker(&self, id: SocketId, user: &str, transmission: &str) -> Option<(DeviceId, Identity)> {
        let socket = self.sockets.get(&id).filter(|socket| socket.is(user))?;
        Some((DeviceId::parse(transmission)?, socket.identity.clone()?))
    }

    pub(super) fn disconnect_peer(&mut self, id: SocketId, user: &str, transmission: &str, remote: &str) {
        let speaker = self.speaker(id, user, transmission);
        let host = speaker.and_then(|(host, identity)| identity.device().filter(|device| *device == host));
        let guest = Identity::parse(remote);
        let Some((host, guest)) = host.zip(guest) else {
            self.counted.dropped += 1;
            return;
        };
        let socket = self.guest_socket(host, &guest);
        self.remove_session(host, &guest);
        if let Some(socket) = socket {
            self.send(socket, message::left(host, &Identity::Device(host)));
        }
    }

    pub(super) fn report(&mut self, now: Moment, id: SocketId, report: &Report) {
        let parsed = DeviceId::parse(&report.host).zip(Identity::parse(&report.guest));
        let identity = self.sockets.get(&id).and_then(|socket| socket.identity.clone());
        let Some(((host, guest), identity)) = parsed.zip(identity) else {
            self.counted.dropped += 1;
            return;
        };
        let is_host = identity == Identity::Device(host);
        let token = self
            .session_mut(host, &guest)
            .and_then(|session| session.token.as_ref());
        let right = token.is_some_and(|token| same(token.expose(), report.token.expose()));
        if !right || !(is_host || identity == guest) {
            self.counted.dropped += 1;
        } else if report.alive {
            self.revive(now, id, (host, guest), is_host);
        } else {
            self.remove_session(host, &guest);
        }
    }

    fn revive(&mut self, now: Moment, id: SocketId, (host, guest): (DeviceId, Identity), is_host: bool) {
        let Some(session) = self.session_mut(host, &guest) else {
            return;
        };
        if is_host {
            session.reported_by_host = true;
        } else {
            session.reported_by_guest = true;
            let before = session.socket.replace(id);
            session.detached_at = now.at;
            self.link(host, before, id);
        }
        let host_socket = self.route(host);
        let Some(session) = self.session_mut(host, &guest) else {
            return;
        };
        let both = session.reported_by_host && session.reported_by_guest;
        let Some((guest_socket, host_socket)) = session.socket.zip(host_socket).filter(|_| both) else {
            return;
        };
        (session.reported_by_host, session.reported_by_guest) = (false, false);
        for socket in [host_socket, guest_socket] {
            self.send(socket, message::resumed(host, &guest));
        }
    }

    pub(super) fn expire_sessions(&mut self, now: Moment) {
        for guests in self.sessions.values_mut() {
            guests.retain(|_, session| {
                session.socket.is_some() || session.detached_at + RESUME_DEADLINE > now.at
            });
        }
        self.sessions.retain(|_, guests| !guests.is_empty());
    }

    pub(super) fn list_users(&mut self, now: Moment, id: SocketId, host: Option<&Claim>) {
        let named = host.map_or("", |claim| claim.id.as_str());
        let logged_in = self
            .sockets
            .get(&id)
            .is_some_and(|socket| socket.identity.is_some());
        let asked = asked(host).and_then(|asked| logged_in.then_some(asked).ok_or(Refusal::NotAuthenticated));
        match asked {
            Err(why) => self.send(id, message::users(named, Err(why.into()))),
            Ok((host, password)) => match self.know(now, id, host, &password) {
                None => self.enqueue(now, id, Purpose::ListUsers { host, password }),
                Some(Err(refused)) => self.send(id, message::users(named, Err(refused))),
                Some(Ok(())) => self.tell_users(id, host),
            },
        }
    }

    pub(super) fn tell_users(&mut self, id: SocketId, host: DeviceId) {
        let text = if self.route(host).is_some() {
            let guests = self.sessions.get(&host).into_iter().flat_map(BTreeMap::keys);
            let users = std::iter::once(host.to_string()).chain(guests.map(Identity::to_string));
            message::users(&host.to_string(), Ok(users.collect()))
        } else {
            message::users(&host.to_string(), Err(Refusal::RemoteUnavailable.into()))
        };
        self.send_if_open(id, text);
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn check_sessions(&self) {
        for (host, guests) in &self.sessions {
            assert!(!guests.is_empty() && guests.len() <= MAX_GUESTS);
            for (guest, session) in guests {
                assert!(session.socket.is_some() || session.token.is_some());
                let Some(socket) = session.socket else { continue };
                let socket = self.sockets.get(&socket).expect("a bound socket is open");
                assert_eq!(socket.identity.as_ref(), Some(guest));
                assert_eq!(socket.joined.iter().filter(|other| *other == host).count(), 1);
            }
        }
        for (id, socket) in &self.sockets {
            assert!(socket.joined.len() <= MAX_JOINED);
            for host in &socket.joined {
                let guest = socket.identity.as_ref().expect("only who is logged in joins");
                assert_eq!(self.guest_socket(*host, guest), Some(*id));
            }
        }
    }
}

fn asked(host: Option<&Claim>) -> Asked {
    let claim = host.ok_or(Refusal::AuthenticationFailed)?;
    let device = DeviceId::parse(&claim.id);
    device
        .zip(claim.password.clone())
        .ok_or(Refusal::AuthenticationFailed)
}

/// Makes room for one more guest: who may come back goes before who is there.
fn make_room(guests: &mut BTreeMap<Identity, Session>) -> bool {
    if guests.len() < MAX_GUESTS {
        return true;
    }
    let gone = guests.iter().filter(|(_, session)| session.socket.is_none());
    let oldest = gone.min_by_key(|(_, session)| session.detached_at);
    let Some(oldest) = oldest.map(|(guest, _)| guest.clone()) else {
        return false;
    };
    guests.remove(&oldest);
    true
}
