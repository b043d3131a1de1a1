//! `login`: new devices, devices that come back, browsers and native clients' extra sockets.

use super::{Note, Refusal, Server, SocketId};
use crate::signaling::identity::Password;
use crate::signaling::keys::same;
use crate::signaling::message::{self, LoginExtras, Refused};
use crate::signaling::queue::Purpose;
use crate::signaling::request::{Features, Login};
use crate::signaling::{DeviceId, Identity, MAX_ID_TRIES, Moment, Source};

/// A login that has succeeded.
pub(super) struct Entry<'a> {
    pub identity: Identity,
    pub features: Features,
    pub extras: LoginExtras<'a>,
}

impl Server {
    pub(super) fn login(&mut self, now: Moment, id: SocketId, login: Login) {
        let Some(socket) = self.sockets.get(&id) else {
            return;
        };
        let source = socket.source;
        if socket.identity.is_some() {
            return self.refuse_login(id, Refusal::AlreadyAuthenticated.into(), false);
        }
        let Some(claim) = login.claim else {
            return self.refuse_login(id, Refusal::AuthenticationFailed.into(), false);
        };
        let (features, wants_token) = (login.features, login.wants_token);
        match (claim.id.as_str(), Identity::parse(&claim.id)) {
            ("", _) => self.enqueue(
                now,
                id,
                Purpose::Register {
                    features,
                    wants_token,
                },
            ),
            ("web", _) => self.login_new_web(now, id, features),
            (_, Some(Identity::Web(web))) => {
                match self.check_web(now, source, web, claim.password.as_ref()) {
                    Ok(()) => self.enter(now, id, plain(Identity::Web(web), features)),
                    Err(refused) => self.refuse_login(id, refused, false),
                }
            }
            (_, Some(identity @ Identity::Controller(_))) => self.enter(now, id, plain(identity, features)),
            (_, Some(Identity::Device(device))) => {
                let purpose = match (login.token, claim.password) {
                    (Some(token), None) => Purpose::Resume {
                        id: device,
                        token,
                        features,
                    },
                    (_, Some(password)) => Purpose::Login {
                        id: device,
                        password,
                        features,
                        wants_token,
                    },
                    (None, None) => {
                        return self.refuse_login(id, Refusal::AuthenticationFailed.into(), false);
                    }
                };
                self.enqueue(now, id, purpose);
            }
            (_, None) => self.refuse_login(id, Refusal::AuthenticationFailed.into(), false),
        }
    }

    fn login_new_web(&mut self, now: Moment, id: SocketId, features: Features) {
        let taken = |server: &Self, web| server.online.contains_key(&Identity::Web(web));
        for _ in 0..MAX_ID_TRIES {
            let web = self.keys.number();
            if taken(self, web) {
                continue;
            }
            // A password only for who can use it: clients from before session tickets expect the bare id.
            let password = features.resume.then(|| self.keys.web_password(web));
            let mut entry = plain(Identity::Web(web), features);
            entry.extras.password = password.as_ref();
            return self.enter(now, id, entry);
        }
        self.refuse_login(id, Refusal::Busy.into(), false);
    }

    /// Checks the password that a browser was given with its identity.
    fn check_web(
        &mut self,
        now: Moment,
        source: Source,
        web: DeviceId,
        password: Option<&Password>,
    ) -> Result<(), Refused> {
        if let Some(refused) = self.blocked(now, source, None) {
            return Err(refused);
        }
        let expected = self.keys.web_password(web);
        if password.is_some_and(|password| same(password.expose(), expected.expose())) {
            return Ok(());
        }
        self.note_failure(now, source, None);
        Err(Refusal::AuthenticationFailed.into())
    }

    pub(super) fn refuse_login(&mut self, id: SocketId, refused: Refused, token: bool) {
        *self.counted.logins_refused.entry(refused.why).or_default() += 1;
        self.note(Note::LoginRefused(id, refused.why));
        self.send(id, message::login_failed(refused, token));
    }

    /// Binds a socket to its identity and says so.
    pub(super) fn enter(&mut self, now: Moment, id: SocketId, entry: Entry<'_>) {
        let Entry {
            identity,
            features,
            mut extras,
        } = entry;
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        self.login_deadlines.remove(&(socket.login_deadline, id));
        socket.identity = Some(identity.clone());
        socket.features = features;
        socket.heartbeat = now.at;
        socket.joinable = identity.device().is_some();
        extras.ice = features.ice;
        if !features.ice {
            let ice_id = self.keys.ice_id();
            extras.turn = self.config.ice.deliver(now.unix, &identity, &ice_id).turn;
        }
        let sockets = self.online.entry(identity.clone()).or_default();
        sockets.push(id);
        let first = sockets.len() == 1;
        self.counted.logins += 1;
        self.send(id, message::logged_in(&identity, extras));
        if let Some(device) = identity.device().filter(|_| first) {
            self.tell_watchers(device, true);
        }
        self.note(Note::LoggedIn(id, identity));
    }

    pub(super) fn log_out(&mut self, id: SocketId, identity: &Identity) {
        let Some(sockets) = self.online.get_mut(identity) else {
            return;
        };
        sockets.retain(|other| *other != id);
        if !sockets.is_empty() {
            return;
        }
        self.online.remove(identity);
        if let Some(device) = identity.device() {
            self.digests.remove(&device);
            self.tell_watchers(device, false);
        }
    }
}

/// An entry whose reply has nothing special.
pub(super) fn plain<'a>(identity: Identity, features: Features) -> Entry<'a> {
    Entry {
        identity,
        features,
        extras: LoginExtras::default(),
    }
}
