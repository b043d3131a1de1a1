//! STUN and TURN servers: under which address a socket is seen, and addresses that relay for it. No I/O.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::time::Monotonic;
use turn_client_proto::api::{TurnClientApi as _, TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet};
use turn_client_proto::prelude::DelayedTransmitBuild as _;
use turn_client_proto::stun::Instant;
use turn_client_proto::stun::agent::Transmit as Sent;
use turn_client_proto::stun::types::TransportType;
use turn_client_proto::stun::types::attribute::XorMappedAddress;
use turn_client_proto::stun::types::message::Message;
use turn_client_proto::types::TurnCredentials;
use turn_client_proto::udp::TurnClientUdp;

use super::event::Transmit;
use super::random::Random;

/// Servers, and sockets that ask each of them.
const MAX_SERVERS: usize = 8;
const MAX_SOCKETS: usize = 4;
/// Addresses behind one relay.
const MAX_BOUND: usize = 32;
/// A question is asked so often, with these pauses (RFC 8489, section 6.2.1, but for fewer times).
const QUESTIONS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// An answered question is asked again, so that routers keep the way open (RFC 8445, section 11).
const KEEP_OPEN: Duration = Duration::from_secs(15);

/// A TURN server that is reached over UDP.
#[derive(Clone, PartialEq, Eq)]
pub struct TurnServer {
    /// Where it is.
    pub address: SocketAddr,
    /// Who asks.
    pub username: String,
    /// What proves it.
    pub password: String,
}

impl fmt::Debug for TurnServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TurnServer").field(&self.address).finish()
    }
}

/// Servers that help peers behind routers; at most eight of each kind are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IceServers {
    /// Servers that tell a socket's address.
    pub stun: Vec<SocketAddr>,
    /// Servers that relay.
    pub turn: Vec<TurnServer>,
}

/// An address that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Reflexive { address: SocketAddr, socket: SocketAddr },
    Relayed { address: SocketAddr, socket: SocketAddr },
}

/// Whom a datagram was for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Not from a server: for the peer, as it came.
    Direct,
    /// For the servers' own business.
    Taken,
    /// From a peer, through a relay.
    Relayed {
        relay: SocketAddr,
        peer: SocketAddr,
        data: Bytes,
    },
}

/// One question of one socket to one STUN server.
struct Question {
    server: SocketAddr,
    socket: SocketAddr,
    transaction: [u8; 12],
    asked: u32,
    due: Monotonic,
    answer: Option<SocketAddr>,
}

/// One allocation on one TURN server.
struct Relay {
    client: TurnClientUdp,
    server: SocketAddr,
    socket: SocketAddr,
    address: Option<SocketAddr>,
    bound: Vec<SocketAddr>,
    due: Option<Monotonic>,
}

/// All servers of one peer.
#[derive(Default)]
pub(super) struct Servers {
    questions: Vec<Question>,
    relays: Vec<Relay>,
    found: VecDeque<Found>,
    waiting: VecDeque<Transmit>,
}

impl Servers {
    /// Begins to ask `servers` for each of `sockets`.
    pub(super) fn new(
        now: Monotonic,
        servers: &IceServers,
        sockets: &[SocketAddr],
        random: &mut Random,
    ) -> Self {
        let mut all = Self::default();
        // The socket of one machine's loopback is of use for a server there only.
        let reaches = |socket: &SocketAddr, server: SocketAddr| {
            socket.is_ipv4() == server.is_ipv4() && socket.ip().is_loopback() == server.ip().is_loopback()
        };
        for server in servers.stun.iter().take(MAX_SERVERS) {
            for socket in sockets
                .iter()
                .filter(|socket| reaches(socket, *server))
                .take(MAX_SOCKETS)
            {
                let mut transaction = [0; 12];
                transaction[..8].copy_from_slice(&random.u64().to_be_bytes());
                transaction[8..].copy_from_slice(&random.u32().to_be_bytes());
                all.questions.push(Question {
                    server: *server,
                    socket: *socket,
                    transaction,
                    asked: 0,
                    due: now,
                    answer: None,
                });
            }
        }
        for server in servers.turn.iter().take(MAX_SERVERS) {
            for socket in sockets
                .iter()
                .filter(|socket| reaches(socket, server.address))
                .take(MAX_SOCKETS)
            {
                let credentials = TurnCredentials::new(&server.username, &server.password);
                all.relays.push(Relay {
                    client: TurnClientUdp::allocate(*socket, server.address, TurnConfig::new(credentials)),
                    server: server.address,
                    socket: *socket,
                    address: None,
                    bound: Vec::new(),
                    due: Some(now),
                });
            }
        }
        all
    }

    /// Takes what came to `socket`.
    pub(super) fn handle_datagram(
        &mut self,
        now: Monotonic,
        socket: SocketAddr,
        remote: SocketAddr,
        data: &[u8],
    ) -> Delivery {
        if self.answered(now, socket, remote, data) {
            return Delivery::Taken;
        }
        let mut relays = self.relays.iter_mut();
        let Some(relay) = relays.find(|relay| relay.server == remote && relay.socket == socket) else {
            return Delivery::Direct;
        };
        let came = Sent::new(data, TransportType::Udp, remote, socket);
        let delivery = match relay.client.recv(came, instant(now)) {
            TurnRecvRet::Handled | TurnRecvRet::PeerIcmp { .. } => Delivery::Taken,
            // The server may be a peer's machine as well.
            TurnRecvRet::Ignored(_) => Delivery::Direct,
            TurnRecvRet::PeerData(came) => match relay.address {
                Some(address) => Delivery::Relayed {
                    relay: address,
                    peer: came.peer,
                    data: Bytes::copy_from_slice(came.data()),
                },
                None => Delivery::Taken,
            },
        };
        relay.advance(now, &mut self.found, &mut self.waiting);
        delivery
    }

