//! The session: one connection, its generations, and everything requests can do to it.
//!
//! ```text
//!            connect                    picture
//!   idle ------------> connecting ----------------> ready
//!                        |   ^  display switch        |
//!                        |   +------------------------+
//!       transport broke  v                            v
//!                     reconnecting <------------------+      a picture leads back to ready
//!   connecting, ready, reconnecting --fault--> failed        --request or end of source--> disconnected
//! ```
//!
//! This file takes requests and events in and hands effects out. What they do lives with its topic: `connection`,
//! `capture`, `acting`, `viewing`, `status`.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::Serialize;

use crate::error::ErrorCode;
use crate::time::Monotonic;

use super::acting::Acting;
use super::capture::Captures;
use super::connection::Connection;
use super::effect::{Effect, ExitReason};
use super::event::{Event, TransportState};
use super::observation::Observations;
use super::operation::Operations;
use super::parse::{Refusal, parse_line};
use super::reply::{self, Cancelled, Hello, Permissions};
use super::request::{Method, Mode, Request, ViewerOperation};
use super::status::{Facts, Fault};
use super::viewing::Viewing;

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

    /// True while there is a connection or an attempt at one.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Connecting | Self::Ready | Self::Reconnecting)
    }
}

/// The session machine.
#[derive(Debug)]
pub struct Session {
    pub(super) config: SessionConfig,
    pub(super) state: SessionState,
    pub(super) connection: Option<Connection>,
    pub(super) fault: Option<Fault>,
    pub(super) control_enabled: bool,
    pub(super) human_paused: bool,
    pub(super) observations: Observations,
    pub(super) operations: Operations,
    pub(super) acting: Option<Acting>,
    pub(super) captures: Captures,
    pub(super) viewing: Viewing,
    pub(super) facts: Facts,
    numbers: u64,
    exiting: bool,
    effects: VecDeque<Effect>,
}

