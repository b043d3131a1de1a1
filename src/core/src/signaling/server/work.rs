//! Work that needs the device store: how it waits, starts and ends.

use super::login::{Entry, plain};
use super::{Effect, Note, Refusal, Server, SocketId};
use crate::signaling::message::{self, LoginExtras, Refused};
use crate::signaling::queue::{Job, Purpose, Running};
use crate::signaling::request::Features;
use crate::signaling::{
    DeviceId, Identity, MAX_ID_TRIES, Moment, NewToken, Source, StoreOutcome, StoreRequest, TOKEN_SECONDS,
};

impl Server {
    /// How long the source or the target has to wait after too many failures.
    pub(super) fn blocked(&self, now: Moment, source: Source, target: Option<DeviceId>) -> Option<Refused> {
        let target = target.and_then(|id| self.id_failures.blocked(now.at, id));
        let left = self.source_failures.blocked(now.at, source).max(target)?;
        Some(Refused {
            why: Refusal::TooManyAttempts,
            retry_after: Some(left.as_secs_f64().ceil() as u64),
        })
    }

    pub(super) fn note_failure(&mut self, now: Moment, source: Source, target: Option<DeviceId>) {
        self.source_failures.note(now.at, source);
        if let Some(id) = target {
            self.id_failures.note(now.at, id);
        }
    }

