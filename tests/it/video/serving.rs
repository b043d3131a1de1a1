//! What viewers receive, and when.

use std::io::Read as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use crossdesk_core::media::Color;
use crossdesk_core::units::PixelSize;
use crossdesk_core::video::Protocol;
use crossdesk_pipelines::clock;
use crossdesk_pipelines::picture::{Frame, MapError, Picture, Plane, Planes};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

use super::client::{Client, PING, PONG, ack_text, masked};
use super::{GENERATION, ORIGIN, PATIENCE, Server, grant_of, ticket_message, view_of};

const IDR: &[u8] = b"\0\0\0\x01\x67sps\0\0\0\x01\x68pps\0\0\0\x01\x65idr";
const DELTA: &[u8] = b"\0\0\0\x01\x41delta";

#[test]
fn a_browser_like_client_gets_exact_cdv1_messages() {
    let mut server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let mut socket = tungstenite_client(&server);
    socket.send(Message::text(ticket_message(1))).unwrap();
    server.until(|stats| stats.output.viewers == 1);
    let before = clock::now().as_micros();
    server.publish(true, IDR);
    server.publish(false, DELTA);
    for (sequence, flag, data) in [(1_u32, 1_u32, IDR), (2, 0, DELTA)] {
        let message = socket.read().unwrap().into_data();
        assert_eq!(message[..4], *b"CDV1");
        assert_eq!(message[4..8], GENERATION.to_be_bytes());
        assert_eq!(message[8..12], sequence.to_be_bytes());
        let received = u64::from_be_bytes(message[12..20].try_into().unwrap());
        assert!(
            (before..=clock::now().as_micros()).contains(&received),
            "on CLOCK_MONOTONIC"
        );
        assert_eq!(message[20..24], flag.to_be_bytes());
        assert_eq!(message[24..], *data);
        socket.send(Message::text(ack_text(sequence))).unwrap();
    }
    let stats = server.until(|stats| stats.output.unacknowledged_bytes == 0);
    assert_eq!((stats.output.queued, stats.output.dropped), (0, 0));
    assert!(stats.viewers[0].send_to_ack.is_some() && stats.viewers[0].tap_to_send.is_some());
    socket.close(None).unwrap();
    server.until(|stats| stats.output.viewers == 0);
}

