//! Scripted servers of several generations on virtual time.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::testing::Seeded;

const HOST: &str = "482915307";

fn at(ms: u64) -> Monotonic {
    Monotonic::from_micros(ms * 1000)
}

fn host_id() -> DeviceId {
    DeviceId::parse(HOST).expect("nine digits")
}

fn guest() -> Client {
    let role = Role::Guest {
        host: host_id(),
        password: Password::new("Qx7b2M"),
    };
    Client::new(at(0), role)
}

fn host(device: Option<&str>) -> Client {
    let device = device.map(|password| (host_id(), Password::new(password)));
    Client::new(at(0), Role::Host { device })
}

/// What the client said, told and did since the last look.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    said: Vec<Value>,
    told: Vec<ClientEvent>,
    opened: usize,
    closed: usize,
}

fn look(client: &mut Client) -> Seen {
    let mut seen = Seen::default();
    while let Some(effect) = client.poll_effect() {
        match effect {
            ClientEffect::Open => seen.opened += 1,
            ClientEffect::Close => seen.closed += 1,
            ClientEffect::Send(text) => seen.said.push(serde_json::from_str(text.expose()).expect("JSON")),
            ClientEffect::Tell(event) => seen.told.push(event),
        }
    }
    seen
}

fn hear(client: &mut Client, ms: u64, message: &Value) -> Seen {
    client.handle_text(at(ms), &message.to_string());
    look(client)
}

fn logged_in(user: &str) -> Value {
    json!({ "type": "login", "user_id": user, "status": "success" })
}

/// A guest that waits for the offer.
fn joining() -> Client {
    let mut client = guest();
    client.handle_open(at(1));
    look(&mut client);
    hear(&mut client, 2, &logged_in("web-730184526"));
    client
}

fn offer() -> Value {
    json!({ "type": "offer", "remote_user_id": HOST, "transmission_id": HOST, "sdp": "v=0" })
}

#[test]
fn a_guest_logs_in_as_a_browser_joins_and_answers() {
    let mut client = guest();
    assert_eq!(look(&mut client).opened, 1);
    client.handle_open(at(1));
    let login = json!({ "type": "login", "user_id": "web", "session_resume_version": 1 });
    assert_eq!(look(&mut client).said, [login]);
    let seen = hear(&mut client, 2, &logged_in("web-730184526"));
    let join = json!({
        "type": "join_transmission", "user_id": "web-730184526", "transmission_id": "482915307@Qx7b2M",
    });
    assert_eq!(seen.said, [join]);

    // A host of 2025 writes the guest's id where the host's belongs.
    let mut old = offer();
    old["transmission_id"] = "web-730184526".into();
    let seen = hear(&mut client, 3, &old);
    let sdp = "v=0".to_owned();
    assert_eq!(
        seen.told,
        [ClientEvent::Offer {
            sdp,
            servers: Vec::new()
        }]
    );
    client.send_answer("v=1");
    client.send_candidate(HOST, "candidate:1", "Display1");
    let said = look(&mut client).said;
    assert_eq!(said[0]["remote_user_id"], HOST);
    assert_eq!(
        (&said[0]["type"], &said[0]["sdp"]),
        (&json!("answer"), &json!("v=1"))
    );
    let candidate = json!({
        "type": "new_candidate_mid", "transmission_id": HOST, "user_id": "web-730184526", "remote_user_id": HOST,
        "candidate": "candidate:1", "mid": "Display1",
    });
    assert_eq!(said[1], candidate);
    assert_eq!(client.next_deadline(), Some(at(3001)));
}

#[test]
fn only_the_host_asked_for_is_listened_to() {
    let mut client = joining();
    let stranger = "615204983";
    let messages = [
        json!({ "type": "offer", "remote_user_id": stranger, "sdp": "v=0" }),
        json!({ "type": "new_candidate_mid", "remote_user_id": stranger, "candidate": "c", "mid": "0" }),
        json!({ "type": "user_leave_transmission", "user_id": stranger, "transmission_id": HOST }),
        json!({ "type": "answer", "remote_user_id": HOST, "sdp": "v=0" }),
        json!({ "type": "user_join_transmission", "user_id": HOST, "status": "success" }),
    ];
    for message in messages {
        assert_eq!(hear(&mut client, 3, &message), Seen::default(), "{message}");
    }
}

