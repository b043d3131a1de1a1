//! A remote desktop end to end: signaling server, host and agent as processes, pictures over WebRTC on loopback.

use serde_json::{Value, json};

use crate::signal::process::Server;
use crate::support::agent::{Agent, Launch};
use crate::support::host::Host;

const DESKTOP: &str = "test:?size=640x360&fps=30";

/// An agent that is to see `device` through `server`.
fn agent(name: &str, server: &Server, password: &str) -> Agent {
    Launch::remote(name, server.address())
        .password(Some(&format!("{password}\n")))
        .spawn()
}

fn connect(agent: &mut Agent, device: &str, mode: &str) {
    agent.ok(
        "connect",
        &json!({ "device": device, "mode": mode, "display": 0 }),
    );
}

fn ready(agent: &mut Agent) -> Value {
    agent.status_when("ready", |status| status["state"] == "ready")
}

/// What `status` gives as the reason of a failure.
fn failure(agent: &mut Agent) -> Value {
    agent.status_when("failed", |status| status["state"] == "failed")["error"].clone()
}

#[test]
fn an_agent_sees_a_host_found_through_signaling() {
    let server = Server::plain("remote-server");
    let host = Host::start("remote-host", server.address(), &["--source", DESKTOP]);
    let mut agent = agent("remote-agent", &server, host.password());
    connect(&mut agent, host.id(), "observe");
    let status = ready(&mut agent);
    assert_eq!(status["transport"]["kind"], "webrtc");
    assert_eq!(status["source_size"], json!({ "width": 640, "height": 360 }));
    let status = agent.status_when("told the host's system", |status| {
        !status["host_platform"].is_null()
    });
    assert_eq!(status["host_platform"], "linux");
    let size = json!({ "width": 640, "height": 360 });
    assert_eq!(
        status["displays"],
        json!([{ "index": 0, "name": "Display1", "size": size }])
    );
    let first = agent.ok("screenshot", &json!({ "timeout_ms": 5000 }));
    let after = json!({
        "timeout_ms": 5000, "after_frame_id": first["metadata"]["frame_id"],
        "generation": first["metadata"]["generation"],
    });
    let second = agent.ok("screenshot", &after);
    assert_ne!(first["data"], second["data"], "the generated desktop moves");

    host.note("is connected");
    agent.ok("exit", &json!({}));
    // A guest that only vanished would be lost first.
    let news = host.note("web-");
    assert!(news.ends_with("has left"), "{news}");
    let log = server.stop();
    assert!(!log.contains(host.password()));
    let (status, _) = host.stop();
    assert!(status.success());
    agent.wait();
    assert!(!agent.take_errors().contains("password"));
}

#[test]
fn what_stands_in_the_way_has_a_code() {
    let server = Server::plain("remote-refusals");
    let host = Host::start("remote-refusals-host", server.address(), &["--source", DESKTOP]);
    let (id, password) = (host.id().to_owned(), host.password().to_owned());

    let mut wrong = agent("remote-wrong", &server, "wrong1");
    connect(&mut wrong, &id, "observe");
    assert_eq!(failure(&mut wrong)["code"], "AUTHENTICATION_FAILED");

    let mut unknown = agent("remote-unknown", &server, &password);
    connect(&mut unknown, "999999999", "observe");
    assert_eq!(failure(&mut unknown)["code"], "AUTHENTICATION_FAILED");

    host.stop();
    let mut offline = agent("remote-offline", &server, &password);
    connect(&mut offline, &id, "observe");
    assert_eq!(failure(&mut offline)["code"], "DEVICE_UNAVAILABLE");

    let mut mute = Launch::remote("remote-mute", server.address())
        .password(Some("\n"))
        .spawn();
    connect(&mut mute, &id, "observe");
    assert_eq!(failure(&mut mute)["code"], "CREDENTIALS_MISSING");

    let mut zero = agent("remote-zero", &server, &password);
    connect(&mut zero, "000000000", "observe");
    assert_eq!(failure(&mut zero)["code"], "TRANSPORT_UNAVAILABLE");
}

#[test]
fn pictures_go_on_while_signaling_is_gone() {
    let server = Server::plain("remote-signaling-lost");
    let host = Host::start(
        "remote-signaling-lost-host",
        server.address(),
        &["--source", DESKTOP],
    );
    let mut agent = agent("remote-signaling-lost-agent", &server, host.password());
    connect(&mut agent, host.id(), "observe");
    ready(&mut agent);
    drop(server);
    host.note("the signaling server is lost");
    let seen = agent.ok("status", &json!({}))["frame_id"]
        .as_u64()
        .expect("a number");
    agent.status_when("further pictures", |status| {
        status["frame_id"].as_u64() > Some(seen + 30)
    });
}

#[test]
fn a_host_that_ends_says_so_and_one_that_dies_is_waited_for() {
    let server = Server::plain("remote-endings");
    let host = Host::start("remote-endings-host", server.address(), &["--source", DESKTOP]);
    let (id, password) = (host.id().to_owned(), host.password().to_owned());
    let mut polite = agent("remote-endings-polite", &server, &password);
    connect(&mut polite, &id, "observe");
    ready(&mut polite);
    let (_, data) = host.stop();
    let status = polite.status_when("told of the end", |status| status["transport_state"] == "ended");
    assert_eq!(
        (&status["state"], &status["error"]["code"]),
        (&json!("disconnected"), &json!("SOURCE_ENDED"))
    );

    let mut host = Host::start_in(data, server.address(), &["--source", DESKTOP]);
    assert_eq!(
        (host.id(), host.password()),
        (id.as_str(), password.as_str()),
        "the identity is kept"
    );
    let mut patient = agent("remote-endings-patient", &server, &password);
    connect(&mut patient, &id, "observe");
    ready(&mut patient);
    host.kill();
    patient.status_when("noticed", |status| status["transport_state"] == "reconnecting");
}

#[test]
fn a_view_of_a_host_that_takes_no_input_refuses_control() {
    let server = Server::plain("remote-no-input");
    let mut host = Host::start(
        "remote-no-input-host",
        server.address(),
        &["--source", DESKTOP, "--once"],
    );
    let mut agent = agent("remote-no-input-agent", &server, host.password());
    connect(&mut agent, host.id(), "control");
    ready(&mut agent);
    agent.status_when("told that input is not taken", |status| {
        status["control_allowed"] == false
    });
    agent.ok("exit", &json!({}));
    assert!(host.wait().success(), "--once ends with the first guest");
}

#[test]
fn a_guest_that_joins_again_gets_another_offer_and_is_not_sent_away() {
    let server = Server::plain("remote-rejoin");
    let host = Host::start("remote-rejoin-host", server.address(), &["--source", DESKTOP]);
    let mut guest = server.peer();
    let id = guest.log_in("web");
    let claim = format!("{}@{}", host.id(), host.password());
    for _ in 0..2 {
        guest.join(&id, &claim);
        assert_eq!(guest.hear()["type"], "offer");
    }
    // Whatever the host has to say about the first session comes before its answer to a third join.
    guest.join(&id, &claim);
    assert_eq!(guest.hear()["type"], "offer");
}
