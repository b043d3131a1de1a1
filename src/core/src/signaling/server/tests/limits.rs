//! Time, rates and sizes.

use super::*;
use crate::signaling::{MAX_CONNECTIONS, MAX_GUESTS, MAX_JOINED, MAX_QUEUED_PER_SOURCE};

#[test]
fn a_socket_that_does_not_log_in_is_closed_after_15_seconds() {
    let mut world = World::new();
    let socket = world.open();
    world.pass_seconds(14);
    assert!(world.server.knows(socket));
    world.say(socket, json!({ "type": "ping" }));
    world.pass_seconds(1);
    assert_eq!(world.closed[&socket], CloseReason::LoginTimeout);
}

#[test]
fn a_login_that_waits_for_the_store_has_more_time() {
    let mut world = World::new();
    world.slow = true;
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": "" }));
    world.pass_seconds(100);
    assert!(world.server.knows(socket));
    world.answer();
    assert_eq!(world.take(socket)["status"], "success");
}

#[test]
fn only_heartbeats_keep_a_socket() {
    let mut world = World::new();
    let (pinging, json_pinging, talking) = (world.guest().socket, world.guest().socket, world.guest().socket);
    for _ in 0..12 {
        world.server.handle_heartbeat(world.now, pinging);
        world.say(json_pinging, json!({ "type": "ping", "ts": 1 }));
        world.say(talking, json!({ "type": "turn_credentials" }));
        world.pass_seconds(3);
    }
    assert!(world.server.knows(pinging) && world.server.knows(json_pinging));
    assert_eq!(world.closed[&talking], CloseReason::HeartbeatTimeout);
    let end = world.server.stats().closed[&CloseReason::HeartbeatTimeout];
    assert_eq!(end, 1);
    world.pass_seconds(36);
    assert_eq!(world.server.stats().connections, 0);
    assert_eq!(world.server.next_deadline(), None, "an empty server sleeps");
}

#[test]
fn text_that_is_no_message_ends_the_socket() {
    let mut world = World::new();
    let large = json!({ "type": "ping", "x": "y".repeat(MAX_MESSAGE_BYTES) }).to_string();
    for (text, reason) in [
        ("garbage", CloseReason::InvalidMessage),
        ("[1]", CloseReason::InvalidMessage),
        ("{\"type\":7}", CloseReason::InvalidMessage),
        (large.as_str(), CloseReason::TooLarge),
    ] {
        let socket = world.open();
        world.say_text(socket, text);
        assert_eq!(world.closed[&socket], reason);
    }
    let socket = world.open();
    world.say(socket, json!({ "type": "announcements_list" }));
    world.silent(socket);
    assert!(world.server.knows(socket));
}

#[test]
fn a_description_of_64_kib_fits() {
    let mut world = World::new();
    let (host, guest) = world.session();
    let mut offer = forward("offer", &host.id, &guest.id, &host.id);
    let room = MAX_MESSAGE_BYTES - offer.to_string().len();
    offer["sdp"] = json!(format!("v=0\r\n{}", "x".repeat(room)));
    world.say(host.socket, offer);
    assert_eq!(
        world.take(guest.socket)["sdp"].as_str().map(str::len),
        Some(room + 5)
    );
}

#[test]
fn five_wrong_passwords_block_an_id_for_everybody() {
    let mut world = World::new();
    let host = world.device();
    for _ in 0..5 {
        let guest = world.guest();
        world.join(&guest, &format!("{}@wrong1", host.id));
        assert_eq!(world.take(guest.socket)["reason"], "Authentication failed");
    }
    let guest = world.guest();
    world.join(&guest, &host.claim());
    let reply = world.take(guest.socket);
    assert_eq!(reply["reason"], "Too many authentication attempts");
    assert_eq!(reply["retry_after"], 900);
    let again = world.open();
    world.say(again, json!({ "type": "login", "user_id": host.claim() }));
    assert_eq!(world.take(again)["reason"], "Too many authentication attempts");

    world.pass_alive(899, &[host.socket, guest.socket]);
    world.join(&guest, &host.claim());
    assert_eq!(world.take(guest.socket)["retry_after"], 1);
    world.pass_alive(1, &[host.socket, guest.socket]);
    world.join(&guest, &host.claim());
    assert_eq!(world.take(host.socket)["status"], "success");
}

#[test]
fn twenty_wrong_passwords_block_a_source() {
    let mut world = World::new();
    let hosts: Vec<Peer> = (0..5).map(|_| world.device()).collect();
    for n in 0..20 {
        // Four each: no id is blocked.
        let claim = format!("{}@wrong1", hosts[n % 5].id);
        let socket = world.open_from(HOME);
        world.say(socket, json!({ "type": "login", "user_id": claim }));
        assert_eq!(world.take(socket)["reason"], "Authentication failed", "{n}");
    }
    let last = world.open_from(HOME);
    world.say(last, json!({ "type": "login", "user_id": hosts[0].claim() }));
    assert_eq!(world.take(last)["reason"], "Too many authentication attempts");
    let elsewhere = world.open();
    world.say(elsewhere, json!({ "type": "login", "user_id": hosts[0].claim() }));
    assert_eq!(world.take(elsewhere)["status"], "success");
}

