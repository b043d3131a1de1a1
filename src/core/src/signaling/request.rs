//! What a client may say, read from JSON text.
//!
//! The public protocol drops what it does not know: an unknown `type` or a missing field is ignored, extra fields are
//! skipped. Only text that is no object with a `type` ends the socket.

use std::fmt;

use serde_json::{Map, Value};

use super::identity::{Claim, bare};
use super::{MAX_REQUEST_ID_BYTES, MAX_UFRAG_BYTES, MAX_WATCHED, Password};

/// One message of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A heartbeat.
    Ping,
    /// Who the socket wants to be.
    Login(Login),
    /// A guest wants to reach a host.
    Join(Join),
    /// A member leaves a transmission.
    Leave {
        /// Who leaves.
        user: String,
        /// The host's id.
        transmission: String,
    },
    /// Something for the other side.
    Forward(Forward),
    /// The host removes one guest.
    DisconnectPeer {
        /// The host.
        user: String,
        /// The host's id.
        transmission: String,
        /// The guest.
        remote: String,
    },
    /// A device wants another password.
    ChangePassword {
        /// Names this attempt, so that it can be repeated.
        request_id: Option<String>,
        /// The password wished for.
        password: Option<Password>,
    },
    /// What kind of client this is.
    ClientInfo {
        /// Its operating system.
        platform: String,
    },
    /// Which devices are online.
    Presence(Presence),
    /// Fresh TURN credentials.
    TurnCredentials,
    /// Who is in a transmission.
    ListUsers {
        /// The host's id and password.
        host: Option<Claim>,
    },
    /// A session that outlived a socket.
    Report(Report),
    /// End the reconnect token.
    RevokeToken,
}

/// `login`.
#[derive(Clone, Debug, PartialEq)]
pub struct Login {
    /// `None` when it breaks a limit.
    pub claim: Option<Claim>,
    /// What the client can do.
    pub features: Features,
    /// `reconnect_version` is 1.
    pub wants_token: bool,
    /// `reconnect_token`.
    pub token: Option<Password>,
}

/// Optional abilities of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `ice_config_version` is 1.
    pub ice: bool,
    /// `session_resume_version` is 1.
    pub resume: bool,
}

/// `join_transmission`.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// The guest.
    pub user: String,
    /// The host's id and password; `None` when it breaks a limit.
    pub host: Option<Claim>,
}

/// What is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardKind {
    /// A session description of the host.
    Offer,
    /// A session description of the guest.
    Answer,
    /// A candidate of standard WebRTC.
    CandidateMid,
    /// A candidate of the native transport.
    Candidate,
}

impl ForwardKind {
    /// The message type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Offer => "offer",
            Self::Answer => "answer",
            Self::CandidateMid => "new_candidate_mid",
            Self::Candidate => "new_candidate",
        }
    }
}

/// `offer`, `answer` and both candidate messages.
#[derive(Clone, PartialEq)]
pub struct Forward {
    /// Which of them.
    pub kind: ForwardKind,
    /// The sender.
    pub user: String,
    /// The receiver.
    pub remote: String,
    /// The host's id; some hosts write the guest's.
    pub transmission: String,
    /// The fields that are passed on unread: `sdp`, or `candidate`, `mid` and `ufrag`.
    pub content: Vec<(&'static str, String)>,
}

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forward")
            .field("kind", &self.kind)
            .field("user", &self.user)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

/// `recent_connections_presence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Who asks, when it is said.
    pub user: Option<String>,
    /// At most [`MAX_WATCHED`] ids.
    pub devices: Vec<String>,
    /// Replace the watch list, leave it, or (absent) add to it.
    pub subscribe: Option<bool>,
}

/// `session_report`.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The host of the session.
    pub host: String,
    /// Its guest.
    pub guest: String,
    /// The ticket.
    pub token: Password,
    /// False when the session is over.
    pub alive: bool,
}

