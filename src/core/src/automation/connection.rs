//! The one connection of a process: how it starts, turns generations, breaks and ends.

use std::time::Duration;

use crate::error::ErrorCode;
use crate::time::Monotonic;

use super::effect::{Effect, StartTransport};
use super::event::{PictureInfo, TransportState};
use super::reply::Moved;
use super::request::{Connect, Mode};
use super::session::{Session, SessionState};
use super::status::Fault;

/// From `connect` to the first picture, every retry included: the limit callers of this protocol are told.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// A picture older than this shows nothing anybody may act on (protocol, "Images and observations").
const FRESH: Duration = Duration::from_secs(2);

/// What is known of the connection; it stays for `status` after its end.
#[derive(Debug)]
pub(super) struct Connection {
    /// What was asked for.
    pub(super) request: Connect,
    /// The display selected now.
    pub(super) display: u8,
    /// Counts displays selected on this connection, from 1.
    pub(super) generation: u32,
    /// Pictures received before this belong to an earlier generation or to a broken transport.
    floor: Monotonic,
    /// Where the transport stands.
    pub(super) transport: TransportState,
    /// The newest picture of this generation.
    pub(super) picture: Option<PictureInfo>,
    /// The last geometry seen on this connection; 0 before the first picture.
    pub(super) geometry_epoch: u32,
    /// The remote host accepts input.
    pub(super) accepts_input: bool,
    /// The remote host accepts text.
    pub(super) accepts_text: bool,
    /// When the first picture must be here; `None` once it was.
    pub(super) ready_by: Option<Monotonic>,
    /// What keeps the first picture from coming, when somebody knows.
    pub(super) obstacle: Option<String>,
}

impl Session {
    /// The connection while it lasts.
    pub(super) fn active(&self) -> Option<&Connection> {
        self.connection.as_ref().filter(|_| self.state.is_active())
    }

    fn active_mut(&mut self) -> Option<&mut Connection> {
        let active = self.state.is_active();
        self.connection.as_mut().filter(|_| active)
    }

    /// True when the agent was let in for control and the remote host accepts input.
    pub(super) fn control_allowed(&self) -> bool {
        self.active()
            .is_some_and(|connection| connection.request.mode == Mode::Control && connection.accepts_input)
    }

    /// The newest picture, when it is of this generation and at most 2 s old.
    pub(super) fn fresh_picture(&self, now: Monotonic) -> Option<PictureInfo> {
        let connection = self.active()?;
        let picture = connection.picture?;
        let usable = picture.received >= connection.floor && now.since(picture.received) <= FRESH;
        usable.then_some(picture)
    }

    /// True when a picture that old must not be used.
    pub(super) fn is_stale(now: Monotonic, picture: &PictureInfo) -> bool {
        now.since(picture.received) > FRESH
    }

    pub(super) fn connect(&mut self, now: Monotonic, id: u64, request: Connect) {
        if self.state != SessionState::Idle {
            return self.refuse(id, ErrorCode::AlreadyConnected);
        }
        if self.config.direct_source && request.mode == Mode::Control {
            return self.refuse(id, ErrorCode::ControlUnsupported);
        }
        self.state = SessionState::Connecting;
        self.control_enabled = request.mode == Mode::Control;
        self.connection = Some(Connection {
            display: request.display,
            generation: 1,
            floor: now,
            transport: TransportState::Connecting,
            picture: None,
            geometry_epoch: 0,
            accepts_input: false,
            accepts_text: false,
            ready_by: Some(now + CONNECT_LIMIT),
            obstacle: None,
            request: request.clone(),
        });
        self.push(Effect::StartTransport(StartTransport {
            connect: request,
            generation: 1,
        }));
        self.answer_moved(id);
    }

    /// Replies with where the session stands now.
    fn answer_moved(&mut self, id: u64) {
        let moved = Moved {
            state: self.state.as_str(),
            generation: self.generation(),
            display_index: self.connection.as_ref().map(|connection| connection.display),
        };
        self.answer(id, &moved);
    }

    pub(super) fn check_connect_limit(&mut self, now: Monotonic) {
        let late = self
            .connection
            .as_mut()
            .filter(|connection| connection.ready_by.is_some_and(|limit| now >= limit));
        let Some(connection) = late else { return };
        // A reason the transport gave says more than the clock.
        let known = self.fault.take().map(|fault| fault.reason);
        let reason = known.or(connection.obstacle.take()).map_or_else(
            || "no picture arrived within 30 s".to_owned(),
            |known| format!("no picture arrived within 30 s: {known}"),
        );
        let fault = Fault::new(ErrorCode::ConnectTimeout, reason);
        self.end(SessionState::Failed, Some(fault), ErrorCode::ConnectTimeout);
    }