impl Session {
    /// A session that is not connected.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            config,
            state: SessionState::Idle,
            connection: None,
            fault: None,
            control_enabled: false,
            human_paused: false,
            observations: Observations::default(),
            operations: Operations::default(),
            acting: None,
            captures: Captures::default(),
            viewing: Viewing::default(),
            facts: Facts::default(),
            numbers: 0,
            exiting: false,
            effects: VecDeque::new(),
        }
    }

    /// Reads one line without its newline and acts on it; a rejected line gets its one error reply.
    pub fn handle_line(&mut self, now: Monotonic, line: &[u8]) {
        match parse_line(line) {
            Ok(request) => self.handle_request(now, request),
            Err(refusal) => self.handle_refusal(refusal),
        }
    }

    /// Answers a line that was rejected.
    pub fn handle_refusal(&mut self, refusal: Refusal) {
        if !self.exiting {
            self.push(Effect::Reply(reply::failure(refusal.id, refusal.code)));
        }
    }

    /// Answers a line that was longer than [`super::MAX_REQUEST_BYTES`] and was thrown away unread.
    pub fn handle_oversized_line(&mut self, _now: Monotonic) {
        self.handle_refusal(Refusal {
            id: None,
            code: ErrorCode::RequestTooLarge,
            member: "",
        });
    }

    /// Acts on a parsed request. Requests after `exit`, or after stdin closed, are ignored.
    pub fn handle_request(&mut self, now: Monotonic, request: Request) {
        let Request { id, method } = request;
        if self.exiting {
            return;
        }
        if self.in_flight(id) {
            self.refuse(id, ErrorCode::DuplicateId);
            return;
        }
        match method {
            Method::Hello => self.answer(id, &Hello::new(self.config.video_ws)),
            Method::Connect(connect) => self.connect(now, id, connect),
            Method::Status => {
                let line = reply::success(id, &self.status(now));
                self.push(Effect::Reply(line));
            }
            Method::Screenshot(args) => self.screenshot(now, id, args),
            Method::Preview(args) => self.preview(now, id, args),
            Method::VideoOpen(open) => self.video_open(id, open),
            Method::VideoRevoke { view } => self.video_revoke(id, view),
            Method::Action {
                operation_id,
                observation_id,
                action,
            } => self.act(now, id, operation_id, (&observation_id, &action)),
            Method::Control { enabled } => self.control(id, enabled),
            Method::ViewerControl(operation) => self.viewer_control(id, operation),
            Method::Display { index } => self.display(now, id, index),
            Method::Cancel { request_id } => self.cancel(id, request_id),
            Method::Disconnect => self.disconnect(id),
            Method::Exit => {
                self.disconnect(id);
                self.exit(ExitReason::Requested);
            }
        }
    }

    /// Takes note of a fact.
    pub fn handle_event(&mut self, now: Monotonic, event: Event) {
        match event {
            Event::Transport(state) => self.transport(now, state),
            Event::Displays(displays) => self.facts.displays = displays,
            Event::HostPlatform(platform) => self.facts.host_platform = Some(platform),
            Event::Control { allowed, text } => self.control_offered(allowed, text),
            Event::Picture(picture) => {
                self.note_picture(picture);
                self.pump_captures(now);
            }
            Event::CaptureDone { job, result } => self.capture_done(now, job, result),
            Event::ControlSent { send, outcome } => self.control_sent(now, send, outcome),
            Event::VideoOpened { job, result } => self.video_opened(job, result),
            Event::VideoRevoked { job } => self.video_revoked(job),
            Event::Decoder(report) => self.facts.decoder = report,
            Event::VideoOutput(stats) => self.facts.video_output = stats,
            Event::Diagnostics(diagnostics) => self.facts.transport = diagnostics,
            Event::Latency(latency) => self.facts.latency = latency,
            Event::Obstacle(reason) => self.note_obstacle(reason),
            Event::Failed { code, reason } => self.transport(now, TransportState::Failed { code, reason }),
            Event::InputClosed => self.leave(ExitReason::InputClosed),
            Event::Signal => self.leave(ExitReason::Signal),
            Event::OutputBlocked => self.leave(ExitReason::OutputBlocked),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        self.check_connect_limit(now);
        self.pump_captures(now);
        self.advance_acting(now);
    }

    /// The next thing to do, or `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let connect = self
            .connection
            .as_ref()
            .and_then(|connection| connection.ready_by);
        let acting = self.acting.as_ref().and_then(Acting::deadline);
        [connect, acting, self.captures.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Where it stands.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// What it was made with.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// The current display generation; `None` before `connect`.
    pub fn generation(&self) -> Option<u32> {
        self.connection.as_ref().map(|connection| connection.generation)
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// A number for a job or a send; never used twice.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn answer<T: Serialize>(&mut self, id: u64, result: &T) {
        self.answer_with(reply::success(id, result));
    }

    pub(super) fn answer_with(&mut self, line: Bytes) {
        self.push(Effect::Reply(line));
    }

    pub(super) fn refuse(&mut self, id: u64, code: ErrorCode) {
        self.push(Effect::Reply(reply::failure(Some(id), code)));
    }

    /// True while a reply to `id` is still owed.
    fn in_flight(&self, id: u64) -> bool {
        self.captures.owes(id)
            || self.viewing.owes(id)
            || self.acting.as_ref().is_some_and(|acting| acting.request == id)
    }

    fn permissions(&self) -> Permissions {
        Permissions {
            control_allowed: self.control_allowed(),
            control_enabled: self.control_enabled,
            human_paused: self.human_paused,
        }
    }

    fn control(&mut self, id: u64, enabled: bool) {
        let Some(connection) = self.active() else {
            return self.refuse(id, ErrorCode::NotConnected);
        };
        if enabled && connection.request.mode == Mode::Observe {
            return self.refuse(id, ErrorCode::ControlDenied);
        }
        if enabled && self.human_paused {
            return self.refuse(id, ErrorCode::HumanPaused);
        }
        if !enabled {
            self.stop_acting(ErrorCode::ControlDisabled);
        }
        self.control_enabled = enabled;
        self.answer(id, &self.permissions());
    }

    fn viewer_control(&mut self, id: u64, operation: ViewerOperation) {
        match operation {
            ViewerOperation::Disconnect => return self.disconnect(id),
            // A person may pause before anything is connected, but not what has already ended.
            _ if matches!(self.state, SessionState::Failed | SessionState::Disconnected) => {
                return self.refuse(id, ErrorCode::NotConnected);
            }
            ViewerOperation::Pause => {
                self.human_paused = true;
                self.stop_acting(ErrorCode::HumanPaused);
            }
            ViewerOperation::Resume => self.human_paused = false,
        }
        self.answer(id, &self.permissions());
    }

    fn cancel(&mut self, id: u64, request_id: u64) {
        let acting = self
            .acting
            .as_ref()
            .is_some_and(|acting| acting.request == request_id);
        if acting {
            self.stop_acting(ErrorCode::Cancelled);
        }
        let cancelled = acting || self.cancel_capture(request_id);
        self.answer(
            id,
            &Cancelled {
                request_id,
                cancelled,
            },
        );
    }

    /// Ends without being asked on the protocol.
    fn leave(&mut self, reason: ExitReason) {
        if !self.exiting {
            self.end(SessionState::Disconnected, None, ErrorCode::Disconnected);
            self.exit(reason);
        }
    }

    fn exit(&mut self, reason: ExitReason) {
        self.exiting = true;
        self.viewing_ends();
        self.push(Effect::Exit(reason));
    }

    /// Panics when a rule of the session is broken; for tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn check_invariants(&self) {
        assert!(self.observations.len() <= super::observation::CAPACITY);
        assert!(self.operations.len() <= super::operation::CAPACITY);
        self.captures.check_invariants();
        if !self.state.is_active() {
            assert!(self.acting.is_none(), "a sequence outlived its connection");
            assert_eq!(
                self.observations.len(),
                0,
                "an observation outlived its connection"
            );
            assert!(self.captures.is_idle(), "a capture outlived its connection");
            assert_eq!(
                self.next_deadline(),
                None,
                "nothing can be due without a connection"
            );
        }
        if self.state == SessionState::Ready {
            let connection = self.connection.as_ref().expect("ready means connected");
            assert!(connection.picture.is_some(), "ready means a picture");
            assert_eq!(connection.ready_by, None, "ready ends the connect limit");
        }
        assert!(
            !(self.human_paused && self.acting.is_some()),
            "nothing acts while a person has paused"
        );
    }
}

#[cfg(test)]
mod tests;
