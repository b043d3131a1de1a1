//! One socket: where it comes from, who it is, and what waits on it.

use std::collections::VecDeque;
use std::fmt;

use crate::signaling::request::{Features, Request};
use crate::signaling::{DeviceId, Identity, Source};
use crate::time::Monotonic;

/// Names one socket for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub(super) u64);

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the server knows of it.
#[derive(Debug)]
pub struct Socket {
    pub source: Source,
    pub identity: Option<Identity>,
    pub features: Features,
    /// When it is closed unless it logs in before.
    pub login_deadline: Monotonic,
    /// The newest sign of life.
    pub heartbeat: Monotonic,
    /// True for a device that can be joined here; false once it has left its own transmission.
    pub joinable: bool,
    /// True while the store works for it.
    pub waiting: bool,
    /// Messages that came meanwhile, in order.
    pub parked: VecDeque<Request>,
    /// Hosts it is a guest of.
    pub joined: Vec<DeviceId>,
    /// Devices it watches.
    pub watched: Vec<DeviceId>,
    /// True once it has said what client it is.
    pub introduced: bool,
}

impl Socket {
    pub const fn new(source: Source, now: Monotonic, login_deadline: Monotonic) -> Self {
        Self {
            source,
            identity: None,
            features: Features {
                ice: false,
                resume: false,
            },
            login_deadline,
            heartbeat: now,
            joinable: false,
            waiting: false,
            parked: VecDeque::new(),
            joined: Vec::new(),
            watched: Vec::new(),
            introduced: false,
        }
    }

    /// The device it is logged in as.
    pub fn device(&self) -> Option<DeviceId> {
        self.identity.as_ref().and_then(Identity::device)
    }

    /// True when it is logged in as `user`.
    pub fn is(&self, user: &str) -> bool {
        self.identity
            .as_ref()
            .is_some_and(|identity| identity.to_string() == user)
    }
}
