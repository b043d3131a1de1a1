//! Identities: new, known, temporary, and coming back with a token.

use super::*;

#[test]
fn a_new_device_is_told_its_password_once() {
    let mut world = World::new();
    let socket = world.open();
    world.say(
        socket,
        json!({ "type": "login", "user_id": "", "ice_config_version": 1 }),
    );
    let reply = world.take(socket);
    let (id, password) = reply["user_id"].as_str().unwrap().split_once('@').unwrap();
    assert!(DeviceId::parse(id).is_some());
    assert_eq!(password.len(), 6);
    assert_eq!(
        (&reply["status"], &reply["ice_config_version"]),
        (&json!("success"), &json!(1))
    );
    assert_eq!(reply.get("turn"), None, "delivered with each connection instead");

    let again = world.open();
    world.say(
        again,
        json!({ "type": "login", "user_id": format!(" {id}@{password}") }),
    );
    let reply = world.take(again);
    assert_eq!(reply["user_id"], id);
    assert_eq!(reply["turn"]["host"], "turn.example.net");
    assert_eq!(reply.get("ice_config_version"), None);
}

#[test]
fn an_id_that_is_taken_is_drawn_again() {
    let mut world = World::new();
    world.slow = true;
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": "" }));
    for _ in 0..3 {
        let first = world.asked.pop_front();
        world.server.handle_store(world.now, StoreOutcome::Refused);
        world.settle();
        assert_ne!(world.asked.front(), first.as_ref());
        world.silent(socket);
    }
    world.answer();
    assert_eq!(world.take(socket)["status"], "success");
}

#[test]
fn registration_gives_up_after_some_tries() {
    let mut world = World::new();
    world.slow = true;
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": "" }));
    while world.asked.pop_front().is_some() {
        world.server.handle_store(world.now, StoreOutcome::Refused);
        world.settle();
    }
    assert_eq!(world.take(socket)["reason"], "Authentication failed");
}

#[test]
fn a_browser_gets_a_bare_id_unless_it_can_use_a_password() {
    let mut world = World::new();
    let guest = world.guest();
    assert!(matches!(Identity::parse(&guest.id), Some(Identity::Web(_))));

    let socket = world.open();
    world.say(
        socket,
        json!({ "type": "login", "user_id": "web", "session_resume_version": 1 }),
    );
    let claim = world.take(socket)["user_id"].as_str().unwrap().to_owned();
    let (id, _) = claim.split_once('@').unwrap();
    world.close(socket);

    let back = world.open();
    world.say(back, json!({ "type": "login", "user_id": claim }));
    assert_eq!(world.take(back)["user_id"], id);
    for wrong in [id.to_owned(), format!("{id}@wrong1"), guest.id] {
        let socket = world.open();
        world.say(socket, json!({ "type": "login", "user_id": wrong }));
        assert_eq!(world.take(socket)["reason"], "Authentication failed");
    }
}

#[test]
fn a_native_clients_extra_socket_needs_no_password() {
    let mut world = World::new();
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": "C-482915307" }));
    assert_eq!(world.take(socket)["user_id"], "C-482915307");
}

#[test]
fn every_wrong_claim_gets_the_same_answer() {
    let mut world = World::new();
    let known = world.device();
    let unknown = if known.id == "999999999" {
        "999999998"
    } else {
        "999999999"
    };
    for claim in [
        format!("{}@wrong1", known.id),
        format!("{unknown}@wrong1"),
        known.id,
        "root@x".into(),
        "x".repeat(200),
    ] {
        let socket = world.open();
        world.say(socket, json!({ "type": "login", "user_id": claim }));
        let expected = json!({
            "type": "login", "user_id": "", "status": "fail", "reason": "Authentication failed",
        });
        assert_eq!(world.take(socket), expected, "{claim}");
    }
}

#[test]
fn a_socket_has_one_identity() {
    let mut world = World::new();
    let guest = world.guest();
    world.say(guest.socket, json!({ "type": "login", "user_id": "web" }));
    assert_eq!(world.take(guest.socket)["reason"], "Already authenticated");
}

#[test]
fn a_second_login_behind_the_first_finds_the_socket_taken() {
    let mut world = World::new();
    world.slow = true;
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": "" }));
    world.say(socket, json!({ "type": "login", "user_id": "web" }));
    world.answer();
    assert_eq!(world.take(socket)["status"], "success");
    assert_eq!(world.take(socket)["reason"], "Already authenticated");
}

#[test]
fn a_reconnect_token_replaces_the_password_until_it_ends() {
    let mut world = World::new();
    let device = world.device();
    let socket = world.open();
    let login = json!({ "type": "login", "user_id": device.claim(), "reconnect_version": 1 });
    world.say(socket, login);
    let reply = world.take(socket);
    let token = reply["reconnect_token"].clone();
    assert_eq!(reply["reconnect_expires_at"], 1_790_000_000_u64 + 30 * 24 * 3600);

    let resume = json!({
        "type": "login", "user_id": device.id, "reconnect_version": 1, "reconnect_token": token,
    });
    let back = world.open();
    world.say(back, resume.clone());
    let again = world.take(back);
    assert_eq!(
        (&again["status"], &again["reconnected"]),
        (&json!("success"), &json!(true))
    );
    assert_eq!(again["reconnect_expires_at"], reply["reconnect_expires_at"]);
    assert_eq!(again.get("reconnect_token"), None);

    world.say(back, json!({ "type": "revoke_reconnect_credential" }));
    assert_eq!(world.take(back)["status"], "success");
    let late = world.open();
    world.say(late, resume);
    assert_eq!(world.take(late)["reconnect_rejected"], true);
    world.say(late, json!({ "type": "login", "user_id": device.claim() }));
    assert_eq!(world.take(late)["status"], "success");
}

#[test]
fn only_devices_have_a_token_to_revoke() {
    let mut world = World::new();
    let guest = world.guest();
    world.say(guest.socket, json!({ "type": "revoke_reconnect_credential" }));
    let reply = world.take(guest.socket);
    assert_eq!(reply["reason"], "Unable to revoke reconnect credential");
}

#[test]
fn messages_behind_a_login_keep_their_order() {
    let mut world = World::new();
    let host = world.device();
    let other = world.device();
    world.slow = true;
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": other.claim() }));
    world.say(socket, json!({ "type": "turn_credentials" }));
    let watch = json!({ "type": "recent_connections_presence", "devices": [host.id] });
    world.say(socket, watch);
    world.say(socket, json!({ "type": "ping" }));
    assert_eq!(world.take(socket)["type"], "pong", "a heartbeat does not wait");
    world.silent(socket);
    world.answer();
    let order: Vec<Value> = (0..3).map(|_| world.take(socket)["type"].clone()).collect();
    assert_eq!(order, ["login", "turn_credentials", "presence"]);
}

#[test]
fn a_store_that_fails_is_not_a_wrong_password() {
    let mut world = World::new();
    let device = world.device();
    world.broken = true;
    let socket = world.open();
    world.say(socket, json!({ "type": "login", "user_id": device.claim() }));
    let reply = world.take(socket);
    assert_eq!(reply["reason"], "Credential service busy");
    assert_eq!(reply["retry_after"], 1);
    assert!(world.notes.contains(&Note::StoreFailed));
    world.broken = false;
    world.say(socket, json!({ "type": "login", "user_id": device.claim() }));
    assert_eq!(world.take(socket)["status"], "success");
}
