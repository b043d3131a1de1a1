//! Which devices are online, asked once or watched.

use super::{Server, SocketId};
use crate::signaling::request::Presence;
use crate::signaling::{DeviceId, Identity, MAX_WATCHED, message};

/// Platforms clients are known to name; others are counted together.
const PLATFORMS: [&str; 5] = ["windows", "macos", "linux", "android", "ios"];

impl Server {
    pub(super) fn presence(&mut self, id: SocketId, presence: &Presence) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        // Only devices see each other; an id that is named must be the own one.
        let named = presence.user.clone();
        if socket.device().is_none() || named.is_some_and(|user| !socket.is(&user)) {
            self.counted.dropped += 1;
            return;
        }
        let mut devices: Vec<DeviceId> = Vec::new();
        for device in presence.devices.iter().filter_map(|text| DeviceId::parse(text)) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        let before = if presence.subscribe == Some(true) {
            std::mem::take(&mut socket.watched)
        } else {
            Vec::new()
        };
        if presence.subscribe != Some(false) {
            let room = MAX_WATCHED - socket.watched.len();
            let new: Vec<DeviceId> = devices
                .iter()
                .filter(|device| !socket.watched.contains(device))
                .take(room)
                .copied()
                .collect();
            socket.watched.extend(&new);
            before.iter().for_each(|device| self.unwatch(id, *device));
            for device in new {
                self.watchers.entry(device).or_default().insert(id);
            }
        }
        let online = |device: &DeviceId| (*device, self.online.contains_key(&Identity::Device(*device)));
        let text = message::presence(devices.iter().map(online));
        self.send(id, text);
    }

    pub(super) fn unwatch(&mut self, id: SocketId, device: DeviceId) {
        if let Some(watchers) = self.watchers.get_mut(&device) {
            watchers.remove(&id);
            if watchers.is_empty() {
                self.watchers.remove(&device);
            }
        }
    }

    pub(super) fn tell_watchers(&mut self, device: DeviceId, online: bool) {
        let watchers = self.watchers.get(&device).into_iter().flatten().copied();
        for watcher in watchers.collect::<Vec<_>>() {
            self.send(watcher, message::presence_update(device, online));
        }
    }

    /// Counts what devices run on, once a socket.
    pub(super) fn note_client(&mut self, id: SocketId, platform: &str) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if socket.device().is_none() || std::mem::replace(&mut socket.introduced, true) {
            return;
        }
        let known = PLATFORMS.into_iter().find(|known| *known == platform);
        *self
            .counted
            .platforms
            .entry(known.unwrap_or("other"))
            .or_default() += 1;
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn check_watchers(&self) {
        for (device, watchers) in &self.watchers {
            assert!(!watchers.is_empty());
            let watches = |id| {
                self.sockets
                    .get(id)
                    .is_some_and(|socket| socket.watched.contains(device))
            };
            assert!(watchers.iter().all(watches));
        }
        for (id, socket) in &self.sockets {
            assert!(socket.watched.len() <= MAX_WATCHED);
            let known = |device| self.watchers.get(device).is_some_and(|all| all.contains(id));
            assert!(socket.watched.iter().all(known));
        }
    }
}