    /// Asks again, and keeps allocations alive.
    pub(super) fn handle_timeout(&mut self, now: Monotonic) {
        for question in &mut self.questions {
            if question.due <= now {
                self.waiting.extend(question.ask(now));
            }
        }
        for relay in &mut self.relays {
            if relay.due.is_some_and(|due| due <= now) {
                relay.advance(now, &mut self.found, &mut self.waiting);
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Monotonic> {
        let questions = self.questions.iter().filter(|question| question.is_open());
        let questions = questions.map(|question| question.due);
        questions
            .chain(self.relays.iter().filter_map(|relay| relay.due))
            .min()
    }

    /// Wraps a datagram whose source is a relay; others come back as they are. Before the relay lets it through, it is
    /// dropped as a network would.
    pub(super) fn relay(&mut self, now: Monotonic, transmit: Transmit) -> Option<Transmit> {
        let mut relays = self.relays.iter_mut();
        match relays.find(|relay| relay.address == Some(transmit.local)) {
            Some(relay) => {
                let wrapped = relay.wrap(now, &transmit);
                relay.advance(now, &mut self.found, &mut self.waiting);
                wrapped
            }
            None => Some(transmit),
        }
    }

    pub(super) fn poll_found(&mut self) -> Option<Found> {
        self.found.pop_front()
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.waiting.pop_front()
    }

    /// Gives allocations back.
    pub(super) fn close(&mut self, now: Monotonic) {
        for relay in &mut self.relays {
            // One that was never made needs no farewell.
            if relay.client.delete(instant(now)).is_ok() {
                relay.advance(now, &mut self.found, &mut self.waiting);
            }
        }
    }

    /// True when the datagram answers a question.
    fn answered(&mut self, now: Monotonic, socket: SocketAddr, remote: SocketAddr, data: &[u8]) -> bool {
        let mut questions = self.questions.iter_mut();
        let Some(question) = questions.find(|question| {
            question.server == remote
                && question.socket == socket
                && data.get(8..20).is_some_and(|id| *id == question.transaction)
        }) else {
            return false;
        };
        let address = Message::from_bytes(data).ok().and_then(|message| {
            let mapped = message.attribute::<XorMappedAddress>().ok()?;
            Some(mapped.addr(message.transaction_id()))
        });
        if let Some(address) = address {
            question.asked = 0;
            question.due = now + KEEP_OPEN;
            if question.answer.replace(address) != Some(address) {
                self.found.push_back(Found::Reflexive { address, socket });
            }
        }
        true
    }
}

impl Question {
    fn is_open(&self) -> bool {
        self.asked < QUESTIONS
    }

    fn ask(&mut self, now: Monotonic) -> Option<Transmit> {
        if !self.is_open() {
            return None;
        }
        self.due = now + FIRST_PAUSE * 2_u32.pow(self.asked);
        self.asked += 1;
        // A binding request without attributes (RFC 8489, section 5).
        let mut request = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        request.extend(self.transaction);
        Some(Transmit {
            local: self.socket,
            remote: self.server,
            data: request.into(),
        })
    }
}

impl Relay {
    fn wrap(&mut self, now: Monotonic, transmit: &Transmit) -> Option<Transmit> {
        let to = transmit.remote;
        if !self.bound.contains(&to) {
            if self.bound.len() == MAX_BOUND {
                return None;
            }
            self.bound.push(to);
            // A channel has shorter headers than a permission alone, and brings one.
            if let Err(error) = self.client.bind_channel(TransportType::Udp, to, instant(now)) {
                tracing::debug!(%error, "a relay takes no channel");
            }
        }
        let wrapped = self
            .client
            .send_to(TransportType::Udp, to, transmit.data.clone(), instant(now))
            .ok()??;
        Some(Transmit {
            local: self.socket,
            remote: self.server,
            data: wrapped.data.build().into(),
        })
    }

    fn advance(&mut self, now: Monotonic, found: &mut VecDeque<Found>, waiting: &mut VecDeque<Transmit>) {
        self.due = match self.client.poll(instant(now)) {
            TurnPollRet::WaitUntil(at) => Some(monotonic(at).max(now + Duration::from_millis(1))),
            _ => None,
        };
        while let Some(transmit) = self.client.poll_transmit(instant(now)) {
            waiting.push_back(Transmit {
                local: self.socket,
                remote: self.server,
                data: Bytes::copy_from_slice(&transmit.data),
            });
        }
        while let Some(event) = self.client.poll_event() {
            match event {
                TurnEvent::AllocationCreated(TransportType::Udp, address) => {
                    self.address = Some(address);
                    found.push_back(Found::Relayed {
                        address,
                        socket: self.socket,
                    });
                }
                TurnEvent::AllocationCreateFailed(_) => {
                    tracing::info!(server = %self.server, "a TURN server relays nothing");
                }
                TurnEvent::ChannelCreateFailed(_, address) => self.bound.retain(|bound| *bound != address),
                _ => {}
            }
        }
    }
}

fn instant(now: Monotonic) -> Instant {
    Instant::from_nanos(
        i64::try_from(now.as_micros())
            .unwrap_or(i64::MAX / 1000)
            .saturating_mul(1000),
    )
}

fn monotonic(at: Instant) -> Monotonic {
    Monotonic::from_micros(u64::try_from(at.as_nanos()).unwrap_or_default().div_ceil(1000))
}
