//! Direct sources through the transport seam: real servers and sockets, lost and found again.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crossdesk::transport::direct::Direct;
use crossdesk::transport::{Transport, TransportEvent, TransportOutput};
use crossdesk_core::automation::TransportState;
use crossdesk_core::error::ErrorCode;
use crossdesk_core::media::AccessUnit;
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};
use gst::prelude::*;

use crate::support::rtsp::Server;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

enum Seen {
    Unit(AccessUnit),
    State(TransportState),
}

struct Recorder(SyncSender<Seen>);

impl TransportOutput for Recorder {
    fn unit(&self, unit: AccessUnit) {
        let _ = self.0.try_send(Seen::Unit(unit));
    }

    fn event(&self, event: TransportEvent) {
        if let TransportEvent::State(state) = event {
            let _ = self.0.try_send(Seen::State(state));
        }
    }
}

struct Link {
    direct: Direct,
    seen: Receiver<Seen>,
}

fn connect(source: &str, credentials: Option<Credentials>) -> Link {
    let (send, seen) = sync_channel(100_000);
    let spec = SourceSpec::parse(source).expect(source);
    let direct = Direct::start(spec, credentials, Arc::new(Recorder(send)));
    Link { direct, seen }
}

impl Link {
    fn next(&self) -> Seen {
        self.seen
            .recv_timeout(LIMIT)
            .expect("the transport says something")
    }

    /// The next state, passing over access units.
    fn state(&self) -> TransportState {
        loop {
            if let Seen::State(state) = self.next() {
                return state;
            }
        }
    }

    /// The next access unit, passing over states.
    fn unit(&self) -> AccessUnit {
        loop {
            if let Seen::Unit(unit) = self.next() {
                return unit;
            }
        }
    }

    fn connecting(&self) {
        assert_eq!(self.state(), TransportState::Connecting);
    }

    /// Waits until it is connected, whatever comes before.
    fn connected(&self) {
        while self.state() != TransportState::Connected {}
    }

    fn reconnecting(&self) -> (u32, ErrorCode, String) {
        match self.state() {
            TransportState::Reconnecting {
                attempt,
                code,
                reason,
            } => (attempt, code, reason),
            other => panic!("{other:?}"),
        }
    }

    fn failed(&self) -> (ErrorCode, String) {
        match self.state() {
            TransportState::Failed { code, reason } => (code, reason),
            other => panic!("{other:?}"),
        }
    }

    /// Thirty-one access units in a row, a keyframe with its parameter sets among them.
    fn plays(&self) {
        let units: Vec<AccessUnit> = (0..31).map(|_| self.unit()).collect();
        let has = |unit: &AccessUnit, kind: u8| {
            unit.data
                .windows(4)
                .any(|four| four[..3] == [0, 0, 1] && four[3] & 0x1f == kind)
        };
        assert!(
            units
                .iter()
                .any(|unit| has(unit, 5) && has(unit, 7) && has(unit, 8))
        );
    }
}

#[test]
fn rtsp_plays_over_udp() {
    let server = Server::start(&[]);
    let link = connect(&server.uri(), None);
    link.connecting();
    link.plays();
    let counted = link.direct.diagnostics();
    assert_eq!((counted.kind.as_str(), counted.reconnects), ("rtsp", 0));
    assert!(counted.access_units >= 31 && counted.bytes > 0);
}

#[test]
fn rtsp_falls_back_to_tcp_when_the_server_refuses_udp() {
    let server = Server::start(&["tcp-only"]);
    connect(&server.uri(), None).plays();
}

/// Passes RTSP on to `server`, but sends its UDP packets to nowhere.
fn blocking_udp(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let (answers, client_in) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || copy(answers, client_in, |_| {}));
            std::thread::spawn(move || copy(client, server, misdirect));
        }
    });
    port
}