#[test]
fn refusals_of_every_generation_have_their_meaning() {
    let reason =
        |reason: &str| json!({ "type": "user_join_transmission", "status": "failed", "reason": reason });
    let coded =
        |code: &str| json!({ "type": "user_join_transmission", "status": "failed", "error_code": code });
    let mut throttled = reason("Too many authentication attempts");
    throttled["retry_after"] = 900.into();
    let cases = [
        (reason("Incorrect password"), Failure::Rejected),
        (reason("Authentication failed"), Failure::Rejected),
        (reason("No such transmission id"), Failure::UnknownDevice),
        (reason("Remote unavailable"), Failure::Offline),
        (coded("REMOTE_UNAVAILABLE"), Failure::Offline),
        (coded("AUTHENTICATION_FAILED"), Failure::Rejected),
        (throttled, Failure::Throttled { retry_after: 900 }),
        (
            coded("CREDENTIAL_SERVICE_BUSY"),
            Failure::Throttled { retry_after: 1 },
        ),
    ];
    for (message, failure) in cases {
        let seen = hear(&mut joining(), 3, &message);
        assert_eq!(seen.told, [ClientEvent::Failed(failure)], "{message}");
        assert_eq!(seen.closed, 1);
    }
}

#[test]
fn a_refusal_after_the_offer_ends_nothing() {
    let mut client = joining();
    hear(&mut client, 3, &offer());
    let late =
        json!({ "type": "user_join_transmission", "status": "failed", "reason": "Remote unavailable" });
    assert_eq!(hear(&mut client, 4, &late), Seen::default());
}

