//! What the server says, as JSON text.

use serde_json::{Map, Value, json};

use super::ice::Delivery;
use super::request::{Forward, ForwardKind};
use super::{DeviceId, Identity, NewToken, Password};

/// Why a login, a join or a query failed, in the words clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Wrong password, unknown id, malformed id; one answer for all, so that nobody learns which.
    AuthenticationFailed,
    /// The socket has an identity already.
    AlreadyAuthenticated,
    /// The socket has none, or another one.
    NotAuthenticated,
    /// The host is not online, or takes no more guests.
    RemoteUnavailable,
    /// Too many failures of this id or from this source.
    TooManyAttempts,
    /// The work waited too long for its turn.
    TooManyRequests,
    /// The queue is full, or the store does not answer.
    Busy,
}

impl Refusal {
    /// The `reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "Authentication failed",
            Self::AlreadyAuthenticated => "Already authenticated",
            Self::NotAuthenticated => "Not authenticated",
            Self::RemoteUnavailable => "Remote unavailable",
            Self::TooManyAttempts => "Too many authentication attempts",
            Self::TooManyRequests => "Too many credential requests",
            Self::Busy => "Credential service busy",
        }
    }
}

/// A refusal and how many seconds to wait, when waiting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: Refusal,
    /// At least this long.
    pub retry_after: Option<u64>,
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        let waits = matches!(why, Refusal::Busy);
        Self {
            why,
            retry_after: waits.then_some(1),
        }
    }
}

fn with(mut message: Value, name: &str, value: Option<impl Into<Value>>) -> Value {
    if let (Some(members), Some(value)) = (message.as_object_mut(), value) {
        members.insert(name.to_owned(), value.into());
    }
    message
}

fn with_reason(message: Value, refused: Refused) -> String {
    let message = with(message, "reason", Some(refused.why.as_str()));
    with(message, "retry_after", refused.retry_after).to_string()
}

/// The answer to `ping`.
pub const PONG: &str = r#"{"type":"pong"}"#;

/// Parts of a successful login's reply that are not always there.
#[derive(Debug, Default)]
pub struct LoginExtras<'a> {
    /// Told once, to whoever got a new identity.
    pub password: Option<&'a Password>,
    /// The client knows the `ice` object.
    pub ice: bool,
    /// The `turn` object.
    pub turn: Option<Value>,
    /// A token to come back with.
    pub token: Option<&'a NewToken>,
    /// The client came back with its token, which ends then.
    pub reconnected_until: Option<u64>,
}

/// A login has succeeded.
pub fn logged_in(user: &Identity, extras: LoginExtras<'_>) -> String {
    let user = match extras.password {
        Some(password) => format!("{user}@{}", password.expose()),
        None => user.to_string(),
    };
    let mut message = json!({ "type": "login", "user_id": user, "status": "success" });
    message = with(message, "ice_config_version", extras.ice.then_some(1));
    message = with(message, "turn", extras.turn);
    if let Some(NewToken { token, expires_at }) = extras.token {
        message = with(message, "reconnect_token", Some(token.expose()));
        message = with(message, "reconnect_expires_at", Some(*expires_at));
        message = with(message, "reconnect_version", Some(1));
    }
    if let Some(until) = extras.reconnected_until {
        message = with(message, "reconnected", Some(true));
        message = with(message, "reconnect_expires_at", Some(until));
        message = with(message, "reconnect_version", Some(1));
    }
    message.to_string()
}

/// A login has failed; `token` when it was one with a reconnect token that is not good.
pub fn login_failed(refused: Refused, token: bool) -> String {
    let message = json!({ "type": "login", "user_id": "", "status": "fail" });
    with_reason(
        with(message, "reconnect_rejected", token.then_some(true)),
        refused,
    )
}

/// A join has failed. The host is named as the guest named it.
pub fn join_failed(host: &str, refused: Refused) -> String {
    let message = json!({ "type": "user_join_transmission", "transmission_id": host, "status": "failed" });
    with_reason(message, refused)
}

