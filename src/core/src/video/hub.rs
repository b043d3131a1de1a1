//! The machine of live video: who may watch, and what each viewer gets next.
//!
//! One instance serves a process. A connection is admitted ([`Hub::handle_connect`]), upgraded
//! ([`Hub::handle_upgrade`]), and becomes a viewer with its ticket ([`Hub::handle_text`]). After every call the
//! owner carries out [`Hub::poll_effect`] until empty, fetches what [`Effect::Ready`] announced with
//! [`Hub::poll_message`], and calls [`Hub::handle_timeout`] at [`Hub::next_deadline`].

mod connection;
mod delivery;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use self::connection::{Connection, Viewer};
use super::group::Group;
use super::tickets::TicketBook;
use super::{
    ClientMessage, CloseReason, Grant, GrantRefusal, HANDSHAKE_DEADLINE, KEYFRAME_INTERVAL, MAX_CANDIDATES,
    MAX_VIEWERS, Message, Percentiles, Protocol, TICKET_DEADLINE, ViewId, parse_client_message,
    parse_ticket_message,
};
use crate::automation::ViewerLatency;
use crate::time::Monotonic;

pub use self::connection::Admission;

/// Names one socket for as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

/// What the owner of the sockets must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// [`Hub::poll_message`] has something for this connection.
    Ready(ConnectionId),
    /// Close this connection; the machine has forgotten it already.
    Close(ConnectionId, CloseReason),
    /// Ask the source for a keyframe.
    RequestKeyframe,
}

/// Counters over all viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubStats {
    /// Sockets that are not viewers yet.
    pub candidates: usize,
    /// Authorised viewers.
    pub viewers: usize,
    /// Message bytes on their way or not acknowledged.
    pub unacknowledged_bytes: usize,
    /// Frames single viewers skipped, since the process started.
    pub dropped: u64,
}

/// How one viewer is served; `None` before the first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewerReport {
    /// Counts viewers of this process, from 1.
    pub viewer: u64,
    /// The view it was granted for.
    pub view: ViewId,
    /// Access unit received to last byte written.
    pub receive_to_send: Option<Percentiles>,
    /// Access unit published (`nv12/1`: picture decoded) to last byte written.
    pub tap_to_send: Option<Percentiles>,
    /// Last byte written to acknowledged.
    pub send_to_ack: Option<Percentiles>,
}

impl ViewerReport {
    /// The part that `status` shows.
    pub fn latency(&self) -> ViewerLatency {
        ViewerLatency {
            viewer: self.viewer,
            receive_to_send: self.receive_to_send.map(Into::into),
            send_to_ack: self.send_to_ack.map(Into::into),
        }
    }
}

/// The display generation being served.
#[derive(Clone, Copy, Debug)]
struct Stream {
    generation: u32,
    protocol: Protocol,
}

/// See the module's description.
#[derive(Default)]
pub struct Hub {
    stream: Option<Stream>,
    tickets: TicketBook,
    connections: BTreeMap<ConnectionId, Connection>,
    connections_seen: u64,
    viewers_seen: u64,
    group: Group,
    last_sequence: Option<u32>,
    /// The newest packed picture, for viewers that could not take it at the time.
    latest: Option<Arc<Message>>,
    keyframe_wished: bool,
    keyframe_requested: Option<Monotonic>,
    dropped: u64,
    effects: VecDeque<Effect>,
}

impl Hub {
    /// Starts a display generation: sockets and tickets of the one before end.
    pub fn begin(&mut self, generation: u32, protocol: Protocol) {
        self.reset(CloseReason::GenerationChanged);
        self.stream = Some(Stream { generation, protocol });
    }

    /// Ends the session, its sockets and tickets.
    pub fn end(&mut self) {
        self.reset(CloseReason::SessionEnded);
    }

    fn reset(&mut self, reason: CloseReason) {
        self.stream = None;
        self.tickets.clear();
        self.group = Group::default();
        self.last_sequence = None;
        self.latest = None;
        self.keyframe_wished = false;
        self.close_where(reason, |connection| {
            !matches!(connection, Connection::Handshake { .. })
        });
    }

    /// Lets one socket become a viewer.
    ///
    /// # Errors
    /// See [`GrantRefusal`].
    pub fn grant(&mut self, now: Monotonic, grant: Grant) -> Result<(), GrantRefusal> {
        let stream = self.stream.ok_or(GrantRefusal::NoSession)?;
        if grant.generation != stream.generation {
            return Err(GrantRefusal::OtherGeneration);
        }
        if self.viewers().any(|(_, viewer)| viewer.grant.outranks(&grant)) {
            return Err(GrantRefusal::StaleView);
        }
        let replaced = |viewer: &Viewer| grant.outranks(&viewer.grant);
        let replaced: Vec<_> = self
            .viewers()
            .filter(|(_, viewer)| replaced(viewer))
            .map(|(id, _)| id)
            .collect();
        self.tickets.add(now, grant)?;
        for id in replaced {
            self.close(id, CloseReason::Revoked);
        }
        Ok(())
    }

