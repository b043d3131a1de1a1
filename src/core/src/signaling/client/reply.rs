//! What servers of every generation say, read from JSON text.

use serde_json::{Map, Value};

use super::super::{Password, Relay, RelayTransport, Stun};
use super::Failure;

/// STUN and TURN servers of one delivery; the protocol has eight of each at most, more are not looked at.
const MAX_SERVERS: usize = 16;

/// A server that helps to be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceServer {
    /// Where it is.
    pub at: Stun,
    /// What it does.
    pub kind: IceServerKind,
}

/// What an [`IceServer`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IceServerKind {
    /// It tells what address a packet came from.
    Stun,
    /// It passes packets on.
    Turn {
        /// How it is reached.
        transport: RelayTransport,
        /// Its user name, which ends with its life.
        username: String,
        /// What goes with it.
        credential: Password,
    },
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Pong,
    LoggedIn {
        user: String,
        password: Option<Password>,
    },
    LoginFailed {
        retry_after: Option<u64>,
    },
    JoinFailed {
        why: Failure,
    },
    Joined {
        guest: String,
        servers: Vec<IceServer>,
    },
    Offer {
        remote: String,
        sdp: String,
        servers: Vec<IceServer>,
    },
    Answer {
        remote: String,
        sdp: String,
    },
    Candidate {
        remote: String,
        candidate: String,
    },
    Left {
        user: String,
    },
    Ticket {
        host: String,
        guest: String,
        token: Password,
    },
    PasswordChanged(bool),
}

impl Reply {
    /// `None` for what is no message of use to this client.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Ok(Value::Object(members)) = serde_json::from_str(text) else {
            return None;
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(match members.get("type")?.as_str()? {
            "pong" => Self::Pong,
            "login" => login(&members),
            "user_join_transmission" => match members.get("status").and_then(Value::as_str) {
                Some("success") => Self::Joined {
                    guest: text("user_id")?,
                    servers: servers(&members),
                },
                _ => Self::JoinFailed {
                    why: refusal(&members),
                },
            },
            "offer" => Self::Offer {
                remote: text("remote_user_id")?,
                sdp: text("sdp")?,
                servers: servers(&members),
            },
            "answer" => Self::Answer {
                remote: text("remote_user_id")?,
                sdp: text("sdp")?,
            },
            "new_candidate_mid" => Self::Candidate {
                remote: text("remote_user_id")?,
                candidate: candidate(&text("candidate")?),
            },
            "user_leave_transmission" => Self::Left {
                user: text("user_id")?,
            },
            "session_ticket" => Self::Ticket {
                host: text("host_id")?,
                guest: text("guest_id")?,
                token: Password::new(text("token")?),
            },
            "change_password" => Self::PasswordChanged(text("status")? == "success"),
            _ => return None,
        })
    }
}

/// The official client looks at nothing but a user id that is not empty, so old servers may say no more.
fn login(members: &Map<String, Value>) -> Reply {
    let user = members.get("user_id").and_then(Value::as_str).unwrap_or_default();
    let failed = members.get("status").is_some_and(|status| status != "success");
    if user.is_empty() || failed {
        return Reply::LoginFailed {
            retry_after: retry_after(members),
        };
    }
    let (user, password) = match user.split_once('@') {
        Some((user, password)) => (user, Some(Password::new(password))),
        None => (user, None),
    };
    Reply::LoggedIn {
        user: user.to_owned(),
        password,
    }
}

fn retry_after(members: &Map<String, Value>) -> Option<u64> {
    members.get("retry_after").and_then(Value::as_u64)
}

/// `error_code` is newer than `reason` and says more when it is there.
fn refusal(members: &Map<String, Value>) -> Failure {
    let retry_after = retry_after(members);
    let throttled = Failure::Throttled {
        retry_after: retry_after.unwrap_or(1),
    };
    let code = members.get("error_code").and_then(Value::as_str);
    let reason = members.get("reason").and_then(Value::as_str);
    match (code, reason) {
        (Some("PASSWORD_REQUIRED" | "AUTHENTICATION_FAILED"), _) => Failure::Rejected,
        (Some("REMOTE_UNAVAILABLE"), _) => Failure::Offline,
        (Some("AUTHENTICATION_THROTTLED" | "CREDENTIAL_SERVICE_BUSY" | "CREDENTIAL_RATE_LIMITED"), _) => {
            throttled
        }
        (Some("NOT_AUTHENTICATED"), _) => Failure::Unreachable,
        (_, Some("Incorrect password" | "Authentication failed")) => Failure::Rejected,
        (_, Some("No such transmission id")) => Failure::UnknownDevice,
        (_, Some("Remote unavailable")) => Failure::Offline,
        (_, Some("Not authenticated")) => Failure::Unreachable,
        _ if retry_after.is_some() => throttled,
        _ => Failure::Offline,
    }
}

/// Native clients may write `a=` in front and name the end in words.
fn candidate(text: &str) -> String {
    let text = text.strip_prefix("a=").unwrap_or(text).trim();
    if text == "end-of-candidates" {
        String::new()
    } else {
        text.to_owned()
    }
}

/// `ice` where it is there, `turn` otherwise.
fn servers(members: &Map<String, Value>) -> Vec<IceServer> {
    let listed = members
        .get("ice")
        .and_then(|ice| ice.get("servers"))
        .and_then(Value::as_array);
    match listed {
        Some(listed) => listed.iter().flat_map(listed_server).take(MAX_SERVERS).collect(),
        None => members.get("turn").map(turn_servers).unwrap_or_default(),
    }
}

fn listed_server(server: &Value) -> Vec<IceServer> {
    let text = |name: &str| server.get(name).and_then(Value::as_str);
    let urls = server.get("urls").and_then(Value::as_array).into_iter().flatten();
    let mut servers = Vec::new();
    for url in urls.filter_map(Value::as_str) {
        if let Ok(at) = url.parse::<Stun>() {
            servers.push(IceServer {
                at,
                kind: IceServerKind::Stun,
            });
        } else if let (Ok(relay), Some(username), Some(credential)) =
            (url.parse::<Relay>(), text("username"), text("credential"))
        {
            servers.extend(relay_servers(&relay, username, credential));
        }
    }
    servers
}

fn turn_servers(turn: &Value) -> Vec<IceServer> {
    let text = |name: &str| turn.get(name).and_then(Value::as_str);
    let port = turn
        .get("port")
        .and_then(Value::as_u64)
        .and_then(|port| u16::try_from(port).ok());
    let (Some(host), Some(port), Some(username), Some(password)) =
        (text("host"), port, text("username"), text("password"))
    else {
        return Vec::new();
    };
    let at = Stun {
        host: host.to_owned(),
        port,
    };
    let relay = Relay {
        at: at.clone(),
        transports: vec![RelayTransport::Udp, RelayTransport::Tcp],
    };
    let stun = IceServer {
        at,
        kind: IceServerKind::Stun,
    };
    std::iter::once(stun)
        .chain(relay_servers(&relay, username, password))
        .collect()
}

fn relay_servers(relay: &Relay, username: &str, credential: &str) -> Vec<IceServer> {
    let server = |transport: &RelayTransport| IceServer {
        at: relay.at.clone(),
        kind: IceServerKind::Turn {
            transport: *transport,
            username: username.to_owned(),
            credential: Password::new(credential),
        },
    };
    relay.transports.iter().map(server).collect()
}