/// The host learns of a guest.
pub fn joined(host: DeviceId, guest: &Identity, delivery: Delivery) -> String {
    let message = json!({
        "type": "user_join_transmission", "transmission_id": host.to_string(), "user_id": guest.to_string(),
        "status": "success",
    });
    with_delivery(message, delivery).to_string()
}

fn with_delivery(message: Value, delivery: Delivery) -> Value {
    with(with(message, "ice", Some(delivery.ice)), "turn", delivery.turn)
}

/// Something from one side of `host`'s session to the other.
pub fn forwarded(host: DeviceId, from: &Identity, forward: Forward, delivery: Option<Delivery>) -> String {
    let mut members = Map::new();
    members.insert("type".into(), forward.kind.as_str().into());
    members.insert("transmission_id".into(), host.to_string().into());
    members.insert("remote_user_id".into(), from.to_string().into());
    for (name, value) in forward.content {
        members.insert(name.into(), value.into());
    }
    let message = Value::Object(members);
    match delivery.filter(|_| forward.kind == ForwardKind::Offer) {
        Some(delivery) => with_delivery(message, delivery).to_string(),
        None => message.to_string(),
    }
}

/// `user` has left `host`'s transmission.
pub fn left(host: DeviceId, user: &Identity) -> String {
    json!({
        "type": "user_leave_transmission", "transmission_id": host.to_string(), "user_id": user.to_string(),
    })
    .to_string()
}

/// The ticket of a session.
pub fn ticket(host: DeviceId, guest: &Identity, token: &Password) -> String {
    json!({
        "type": "session_ticket", "transmission_id": host.to_string(), "host_id": host.to_string(),
        "guest_id": guest.to_string(), "token": token.expose(),
    })
    .to_string()
}

/// Both sides have reported a session.
pub fn resumed(host: DeviceId, guest: &Identity) -> String {
    json!({
        "type": "session_resumed", "transmission_id": host.to_string(), "guest_id": guest.to_string(),
    })
    .to_string()
}

/// Who is in a transmission, or why that is not told.
pub fn users(host: &str, users: Result<Vec<String>, Refused>) -> String {
    let message = json!({ "type": "user_id_list", "transmission_id": host });
    match users {
        Ok(users) => {
            let message = with(message, "user_id_list", Some(users));
            with(message, "status", Some("success")).to_string()
        }
        Err(refused) => with_reason(with(message, "status", Some("failed")), refused),
    }
}

/// Which devices are online.
pub fn presence(devices: impl Iterator<Item = (DeviceId, bool)>) -> String {
    let devices: Vec<Value> = devices
        .map(|(id, online)| json!({ "id": id.to_string(), "online": online }))
        .collect();
    json!({ "type": "presence", "devices": devices }).to_string()
}

/// A watched device came or went.
pub fn presence_update(id: DeviceId, online: bool) -> String {
    json!({ "type": "presence_update", "id": id.to_string(), "online": online }).to_string()
}

/// The outcome of a password change: `None` is success.
pub fn password_changed(
    request_id: Option<&str>,
    user: Option<&Identity>,
    failure: Option<(&str, Option<u64>)>,
) -> String {
    let message = json!({ "type": "change_password", "request_id": request_id.unwrap_or_default() });
    let message = with(message, "user_id", user.map(Identity::to_string));
    match failure {
        None => with(message, "status", Some("success")).to_string(),
        Some((reason, retry_after)) => {
            let message = with(message, "status", Some("fail"));
            let message = with(message, "reason", Some(reason));
            with(message, "retry_after", retry_after).to_string()
        }
    }
}

/// Fresh TURN credentials, or why there are none.
pub fn turn_credentials(turn: Result<Value, &str>) -> String {
    match turn {
        Ok(turn) => json!({ "type": "turn_credentials", "status": "success", "turn": turn }).to_string(),
        Err(reason) => json!({ "type": "turn_credentials", "status": "fail", "reason": reason }).to_string(),
    }
}

/// The outcome of ending a reconnect token.
pub fn token_revoked(user: &str, done: bool) -> String {
    let status = if done { "success" } else { "fail" };
    let message = json!({ "type": "revoke_reconnect_credential", "user_id": user, "status": status });
    let reason = (!done).then_some("Unable to revoke reconnect credential");
    with(message, "reason", reason).to_string()
}
