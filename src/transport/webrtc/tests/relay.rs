//! STUN and TURN: two peers that only a server can reach.

use turn_server_proto::api::{TurnServerApi as _, TurnServerPollRet};
use turn_server_proto::server::TurnServer as ServerMachine;
use turn_server_proto::stun::Instant as StunInstant;
use turn_server_proto::stun::agent::Transmit as Sent;
use turn_server_proto::stun::types::TransportType;
use turn_server_proto::types::prelude::DelayedTransmitBuild as _;

use super::*;
use crate::transport::webrtc::random::Random;
use crate::transport::webrtc::servers::{Delivery, Found, IceServers, Servers, TurnServer};

const SERVER: &str = "198.51.100.1:3478";
/// Where the router's outside is: nothing that comes there unasked goes in.
const OUTSIDE: [&str; 2] = ["203.0.113.1:40000", "203.0.113.2:50000"];

struct Side {
    peer: Peer,
    servers: Servers,
    inside: SocketAddr,
    outside: SocketAddr,
    found: Vec<Found>,
    events: Vec<Event>,
}

struct World {
    now: Monotonic,
    server: ServerMachine,
    relays: u16,
    sides: [Side; 2],
    /// Server's datagrams to clients and to its own relays.
    flying: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
}

impl World {
    fn new(password: &str) -> Self {
        let now = Monotonic::from_micros(1_000_000);
        let address: SocketAddr = SERVER.parse().unwrap();
        let mut server = ServerMachine::new(TransportType::Udp, address, "crossdesk".to_owned());
        server.add_user("guest".to_owned(), "right".to_owned());
        let sides = [
            ("10.0.0.1:4000", Direction::Send, 1),
            ("10.0.0.2:5000", Direction::Receive, 2),
        ];
        let sides = sides.map(|(inside, direction, seed)| {
            let inside: SocketAddr = inside.parse().unwrap();
            let servers = IceServers {
                stun: vec![address],
                turn: vec![TurnServer {
                    address,
                    username: "guest".to_owned(),
                    password: password.to_owned(),
                }],
            };
            let mut random = Random::new(Seed([seed + 10; 32]));
            Side {
                peer: Peer::new(now, config(direction, seed)),
                servers: Servers::new(now, &servers, &[inside], &mut random),
                inside,
                outside: OUTSIDE[usize::from(seed) - 1].parse().unwrap(),
                found: Vec::new(),
                events: Vec::new(),
            }
        });
        Self {
            now,
            server,
            relays: 0,
            sides,
            flying: VecDeque::new(),
        }
    }

    fn signal(&mut self) {
        let [host, guest] = &mut self.sides;
        let offer = host.peer.offer(self.now).unwrap();
        let answer = guest.peer.handle_offer(self.now, &offer).unwrap();
        host.peer.handle_answer(self.now, &answer).unwrap();
    }

    fn run(&mut self, span: Duration, mut done: impl FnMut(&Self) -> bool) {
        let end = self.now + span;
        while self.now < end && !done(self) {
            self.exchange();
            // Nothing below depends on finer time once the peers have met.
            let met = self.sides.iter().all(|side| side.path().is_some());
            self.now = self.now + Duration::from_millis(if met { 20 } else { 1 });
        }
    }

    fn at(&self) -> StunInstant {
        StunInstant::from_nanos(self.now.as_micros() as i64 * 1000)
    }

    fn exchange(&mut self) {
        for index in 0..2 {
            self.turn(index);
        }
        self.serve();
        while let Some((from, to, data)) = self.flying.pop_front() {
            if let Some(side) = self.sides.iter_mut().find(|side| side.outside == to) {
                side.take(self.now, from, &data);
            } else {
                self.give_to_server(from, to, data);
            }
        }
    }

    /// What a side has to say goes through its router to the server, and nowhere else.
    fn turn(&mut self, index: usize) {
        let now = self.now;
        let side = &mut self.sides[index];
        if side.peer.next_deadline().is_some_and(|due| due <= now) {
            side.peer.handle_timeout(now);
        }
        side.servers.handle_timeout(now);
        while let Some(event) = side.peer.poll_event() {
            side.events.push(event);
        }
        let mut lines = Vec::new();
        while let Some(found) = side.servers.poll_found() {
            side.found.push(found);
            if let Found::Relayed { address, socket } = found {
                lines.extend(side.peer.add_relayed_candidate(address, socket));
            }
        }
        let mut out = Vec::new();
        while let Some(transmit) = side.peer.poll_transmit() {
            out.extend(side.servers.relay(now, transmit));
        }
        while let Some(transmit) = side.servers.poll_transmit() {
            out.push(transmit);
        }
        let outside = side.outside;
        for transmit in out {
            if transmit.remote == SERVER.parse().unwrap() {
                self.give_to_server(outside, transmit.remote, transmit.data.to_vec());
            }
        }
        for line in lines {
            self.sides[1 - index]
                .peer
                .add_remote_candidate(now, &line)
                .unwrap();
        }
    }