    /// Remembers what keeps the first picture from coming.
    pub(super) fn note_obstacle(&mut self, reason: Option<String>) {
        if let Some(connection) = self.active_mut() {
            connection.obstacle = reason;
        }
    }

    /// Takes note of a newer picture; the first of a generation makes the session ready.
    pub(super) fn note_picture(&mut self, picture: PictureInfo) {
        let Some(connection) = self.active_mut() else {
            return;
        };
        let newer = connection
            .picture
            .is_none_or(|known| picture.frame_id > known.frame_id);
        if picture.received < connection.floor || !newer {
            return;
        }
        let moved = connection.geometry_epoch != picture.geometry_epoch;
        connection.picture = Some(picture);
        connection.geometry_epoch = picture.geometry_epoch;
        connection.ready_by = None;
        self.state = SessionState::Ready;
        self.fault = None;
        if moved {
            self.observations.clear();
            if self.acting.as_ref().is_some_and(|acting| acting.pointer) {
                self.stop_acting(ErrorCode::ObservationInvalid);
            }
        }
    }

    pub(super) fn transport(&mut self, now: Monotonic, state: TransportState) {
        let Some(connection) = self.active_mut() else {
            return;
        };
        connection.transport = state.clone();
        match state {
            TransportState::Connecting | TransportState::Connected => {}
            TransportState::Reconnecting { code, reason, .. } => {
                connection.floor = now;
                self.state = SessionState::Reconnecting;
                self.fault = Some(Fault::new(code, reason));
                self.stop_acting(code);
                self.observations.clear();
            }
            TransportState::Ended { code, reason } => {
                self.end(SessionState::Disconnected, Some(Fault::new(code, reason)), code);
            }
            TransportState::Failed { code, reason } => {
                self.end(SessionState::Failed, Some(Fault::new(code, reason)), code);
            }
        }
    }

    /// The remote host grants or withdraws input.
    pub(super) fn control_offered(&mut self, allowed: bool, text: bool) {
        let Some(connection) = self.active_mut() else {
            return;
        };
        connection.accepts_input = allowed;
        connection.accepts_text = text;
        if !allowed {
            self.stop_acting(ErrorCode::ControlLost);
        }
    }

    /// Selects a display. Naming the current one starts a new generation as well: the caller gets what it asked for,
    /// a picture that is certainly of that display.
    pub(super) fn display(&mut self, now: Monotonic, id: u64, index: u8) {
        let Some(connection) = self.active() else {
            return self.refuse(id, ErrorCode::NotConnected);
        };
        if !self.has_display(connection, index) {
            return self.refuse(id, ErrorCode::DisplayUnavailable);
        }
        self.stop_acting(ErrorCode::GenerationChanged);
        self.fail_captures(ErrorCode::GenerationChanged);
        self.fail_grants(ErrorCode::GenerationChanged);
        self.observations.clear();
        let generation = self.turn_generation(now, index);
        self.push(Effect::SelectDisplay {
            display: index,
            generation,
        });
        self.push(Effect::RequestKeyframe);
        self.answer_moved(id);
    }

    fn turn_generation(&mut self, now: Monotonic, index: u8) -> u32 {
        if self.state == SessionState::Ready {
            self.state = SessionState::Connecting;
        }
        let connection = self
            .connection
            .as_mut()
            .expect("a display is selected on a connection");
        connection.display = index;
        connection.generation = connection.generation.saturating_add(1);
        connection.floor = now;
        connection.picture = None;
        connection.generation
    }

    /// A direct source has one picture, and it answers to the index `connect` named; before a remote host has
    /// announced its displays, any index may be one of them.
    fn has_display(&self, connection: &Connection, index: u8) -> bool {
        if self.config.direct_source {
            return index == connection.request.display;
        }
        let displays = &self.facts.displays;
        displays.is_empty() || displays.iter().any(|display| display.index == index)
    }

    pub(super) fn disconnect(&mut self, id: u64) {
        self.end(SessionState::Disconnected, None, ErrorCode::Disconnected);
        self.answer_moved(id);
    }

    /// Ends the connection: input is released first, while there is still a way to send it. `code` answers whoever
    /// still waits.
    pub(super) fn end(&mut self, state: SessionState, fault: Option<Fault>, code: ErrorCode) {
        if !self.state.is_active() {
            return;
        }
        self.stop_acting(code);
        self.fail_captures(code);
        self.fail_grants(code);
        self.observations.clear();
        if let Some(connection) = self.connection.as_mut() {
            connection.ready_by = None;
        }
        self.state = state;
        self.fault = fault;
        self.push(Effect::StopTransport);
    }
}
