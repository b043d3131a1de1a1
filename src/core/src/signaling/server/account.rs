//! What a device changes about itself: its password and its reconnect token.

use super::{Note, Server, SocketId};
use crate::signaling::identity::Password;
use crate::signaling::keys::Digest;
use crate::signaling::message::{self, Refusal, Refused};
use crate::signaling::queue::{Purpose, Running};
use crate::signaling::{DeviceId, Identity, MAX_CHANGES, Moment, PASSWORD_BYTES};

/// A password change that succeeded, for when its reply was lost.
#[derive(Debug)]
pub(super) struct Change {
    id: DeviceId,
    request_id: String,
    digest: Digest,
}

impl Server {
    pub(super) fn change_password(
        &mut self,
        now: Moment,
        socket: SocketId,
        request_id: Option<String>,
        password: Option<Password>,
    ) {
        let identity = self
            .sockets
            .get(&socket)
            .and_then(|socket| socket.identity.clone());
        let checked = check(identity.as_ref(), request_id.as_deref(), password);
        let (id, password) = match checked {
            Ok(checked) => checked,
            Err(reason) => {
                let text =
                    message::password_changed(request_id.as_deref(), identity.as_ref(), Some((reason, None)));
                return self.send(socket, text);
            }
        };
        let request_id = request_id.unwrap_or_default();
        let before = self
            .changes
            .iter()
            .find(|change| change.id == id && change.request_id == request_id);
        if let Some(before) = before {
            let repeated = before.digest == self.keys.digest(id, &password);
            let failure = (!repeated).then_some(("Request ID was already used", None));
            let text = message::password_changed(Some(&request_id), identity.as_ref(), failure);
            return self.send(socket, text);
        }
        self.enqueue(
            now,
            socket,
            Purpose::ChangePassword {
                id,
                request_id,
                password,
            },
        );
    }

    pub(super) fn password_is_changed(&mut self, running: &Running) {
        let Purpose::ChangePassword { id, request_id, .. } = &running.job.purpose else {
            return;
        };
        if let Some(digest) = running.digest {
            if self.changes.len() >= MAX_CHANGES {
                self.changes.pop_front();
            }
            self.changes.push_back(Change {
                id: *id,
                request_id: request_id.clone(),
                digest,
            });
        }
        self.note(Note::PasswordChanged(*id));
        let user = Identity::Device(*id);
        self.send_if_open(
            running.job.socket,
            message::password_changed(Some(request_id), Some(&user), None),
        );
    }

    pub(super) fn refuse_change(
        &mut self,
        socket: SocketId,
        id: DeviceId,
        request_id: &str,
        refused: Refused,
    ) {
        // The store knows the device, so a refusal of it is a failure like any other.
        let reason = match refused.why {
            Refusal::AuthenticationFailed => "Failed to update password",
            why => why.as_str(),
        };
        let user = Identity::Device(id);
        let failure = Some((reason, refused.retry_after));
        self.send(
            socket,
            message::password_changed(Some(request_id), Some(&user), failure),
        );
    }

    pub(super) fn revoke_token(&mut self, now: Moment, socket: SocketId) {
        let identity = self
            .sockets
            .get(&socket)
            .and_then(|socket| socket.identity.clone());
        match identity.as_ref().and_then(Identity::device) {
            Some(id) => self.enqueue(now, socket, Purpose::RevokeToken { id }),
            None => {
                let user = identity.map_or_else(String::new, |identity| identity.to_string());
                self.send(socket, message::token_revoked(&user, false));
            }
        }
    }
}

/// The device and its new password, or why not.
fn check(
    identity: Option<&Identity>,
    request_id: Option<&str>,
    password: Option<Password>,
) -> Result<(DeviceId, Password), &'static str> {
    request_id.ok_or("Missing or invalid request ID")?;
    let identity = identity.ok_or("Not authenticated")?;
    let id = identity
        .device()
        .ok_or("Password changes are not allowed for this identity")?;
    let fits =
        |password: &Password| password.expose().len() == PASSWORD_BYTES && !password.expose().contains('\0');
    let password = password.filter(fits);
    Ok((id, password.ok_or("Password must contain exactly 6 characters")?))
}