    fn give_to_server(&mut self, from: SocketAddr, to: SocketAddr, data: Vec<u8>) {
        let at = self.at();
        let sent = Sent::new(data, TransportType::Udp, from, to);
        if let Some(answer) = self.server.recv(sent, at) {
            // This server addresses its answers to STUN to itself.
            let to = if answer.to == to { from } else { answer.to };
            self.flying.push_back((answer.from, to, answer.data.build()));
        }
    }

    fn serve(&mut self) {
        let at = self.at();
        while let TurnServerPollRet::AllocateSocket {
            transport,
            listen_addr,
            client_addr,
            allocation_transport,
            family,
        } = self.server.poll(at)
        {
            self.relays += 1;
            let relay = SocketAddr::new("198.51.100.1".parse().unwrap(), 60_000 + self.relays);
            self.server.allocated_socket(
                transport,
                listen_addr,
                client_addr,
                allocation_transport,
                family,
                Ok(relay),
                at,
            );
        }
        while let Some(sent) = self.server.poll_transmit(at) {
            self.flying.push_back((sent.from, sent.to, sent.data));
        }
    }
}

impl Side {
    fn take(&mut self, now: Monotonic, from: SocketAddr, data: &[u8]) {
        match self.servers.handle_datagram(now, self.inside, from, data) {
            Delivery::Direct => self.peer.handle_datagram(now, self.inside, from, data),
            Delivery::Relayed { relay, peer, data } => self.peer.handle_datagram(now, relay, peer, &data),
            Delivery::Taken => {}
        }
    }

    fn path(&self) -> Option<Path> {
        self.events.iter().find_map(|event| match event {
            Event::Connected(path) => Some(*path),
            _ => None,
        })
    }
}

#[test]
fn peers_behind_routers_meet_at_a_relay() {
    let mut world = World::new("right");
    world.signal();
    let began = world.now;
    world.run(Duration::from_secs(10), |world| {
        world.sides.iter().all(|side| side.path().is_some())
    });
    for side in &world.sides {
        let path = side.path().expect("a connection");
        assert_eq!(path.local_kind, CandidateKind::Relayed);
        assert!(side.found.contains(&Found::Reflexive {
            address: side.outside,
            socket: side.inside
        }));
    }
    assert!(
        world.now.since(began) < Duration::from_secs(2),
        "{:?}",
        world.now.since(began)
    );

    let data = Bytes::from(
        [
            &[0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4, 0, 0, 0, 1, 0x65][..],
            &[7; 30_000],
        ]
        .concat(),
    );
    let unit = OutgoingUnit {
        data: data.clone(),
        timestamp: 1,
    };
    world.sides[0].peer.send_unit(world.now, 0, &unit).unwrap();
    let arrived = |world: &World| {
        let mut events = world.sides[1].events.iter();
        events.any(|event| matches!(event, Event::Unit { unit, .. } if unit.data == data))
    };
    world.run(Duration::from_secs(1), arrived);
    assert!(arrived(&world));
    // Allocations and channels last ten minutes; they have to be renewed.
    world.run(Duration::from_secs(700), |world| {
        world.sides.iter().any(|side| side.peer.is_over())
    });
    assert!(!world.sides[0].peer.is_over() && !world.sides[1].peer.is_over());
}

#[test]
fn a_wrong_password_relays_nothing() {
    let mut world = World::new("wrong");
    world.signal();
    world.run(Duration::from_secs(30), |world| world.sides[0].peer.is_over());
    assert_eq!(
        world.sides[0].events.last(),
        Some(&Event::Failed(Failure::NoPath(Duration::from_secs(20))))
    );
    assert!(
        !world.sides[0]
            .found
            .iter()
            .any(|found| matches!(found, Found::Relayed { .. }))
    );
}
