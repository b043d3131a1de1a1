//! Our own signaling client against our own server, over real sockets.

use std::sync::mpsc::{Receiver, channel};

use crossdesk::transport::signaling::{Order, ServerAddress, Signaling, Trust};
use crossdesk_core::signaling::{ClientEvent, DeviceId, Failure, Password, Role};

use super::client::PATIENCE;
use super::process::Server;

struct End {
    signaling: Signaling,
    events: Receiver<ClientEvent>,
    troubles: Receiver<String>,
}

impl End {
    fn start(address: ServerAddress, role: Role) -> Self {
        let (tell, events) = channel();
        let (complain, troubles) = channel();
        // A test that is over listens no more.
        let tell = move |event| drop(tell.send(event));
        let complain = move |reason: &str| drop(complain.send(reason.to_owned()));
        let signaling = Signaling::start(address, role, tell, complain).expect("a thread");
        Self {
            signaling,
            events,
            troubles,
        }
    }

    fn next(&self) -> ClientEvent {
        self.events.recv_timeout(PATIENCE).expect("an event")
    }
}

fn address(server: &Server, trust: Trust) -> ServerAddress {
    ServerAddress {
        host: server.address().ip().to_string(),
        port: server.address().port(),
        trust,
    }
}

fn guest(host: DeviceId, password: &Password) -> Role {
    Role::Guest {
        host,
        password: password.clone(),
    }
}

fn register(server: &Server, trust: Trust) -> (End, DeviceId, Password) {
    let host = End::start(address(server, trust), Role::Host { device: None });
    let ClientEvent::Online {
        id,
        password: Some(password),
    } = host.next()
    else {
        panic!("a new device has a password");
    };
    (host, id, password)
}

#[test]
fn a_host_and_a_guest_of_ours_are_introduced() {
    let server = Server::tls("signal-ours");
    let trust = Trust::Pinned(server.fingerprint().parse().expect("a fingerprint"));
    let (host, id, password) = register(&server, trust.clone());
    let visitor = End::start(address(&server, trust), guest(id, &password));
    let ClientEvent::Joined { guest, servers } = host.next() else {
        panic!("a guest joins");
    };
    assert!(guest.starts_with("web-") && servers.is_empty());
    let sdp = "v=0\r\n".repeat(1000);
    host.signaling.order(Order::Offer {
        guest: guest.clone(),
        sdp: sdp.clone(),
    });
    host.signaling.order(Order::Candidate {
        remote: guest.clone(),
        candidate: "candidate:1".into(),
        mid: "0".into(),
    });
    assert_eq!(visitor.next(), ClientEvent::Offer { sdp, servers });
    let remote = id.to_string();
    let candidate = "candidate:1".to_owned();
    assert_eq!(visitor.next(), ClientEvent::Candidate { remote, candidate });
    visitor.signaling.order(Order::Answer { sdp: "v=1".into() });
    let sdp = "v=1".to_owned();
    assert_eq!(
        host.next(),
        ClientEvent::Answer {
            guest: guest.clone(),
            sdp
        }
    );
    drop(visitor.signaling);
    assert_eq!(host.next(), ClientEvent::Left { remote: guest });

    let trust = Trust::Pinned(server.fingerprint().parse().expect("a fingerprint"));
    let visitor = End::start(address(&server, trust), super::ours::guest(id, &password));
    let ClientEvent::Joined { guest, .. } = host.next() else {
        panic!("a guest joins");
    };
    host.signaling.order(Order::EndSession { remote: guest });
    assert_eq!(
        visitor.next(),
        ClientEvent::Left {
            remote: id.to_string()
        }
    );

    let new = Password::new("Zk41pT");
    host.signaling.order(Order::ChangePassword(new.clone()));
    assert_eq!(host.next(), ClientEvent::PasswordChanged(true));
    let log = server.stop();
    assert!(!log.contains(password.expose()) && !log.contains(new.expose()));
}

#[test]
fn a_guest_learns_why_it_is_not_let_in() {
    let server = Server::plain("signal-ours-refused");
    let (host, id, password) = register(&server, Trust::Plain);
    let wrong = End::start(
        address(&server, Trust::Plain),
        guest(id, &Password::new("wrong1")),
    );
    assert_eq!(wrong.next(), ClientEvent::Failed(Failure::Rejected));
    drop(host);
    let late = End::start(address(&server, Trust::Plain), guest(id, &password));
    assert_eq!(late.next(), ClientEvent::Failed(Failure::Offline));
}

#[test]
fn a_server_with_another_certificate_gets_nothing() {
    let server = Server::tls("signal-ours-certificate");
    let other = "00".repeat(32).parse().expect("a fingerprint");
    for trust in [Trust::Pinned(other), Trust::System] {
        let role = guest(
            DeviceId::new(482_915_307).expect("nine digits"),
            &Password::new("Qx7b2M"),
        );
        // A machine without any certificate authority refuses earlier.
        if Signaling::start(address(&server, trust.clone()), role.clone(), drop, |_| {}).is_err() {
            continue;
        }
        let end = End::start(address(&server, trust), role);
        assert_eq!(end.next(), ClientEvent::Failed(Failure::Untrusted));
        let reason = end.troubles.recv_timeout(PATIENCE).expect("a reason");
        assert!(reason.contains("certificate"), "{reason}");
    }
    assert!(!server.stop().contains("482915307"));
}

#[test]
fn a_host_comes_back_to_a_server_that_was_restarted() {
    let server = Server::plain("signal-ours-restart");
    let (host, id, _) = register(&server, Trust::Plain);
    let server = server.restart();
    assert_eq!(host.next(), ClientEvent::Lost { attempt: 1 });
    let back =
        std::iter::from_fn(|| Some(host.next())).find(|event| !matches!(event, ClientEvent::Lost { .. }));
    assert_eq!(back, Some(ClientEvent::Online { id, password: None }));
    drop(server);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = unused.local_addr().expect("an address").port();
    drop(unused);
    let address = ServerAddress {
        host: "127.0.0.1".into(),
        port,
        trust: Trust::Plain,
    };
    let end = End::start(address, Role::Host { device: None });
    assert_eq!(end.next(), ClientEvent::Lost { attempt: 1 });
    let reason = end.troubles.recv_timeout(PATIENCE).expect("a reason");
    assert!(reason.contains(&format!("127.0.0.1 port {port}")), "{reason}");
}
