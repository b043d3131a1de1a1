//! Who gets in, and what ends a connection.

use std::net::{Ipv6Addr, TcpStream};
use std::time::{Duration, Instant};

use crossdesk::video::VideoServiceError;
use crossdesk_core::video::{GrantRefusal, Protocol};

use super::client::{BINARY, CLOSE, Client, PING, TEXT, masked, request};
use super::{GENERATION, ORIGIN, PATIENCE, Server, grant_of, ticket_message, token, view_of};

#[test]
fn other_hosts_paths_versions_and_origins_get_an_empty_refusal() {
    let server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let (host, port) = (server.host(), server.service.port());
    let good = request("/api/video", &host, ORIGIN);
    let cases = [
        (
            good.replace(&format!("Host: {host}"), &format!("Host: localhost:{port}")),
            403,
        ),
        (
            good.replace(&format!("Host: {host}"), &format!("Host: [::1]:{port}")),
            403,
        ),
        (
            good.replace(
                &format!("Host: {host}"),
                &format!("Host: 127.0.0.1.evil.test:{port}"),
            ),
            403,
        ),
        (
            request(
                "/api/video",
                &format!("evil.test:{port}"),
                &format!("http://evil.test:{port}"),
            ),
            403,
        ),
        (good.replace(&format!("Host: {host}\r\n"), ""), 403),
        (
            good.replace(&format!("Host: {host}"), &format!("Host: {host}\r\nHost: {host}")),
            403,
        ),
        (good.replace("Version: 13", "Version: 12"), 426),
        (good.replace(ORIGIN, "http://127.0.0.1:9001"), 403),
        (good.replace(ORIGIN, "null"), 403),
        (good.replace(ORIGIN, "https://127.0.0.1:9000"), 403),
        (good.replace(&format!("Origin: {ORIGIN}\r\n"), ""), 403),
        (good.replace("/api/video", "/"), 404),
        (
            good.replace("/api/video", &format!("/api/video?ticket={}", token(1))),
            404,
        ),
        (good.replace("Upgrade: websocket\r\n", ""), 400),
    ];
    for (text, status) in cases {
        let mut client = Client::connect(port);
        client.send(text.as_bytes());
        let head = client.head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{text}\n{head}");
        assert!(head.contains("Content-Length: 0\r\n"), "{head}");
        client.is_gone();
    }
    let mut client = server.upgraded();
    client.text(&ticket_message(1));
    server.until(|stats| stats.output.viewers == 1);
}

#[test]
fn only_the_literal_loopback_address_listens() {
    let server = Server::h264();
    let port = server.service.port();
    assert_eq!(server.service.url(), format!("ws://127.0.0.1:{port}/api/video"));
    assert!(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_err());
    assert!(
        TcpStream::connect(("127.0.0.2", port)).is_err(),
        "all of 127/8 is local, one address is ours"
    );
}

#[test]
fn apps_grants_open_the_door_to_null_and_https() {
    let server = Server::h264();
    let mut grant = grant_of(1);
    grant.origin.apps = true;
    server.service.grant(grant).unwrap();
    server.service.grant(grant_of(2)).unwrap();
    for (origin, ticket, viewers) in [("null", 2, 0), ("https://app.example", 1, 1)] {
        let mut client = Client::connect(server.service.port());
        assert!(
            client.handshake(&server.host(), origin).contains(" 101 "),
            "{origin}"
        );
        client.text(&ticket_message(ticket));
        if viewers == 0 {
            assert_eq!(client.closed_with(), 1008, "the ticket of a panel-only grant");
        }
        server.until(|stats| stats.output.viewers == viewers && stats.candidates == 0);
    }
}

#[test]
fn an_endless_request_head_is_cut_off() {
    let server = Server::h264();
    let mut client = Client::connect(server.service.port());
    client.send(b"GET /api/video HTTP/1.1\r\n");
    client.send(&[b'x'; 8192]);
    client.is_gone();
}

#[test]
fn a_ticket_sent_together_with_the_request_is_not_lost() {
    let server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let mut client = Client::connect(server.service.port());
    let mut bytes = request("/api/video", &server.host(), ORIGIN).into_bytes();
    bytes.extend(masked(TEXT, ticket_message(1).as_bytes()));
    client.send(&bytes);
    assert!(client.head().contains(" 101 "));
    server.until(|stats| stats.output.viewers == 1);
}

#[test]
fn a_ticket_byte_by_byte_is_the_same_ticket() {
    let server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let mut client = Client::connect(server.service.port());
    for byte in request("/api/video", &server.host(), ORIGIN).bytes() {
        client.send(&[byte]);
    }
    assert!(client.head().contains(" 101 "));
    for byte in masked(TEXT, ticket_message(1).as_bytes()) {
        client.send(&[byte]);
    }
    server.until(|stats| stats.output.viewers == 1);
}

#[test]
fn a_ticket_is_good_once_and_a_wrong_one_never() {
    let server = Server::h264();
    let _viewer = server.viewer(1);
    for text in [
        ticket_message(1),
        ticket_message(2),
        "{}".into(),
        r#"{"type":"keyframe"}"#.into(),
    ] {
        let mut client = server.upgraded();
        client.text(&text);
        assert_eq!(client.closed_with(), 1008, "{text}");
    }
    assert_eq!(
        server.service.grant(grant_of(1)),
        Err(VideoServiceError::Grant(GrantRefusal::TicketReused))
    );
    assert_eq!(server.stats().output.viewers, 1);
}