fn copy(mut from: TcpStream, mut to: TcpStream, change: fn(&mut [u8])) {
    let mut bytes = [0; 65536];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        change(&mut bytes[..n]);
        if to.write_all(&bytes[..n]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Turns the ports after `client_port=` into 9 and 9, of the same length.
fn misdirect(request: &mut [u8]) {
    let name = b"client_port=";
    let Some(at) = request.windows(name.len()).position(|part| part == name) else {
        return;
    };
    let mut last: Option<&mut u8> = None;
    for byte in request[at + name.len()..].iter_mut() {
        match *byte {
            b'0'..=b'9' => {
                *byte = b'0';
                last = Some(byte);
            }
            _ => {
                if let Some(digit) = last.take() {
                    *digit = b'9';
                }
                if *byte != b'-' {
                    return;
                }
            }
        }
    }
}

#[test]
fn rtsp_falls_back_to_tcp_when_udp_never_arrives() {
    let server = Server::start(&[]);
    let port = blocking_udp(server.port);
    let link = connect(&format!("rtsp://127.0.0.1:{port}/live"), None);
    link.connecting();
    assert_eq!(link.state(), TransportState::Connected);
    link.plays();
}

#[test]
fn rtsp_credentials_come_from_the_descriptor_and_wrong_ones_are_final() {
    let server = Server::start(&["auth=ann:s3:cret"]);
    let right = Credentials::from_descriptor(b"ann:s3:cret\n").unwrap();
    connect(&server.uri(), right).plays();

    let link = connect(&server.uri(), Some(Credentials::new("ann", "hush")));
    link.connecting();
    let (code, reason) = link.failed();
    assert_eq!(code, ErrorCode::AuthenticationFailed);
    let place = format!("127.0.0.1 port {}", server.port);
    assert_eq!(
        reason,
        format!("{place} refused the user name or the password (401)")
    );

    let link = connect(&server.uri(), None);
    link.connecting();
    let (code, reason) = link.failed();
    assert_eq!(code, ErrorCode::CredentialsMissing);
    assert!(reason.starts_with(&place), "{reason}");
}

#[test]
fn a_path_the_server_does_not_know_and_a_host_nobody_knows_are_named() {
    let server = Server::start(&[]);
    let port = server.port;
    let link = connect(&format!("rtsp://127.0.0.1:{port}/nope?key=hush"), None);
    link.connecting();
    let (_, code, reason) = link.reconnecting();
    assert_eq!(code, ErrorCode::SourceRefused);
    assert_eq!(reason, format!("127.0.0.1 port {port} knows no path /nope (404)"));

    // No label may be longer than 63 letters, so no name server is asked.
    let host = "n".repeat(64);
    let link = connect(&format!("rtsp://{host}/live"), None);
    link.connecting();
    let (_, code, reason) = link.reconnecting();
    assert_eq!(code, ErrorCode::SourceUnreachable);
    assert!(
        reason.starts_with(&format!("the host {host} cannot be resolved")),
        "{reason}"
    );
}

#[test]
fn a_server_without_h264_is_named() {
    let server = Server::start(&["jpeg"]);
    let link = connect(&server.uri(), None);
    link.connecting();
    let (code, reason) = link.failed();
    assert_eq!(code, ErrorCode::SourceInvalid);
    assert!(reason.contains("no H.264"), "{reason}");
}

#[test]
fn a_killed_server_is_found_again_when_it_is_back() {
    let server = Server::start(&["tcp-only"]);
    let link = connect(&server.uri(), None);
    link.plays();
    let port = format!("port={}", server.port);
    drop(server);
    let (attempt, code, reason) = link.reconnecting();
    assert_eq!(attempt, 1, "{code} {reason}");
    let back = Server::start(&["tcp-only", &port]);
    link.connected();
    link.plays();
    assert!(link.direct.diagnostics().reconnects >= 1);
    drop(back);
}

#[test]
fn a_refused_port_and_a_mute_server_give_a_reason_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let began = Instant::now();
    let mute = connect(&format!("rtsp://127.0.0.1:{port}/live"), None);
    mute.connecting();
    let (_, code, reason) = mute.reconnecting();
    assert!(began.elapsed() < Duration::from_secs(20), "{code} {reason}");
    assert!(
        matches!(code, ErrorCode::SourceUnreachable | ErrorCode::SourceStalled)
            && reason.starts_with(&format!("127.0.0.1 port {port} ")),
        "{code} {reason}"
    );
    drop(mute);
    drop(listener);

    let refused = connect(&format!("rtsp://127.0.0.1:{port}/live"), None);
    refused.connecting();
    let (attempt, code, reason) = refused.reconnecting();
    assert_eq!((attempt, code), (1, ErrorCode::SourceUnreachable));
    assert_eq!(
        reason,
        format!("127.0.0.1 port {port} refused the connection: nothing listens there")
    );
    assert_eq!(refused.reconnecting().0, 2);
}

#[test]
fn a_server_that_never_finishes_its_answer_gives_a_reason_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || trickle(client));
        }
    });
    let began = Instant::now();
    let link = connect(&format!("rtsp://127.0.0.1:{port}/live"), None);
    link.connecting();
    let (_, code, reason) = link.reconnecting();
    assert!(began.elapsed() < Duration::from_secs(20), "{code} {reason}");
    assert_eq!(code, ErrorCode::SourceStalled);
    assert!(reason.starts_with(&format!("127.0.0.1 port {port} ")), "{reason}");
}