    /// Withdraws tickets and viewers of `view`, or all.
    pub fn revoke(&mut self, view: Option<ViewId>) {
        self.tickets.revoke(view);
        self.close_where(CloseReason::Revoked, |connection| match connection {
            Connection::Viewer(viewer) => view.is_none_or(|view| view == viewer.grant.view),
            _ => false,
        });
    }

    /// A peer has connected. When every place is taken, the oldest one that has not finished its handshake in a
    /// time that is ample on one machine makes room.
    pub fn handle_connect(&mut self, now: Monotonic) -> Admission {
        if self.candidates().count() >= MAX_CANDIDATES {
            let mute = self
                .candidates()
                .find(|(_, candidate)| candidate.is_mute(now))
                .map(|(id, _)| id);
            match mute {
                Some(id) => self.close(id, CloseReason::HandshakeTimeout),
                None => return Admission::Full,
            }
        }
        self.connections_seen += 1;
        let id = ConnectionId(self.connections_seen);
        self.connections.insert(id, Connection::Handshake { since: now });
        Admission::Admitted(id)
    }

    /// True until a connection is closed or gone.
    pub fn knows(&self, id: ConnectionId) -> bool {
        self.connections.contains_key(&id)
    }

    /// True when a handshake from `origin` can succeed: a ticket of this generation was granted to it.
    pub fn knows_origin(&self, origin: &str) -> bool {
        self.tickets.knows_origin(origin)
    }

    /// The handshake of a connection from `origin` is complete; its ticket is awaited.
    pub fn handle_upgrade(&mut self, now: Monotonic, id: ConnectionId, origin: &str) {
        if let Some(connection @ Connection::Handshake { .. }) = self.connections.get_mut(&id) {
            *connection = Connection::Candidate {
                since: now,
                origin: origin.to_owned(),
            };
        }
    }

    /// A text message has arrived, at most [`super::MAX_CLIENT_MESSAGE_BYTES`] long.
    pub fn handle_text(&mut self, now: Monotonic, id: ConnectionId, text: &[u8]) {
        let outcome = match self.connections.get_mut(&id) {
            None => Ok(()),
            Some(Connection::Handshake { .. }) => Err(CloseReason::ProtocolError),
            Some(Connection::Candidate { origin, .. }) => {
                let origin = std::mem::take(origin);
                self.authorise(now, id, &origin, text)
            }
            Some(Connection::Viewer(_)) => self.handle_message(now, id, text),
        };
        if let Err(reason) = outcome {
            self.close(id, reason);
        }
    }

    /// The peer broke the WebSocket protocol or a limit of ours.
    pub fn handle_violation(&mut self, id: ConnectionId, reason: CloseReason) {
        self.close(id, reason);
    }

    /// The socket is gone or the peer asked for its end.
    pub fn handle_disconnect(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    fn authorise(
        &mut self,
        now: Monotonic,
        id: ConnectionId,
        origin: &str,
        text: &[u8],
    ) -> Result<(), CloseReason> {
        let ticket = parse_ticket_message(text).map_err(|_| CloseReason::TicketRefused)?;
        let grant = self
            .tickets
            .take(now, &ticket, origin)
            .ok_or(CloseReason::TicketRefused)?;
        let stream = self.stream.filter(|stream| stream.generation == grant.generation);
        let stream = stream.ok_or(CloseReason::TicketRefused)?;
        if self.viewers().count() >= MAX_VIEWERS {
            self.tickets.put_back(&ticket);
            return Err(CloseReason::TooManyViewers);
        }
        self.viewers_seen += 1;
        let viewer = Viewer::new(self.viewers_seen, grant, stream.protocol);
        self.connections.insert(id, Connection::Viewer(Box::new(viewer)));
        self.start_viewer(now, id);
        Ok(())
    }

    fn handle_message(&mut self, now: Monotonic, id: ConnectionId, text: &[u8]) -> Result<(), CloseReason> {
        match parse_client_message(text).map_err(|_| CloseReason::BadMessage)? {
            ClientMessage::Keyframe => self.wish_keyframe(now),
            ClientMessage::Ack { generation, sequence } => {
                let current = self.stream.is_some_and(|stream| stream.generation == generation);
                let Some(viewer) = self.viewer_mut(id).filter(|_| current) else {
                    return Err(CloseReason::BadAck);
                };
                viewer
                    .flow
                    .acknowledge(now, sequence)
                    .map_err(|_| CloseReason::BadAck)?;
                self.pump_unit_viewer(now, id);
            }
        }
        Ok(())
    }

    /// The next message to write to a connection.
    pub fn poll_message(&mut self, id: ConnectionId) -> Option<Arc<Message>> {
        self.viewer_mut(id)?.flow.fetch()
    }

    /// The last byte of the message fetched first was written.
    pub fn handle_written(&mut self, now: Monotonic, id: ConnectionId) {
        if let Some(viewer) = self.viewer_mut(id) {
            viewer.flow.written(now);
        }
    }

    /// What to do next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Hub::handle_timeout`] has something to do.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let connections = self
            .connections
            .values()
            .filter_map(Connection::deadline)
            .map(|(at, _)| at);
        let keyframe = self.keyframe_due().filter(|_| self.needs_keyframe());
        connections.chain(keyframe).min()
    }

