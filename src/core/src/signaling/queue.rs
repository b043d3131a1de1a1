//! Work for the device store: one piece at a time, each source within its quota, in order of arrival.
//!
//! One at a time is what makes the limits on failures exact: the next guess is looked at when the outcome of the one
//! before is known.

use std::collections::VecDeque;

use super::identity::{DeviceId, Password};
use super::keys::Digest;
use super::rate::{Quota, Source};
use super::request::Features;
use super::{MAX_QUEUED, MAX_QUEUED_PER_SOURCE, NewToken, QUEUE_DEADLINE, SocketId};
use crate::time::Monotonic;

/// What a piece of work is for.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// A new device.
    Register { features: Features, wants_token: bool },
    /// A device logs in with its password.
    Login {
        id: DeviceId,
        password: Password,
        features: Features,
        wants_token: bool,
    },
    /// A device logs in with its reconnect token.
    Resume {
        id: DeviceId,
        token: Password,
        features: Features,
    },
    /// A guest wants to reach a host whose password is not at hand.
    Join { host: DeviceId, password: Password },
    /// Somebody asks who is with a host.
    ListUsers { host: DeviceId, password: Password },
    /// A device gets another password.
    ChangePassword {
        id: DeviceId,
        request_id: String,
        password: Password,
    },
    /// A device's reconnect token ends.
    RevokeToken { id: DeviceId },
}

impl Purpose {
    /// Whose password or token is checked; failures count against it.
    pub const fn target(&self) -> Option<DeviceId> {
        match self {
            Self::Login { id, .. } => Some(*id),
            Self::Join { host, .. } | Self::ListUsers { host, .. } => Some(*host),
            _ => None,
        }
    }

    /// Tokens are found at the cost of a look-up, so they need no quota.
    const fn is_free(&self) -> bool {
        matches!(self, Self::Resume { .. } | Self::RevokeToken { .. })
    }
}

/// A piece of work.
#[derive(Clone, Debug)]
pub struct Job {
    pub socket: SocketId,
    pub source: Source,
    pub since: Monotonic,
    pub purpose: Purpose,
}

/// What the store is busy with.
#[derive(Debug)]
pub struct Running {
    pub job: Job,
    /// The new device being tried, for [`Purpose::Register`].
    pub id: Option<DeviceId>,
    /// Its password.
    pub password: Option<Password>,
    /// The token that goes with it.
    pub token: Option<NewToken>,
    /// What is remembered of the password when it is right.
    pub digest: Option<Digest>,
    /// Ids tried so far.
    pub tries: u32,
}

/// See the module's description.
#[derive(Debug)]
pub struct Queue {
    waiting: VecDeque<Job>,
    pub running: Option<Running>,
    quota: Quota,
}

impl Queue {
    pub fn new(quota: u32) -> Self {
        Self {
            waiting: VecDeque::new(),
            running: None,
            quota: Quota::new(quota),
        }
    }

    /// Adds a piece of work; false when there is no room.
    pub fn push(&mut self, job: Job) -> bool {
        let of_source = self.waiting.iter().filter(|other| other.source == job.source);
        let room = self.waiting.len() < MAX_QUEUED
            && of_source.count() < MAX_QUEUED_PER_SOURCE
            && self.quota.has_room(job.source);
        if room {
            self.waiting.push_back(job);
        }
        room
    }

    fn ready_at(&self, job: &Job) -> Monotonic {
        if job.purpose.is_free() {
            Monotonic::ZERO
        } else {
            self.quota.ready_at(job.source)
        }
    }

    /// The next piece, when the store is idle and some source may.
    pub fn take(&mut self, now: Monotonic) -> Option<Job> {
        if self.running.is_some() {
            return None;
        }
        let ready = |job: &Job| self.ready_at(job) <= now;
        let at = self.waiting.iter().position(ready)?;
        self.waiting.remove(at)
    }

    /// The piece taken is worked on.
    pub fn spend(&mut self, now: Monotonic, job: &Job) {
        if !job.purpose.is_free() {
            self.quota.spend(now, job.source);
        }
    }

    /// A piece that has waited too long.
    pub fn take_late(&mut self, now: Monotonic) -> Option<Job> {
        let late = self
            .waiting
            .front()
            .is_some_and(|job| job.since + QUEUE_DEADLINE <= now);
        if late { self.waiting.pop_front() } else { None }
    }

    /// Forgets what a socket waited for; what runs already goes on.
    pub fn forget(&mut self, socket: SocketId) {
        self.waiting.retain(|job| job.socket != socket);
    }

    /// When a piece becomes ready or late; `None` while nothing waits.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let late = self.waiting.front().map(|job| job.since + QUEUE_DEADLINE);
        let idle = self.running.is_none();
        let ready = self.waiting.iter().filter(|_| idle).map(|job| self.ready_at(job));
        ready.chain(late).min()
    }

    /// Forgets sources that have their whole quota back.
    pub fn expire(&mut self, now: Monotonic) {
        self.quota.expire(now);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
