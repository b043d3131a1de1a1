//! Two WebRTC peers on threads of their own, over UDP on loopback.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossdesk::transport::webrtc::{
    Certificate, ChannelConfig, ChannelEvent, ChannelId, Config, Connection, Direction, Event, Failure,
    NegotiationError, Network, OutgoingUnit, PeerOutput, SendRefused, StartError, VideoConfig,
};
use crossdesk_core::testing::Seeded;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Passes everything on.
struct Output {
    events: SyncSender<Event>,
    descriptions: SyncSender<String>,
    candidates: SyncSender<(String, String)>,
}

impl PeerOutput for Output {
    fn event(&self, event: Event) {
        // A test that has ended listens no more.
        let _ = self.events.send(event);
    }

    fn candidate(&self, mid: &str, candidate: &str) {
        let _ = self.candidates.send((mid.to_owned(), candidate.to_owned()));
    }

    fn description(&self, sdp: &str) {
        let _ = self.descriptions.send(sdp.to_owned());
    }
}

/// A connection and what it says.
struct End {
    connection: Connection,
    events: Receiver<Event>,
    descriptions: Receiver<String>,
}

impl End {
    fn wait<T>(&self, what: &str, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let event = self
                .events
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no {what}"));
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    fn connected(&self) {
        self.wait("connection", |event| {
            matches!(event, Event::Connected(_)).then_some(())
        });
    }

    fn opened(&self) -> ChannelId {
        self.wait("data channel", |event| match event {
            Event::Channel(ChannelEvent::Opened { id, .. }) => Some(id),
            _ => None,
        })
    }

    fn message(&self) -> (bool, Bytes) {
        self.wait("message", |event| match event {
            Event::Channel(ChannelEvent::Message { binary, data, .. }) => Some((binary, data)),
            _ => None,
        })
    }
}

/// Where candidates go that a test has no use for.
fn nowhere() -> SyncSender<(String, String)> {
    sync_channel(64).0
}

fn output() -> (Arc<Output>, Receiver<Event>, Receiver<String>) {
    let (events, heard) = sync_channel(10_000);
    let (descriptions, described) = sync_channel(8);
    (
        Arc::new(Output {
            events,
            descriptions,
            candidates: nowhere(),
        }),
        heard,
        described,
    )
}

fn here() -> Network {
    Network {
        loopback: true,
        ..Network::default()
    }
}

fn config(direction: Direction) -> Config {
    let certificate = Certificate::generate().expect("random numbers");
    let mut config = Config::new(certificate).expect("random numbers");
    config.video = Some(VideoConfig {
        direction,
        tracks: vec!["Display1".to_owned()],
        profile_level_id: [0x42, 0xe0, 0x34],
    });
    config.audio = Some(direction);
    config.data = true;
    config
}

fn pair() -> (End, End) {
    let (output_of_host, events, descriptions) = output();
    let (connection, offer) =
        Connection::offer(config(Direction::Send), &here(), output_of_host).expect("an offer");
    let host = End {
        connection,
        events,
        descriptions,
    };
    let (output_of_guest, events, descriptions) = output();
    let guest = Connection::answer(config(Direction::Receive), &offer, &here(), output_of_guest);
    let (connection, answer) = guest.expect("an answer");
    let guest = End {
        connection,
        events,
        descriptions,
    };
    host.connection.open_channel(ChannelConfig::reliable("ping-pong"));
    host.connection.handle_answer(&answer);
    host.connected();
    guest.connected();
    (host, guest)
}

fn unit(random: &mut Seeded, idr: bool, bytes: usize) -> Bytes {
    let mut unit = Vec::with_capacity(bytes + 32);
    if idr {
        unit.extend([0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4, 5]);
    }
    unit.extend([0, 0, 0, 1, if idr { 0x65 } else { 0x41 }]);
    unit.extend((0..bytes / 8).flat_map(|_| (random.bits() | 0x0101_0101_0101_0101).to_be_bytes()));
    unit.into()
}

#[test]
fn pictures_cross_loopback_whole() {
    let (host, guest) = pair();
    let mut random = Seeded::new(1);
    for n in 0..60_u32 {
        // As large as pictures of a 4K desktop.
        let data = unit(&mut random, n == 0, if n == 0 { 215_000 } else { 83_000 });
        let sent = OutgoingUnit {
            data: data.clone(),
            timestamp: n * 1500,
        };
        host.connection.send_unit(0, sent).unwrap();
        let received = guest.wait("picture", |event| match event {
            Event::Unit { track: 0, unit } => Some(unit),
            _ => None,
        });
        assert_eq!((received.timestamp, received.idr), (n * 1500, n == 0));
        assert!(received.data == data, "picture {n} is not what was sent");
    }
    assert!(host.connection.send_audio(Bytes::from_static(b"opus"), 960));
    let heard = guest.wait("sound", |event| match event {
        Event::Audio(packet) => Some(packet),
        _ => None,
    });
    assert_eq!((&heard.data[..], heard.timestamp), (&b"opus"[..], 960));
    guest.connection.request_keyframe(0);
    host.wait("request", |event| {
        matches!(event, Event::KeyframeRequested { track: 0 }).then_some(())
    });
}

#[test]
fn messages_cross_loopback_both_ways() {
    let (host, guest) = pair();
    let (at_host, at_guest) = (host.opened(), guest.opened());
    guest
        .connection
        .send_message(at_guest, false, Bytes::from_static(b"{\"type\":4}"))
        .unwrap();
    assert_eq!(host.message(), (false, Bytes::from_static(b"{\"type\":4}")));
    // Five megabytes, as fast as they are taken.
    let mut random = Seeded::new(2);
    let (mut sent, mut received) = (0, 0);
    while received < 80 {
        let refused = sent == 80 || {
            let data = vec![random.bits() as u8; 64 * 1024];
            match host.connection.send_message(at_host, true, data.into()) {
                Ok(()) => {
                    sent += 1;
                    false
                }
                Err(refused) => refused == SendRefused::Full,
            }
        };
        if refused {
            let (binary, data) = guest.message();
            assert!(binary && data.len() == 64 * 1024);
            received += 1;
        }
    }
}

#[test]
fn ice_restarts_while_connected() {
    let (host, guest) = pair();
    host.connection.restart_ice();
    let offer = host.descriptions.recv_timeout(PATIENCE).unwrap();
    guest.connection.handle_offer(&offer);
    let answer = guest.descriptions.recv_timeout(PATIENCE).unwrap();
    host.connection.handle_answer(&answer);
    let (at_host, _) = (host.opened(), guest.opened());
    host.connection
        .send_message(at_host, true, Bytes::from_static(b"still here"))
        .unwrap();
    assert_eq!(guest.message(), (true, Bytes::from_static(b"still here")));
}

#[test]
fn who_is_dropped_says_goodbye() {
    let (host, guest) = pair();
    drop(host);
    guest.wait("goodbye", |event| (event == Event::Closed).then_some(()));
}

#[test]
fn an_offer_and_an_answer_of_no_use_are_told() {
    let (output_of_guest, ..) = output();
    let refused = Connection::answer(config(Direction::Receive), "v=0\r\n", &here(), output_of_guest);
    assert!(matches!(
        refused,
        Err(StartError::Negotiation(NegotiationError::Sdp(_)))
    ));
    let (output_of_host, events, descriptions) = output();
    let (connection, offer) = Connection::offer(config(Direction::Send), &here(), output_of_host).unwrap();
    let host = End {
        connection,
        events,
        descriptions,
    };
    host.connection.handle_answer(&offer.replace("H264", "VP8"));
    let failure = host.wait("failure", |event| match event {
        Event::Failed(failure) => Some(failure),
        _ => None,
    });
    assert_eq!(failure, Failure::Negotiation(NegotiationError::NoH264));
}

/// A STUN server that sees everybody at the same address.
fn stun_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("a bound socket");
    thread::spawn(move || {
        let mut request = [0; 64];
        let Ok((_, from)) = socket.recv_from(&mut request) else {
            return;
        };
        let mut answer = vec![1, 1, 0, 12];
        answer.extend(&request[4..20]);
        // XOR-MAPPED-ADDRESS 203.0.113.7:9000.
        let (port, ip) = (9000 ^ 0x2112_u16, 0xcb00_7107 ^ 0x2112_a442_u32);
        answer.extend([0, 0x20, 0, 8, 0, 1]);
        answer.extend(port.to_be_bytes());
        answer.extend(ip.to_be_bytes());
        // Nobody may be left to hear it.
        let _ = socket.send_to(&answer, from);
    });
    address
}

#[test]
fn what_a_stun_server_sees_becomes_a_candidate() {
    let mut network = here();
    network.servers.stun = vec![stun_server()];
    let (candidates, heard) = sync_channel(64);
    let output = Output {
        events: sync_channel(64).0,
        descriptions: sync_channel(8).0,
        candidates,
    };
    let (_connection, _offer) =
        Connection::offer(config(Direction::Send), &network, Arc::new(output)).unwrap();
    let (mid, candidate) = heard.recv_timeout(PATIENCE).unwrap();
    assert_eq!(mid, "Display1");
    assert!(candidate.contains(" 203.0.113.7 9000 typ srflx"), "{candidate}");
}