#[test]
fn sixteen_candidates_hold_all_places_until_one_goes() {
    let server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let mut candidates: Vec<_> = (0..16).map(|_| server.upgraded()).collect();
    assert_eq!(server.stats().candidates, 16);
    let mut refused = Client::connect(server.service.port());
    assert_eq!(
        refused.head().lines().next(),
        Some("HTTP/1.1 503 Service Unavailable")
    );
    refused.is_gone();
    candidates.pop();
    server.until(|stats| stats.candidates == 15);
    let mut welcome = server.upgraded();
    welcome.text(&ticket_message(1));
    server.until(|stats| stats.output.viewers == 1 && stats.candidates == 15);
}

#[test]
fn eight_viewers_watch_and_the_ninth_may_come_back() {
    let server = Server::h264();
    let mut viewers: Vec<_> = (1..=8).map(|n| server.viewer(n)).collect();
    server.service.grant(grant_of(9)).unwrap();
    let mut ninth = server.upgraded();
    ninth.text(&ticket_message(9));
    assert_eq!(ninth.closed_with(), 1013);
    viewers.pop();
    server.until(|stats| stats.output.viewers == 7);
    let mut again = server.upgraded();
    again.text(&ticket_message(9));
    server.until(|stats| stats.output.viewers == 8);
}

#[test]
fn mute_connections_lock_nobody_out() {
    let server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let port = server.service.port();
    let _mute: Vec<_> = (0..16)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    let started = Instant::now();
    loop {
        let mut client = Client::connect(port);
        if client.handshake(&server.host(), ORIGIN).contains(" 101 ") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(8), "locked out");
    }
}

#[test]
fn silence_after_the_handshake_ends_after_three_seconds() {
    let server = Server::h264();
    server.service.grant(grant_of(1)).unwrap();
    let started = Instant::now();
    let mut client = server.upgraded();
    assert_eq!(client.closed_with(), 1008);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(2990) && took < PATIENCE, "{took:?}");
}

#[test]
fn what_a_viewer_must_not_send_ends_it_with_a_code() {
    let unmasked = [TEXT, 1, b'x'].to_vec();
    let fragments = [masked(0x01, &[b' '; 1000]), masked(0x80, &[b' '; 25])].concat();
    let cases = [
        (masked(TEXT, &[b' '; 1025]), 1009),
        (fragments, 1009),
        (masked(TEXT, &[b' '; 1024]), 1008),
        (masked(TEXT, b"{\"type\":\"input\"}"), 1008),
        (
            masked(TEXT, br#"{"type":"ack","generation":3,"sequence":9}"#),
            1008,
        ),
        (masked(TEXT, b"\xff"), 1007),
        (masked(BINARY, b"{}"), 1003),
        (unmasked, 1002),
        (masked(0xc1, b"{}"), 1002),
        (masked(PING, &[0; 126]), 1002),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), 1002),
    ];
    for (n, (bytes, code)) in (1..).zip(cases) {
        let server = Server::h264();
        let mut client = server.viewer(n);
        client.send(&bytes);
        assert_eq!(client.closed_with(), code, "{bytes:?}");
        server.until(|stats| stats.output.viewers == 0);
    }
}

#[test]
fn a_close_is_answered_with_its_own_code() {
    let server = Server::h264();
    let mut client = server.viewer(1);
    client.frame(CLOSE, &4001_u16.to_be_bytes());
    assert_eq!(client.closed_with(), 4001);
    server.until(|stats| stats.output.viewers == 0);
}

#[test]
fn revocation_is_confirmed_and_final() {
    let server = Server::h264();
    let (mut one, mut two) = (server.viewer(1), server.viewer(2));
    server.service.grant(grant_of(3)).unwrap();
    server.service.revoke(Some(view_of(1))).unwrap();
    assert_eq!(server.stats().output.viewers, 1);
    assert_eq!(one.closed_with(), 1008);
    server.service.revoke(None).unwrap();
    assert_eq!(two.closed_with(), 1008);
    let mut late = server.upgraded();
    late.text(&ticket_message(3));
    assert_eq!(late.closed_with(), 1008);
}

#[test]
fn a_new_generation_and_the_end_close_everybody() {
    let server = Server::h264();
    let mut viewer = server.viewer(1);
    let mut candidate = server.upgraded();
    server.service.begin(GENERATION + 1, Protocol::Nv12).unwrap();
    assert_eq!((viewer.closed_with(), candidate.closed_with()), (1001, 1001));
    let stale = server.service.grant(grant_of(2));
    assert_eq!(
        stale,
        Err(VideoServiceError::Grant(GrantRefusal::OtherGeneration))
    );
    server.service.end().unwrap();
    assert_eq!(
        server.service.grant(grant_of(2)),
        Err(VideoServiceError::Grant(GrantRefusal::NoSession))
    );
    server.service.begin(GENERATION, Protocol::H264AnnexB).unwrap();
    let mut viewer = server.viewer(3);
    let port = server.service.port();
    drop(server);
    assert_eq!(viewer.closed_with(), 1001);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