/// Why a text is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Not a JSON object with a `type`: the socket must be closed.
    Malformed,
    /// A type nobody knows, or a field that is missing: nothing happens.
    Ignored,
}

/// Reads one message.
///
/// # Errors
/// See [`Unusable`].
pub fn parse_request(text: &str) -> Result<Request, Unusable> {
    let Ok(Value::Object(members)) = serde_json::from_str(text) else {
        return Err(Unusable::Malformed);
    };
    let mut members = Members(members);
    let kind = members.text("type").ok_or(Unusable::Malformed)?;
    members.read(&kind).ok_or(Unusable::Ignored)
}

struct Members(Map<String, Value>);

impl Members {
    fn text(&mut self, name: &str) -> Option<String> {
        match self.0.remove(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// An id, without a password some clients leave behind it.
    fn id(&mut self, name: &str) -> Option<String> {
        self.text(name).map(|text| bare(&text))
    }

    fn is_one(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_u64) == Some(1)
    }

    fn read(&mut self, kind: &str) -> Option<Request> {
        Some(match kind {
            "ping" => Request::Ping,
            "login" => Request::Login(self.login()?),
            "join_transmission" => Request::Join(Join {
                user: self.id("user_id")?,
                host: Claim::parse(&self.text("transmission_id")?),
            }),
            // Web clients before November 2025 left with the shorter name.
            "user_leave_transmission" | "leave_transmission" => Request::Leave {
                user: self.id("user_id")?,
                transmission: self.id("transmission_id")?,
            },
            "offer" => Request::Forward(self.forward(ForwardKind::Offer, &["sdp"])?),
            "answer" => Request::Forward(self.forward(ForwardKind::Answer, &["sdp"])?),
            "new_candidate" => Request::Forward(self.forward(ForwardKind::Candidate, &["sdp"])?),
            "new_candidate_mid" => Request::Forward(self.candidate()?),
            "disconnect_peer" => Request::DisconnectPeer {
                user: self.id("user_id")?,
                transmission: self.id("transmission_id")?,
                remote: self.id("remote_user_id")?,
            },
            "change_password" => Request::ChangePassword {
                request_id: self.request_id(),
                password: self.text("new_password").map(Password::new),
            },
            "client_info" => self.client_info()?,
            "recent_connections_presence" => Request::Presence(self.presence()?),
            "turn_credentials" => Request::TurnCredentials,
            "query_user_id_list" => Request::ListUsers {
                host: Claim::parse(&self.text("transmission_id")?),
            },
            "session_report" => Request::Report(Report {
                host: self.id("host_id")?,
                guest: self.id("guest_id")?,
                token: Password::new(self.text("token")?),
                alive: self.0.get("alive")?.as_bool()?,
            }),
            "revoke_reconnect_credential" => Request::RevokeToken,
            _ => return None,
        })
    }

    fn login(&mut self) -> Option<Login> {
        Some(Login {
            claim: Claim::parse(&self.text("user_id")?),
            features: Features {
                ice: self.is_one("ice_config_version"),
                resume: self.is_one("session_resume_version"),
            },
            wants_token: self.is_one("reconnect_version"),
            token: self.text("reconnect_token").map(Password::new),
        })
    }

    fn forward(&mut self, kind: ForwardKind, content: &[&'static str]) -> Option<Forward> {
        let content = content.iter().map(|name| Some((*name, self.text(name)?)));
        let content = content.collect::<Option<Vec<_>>>()?;
        Some(Forward {
            kind,
            user: self.id("user_id")?,
            remote: self.id("remote_user_id")?,
            transmission: self.id("transmission_id")?,
            content,
        })
    }

    fn candidate(&mut self) -> Option<Forward> {
        let ufrag = self.text("ufrag");
        let mut forward = self.forward(ForwardKind::CandidateMid, &["candidate", "mid"])?;
        if let Some(ufrag) = ufrag {
            let fits = ufrag.len() <= MAX_UFRAG_BYTES && !ufrag.contains(char::is_whitespace);
            forward.content.extend(fits.then_some(("ufrag", ufrag)));
        }
        Some(forward)
    }

    fn request_id(&mut self) -> Option<String> {
        let id = self.text("request_id")?;
        (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()).then_some(id)
    }

    fn client_info(&mut self) -> Option<Request> {
        let (version, platform) = (self.text("version")?, self.text("platform")?);
        let fits = (1..=64).contains(&version.len()) && (1..=32).contains(&platform.len());
        fits.then_some(Request::ClientInfo { platform })
    }

    fn presence(&mut self) -> Option<Presence> {
        let Value::Array(devices) = self.0.remove("devices")? else {
            return None;
        };
        let devices = devices.into_iter().filter_map(|device| match device {
            Value::String(id) => Some(bare(&id)),
            _ => None,
        });
        Some(Presence {
            user: self.id("user_id"),
            devices: devices.take(MAX_WATCHED).collect(),
            subscribe: self.0.get("subscribe").and_then(Value::as_bool),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_with_a_type_keeps_the_socket() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for text in [
            "",
            "{",
            "[]",
            "1",
            "{}",
            "{\"type\":1}",
            "{\"type\":\"ping\"} x",
            "\0",
            &deep,
        ] {
            assert_eq!(parse_request(text), Err(Unusable::Malformed), "{text}");
        }
    }

    #[test]
    fn what_is_unknown_or_incomplete_is_ignored() {
        for text in [
            r#"{"type":"announcements_list","request_id":"a1"}"#,
            r#"{"type":"login"}"#,
            r#"{"type":"login","user_id":1}"#,
            r#"{"type":"offer","user_id":"1","remote_user_id":"2","transmission_id":"1"}"#,
            r#"{"type":"new_candidate_mid","user_id":"1","remote_user_id":"2","transmission_id":"1","candidate":"c","mid":null}"#,
            r#"{"type":"client_info","version":"","platform":"linux"}"#,
            r#"{"type":"recent_connections_presence","devices":"482915307"}"#,
        ] {
            assert_eq!(parse_request(text), Err(Unusable::Ignored), "{text}");
        }
    }

    #[test]
    fn a_candidate_keeps_its_ufrag_when_it_is_one() {
        let read = |ufrag: &str| {
            let text = format!(
                r#"{{"type":"new_candidate_mid","user_id":"1","remote_user_id":"2","transmission_id":"1","candidate":"c","mid":"m","ufrag":"{ufrag}"}}"#
            );
            match parse_request(&text) {
                Ok(Request::Forward(forward)) => forward.content.len(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read("AbCd"), 3);
        assert_eq!(read("a b"), 2);
        assert_eq!(read(&"x".repeat(257)), 2);
    }

    #[test]
    fn abilities_are_the_number_one_and_nothing_else() {
        let text = r#"{"type":"login","user_id":"web","ice_config_version":1,"session_resume_version":"1","extra":[]}"#;
        let Ok(Request::Login(login)) = parse_request(text) else {
            panic!("a login");
        };
        assert_eq!(
            login.features,
            Features {
                ice: true,
                resume: false
            }
        );
    }

    #[test]
    fn debug_output_shows_no_secret_and_no_description() {
        for text in [
            r#"{"type":"login","user_id":"482915307@hidden","reconnect_token":"hidden"}"#,
            r#"{"type":"join_transmission","user_id":"web-730184526","transmission_id":"482915307@hidden"}"#,
            r#"{"type":"answer","user_id":"1","remote_user_id":"2","transmission_id":"1","sdp":"hidden"}"#,
            r#"{"type":"change_password","request_id":"r","new_password":"hidden"}"#,
            r#"{"type":"session_report","host_id":"1","guest_id":"2","token":"hidden","alive":true}"#,
        ] {
            let request = parse_request(text).expect(text);
            assert!(!format!("{request:?}").contains("hidden"), "{request:?}");
        }
    }
}
