//! Which frame goes to which viewer: keyframe first, catch-up, congestion, latest picture.

use std::sync::Arc;

use super::connection::{Position, Viewer};
use super::{ConnectionId, Effect, Hub};
use crate::media::TapUnit;
use crate::time::Monotonic;
use crate::video::group::{Index, Lookup};
use crate::video::{Message, Nv12Picture, Protocol};

impl Hub {
    /// Offers an access unit, published at `published`, to every viewer of `h264-annexb/1`.
    pub fn handle_unit(&mut self, now: Monotonic, unit: &TapUnit, published: Monotonic) {
        let Some(stream) = self
            .stream
            .filter(|stream| stream.protocol == Protocol::H264AnnexB)
        else {
            return;
        };
        let follows = self
            .last_sequence
            .is_none_or(|last| last.wrapping_add(1) == unit.sequence);
        self.last_sequence = Some(unit.sequence);
        if !follows {
            self.group.break_chain();
        }
        let Ok(message) = Message::h264(stream.generation, unit, published) else {
            self.group.break_chain();
            return;
        };
        let index = self.group.end();
        self.keyframe_wished &= !unit.idr;
        self.group.push(Arc::new(message));
        for id in self.viewer_ids() {
            self.offer_unit(now, id, index);
        }
        self.request_keyframe(now);
    }

    /// `index` is where the newest unit stands.
    fn offer_unit(&mut self, now: Monotonic, id: ConnectionId, index: Index) {
        let was_live = self
            .viewer_mut(id)
            .is_some_and(|viewer| viewer.position == Position::Unit(index));
        self.pump_unit_viewer(now, id);
        let starts = self.group.start() == Some(index);
        let Some(viewer) = self.viewer_mut(id) else { return };
        // A keyframe waits for its turn instead of being dropped, and who catches up is behind on purpose.
        if was_live && !starts && viewer.position == Position::Unit(index) {
            viewer.position = Position::Keyframe(index + 1);
        }
        let skipped = viewer.last.is_some() && viewer.waits_for_keyframe();
        self.dropped += u64::from(skipped);
    }

    /// Gives a viewer of `h264-annexb/1` all that it may have now.
    pub(super) fn pump_unit_viewer(&mut self, now: Monotonic, id: ConnectionId) {
        let Self {
            connections,
            group,
            effects,
            dropped,
            ..
        } = self;
        let viewer = match connections.get_mut(&id) {
            Some(super::Connection::Viewer(viewer)) if viewer.protocol == Protocol::H264AnnexB => viewer,
            _ => return,
        };
        loop {
            let next = match viewer.position {
                Position::Unit(next) => next,
                Position::Keyframe(earliest) => match group.start() {
                    Some(start) if start >= earliest => start,
                    _ => return,
                },
            };
            viewer.position = Position::Unit(next);
            match group.look(next) {
                Lookup::Live => return,
                Lookup::Unit(message) if viewer.flow.has_room(message.total_bytes()) => {
                    let message = Arc::clone(message);
                    viewer.position = Position::Unit(next + 1);
                    give(viewer, now, message, id, effects);
                }
                Lookup::Unit(_) => return,
                Lookup::Restart(start) => {
                    *dropped += start - next;
                    viewer.position = Position::Unit(start);
                }
                Lookup::Lost => {
                    // The newest unit is counted by `offer_unit`.
                    *dropped += (group.end() - next).saturating_sub(1);
                    viewer.position = Position::Keyframe(next);
                    return;
                }
            }
        }
    }

    /// True when a viewer of `nv12/1` can take a picture it has not seen: worth packing the newest one for.
    pub fn wants_picture(&self) -> bool {
        self.viewers()
            .any(|(_, viewer)| viewer.protocol == Protocol::Nv12 && viewer.flow.has_room(0))
    }

    /// Offers a packed picture to every viewer of `nv12/1`. One that breaks the limits of the protocol is ignored.
    pub fn handle_picture(&mut self, now: Monotonic, picture: &Nv12Picture) {
        let Some(stream) = self.stream.filter(|stream| stream.protocol == Protocol::Nv12) else {
            return;
        };
        let Ok(message) = Message::nv12(stream.generation, picture) else {
            return;
        };
        if let Some(replaced) = self.latest.replace(Arc::new(message)) {
            let missed = |viewer: &Viewer| viewer.last.is_some_and(|last| last != replaced.sequence);
            self.dropped += self.viewers().filter(|(_, viewer)| missed(viewer)).count() as u64;
        }
        self.offer_latest(now);
    }

    /// Gives the newest packed picture to viewers that could not take it before; for when no newer one waits.
    pub fn offer_latest(&mut self, now: Monotonic) {
        let Some(latest) = self.latest.clone() else { return };
        for id in self.viewer_ids() {
            let Self {
                connections, effects, ..
            } = self;
            let Some(super::Connection::Viewer(viewer)) = connections.get_mut(&id) else {
                continue;
            };
            if viewer.last != Some(latest.sequence) && viewer.flow.has_room(latest.total_bytes()) {
                give(viewer, now, Arc::clone(&latest), id, effects);
            }
        }
    }

    /// A viewer of `h264-annexb/1` starts at the last IDR, if that is still at hand, and the source is asked for one
    /// that brings it up to date at once.
    pub(super) fn start_viewer(&mut self, now: Monotonic, id: ConnectionId) {
        self.pump_unit_viewer(now, id);
        let at_newest = self.group.start().is_some() && self.group.len() == 1;
        let compressed = self
            .viewer_mut(id)
            .is_some_and(|viewer| viewer.protocol == Protocol::H264AnnexB);
        if compressed && !at_newest {
            self.wish_keyframe(now);
        }
    }

    fn viewer_ids(&self) -> Vec<ConnectionId> {
        self.viewers().map(|(id, _)| id).collect()
    }
}

fn give(
    viewer: &mut Viewer,
    now: Monotonic,
    message: Arc<Message>,
    id: ConnectionId,
    effects: &mut std::collections::VecDeque<Effect>,
) {
    viewer.last = Some(message.sequence);
    if viewer.flow.send(now, message) {
        effects.push_back(Effect::Ready(id));
    }
}