    /// Adds work of a socket, whose messages then wait for the outcome.
    pub(super) fn enqueue(&mut self, now: Moment, id: SocketId, purpose: Purpose) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let job = Job {
            socket: id,
            source: socket.source,
            since: now.at,
            purpose,
        };
        if let Some(refused) = self.blocked(now, job.source, job.purpose.target()) {
            return self.refuse_work(&job, refused);
        }
        if self.queue.push(job.clone()) {
            if let Some(socket) = self.sockets.get_mut(&id) {
                socket.waiting = true;
            }
        } else {
            self.refuse_work(&job, Refusal::Busy.into());
        }
    }

    /// Starts the next work while the store is idle.
    pub(super) fn work(&mut self, now: Moment) {
        while let Some(job) = self.queue.take(now.at) {
            // Failures may have come while it waited.
            if let Some(refused) = self.blocked(now, job.source, job.purpose.target()) {
                self.refuse_work(&job, refused);
                self.unpark(now, job.socket);
                continue;
            }
            self.queue.spend(now.at, &job);
            self.start(now, job, 1);
        }
    }

    fn start(&mut self, now: Moment, job: Job, tries: u32) {
        let wants_token = match job.purpose {
            Purpose::Register { wants_token, .. } | Purpose::Login { wants_token, .. } => wants_token,
            _ => false,
        };
        let token = wants_token.then(|| NewToken {
            token: self.keys.token(),
            expires_at: now.unix + TOKEN_SECONDS,
        });
        let (id, password) = match &job.purpose {
            Purpose::Register { .. } => (Some(self.keys.number()), Some(self.keys.password())),
            Purpose::Login { id, password, .. } | Purpose::ChangePassword { id, password, .. } => {
                (Some(*id), Some(password.clone()))
            }
            Purpose::Join { host, password } | Purpose::ListUsers { host, password } => {
                (Some(*host), Some(password.clone()))
            }
            Purpose::Resume { id, .. } | Purpose::RevokeToken { id } => (Some(*id), None),
        };
        let known = id.zip(password.as_ref());
        let running = Running {
            digest: known.map(|(id, password)| self.keys.digest(id, password)),
            job,
            id,
            password,
            token,
            tries,
        };
        if let Some(request) = question(now, &running) {
            self.effects.push_back(Effect::Store(request));
            self.queue.running = Some(running);
        }
    }

    /// The store has answered the newest [`Effect::Store`].
    pub fn handle_store(&mut self, now: Moment, outcome: StoreOutcome) {
        let Some(running) = self.queue.running.take() else {
            return;
        };
        if outcome == StoreOutcome::Failed {
            self.note(Note::StoreFailed);
        }
        let socket = running.job.socket;
        if self.settle(now, &running, outcome) {
            self.unpark(now, socket);
        }
        self.work(now);
    }

    /// False when the same job goes on.
    fn settle(&mut self, now: Moment, running: &Running, outcome: StoreOutcome) -> bool {
        let accepted = matches!(outcome, StoreOutcome::Accepted { .. });
        let job = &running.job;
        // Counted even when nobody waits any more: hanging up must not make guesses free.
        if outcome == StoreOutcome::Refused && job.purpose.target().is_some() {
            self.note_failure(now, job.source, job.purpose.target());
        }
        if accepted {
            self.accept(now, running, outcome);
            return true;
        }
        let registering = matches!(job.purpose, Purpose::Register { .. });
        if registering && outcome == StoreOutcome::Refused && running.tries < MAX_ID_TRIES {
            let alive = self.sockets.contains_key(&job.socket);
            if alive {
                self.start(now, running.job.clone(), running.tries + 1);
            }
            return !alive;
        }
        let why = match outcome {
            StoreOutcome::Refused => Refusal::AuthenticationFailed,
            _ => Refusal::Busy,
        };
        self.refuse_work(job, why.into());
        true
    }

    fn accept(&mut self, now: Moment, running: &Running, outcome: StoreOutcome) {
        let socket = running.job.socket;
        match &running.job.purpose {
            Purpose::Register { features, .. } | Purpose::Login { features, .. } => {
                self.accept_login(now, running, *features);
            }
            Purpose::Resume { id, features, .. } => {
                let mut entry = plain(Identity::Device(*id), *features);
                if let StoreOutcome::Accepted { expires_at } = outcome {
                    entry.extras.reconnected_until = Some(expires_at.unwrap_or(now.unix));
                }
                self.enter(now, socket, entry);
            }
            Purpose::Join { host, .. } => {
                self.remember(running);
                self.complete_join(now, socket, *host);
            }
            Purpose::ListUsers { host, .. } => {
                self.remember(running);
                self.tell_users(socket, *host);
            }
            Purpose::ChangePassword { .. } => {
                self.remember(running);
                self.password_is_changed(running);
            }
            Purpose::RevokeToken { id } => {
                self.send_if_open(socket, message::token_revoked(&id.to_string(), true));
            }
        }
    }

    fn accept_login(&mut self, now: Moment, running: &Running, features: Features) {
        let (Some(id), socket) = (running.id, running.job.socket) else {
            return;
        };
        if !self.sockets.contains_key(&socket) {
            return;
        }
        let new = matches!(running.job.purpose, Purpose::Register { .. });
        if new {
            self.counted.registered += 1;
            self.note(Note::Registered(socket, id));
        }
        let extras = LoginExtras {
            password: running.password.as_ref().filter(|_| new),
            token: running.token.as_ref(),
            ..LoginExtras::default()
        };
        self.enter(
            now,
            socket,
            Entry {
                identity: Identity::Device(id),
                features,
                extras,
            },
        );
        self.remember(running);
    }

    /// Keeps a digest of the password that was just found right, while its device is online.
    fn remember(&mut self, running: &Running) {
        let Some((id, digest)) = running.id.zip(running.digest) else {
            return;
        };
        if self.online.contains_key(&Identity::Device(id)) {
            self.digests.insert(id, digest);
        }
    }

    pub(super) fn drop_late_work(&mut self, now: Moment) {
        while let Some(job) = self.queue.take_late(now.at) {
            let refused = Refused {
                why: Refusal::TooManyRequests,
                retry_after: Some(crate::signaling::QUOTA_WINDOW.as_secs()),
            };
            self.refuse_work(&job, refused);
            self.unpark(now, job.socket);
        }
    }

    /// Tells a socket that its work came to nothing.
    fn refuse_work(&mut self, job: &Job, refused: Refused) {
        let socket = job.socket;
        if !self.sockets.contains_key(&socket) {
            return;
        }
        match &job.purpose {
            Purpose::Register { .. } | Purpose::Login { .. } => self.refuse_login(socket, refused, false),
            Purpose::Resume { .. } => {
                let rejected = refused.why == Refusal::AuthenticationFailed;
                self.refuse_login(socket, refused, rejected);
            }
            Purpose::Join { host, .. } => self.refuse_join(socket, &host.to_string(), refused),
            Purpose::ListUsers { host, .. } => {
                self.send(socket, message::users(&host.to_string(), Err(refused)));
            }
            Purpose::ChangePassword { id, request_id, .. } => {
                self.refuse_change(socket, *id, request_id, refused);
            }
            Purpose::RevokeToken { id } => self.send(socket, message::token_revoked(&id.to_string(), false)),
        }
    }

    pub(super) fn send_if_open(&mut self, id: SocketId, text: String) {
        if self.sockets.contains_key(&id) {
            self.send(id, text);
        }
    }
}

/// What the store is asked for a piece of work.
fn question(now: Moment, running: &Running) -> Option<StoreRequest> {
    let id = running.id?;
    let password = || running.password.clone();
    Some(match &running.job.purpose {
        Purpose::Register { .. } => StoreRequest::Create {
            id,
            password: password()?,
            token: running.token.clone(),
        },
        Purpose::Login { .. } | Purpose::Join { .. } | Purpose::ListUsers { .. } => StoreRequest::Check {
            id,
            password: password()?,
            token: running.token.clone(),
        },
        Purpose::Resume { token, .. } => StoreRequest::CheckToken {
            id,
            token: token.clone(),
            unix: now.unix,
        },
        Purpose::ChangePassword { .. } => StoreRequest::SetPassword {
            id,
            password: password()?,
        },
        Purpose::RevokeToken { .. } => StoreRequest::RevokeToken { id },
    })
}
