//! The signaling server as a process, driven over loopback by WebSocket clients.

mod client;
mod ours;
pub mod process;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::Peer;
use process::Server;

fn forward(kind: &str, from: &str, to: &str, host: &str) -> Value {
    let mut message = json!({
        "type": kind, "user_id": from, "remote_user_id": to, "transmission_id": host,
    });
    if kind == "new_candidate_mid" {
        message["candidate"] = json!("candidate:1 1 UDP 2122317823 192.0.2.7 50412 typ host");
        message["mid"] = json!("Display1");
    } else {
        message["sdp"] = json!("v=0\r\ns=unlogged\r\n");
    }
    message
}

#[test]
fn a_host_and_a_browser_find_each_other() {
    let server = Server::plain("signal-session");
    let mut host = server.peer();
    let claim = host.register();
    let mut guest = server.peer();
    let guest_id = guest.log_in("web");
    assert!(guest_id.starts_with("web-"));

    guest.join(&guest_id, &claim);
    let joined = host.hear();
    let (host_id, password) = claim.split_once('@').unwrap();
    assert_eq!(joined["type"], "user_join_transmission");
    assert_eq!(joined["user_id"], guest_id);
    assert_eq!(joined["ice"]["servers"], json!([]));

    host.say(&forward("offer", host_id, &guest_id, host_id));
    let offer = guest.hear();
    assert_eq!(
        (&offer["type"], &offer["remote_user_id"]),
        (&json!("offer"), &json!(host_id))
    );
    guest.say(&forward("answer", &guest_id, host_id, host_id));
    assert_eq!(host.hear()["type"], "answer");
    host.say(&forward("new_candidate_mid", host_id, &guest_id, host_id));
    guest.say(&forward("new_candidate_mid", &guest_id, host_id, host_id));
    for peer in [&mut host, &mut guest] {
        let candidate = peer.hear();
        assert_eq!(
            (&candidate["type"], &candidate["mid"]),
            (&json!("new_candidate_mid"), &json!("Display1"))
        );
    }
    let leave = json!({
        "type": "user_leave_transmission", "user_id": guest_id, "transmission_id": host_id,
    });
    guest.say(&leave);
    assert_eq!(host.hear(), leave);

    let mut again = server.peer();
    assert_eq!(again.log_in(&claim), host_id);
    again.say(&json!({ "type": "change_password", "request_id": "r1", "new_password": "Zk41pT" }));
    assert_eq!(again.hear()["status"], "success");

    let log = server.stop();
    for secret in [password, "Zk41pT", "unlogged"] {
        assert!(!log.contains(secret), "the log shows {secret}");
    }
    assert!(log.contains(host_id), "{log}");
}

#[test]
fn wrong_passwords_are_refused_and_then_blocked() {
    let server = Server::plain("signal-refusals");
    let mut host = server.peer();
    let claim = host.register();
    let offline = server.peer().register();
    let mut guest = server.peer();
    let id = guest.log_in("web");
    let host_id = &claim[..9];
    let unknown = if host_id == "999999999" {
        "999999998"
    } else {
        "999999999"
    };
    let mut refused = |claim: &str| {
        guest.join(&id, claim);
        let reply = guest.hear();
        assert_eq!(reply["status"], "failed");
        (
            reply["reason"].as_str().unwrap().to_owned(),
            reply["retry_after"].as_u64(),
        )
    };
    let failed = ("Authentication failed".to_owned(), None);
    assert_eq!(refused(&format!("{unknown}@wrong1")), failed);
    assert_eq!(refused(&format!("{}@wrong1", &offline[..9])), failed);
    assert_eq!(refused(&offline).0, "Remote unavailable");
    for _ in 0..5 {
        assert_eq!(refused(&format!("{host_id}@wrong1")), failed);
    }
    let (reason, retry_after) = refused(&claim);
    assert_eq!(reason, "Too many authentication attempts");
    assert!((890..=900).contains(&retry_after.unwrap()));

    let mut login = server.peer();
    login.say(&json!({ "type": "login", "user_id": format!("{unknown}@wrong1") }));
    let reply = login.hear();
    assert_eq!(
        (&reply["status"], &reply["reason"]),
        (&json!("fail"), &json!("Authentication failed"))
    );
}

#[test]
fn sizes_and_kinds_of_messages_have_limits() {
    let server = Server::plain("signal-limits");
    let mut host = server.peer();
    let claim = host.register();
    let host_id = &claim[..9];
    let mut guest = server.peer();
    let guest_id = guest.log_in("web");
    guest.join(&guest_id, &claim);
    host.hear();
    let mut offer = forward("offer", host_id, &guest_id, host_id);
    let room = 65_536 - offer.to_string().len();
    let sdp = format!("{}{}", offer["sdp"].as_str().unwrap(), "x".repeat(room));
    offer["sdp"] = json!(sdp);
    assert_eq!(offer.to_string().len(), 65_536);
    host.say(&offer);
    assert_eq!(guest.hear()["sdp"], json!(sdp));

    offer["sdp"] = json!(format!("{sdp}x"));
    host.say(&offer);
    assert_eq!(host.close(), (1009, "Message over 65536 bytes".to_owned()));
    guest.say_text("garbage");
    assert_eq!(guest.close(), (1007, "Invalid signaling message".to_owned()));
    let mut other = server.peer();
    other.say_bytes(b"\x00");
    assert_eq!(other.close().0, 1003);
    let mut other = server.peer();
    other.say(&json!({ "type": "no_such_type" }));
    other.say(&json!({ "type": "ping", "ts": 1 }));
    assert_eq!(other.hear(), json!({ "type": "pong" }));
}