fn tungstenite_client(server: &Server) -> WebSocket<TcpStream> {
    let mut request = server.service.url().into_client_request().unwrap();
    request
        .headers_mut()
        .insert("Origin", HeaderValue::from_static(ORIGIN));
    let stream = TcpStream::connect(server.host()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    tungstenite::client(request, stream).unwrap().0
}

#[test]
fn a_late_joiner_starts_at_a_keyframe_and_catches_up() {
    let mut server = Server::h264();
    server.publish(true, IDR);
    for _ in 0..30 {
        server.publish(false, DELTA);
    }
    let mut client = server.viewer(1);
    server.keyframes.recv_timeout(PATIENCE).unwrap();
    let first = client.watch();
    assert!(first.is_keyframe());
    assert_eq!(first.payload[24..], *IDR);
    for sequence in 2..=31 {
        assert_eq!(client.watch().sequence(), sequence);
    }
    server.publish(false, DELTA);
    assert_eq!(client.watch().sequence(), 32);
    assert_eq!(server.stats().output.dropped, 0);
}

#[test]
fn a_viewer_that_never_acknowledges_gets_eight_frames_and_hinders_nobody() {
    let mut server = Server::h264();
    server.publish(true, IDR);
    let (mut deaf, mut fine) = (server.viewer(1), server.viewer(2));
    assert_eq!(fine.watch().sequence(), 1);
    for sequence in 2..=20 {
        server.publish(false, DELTA);
        assert_eq!(fine.watch().sequence(), sequence);
    }
    for sequence in 1..=8 {
        assert_eq!(deaf.next().unwrap().sequence(), sequence);
    }
    server.until(|stats| stats.output.dropped == 12);
    server.keyframes.recv_timeout(PATIENCE).unwrap();
    server.publish(true, IDR);
    deaf.ack(1);
    let recovery = deaf.next().unwrap();
    assert_eq!(
        (recovery.sequence(), recovery.is_keyframe()),
        (21, true),
        "nothing between"
    );
}

#[test]
fn a_keyframe_wish_reaches_the_source() {
    let mut server = Server::h264();
    server.publish(true, IDR);
    let mut client = server.viewer(1);
    client.watch();
    client.text(r#"{"type":"keyframe"}"#);
    server.keyframes.recv_timeout(PATIENCE).unwrap();
    assert!(server.keyframes.try_recv().is_err());
}

#[test]
fn fragmented_acknowledgements_and_pings_between_frames_work() {
    let mut server = Server::h264();
    server.publish(true, IDR);
    let mut client = server.viewer(1);
    assert_eq!(client.next().unwrap().sequence(), 1);
    let text = ack_text(1);
    let (start, rest) = text.as_bytes().split_at(10);
    let (middle, end) = rest.split_at(1);
    client.send(
        &[
            masked(0x01, start),
            masked(PING, b"still here?"),
            masked(0x00, middle),
            masked(0x80, end),
        ]
        .concat(),
    );
    let pong = client.next().unwrap();
    assert_eq!((pong.first, pong.payload.as_slice()), (PONG, &b"still here?"[..]));
    server.until(|stats| stats.output.unacknowledged_bytes == 0 && stats.output.viewers == 1);
}

#[test]
fn a_pong_waits_for_the_end_of_the_frame_being_sent() {
    let mut server = Server::h264();
    let mut client = narrow_viewer(&server, 1);
    let data = pattern(4 * 1024 * 1024);
    server.publish(true, data.clone());
    let mut first = [0; 10 + 24];
    client.stream.read_exact(&mut first).unwrap();
    client.frame(PING, b"p");
    let mut payload = vec![0; data.len()];
    client.stream.read_exact(&mut payload).unwrap();
    assert!(payload == data, "no control frame inside");
    assert_eq!(client.next().unwrap().first, PONG);
}

fn pattern(len: usize) -> Bytes {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// A viewer that the server cannot send much to before it reads.
fn narrow_viewer(server: &Server, n: u32) -> Client {
    server.service.grant(grant_of(n)).unwrap();
    let mut client = Client::connect_narrow(server.service.port());
    assert!(client.handshake(&server.host(), ORIGIN).contains(" 101 "));
    client.text(&ticket_message(n));
    server.until(|stats| stats.output.viewers == 1);
    client
}

#[test]
fn revocation_cancels_a_frame_half_sent() {
    let mut server = Server::h264();
    let mut client = narrow_viewer(&server, 1);
    let len = 4 * 1024 * 1024;
    server.publish(true, vec![7; len]);
    let mut start = [0; 1000];
    client.stream.read_exact(&mut start).unwrap();
    server.service.revoke(Some(view_of(1))).unwrap();
    let stats = server.stats();
    assert_eq!((stats.output.viewers, stats.output.unacknowledged_bytes), (0, 0));
    let mut rest = Vec::new();
    let end = client.stream.read_to_end(&mut rest);
    assert!(rest.len() < len / 2, "{} bytes followed, {end:?}", rest.len());
}

#[test]
fn eight_viewers_get_the_same_bytes_and_the_payload_is_released() {
    struct Tracked {
        data: Vec<u8>,
        _alive: Arc<()>,
    }
    impl AsRef<[u8]> for Tracked {
        fn as_ref(&self) -> &[u8] {
            &self.data
        }
    }
    let mut server = Server::h264();
    let mut viewers: Vec<_> = (1..=8).map(|n| server.viewer(n)).collect();
    let alive = Arc::new(());
    let data = pattern(3 * 1024 * 1024);
    server.publish(
        true,
        Bytes::from_owner(Tracked {
            data: data.to_vec(),
            _alive: Arc::clone(&alive),
        }),
    );
    for viewer in &mut viewers {
        let frame = viewer.watch();
        assert!(frame.payload[24..] == data);
    }
    server.publish(true, IDR);
    for viewer in &mut viewers {
        assert_eq!(viewer.watch().sequence(), 2);
    }
    server.until(|stats| stats.output.unacknowledged_bytes == 0);
    assert_eq!(Arc::strong_count(&alive), 1, "one payload, shared and then freed");
}

/// A picture of one grey that counts how often it is read.
struct Counted {
    size: PixelSize,
    reads: Arc<AtomicU32>,
}

impl Frame for Counted {
    fn map(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let samples = vec![128; (self.size.area() * 2) as usize];
        let plane = Plane {
            data: &samples,
            stride: self.size.width as usize,
        };
        let half = Plane {
            data: &samples,
            stride: self.size.width.div_ceil(2) as usize,
        };
        read(Planes::I420 {
            y: plane,
            u: half,
            v: half,
        });
        Ok(())
    }
}

struct Pictures {
    size: PixelSize,
    reads: Arc<AtomicU32>,
    sequence: u32,
}

impl Pictures {
    fn new(width: u32, height: u32) -> Self {
        Self {
            size: PixelSize::new(width, height),
            reads: Arc::default(),
            sequence: 0,
        }
    }

    fn publish(&mut self, server: &Server) {
        self.sequence += 1;
        server.service.publisher().publish_picture(Picture {
            size: self.size,
            color: Color::BT601_LIMITED,
            sequence: self.sequence,
            geometry_epoch: 1,
            received: clock::now(),
            decoded: clock::now(),
            frame: Arc::new(Counted {
                size: self.size,
                reads: Arc::clone(&self.reads),
            }),
        });
    }

    fn reads(&self) -> u32 {
        self.reads.load(Ordering::Relaxed)
    }
}

#[test]
fn nobody_watching_costs_no_packing() {
    let server = Server::start(Protocol::Nv12);
    let mut pictures = Pictures::new(64, 48);
    for _ in 0..10 {
        pictures.publish(&server);
    }
    let stats = server.stats();
    assert_eq!(
        (
            stats.output.queued,
            stats.output.queued_bytes,
            stats.output.dropped
        ),
        (1, 32 + 64 * 48 * 3 / 2, 0)
    );
    assert_eq!(pictures.reads(), 0);
    let mut client = server.viewer(1);
    let frame = client.next().unwrap();
    assert_eq!(frame.sequence(), 10, "the newest one, at once");
    assert_eq!(pictures.reads(), 1);
}

#[test]
fn cdn1_messages_are_exact_and_odd_pictures_cut_to_even() {
    let server = Server::start(Protocol::Nv12);
    let mut client = server.viewer(1);
    let mut pictures = Pictures::new(65, 49);
    pictures.publish(&server);
    let frame = client.watch();
    assert_eq!(frame.payload[..4], *b"CDN1");
    assert_eq!(
        [4, 8, 20, 24, 28].map(|at| frame.word(at)),
        [GENERATION, 1, 1, 64, 48]
    );
    assert_eq!(frame.payload.len(), 32 + 64 * 48 * 3 / 2);
}

#[test]
fn a_slow_viewer_skips_and_then_gets_the_newest_picture() {
    let server = Server::start(Protocol::Nv12);
    let (mut slow, mut fast) = (server.viewer(1), server.viewer(2));
    let mut pictures = Pictures::new(64, 48);
    for sequence in 1..=5 {
        pictures.publish(&server);
        assert_eq!(fast.watch().sequence(), sequence);
        server.until(|stats| stats.output.unacknowledged_bytes == 32 + 64 * 48 * 3 / 2);
    }
    assert_eq!(pictures.reads(), 5, "packed once, whoever takes it");
    let first = slow.next().unwrap();
    assert_eq!(first.sequence(), 1);
    slow.ack(1);
    assert_eq!(slow.watch().sequence(), 5);
    assert_eq!(server.stats().output.dropped, 3, "2, 3 and 4");
    assert_eq!(pictures.reads(), 5);
}

#[test]
fn a_picture_too_large_for_the_protocol_is_skipped() {
    let server = Server::start(Protocol::Nv12);
    let _client = server.viewer(1);
    let mut pictures = Pictures::new(8194, 2);
    pictures.publish(&server);
    let stats = server.until(|stats| stats.oversized == 1);
    assert_eq!(stats.output.queued, 0);
    assert_eq!(pictures.reads(), 0);
}
