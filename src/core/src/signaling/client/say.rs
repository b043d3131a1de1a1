//! What a client says, as JSON text.

use serde_json::{Map, Value, json};

use super::super::{DeviceId, Password};

/// The heartbeat.
pub(super) const PING: &str = r#"{"type":"ping"}"#;

/// A host logs in, or registers without `device`.
pub(super) fn login_host(device: Option<&(DeviceId, Password)>) -> String {
    let user = device.map(|(id, password)| format!("{id}@{}", password.expose()));
    login(&user.unwrap_or_default())
}

/// A guest logs in as a browser, or comes back as the one it was.
pub(super) fn login_guest(return_as: Option<&Password>) -> String {
    login(return_as.map_or("web", Password::expose))
}

/// The `turn` object is asked for in place of `ice`, which some servers do not know: a server that knows `ice` sends it
/// with the offer whatever a login says.
fn login(user: &str) -> String {
    json!({ "type": "login", "user_id": user, "session_resume_version": 1 }).to_string()
}

pub(super) fn join(me: &str, host: DeviceId, password: &Password) -> String {
    let host = format!("{host}@{}", password.expose());
    json!({ "type": "join_transmission", "user_id": me, "transmission_id": host }).to_string()
}

pub(super) fn leave(me: &str, host: &str) -> String {
    json!({ "type": "user_leave_transmission", "user_id": me, "transmission_id": host }).to_string()
}

pub(super) fn disconnect_peer(host: &str, guest: &str) -> String {
    json!({ "type": "disconnect_peer", "user_id": host, "transmission_id": host, "remote_user_id": guest })
        .to_string()
}

pub(super) fn change_password(request: &str, password: &Password) -> String {
    json!({ "type": "change_password", "request_id": request, "new_password": password.expose() }).to_string()
}

pub(super) fn report(host: &str, guest: &str, token: &Password, alive: bool) -> String {
    json!({
        "type": "session_report", "transmission_id": host, "host_id": host, "guest_id": guest,
        "token": token.expose(), "alive": alive,
    })
    .to_string()
}

/// An offer, an answer or a candidate.
pub(super) fn forward(kind: &str, me: &str, host: &str, remote: &str, content: &[(&str, &str)]) -> String {
    let mut members = Map::new();
    let names = [
        ("type", kind),
        ("transmission_id", host),
        ("user_id", me),
        ("remote_user_id", remote),
    ];
    for (name, value) in names.iter().chain(content) {
        members.insert((*name).to_owned(), (*value).into());
    }
    Value::Object(members).to_string()
}