#[test]
fn guesses_in_parallel_count_one_by_one() {
    let mut world = World::new();
    let host = world.device();
    world.close(host.socket);
    let sockets: Vec<SocketId> = (0..10).map(|_| world.open()).collect();
    world.slow = true;
    for socket in &sockets {
        world.say(
            *socket,
            json!({ "type": "login", "user_id": format!("{}@wrong1", host.id) }),
        );
    }
    while !world.asked.is_empty() {
        world.answer();
    }
    let reasons: Vec<Value> = sockets
        .iter()
        .map(|id| world.take(*id)["reason"].clone())
        .collect();
    assert_eq!(reasons[4], "Authentication failed");
    assert!(
        reasons[5..]
            .iter()
            .all(|reason| reason == "Too many authentication attempts")
    );
    assert_eq!(world.checks, 5);
}

#[test]
fn hanging_up_does_not_make_a_guess_free() {
    let mut world = World::new();
    let host = world.device();
    world.close(host.socket);
    world.slow = true;
    for _ in 0..5 {
        let socket = world.open();
        world.say(
            socket,
            json!({ "type": "login", "user_id": format!("{}@wrong1", host.id) }),
        );
        world.close(socket);
        world.answer();
    }
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": host.claim() }));
    assert_eq!(world.take(socket)["reason"], "Too many authentication attempts");
}

#[test]
fn a_source_over_its_quota_waits_and_others_pass() {
    let mut world = World::with(relays(), 2);
    let sockets: Vec<SocketId> = (0..4).map(|_| world.open_from(HOME)).collect();
    for socket in &sockets {
        world.say(*socket, json!({ "type": "login", "user_id": "" }));
    }
    assert_eq!(world.take(sockets[1])["status"], "success");
    world.silent(sockets[2]);
    world.device();
    world.pass_seconds(29);
    world.silent(sockets[2]);
    world.pass_seconds(2);
    assert_eq!(world.take(sockets[2])["status"], "success");
    world.silent(sockets[3]);
    world.pass_seconds(30);
    assert_eq!(world.take(sockets[3])["status"], "success");
}

#[test]
fn the_queue_of_a_source_has_an_end() {
    let mut world = World::with(relays(), 60);
    world.slow = true;
    let sockets: Vec<SocketId> = (0..MAX_QUEUED_PER_SOURCE + 2)
        .map(|_| world.open_from(HOME))
        .collect();
    for socket in &sockets {
        world.say(*socket, json!({ "type": "login", "user_id": "" }));
    }
    let last = *sockets.last().unwrap();
    let reply = world.take(last);
    assert_eq!(
        (&reply["reason"], &reply["retry_after"]),
        (&json!("Credential service busy"), &json!(1))
    );
    world.silent(sockets[sockets.len() - 2]);
}

#[test]
fn work_that_waits_for_ten_minutes_is_refused() {
    let mut world = World::new();
    world.slow = true;
    let (first, second) = (world.open(), world.open());
    for socket in [first, second] {
        world.say(socket, json!({ "type": "login", "user_id": "" }));
    }
    world.pass_seconds(600);
    let reply = world.take(second);
    assert_eq!(reply["reason"], "Too many credential requests");
    assert_eq!(reply["retry_after"], 60);
}

#[test]
fn messages_behind_the_store_have_bounds() {
    let mut world = World::new();
    world.slow = true;
    let ask = json!({ "type": "turn_credentials" });
    let sockets: Vec<SocketId> = (0..9).map(|_| world.open()).collect();
    for socket in &sockets {
        world.say(*socket, json!({ "type": "login", "user_id": "" }));
    }
    for socket in &sockets[..8] {
        for _ in 0..128 {
            world.say(*socket, ask.clone());
        }
    }
    world.say(sockets[8], ask.clone());
    assert_eq!(world.closed[&sockets[8]], CloseReason::Busy);
    world.close(sockets[7]);
    world.say(sockets[0], ask);
    assert_eq!(world.closed[&sockets[0]], CloseReason::Parked);
    assert_eq!(world.server.stats().parked, 6 * 128);
}

#[test]
fn connections_guests_and_joined_hosts_have_bounds() {
    let mut world = World::new();
    let host = world.device();
    for _ in 0..MAX_GUESTS {
        let guest = world.guest();
        world.join(&guest, &host.claim());
        world.silent(guest.socket);
    }
    let guest = world.guest();
    world.join(&guest, &host.claim());
    assert_eq!(world.take(guest.socket)["reason"], "Remote unavailable");

    for _ in 0..MAX_JOINED {
        let other = world.device();
        world.join(&guest, &other.claim());
        world.silent(guest.socket);
    }
    let other = world.device();
    world.join(&guest, &other.claim());
    assert_eq!(world.take(guest.socket)["reason"], "Remote unavailable");

    while world.server.handle_open(world.now, HOME.into()).is_some() {}
    assert_eq!(world.server.stats().connections, 300);
    assert_eq!(world.server.stats().refused, 1);
    const { assert!(MAX_CONNECTIONS >= 10_000) };
}

#[test]
fn stopping_tells_every_socket() {
    let mut world = World::new();
    let (host, guest) = world.session();
    world.server.handle_shutdown(world.now);
    world.settle();
    for socket in [host.socket, guest.socket] {
        assert_eq!(world.closed[&socket], CloseReason::Shutdown);
    }
    assert_eq!(CloseReason::Shutdown.close().code, 1001);
}