    /// Ends what has lasted too long and asks for a keyframe that had to wait.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        let late = |(id, connection): (&ConnectionId, &Connection)| {
            let (at, reason) = connection.deadline()?;
            (at <= now).then_some((*id, reason))
        };
        let late: Vec<_> = self.connections.iter().filter_map(late).collect();
        for (id, reason) in late {
            self.close(id, reason);
        }
        self.request_keyframe(now);
    }

    fn wish_keyframe(&mut self, now: Monotonic) {
        self.keyframe_wished = true;
        self.request_keyframe(now);
    }

    /// Asks once a second at most; a source that ignores one request is asked again while a viewer waits.
    fn request_keyframe(&mut self, now: Monotonic) {
        if self.needs_keyframe() && self.keyframe_due().is_none_or(|due| due <= now) {
            self.keyframe_wished = false;
            self.keyframe_requested = Some(now);
            self.effects.push_back(Effect::RequestKeyframe);
        }
    }

    fn needs_keyframe(&self) -> bool {
        self.keyframe_wished || self.viewers().any(|(_, viewer)| viewer.waits_for_keyframe())
    }

    /// `None` when one may be requested at any time.
    fn keyframe_due(&self) -> Option<Monotonic> {
        self.keyframe_requested.map(|at| at + KEYFRAME_INTERVAL)
    }

    fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        if self.connections.remove(&id).is_some() {
            self.effects.push_back(Effect::Close(id, reason));
        }
    }

    fn close_where(&mut self, reason: CloseReason, ends: impl Fn(&Connection) -> bool) {
        let ending: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, c)| ends(c))
            .map(|(id, _)| *id)
            .collect();
        for id in ending {
            self.close(id, reason);
        }
    }

    fn candidates(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        let candidate = |connection: &Connection| !matches!(connection, Connection::Viewer(_));
        self.connections
            .iter()
            .filter(move |(_, connection)| candidate(connection))
            .map(|(id, c)| (*id, c))
    }

    fn viewers(&self) -> impl Iterator<Item = (ConnectionId, &Viewer)> {
        self.connections
            .iter()
            .filter_map(|(id, connection)| Some((*id, connection.viewer()?)))
    }

    fn viewer_mut(&mut self, id: ConnectionId) -> Option<&mut Viewer> {
        match self.connections.get_mut(&id)? {
            Connection::Viewer(viewer) => Some(viewer),
            _ => None,
        }
    }

    /// Counters.
    pub fn stats(&self) -> HubStats {
        HubStats {
            candidates: self.candidates().count(),
            viewers: self.viewers().count(),
            unacknowledged_bytes: self
                .viewers()
                .map(|(_, viewer)| viewer.flow.unacknowledged_bytes())
                .sum(),
            dropped: self.dropped,
        }
    }

    /// One report per viewer, in the order they connected.
    pub fn reports(&self) -> Vec<ViewerReport> {
        self.viewers().map(|(_, viewer)| viewer.report()).collect()
    }

    /// Asserts what must hold between any two calls.
    #[cfg(any(test, feature = "testing"))]
    pub fn check_invariants(&self) {
        assert!(self.candidates().count() <= MAX_CANDIDATES);
        assert!(self.viewers().count() <= MAX_VIEWERS);
        let generation = self.stream.map(|stream| stream.generation);
        self.tickets.check_invariants(generation);
        self.group.check_invariants();
        for (_, viewer) in self.viewers() {
            assert_eq!(Some(viewer.grant.generation), generation);
            viewer.flow.check_invariants();
        }
    }
}
