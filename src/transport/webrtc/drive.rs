//! How a peer's inputs go through ICE, DTLS, SRTP and SCTP, and what comes out.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::rtp::packet::Packet;
use crossdesk_core::time::Monotonic;
use is::stun::{StunMessage, StunPacket};
use is::{IceAgentEvent, IceConnectionState, Protocol};

use super::event::{CandidateKind, Event, Failure, Path, Transmit};
use super::media::MediaEvent;
use super::peer::Peer;
use super::secure::Secured;

/// Events that nobody polled: beyond, datagrams are dropped as a network would.
const MAX_EVENTS: usize = 1024;
/// Bytes for the sockets: beyond, packets are dropped as a network would. What one key frame adds to what may wait.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;
/// Addresses of the other side that are remembered.
const MAX_KNOWN: usize = 64;
/// How long nobody has to be heard before the connection counts as interrupted: peers check their paths every 2.5 s at
/// least, and some of the checks get lost.
const SILENCE: Duration = Duration::from_secs(4);
/// Over which bitrates are measured.
const SAMPLE: Duration = Duration::from_millis(500);

impl Peer {
    /// Takes a datagram that came to the socket of the candidate `local`.
    pub fn handle_datagram(&mut self, now: Monotonic, local: SocketAddr, remote: SocketAddr, data: &[u8]) {
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += data.len() as u64;
        let room = !self.over && self.events.len() < MAX_EVENTS;
        if room && self.dispatch(now, local, remote, data) {
            self.hear(now);
        } else {
            self.stats.datagrams_ignored += 1;
        }
        self.advance(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        if self.over {
            return;
        }
        let instant = self.time.instant(now);
        if self.ice_deadline.is_none_or(|due| due <= now) {
            self.agent.handle_timeout(instant);
        }
        if let Some(secure) = &mut self.secure
            && self.path.is_some()
            && secure.next_deadline().is_none_or(|due| due <= instant)
            && let Err(failure) = secure.handle_timeout(instant)
        {
            self.fail(failure);
        }
        if self.channels.next_deadline().is_some_and(|due| due <= instant) {
            self.channels.handle_timeout(instant);
        }
        if let Some(media) = self.media.as_mut().filter(|_| self.connected) {
            media.handle_timeout(now);
        }
        self.watch(now);
        self.sample(now);
        self.advance(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None` when the connection is over.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        if self.over {
            return None;
        }
        let secure = self.secure.as_ref().filter(|_| self.path.is_some());
        let secure = secure.and_then(|secure| secure.next_deadline());
        let instants = [secure, self.channels.next_deadline()];
        let media = self.media.as_ref().filter(|_| self.connected);
        let own = [
            self.ice_deadline,
            self.patience,
            self.stale.then_some(self.now),
            self.connected.then_some(self.sampled.0 + SAMPLE),
            (self.connected && !self.interrupted).then_some(self.heard + SILENCE),
            media.and_then(|media| media.next_deadline()),
        ];
        let instants = instants.into_iter().flatten().map(|at| self.time.monotonic(at));
        own.into_iter().flatten().chain(instants).min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.over {
            return None;
        }
        let event = self.channels.poll_event()?;
        // Room in the association is something to tell the other side.
        self.stale = true;
        Some(Event::Channel(event))
    }

    /// The next datagram for a socket.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.waiting.pop_front()?;
        self.waiting_bytes -= transmit.data.len();
        self.stats.datagrams_out += 1;
        self.stats.bytes_out += transmit.data.len() as u64;
        Some(transmit)
    }

    /// Says goodbye and ends; the farewell still has to be polled.
    pub fn close(&mut self, now: Monotonic) {
        if self.over {
            return;
        }
        if let Some(secure) = self.secure.as_mut().filter(|_| self.connected) {
            secure.close();
        }
        self.advance(now);
        self.end(Event::Closed);
    }

    /// True after [`Event::Closed`] or [`Event::Failed`].
    pub fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.end(Event::Failed(failure));
    }

    fn end(&mut self, event: Event) {
        if !self.over {
            self.over = true;
            self.connected = false;
            self.events.push_back(event);
        }
    }

    fn give_up(&mut self) {
        self.patience = None;
        let limit = self.config.connect_timeout;
        self.fail(if self.connected {
            Failure::ConnectionLost
        } else if self.path.is_some() {
            Failure::NoHandshake(limit)
        } else {
            Failure::NoPath(limit)
        });
    }

    /// ICE has something new to try.
    pub(super) fn check_paths(&mut self, now: Monotonic) {
        self.agent.handle_timeout(self.time.instant(now));
        self.advance(now);
    }

    /// Gives a datagram to whom it is for; false when to nobody (RFC 7983).
    fn dispatch(&mut self, now: Monotonic, local: SocketAddr, remote: SocketAddr, data: &[u8]) -> bool {
        let first = data.first().copied().unwrap_or(u8::MAX);
        if first < 4 {
            return self.handle_stun(now, local, remote, data);
        }
        if !self.known.contains(&remote) {
            return false;
        }
        match first {
            20..64 => self.handle_dtls(now, data),
            128..192 => self.handle_srtp(now, data),
            _ => false,
        }
    }

    fn handle_stun(&mut self, now: Monotonic, local: SocketAddr, remote: SocketAddr, data: &[u8]) -> bool {
        let Ok(message) = StunMessage::parse(data) else {
            return false;
        };
        let packet = StunPacket {
            proto: Protocol::Udp,
            source: remote,
            destination: local,
            message,
        };
        let instant = self.time.instant(now);
        let taken = self.agent.handle_packet(instant, packet);
        if taken {
            self.agent.handle_timeout(instant);
        }
        taken
    }

    fn handle_dtls(&mut self, now: Monotonic, data: &[u8]) -> bool {
        let Some(secure) = &mut self.secure else {
            return false;
        };
        if let Err(failure) = secure.handle_packet(self.time.instant(now), data) {
            self.fail(failure);
        }
        true
    }

    fn handle_srtp(&mut self, now: Monotonic, data: &[u8]) -> bool {
        let (Some(srtp), Some(media)) = (&mut self.srtp, &mut self.media) else {
            return false;
        };
        // RTCP packet types lie where RTP has marker and payload type (RFC 5761).
        let is_feedback = data.get(1).is_some_and(|kind| (192..224).contains(kind));
        if is_feedback {
            let opened = srtp.open_feedback(data);
            return opened
                .map(|compound| media.handle_feedback(now, &compound))
                .is_some();
        }
        let opened = srtp.open(data).and_then(|packet| Packet::parse(&packet));
        opened.map(|packet| media.handle_packet(now, packet)).is_some()
    }

    /// Moves everything on that can move.
    pub(super) fn advance(&mut self, now: Monotonic) {
        self.now = self.now.max(now);
        self.stale = false;
        if self.over {
            return;
        }
        self.advance_ice();
        self.advance_dtls();
        self.advance_channels(now);
        self.advance_media(now);
        let deadline = self.agent.poll_timeout();
        self.ice_deadline = deadline.map(|at| self.time.monotonic(at));
    }

    fn advance_ice(&mut self) {
        while let Some(event) = self.agent.poll_event() {
            match event {
                IceAgentEvent::NominatedSend {
                    source, destination, ..
                } => self.use_path(source, destination),
                IceAgentEvent::DiscoveredRecv { source, .. } if !self.known.contains(&source) => {
                    if self.known.len() == MAX_KNOWN {
                        self.known.pop_front();
                    }
                    self.known.push_back(source);
                }
                // Every pair has failed; they are tried again as long as there is patience.
                IceAgentEvent::IceConnectionStateChange(IceConnectionState::Disconnected)
                    if self.agent.remote_candidates().next().is_some() =>
                {
                    self.agent.recreate_candidate_pairs();
                }
                _ => {}
            }
        }
        while let Some(transmit) = self.agent.poll_transmit() {
            let data = Bytes::copy_from_slice(&transmit.contents);
            self.push(transmit.source, transmit.destination, data);
        }
    }

    fn hear(&mut self, now: Monotonic) {
        self.heard = now;
        if std::mem::take(&mut self.interrupted) {
            self.patience = None;
            self.events.push_back(Event::Resumed);
        }
    }

    /// Looks for silence, and for patience that has run out.
    fn watch(&mut self, now: Monotonic) {
        if self.connected && !self.interrupted && now.since(self.heard) >= SILENCE {
            self.interrupted = true;
            self.patience = Some(now + self.config.resume_timeout);
            self.events.push_back(Event::Interrupted);
        }
        if self.patience.is_some_and(|until| until <= now) {
            self.give_up();
        }
    }

    fn use_path(&mut self, local: SocketAddr, remote: SocketAddr) {
        let of =
            |kind: Option<is::CandidateKind>| kind.map_or(CandidateKind::PeerReflexive, CandidateKind::from);
        let mut ours = self.agent.local_candidates();
        let mut theirs = self.agent.remote_candidates();
        let path = Path {
            local,
            local_kind: of(ours.find(|ours| ours.addr() == local).map(|ours| ours.kind())),
            remote,
            remote_kind: of(theirs
                .find(|theirs| theirs.addr() == remote)
                .map(|theirs| theirs.kind())),
        };
        let before = self.path.replace(path);
        if self.connected && before != Some(path) {
            self.events.push_back(Event::PathChanged(path));
        }
    }

    fn advance_dtls(&mut self) {
        let instant = self.time.instant(self.now);
        // The client speaks as soon as there is somebody to speak to.
        if self.path.is_some()
            && let Some(secure) = &mut self.secure
            && secure.next_deadline().is_none()
            && let Err(failure) = secure.handle_timeout(instant)
        {
            return self.fail(failure);
        }
        // What is said before there is a path waits inside.
        while let (Some(path), Some(secure)) = (self.path, &mut self.secure) {
            let client = secure.is_client();
            match secure.poll() {
                Some(Secured::Packet(data)) => self.push(path.local, path.remote, data),
                Some(Secured::Keys(profile, keys)) => match super::srtp::Srtp::new(profile, &keys, client) {
                    Ok(srtp) => self.srtp = Some(srtp),
                    Err(error) => self.fail(Failure::Srtp(error)),
                },
                Some(Secured::Connected) => self.secured(path, client),
                Some(Secured::Data(data)) => self.channels.handle_data(instant, data),
                Some(Secured::Closed) => self.end(Event::Closed),
                None => return,
            }
        }
    }

    fn secured(&mut self, path: Path, client: bool) {
        self.connected = true;
        self.patience = None;
        self.sampled.0 = self.now;
        self.heard = self.now;
        self.events.push_back(Event::Connected(path));
        if let Some(remote) = self.remote.as_ref().filter(|_| self.config.data) {
            self.channels.start(client, remote.max_message_bytes);
        }
        if let Some(media) = &mut self.media {
            media.start(self.now);
        }
    }

    fn advance_channels(&mut self, now: Monotonic) {
        let instant = self.time.instant(now);
        while self.connected
            && let Some(packets) = self.channels.poll_transmit(instant)
        {
            for packet in packets {
                let sent = self.secure.as_mut().map_or(Ok(()), |secure| secure.send(&packet));
                if let Err(failure) = sent {
                    return self.fail(failure);
                }
            }
            self.advance_dtls();
        }
    }

    fn advance_media(&mut self, now: Monotonic) {
        let (Some(path), Some(media), Some(srtp)) = (self.path, &mut self.media, &mut self.srtp) else {
            return;
        };
        let mut protected = Vec::new();
        while let Some(packet) = media.poll_packet() {
            protected.extend(srtp.protect(&packet));
        }
        while let Some(compound) = media.poll_feedback(now) {
            protected.extend(srtp.protect_feedback(&compound));
        }
        while let Some(event) = media.poll_event() {
            self.events.push_back(match event {
                MediaEvent::Unit(track, unit) => Event::Unit { track, unit },
                MediaEvent::Audio(packet) => Event::Audio(packet),
                MediaEvent::KeyframeRequested(track) => Event::KeyframeRequested { track },
            });
        }
        for data in protected {
            self.push(path.local, path.remote, data);
        }
    }

    fn push(&mut self, local: SocketAddr, remote: SocketAddr, data: Bytes) {
        if self.waiting_bytes + data.len() <= MAX_WAITING_BYTES {
            self.waiting_bytes += data.len();
            self.waiting.push_back(Transmit { local, remote, data });
        }
    }

    fn sample(&mut self, now: Monotonic) {
        let (at, out, into) = self.sampled;
        let passed = now.since(at);
        if self.connected && passed >= SAMPLE {
            let rate = |bytes: u64| (bytes as f64 * 8.0 / passed.as_secs_f64()) as u64;
            self.stats.bitrate_out = rate(self.stats.bytes_out - out);
            self.stats.bitrate_in = rate(self.stats.bytes_in - into);
            self.sampled = (now, self.stats.bytes_out, self.stats.bytes_in);
        }
    }
}
