//! Descriptions and candidates on their way between the two sides of a session.

use super::{Server, SocketId};
use crate::signaling::message;
use crate::signaling::request::{Forward, ForwardKind};
use crate::signaling::{DeviceId, Identity, Moment};

/// Where a message goes.
struct Way {
    host: DeviceId,
    from: Identity,
    to: Identity,
    socket: SocketId,
}

impl Server {
    /// Passes a message on, when its sender and receiver are the two sides of one session. Otherwise it vanishes, as
    /// the public protocol has it.
    pub(super) fn forward(&mut self, now: Moment, id: SocketId, forward: Forward) {
        let Some(way) = self.way(id, &forward) else {
            self.counted.dropped += 1;
            return;
        };
        let to_guest = forward.kind == ForwardKind::Offer;
        let delivery = to_guest.then(|| {
            let ice_id = self.keys.ice_id();
            self.config.ice.deliver(now.unix, &way.to, &ice_id)
        });
        self.counted.forwarded += 1;
        self.send(
            way.socket,
            message::forwarded(way.host, &way.from, forward, delivery),
        );
    }

    fn way(&self, id: SocketId, forward: &Forward) -> Option<Way> {
        let socket = self.sockets.get(&id).filter(|socket| socket.is(&forward.user))?;
        let from = socket.identity.clone()?;
        let to = Identity::parse(&forward.remote)?;
        // A guest names the host; hosts of mid-2026 and before name their guest.
        let as_guest = || {
            let host = to.device().filter(|_| forward.transmission == forward.remote)?;
            let bound = self.guest_socket(host, &from) == Some(id);
            let socket = self.route(host).filter(|_| bound)?;
            Some((host, socket))
        };
        let as_host = || {
            let host = from.device()?;
            let named = forward.transmission == forward.user || forward.transmission == forward.remote;
            let socket = self.guest_socket(host, &to).filter(|_| named)?;
            Some((host, socket))
        };
        let (host, socket) = as_guest().or_else(as_host)?;
        Some(Way {
            host,
            from,
            to,
            socket,
        })
    }

    pub(super) fn turn_credentials(&mut self, now: Moment, id: SocketId) {
        let identity = self.sockets.get(&id).and_then(|socket| socket.identity.clone());
        let text = match identity {
            None => message::turn_credentials(Err("Not authenticated")),
            Some(user) => {
                let ice_id = self.keys.ice_id();
                let turn = self.config.ice.deliver(now.unix, &user, &ice_id).turn;
                message::turn_credentials(turn.ok_or("TURN credentials are not configured"))
            }
        };
        self.send(id, text);
    }
}
