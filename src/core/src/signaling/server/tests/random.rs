//! Random peers: whatever they do, nobody receives what is not theirs, every join is answered, state stays bounded.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::testing::oracles::signaling_messages;

/// One random thing to do; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Op {
    Open,
    Close(u8),
    Register(u8),
    Login(u8, u8, bool),
    Web(u8, bool),
    Controller(u8, u8),
    Join(u8, u8, bool),
    Leave(u8, u8),
    Forward(u8, u8, u8, u8),
    Disconnect(u8, u8),
    Report(u8, u8, bool),
    ChangePassword(u8, u8),
    Heartbeat(u8),
    Store,
    Pass(u16),
    Garbage(u8, Vec<u8>),
}

fn any_op() -> impl Strategy<Value = Op> {
    let n = any::<u8>;
    prop_oneof![
        3 => Just(Op::Open),
        1 => n().prop_map(Op::Close),
        3 => n().prop_map(Op::Register),
        3 => (n(), n(), prop::bool::weighted(0.8)).prop_map(|(a, b, right)| Op::Login(a, b, right)),
        4 => (n(), any::<bool>()).prop_map(|(a, resume)| Op::Web(a, resume)),
        2 => (n(), 0_u8..3).prop_map(|(a, b)| Op::Controller(a, b)),
        8 => (n(), n(), prop::bool::weighted(0.9)).prop_map(|(a, b, right)| Op::Join(a, b, right)),
        2 => (n(), n()).prop_map(|(a, b)| Op::Leave(a, b)),
        12 => (n(), n(), n(), 0_u8..4).prop_map(|(a, b, c, kind)| Op::Forward(a, b, c, kind)),
        1 => (n(), n()).prop_map(|(a, b)| Op::Disconnect(a, b)),
        3 => (n(), n(), prop::bool::weighted(0.8)).prop_map(|(a, b, alive)| Op::Report(a, b, alive)),
        1 => (n(), n()).prop_map(|(a, b)| Op::ChangePassword(a, b)),
        6 => n().prop_map(Op::Heartbeat),
        8 => Just(Op::Store),
        4 => (0_u16..9000).prop_map(Op::Pass),
        1 => (n(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(a, bytes)| Op::Garbage(a, bytes)),
    ]
}

/// What the test knows without looking into the machine.
struct Oracle {
    world: World,
    sockets: Vec<SocketId>,
    /// Ids as they were told.
    names: BTreeMap<SocketId, String>,
    /// Devices with their passwords, right and changed.
    devices: Vec<(String, String)>,
    /// Sockets whose joins, with the right password, or reports, with the right ticket, make them guests of a host.
    entitled: BTreeSet<(SocketId, String)>,
    tickets: Vec<Value>,
    /// Joins sent on a socket, and answers to them.
    joins: BTreeMap<SocketId, (u32, u32)>,
}

impl Oracle {
    fn new() -> Self {
        let mut world = World::with(relays(), 1000);
        world.slow = true;
        Self {
            world,
            sockets: Vec::new(),
            names: BTreeMap::new(),
            devices: Vec::new(),
            entitled: BTreeSet::new(),
            tickets: Vec::new(),
            joins: BTreeMap::new(),
        }
    }

    fn socket(&self, n: u8) -> Option<SocketId> {
        let index = usize::from(n).checked_rem(self.sockets.len())?;
        self.sockets.get(index).copied()
    }

    fn device(&self, n: u8) -> Option<(String, String)> {
        let index = usize::from(n).checked_rem(self.devices.len())?;
        self.devices.get(index).cloned()
    }

    fn name(&self, n: u8) -> Option<String> {
        let socket = self.socket(n)?;
        self.names.get(&socket).cloned()
    }

    fn run(&mut self, op: Op) {
        // What names a socket or device that does not exist yet does nothing.
        let _ = self.try_run(op);
        self.account();
    }

    fn try_run(&mut self, op: Op) -> Option<()> {
        match op {
            Op::Open => {
                let socket = self.world.open();
                self.sockets.push(socket);
            }
            Op::Close(a) => {
                let socket = self.socket(a)?;
                self.world.close(socket);
                self.sockets.retain(|other| *other != socket);
            }
            Op::Register(a) => self.login(a, "", true)?,
            Op::Login(a, b, right) => {
                let (id, password) = self.device(b)?;
                let password = if right { password } else { "wrong1".into() };
                self.login(a, &format!("{id}@{password}"), true)?;
            }
            Op::Web(a, resume) => self.login(a, "web", resume)?,
            Op::Controller(a, b) => self.login(a, &format!("C-{b}"), true)?,
            Op::Join(a, b, right) => self.join(a, b, right)?,
            Op::Leave(a, b) => {
                let (socket, (host, _)) = (self.socket(a)?, self.device(b)?);
                let user = self.names.get(&socket)?.clone();
                let text = json!({
                    "type": "user_leave_transmission", "user_id": user, "transmission_id": host,
                });
                self.world.say(socket, text);
            }
            Op::Forward(a, b, c, kind) => {
                let kind = ["offer", "answer", "new_candidate_mid", "new_candidate"][usize::from(kind)];
                let (socket, to, named) = (self.socket(a)?, self.name(b)?, self.name(c)?);
                let from = self.names.get(&socket)?.clone();
                self.world.say(socket, forward(kind, &from, &to, &named));
            }
            Op::Disconnect(a, b) => {
                let (socket, guest) = (self.socket(a)?, self.name(b)?);
                let host = self.names.get(&socket)?.clone();
                let text = json!({
                    "type": "disconnect_peer", "user_id": host, "transmission_id": host,
                    "remote_user_id": guest,
                });
                self.world.say(socket, text);
            }
            Op::Report(a, b, alive) => self.report(a, b, alive)?,
            Op::ChangePassword(a, b) => {
                let socket = self.socket(a)?;
                let password = format!("chg{b:03}");
                let text = json!({
                    "type": "change_password", "request_id": format!("r{b}"), "new_password": password,
                });
                self.world.say(socket, text);
            }
            Op::Heartbeat(a) => {
                let socket = self.socket(a)?;
                self.world.server.handle_heartbeat(self.world.now, socket);
            }
            Op::Store => self.world.answer(),
            Op::Pass(ms) => self.world.pass(Duration::from_millis(ms.into())),
            Op::Garbage(a, bytes) => {
                let socket = self.socket(a)?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.world.say_text(socket, &text);
            }
        }
        Some(())
    }

    fn login(&mut self, a: u8, claim: &str, resume: bool) -> Option<()> {
        let socket = self.socket(a)?;
        let version = u8::from(resume);
        self.world.say(
            socket,
            json!({ "type": "login", "user_id": claim, "session_resume_version": version }),
        );
        Some(())
    }

    fn join(&mut self, a: u8, b: u8, right: bool) -> Option<()> {
        let (socket, (host, password)) = (self.socket(a)?, self.device(b)?);
        let user = self.names.get(&socket)?.clone();
        let password = if right { password } else { "wrong1".into() };
        if right {
            self.entitled.insert((socket, host.clone()));
        }
        self.joins.entry(socket).or_default().0 += 1;
        let text = json!({
            "type": "join_transmission", "user_id": user, "transmission_id": format!("{host}@{password}"),
        });
        self.world.say(socket, text);
        Some(())
    }

    fn report(&mut self, a: u8, b: u8, alive: bool) -> Option<()> {
        let index = usize::from(b).checked_rem(self.tickets.len())?;
        let (socket, mut report) = (self.socket(a)?, self.tickets.get(index)?.clone());
        let name = self.names.get(&socket)?;
        if report["guest_id"] == **name {
            let host = report["host_id"].as_str().expect("an id").to_owned();
            self.entitled.insert((socket, host));
        }
        report["type"] = json!("session_report");
        report["alive"] = json!(alive);
        self.world.say(socket, report);
        Some(())
    }

    /// Reads what everybody got and checks that it was theirs.
    fn account(&mut self) {
        for (socket, messages) in std::mem::take(&mut self.world.inbox) {
            for message in messages {
                self.check(socket, &message);
            }
        }
        let closed = &self.world.closed;
        self.sockets.retain(|socket| !closed.contains_key(socket));
        let stats = self.world.server.stats();
        assert_eq!(stats.connections, self.sockets.len());
        assert!(stats.sessions <= 64 * self.devices.len().max(1));
    }

    fn check(&mut self, socket: SocketId, message: &Value) {
        let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
        let me = self.names.get(&socket).cloned().unwrap_or_default();
        match text("type").as_str() {
            "login" if message["status"] == "success" => self.logged_in(socket, &text("user_id")),
            "offer" | "answer" | "new_candidate_mid" | "new_candidate" => {
                let (host, from) = (text("transmission_id"), text("remote_user_id"));
                assert_ne!(from, me);
                if me == host {
                    let knows = |(id, name): (&SocketId, &String)| {
                        *name == from && self.entitled.contains(&(*id, host.clone()))
                    };
                    assert!(self.names.iter().any(knows), "{from} is no guest of {host}");
                } else {
                    assert_eq!(from, host, "guests hear their host only");
                    assert!(self.entitled.contains(&(socket, host)), "{me} is no guest");
                }
            }
            "session_ticket" => {
                assert!(me == text("host_id") || me == text("guest_id"));
                self.tickets.push(message.clone());
            }
            "user_leave_transmission" | "session_resumed" => {
                let host = text("transmission_id");
                assert!(me == host || self.entitled.contains(&(socket, host)));
            }
            "user_join_transmission" if message["status"] == "success" => {
                assert_eq!(me, text("transmission_id"));
                self.joined(&me, &text("user_id"));
            }
            "user_join_transmission" => self.joins.entry(socket).or_default().1 += 1,
            "change_password" if message["status"] == "success" => {
                let number = text("request_id").trim_start_matches('r').parse::<u8>();
                let password = format!("chg{:03}", number.expect("a number"));
                let device = self.devices.iter_mut().find(|(id, _)| *id == text("user_id"));
                device.expect("a device").1 = password;
            }
            _ => {}
        }
    }

    fn logged_in(&mut self, socket: SocketId, claim: &str) {
        let (id, password) = claim.split_once('@').unwrap_or((claim, ""));
        assert_eq!(
            self.names.insert(socket, id.to_owned()),
            None,
            "one identity a socket"
        );
        if !password.is_empty() && DeviceId::parse(id).is_some() {
            self.devices.push((id.to_owned(), password.to_owned()));
        }
    }

    /// A join has reached its host: some socket of the guest's name waited for it.
    fn joined(&mut self, host: &str, guest: &str) {
        let names = &self.names;
        let asked = self.joins.iter_mut().find(|(socket, (sent, answered))| {
            names.get(socket).is_some_and(|name| name == guest)
                && self.entitled.contains(&(**socket, host.to_owned()))
                && answered < sent
        });
        asked.expect("somebody asked").1.1 += 1;
    }

    /// Lets the store answer everything; then no join of an open socket is left without an answer.
    fn finish(mut self) {
        while !self.world.asked.is_empty() {
            self.world.answer();
            self.account();
        }
        for socket in &self.sockets {
            let (sent, answered) = self.joins.get(socket).copied().unwrap_or_default();
            assert_eq!(sent, answered, "joins of socket {socket}");
        }
        self.world.server.handle_shutdown(self.world.now);
        self.world.settle();
        let stats = self.world.server.stats();
        assert_eq!(
            (stats.connections, stats.authenticated, stats.parked, stats.queued),
            (0, 0, 0, 0)
        );
    }
}

/// Text close to a message: right words in wrong places. Words that stand twice are twice as likely.
fn any_message_like() -> impl Strategy<Value = String> {
    let kinds = "login login join_transmission join_transmission user_leave_transmission offer new_candidate_mid \
        disconnect_peer change_password recent_connections_presence query_user_id_list session_report \
        revoke_reconnect_credential";
    let names = "user_id user_id transmission_id transmission_id remote_user_id sdp candidate mid devices request_id \
        new_password reconnect_version session_resume_version type";
    let values = "\"482915307@x\" \"482915307@x\" \"482915307\" \"482915307\" \"C-1\" \"C-1\" \"web\" \"\" \"123456\" \
        [\"482915307\"] null 1 18446744073709551615 -0.5";
    let word = |words: &'static str| prop::sample::select(words.split_whitespace().collect::<Vec<_>>());
    let member = (word(names), word(values)).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    (word(kinds), prop::collection::vec(member, 0..6)).prop_map(|(kind, mut members)| {
        members.push(format!("\"type\":\"{kind}\""));
        format!("{{{}}}", members.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_peers_do_nobody_receives_what_is_not_theirs(
        ops in proptest::collection::vec(any_op(), 1..160)
    ) {
        let mut oracle = Oracle::new();
        // Enough peers that the rest of the list has somebody to talk to.
        for n in 0..4 {
            oracle.run(Op::Open);
            oracle.run(if n < 2 { Op::Register(n) } else { Op::Web(n, n == 3) });
            oracle.run(Op::Store);
        }
        for op in ops {
            oracle.run(op);
        }
        oracle.finish();
    }

    #[test]
    fn anything_like_messages_is_survived(lines in proptest::collection::vec(any_message_like(), 1..30)) {
        signaling_messages(lines.join("\n").as_bytes());
    }
}