#[test]
fn a_peer_that_does_not_read_is_let_go() {
    let server = Server::plain("signal-backlog");
    let mut host = server.peer();
    let claim = host.register();
    let host_id = &claim[..9];
    let mut guest = server.peer();
    let guest_id = guest.log_in("web");
    guest.join(&guest_id, &claim);
    host.hear();
    let mut offer = forward("offer", host_id, &guest_id, host_id);
    offer["sdp"] = json!("x".repeat(60_000));
    // Far more than the kernel holds for one socket.
    for _ in 0..400 {
        host.say(&offer);
    }
    assert_eq!(guest.close_after_texts(), (1008, "Send backlog limit".to_owned()));
    host.say(&json!({ "type": "ping" }));
    assert_eq!(host.hear()["type"], "pong", "the host is none the worse for it");
}

#[test]
fn a_full_server_refuses_before_the_upgrade() {
    let server = Server::plain_with("signal-full", &["--max-connections", "1"]);
    let mut only = server.peer();
    only.log_in("web");
    let refused = Peer::try_plain(server.address()).err().expect("a refusal");
    assert!(refused.contains("503"), "{refused}");
    assert!(server.get("/healthz").contains("200 OK"));
}

#[test]
fn operators_have_two_pages() {
    let server = Server::plain("signal-pages");
    let mut host = server.peer();
    host.register();
    let health = server.get("/healthz");
    assert!(
        health.starts_with("HTTP/1.1 200 OK\r\n") && health.ends_with("\r\n\r\nok\n"),
        "{health}"
    );
    let metrics = server.get("/metrics");
    assert!(
        metrics.contains("\ncrossdesk_signal_devices_online 1\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\ncrossdesk_signal_registered_total 1\n"),
        "{metrics}"
    );
    let missing = server.get("/admin");
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    assert!(missing.ends_with(r#"{"error":"not_found"}"#), "{missing}");
}

#[test]
fn the_fingerprint_and_the_devices_outlive_a_restart() {
    let server = Server::tls("signal-tls");
    let fingerprint = server.fingerprint().to_owned();
    let claim = server.peer().register();
    assert!(
        Peer::pinned(
            server.address(),
            &fingerprint.replace(|c: char| c.is_ascii_digit(), "0")
        )
        .is_err(),
        "another certificate must be refused"
    );
    let server = server.restart();
    assert_eq!(server.fingerprint(), fingerprint);
    assert_eq!(server.peer().log_in(&claim), &claim[..9]);
    let log = server.stop();
    assert!(log.contains("logged in"), "{log}");
}

#[test]
fn turn_credentials_come_from_the_secret_on_the_descriptor() {
    let server = Server::with_turn("signal-turn", "north");
    let mut guest = server.peer();
    guest.say(&json!({ "type": "login", "user_id": "web" }));
    let reply = guest.hear();
    let turn = &reply["turn"];
    assert_eq!(
        (&turn["host"], &turn["port"]),
        (&json!("turn.example.net"), &json!(3478))
    );
    let username = turn["username"].as_str().unwrap();
    assert_eq!(
        turn["password"],
        json!(process::hmac_sha1_base64("north", username))
    );
    let log = server.stop();
    assert!(!log.contains(turn["password"].as_str().unwrap()));
}

#[test]
fn stopping_tells_clients_and_takes_less_than_two_seconds() {
    let server = Server::tls("signal-stop");
    let mut host = server.peer();
    host.register();
    let mut silent = server.peer();
    silent.log_in("web");
    let begin = Instant::now();
    let ending = server.terminate();
    assert_eq!(host.close(), (1001, "Server shutdown".to_owned()));
    let status = ending.wait();
    assert_eq!(status.code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    drop(silent);
}

#[test]
fn starts_that_cannot_work_say_why() {
    let (code, text) = process::refused("signal-plain", &["--plain", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("loopback"), "{text}");
    let missing = [
        "--listen",
        "127.0.0.1:0",
        "--cert",
        "missing.pem",
        "--key",
        "missing.key",
    ];
    let (code, text) = process::refused("signal-cert", &missing);
    assert_eq!(code, Some(1));
    assert!(text.contains("missing.pem"), "{text}");

    let server = Server::plain("signal-twice");
    let again = ["--plain", "--listen", "127.0.0.1:0", "--data", server.data()];
    let (code, text) = process::refused("signal-twice-again", &again);
    assert_eq!(code, Some(1));
    assert!(text.contains("another server uses it"), "{text}");
}