/// Answers with one letter each time nothing more is asked for a moment, so that no read of the client times out.
fn trickle(mut client: TcpStream) {
    let moment = Duration::from_millis(200);
    client.set_read_timeout(Some(moment)).unwrap();
    let mut request = [0; 4096];
    loop {
        let read = client.read(&mut request);
        let left = matches!(read, Ok(0)) || client.write_all(b"R").is_err();
        if left {
            return;
        }
    }
}

/// Sends H.264 as bare RTP to a port until dropped.
struct Sender(gst::Element);

impl Sender {
    fn start(port: u16) -> Self {
        crossdesk_pipelines::gst::init().unwrap();
        let text = format!(
            "videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=30/1 ! \
             x264enc tune=zerolatency speed-preset=ultrafast key-int-max=15 ! \
             rtph264pay config-interval=-1 pt=97 ! udpsink host=127.0.0.1 port={port}"
        );
        let pipeline = gst::parse::launch(&text).unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        Self(pipeline)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn bare_rtp_waits_for_its_sender_and_for_its_return() {
    let port = free_port();
    let link = connect(&format!("rtp://127.0.0.1:{port}?pt=97"), None);
    link.connecting();
    let (_, code, reason) = link.reconnecting();
    assert_eq!(code, ErrorCode::SourceStalled);
    assert!(reason.contains(&port.to_string()), "{reason}");
    let sender = Sender::start(port);
    link.connected();
    link.plays();
    drop(sender);
    assert_eq!(link.reconnecting().1, ErrorCode::SourceStalled);
    let _again = Sender::start(port);
    link.connected();
    link.plays();
}

#[test]
fn bare_rtp_says_when_its_host_is_unknown() {
    // No label may be longer than 63 letters, so no name server is asked.
    let host = "n".repeat(64);
    let link = connect(&format!("rtp://{host}:5004"), None);
    link.connecting();
    let (_, code, reason) = link.reconnecting();
    assert_eq!(code, ErrorCode::SourceUnreachable);
    assert!(
        reason.starts_with(&format!("the host {host} cannot be resolved")),
        "{reason}"
    );
}

#[test]
fn bare_rtp_says_when_its_port_is_taken() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let link = connect(&format!("rtp://127.0.0.1:{port}"), None);
    link.connecting();
    let (_, code, reason) = link.reconnecting();
    assert_eq!(code, ErrorCode::SourceUnreachable);
    assert_eq!(
        reason,
        format!("UDP port {port} on 127.0.0.1 is in use by another program")
    );
    drop(taken);
    let _sender = Sender::start(port);
    link.connected();
}

#[test]
fn a_session_description_leads_to_its_stream() {
    let port = free_port();
    let path = std::env::temp_dir().join(format!("crossdesk-{}.sdp", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    write!(
        file,
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=test\nc=IN IP4 127.0.0.1\nt=0 0\n\
         m=video {port} RTP/AVP 97\na=rtpmap:97 H264/90000\na=fmtp:97 packetization-mode=1\n"
    )
    .unwrap();
    let _sender = Sender::start(port);
    let link = connect(&format!("sdp:{}", path.display()), None);
    link.plays();
    std::fs::remove_file(&path).unwrap();

    let gone = connect(&format!("sdp:{}", path.display()), None);
    gone.connecting();
    assert_eq!(gone.failed().0, ErrorCode::SourceUnreachable);
}

#[test]
fn a_file_played_once_ends_and_a_missing_one_fails() {
    let clip = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/h264/SVA_NL2_E.264");
    let link = connect(&format!("file:{clip}?once"), None);
    link.connecting();
    link.connected();
    match link.state() {
        TransportState::Ended { code, reason } => {
            assert_eq!(code, ErrorCode::SourceEnded);
            assert!(!reason.is_empty());
        }
        other => panic!("{other:?}"),
    }
    let missing = connect("file:/nowhere/clip.h264", None);
    missing.connecting();
    assert_eq!(missing.failed().0, ErrorCode::SourceUnreachable);
}

#[test]
fn closing_never_waits_for_a_source_that_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let link = connect(&format!("rtsp://127.0.0.1:{port}/live"), None);
    // The client is inside its handshake once the server has its connection.
    let _connection = listener.accept().unwrap();
    let began = Instant::now();
    drop(link.direct);
    assert!(began.elapsed() < Duration::from_secs(1));
}