#[test]
fn silence_after_a_join_is_an_answer_too() {
    let mut client = joining();
    let until = at(2) + JOIN;
    client.handle_text(at(15_000), r#"{"type":"pong"}"#);
    look(&mut client);
    client.handle_timeout(until);
    assert_eq!(look(&mut client).told, [ClientEvent::Failed(Failure::NoOffer)]);
    assert_eq!(client.next_deadline(), None);
}

#[test]
fn a_server_that_cannot_be_reached_is_tried_again_until_a_guest_has_no_patience_left() {
    let mut client = guest();
    let mut tried = look(&mut client).opened;
    let mut now = at(0);
    let mut last = Vec::new();
    while let Some(due) = client.next_deadline() {
        client.handle_closed(now + Duration::from_millis(5));
        now = client.next_deadline().unwrap_or(due);
        client.handle_timeout(now);
        let seen = look(&mut client);
        tried += seen.opened;
        last = seen.told;
    }
    assert!((4..8).contains(&tried), "{tried} attempts");
    assert_eq!(last.last(), Some(&ClientEvent::Failed(Failure::Unreachable)));
    assert!(now <= at(0) + GUEST_PATIENCE);
}

#[test]
fn a_silent_socket_is_given_up_and_a_session_outlives_it() {
    let mut client = joining();
    let ticket = json!({
        "type": "session_ticket", "transmission_id": HOST, "host_id": HOST, "guest_id": "web-730184526",
        "token": "5b0c",
    });
    hear(&mut client, 3, &ticket);
    hear(&mut client, 3, &offer());
    client.media_up(HOST);
    let reported = look(&mut client).said;
    assert_eq!(
        (&reported[0]["type"], &reported[0]["alive"]),
        (&json!("session_report"), &json!(true))
    );
    for second in [3, 6, 9] {
        client.handle_timeout(at(second * 1000 + 1));
        assert_eq!(look(&mut client).said, [json!({ "type": "ping" })]);
    }
    client.handle_timeout(at(10_003));
    let seen = look(&mut client);
    assert_eq!(
        (seen.closed, seen.told),
        (1, vec![ClientEvent::Lost { attempt: 1 }])
    );
    client.handle_timeout(at(11_003));
    assert_eq!(look(&mut client).opened, 1);
    client.handle_open(at(11_010));
    look(&mut client);
    // No second join, which would make the host throw the peer away; the ticket says that the session lives.
    let said = hear(&mut client, 11_020, &logged_in("web-111111111")).said;
    assert_eq!(said.len(), 1);
    assert_eq!(
        (&said[0]["type"], &said[0]["token"]),
        (&json!("session_report"), &json!("5b0c"))
    );
}

#[test]
fn a_join_whose_socket_broke_is_made_again() {
    let mut client = joining();
    client.handle_closed(at(50));
    look(&mut client);
    client.handle_timeout(at(1050));
    client.handle_open(at(1060));
    look(&mut client);
    let said = hear(&mut client, 1070, &logged_in("web-730184527")).said;
    assert_eq!(said[0]["type"], "join_transmission");
}

#[test]
fn a_browser_name_the_server_forgot_is_dropped() {
    let mut client = guest();
    client.handle_open(at(1));
    hear(&mut client, 2, &logged_in("web-730184526@Ab12Cd"));
    hear(&mut client, 3, &offer());
    client.handle_closed(at(4));
    client.handle_timeout(at(1004));
    look(&mut client);
    client.handle_open(at(1005));
    assert_eq!(look(&mut client).said[0]["user_id"], "web-730184526@Ab12Cd");
    let refused =
        json!({ "type": "login", "user_id": "", "status": "fail", "reason": "Authentication failed" });
    let seen = hear(&mut client, 1006, &refused);
    assert_eq!((seen.closed, seen.told.len()), (1, 1));
    client.handle_timeout(at(3006));
    client.handle_open(at(3007));
    assert_eq!(look(&mut client).said[0]["user_id"], "web");
}

#[test]
fn a_host_registers_once_and_comes_back_as_itself() {
    let mut client = host(None);
    look(&mut client);
    client.handle_open(at(1));
    assert_eq!(look(&mut client).said[0]["user_id"], "");
    let seen = hear(&mut client, 2, &logged_in("482915307@Qx7b2M"));
    let password = Some(Password::new("Qx7b2M"));
    assert_eq!(
        seen.told,
        [ClientEvent::Online {
            id: host_id(),
            password
        }]
    );
    client.change_password("1", Password::new("Zk41pT"));
    look(&mut client);
    let done = json!({ "type": "change_password", "request_id": "1", "status": "success" });
    assert_eq!(
        hear(&mut client, 3, &done).told,
        [ClientEvent::PasswordChanged(true)]
    );
    client.handle_closed(at(4));
    client.handle_timeout(at(1004));
    client.handle_open(at(1005));
    assert_eq!(look(&mut client).said[0]["user_id"], "482915307@Zk41pT");
    let seen = hear(&mut client, 1006, &logged_in(HOST));
    assert_eq!(
        seen.told,
        [ClientEvent::Online {
            id: host_id(),
            password: None
        }]
    );
}

#[test]
fn a_host_serves_guests_and_can_send_them_away() {
    let mut client = host(Some("Qx7b2M"));
    client.handle_open(at(1));
    look(&mut client);
    hear(&mut client, 2, &logged_in(HOST));
    let joined = json!({
        "type": "user_join_transmission", "transmission_id": HOST, "user_id": "web-730184526", "status": "success",
        "turn": { "host": "turn.example.net", "port": 3478, "username": "u", "password": "p", "expires_at": 1 },
    });
    let seen = hear(&mut client, 3, &joined);
    let [ClientEvent::Joined { guest, servers }] = &seen.told[..] else {
        panic!("{seen:?}");
    };
    assert_eq!((guest.as_str(), servers.len()), ("web-730184526", 3));
    client.send_offer(guest, "v=0");
    assert_eq!(look(&mut client).said[0]["transmission_id"], HOST);
    let answer = json!({ "type": "answer", "remote_user_id": guest, "sdp": "v=1" });
    let told = hear(&mut client, 4, &answer).told;
    assert!(matches!(&told[..], [ClientEvent::Answer { .. }]), "{told:?}");
    client.end_session(guest);
    let said = look(&mut client).said;
    assert_eq!(
        (&said[0]["type"], &said[0]["remote_user_id"]),
        (&json!("disconnect_peer"), &json!(guest))
    );
    client.shut_down();
    let seen = look(&mut client);
    assert_eq!(seen.said[0]["type"], "user_leave_transmission");
    assert_eq!((seen.closed, client.next_deadline()), (1, None));
}

#[test]
fn a_host_waits_as_long_as_it_is_told() {
    let mut client = host(Some("Qx7b2M"));
    client.handle_open(at(1));
    let busy = json!({
        "type": "login", "user_id": "", "status": "fail", "reason": "Too many authentication attempts",
        "retry_after": 900,
    });
    hear(&mut client, 2, &busy);
    assert_eq!(client.next_deadline(), Some(at(900_002)));
    client.handle_timeout(at(900_001));
    assert_eq!(look(&mut client).opened, 0);
    client.handle_timeout(at(900_002));
    assert_eq!(look(&mut client).opened, 1);
}

#[test]
fn ice_servers_are_read_in_both_forms() {
    let mut both = offer();
    both["turn"] = json!({ "host": "old.example.net", "port": 1, "username": "u", "password": "p" });
    both["ice"] = json!({ "version": 1, "servers": [
        { "urls": ["stun:[2001:db8::1]:3478", "stuns:x", 7] },
        { "urls": ["turn:turn.example.net:3478?transport=tcp"], "username": "u", "credential": "p" },
        { "urls": ["turn:nobody.example.net:3478"] },
    ] });
    let seen = hear(&mut joining(), 3, &both);
    let [ClientEvent::Offer { servers, .. }] = &seen.told[..] else {
        panic!("{seen:?}");
    };
    let hosts: Vec<&str> = servers.iter().map(|server| server.at.host.as_str()).collect();
    assert_eq!(hosts, ["2001:db8::1", "turn.example.net"]);
    assert!(matches!(
        servers[1].kind,
        IceServerKind::Turn {
            transport: crate::signaling::RelayTransport::Tcp,
            ..
        }
    ));
}

#[test]
fn nothing_secret_is_printed() {
    let mut client = joining();
    client.handle_closed(at(4));
    let shown = format!("{client:?}{:?}", client.effects);
    assert!(!shown.contains("Qx7b2M"), "{shown}");
}

#[test]
fn noise_never_upsets_a_client() {
    let words = [
        "login",
        "offer",
        "answer",
        "new_candidate_mid",
        "user_join_transmission",
        "session_ticket",
        "pong",
        "change_password",
        "user_leave_transmission",
        "x",
    ];
    for seed in 0..300 {
        let mut random = Seeded::new(seed);
        let mut client = if random.flip() { guest() } else { host(None) };
        let mut now = 0;
        for _ in 0..60 {
            now += u64::from(random.below(4000));
            match random.below(6) {
                0 => client.handle_open(at(now)),
                1 => client.handle_closed(at(now)),
                2 => client.handle_timeout(at(now)),
                3 => client.handle_text(at(now), "{\"type\":"),
                _ => {
                    let value = |random: &mut Seeded| match random.below(4) {
                        0 => json!(HOST),
                        1 => json!("web-730184526@x"),
                        2 => json!("success"),
                        _ => json!([{ "urls": ["turn:"] }]),
                    };
                    let mut message = json!({ "type": words[random.index(words.len())] });
                    for name in [
                        "user_id",
                        "remote_user_id",
                        "status",
                        "sdp",
                        "candidate",
                        "ice",
                        "token",
                        "host_id",
                        "guest_id",
                    ] {
                        if random.flip() {
                            message[name] = value(&mut random);
                        }
                    }
                    client.handle_text(at(now), &message.to_string());
                }
            }
            look(&mut client);
            // A machine that is not over always has a reason to be woken.
            assert_eq!(
                client.next_deadline().is_none(),
                client.state == State::Over,
                "seed {seed}"
            );
        }
    }
}
