//! Joining, forwarding, leaving, coming back.

use super::*;

#[test]
fn a_session_from_join_to_leave() {
    let mut world = World::new();
    let (host, guest) = (world.device(), world.guest());
    world.join(&guest, &format!("{} {}", &host.claim()[..3], &host.claim()[3..]));
    world.silent(guest.socket);
    let joined = world.take(host.socket);
    assert_eq!(joined["transmission_id"], host.id);
    assert_eq!(
        (&joined["user_id"], &joined["status"]),
        (&json!(guest.id), &json!("success"))
    );
    assert!(joined["turn"]["username"].as_str().unwrap().contains(&host.id));
    assert_eq!(joined["ice"]["version"], 1);

    world.say(host.socket, forward("offer", &host.id, &guest.id, &host.id));
    let offer = world.take(guest.socket);
    assert_eq!(
        (&offer["type"], &offer["sdp"]),
        (&json!("offer"), &json!("v=0\r\n"))
    );
    assert_eq!(offer["remote_user_id"], host.id);
    assert_eq!(offer.get("user_id"), None);
    assert!(offer["turn"]["username"].as_str().unwrap().contains(&guest.id));
    assert_eq!(offer["ice"]["servers"][1]["username"], offer["turn"]["username"]);

    world.say(guest.socket, forward("answer", &guest.id, &host.id, &host.id));
    let expected = json!({
        "type": "answer", "sdp": "v=0\r\n", "remote_user_id": guest.id, "transmission_id": host.id,
    });
    assert_eq!(world.take(host.socket), expected);

    for (from, to) in [(&host, &guest), (&guest, &host)] {
        for kind in ["new_candidate_mid", "new_candidate"] {
            world.say(from.socket, forward(kind, &from.id, &to.id, &host.id));
            let candidate = world.take(to.socket);
            assert_eq!(
                (&candidate["type"], &candidate["remote_user_id"]),
                (&json!(kind), &json!(from.id))
            );
        }
    }

    let leave = |kind: &str| json!({ "type": kind, "user_id": guest.id, "transmission_id": host.id });
    world.say(guest.socket, leave("user_leave_transmission"));
    assert_eq!(world.take(host.socket), leave("user_leave_transmission"));
    world.say(host.socket, forward("offer", &host.id, &guest.id, &host.id));
    world.silent(guest.socket);
}

#[test]
fn the_older_leave_message_works_too() {
    let mut world = World::new();
    let (host, guest) = world.session();
    world.say(
        guest.socket,
        json!({ "type": "leave_transmission", "user_id": guest.id, "transmission_id": host.id }),
    );
    assert_eq!(world.take(host.socket)["type"], "user_leave_transmission");
}

#[test]
fn hosts_that_name_their_guest_are_corrected() {
    let mut world = World::new();
    let (host, guest) = world.session();
    world.say(host.socket, forward("offer", &host.id, &guest.id, &guest.id));
    assert_eq!(world.take(guest.socket)["transmission_id"], host.id);
}

#[test]
fn nothing_passes_between_strangers() {
    let mut world = World::new();
    let (host, guest) = world.session();
    let (other_host, other_guest) = world.session();
    let (h, g, oh, og) = (&host.id, &guest.id, &other_host.id, &other_guest.id);
    for (socket, message) in [
        (guest.socket, forward("answer", g, oh, oh)),
        (guest.socket, forward("new_candidate_mid", g, oh, h)),
        (guest.socket, forward("new_candidate_mid", g, h, oh)),
        (guest.socket, forward("answer", og, oh, oh)),
        (guest.socket, forward("answer", g, og, h)),
        (host.socket, forward("offer", h, og, h)),
        (host.socket, forward("offer", h, og, oh)),
        (host.socket, forward("offer", h, oh, h)),
        (host.socket, forward("offer", h, "C-nobody", h)),
    ] {
        world.say(socket, message);
    }
    for socket in [host.socket, guest.socket, other_host.socket, other_guest.socket] {
        world.silent(socket);
    }
    assert_eq!(world.server.stats().dropped, 9);
}

#[test]
fn a_name_taken_on_another_socket_receives_nothing() {
    let mut world = World::new();
    let host = world.device();
    let (first, second) = (world.open(), world.open());
    for socket in [first, second] {
        world.say(socket, json!({ "type": "login", "user_id": "C-1" }));
        world.take(socket);
    }
    let join = json!({ "type": "join_transmission", "user_id": "C-1", "transmission_id": host.claim() });
    world.say(first, join);
    world.take(host.socket);
    world.say(second, forward("answer", "C-1", &host.id, &host.id));
    world.silent(host.socket);
    world.say(host.socket, forward("offer", &host.id, "C-1", &host.id));
    world.silent(second);
    assert_eq!(world.take(first)["type"], "offer");
}

