//! The stages of one connection.

use super::{ConnectionId, HANDSHAKE_DEADLINE, TICKET_DEADLINE, ViewerReport};
use crate::time::Monotonic;
use crate::video::flow::Flow;
use crate::video::group::Index;
use crate::video::{CloseReason, Grant, Protocol};

use std::time::Duration;

/// A peer on the same machine that has not finished its handshake after this long is taken for mute and loses its
/// place to a newcomer when all places are taken. Browsers need single milliseconds.
const MUTE_AFTER: Duration = Duration::from_millis(250);

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may start its handshake.
    Admitted(ConnectionId),
    /// All places are taken: close it.
    Full,
}

/// Where a connection stands.
pub(super) enum Connection {
    /// Its HTTP request is awaited.
    Handshake {
        /// When it connected.
        since: Monotonic,
    },
    /// Its ticket is awaited.
    Candidate {
        /// When the handshake was complete.
        since: Monotonic,
        /// The `Origin` it came from.
        origin: String,
    },
    /// It watches.
    Viewer(Box<Viewer>),
}

impl Connection {
    pub(super) fn viewer(&self) -> Option<&Viewer> {
        match self {
            Self::Viewer(viewer) => Some(viewer),
            _ => None,
        }
    }

    pub(super) fn is_mute(&self, now: Monotonic) -> bool {
        matches!(self, Self::Handshake { since } if now.since(*since) >= MUTE_AFTER)
    }

    /// When this connection ends unless something happens, and why.
    pub(super) fn deadline(&self) -> Option<(Monotonic, CloseReason)> {
        match self {
            Self::Handshake { since } => Some((*since + HANDSHAKE_DEADLINE, CloseReason::HandshakeTimeout)),
            Self::Candidate { since, .. } => Some((*since + TICKET_DEADLINE, CloseReason::TicketTimeout)),
            Self::Viewer(viewer) => Some((viewer.flow.deadline()?, CloseReason::AckTimeout)),
        }
    }
}

/// What a viewer of `h264-annexb/1` gets next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// An IDR at this index or later; nothing before helps.
    Keyframe(Index),
    /// The unit at this index.
    Unit(Index),
}

pub(super) struct Viewer {
    number: u64,
    pub(super) grant: Grant,
    pub(super) flow: Flow,
    pub(super) protocol: Protocol,
    pub(super) position: Position,
    /// Sequence of the last frame it was given.
    pub(super) last: Option<u32>,
}

impl Viewer {
    pub(super) fn new(number: u64, grant: Grant, protocol: Protocol) -> Self {
        Self {
            number,
            grant,
            flow: Flow::new(protocol),
            protocol,
            position: Position::Keyframe(0),
            last: None,
        }
    }

    pub(super) fn waits_for_keyframe(&self) -> bool {
        self.protocol == Protocol::H264AnnexB && matches!(self.position, Position::Keyframe(_))
    }

    pub(super) fn report(&self) -> ViewerReport {
        ViewerReport {
            viewer: self.number,
            view: self.grant.view,
            receive_to_send: self.flow.receive_to_send(),
            tap_to_send: self.flow.tap_to_send(),
            send_to_ack: self.flow.send_to_ack(),
        }
    }
}
