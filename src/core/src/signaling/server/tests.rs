//! Scenarios on virtual time, with a store made of a map.

mod account;
mod joining;
mod limits;
mod login;
mod random;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::signaling::{Password, Relay, RelayTransport, StoreOutcome, Stun};

/// A device as a store keeps it, without the hash.
#[derive(Clone, Debug)]
struct Row {
    password: Password,
    token: Option<(String, u64)>,
}

/// A server, its store, and what every socket got.
pub(super) struct World {
    pub(super) server: Server,
    now: Moment,
    rows: BTreeMap<DeviceId, Row>,
    /// Questions the store has not answered; it does at once unless it is `slow`.
    asked: VecDeque<StoreRequest>,
    slow: bool,
    broken: bool,
    inbox: BTreeMap<SocketId, VecDeque<Value>>,
    closed: BTreeMap<SocketId, CloseReason>,
    notes: Vec<Note>,
    checks: usize,
}

const HOME: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

fn relays() -> IceConfig {
    IceConfig {
        stun: Vec::new(),
        relays: vec![Relay {
            at: Stun {
                host: "turn.example.net".into(),
                port: 3478,
            },
            transports: vec![RelayTransport::Udp],
        }],
        secret: Some(Password::new("north")),
        lifetime: 3600,
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(relays(), 60)
    }

    fn with(ice: IceConfig, credential_quota: u32) -> Self {
        let config = Config {
            seed: [9; 32],
            max_connections: 300,
            credential_quota,
            ice,
        };
        let now = Moment {
            at: Monotonic::from_micros(5_000_000),
            unix: 1_790_000_000,
        };
        Self {
            server: Server::new(config),
            now,
            rows: BTreeMap::new(),
            asked: VecDeque::new(),
            slow: false,
            broken: false,
            inbox: BTreeMap::new(),
            closed: BTreeMap::new(),
            notes: Vec::new(),
            checks: 0,
        }
    }

    fn open_from(&mut self, address: impl Into<IpAddr>) -> SocketId {
        let id = self.server.handle_open(self.now, address.into());
        id.expect("there is room")
    }

    /// A socket from an address of its own, so that quotas do not mix.
    fn open(&mut self) -> SocketId {
        let last = self.server.sockets_seen as u32;
        self.open_from(Ipv4Addr::from_bits(HOME.to_bits() + 256 + last))
    }

    fn say(&mut self, id: SocketId, message: Value) {
        self.say_text(id, &message.to_string());
        drop(message);
    }

    fn say_text(&mut self, id: SocketId, text: &str) {
        self.server.handle_text(self.now, id, text);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(effect) = self.server.poll_effect() {
            match effect {
                Effect::Send(id, text) => {
                    assert!(self.server.knows(id) || self.closed.contains_key(&id));
                    let message = serde_json::from_str(&text).expect("JSON");
                    self.inbox.entry(id).or_default().push_back(message);
                }
                Effect::Close(id, reason) => assert_eq!(self.closed.insert(id, reason), None),
                Effect::Store(request) => {
                    assert!(self.asked.is_empty(), "one question at a time");
                    self.asked.push_back(request);
                    if !self.slow {
                        self.answer();
                    }
                }
                Effect::Note(note) => self.notes.push(note),
            }
        }
        self.server.check_invariants();
    }

    /// The store answers what it was asked.
    fn answer(&mut self) {
        if let Some(request) = self.asked.pop_front() {
            let outcome = self.outcome(request);
            self.server.handle_store(self.now, outcome);
            self.settle();
        }
    }

    fn outcome(&mut self, request: StoreRequest) -> StoreOutcome {
        if self.broken {
            return StoreOutcome::Failed;
        }
        let kept = |token: crate::signaling::NewToken| (token.token.expose().to_owned(), token.expires_at);
        let accepted = match request {
            StoreRequest::Create { id, password, token } => {
                let free = !self.rows.contains_key(&id);
                let token = token.map(kept);
                self.rows.entry(id).or_insert(Row { password, token });
                free
            }
            StoreRequest::Check { id, password, token } => {
                self.checks += 1;
                let row = self.rows.get_mut(&id).filter(|row| row.password == password);
                row.map(|row| row.token = token.map(kept).or(row.token.take()))
                    .is_some()
            }
            StoreRequest::CheckToken { id, token, unix } => {
                let row = self.rows.get(&id).and_then(|row| row.token.clone());
                let expires_at = row
                    .filter(|(known, until)| known == token.expose() && *until > unix)
                    .map(|(_, until)| until);
                return match expires_at {
                    Some(_) => StoreOutcome::Accepted { expires_at },
                    None => StoreOutcome::Refused,
                };
            }
            StoreRequest::SetPassword { id, password } => {
                let row = Row {
                    password,
                    token: None,
                };
                self.rows.insert(id, row).is_some()
            }
            StoreRequest::RevokeToken { id } => self.rows.get_mut(&id).map(|row| row.token = None).is_some(),
        };
        if accepted {
            StoreOutcome::DONE
        } else {
            StoreOutcome::Refused
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now.at + span;
        while let Some(due) = self.server.next_deadline().filter(|due| *due <= end) {
            self.set_time(due.max(self.now.at));
            self.server.handle_timeout(self.now);
            self.settle();
        }
        self.set_time(end);
    }

    fn set_time(&mut self, at: Monotonic) {
        self.now = Moment {
            at,
            unix: 1_790_000_000 + at.as_micros() / 1_000_000 - 5,
        };
    }

    fn pass_seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// Lets time pass while these sockets stay alive.
    fn pass_alive(&mut self, seconds: u64, alive: &[SocketId]) {
        for _ in 0..seconds {
            for id in alive {
                self.server.handle_heartbeat(self.now, *id);
            }
            self.pass_seconds(1);
        }
    }

    fn take(&mut self, id: SocketId) -> Value {
        let message = self.inbox.entry(id).or_default().pop_front();
        message.unwrap_or_else(|| panic!("socket {id} got nothing"))
    }

    fn silent(&mut self, id: SocketId) {
        let got = self.inbox.entry(id).or_default();
        assert!(got.is_empty(), "socket {id} got {got:?}");
    }

    fn close(&mut self, id: SocketId) {
        self.server.handle_disconnect(self.now, id);
        self.settle();
    }

    /// A new device on a socket of its own.
    fn device(&mut self) -> Peer {
        let socket = self.open();
        self.say(
            socket,
            json!({ "type": "login", "user_id": "", "session_resume_version": 1 }),
        );
        let reply = self.take(socket);
        let (id, password) = reply["user_id"]
            .as_str()
            .and_then(|text| text.split_once('@'))
            .expect("id and password");
        Peer {
            socket,
            id: id.to_owned(),
            password: password.to_owned(),
        }
    }

    /// A browser on a socket of its own.
    fn guest(&mut self) -> Peer {
        let socket = self.open();
        self.say(socket, json!({ "type": "login", "user_id": "web" }));
        let id = self.take(socket)["user_id"].as_str().expect("an id").to_owned();
        let password = String::new();
        Peer { socket, id, password }
    }

    /// The guest joins with this text as the host's id and password.
    fn join(&mut self, guest: &Peer, host: &str) {
        let message = json!({
            "type": "join_transmission", "user_id": guest.id, "transmission_id": host,
        });
        self.say(guest.socket, message);
    }

    /// A host and its guest, with everything up to the offer done.
    fn session(&mut self) -> (Peer, Peer) {
        let (host, guest) = (self.device(), self.guest());
        self.join(&guest, &host.claim());
        assert_eq!(self.take(host.socket)["type"], "user_join_transmission");
        (host, guest)
    }
}

/// Who sits at a socket.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    socket: SocketId,
    id: String,
    password: String,
}

impl Peer {
    fn claim(&self) -> String {
        format!("{}@{}", self.id, self.password)
    }
}

fn forward(kind: &str, from: &str, to: &str, transmission: &str) -> Value {
    let mut message = json!({
        "type": kind, "user_id": from, "remote_user_id": to, "transmission_id": transmission,
    });
    if kind == "new_candidate_mid" {
        message["candidate"] = json!("candidate:1 1 UDP 1 192.0.2.7 50412 typ host");
        message["mid"] = json!("Display1");
    } else {
        message["sdp"] = json!("v=0\r\n");
    }
    message
}