#[test]
fn failed_joins_say_why() {
    let mut world = World::new();
    let (host, guest) = (world.device(), world.guest());
    let offline = world.device();
    world.close(offline.socket);
    let unknown = (100_000_000_u32..)
        .map(|n| n.to_string())
        .find(|id| !world.rows.contains_key(&DeviceId::parse(id).unwrap()));
    for (claim, reason) in [
        (format!("{}@wrong1", host.id), "Authentication failed"),
        (format!("{}@wrong1", unknown.unwrap()), "Authentication failed"),
        (format!("{}@wrong1", offline.id), "Authentication failed"),
        (host.id.clone(), "Authentication failed"),
        ("nobody@x".to_owned(), "Authentication failed"),
        (offline.claim(), "Remote unavailable"),
    ] {
        world.join(&guest, &claim);
        let id = claim.split('@').next().unwrap();
        let expected = json!({
            "type": "user_join_transmission", "transmission_id": id, "status": "failed", "reason": reason,
        });
        assert_eq!(world.take(guest.socket), expected);
    }
    world.silent(host.socket);
}

#[test]
fn only_who_is_logged_in_joins() {
    let mut world = World::new();
    let (host, guest) = (world.device(), world.guest());
    let stranger = world.open();
    let join = json!({ "type": "join_transmission", "user_id": guest.id, "transmission_id": host.claim() });
    world.say(stranger, join);
    assert_eq!(world.take(stranger)["reason"], "Not authenticated");
    let other = world.guest();
    world.join(
        &Peer {
            id: guest.id,
            ..other.clone()
        },
        &host.claim(),
    );
    assert_eq!(world.take(other.socket)["reason"], "Not authenticated");
    world.silent(host.socket);
}

#[test]
fn a_device_cannot_join_itself() {
    let mut world = World::new();
    let host = world.device();
    world.join(&host, &host.claim());
    assert_eq!(world.take(host.socket)["reason"], "Remote unavailable");
}

#[test]
fn a_host_that_is_online_is_joined_without_the_store() {
    let mut world = World::new();
    let host = world.device();
    for _ in 0..100 {
        let guest = world.guest();
        world.join(&guest, &host.claim());
        assert_eq!(world.take(host.socket)["status"], "success");
        world.close(guest.socket);
    }
    assert_eq!(world.checks, 0);
}

#[test]
fn a_host_that_came_back_with_a_token_is_checked_once() {
    let mut world = World::new();
    let host = world.device();
    world.say(host.socket, json!({ "type": "ping" }));
    world.take(host.socket);
    let socket = world.open();
    world.say(
        socket,
        json!({ "type": "login", "user_id": host.claim(), "reconnect_version": 1 }),
    );
    let token = world.take(socket)["reconnect_token"].clone();
    world.close(socket);
    world.close(host.socket);
    let back = world.open();
    world.say(
        back,
        json!({ "type": "login", "user_id": host.id, "reconnect_token": token }),
    );
    world.take(back);
    let checks = world.checks;
    for _ in 0..3 {
        let guest = world.guest();
        world.join(&guest, &host.claim());
        assert_eq!(world.take(back)["status"], "success");
    }
    assert_eq!(world.checks, checks + 1);
}

#[test]
fn a_second_join_replaces_the_first() {
    let mut world = World::new();
    let (host, guest) = world.session();
    world.join(&guest, &host.claim());
    assert_eq!(world.take(host.socket)["user_id"], guest.id);
    assert_eq!(world.server.stats().sessions, 1);
}

#[test]
fn the_newest_socket_of_a_host_is_called_and_an_older_one_steps_in() {
    let mut world = World::new();
    let (host, guest) = world.session();
    let newer = world.open();
    world.say(newer, json!({ "type": "login", "user_id": host.claim() }));
    world.take(newer);
    world.say(guest.socket, forward("answer", &guest.id, &host.id, &host.id));
    assert_eq!(world.take(newer)["type"], "answer");
    world.close(newer);
    world.say(guest.socket, forward("answer", &guest.id, &host.id, &host.id));
    assert_eq!(world.take(host.socket)["type"], "answer");
}

#[test]
fn a_host_that_releases_its_transmission_is_gone_until_it_logs_in_again() {
    let mut world = World::new();
    let (host, guest) = world.session();
    let leave = json!({ "type": "user_leave_transmission", "user_id": host.id, "transmission_id": host.id });
    world.say(host.socket, leave.clone());
    assert_eq!(world.take(guest.socket), leave);
    world.join(&guest, &host.claim());
    assert_eq!(world.take(guest.socket)["reason"], "Remote unavailable");
    let again = world.open();
    world.say(again, json!({ "type": "login", "user_id": host.claim() }));
    world.join(&guest, &host.claim());
    world.take(again);
    assert_eq!(world.take(again)["status"], "success");
}

#[test]
fn a_host_removes_one_guest_and_no_guest_removes_another() {
    let mut world = World::new();
    let (host, guest) = world.session();
    let other = world.guest();
    world.join(&other, &host.claim());
    world.take(host.socket);
    let remove = |by: &Peer, whom: &Peer| {
        json!({
            "type": "disconnect_peer", "user_id": by.id, "transmission_id": host.id,
            "remote_user_id": whom.id,
        })
    };
    world.say(other.socket, remove(&other, &guest));
    world.silent(guest.socket);
    world.say(host.socket, remove(&host, &guest));
    let expected = json!({
        "type": "user_leave_transmission", "user_id": host.id, "transmission_id": host.id,
    });
    assert_eq!(world.take(guest.socket), expected);
    world.silent(other.socket);
    world.say(host.socket, forward("offer", &host.id, &other.id, &host.id));
    assert_eq!(world.take(other.socket)["type"], "offer");
}

