//! Two peers over a link on virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossdesk_core::rtp::receive::ReceivedUnit;
use crossdesk_core::testing::Seeded;
use crossdesk_core::testing::link::{Link, LinkKind};
use crossdesk_core::time::Monotonic;
use proptest::prelude::*;

use super::*;

mod data;
mod negotiation;
mod pictures;
mod relay;

const PROFILE: [u8; 3] = [0x42, 0xe0, 0x2a];

/// Making a key takes longer than a test; which one it is matters in one test only.
static CERTIFICATE: LazyLock<Certificate> =
    LazyLock::new(|| Certificate::generate().expect("random numbers"));

fn config(direction: Direction, seed: u8) -> Config {
    Config {
        video: Some(VideoConfig {
            direction,
            tracks: vec!["Display1".to_owned(), "Display2".to_owned()],
            profile_level_id: PROFILE,
        }),
        audio: Some(direction),
        data: true,
        certificate: CERTIFICATE.clone(),
        seed: Seed([seed; 32]),
        epoch: Instant::now(),
        connect_timeout: Duration::from_secs(20),
        resume_timeout: Duration::from_secs(5),
    }
}

/// A peer, its address, and what it said.
struct End {
    peer: Peer,
    address: SocketAddr,
    out: Link<(SocketAddr, SocketAddr, Bytes)>,
    events: Vec<(Monotonic, Event)>,
    /// False to leave events in the peer.
    polls: bool,
}

impl End {
    fn new(peer: Peer, address: &str, kind: LinkKind, seed: u64) -> Self {
        Self {
            peer,
            address: address.parse().unwrap(),
            out: Link::new(kind, seed),
            events: Vec::new(),
            polls: true,
        }
    }

    /// Takes what arrived, does what is due, and gives what there is to say.
    fn turn(&mut self, now: Monotonic, incoming: &mut Link<(SocketAddr, SocketAddr, Bytes)>) {
        while let Some((from, to, data)) = incoming.receive(now) {
            if to == self.address {
                self.peer.handle_datagram(now, to, from, &data);
            }
        }
        if self.peer.next_deadline().is_some_and(|due| due <= now) {
            self.peer.handle_timeout(now);
        }
        while self.polls
            && let Some(event) = self.peer.poll_event()
        {
            self.events.push((now, event));
        }
        while let Some(transmit) = self.peer.poll_transmit() {
            let bytes = transmit.data.len();
            // What an MTU of 1280 carries over IPv4.
            assert!(bytes <= 1252, "{bytes} bytes");
            self.out
                .send(now, bytes, (transmit.local, transmit.remote, transmit.data));
        }
    }

    fn units(&self) -> Vec<(Monotonic, ReceivedUnit)> {
        let units = self.events.iter().filter_map(|(at, event)| match event {
            Event::Unit { track: 0, unit } => Some((*at, unit.clone())),
            _ => None,
        });
        units.collect()
    }

    fn connected(&self) -> Option<Monotonic> {
        let mut events = self.events.iter();
        events
            .find(|(_, event)| matches!(event, Event::Connected(_)))
            .map(|(at, _)| *at)
    }

    fn has(&self, wanted: &Event) -> bool {
        self.events.iter().any(|(_, event)| event == wanted)
    }

    fn channel_events(&self) -> Vec<ChannelEvent> {
        let events = self.events.iter().filter_map(|(_, event)| match event {
            Event::Channel(event) => Some(event.clone()),
            _ => None,
        });
        events.collect()
    }

    fn wants_keyframe(&mut self) -> bool {
        let before = self.events.len();
        self.events
            .retain(|(_, event)| !matches!(event, Event::KeyframeRequested { track: 0 }));
        self.events.len() < before
    }
}

/// The host offers and sends, the guest answers and receives.
struct Pair {
    now: Monotonic,
    host: End,
    guest: End,
    random: Seeded,
    frames: Vec<(Monotonic, Bytes)>,
}

impl Pair {
    fn new(kind: LinkKind, seed: u64) -> Self {
        Self::of(
            kind,
            seed,
            config(Direction::Send, 1),
            config(Direction::Receive, 2),
        )
    }

    fn of(kind: LinkKind, seed: u64, host: Config, guest: Config) -> Self {
        let now = Monotonic::from_micros(5_000_000);
        Self {
            now,
            host: End::new(Peer::new(now, host), "192.0.2.1:4000", kind, seed),
            guest: End::new(Peer::new(now, guest), "192.0.2.2:5000", kind, seed ^ 0xffff),
            random: Seeded::new(seed),
            frames: Vec::new(),
        }
    }

    /// Descriptions first, candidates after them.
    fn signal(&mut self) {
        let now = self.now;
        let offer = self.host.peer.offer(now).unwrap();
        let answer = self.guest.peer.handle_offer(now, &offer).unwrap();
        self.host.peer.handle_answer(now, &answer).unwrap();
        let ours = self.host.peer.add_host_candidate(self.host.address).unwrap();
        let theirs = self.guest.peer.add_host_candidate(self.guest.address).unwrap();
        self.guest.peer.add_remote_candidate(now, &ours).unwrap();
        self.host.peer.add_remote_candidate(now, &theirs).unwrap();
    }

    /// Exchanges for `span`, or until `done`.
    fn run(&mut self, span: Duration, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + span;
        loop {
            self.exchange();
            if done(self) || self.now >= end {
                return;
            }
            let next = [
                self.host.out.next_arrival(),
                self.guest.out.next_arrival(),
                self.host.peer.next_deadline(),
                self.guest.peer.next_deadline(),
                Some(end),
            ];
            let next = next.into_iter().flatten().min().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_micros(1));
        }
    }

    fn exchange(&mut self) {
        self.host.turn(self.now, &mut self.guest.out);
        self.guest.turn(self.now, &mut self.host.out);
    }

    fn connect(&mut self) {
        self.signal();
        self.run(Duration::from_secs(20), |pair| {
            pair.host.connected().is_some() && pair.guest.connected().is_some()
        });
        assert!(
            self.host.connected().is_some() && self.guest.connected().is_some(),
            "no connection"
        );
    }

    fn set_links(&mut self, kind: LinkKind) {
        (self.host.out.kind, self.guest.out.kind) = (kind, kind);
    }
}

fn clean(milliseconds: u64) -> LinkKind {
    LinkKind::clean(Duration::from_millis(milliseconds))
}

fn lossy(permille: u32) -> LinkKind {
    LinkKind {
        loss_permille: permille,
        ..clean(20)
    }
}
