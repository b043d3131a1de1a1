//! Passwords changed, presence, TURN credentials.

use super::*;

fn change(request_id: &str, password: &str) -> Value {
    json!({ "type": "change_password", "request_id": request_id, "new_password": password })
}

#[test]
fn a_changed_password_is_the_only_one_from_then_on() {
    let mut world = World::new();
    let host = world.device();
    world.say(host.socket, change("d1", "Zk41pT"));
    let expected = json!({
        "type": "change_password", "request_id": "d1", "user_id": host.id, "status": "success",
    });
    assert_eq!(world.take(host.socket), expected);
    let guest = world.guest();
    world.join(&guest, &host.claim());
    assert_eq!(world.take(guest.socket)["reason"], "Authentication failed");
    world.join(&guest, &format!("{}@Zk41pT", host.id));
    assert_eq!(world.take(host.socket)["type"], "user_join_transmission");

    world.say(host.socket, change("d1", "Zk41pT"));
    assert_eq!(world.take(host.socket), expected, "a lost reply can be had again");
    world.say(host.socket, change("d1", "other1"));
    assert_eq!(world.take(host.socket)["reason"], "Request ID was already used");
}

#[test]
fn a_change_ends_the_reconnect_token() {
    let mut world = World::new();
    let host = world.device();
    let socket = world.open();
    world.say(
        socket,
        json!({ "type": "login", "user_id": host.claim(), "reconnect_version": 1 }),
    );
    let token = world.take(socket)["reconnect_token"].clone();
    world.say(socket, change("d1", "Zk41pT"));
    world.take(socket);
    let back = world.open();
    world.say(
        back,
        json!({ "type": "login", "user_id": host.id, "reconnect_token": token }),
    );
    assert_eq!(world.take(back)["reconnect_rejected"], true);
}

#[test]
fn refused_changes_say_why() {
    let mut world = World::new();
    let (host, guest, stranger) = (world.device(), world.guest(), world.open());
    let no_id = json!({ "type": "change_password", "new_password": "Zk41pT" });
    for (socket, message, reason) in [
        (host.socket, no_id, "Missing or invalid request ID"),
        (
            host.socket,
            change(&"x".repeat(129), "Zk41pT"),
            "Missing or invalid request ID",
        ),
        (stranger, change("d", "Zk41pT"), "Not authenticated"),
        (
            guest.socket,
            change("d", "Zk41pT"),
            "Password changes are not allowed for this identity",
        ),
        (
            host.socket,
            change("d", "short"),
            "Password must contain exactly 6 characters",
        ),
        (
            host.socket,
            change("d", "too long"),
            "Password must contain exactly 6 characters",
        ),
    ] {
        world.say(socket, message);
        let reply = world.take(socket);
        assert_eq!(
            (&reply["status"], &reply["reason"]),
            (&json!("fail"), &json!(reason))
        );
    }
    world.broken = true;
    world.say(host.socket, change("d", "Zk41pT"));
    assert_eq!(world.take(host.socket)["reason"], "Credential service busy");
}

#[test]
fn a_change_whose_socket_has_gone_still_counts() {
    let mut world = World::new();
    let host = world.device();
    let second = world.open();
    world.say(second, json!({ "type": "login", "user_id": host.claim() }));
    world.take(second);
    world.slow = true;
    world.say(second, change("d1", "Zk41pT"));
    world.close(second);
    world.answer();
    let guest = world.guest();
    world.join(&guest, &format!("{}@Zk41pT", host.id));
    assert_eq!(world.take(host.socket)["status"], "success");
}

#[test]
fn presence_is_told_and_watched() {
    let mut world = World::new();
    let (watcher, device) = (world.device(), world.device());
    let ask = |devices: &[&str], subscribe: Option<bool>| {
        let mut message = json!({
            "type": "recent_connections_presence", "user_id": watcher.id, "devices": devices,
        });
        message["subscribe"] = json!(subscribe);
        message
    };
    world.say(
        watcher.socket,
        ask(&[&device.id, "999 999 999", "x", &device.id], Some(true)),
    );
    let expected = json!({
        "type": "presence",
        "devices": [{ "id": device.id, "online": true }, { "id": "999999999", "online": false }],
    });
    assert_eq!(world.take(watcher.socket), expected);

    world.close(device.socket);
    let update = json!({ "type": "presence_update", "id": device.id, "online": false });
    assert_eq!(world.take(watcher.socket), update);
    let (one, two) = (world.open(), world.open());
    for socket in [one, two] {
        world.say(socket, json!({ "type": "login", "user_id": device.claim() }));
    }
    assert_eq!(world.take(watcher.socket)["online"], true);
    world.close(one);
    world.silent(watcher.socket);

    world.say(watcher.socket, ask(&[], Some(false)));
    world.take(watcher.socket);
    world.close(two);
    assert_eq!(
        world.take(watcher.socket)["online"],
        false,
        "a query leaves the list alone"
    );
    world.say(watcher.socket, ask(&[], Some(true)));
    world.take(watcher.socket);
    let again = world.open();
    world.say(again, json!({ "type": "login", "user_id": device.claim() }));
    world.silent(watcher.socket);
}

#[test]
fn presence_is_for_devices_under_their_own_name() {
    let mut world = World::new();
    let (host, other, guest) = (world.device(), world.device(), world.guest());
    let ask = |user: &str| json!({ "type": "recent_connections_presence", "user_id": user, "devices": [] });
    world.say(guest.socket, ask(&guest.id));
    world.say(host.socket, ask(&other.id));
    world.silent(guest.socket);
    world.silent(host.socket);
}

#[test]
fn turn_credentials_are_for_who_is_logged_in() {
    let mut world = World::new();
    let (guest, stranger) = (world.guest(), world.open());
    world.say(stranger, json!({ "type": "turn_credentials" }));
    assert_eq!(world.take(stranger)["reason"], "Not authenticated");
    world.say(guest.socket, json!({ "type": "turn_credentials" }));
    let reply = world.take(guest.socket);
    assert_eq!(reply["status"], "success");
    let user = reply["turn"]["username"].as_str().unwrap();
    assert!(user.starts_with(&format!("1790003600:{}:", guest.id)), "{user}");
}

#[test]
fn clients_are_counted_once_by_platform() {
    let mut world = World::new();
    let (host, guest) = (world.device(), world.guest());
    let info = |platform: &str| json!({ "type": "client_info", "version": "1.5.3", "platform": platform });
    for (socket, platform) in [
        (host.socket, "linux"),
        (host.socket, "macos"),
        (guest.socket, "ios"),
    ] {
        world.say(socket, info(platform));
        world.silent(socket);
    }
    assert_eq!(world.server.stats().platforms, BTreeMap::from([("linux", 1)]));
}
