//! The shortest way from an encoder to the guests: its own thread hands each access unit to their connections.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossdesk_core::media::AccessUnit;

use super::Message;
use super::desk::ScreenOutput;
use crate::transport::webrtc::{Connection, OutgoingUnit};

struct Route {
    guest: u64,
    display: usize,
    connection: Arc<Connection>,
}

/// Who gets which display.
pub(super) struct Router {
    routes: Mutex<Vec<Route>>,
    messages: SyncSender<Message>,
}

impl Router {
    pub(super) const fn new(messages: SyncSender<Message>) -> Self {
        Self {
            routes: Mutex::new(Vec::new()),
            messages,
        }
    }

    /// From now on `guest` gets `display`, on the video track of the same number.
    pub(super) fn show(&self, guest: u64, display: usize, connection: Arc<Connection>) {
        let mut routes = self.routes();
        routes.retain(|route| route.guest != guest);
        routes.push(Route {
            guest,
            display,
            connection,
        });
    }

    pub(super) fn forget(&self, guest: u64) {
        self.routes().retain(|route| route.guest != guest);
    }

    /// True when somebody looks at `display`.
    pub(super) fn is_watched(&self, display: usize) -> bool {
        self.routes().iter().any(|route| route.display == display)
    }

    fn routes(&self) -> MutexGuard<'_, Vec<Route>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScreenOutput for Router {
    fn unit(&self, index: usize, unit: AccessUnit) {
        // Media time counts 90 000 a second and wraps.
        let timestamp = (unit.received.as_micros() * 9 / 100) as u32;
        for route in self.routes().iter().filter(|route| route.display == index) {
            let unit = OutgoingUnit {
                data: unit.data.clone(),
                timestamp,
            };
            // A connection that is behind asks for a key frame when it has caught up.
            let _ = route.connection.send_unit(index, unit);
        }
    }

    fn ended(&self, index: usize, reason: String) {
        // The loop is gone only when the host ends.
        let _ = self.messages.send(Message::ScreenEnded(index, reason));
    }
}
