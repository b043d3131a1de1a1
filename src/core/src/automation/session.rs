//! The session: one connection, its generations, and everything requests can do to it.

use std::collections::VecDeque;

use crate::time::Monotonic;

use super::effect::Effect;
use super::event::Event;
use super::request::Request;

/// What is fixed for the life of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// True with `--video-ws`.
    pub video_ws: bool,
    /// True with `--source`: one picture, no input.
    pub direct_source: bool,
}

/// Where a session stands (`status.state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// `connect` was not called yet.
    Idle,
    /// Waiting for the first picture of the current generation.
    Connecting,
    /// Pictures of the current generation are here.
    Ready,
    /// The transport broke and tries again.
    Reconnecting,
    /// Ended by a fault.
    Failed,
    /// Ended on request, or the source came to its end.
    Disconnected,
}

impl SessionState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Reconnecting => "reconnecting",
            Self::Failed => "failed",
            Self::Disconnected => "disconnected",
        }
    }
}

/// The session machine.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    state: SessionState,
    effects: VecDeque<Effect>,
}

impl Session {
    /// A session that is not connected.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            config,
            state: SessionState::Idle,
            effects: VecDeque::new(),
        }
    }

    /// Reads one line without its newline and acts on it; a rejected line gets its one error reply.
    pub fn handle_line(&mut self, _now: Monotonic, _line: &[u8]) {}

    /// Answers a line that was longer than [`super::MAX_REQUEST_BYTES`] and was thrown away unread.
    pub fn handle_oversized_line(&mut self, _now: Monotonic) {}

    /// Acts on a parsed request.
    pub fn handle_request(&mut self, _now: Monotonic, _request: Request) {}

    /// Takes note of a fact.
    pub fn handle_event(&mut self, _now: Monotonic, _event: Event) {}

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Monotonic) {}

    /// The next thing to do, or `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn next_deadline(&self) -> Option<Monotonic> {
        None
    }

    /// Where it stands.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// What it was made with.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }
}