#[test]
fn sockets_that_just_close_tell_nobody() {
    let mut world = World::new();
    let (host, guest) = world.session();
    world.close(guest.socket);
    world.silent(host.socket);
    assert_eq!(world.server.stats().sessions, 0, "it had no ticket");
    let (host, guest) = world.session();
    world.close(host.socket);
    world.silent(guest.socket);
    let back = world.open();
    world.say(back, json!({ "type": "login", "user_id": host.claim() }));
    world.take(back);
    world.say(
        guest.socket,
        forward("new_candidate_mid", &guest.id, &host.id, &host.id),
    );
    assert_eq!(world.take(back)["type"], "new_candidate_mid");
}

/// A session of two ends that can resume, and its ticket as a report.
fn resumable(world: &mut World) -> (Peer, Peer, Value) {
    let host = world.device();
    let socket = world.open();
    world.say(
        socket,
        json!({ "type": "login", "user_id": "web", "session_resume_version": 1 }),
    );
    let claim = world.take(socket)["user_id"].as_str().unwrap().to_owned();
    let (id, password) = claim.split_once('@').unwrap();
    let guest = Peer {
        socket,
        id: id.to_owned(),
        password: password.to_owned(),
    };
    world.join(&guest, &host.claim());
    let mut report = world.take(guest.socket);
    assert_eq!(world.take(host.socket), report, "both get the ticket");
    assert_eq!(world.take(host.socket)["type"], "user_join_transmission");
    report["type"] = json!("session_report");
    report["alive"] = json!(true);
    (host, guest, report)
}

#[test]
fn a_ticket_brings_a_guest_back() {
    let mut world = World::new();
    let (host, guest, report) = resumable(&mut world);
    world.close(guest.socket);
    let back = world.open();
    world.say(back, json!({ "type": "login", "user_id": guest.claim() }));
    world.take(back);
    world.say(host.socket, forward("offer", &host.id, &guest.id, &host.id));
    world.silent(back);
    world.say(back, report.clone());
    world.silent(back);
    world.say(host.socket, report);
    assert_eq!(world.take(back)["type"], "session_resumed");
    assert_eq!(world.take(host.socket)["type"], "session_resumed");
    world.say(host.socket, forward("offer", &host.id, &guest.id, &host.id));
    assert_eq!(world.take(back)["type"], "offer");
}

#[test]
fn a_ticket_ends_with_its_session() {
    let mut world = World::new();
    let (host, guest, report) = resumable(&mut world);
    let mut wrong = report.clone();
    wrong["token"] = json!("0".repeat(64));
    wrong["alive"] = json!(false);
    world.say(guest.socket, wrong);
    assert_eq!(world.server.stats().sessions, 1);
    let mut over = report.clone();
    over["alive"] = json!(false);
    world.say(host.socket, over);
    assert_eq!(world.server.stats().sessions, 0);
    world.say(guest.socket, report.clone());
    world.say(host.socket, report);
    world.silent(guest.socket);
    world.silent(host.socket);
}

#[test]
fn a_guest_that_does_not_come_back_is_forgotten() {
    let mut world = World::new();
    let (host, guest, _) = resumable(&mut world);
    world.close(guest.socket);
    world.pass_alive(610, &[host.socket]);
    assert_eq!(world.server.stats().sessions, 1);
    world.pass_alive(15, &[host.socket]);
    assert_eq!(world.server.stats().sessions, 0);
}

#[test]
fn who_is_in_a_transmission_is_told_for_its_password() {
    let mut world = World::new();
    let (host, guest) = world.session();
    let query = |claim: String| json!({ "type": "query_user_id_list", "transmission_id": claim });
    world.say(guest.socket, query(host.claim()));
    let reply = world.take(guest.socket);
    assert_eq!(reply["user_id_list"], json!([host.id, guest.id]));
    assert_eq!(reply["status"], "success");
    world.say(guest.socket, query(format!("{}@wrong1", host.id)));
    assert_eq!(world.take(guest.socket)["reason"], "Authentication failed");
    let stranger = world.open();
    world.say(stranger, query(host.claim()));
    assert_eq!(world.take(stranger)["reason"], "Not authenticated");
}

#[test]
fn without_turn_servers_the_configuration_is_empty() {
    let mut world = World::with(IceConfig::default(), 60);
    let (host, guest) = (world.device(), world.guest());
    world.join(&guest, &host.claim());
    let joined = world.take(host.socket);
    assert_eq!(joined.get("turn"), None);
    assert_eq!(joined["ice"]["servers"], json!([]));
    world.say(guest.socket, json!({ "type": "turn_credentials" }));
    let reply = world.take(guest.socket);
    assert_eq!(reply["reason"], "TURN credentials are not configured");
}
